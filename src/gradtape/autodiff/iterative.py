"""cg, bicgstab, gmres: equations given by a matrix, or by a function that multiplies by it.

A function takes everything it depends on as arguments, so that the solution can be differentiated
with respect to them: x = A(θ)⁻¹b, dx = A⁻¹(db − dA·x), and the cotangents are found by solving with
the adjoint map, which is the pullback of the function.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.custom import CustomFunction
from gradtape.autodiff.reverse import vjp
from gradtape.autodiff.transforms import jvp
from gradtape.core.nested import unshell
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import ConversionError, GradtapeError, LinAlgError, UnsupportedError
from gradtape.ops.arguments import as_integer
from gradtape.ops.cast import stop_gradient
from gradtape.ops.checks import check_axes, check_least
from gradtape.ops.family import member
from gradtape.ops.linalg.common import square
from gradtape.ops.linalg.iterative import Options, converged, iterate, iterated, operator
from gradtape.ops.linalg.stacks import computed_in
from gradtape.ops.norm import inexact
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike

Matvec = Callable[..., Any]


@dataclasses.dataclass
class _Equations:
    """Equations whose matrix is known by its products: `matvec(v, *args)`."""

    method: str
    matvec: Matvec
    help: Matvec | None
    options: Options
    adjoint: bool = False
    info: int = 0

    def solution(self, b: Any, x0: Any, args: Sequence[Any], strict: bool = True) -> Any:
        """The solution, differentiable with respect to `b` and the arguments."""

        def run(b: Any, *args: Any) -> Any:
            x, self.info = self._iterate(b, x0, args)
            if strict:
                missed = b - _known(self.method, products(x)(*args))
                converged(self.method, self.info, missed, b)
            return x

        def products(x: Any) -> Matvec:
            return lambda *args: self._product(self.matvec, x, args)

        def pull(ct: Any, x: Any, _b: Any, *args: Any) -> Any:
            back = dataclasses.replace(self, adjoint=not self.adjoint).solution(ct, None, args)
            if not args:
                return (back,)
            _, pullback = vjp(products(x), *args)
            return back, *(-part for part in pullback(back))

        def push(tangents: Any, x: Any, _b: Any, *args: Any) -> Any:
            change, *moved = tangents
            if args:
                change = change - jvp(products(x), args, tuple(moved))[1]
            return dataclasses.replace(self).solution(change, None, args)

        run.__name__ = self.method
        return CustomFunction(run, pull, push)(b, *args)

    def _product(self, matvec: Matvec, v: Any, args: Sequence[Any]) -> Any:
        # Conjugate gradients are for maps that are their own adjoint.
        turns = self.adjoint and self.method != "cg"
        return _turned(matvec, v, args) if turns else matvec(v, *args)

    def _iterate(self, b: Any, x0: Any, args: Sequence[Any]) -> tuple[Any, int]:
        b = _known(self.method, b)
        known = [_known(self.method, arg) for arg in args]
        size, dtype = len(b), computed_in(b.dtype, b.dtype)

        def product(v: Any) -> Any:
            return _unrecorded(self.method, self._product(self.matvec, v.reshape(size), known))

        def helped(v: Any) -> Any:
            assert self.help is not None
            return _known(self.method, self._product(self.help, v.reshape(size), ()))

        help = None if self.help is None else operator(size, dtype, helped)
        return iterate(self.method, operator(size, dtype, product), b, x0, help, self.options)


def _turned(matvec: Matvec, v: Any, args: Sequence[Any]) -> Any:
    """The product of a vector with the adjoint of a linear map."""
    _, pullback = vjp(lambda u: matvec(u, *args), 0 * v)
    return pullback(v)[0]


def _known(name: str, x: Any) -> Any:
    """The array of a value that is not batched or traced."""
    try:
        return innermost(x) if isinstance(x, Tensor) else np.asarray(x)
    except ConversionError as error:
        raise UnsupportedError(
            f"{name}: a function in place of a matrix cannot be batched by vmap or compiled by "
            "jit; give the matrix, or loop over the batch"
        ) from error


def _unrecorded(name: str, product: Any) -> Any:
    """The array of a product of arrays, which is recorded only if something else went in."""
    array = _known(name, product)
    below = unshell(product) if isinstance(product, Tensor) else product
    if isinstance(below, Tensor) and below.record is not None:
        raise GradtapeError(
            f"{name}: the function uses a recorded tensor that is not an argument, whose gradient "
            "would be lost; pass it in args=, or detach() it"
        )
    return array


# ---- public functions ---------------------------------------------------------------------------


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
        start = None if x0 is None else _known(method, stop_gradient(x0))
        help = m if m is None or callable(m) else lambda v: stop_gradient(m) @ v
        equations = _Equations(method, a, help, chosen)
        x = equations.solution(b, start, tuple(args), strict=False)
        return x, equations.info
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
        A: The matrix; or a function `A(v, *args)` that multiplies a vector by it, and depends on
            no recorded values other than its arguments.
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
        UnsupportedError: A function is batched or compiled, or `M` is one and `A` is not.

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
