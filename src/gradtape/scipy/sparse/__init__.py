"""Sparse matrices whose numbers may be tensors, under the names of `scipy.sparse`."""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.ops.sparse.arrays import SparseArray as SparseArray, from_scipy as from_scipy
from gradtape.ops.sparse.assembly import (
    block_array as block_array,
    block_diag as block_diag,
    bmat as bmat,
    diags as diags,
    find as find,
    hstack as hstack,
    kron as kron,
    kronsum as kronsum,
    tril as tril,
    triu as triu,
    vstack as vstack,
)
from gradtape.ops.sparse.functions import matmul as matmul
from gradtape.ops.sparse.making import (
    coo_array as coo_array,
    csc_array as csc_array,
    csr_array as csr_array,
    diags_array as diags_array,
)
from gradtape.ops.sparse.matrices import (
    SparseMatrix as SparseMatrix,
    coo_matrix as coo_matrix,
    csc_matrix as csc_matrix,
    csr_matrix as csr_matrix,
    issparse as issparse,
    isspmatrix as isspmatrix,
    isspmatrix_coo as isspmatrix_coo,
    isspmatrix_csc as isspmatrix_csc,
    isspmatrix_csr as isspmatrix_csr,
)
from gradtape.scipy.sparse import linalg as linalg

_make_scipy(globals())
