"""Thousands of random programs, compiled: values and gradients are those of eager code.

Many programs are compiled together, as parts of one function: that is faster, and the more there is
to fuse wrongly. A failure names the seed and prints the smallest program found that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import tree
from gradtape.graph.run import replay
from graphcall import traced
from random_code import Program, random_program, reduced

# Relative to the largest element of a result, in double and in single precision: rounding errors of
# a few steps stay below, and wrong code does not.
TOLERANCES = 1e-9, 2e-3


def loss_of(program: Program) -> Callable[..., Any]:
    """A number that depends on all elements of all floating results, on each in another way."""
    function = program.function()

    def loss(*arrays: Any) -> Any:
        total = 0.0
        for out in function(*arrays):
            if out.dtype.kind == "f":
                weights = np.cos(np.arange(np.prod(out.shape, dtype=int))).reshape(out.shape)
                total = total + np.sum(out * weights.astype(out.dtype))
        return total

    return loss


def gradient_of(program: Program) -> Callable[..., Any]:
    """The gradient of the loss by the floating inputs; nothing if there is none."""
    chosen = tuple(k for k, (_, _, dtype) in enumerate(program.inputs) if dtype[0] == "f")
    results = program.function()(*program.arguments())
    if not chosen or not any(np.asarray(out).dtype.kind == "f" for out in results):
        return lambda *arrays: ()
    return gt.grad(loss_of(program), chosen)


def eager(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    with np.errstate(all="ignore"):
        return function(*arguments)


def difference(program: Program, got: Any, expected: Any) -> str | None:
    """What is wrong with results; None if nothing is."""
    got, expected = tree.flatten(got)[0], tree.flatten(expected)[0]
    if len(got) != len(expected):
        return f"{len(got)} results instead of {len(expected)}"
    for k, (one, other) in enumerate(zip(got, expected, strict=True)):
        one, other = np.asarray(one), np.asarray(other)
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return f"result {k} is {one.dtype}{one.shape} instead of {other.dtype}{other.shape}"
        tolerance = TOLERANCES[program.single] if other.dtype.kind == "f" else 0.0
        scale = max(1.0, np.abs(other[np.isfinite(other)]).max(initial=0))
        close = np.isclose(one, other, tolerance, tolerance * scale, equal_nan=True)
        if not close.all():
            place = tuple(int(i) for i in np.argwhere(~close)[0])
            return (
                f"result {k} of shape {one.shape} is wrong in {np.sum(~close)} elements, first at "
                f"{place}: {one[place]} instead of {other[place]}"
            )
    return None


def wrong(function: Callable[[Program], Callable[..., Any]], program: Program) -> str | None:
    """What is wrong with a function of a program, compiled on its own."""
    arguments = program.arguments()
    expected = eager(function(program), arguments)
    try:
        return difference(program, gt.jit(function(program))(*arguments), expected)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def check(
    programs: Sequence[Program], functions: Sequence[Callable[[Program], Callable[..., Any]]]
) -> None:
    """Compile functions of many programs as one, and compare with eager code."""
    parts = [[function(program) for function in functions] for program in programs]
    arguments = [program.arguments() for program in programs]

    def run(batch: Any) -> Any:
        return [[f(*given) for f in fs] for fs, given in zip(parts, batch, strict=True)]

    expected = [[eager(f, given) for f in fs] for fs, given in zip(parts, arguments, strict=True)]
    try:
        got = gt.jit(run)(arguments)
    except Exception as error:
        got, failure = None, f"{type(error).__name__}: {error}"
    for k, program in enumerate(programs):
        for n, function in enumerate(functions):
            told = failure if got is None else difference(program, got[k][n], expected[k][n])
            alone = wrong(function, program) if told is not None else None
            if alone is not None:
                small = reduced(program, lambda p: wrong(function, p) is not None)
                raise AssertionError(
                    f"seed {program.seed}, {function.__name__}: {wrong(function, small)}\n"
                    f"{small.script}"
                )
            assert told is None or got is None, (
                f"seed {program.seed}, {function.__name__}: right on its own, and wrong together "
                f"with seeds {[p.seed for p in programs]}: {told}"
            )
    assert got is not None, f"seeds {[p.seed for p in programs]} fail together only: {failure}"


def values_of(program: Program) -> Callable[..., Any]:
    return program.function()


TOGETHER = 25


@pytest.mark.parametrize("first", range(0, 1500, TOGETHER))
def test_values(first: int) -> None:
    check([random_program(seed) for seed in range(first, first + TOGETHER)], [values_of])
