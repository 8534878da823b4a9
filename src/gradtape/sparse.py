"""Sparse matrices whose numbers may be tensors, with the names of `scipy.sparse` and `linalg`."""

from gradtape.core.entry import open_doors as _open_doors
from gradtape.core.spellings import missing_from as _missing_from
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

__getattr__ = _missing_from("sparse")
_open_doors(globals())
