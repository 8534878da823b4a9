"""Sparse matrices whose numbers may be tensors, with the names of `scipy.sparse` and `linalg`."""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.ops.sparse.arrays import SparseArray as SparseArray, from_scipy as from_scipy
from gradtape.ops.sparse.functions import (
    block_array as block_array,
    block_diag as block_diag,
    hstack as hstack,
    kron as kron,
    matmul as matmul,
    matrix_power as matrix_power,
    norm as norm,
    spsolve as spsolve,
    spsolve_triangular as spsolve_triangular,
    tril as tril,
    triu as triu,
    vstack as vstack,
)
from gradtape.ops.sparse.making import (
    coo_array as coo_array,
    csc_array as csc_array,
    csr_array as csr_array,
    diags_array as diags_array,
    eye_array as eye_array,
)

_make_scipy(globals())
