"""Equations, norms and functions of sparse matrices, under the names of `scipy.sparse.linalg`."""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.ops.sparse.functions import (
    matrix_power as matrix_power,
    norm as norm,
    spsolve as spsolve,
    spsolve_triangular as spsolve_triangular,
)

_make_scipy(globals())
