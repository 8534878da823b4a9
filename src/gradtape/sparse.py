"""Sparse matrices, under the names of `scipy.sparse`: products and equations with dense arrays."""

from gradtape.ops.sparse.arrays import (
    SparseArray,
    coo_array,
    csc_array,
    csr_array,
    from_scipy,
    matmul,
    spsolve,
)

__all__ = [
    "SparseArray",
    "csr_array",
    "csc_array",
    "coo_array",
    "from_scipy",
    "matmul",
    "spsolve",
]
