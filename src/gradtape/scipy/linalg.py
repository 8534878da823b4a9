"""Linear algebra, under the names and with the conventions of `scipy.linalg`.

`gt.linalg` has the same functions with the conventions of NumPy and the Array API standard, which
differ for `cholesky`, `inv`, `lstsq`, `pinv` and `qr`.
"""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.ops.linalg.balance import matrix_balance as matrix_balance
from gradtape.ops.linalg.banded import (
    cho_solve_banded as cho_solve_banded,
    solve_banded as solve_banded,
    solveh_banded as solveh_banded,
)
from gradtape.ops.linalg.banded_cholesky import cholesky_banded as cholesky_banded
from gradtape.ops.linalg.banded_eigen import (
    eig_banded as eig_banded,
    eigh_tridiagonal as eigh_tridiagonal,
    eigvals_banded as eigvals_banded,
    eigvalsh_tridiagonal as eigvalsh_tridiagonal,
)
from gradtape.ops.linalg.companions import (
    companion as companion,
    convolution_matrix as convolution_matrix,
    diagsvd as diagsvd,
    fiedler as fiedler,
    fiedler_companion as fiedler_companion,
    leslie as leslie,
)
from gradtape.ops.linalg.determinant import det as det
from gradtape.ops.linalg.eig import eig as eig, eigvals as eigvals
from gradtape.ops.linalg.eigh import eigh as eigh, eigvalsh as eigvalsh
from gradtape.ops.linalg.equations import (
    solve_continuous_lyapunov as solve_continuous_lyapunov,
    solve_discrete_lyapunov as solve_discrete_lyapunov,
    solve_lyapunov as solve_lyapunov,
    solve_sylvester as solve_sylvester,
)
from gradtape.ops.linalg.factored import (
    cho_factor as cho_factor,
    cho_solve as cho_solve,
    lu_solve as lu_solve,
)
from gradtape.ops.linalg.funm import funm as funm
from gradtape.ops.linalg.hessenberg import hessenberg as hessenberg
from gradtape.ops.linalg.ldl import ldl as ldl
from gradtape.ops.linalg.lstsq import pinvh as pinvh
from gradtape.ops.linalg.lu import lu as lu, lu_factor as lu_factor
from gradtape.ops.linalg.matrix_functions import (
    expm as expm,
    expm_cond as expm_cond,
    expm_frechet as expm_frechet,
    fractional_matrix_power as fractional_matrix_power,
    logm as logm,
    signm as signm,
    sqrtm as sqrtm,
)
from gradtape.ops.linalg.matrix_trigonometry import (
    coshm as coshm,
    cosm as cosm,
    sinhm as sinhm,
    sinm as sinm,
    tanhm as tanhm,
    tanm as tanm,
)
from gradtape.ops.linalg.polar import polar as polar
from gradtape.ops.linalg.properties import (
    bandwidth as bandwidth,
    ishermitian as ishermitian,
    issymmetric as issymmetric,
)
from gradtape.ops.linalg.riccati import (
    solve_continuous_are as solve_continuous_are,
    solve_discrete_are as solve_discrete_are,
)
from gradtape.ops.linalg.rq import qr_multiply as qr_multiply, rq as rq
from gradtape.ops.linalg.schur import schur as schur
from gradtape.ops.linalg.scipy_forms import (
    cholesky as cholesky,
    inv as inv,
    lstsq as lstsq,
    pinv as pinv,
    qr as qr,
)
from gradtape.ops.linalg.solve import solve as solve
from gradtape.ops.linalg.structured import (
    block_diag as block_diag,
    circulant as circulant,
    hankel as hankel,
    khatri_rao as khatri_rao,
    toeplitz as toeplitz,
)
from gradtape.ops.linalg.subspaces import (
    null_space as null_space,
    orth as orth,
    orthogonal_procrustes as orthogonal_procrustes,
    subspace_angles as subspace_angles,
)
from gradtape.ops.linalg.svd import svd as svd, svdvals as svdvals
from gradtape.ops.linalg.toeplitz import (
    matmul_toeplitz as matmul_toeplitz,
    solve_circulant as solve_circulant,
    solve_toeplitz as solve_toeplitz,
)
from gradtape.ops.linalg.triangular import solve_triangular as solve_triangular
from gradtape.ops.norm import norm as norm

_make_scipy(globals())
