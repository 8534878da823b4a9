"""Equations, norms and functions of sparse matrices, under the names of `scipy.sparse.linalg`."""

from gradtape.dropin.linear_operators import (
    aslinearoperator as aslinearoperator,
    linear_operator_class as _linear_operator_class,
)
from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.dropin.sparse_factors import factorized as factorized, splu as splu
from gradtape.ops.sparse.exponentials import expm as expm, expm_multiply as expm_multiply
from gradtape.ops.sparse.factors import inv as inv
from gradtape.ops.sparse.functions import (
    matrix_power as matrix_power,
    norm as norm,
    spsolve as spsolve,
    spsolve_triangular as spsolve_triangular,
)
from gradtape.solvers.sparse_krylov import (
    bicg as bicg,
    bicgstab as bicgstab,
    cg as cg,
    cgs as cgs,
    gcrotmk as gcrotmk,
    gmres as gmres,
    lgmres as lgmres,
    minres as minres,
    tfqmr as tfqmr,
)
from gradtape.solvers.sparse_spectra import eigsh as eigsh, svds as svds

LinearOperator = _linear_operator_class()

# What these return takes tensors later.
_make_scipy(globals(), ours="aslinearoperator factorized splu")
