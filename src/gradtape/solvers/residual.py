"""Functions of containers as functions of flat vectors, and whether a solver has found a root."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.reverse import vjp
from gradtape.autodiff.transforms import jvp
from gradtape.errors import ConvergenceError, NotDifferentiableError, ShapeError
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.cast import astype
from gradtape.ops.comparison import greater, isfinite, less
from gradtape.ops.select import maximum, minimum, where
from gradtape.solvers.krylov import length
from gradtape.solvers.problem import Unknowns, like_first_guess
from gradtape.solvers.require import Failure, epsilon, require
from gradtape.solvers.vectors import Vectors


class FlatFunction:
    """A function of what is solved for, as a function of vectors.

    Attributes:
        start: The first guess.
    """

    def __init__(self, name: str, f: Callable[[Any], Any], x0: Any) -> None:
        self._name, self._f, self._unknowns = name, f, Unknowns(name, x0)
        self._vectors = Vectors(self._unknowns.leaves)
        self.start = self._vectors.flat(self._unknowns.leaves)

    def __call__(self, v: Any) -> Any:
        """The value at a vector, as a vector of the same dtype."""
        leaves, _ = containers.flatten(self._f(self.container(v)))
        value = Vectors(leaves).flat(leaves)
        return value if value.dtype == v.dtype else astype(value, v.dtype)

    def container(self, v: Any) -> Any:
        """A vector in the containers of the first guess."""
        return self._unknowns.container(self._vectors.leaves(v))

    def vector(self, x: Any) -> Any:
        """What a solver returned, as a vector.

        Raises:
            ShapeError: It does not have the containers and shapes of the first guess.
            DTypeError: It is complex, and the first guess is not.
        """
        return self._vectors.flat(like_first_guess(self._name, x, self._unknowns))


def check_square(name: str, equations: int, unknowns: int) -> None:
    """Raise unless there are as many equations as unknowns."""
    if equations != unknowns:
        raise ShapeError(
            f"{name}: got {equations} numbers from the function, expected as many equations as "
            f"unknowns, {unknowns}"
        )


# ---- is it a solution? --------------------------------------------------------------------------


# What counts as the size of x where x is 0, as a part of the way from the first guess. With the
# default tolerance that allows errors of 5e-8 there, and SciPy's solvers go to 1.5e-8.
_LEAST = 0.1


def default_tolerance(dtype: Any) -> float:
    """The largest relative residual of a solution: 5e-7 for float64, 2e-3 for float32."""
    return float(epsilon(dtype) ** 0.4)


def at_root(name: str, f: Callable[[Any], Any], x0: Any, x: Any, tol: float | None) -> Any:
    """A solution of f(x) = 0, in the form of the first guess, if it is one.

    Args:
        name: The name in errors.
        f: The function.
        x0: The first guess.
        x: What a solver returned.
        tol: The largest residual, relative to the size of the terms of f; None for the default.
    """
    flat = FlatFunction(name, f, x0)
    return _checked(name, flat, flat, x, tol)


def at_fixed_point(name: str, g: Callable[[Any], Any], x0: Any, x: Any, tol: float | None) -> Any:
    """A solution of x = g(x), in the form of the first guess, if it is one."""
    flat = FlatFunction(name, g, x0)
    return _checked(name, flat, lambda v: flat(v) - v, x, tol)


def _checked(
    name: str, flat: FlatFunction, residual: Callable[[Any], Any], x: Any, tol: float | None
) -> Any:
    v = flat.vector(x)
    tol = default_tolerance(v.dtype) if tol is None else tol
    value, scale = _with_scale(residual, v, sizes(v, flat.start, _LEAST))
    check_square(name, value.shape[0], v.shape[0])
    what = "expected a solution; begin elsewhere, allow more steps, or raise tol"
    failure = Failure(
        ConvergenceError,
        f"{name}: got a residual of {{}}, above {tol:.3g} times its scale, {what}",
        f"{name}: got a residual that is not finite where the solver ended, {what}",
    )
    return flat.container(require([v], length(value), tol * scale, failure)[0])


def sizes(v: Any, start: Any, least: float = 1.0) -> Any:
    """What errors of the elements of a solution are compared with: their absolute values.

    At 0 that says nothing. So it is at least a part of the way from the first guess, or of 1 if
    that is shorter: where one began far away must not make a large error look small.
    """
    return maximum(abs_of(v), least * minimum(abs_of(v - start), 1))


def _with_scale(f: Callable[[Any], Any], v: Any, size: Any) -> tuple[Any, Any]:
    """The value of f, and how large its terms are at v.

    ‖∂f/∂x·x‖ is 2a for x² − a, and ‖b‖ for A·x − b. If the terms of A·x cancel each other, so that
    it says nothing of rounding, they do not with other signs of x.
    """
    signed = astype(_signs(v.shape[0]), v.dtype) * where(less(v, 0), -size, size)
    try:
        (value, one), (_, other) = (jvp(f, (v,), (along,)) for along in (v, signed))
    except NotDifferentiableError:  # it has rules for reverse mode only
        value, pullback = vjp(f, v)
        # At a root there is nothing to compare.
        norm = length(value)
        one = other = size * pullback(value)[0] / where(greater(norm, 0), norm, 1)
    # What is not finite says nothing of the scale; if neither is, nothing but 0 is small.
    one, other = (where(isfinite(norm), norm, 0) for norm in (length(one), length(other)))
    return value, maximum(one, other)


def _signs(count: int) -> Any:
    """Signs without a pattern, the same at each call."""
    return np.where(np.arange(count) ** 2 * 0.6180339887498949 % 1 < 0.5, 1.0, -1.0)
