"""SciPy's `LinearOperator` whose products take tensors."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradtape.core.lazy import lazy
from gradtape.core.tensor import Tensor
from gradtape.errors import ShapeError
from gradtape.locks import load
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import conj_if_complex
from gradtape.ops.shape import reshape
from gradtape.ops.sparse.arrays import as_sparse, is_sparse


class _Products:
    """Methods of a `LinearOperator` that take tensors; SciPy's make arrays of their arguments."""

    shape: tuple[int, int]
    dtype: Any
    _matvec: Any
    _rmatvec: Any

    @lazy
    def holds_tensors(self) -> bool:
        """Whether products with arrays are tensors, so that calls go to gradtape's functions."""
        return isinstance(self.matvec(np.zeros(self.shape[1])), Tensor)

    def _init_dtype(self) -> None:
        if self.dtype is None:
            zeros = np.zeros(self.shape[-1])
            self.dtype = np.dtype(getattr(self.matvec(zeros), "dtype", float))

    def _checked(self, x: Any, size: int, axes: tuple[int, ...]) -> Any:
        x = x if isinstance(x, Tensor) else np.asanyarray(x)
        fits = len(x.shape) in axes and x.shape[0] == size
        if not fits or (axes == (1, 2) and len(x.shape) == 2 and x.shape[1] != 1):
            kind = "a vector" if axes == (1, 2) else "columns"
            raise ShapeError(
                f"LinearOperator: got shape {tuple(x.shape)} for a map of shape {self.shape}, "
                f"expected {kind} of {size} elements"
            )
        return x

    def matvec(self, x: Any) -> Any:
        """The product with a vector."""
        return self._vector(self._matvec, x, *self.shape[::-1])

    def rmatvec(self, x: Any) -> Any:
        """The product of the adjoint with a vector."""
        return self._vector(self._rmatvec, x, *self.shape)

    def _vector(self, product: Any, x: Any, size: int, rows: int) -> Any:
        x = self._checked(x, size, (1, 2))
        y = product(x)
        if not (isinstance(x, Tensor) or isinstance(y, Tensor)):
            y = np.asmatrix(y) if isinstance(x, np.matrix) else np.asarray(y)
        return reshape(y, (rows,)) if len(x.shape) == 1 else reshape(y, (rows, 1))

    def matmat(self, X: Any) -> Any:
        """The product with a matrix."""
        return self._columns(self._matmat, X, self.shape[1])

    def rmatmat(self, X: Any) -> Any:
        """The product of the adjoint with a matrix."""
        return self._columns(self._rmatmat, X, self.shape[0])

    def _columns(self, product: Any, x: Any, size: int) -> Any:
        if not isinstance(x, Tensor) and is_sparse(x):
            x = as_sparse(x).toarray()
        return product(self._checked(x, size, (2,)))

    def _matmat(self, X: Any) -> Any:
        return np.stack([self.matvec(X[:, k]) for k in range(X.shape[1])], axis=-1)

    def _rmatmat(self, X: Any) -> Any:
        return np.stack([self.rmatvec(X[:, k]) for k in range(X.shape[1])], axis=-1)

    def dot(self, x: Any) -> Any:
        """The product with a vector, a matrix, a number or another map."""
        if not isinstance(x, Tensor):
            is_array = isinstance(x, np.ndarray | list)
            if not is_array or np.ndim(x) not in (1, 2):
                return super().dot(x)  # type: ignore[misc]
            x = np.asarray(x)
        if len(x.shape) == 1 or (len(x.shape) == 2 and x.shape[1] == 1):
            return self.matvec(x)
        return self.matmat(x)

    def _adjoint(self) -> Any:
        return linear_operator_class()(
            self.shape[::-1], self.rmatvec, self.matvec, self.rmatmat, self.dtype, self.matmat
        )

    def _transpose(self) -> Any:
        def conjugated(product: Any) -> Any:
            return lambda v: conj_if_complex(product(conj_if_complex(v)))

        products = (self.rmatvec, self.matvec, self.rmatmat, self.matmat)
        first, second, third, fourth = map(conjugated, products)
        return linear_operator_class()(self.shape[::-1], first, second, third, self.dtype, fourth)


@functools.cache
def linear_operator_class() -> Any:
    """The class `LinearOperator`, derived from SciPy's; made once, as SciPy is loaded then."""
    linalg = load("scipy.sparse.linalg")

    class LinearOperator(_Products, linalg.LinearOperator):  # type: ignore[misc, name-defined]
        """A linear map known by its products, `LinearOperator(shape, matvec, rmatvec)`.

        Arguments and methods are SciPy's. Products with a tensor, or with functions that use one,
        are tensors; iterative solvers differentiate through them.

        >>> double = gt.scipy.sparse.linalg.LinearOperator((2, 2), lambda v: 2.0 * v)
        >>> gt.grad(lambda x: np.sum((double @ x) ** 2))(np.array([1.0, 3.0]))
        array([ 8., 24.])
        """

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return object.__new__(_CustomLinearOperator if cls is LinearOperator else cls)

    base = type(linalg.LinearOperator((1, 1), matvec=np.asarray, dtype=float))

    class _CustomLinearOperator(LinearOperator, base):  # type: ignore[misc, valid-type]
        """A map given by functions, which SciPy's constructor keeps under these names."""

        def _matmat(self, X: Any) -> Any:
            given = self._CustomLinearOperator__matmat_impl
            return super()._matmat(X) if given is None else given(X)

        def _rmatmat(self, X: Any) -> Any:
            given = self._CustomLinearOperator__rmatmat_impl
            return super()._rmatmat(X) if given is None else given(X)

    LinearOperator.__module__ = "gradtape.scipy.sparse.linalg"
    LinearOperator.__qualname__ = "LinearOperator"
    return LinearOperator


def aslinearoperator(A: Any) -> Any:
    """A matrix as a `LinearOperator` whose products take tensors.

    Args:
        A: A matrix, sparse or dense, whose numbers may be a tensor; or a `LinearOperator`, which is
            returned as it is.

    >>> map = gt.scipy.sparse.linalg.aslinearoperator(gt.tensor([[1.0, 2.0]]))
    >>> map @ np.ones(2)
    tensor([3.])
    """
    made = linear_operator_class()
    if hasattr(A, "matvec"):
        return A
    matrix = A if is_sparse(A) else as_array(A)
    turned = conj_if_complex(matrix).mT if isinstance(matrix, Tensor) else matrix.conj().T

    def product(v: Any) -> Any:
        return matrix @ v

    def back(v: Any) -> Any:
        return turned @ v

    found = made(matrix.shape, product, back, product, np.dtype(matrix.dtype), back)
    found.A = A
    return found
