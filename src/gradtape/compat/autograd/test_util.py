"""Checks of derivatives against differences, in both modes and to any order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from gradtape.compat.autograd.core import make_jvp, make_vjp, vspace
from gradtape.compat.autograd.wrap_util import get_name, unary_to_nary
from gradtape.errors import ArgumentError, GradientCheckError

Function = Callable[..., Any]

TOL = 1e-6
RTOL = 1e-6
EPS = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers are equal, but for rounding."""
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def make_numerical_jvp(f: Function, x: Any) -> Function:
    """The map from tangents of an argument to those of the result, by central differences."""
    y = f(x)
    x_vs, y_vs = vspace(x), vspace(y)

    def jvp(v: Any) -> Any:
        ahead = f(x_vs.add(x, x_vs.scalar_mul(v, EPS / 2)))
        behind = f(x_vs.add(x, x_vs.scalar_mul(v, -EPS / 2)))
        return y_vs.scalar_mul(y_vs.add(ahead, y_vs.scalar_mul(behind, -1.0)), 1.0 / EPS)

    return jvp


def check_vjp(f: Function, x: Any) -> None:
    """Check reverse mode of a function of one argument, along random directions.

    Raises:
        GradientCheckError: It is wrong.
    """
    vjp, y = make_vjp(f, x)
    jvp = make_numerical_jvp(f, x)
    x_vs, y_vs = vspace(x), vspace(y)
    x_v, y_v = x_vs.randn(), y_vs.randn()
    vjp_y = x_vs.covector(vjp(y_vs.covector(y_v)))
    _check_space(vspace(vjp_y), x_vs, "the cotangent of the argument", "the argument")
    exact, numeric = x_vs.inner_prod(x_v, vjp_y), y_vs.inner_prod(y_v, jvp(x_v))
    if not scalar_close(numeric, exact):
        raise GradientCheckError(
            f"Derivative (VJP) check of {get_name(f)} failed with arg {x}:\n"
            f"analytic: {exact}\nnumeric:  {numeric}"
        )


def check_jvp(f: Function, x: Any) -> None:
    """Check forward mode of a function of one argument, along a random direction.

    Raises:
        GradientCheckError: It is wrong.
    """
    jvp, numeric = make_jvp(f, x), make_numerical_jvp(f, x)
    direction = vspace(x).randn()
    check_equivalent(jvp(direction)[1], numeric(direction))


def check_equivalent(x: Any, y: Any) -> None:
    """Check that two values have the same containers, shapes and dtypes, and are close.

    Raises:
        GradientCheckError: They are not.
    """
    x_vs, y_vs = vspace(x), vspace(y)
    _check_space(x_vs, y_vs, "x", "y")
    v = x_vs.randn()
    if not scalar_close(x_vs.inner_prod(x, v), x_vs.inner_prod(y, v)):
        raise GradientCheckError(f"Value mismatch:\nx: {x}\ny: {y}")


def _check_space(one: Any, other: Any, of: str, of_other: str) -> None:
    if one != other:
        raise GradientCheckError(
            f"VSpace mismatch: got {one!r} for {of}, expected {other!r}, that of {of_other}"
        )


@unary_to_nary
def check_grads(f: Function, x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> None:
    """Returns a function that checks the derivatives of `f` at its arguments.

    Args:
        f: The function.
        argnum: The position of the argument to differentiate by, or a tuple of them.
        modes: "fwd", "rev", or both.
        order: The highest order; each mode is applied to the results of each.

    Raises:
        GradientCheckError: A derivative is wrong.

    >>> from gradtape.compat.autograd.test_util import check_grads
    >>> check_grads(np.sin)(1.0)
    """
    if not set(modes) <= {"fwd", "rev"}:
        raise ArgumentError(f"check_grads: got modes={modes!r}, expected some of 'fwd', 'rev'")
    if "fwd" in modes:
        check_jvp(f, x)
        if order > 1:
            _check_next(
                f, "jvp", lambda x, v: make_jvp(f, x)(v)[1], x, vspace(x).randn(), modes, order
            )
    if "rev" in modes:
        check_vjp(f, x)
        if order > 1:
            _check_next(
                f, "vjp", lambda x, v: make_vjp(f, x)[0](v), x, vspace(f(x)).randn(), modes, order
            )


def _check_next(
    f: Function, kind: str, of: Function, x: Any, v: Any, modes: Sequence[str], order: int
) -> None:
    """Check the derivatives of a function that is a product with the Jacobian."""
    of.__name__ = f"{kind}_{get_name(f)}"
    check_grads(of, (0, 1), modes, order=order - 1)(x, v)


def combo_check(fun: Function, *args: Any, **kwargs: Any) -> Function:
    """Returns a function that calls `check_grads` with all combinations of arguments.

    Args:
        fun: The function.
        *args: Arguments of `check_grads`.
        **kwargs: Keyword arguments of `check_grads`.

    Returns:
        A function that takes a sequence of values for each argument of `fun`, and for each keyword.

    >>> from gradtape.compat.autograd.test_util import combo_check
    >>> combo_check(np.sum)([np.ones((2, 3)), np.ones(2)], keepdims=[False, True])
    """
    check = check_grads(fun, *args, **kwargs)

    def check_all(*args: Any, **kwargs: Any) -> None:
        options = [[(name, value) for value in values] for name, values in kwargs.items()]
        for chosen in itertools.product(*args):
            for named in itertools.product(*options):
                check(*chosen, **dict(named))

    return check_all
