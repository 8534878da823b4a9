"""Roots, minima and least squares under the names of `scipy.optimize`, with derivatives."""

from gradtape.advice.public import make_public as _make_public
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

_make_public(globals())
