"""Random programs: every way to a Jacobian, and Taylor mode, against (nested) forward mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from random_code import Program
from random_ways import check, floating_inputs, programs

MODES = ("auto", "forward", "reverse", "mixed")


def floats_of(program: Program) -> Callable[..., Any]:
    """The floating results, raveled and joined, as a function of the floating inputs joined."""
    function, chosen = program.function(), floating_inputs(program)

    def joined(flat: Any, *arrays: Any) -> Any:
        full, start = list(arrays), 0
        for k in chosen:
            size = np.size(arrays[k])
            part = flat[start : start + size].astype(arrays[k].dtype)
            full[k], start = part.reshape(np.shape(arrays[k])), start + size
        outs = [out.ravel() for out in function(*full) if out.dtype.kind == "f"]
        return np.concatenate([out.astype(np.float64) for out in outs])

    return joined


def of_vector(program: Program, transform: Callable[..., Any]) -> Callable[..., Any]:
    """A transform of that function, as a function of the arrays of the program."""
    chosen = floating_inputs(program)
    if not chosen:
        return lambda *arrays: ()

    def run(*arrays: Any) -> Any:
        flat = np.concatenate([np.ravel(arrays[k]).astype(np.float64) for k in chosen])
        return transform(lambda x: floats_of(program)(x, *arrays), flat)

    return run


def by_columns(program: Program) -> Callable[..., Any]:
    return of_vector(program, lambda f, x: gt.jacfwd(f)(x))


def by_mode(mode: str) -> Callable[[Program], Callable[..., Any]]:
    def way(program: Program) -> Callable[..., Any]:
        return of_vector(program, lambda f, x: gt.jacobian(f, mode=mode)(x))

    way.__name__ = mode
    return way


def linearized(program: Program) -> Callable[..., Any]:
    return of_vector(
        program, lambda f, x: gt.vmap(gt.linearize(f, x)[1], out_axes=-1)(np.eye(x.size))
    )


def on_a_tape(program: Program) -> Callable[..., Any]:
    def transform(function: Any, x: Any) -> Any:
        tape = gt.GradientTape()
        watched = tape.watch(x)
        target = function(watched)
        if not getattr(target, "requires_grad", False):
            return np.zeros(target.shape + x.shape)
        return np.asarray(tape.jacobian(target, watched))

    return of_vector(program, transform)


def curve(function: Any, x: Any, take: Any) -> Any:
    """Derivatives along x + t·v + t²·w/2, by a function of the curve and its derivatives."""
    v, w = np.cos(np.arange(x.size)), np.sin(np.arange(x.size))
    return take(function, x, v, w)


def by_jets(program: Program) -> Callable[..., Any]:
    def taken(function: Any, x: Any, v: Any, w: Any) -> Any:
        return gt.jet(function, (x,), ([v, w],))[1]

    return of_vector(program, lambda f, x: curve(f, x, taken))


def by_nesting(program: Program) -> Callable[..., Any]:
    def taken(function: Any, x: Any, v: Any, w: Any) -> Any:
        first = gt.jvp(function, (x,), (v,))[1]
        second = gt.jvp(lambda x, v: gt.jvp(function, (x,), (v,))[1], (x, v), (v, w))[1]
        return [first, second]

    return of_vector(program, lambda f, x: curve(f, x, taken))


WAYS = {
    **{mode: (by_mode(mode), by_columns) for mode in MODES},
    "linearize": (linearized, by_columns),
    "tape": (on_a_tape, by_columns),
    "jet": (by_jets, by_nesting),
}


@pytest.mark.parametrize("name", WAYS)
def test_derivatives_of_random_programs_agree(name: str) -> None:
    way, reference = WAYS[name]
    for program in programs(5000, 20, floating=True):
        check(way, program, reference)


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("block", range(20))
def test_derivatives_of_many_random_programs_agree(name: str, block: int) -> None:
    way, reference = WAYS[name]
    for program in programs(6000 + 20 * block, 20):
        check(way, program, reference)
