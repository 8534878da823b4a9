"""Sparse matrices that are factored once: splu, factorized; and the inverse of one."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, UnsupportedError
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_choice
from gradtape.ops.linalg.columns import in_columns
from gradtape.ops.linalg.common import check_fit
from gradtape.ops.nn.known import known_values
from gradtape.ops.sparse.arrays import SparseArray, applied, as_sparse, from_scipy, is_sparse
from gradtape.ops.sparse.making import csc_array
from gradtape.ops.sparse.solve import factors_of, keep_factors, solution


class SparseFactors:
    """A factored sparse matrix, as `splu` returns it.

    Its `solve` takes tensors, and is differentiable in the numbers of the matrix as in the right
    hand side. Without tensors it is that of SciPy's `SuperLU`, of which it has all attributes.

    Attributes:
        shape: The numbers of rows and columns.

    >>> factors = gt.scipy.sparse.linalg.splu(gt.scipy.sparse.csc_array(np.diag([2.0, 4.0])))
    >>> gt.grad(lambda b: np.sum(factors.solve(b)))(np.ones(2))
    array([0.5 , 0.25])
    """

    def __init__(self, matrix: SparseArray, superlu: Any) -> None:
        """Take a matrix, and SciPy's factors of it unless its numbers are a tensor."""
        self._matrix, self._superlu = matrix, superlu
        self.shape = matrix.shape

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """Solve equations with the matrix.

        Args:
            rhs: The right hand side: a vector, or a matrix of columns.
            trans: "N" for the matrix, "T" for its transpose, "H" for its conjugate transpose.

        Raises:
            ShapeError: `rhs` does not fit.
        """
        if self._superlu is not None and not isinstance(rhs, Tensor):
            return self._superlu.solve(rhs, trans)
        check_choice("solve", ("N", "T", "H"), trans=trans)
        s = self._matrix if trans == "N" else self._matrix.T
        s = s.conj() if trans == "H" else s
        return in_columns("solve", functools.partial(applied, solution, s), s, as_array(rhs))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._superlu is None:
            raise UnsupportedError(
                f"splu: got the attribute {name!r} of a factored matrix of tensors, which has no "
                "derivative; factor s.toscipy(), or use gt.linalg.lu of toarray()"
            )
        return getattr(self._superlu, name)

    def __repr__(self) -> str:
        return f"<sparse factors of a matrix of shape {self.shape}>"


def factors_of_tensors(s: SparseArray, settings: dict[str, Any]) -> SparseFactors:
    """The factors of a matrix of ours, which may have to wait until its numbers are known."""
    s = s.in_order()
    check_fit("splu", s.shape[0] == s.shape[1], "a square matrix", s)
    known = known_values(s.data)
    if known is not None and known.ndim == 1:
        factors = factors_of(s.with_data(known).toscipy(), **settings)
        keep_factors(known, factors, s.transposed)
    return SparseFactors(s, None)


def factors_of_arrays(matrix: Any, settings: dict[str, Any]) -> SparseFactors:
    """SciPy's factors of its own matrix, for tensors on the right hand side, too."""
    import scipy.sparse.linalg

    factors = scipy.sparse.linalg.splu(matrix, **settings)
    # SuperLU has its own copy of the matrix, and this is another one, which nobody writes to.
    s = from_scipy(scipy.sparse.csc_array(matrix, copy=True))
    s = s.with_data(s.data.astype(np.result_type(s.data, np.float32), copy=False))
    keep_factors(s.data, factors, s.transposed)
    return SparseFactors(s, factors)


def inv(A: Any) -> SparseArray:
    """The inverse of a square sparse matrix, as a sparse matrix that has all places.

    Args:
        A: The matrix.

    Raises:
        ShapeError: The matrix is not square.
        LinAlgError: It is singular.
        ArgumentError: The matrix is not sparse.

    >>> s = gt.scipy.sparse.csc_array(gt.tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> gt.scipy.sparse.linalg.inv(s).toarray()
    tensor([[0.5 , 0.  ],
            [0.  , 0.25]])
    """
    if not is_sparse(A):
        raise ArgumentError("inv: got a dense matrix, expected a sparse one; use gt.linalg.inv")
    s = as_sparse(A)
    check_fit("inv", s.shape[0] == s.shape[1], "a square matrix", s)
    identity = np.eye(s.shape[0], dtype=s.dtype if s.dtype.kind in "fc" else float)
    return csc_array(applied(solution, s, identity))
