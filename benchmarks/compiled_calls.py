"""What a call of a compiled function costs besides its work, for each way of calling it.

All functions are small enough that the call is all there is. The peer is one call of NumPy with ten
elements, about 0.4 µs on the machine the goals were set on; with it they move to others.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings
from benchmarks.result import OURS, Row, compare

SIZE = 10
# The goals, 0.4, 3 and 10 µs, as multiples of the call of NumPy.
PLAIN, ORDINARY, TENSORS = 1.0, 7.5, 25.0


def _product(x: Any, y: Any) -> Any:
    return x * y


def _energy(x: Any) -> Any:
    return np.sum(x * x)


def run(settings: Settings) -> Iterator[Row]:
    """Time calls of compiled functions against `np.add` of ten elements."""
    a, b = np.random.default_rng(0).normal(size=(2, SIZE))
    matrix = np.arange(2.0 * SIZE).reshape(SIZE, 2)
    wide = np.arange(4.0 * SIZE).reshape(2, 2 * SIZE)
    ways: list[tuple[str, str, dict[str, Any], float]] = [
        ("arrays", "f(x, y)", {"x": a, "y": b}, PLAIN),
        ("Python numbers", "f(3.0, 2.0)", {}, ORDINARY),
        ("keywords", "f(x=x, y=y)", {"x": a, "y": b}, ORDINARY),
        ("a transposed array", "f(x, 2.0)", {"x": matrix.T}, ORDINARY),
        ("a strided array", "f(x, 2.0)", {"x": wide[:, ::2]}, ORDINARY),
        ("two forms in turn", "f(x, y); f(x, 2.0)", {"x": a, "y": b}, 2 * ORDINARY),
        ("an untracked tensor", "f(x, y)", {"x": gt.tensor(a), "y": b}, TENSORS),
    ]
    peer = Contender("NumPy", "add(a, b)", {"add": np.add, "a": a, "b": b})
    for name, statement, names, bar in ways:
        compiled = gt.jit(_product)
        for each in 2 * statement.split("; "):
            got = eval(each, {"f": compiled, **names})
            assert_agree(name, got, eval(each, {"f": _product, **names}))
        ours = Contender(OURS, statement, {"f": compiled, **names})
        what = f"`{statement}` of a compiled function: {name}"
        yield from compare("compiled call", what, ours, [(peer, bar)], settings)
    yield from _tracked(a, peer, settings)


def _tracked(values: Any, peer: Contender, settings: Settings) -> Iterator[Row]:
    compiled, x = gt.jit(_energy), gt.tensor(values, requires_grad=True)
    for _ in range(2):
        assert_agree("tracked", compiled(x).item(), _energy(values))
        compiled(x).backward()
    yield from compare(
        "compiled call",
        "`f(x)` of a compiled function: a tracked tensor, with the record",
        Contender(OURS, "f(x)", {"f": compiled, "x": x}),
        [
            (peer, TENSORS),
            (Contender("recorded eagerly", "f(x)", {"f": _energy, "x": x}), None),
        ],
        settings,
    )
    statement = "f(x).backward(); x.grad = None"
    yield from compare(
        "compiled call",
        "`f(x).backward()` of a compiled function",
        Contender(OURS, statement, {"f": compiled, "x": x}),
        [(Contender("recorded eagerly", statement, {"f": _energy, "x": x}), None)],
        settings,
    )
