"""All modes agree where a value is infinite or undefined (decision 0005), for every op.

Where a value is finite and a slope is not, one mode may give a number where another gives NaN; two
different numbers never.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradtape.core.op import Op
from nonfinite import (
    FIRST,
    SECOND,
    Slope,
    check_alike,
    check_numbers,
    derivatives,
    ops,
    programs,
    slopes,
)

# These are always tried in all modes; of others some modes are left to `make test-all`.
COMMON = frozenset(
    {"multiply", "divide", "power", "reciprocal", "square", "exp", "log", "sqrt", "tanh", "where"}
)

# In these, a step of the slope is finite with an infinite slope of its own where the value is not,
# such as a root of 0: second derivatives of a branch that is not taken are NaN in some modes.
STEEP_STEPS = frozenset(
    {"arccosh", "betainc", "betaincc", "boxcox", "ellipeinc", "ellipk", "ellipkm1", "elliprc"}
    | {"elliprg", "gamma_density", "powm1", "stdtr_by_df", "stdtrit"}
)


def each(quick: Callable[[Op], bool]) -> pytest.MarkDecorator:
    """Run a test for every op; quickly only for some."""
    cases = [
        pytest.param(op, id=op.name, marks=() if quick(op) else pytest.mark.slow) for op in ops()
    ]
    return pytest.mark.parametrize("op", cases)


@each(lambda op: op.lower is not None)
def test_first_derivatives(op: Op) -> None:
    for slope in slopes(op):
        check_first(slope, derivatives(programs(slope), slope.x, FIRST))


@each(lambda op: op.name in ("multiply", "log", "tanh"))
def test_first_derivatives_in_native_code(op: Op) -> None:
    for slope in slopes(op):
        check_first(slope, derivatives(programs(slope), slope.x, FIRST, native=True))


def check_first(slope: Slope, found: dict[str, dict[str, Any]]) -> None:
    with np.errstate(all="ignore"):
        value, x = np.asarray(slope(slope.x)), slope.x
        steep = ~np.isfinite(np.stack(list(found["f"].values()))).all(axis=0)
        change = np.abs(found["f"]["forward"])
        size = np.abs(value) + np.abs(x) * change
    numbers = np.isfinite(value)
    # Which of them are a finite value with a slope that is not: its own, or that of what follows.
    but = {
        "f": np.zeros(x.shape, bool),
        "x*f": numbers & (steep | ~np.isfinite(x)),
        "where": numbers & steep,
        "where x*f": numbers & steep,
        "where f/x": numbers & steep,
    }
    for name, modes in found.items():
        check_numbers(modes, size if name == "x*f" else 0, slope)
        check_alike(modes, but[name], slope)
        if name.startswith("where"):
            check_zero(modes, slope)


def check_zero(found: dict[str, Any], slope: Slope) -> None:
    """What is not taken has derivative 0, or none."""
    check_numbers({**found, "nothing": np.zeros(slope.x.shape)}, 0, slope)


@each(lambda op: op.name in COMMON)
def test_second_derivatives(op: Op) -> None:
    for slope in slopes(op):
        chosen = {name: f for name, f in programs(slope).items() if name != "where f/x"}
        found = derivatives(chosen, slope.x, SECOND)
        with np.errstate(all="ignore"):
            numbers = np.isfinite(np.asarray(slope(slope.x)))
        for name, modes in found.items():
            check_numbers(modes, 1, slope)
            if name.startswith("where"):
                check_zero(modes, slope)
                check_alike(modes, numbers | (op.name in STEEP_STEPS), slope)
