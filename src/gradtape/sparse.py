"""Sparse matrices whose numbers may be tensors, with the names of `scipy.sparse` and `linalg`."""

from gradtape.help.public import make_public as _make_public
from gradtape.ops.sparse.arrays import SparseArray, from_scipy
from gradtape.ops.sparse.functions import (
    block_array,
    block_diag,
    hstack,
    kron,
    matmul,
    matrix_power,
    norm,
    spsolve,
    spsolve_triangular,
    tril,
    triu,
    vstack,
)
from gradtape.ops.sparse.making import coo_array, csc_array, csr_array, diags_array, eye_array

__all__ = [
    "SparseArray",
    "csr_array",
    "csc_array",
    "coo_array",
    "from_scipy",
    "eye_array",
    "diags_array",
    "hstack",
    "vstack",
    "block_diag",
    "block_array",
    "tril",
    "triu",
    "kron",
    "matmul",
    "matrix_power",
    "norm",
    "spsolve",
    "spsolve_triangular",
]

_make_public(globals())
