"""Functions that SciPy calls again and again: compiled once there have been many calls."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.compiler.jit import jit
from gradtape.core.lines import warn_user
from gradtape.errors import (
    ConversionError,
    DifferencesWarning,
    GradtapeError,
    GradtapeWarning,
    NotDifferentiableError,
    UnsupportedError,
)
from gradtape.solvers.solver_run import CapturedError, belongs_to_a_level

# Compiling takes about as long as this many calls of a small function.
_MANY = 100
# How much eager and compiled results may differ, by rounding in another order, relative to the
# largest of all: a gradient vanishes at a minimum.
_CLOSE = 1e-6
# What functions raise that were written for NumPy's arrays alone, with `float(x)` or `np.array`.
_NO_DERIVATIVE = (ConversionError, UnsupportedError, NotDifferentiableError)


class Evaluator:
    """A function of plain arrays that is compiled after a number of calls, if it can be traced.

    A compiled function no longer sees what else changes from call to call, so that it is compared
    with the function itself, when it is made and at the end.

    Args:
        name: The name in errors.
        function: The function; it returns arrays, or containers of them.
        compiles: Whether it may be compiled.
    """

    def __init__(self, name: str, function: Callable[..., Any], *, compiles: bool = True) -> None:
        self._name, self._function = name, function
        self._compiled: Callable[..., Any] | None = None
        self._last: tuple[Any, ...] = ()
        # The number of calls; None if it is not to be compiled.
        self._count: int | None = 0 if compiles else None

    def __call__(self, *args: Any) -> Any:
        """The value for some arguments."""
        if self._compiled is not None:
            self._last = args
            return self._compiled(*args)
        out = self._function(*args)
        if any(map(belongs_to_a_level, containers.flatten(out)[0])):
            raise CapturedError(
                f"{self._name}: the function uses a recorded tensor that is not an argument, whose "
                "gradient would be lost; pass it in args=, or detach() it"
            )
        if self._count is not None:
            self._count += 1
            if self._count == _MANY:
                self._compile(args, out)
        return out

    def _compile(self, args: tuple[Any, ...], out: Any) -> None:
        compiled = jit(self._function)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", GradtapeWarning)  # of numbers that it would freeze
                if _same(compiled(*args), out):
                    self._compiled, self._last = compiled, args
        except (GradtapeError, GradtapeWarning):
            self._count = None  # it looks at values: it stays as it is, which is only slower

    def holds(self) -> bool:
        """Whether it is still the function that it was when it was compiled."""
        if self._compiled is None:
            return True
        return _same(self._compiled(*self._last), self._function(*self._last))


Make = Callable[[Callable[..., Any]], Evaluator]


def evaluated(name: str, solve: Callable[[Make | None], Any], way: str | None = None) -> Any:
    """Run a solver whose functions may be compiled; again, if they should not have been.

    Args:
        name: The name in errors.
        solve: Runs it, given the function that makes an evaluator of a function; or given None,
            with SciPy's differences.
        way: The option that leaves derivatives to SciPy. That is done, with a warning, if gradtape
            cannot compute them. None if something is differentiated: that takes derivatives.
    """
    made: list[Evaluator] = []

    def compiling(function: Callable[..., Any]) -> Evaluator:
        made.append(Evaluator(name, function))
        return made[-1]

    try:
        out = solve(compiling)
        if all(evaluator.holds() for evaluator in made):
            return out
        return solve(lambda function: Evaluator(name, function, compiles=False))
    except _NO_DERIVATIVE as error:
        if way is None:
            raise
        out = solve(None)
        text = f"{name}: SciPy takes differences, as gradtape has no derivative; {way} ({error})"
        warn_user(text, DifferencesWarning)
        return out


def _same(one: Any, other: Any) -> bool:
    ours, theirs = (
        np.concatenate([np.ravel(x) for x in containers.flatten(t)[0]]) for t in (one, other)
    )
    largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)
    return np.allclose(ours, theirs, rtol=0.0, atol=_CLOSE * largest, equal_nan=True)
