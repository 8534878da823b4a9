"""Linear algebra, under the names of `numpy.linalg`."""

from gradtape.ops.contract import tensordot as tensordot
from gradtape.ops.linalg.cholesky import cholesky as cholesky
from gradtape.ops.linalg.determinant import (
    SlogdetResult as SlogdetResult,
    det as det,
    slogdet as slogdet,
)
from gradtape.ops.linalg.solve import inv as inv, solve as solve
from gradtape.ops.matmul import matmul as matmul, outer as outer
from gradtape.ops.norm import (
    matrix_norm as matrix_norm,
    norm as norm,
    vector_norm as vector_norm,
)
from gradtape.ops.shape import matrix_transpose as matrix_transpose
