"""Initial value problems and integrals under the names of `scipy.integrate`, with derivatives."""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.ops.arrays.differences import trapezoid as trapezoid
from gradtape.solvers.integrate.nested import (
    dblquad as dblquad,
    fixed_quad as fixed_quad,
    nquad as nquad,
    quad_vec as quad_vec,
    tplquad as tplquad,
)
from gradtape.solvers.integrate.odeint import odeint as odeint
from gradtape.solvers.integrate.quad import quad as quad
from gradtape.solvers.integrate.samples import (
    cumulative_simpson as cumulative_simpson,
    cumulative_trapezoid as cumulative_trapezoid,
    romb as romb,
    simpson as simpson,
)
from gradtape.solvers.integrate.solve_ivp import solve_ivp as solve_ivp

_make_scipy(globals(), ours="dblquad fixed_quad nquad odeint quad quad_vec solve_ivp tplquad")
