"""Random programs in plain NumPy as lazy graphs: values and gradients are those of eager code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.lazy.context import Context
from random_code import Program
from random_ways import difference, eager, floating_inputs, programs

COUNT = 120


def weights(out: Any) -> Any:
    """A weight for each element of a result, each another one."""
    size = np.prod(np.shape(out), dtype=int)
    return np.cos(np.arange(size)).reshape(np.shape(out)).astype(out.dtype)


def check(program: Program, *, sized: bool) -> str | None:
    """What is wrong with the lazy graph of a program; None if nothing is."""
    function, arguments = program.function(), program.arguments()
    expected = [np.asarray(out) for out in eager(function, arguments)]
    ctx = Context()
    lazy = list(arguments)
    for n, x in enumerate(arguments):
        if isinstance(x, np.ndarray):  # Python's numbers are weak, which placeholders are not
            lazy[n] = ctx.placeholder(f"x{n}", x.shape if sized else None, dtype=x.dtype)
    results = list(function(*lazy))
    chosen = floating_inputs(program)
    floating = [n for n, out in enumerate(expected) if out.dtype.kind == "f"]
    grads = gt.graph.grad(
        [results[n] for n in floating],
        [lazy[n] for n in chosen],
        [weights(expected[n]) for n in floating],
    )

    def loss(*arrays: Any) -> Any:
        outs = function(*arrays)
        return sum(np.sum(outs[n] * weights(expected[n])) for n in floating)

    expected += eager(gt.grad(loss, chosen), arguments) if chosen else ()
    evaluator = ctx.evaluator().extend([*results, *grads])
    for x, value in zip(lazy, arguments, strict=True):
        if x is not value:
            evaluator.feed(x, value)
    return difference(program, evaluator.run(), expected)


@pytest.mark.parametrize("sized", [True, False], ids=["known", "unknown"])
def test_lazy_graphs_agree_with_eager_code(sized: bool) -> None:
    wrong = [
        f"{said}\n{program}"
        for program in programs(0, COUNT)
        if (said := check(program, sized=sized))
    ]
    assert wrong == []
