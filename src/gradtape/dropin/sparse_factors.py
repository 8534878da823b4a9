"""Factored sparse matrices whose solutions take tensors, of SciPy's matrices and of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError
from gradtape.ops.sparse.arrays import SparseArray
from gradtape.ops.sparse.factors import SparseFactors, factors_of_arrays, factors_of_tensors


def splu(
    A: Any,
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: dict[str, Any] | None = None,
) -> SparseFactors:
    """Factor a square sparse matrix, to solve equations with it several times.

    Args:
        A: The matrix, whose numbers may be a tensor.
        permc_spec: In which order columns are eliminated.
        diag_pivot_thresh: A setting of SuperLU, as in SciPy.
        relax: A setting of SuperLU.
        panel_size: A setting of SuperLU.
        options: Further settings of SuperLU by name.

    Returns:
        An object with a method `solve(rhs, trans="N")`, which takes tensors.

    Raises:
        ShapeError: The matrix is not square.
        LinAlgError: It is singular: for numbers that are not known yet, when equations are solved.
        ArgumentError: The matrix is not sparse.

    >>> factors = gt.scipy.sparse.linalg.splu(gt.scipy.sparse.csc_array(np.diag([2.0, 4.0])))
    >>> factors.solve(gt.tensor([2.0, 2.0]))
    tensor([1. , 0.5])
    """
    if isinstance(A, Tensor):
        raise ArgumentError(
            "splu: got a dense matrix, expected a sparse one; use gt.linalg.lu_factor"
        )
    settings = {
        "permc_spec": permc_spec,
        "diag_pivot_thresh": diag_pivot_thresh,
        "relax": relax,
        "panel_size": panel_size,
        "options": options,
    }
    if isinstance(A, SparseArray):
        return factors_of_tensors(A, settings)
    return factors_of_arrays(A, settings)


def factorized(A: Any) -> Callable[[Any], Any]:
    """A function that solves equations with a sparse matrix, which is factored once.

    Args:
        A: The matrix, whose numbers may be a tensor.

    Returns:
        The function `solve(rhs)`, which takes tensors.

    Raises:
        ShapeError: The matrix is not square.
        LinAlgError: It is singular.

    >>> solve = gt.scipy.sparse.linalg.factorized(gt.scipy.sparse.csc_array(np.diag([2.0, 4.0])))
    >>> solve(gt.tensor([2.0, 2.0]))
    tensor([1. , 0.5])
    """
    return splu(A).solve
