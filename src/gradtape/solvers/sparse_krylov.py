"""The iterative solvers of `scipy.sparse.linalg`, for tensors and matrices of all kinds.

Derivatives are those of the exact solution, found by solving with the same tolerance; the steps are
not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gradtape.errors import LinAlgError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import stop_gradient
from gradtape.ops.family import member
from gradtape.ops.matmul import matmul
from gradtape.ops.norm import inexact
from gradtape.ops.shape import reshape
from gradtape.ops.shared_options import options
from gradtape.ops.sparse.arrays import as_sparse, is_sparse
from gradtape.solvers.products import by_products
from gradtape.typing import Array, ArrayLike

Matvec = Callable[..., Any]


class _Products(NamedTuple):
    """How to multiply by a matrix.

    Attributes:
        forward: `forward(v, *operands)`.
        operands: What it depends on.
        adjoint: `adjoint(v, *operands)`, or None to find it by reverse mode.
    """

    forward: Matvec
    operands: Sequence[Any]
    adjoint: Matvec | None


def _products(name: str, a: Any, size: int) -> _Products:
    """Products with a matrix that is dense, sparse, or a `LinearOperator`."""
    shape = a.shape if hasattr(a, "shape") else as_array(a).shape
    if tuple(shape) != (size, size):
        raise LinAlgError(
            f"{name}: got a matrix of shape {tuple(shape)} and a right hand side of {size} "
            "elements, expected as many rows and columns"
        )
    if is_sparse(a):
        s = as_sparse(a)
        return _Products(
            lambda v, data: s.with_data(data) @ v,
            [s.data],
            lambda v, data: s.with_data(data).conj().T @ v,
        )
    if hasattr(a, "_matvec"):  # SciPy's `matvec` would convert vectors to arrays

        def rmatvec(v: Any) -> Any:
            return reshape(a._rmatvec(v), (size,))

        return _Products(
            lambda v: reshape(a._matvec(v), (size,)), [], rmatvec if _has_adjoint(a) else None
        )
    return _Products(lambda v, matrix: matmul(matrix, v), [inexact(a)], None)


def _has_adjoint(operator: Any) -> bool:
    """Whether a `LinearOperator` was given products with its adjoint."""
    # SciPy keeps the function of a `LinearOperator(shape, matvec, rmatvec)` under this name.
    given = getattr(operator, "_CustomLinearOperator__rmatvec_impl", operator)
    return given is not None and getattr(type(operator), "_rmatvec", None) is not None


def _solved(
    name: str, A: Any, b: ArrayLike, x0: Any, M: Any, settings: dict[str, Any]
) -> tuple[Array, Any]:
    b = inexact(as_array(b))
    if len(b.shape) not in (1, 2) or b.shape[1:] not in ((), (1,)):
        raise ShapeError(f"{name}: got b of shape {b.shape}, expected a vector or one column")
    size = b.shape[0]
    b = reshape(b, (size,))
    start = None if x0 is None else reshape(inexact(as_array(x0)), (size,))
    matrix = _products(name, A, size)
    help: Matvec | None = None
    turned: Matvec | None = None
    if M is not None:
        given = _products(name, M, size)
        fixed = [stop_gradient(x) for x in given.operands]

        def forward(v: Any) -> Any:
            return given.forward(v, *fixed)

        def adjoint(v: Any) -> Any:
            assert given.adjoint is not None
            return given.adjoint(v, *fixed)

        help, turned = forward, None if given.adjoint is None else adjoint
    return by_products(
        name, matrix.forward, b, start, help, matrix.operands, tuple(settings.items()), turned
    )


# What the arguments mean that all of these functions take.
_SHARED = {
    "A": "The matrix: sparse, dense, or a `LinearOperator`.",
    "b": "The right hand side, a vector.",
    "x0": "Where to begin; zeros if None.",
    "rtol": "It ends when the residual is smaller than this times the norm of `b`,",
    "atol": "or smaller than this.",
    "maxiter": "How many times it begins again, at most.",
    "M": "An approximate inverse of `A` that speeds it up, of any of these kinds.",
}


def _method(
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
) -> tuple[Array, Any]:
    """Solve `A @ x = b` {how}.

    Derivatives are those of the exact solution, found by solving with the same tolerance; the steps
    are not recorded. Choose `rtol` as small as the accuracy you need of derivatives.

    Args:
        A: The matrix: sparse, dense, or a `LinearOperator`.
        b: The right hand side, a vector.
        x0: Where to begin; zeros if None.
        rtol: It ends when the residual is smaller than this times the norm of `b`,
        atol: or smaller than this.
        maxiter: How many steps at most.
        M: An approximate inverse of `A` that speeds it up, of any of these kinds.

    Returns:
        The solution, and 0, or the number of steps if it did not converge.

    Raises:
        LinAlgError: `A` is not a square matrix of the right size, or equations for a derivative did
            not converge.
        ShapeError: `b` is not a vector.

    cg:
    >>> s = gt.scipy.sparse.csr_array(gt.tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> gt.scipy.sparse.linalg.cg(s, np.array([2.0, 2.0]))
    (tensor([1. , 0.5]), 0)
    """
    return _solved(name, A, b, x0, M, {"rtol": rtol, "atol": atol, "maxiter": maxiter})


cg = member("cg", _method, how="for a positive definite Hermitian matrix by conjugate gradients")
bicg = member("bicg", _method, how="by the method of biconjugate gradients")
bicgstab = member("bicgstab", _method, how="by the stabilised method of biconjugate gradients")
cgs = member("cgs", _method, how="by the squared method of conjugate gradients")
tfqmr = member("tfqmr", _method, how="by the transpose-free method of quasi-minimal residuals")


@options(_SHARED)
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
) -> tuple[Array, Any]:
    """Solve `A @ x = b` by the method of generalised minimal residuals.

    Arguments, results and derivatives are those of `cg`, but for any square matrix.

    Args:
        restart: After how many steps it begins again from where it is.

    >>> s = gt.scipy.sparse.csr_array(gt.tensor([[2.0, 1.0], [0.0, 4.0]]))
    >>> gt.scipy.sparse.linalg.gmres(s, np.array([4.0, 4.0]))[0].numpy().round(6)
    array([1.5, 1. ])
    """
    settings = {"rtol": rtol, "atol": atol, "restart": restart, "maxiter": maxiter}
    return _solved("gmres", A, b, x0, M, settings)


@options(_SHARED)
def lgmres(
    A: Any,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int = 1000,
    M: Any = None,
    inner_m: int = 30,
    outer_k: int = 3,
) -> tuple[Array, Any]:
    """Solve `A @ x = b` by the LGMRES method.

    Arguments, results and derivatives are those of `cg`, but for any square matrix.

    Args:
        inner_m: After how many steps it begins again.
        outer_k: How many vectors it carries over.

    >>> s = gt.scipy.sparse.csr_array(gt.tensor([[2.0, 1.0], [0.0, 4.0]]))
    >>> gt.scipy.sparse.linalg.lgmres(s, np.array([4.0, 4.0]))[0].numpy().round(6)
    array([1.5, 1. ])
    """
    settings = {"rtol": rtol, "atol": atol, "maxiter": maxiter}
    settings |= {"inner_m": inner_m, "outer_k": outer_k}
    return _solved("lgmres", A, b, x0, M, settings)


@options(_SHARED)
def gcrotmk(
    A: Any,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int = 1000,
    M: Any = None,
    m: int = 20,
    k: int | None = None,
) -> tuple[Array, Any]:
    """Solve `A @ x = b` by the GCROT(m, k) method.

    Arguments, results and derivatives are those of `cg`, but for any square matrix.

    Args:
        m: After how many steps it begins again.
        k: How many vectors it carries over.

    >>> s = gt.scipy.sparse.csr_array(gt.tensor([[2.0, 1.0], [0.0, 4.0]]))
    >>> gt.scipy.sparse.linalg.gcrotmk(s, np.array([4.0, 4.0]))[0].numpy().round(6)
    array([1.5, 1. ])
    """
    settings = {"rtol": rtol, "atol": atol, "maxiter": maxiter, "m": m, "k": k}
    return _solved("gcrotmk", A, b, x0, M, settings)


@options(_SHARED)
def minres(
    A: Any,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    rtol: float = 1e-5,
    shift: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Array, Any]:
    """Solve `(A - shift·I) @ x = b` for a symmetric matrix by the method of minimal residuals.

    Results and derivatives are those of `cg`, but the matrix may be indefinite.

    Args:
        rtol: It ends when the residual is small compared with the norms of matrix and solution.
        shift: The number to subtract from the diagonal.
        maxiter: How many steps at most.
        M: A positive definite approximate inverse of `A`.

    >>> s = gt.scipy.sparse.csr_array(gt.tensor([[2.0, 0.0], [0.0, -4.0]]))
    >>> gt.scipy.sparse.linalg.minres(s, np.array([2.0, 2.0]))[0].numpy().round(6)
    array([ 1. , -0.5])
    """
    if shift:
        matrix = _products("minres", A, as_array(b).shape[0])
        A = _Shifted(matrix, shift, as_array(b).shape[0])
    return _solved("minres", A, b, x0, M, {"rtol": rtol, "maxiter": maxiter})


class _Shifted:
    """Products with A − shift·I, as `_products` takes an operator."""

    def __init__(self, matrix: _Products, shift: float, size: int) -> None:
        self._matrix, self._shift, self.shape = matrix, shift, (size, size)

    def _matvec(self, v: Any) -> Any:
        return self._matrix.forward(v, *self._matrix.operands) - self._shift * v
