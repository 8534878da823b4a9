"""Roots, minima and least squares under the names of `scipy.optimize`, with derivatives."""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.solvers.optimize.least_squares import (
    curve_fit as curve_fit,
    least_squares as least_squares,
)
from gradtape.solvers.optimize.minimize import minimize as minimize
from gradtape.solvers.optimize.roots import (
    brentq as brentq,
    fixed_point as fixed_point,
    root as root,
    root_scalar as root_scalar,
)

_make_scipy(globals(), ours="brentq curve_fit fixed_point least_squares minimize root root_scalar")
