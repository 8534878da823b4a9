"""Initial value problems and integrals under the names of `scipy.integrate`, with derivatives."""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.solvers.integrate.quad import quad as quad
from gradtape.solvers.integrate.solve_ivp import solve_ivp as solve_ivp

_make_scipy(globals(), ours="quad solve_ivp")
