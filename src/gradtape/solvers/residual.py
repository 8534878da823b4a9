"""Functions of containers as functions of flat vectors, and whether a solver has found a root."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape import tree
from gradtape.autodiff.transforms import jvp
from gradtape.errors import ConvergenceError, NotDifferentiableError, ShapeError
from gradtape.ops.cast import astype
from gradtape.ops.comparison import isfinite
from gradtape.ops.select import maximum, where
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
        leaves, _ = tree.flatten(self._f(self.container(v)))
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


def default_tolerance(dtype: Any) -> float:
    """The largest relative residual of a solution: 5e-7 for float64, 2e-3 for float32."""
    return float(epsilon(dtype) ** 0.4)


def at_root(name: str, f: Callable[[Any], Any], x0: Any, x: Any, tol: float | None) -> Any:
    """A solution of f(x) = 0, in the form of the first guess, if it is one.

    The residual is compared with what the terms of f are worth: ‖∂f/∂x·x‖ is 2a for x² − a, and
    ‖b‖ for A·x − b. At x = 0 that says nothing, hence also with the residual of the first guess.

    Args:
        name: The name in errors.
        f: The function.
        x0: The first guess.
        x: What a solver returned.
        tol: The largest residual, relative to that; None for the default.
    """
    flat = FlatFunction(name, f, x0)
    v = flat.vector(x)
    first = flat(flat.start)
    check_square(name, first.shape[0], v.shape[0])
    try:
        value, terms = jvp(flat, (v,), (v,))
    except NotDifferentiableError:  # it has rules for reverse mode only
        value = terms = flat(v)
        terms = 0 * terms
    return flat.container(small(name, v, value, (terms, first), tol))


def small(name: str, v: Any, residual: Any, terms: tuple[Any, Any], tol: float | None) -> Any:
    """A vector, if its residual is small compared to the longer of two others."""
    # What is not finite says nothing of the scale; if neither is, nothing but 0 is small.
    one, other = (where(isfinite(size), size, 0) for size in map(length, terms))
    scale = maximum(one, other)
    tol = default_tolerance(v.dtype) if tol is None else tol
    what = "expected a solution; begin elsewhere, allow more steps, or raise tol"
    failure = Failure(
        ConvergenceError,
        f"{name}: got a residual of {{}}, above {tol:.3g} times its scale, {what}",
        f"{name}: got a residual that is not finite where the solver ended, {what}",
    )
    return require([v], length(residual), tol * scale, failure)[0]
