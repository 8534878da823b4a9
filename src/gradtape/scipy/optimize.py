"""Roots, minima and least squares under the names of `scipy.optimize`, with derivatives."""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.solvers.optimize.least_squares import (
    curve_fit as curve_fit,
    least_squares as least_squares,
)
from gradtape.solvers.optimize.minimize import minimize as minimize
from gradtape.solvers.optimize.named_methods import (
    fsolve as fsolve,
    leastsq as leastsq,
    minimize_scalar as minimize_scalar,
    newton as newton,
)
from gradtape.solvers.optimize.roots import (
    bisect as bisect,
    brenth as brenth,
    brentq as brentq,
    fixed_point as fixed_point,
    ridder as ridder,
    root as root,
    root_scalar as root_scalar,
    toms748 as toms748,
)

_make_scipy(
    globals(),
    ours="bisect brenth brentq curve_fit fixed_point fsolve least_squares leastsq minimize "
    "minimize_scalar newton ridder root root_scalar toms748",
)
