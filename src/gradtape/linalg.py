"""Linear algebra, under the names of `numpy.linalg` and `scipy.linalg`."""

from gradtape.autodiff.iterative import bicgstab, cg, gmres
from gradtape.autodiff.spectral import (
    hermitian_function,
    singular_function,
)
from gradtape.errors import LinAlgError
from gradtape.help.public import make_public as _make_public
from gradtape.ops.contract import tensordot
from gradtape.ops.linalg.balance import matrix_balance
from gradtape.ops.linalg.banded import (
    cho_solve_banded,
    solve_banded,
    solveh_banded,
)
from gradtape.ops.linalg.banded_cholesky import cholesky_banded
from gradtape.ops.linalg.banded_eigen import (
    eig_banded,
    eigh_tridiagonal,
    eigvals_banded,
    eigvalsh_tridiagonal,
)
from gradtape.ops.linalg.cholesky import cholesky
from gradtape.ops.linalg.companions import (
    companion,
    convolution_matrix,
    diagsvd,
    fiedler,
    fiedler_companion,
    leslie,
)
from gradtape.ops.linalg.condition import cond, matrix_rank
from gradtape.ops.linalg.determinant import (
    SlogdetResult,
    det,
    logdet,
    slogdet,
)
from gradtape.ops.linalg.eig import (
    EigResult,
    eig,
    eigvals,
)
from gradtape.ops.linalg.eigh import (
    EighResult,
    eigh,
    eigvalsh,
)
from gradtape.ops.linalg.equations import (
    solve_continuous_lyapunov,
    solve_discrete_lyapunov,
    solve_lyapunov,
    solve_sylvester,
)
from gradtape.ops.linalg.factored import (
    cho_factor,
    cho_solve,
    lu_solve,
)
from gradtape.ops.linalg.funm import funm
from gradtape.ops.linalg.hessenberg import HessenbergResult, hessenberg
from gradtape.ops.linalg.ldl import LDLResult, ldl
from gradtape.ops.linalg.lstsq import (
    LstsqResult,
    lstsq,
    pinv,
    pinvh,
)
from gradtape.ops.linalg.lu import (
    LUResult,
    lu,
    lu_factor,
)
from gradtape.ops.linalg.matrix_functions import (
    expm,
    expm_cond,
    expm_frechet,
    fractional_matrix_power,
    logm,
    signm,
    sqrtm,
)
from gradtape.ops.linalg.matrix_trigonometry import (
    coshm,
    cosm,
    sinhm,
    sinm,
    tanhm,
    tanm,
)
from gradtape.ops.linalg.polar import polar
from gradtape.ops.linalg.powers import matrix_power, multi_dot
from gradtape.ops.linalg.products import (
    cross,
    diagonal,
    outer,
    trace,
    vecdot,
)
from gradtape.ops.linalg.properties import bandwidth, ishermitian, issymmetric
from gradtape.ops.linalg.qr import QRResult, qr
from gradtape.ops.linalg.riccati import (
    solve_continuous_are,
    solve_discrete_are,
)
from gradtape.ops.linalg.rq import RQResult, qr_multiply, rq
from gradtape.ops.linalg.schur import SchurResult, schur
from gradtape.ops.linalg.solve import inv, solve
from gradtape.ops.linalg.structured import (
    block_diag,
    circulant,
    hankel,
    khatri_rao,
    toeplitz,
)
from gradtape.ops.linalg.subspaces import (
    LowRankSVD,
    null_space,
    orth,
    orthogonal_procrustes,
    subspace_angles,
    svd_lowrank,
)
from gradtape.ops.linalg.svd import (
    SVDResult,
    svd,
    svdvals,
)
from gradtape.ops.linalg.tensors import tensorinv, tensorsolve
from gradtape.ops.linalg.toeplitz import matmul_toeplitz, solve_circulant, solve_toeplitz
from gradtape.ops.linalg.triangular import solve_triangular
from gradtape.ops.matmul import kron, matmul
from gradtape.ops.norm import (
    matrix_norm,
    norm,
    vector_norm,
)
from gradtape.ops.shape import matrix_transpose

__all__ = [
    "qr",
    "rq",
    "qr_multiply",
    "lu",
    "lu_factor",
    "ldl",
    "cholesky",
    "cho_factor",
    "cholesky_banded",
    "svd",
    "svd_lowrank",
    "eigh",
    "eig",
    "eig_banded",
    "eigh_tridiagonal",
    "schur",
    "hessenberg",
    "polar",
    "matrix_balance",
    "svdvals",
    "eigvalsh",
    "eigvals",
    "eigvals_banded",
    "eigvalsh_tridiagonal",
    "orth",
    "null_space",
    "matrix_rank",
    "subspace_angles",
    "orthogonal_procrustes",
    "solve",
    "solve_triangular",
    "solve_banded",
    "solveh_banded",
    "solve_toeplitz",
    "solve_circulant",
    "lu_solve",
    "cho_solve",
    "cho_solve_banded",
    "inv",
    "pinv",
    "pinvh",
    "lstsq",
    "tensorsolve",
    "tensorinv",
    "cg",
    "bicgstab",
    "gmres",
    "solve_sylvester",
    "solve_continuous_lyapunov",
    "solve_lyapunov",
    "solve_discrete_lyapunov",
    "solve_continuous_are",
    "solve_discrete_are",
    "hermitian_function",
    "singular_function",
    "funm",
    "expm",
    "expm_frechet",
    "expm_cond",
    "logm",
    "sqrtm",
    "signm",
    "matrix_power",
    "fractional_matrix_power",
    "cosm",
    "sinm",
    "tanm",
    "coshm",
    "sinhm",
    "tanhm",
    "det",
    "slogdet",
    "logdet",
    "trace",
    "norm",
    "matrix_norm",
    "vector_norm",
    "cond",
    "matmul",
    "multi_dot",
    "outer",
    "cross",
    "vecdot",
    "tensordot",
    "kron",
    "khatri_rao",
    "matmul_toeplitz",
    "diagonal",
    "matrix_transpose",
    "block_diag",
    "circulant",
    "hankel",
    "toeplitz",
    "companion",
    "fiedler",
    "fiedler_companion",
    "leslie",
    "convolution_matrix",
    "diagsvd",
    "bandwidth",
    "issymmetric",
    "ishermitian",
    "QRResult",
    "RQResult",
    "LUResult",
    "LDLResult",
    "SVDResult",
    "LowRankSVD",
    "EighResult",
    "EigResult",
    "SchurResult",
    "HessenbergResult",
    "LstsqResult",
    "SlogdetResult",
    "LinAlgError",
]

_make_public(globals())
