"""Ways to run random programs and to differentiate them, and what tells that one is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gradtape as gt
from gradtape import containers
from graphcall import traced_and_run
from random_code import Program, random_program, reduced, with_the_first_traced

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


def gradient_of(program: Program, make: Callable[..., Any] = lambda f: f) -> Callable[..., Any]:
    """The gradient of the loss by the floating inputs; nothing if there is none."""
    chosen = floating_inputs(program)
    return gt.grad(make(loss_of(program)), chosen) if chosen else lambda *arrays: ()


def floating_inputs(program: Program) -> tuple[int, ...]:
    """Which inputs to differentiate by: none if no result is floating."""
    results = eager(program.function(), program.arguments())
    if not any(np.asarray(out).dtype.kind == "f" for out in results):
        return ()
    return tuple(k for k, (_, _, dtype) in enumerate(program.inputs) if dtype[0] == "f")


def eager(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    with np.errstate(all="ignore"):
        return function(*arguments)


def difference(program: Program, got: Any, expected: Any) -> str | None:
    """What is wrong with results; None if nothing is."""
    got, expected = containers.flatten(got)[0], containers.flatten(expected)[0]
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


def programs(first: int, count: int, **options: bool) -> list[Program]:
    """The programs of so many seeds."""
    return [random_program(seed, **options) for seed in range(first, first + count)]


Way = Callable[[Program], Callable[..., Any]]


def wrong(way: Way, program: Program, reference: Way | None = None) -> str | None:
    """What is wrong with a way to run a program, compared with another or with eager code."""
    arguments = program.arguments()
    expected = eager((reference or way)(program), arguments)
    try:
        run = gt.jit(way(program)) if reference is None else way(program)
        return difference(program, eager(run, arguments), expected)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def check(way: Way, program: Program, reference: Way | None = None) -> None:
    """Raise if a way to run a program is wrong, with the smallest program for which it is."""
    if wrong(way, program, reference) is not None:
        small = reduced(program, lambda p: wrong(way, p, reference) is not None)
        told = wrong(way, small, reference)
        raise AssertionError(f"seed {program.seed}, {way.__name__}: {told}\n{small.script}")


def check_together(ways: Sequence[Way], programs: Sequence[Program]) -> None:
    """Compile several ways to run many programs as one function, and compare with eager code."""
    parts = [[way(program) for way in ways] for program in programs]
    arguments = [program.arguments() for program in programs]

    def run(batch: Any) -> Any:
        return [[f(*given) for f in fs] for fs, given in zip(parts, batch, strict=True)]

    expected = eager(run, [arguments])
    try:
        got = gt.jit(run)(arguments)
    except Exception as error:
        for program in programs:
            for way in ways:
                check(way, program)
        raise AssertionError(f"seeds {[p.seed for p in programs]} fail only together") from error
    compare(ways, programs, got, expected)


def check_captured(ways: Sequence[Way], programs: Sequence[Program]) -> None:
    """Compile programs that are given the first of their arrays only, and change the others."""
    programs = [with_the_first_traced(program) for program in programs]
    parts = [[way(program) for way in ways] for program in programs]
    known = [program.arguments() for program in programs]

    def run(batch: Any) -> Any:
        return [
            [f(*given, *others) for f in fs]
            for fs, given, (_, _, *others) in zip(parts, batch, known, strict=True)
        ]

    compiled = gt.jit(run)
    for which in range(3):
        for program, arrays in zip(programs, known, strict=True):
            for array, values in zip(arrays, program.arguments(which), strict=True):
                if isinstance(array, np.ndarray):
                    array[...] = values
        batch = [(arrays[0].copy(), np.zeros(())) for arrays in known]
        compare(ways, programs, eager(compiled, [batch]), eager(run, [batch]))


def compare(ways: Sequence[Way], programs: Sequence[Program], got: Any, expected: Any) -> None:
    """Raise if results of several ways to run many programs are wrong."""
    for program, made, right in zip(programs, got, expected, strict=True):
        for way, one, other in zip(ways, made, right, strict=True):
            told = difference(program, one, other)
            if told is not None:
                check(way, program)
                raise AssertionError(
                    f"seed {program.seed}, {way.__name__}: right on its own, and wrong together "
                    f"with seeds {[p.seed for p in programs]}: {told}"
                )


# ---- ways to run a program ----------------------------------------------------------------------


def values_of(program: Program) -> Callable[..., Any]:
    return program.function()


def replayed(program: Program) -> Callable[..., Any]:
    return lambda *arrays: traced_and_run(program.function(), *arrays)


def compiled(program: Program) -> Callable[..., Any]:
    return gt.jit(program.function())


def gradient_of_compiled(program: Program) -> Callable[..., Any]:
    return gradient_of(program, gt.jit)


def compiled_gradient_of_compiled(program: Program) -> Callable[..., Any]:
    return gt.jit(gradient_of(program, gt.jit))


class _Look:
    """A mode that lets everything pass."""

    kind = "observing"

    def run(self, op: Any, args: Any, params: Any, proceed: Any) -> Any:
        return proceed(op, args, params)


def watched(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, with a mode that sees every op."""
    return gt.using_mode(_Look())(function)


def watched_gradient(program: Program) -> Callable[..., Any]:
    return watched(gradient_of(program))


def watched_tangents(program: Program) -> Callable[..., Any]:
    return watched(tangents_of(program))


def watched_gradient_of_compiled(program: Program) -> Callable[..., Any]:
    return watched(gradient_of_compiled(program))


def tangents_of(program: Program, make: Callable[..., Any] = lambda f: f) -> Callable[..., Any]:
    """The derivative of the loss along the floating inputs themselves."""
    chosen = floating_inputs(program)
    if not chosen:
        return lambda *arrays: ()
    loss = make(loss_of(program))

    def tangents(*arrays: Any) -> Any:
        def function(*some: Any) -> Any:
            full = list(arrays)
            for k, array in zip(chosen, some, strict=True):
                full[k] = array
            return loss(*full)

        some = tuple(arrays[k] for k in chosen)
        return gt.jvp(function, some, some)

    return tangents


def tangents_of_compiled(program: Program) -> Callable[..., Any]:
    return tangents_of(program, gt.jit)


def batched(program: Program, make: Callable[..., Any] = lambda f: f) -> Callable[..., Any]:
    """The program on three sets of arguments at once."""
    function = gt.vmap(make(program.function()))
    others = [program.arguments(1), program.arguments(2)]

    def run(*arrays: Any) -> Any:
        return function(*(np.stack(column) for column in zip(arrays, *others, strict=True)))

    return run


def batched_compiled(program: Program) -> Callable[..., Any]:
    return batched(program, gt.jit)
