"""Initial value problems and integrals under the names of `scipy.integrate`, with derivatives."""

from gradtape.advice.public import make_public as _make_public
from gradtape.solvers.integrate.quad import quad as quad
from gradtape.solvers.integrate.solve_ivp import solve_ivp as solve_ivp

_make_public(globals())
