"""Solutions of equations, with the derivatives of the solution whatever found it."""

from gradtape.advice.public import make_public as _make_public
from gradtape.solvers.iteration import iterate as iterate
from gradtape.solvers.linear import linear_solve as linear_solve
from gradtape.solvers.newton import newton as newton
from gradtape.solvers.root import fixed_point as fixed_point, root as root

_make_public(globals())
