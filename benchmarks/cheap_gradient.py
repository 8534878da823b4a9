"""The cheap-gradient principle: value and gradient cost a small multiple of the value alone.

Work is counted (see `counting.py`), not timed: array operations and bytes, of the plain NumPy
program and of `gt.value_and_grad` of the same program. The principle bounds the ratio by 5 for
reverse mode, whatever the number of inputs.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import autograd
import autograd.numpy
import numpy as np

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.counting import Cost, count
from benchmarks.harness import Settings
from benchmarks.programs import Case, cases
from benchmarks.result import Row
from gradtape.tools.statistics import Spread

BAR = 5.0


def run(settings: Settings) -> Iterator[Row]:
    """Count over all programs; a row each for the worst, and one per program as detail."""
    del settings  # counting needs one call
    costs = {case.name: _costs(case) for case in cases()}
    for unit in Cost._fields:
        pairs = {name: (getattr(g, unit), getattr(v, unit)) for name, (v, g) in costs.items()}
        ratios = {name: ours / value for name, (ours, value) in pairs.items()}
        worst = max(ratios, key=lambda name: ratios[name])
        what = f"value and gradient / value, {unit}, the worst of {len(pairs)} programs ({worst})"
        spread = Spread(ratios[worst], min(ratios.values()), ratios[worst])
        yield _row(f"cheap gradient, {unit}", what, pairs[worst], spread, unit)
        for name, ratio in ratios.items():
            spread = Spread(ratio, ratio, ratio)
            what = f"value and gradient / value, {unit}"
            yield _row(name, what, pairs[name], spread, unit, detail=True)


def _costs(case: Case) -> tuple[Cost, Cost]:
    """Count evaluation and gradient of a program, after checking the gradient."""
    arrays = *case.data, *case.args
    program = partial(case.program, np)
    value, value_cost = count(program, *arrays)
    gradient = gt.value_and_grad(program, argnums=case.argnums)
    (counted_value, grads), cost = count(gradient, *arrays)

    peer = autograd.grad(partial(case.program, autograd.numpy), case.argnums)
    assert_agree(case.name, counted_value, value, rtol=1e-14)
    for ours, theirs in zip(grads, peer(*arrays), strict=True):
        assert_agree(case.name, ours, theirs)
    _check_complete(case, value_cost)
    return value_cost, cost


def _check_complete(case: Case, value_cost: Cost) -> None:
    """Raise if recording the program was counted as less work than evaluating it.

    It does the same operations; where fewer are seen, part of them went past the count, and the
    count of the gradient could not be trusted either.
    """

    def leaves(*arrays: np.ndarray) -> list[Any]:
        n = len(case.data)
        return [*arrays[:n], *(gt.tensor(a, requires_grad=True) for a in arrays[n:])]

    def record(*arrays: np.ndarray) -> None:
        case.program(np, *leaves(*arrays))

    arrays = *case.data, *case.args
    _, making = count(lambda *a: leaves(*a) and None, *arrays)
    _, both = count(record, *arrays)
    for unit in Cost._fields:
        seen = getattr(both, unit) - getattr(making, unit)
        needed = getattr(value_cost, unit)
        if seen < needed:
            raise AssertionError(f"{case.name}: only {seen} of {needed} {unit} were counted")


def _row(
    name: str,
    what: str,
    pair: tuple[int, int],
    ratio: Spread,
    unit: str,
    *,
    detail: bool = False,
) -> Row:
    ours, value = pair
    return Row(name, what, ours, "evaluation", value, ratio, BAR, unit, detail)
