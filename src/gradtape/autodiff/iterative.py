"""cg, bicgstab, gmres: equations given by a matrix, or by a function that multiplies by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.lazy import Deferred
from gradtape.errors import LinAlgError, UnsupportedError
from gradtape.ops.arguments import as_integer
from gradtape.ops.cast import stop_gradient
from gradtape.ops.checks import check_axes, check_least
from gradtape.ops.family import member
from gradtape.ops.linalg.common import square
from gradtape.ops.linalg.iterative import Options, iterated
from gradtape.ops.norm import inexact
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike

# For a function in place of a matrix; few programs have one.
_by_products = Deferred("gradtape.solvers.products:by_products")


def _solve(
    method: str, a: Any, b: ArrayLike, x0: Any, m: Any, args: Sequence[Any], options: dict[str, Any]
) -> tuple[Array, Any]:
    b = inexact(b)
    check_axes(method, b, 1, what="b")
    if options["maxiter"] is not None:
        check_least(method, 1, maxiter=as_integer(options["maxiter"], method, "maxiter"))
    size = b.shape[0]
    chosen: Options = tuple(options.items())
    if callable(a) and not hasattr(a, "shape"):
        help = m if m is None or callable(m) else lambda v: stop_gradient(m) @ v
        x, info = _by_products(method, a, b, x0, help, args, chosen)
        return x, info
    a = square(method, inexact(a))
    if a.shape != (size, size):
        raise LinAlgError(
            f"{method}: got a matrix of shape {a.shape} and b of shape {b.shape}, expected one "
            f"matrix of {size} rows and columns"
        )
    if callable(m) and not hasattr(m, "shape"):
        raise UnsupportedError(f"{method}: got a function as M, expected a matrix")
    start = 0 * stop_gradient(b) if x0 is None else stop_gradient(inexact(x0))
    help = np.empty((0, 0)) if m is None else stop_gradient(inexact(m))
    x, info = iterated(
        a, reshape(b, (size, 1)), reshape(start, (size, 1)), help,
        method=method, options=chosen, strict=False,
    )  # fmt: skip
    return reshape(x, (size,)), info


def _gradients(
    name: str,
    /,
    A: Any,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    args: Sequence[Any] = (),
) -> tuple[Array, Any]:
    """Solve `A @ x = b` {how}.

    Derivatives are those of the exact solution, found by solving with the same tolerance; the steps
    are not recorded. Choose `rtol` as small as the accuracy you need of derivatives.

    Args:
        A: The matrix; or a function `A(v, *args)` that multiplies a vector by it.
        b: The right hand side, a vector.
        x0: Where to begin; zeros if None.
        rtol: It ends when the residual is smaller than this times the norm of `b`,
        atol: or smaller than this.
        maxiter: How many steps at most.
        M: An approximate inverse of `A` that speeds it up, a matrix, or a function if `A` is one.
        args: Further arguments of a function `A`; the solution is differentiated with respect to
            them.

    Returns:
        The solution, and 0, or the number of steps if it did not converge.

    Raises:
        LinAlgError: `A` is not a square matrix of the right size, or equations for a derivative did
            not converge.
        ShapeError: `b` is not a vector.
        UnsupportedError: `M` is a function and `A` is not.

    cg:
    >>> x, info = gt.linalg.cg(lambda v, scale: scale * v, np.array([2.0, 4.0]), args=(2.0,))
    >>> x, info
    (array([1., 2.]), 0)

    bicgstab:
    >>> gt.linalg.bicgstab(np.array([[2.0, 1.0], [0.0, 4.0]]), np.array([4.0, 4.0]))[0].round(6)
    array([1.5, 1. ])
    """
    options = {"rtol": rtol, "atol": atol, "maxiter": maxiter}
    return _solve(name, A, b, x0, M, args, options)


_HERMITIAN = "for a positive definite Hermitian matrix by conjugate gradients"
cg = member("cg", _gradients, how=_HERMITIAN)
bicgstab = member("bicgstab", _gradients, how="by the stabilised method of biconjugate gradients")


def gmres(
    A: Any,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    args: Sequence[Any] = (),
) -> tuple[Array, Any]:
    """Solve `A @ x = b` by the method of generalised minimal residuals.

    Arguments, results and derivatives are those of `cg`, but for any square matrix.

    Args:
        A: The matrix, or a function `A(v, *args)`.
        b: The right hand side, a vector.
        x0: Where to begin; zeros if None.
        rtol: It ends when the residual is smaller than this times the norm of `b`,
        atol: or smaller than this.
        restart: After how many steps it begins again from where it is.
        maxiter: How many times at most.
        M: An approximate inverse of `A`.
        args: Further arguments of a function `A`.

    >>> gt.linalg.gmres(np.array([[2.0, 1.0], [0.0, 4.0]]), np.array([4.0, 4.0]))[0].round(6)
    array([1.5, 1. ])
    """
    options = {"rtol": rtol, "atol": atol, "restart": restart, "maxiter": maxiter}
    return _solve("gmres", A, b, x0, M, args, options)
