"""Symmetric elliptic integrals of Carlson, and the integral that all their derivatives are.

Each of them is, up to a factor, ∫₀^∞ (t + x)^(−a)·(t + y)^(−b)·(t + z)^(−c)·(t + p)^(−d) dt. Its
derivative by x is −a times that with a + 1 in place of a: so they have derivatives of any order,
also where arguments are equal and the relations between them are 0/0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from gradtape.core.define import elementwise_op
from gradtape.ops.exponential import sqrt
from gradtape.ops.select import where
from gradtape.ops.special.common import raised, scipy_function
from gradtape.ops.special.quadrature import blockwise
from gradtape.typing import Array, ArrayLike

# ---- the integral -------------------------------------------------------------------------------

# In u = log t the nearest singularities are at a distance of π: sums of this step are exact.
_STEP = 0.4
# The integrand is followed until it has fallen by exp(−_DROP).
_DROP = 40.0


def carlson_integral(xp: Any, *args: Any, exponents: tuple[float, ...]) -> Any:
    """The integral of flat arrays in double precision; infinite where it diverges at 0."""
    arrays = [xp.asarray(arg) + 0.0 * args[0] for arg in args]
    pairs = list(zip(arrays, exponents, strict=True))
    zero = sum(xp.where(x == 0, power, 0.0) for x, power in pairs)
    smallest = functools.reduce(xp.minimum, (xp.where(x == 0, math.inf, x) for x in arrays))
    known = functools.reduce(xp.minimum, arrays) >= 0  # not so for NaN
    vanishing = known & (functools.reduce(xp.maximum, arrays) == math.inf)
    proper = known & (zero < 1) & ~vanishing
    smallest = xp.where(proper, smallest, 1.0)
    safe = [xp.where(proper, x, 1.0) for x in arrays]
    largest = functools.reduce(xp.maximum, safe)
    # Beyond the arguments the integrand is a power of t at both ends.
    low = xp.log(smallest) - _DROP / (1.0 - xp.where(proper, zero, 0.0))
    high = xp.log(largest) + _DROP / (sum(exponents) - 1.0)
    points = math.ceil(float((high - low).max(initial=0.0)) / _STEP) + 1
    u = low[:, None] + _STEP * xp.arange(points)
    t = xp.exp(u)
    exponent = u
    for x, power in zip(safe, exponents, strict=True):
        exponent = exponent - power * xp.log(t + x[:, None])
    value = _STEP * xp.exp(exponent).sum(axis=1)
    value = xp.where(proper, value, xp.where(vanishing, 0.0, math.inf))
    return xp.where(known, value, math.nan)


def _partial(i: int) -> Any:
    def partial(ct: Any, _out: Any, x: Any, y: Any, z: Any, p: Any, exponents: Any) -> Any:
        power = exponents[i]
        if power == 0:
            return None
        return ct * (-power * carlson(x, y, z, p, exponents=raised(exponents, i)))

    return partial


# dI = −(a·I(a + 1)·dx + b·I(b + 1)·dy + c·I(c + 1)·dz + d·I(d + 1)·dp)
carlson: Callable[..., Any] = elementwise_op(
    "carlson", blockwise(carlson_integral), *(_partial(i) for i in range(4))
)


def _is_complex(*args: Any) -> bool:
    return any(getattr(arg, "dtype", None) is not None and arg.dtype.kind == "c" for arg in args)


# ---- the second kind ----------------------------------------------------------------------------


def _relation(one: Any, other: Any, z: Any) -> Any:
    """∂R_D(x, y, z)/∂x = (R_D(y, z, x) − R_D(x, y, z))/(2·(x − z)), for complex numbers."""
    return (elliprd(other, z, one) - elliprd(one, other, z)) / (2 * (one - z))


def _elliprd_by_x(ct: Any, _out: Any, x: Any, y: Any, z: Any) -> Any:
    if _is_complex(x, y, z):
        return ct * _relation(x, y, z)
    return ct * (-0.75 * carlson(x, y, z, 1.0, exponents=(1.5, 0.5, 1.5, 0.0)))


def _elliprd_by_y(ct: Any, out: Any, x: Any, y: Any, z: Any) -> Any:
    return _elliprd_by_x(ct, out, y, x, z)


def _elliprd_by_z(ct: Any, out: Any, x: Any, y: Any, z: Any) -> Any:
    if _is_complex(x, y, z):
        # R_D is homogeneous of degree −3/2.
        return ct * ((-1.5 * out - x * _relation(x, y, z) - y * _relation(y, x, z)) / z)
    return ct * (-2.25 * carlson(x, y, z, 1.0, exponents=(0.5, 0.5, 2.5, 0.0)))


# R_D = 3/2·∫ (t + x)^(−1/2)·(t + y)^(−1/2)·(t + z)^(−3/2) dt
@scipy_function(_elliprd_by_x, _elliprd_by_y, _elliprd_by_z)
def elliprd(x: ArrayLike, y: ArrayLike, z: ArrayLike, /) -> Array:
    """Symmetric elliptic integral of the second kind, degenerate in `z`.

    >>> gt.scipy.special.elliprd(0.0, 2.0, np.array([1.0]))
    array([1.79721035])
    """


# ---- the first kind -----------------------------------------------------------------------------


# dR_F = −(R_D(y, z, x)·dx + R_D(z, x, y)·dy + R_D(x, y, z)·dz)/6
@scipy_function(
    lambda ct, _out, x, y, z: ct * elliprd(y, z, x) * (-1 / 6),
    lambda ct, _out, x, y, z: ct * elliprd(z, x, y) * (-1 / 6),
    lambda ct, _out, x, y, z: ct * elliprd(x, y, z) * (-1 / 6),
)
def elliprf(x: ArrayLike, y: ArrayLike, z: ArrayLike, /) -> Array:
    """Completely symmetric elliptic integral of the first kind.

    >>> gt.scipy.special.elliprf(1.0, 2.0, np.array([0.0]))
    array([1.31102878])
    """


def _elliprc_by(i: int) -> Any:
    """∂R_C/∂x = (R_C − 1/√x)/(2·(y − x)), and ∂R_C/∂y = −(R_C/2 + x·∂R_C/∂x)/y.

    That holds for complex numbers, and where y is negative and R_C a principal value. Elsewhere the
    integral of Carlson has no zero to divide by.
    """

    def partial(ct: Any, out: Any, x: Any, y: Any) -> Any:
        plane = _is_complex(x, y)
        low = (y == y) if plane else y < 0
        below = where(low, y, -1.0)
        slope = (out - 1 / sqrt(x)) / (2 * (below - x))
        slope = slope if i == 0 else -(0.5 * out + x * slope) / below
        if plane:
            return ct * slope
        exponents = (1.5, 1.0, 0.0, 0.0) if i == 0 else (0.5, 2.0, 0.0, 0.0)
        above = carlson(x, where(low, 1.0, y), 1.0, 1.0, exponents=exponents)
        return ct * where(low, slope, (-0.25, -0.5)[i] * above)

    return partial


# R_C = ½·∫ (t + x)^(−1/2)·(t + y)^(−1) dt
@scipy_function(_elliprc_by(0), _elliprc_by(1))
def elliprc(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Degenerate symmetric elliptic integral, `elliprf` of x, y and y.

    >>> gt.scipy.special.elliprc(np.array([1.0, 0.0]), 1.0)
    array([1.        , 1.57079633])
    """


# ---- others -------------------------------------------------------------------------------------


def _elliprg_by(x: Any, y: Any, z: Any) -> Any:
    """∂R_G/∂x = (R_F − x·R_D(y, z, x)/3)/4."""
    return 0.25 * (elliprf(x, y, z) - x * elliprd(y, z, x) * (1 / 3))


# dR_G = ∂R_G/∂x·dx + …, the same for all
@scipy_function(
    lambda ct, _out, x, y, z: ct * _elliprg_by(x, y, z),
    lambda ct, _out, x, y, z: ct * _elliprg_by(y, z, x),
    lambda ct, _out, x, y, z: ct * _elliprg_by(z, x, y),
)
def elliprg(x: ArrayLike, y: ArrayLike, z: ArrayLike, /) -> Array:
    """Completely symmetric elliptic integral of the second kind.

    >>> gt.scipy.special.elliprg(1.0, 2.0, np.array([0.0]))
    array([0.95504945])
    """


def _elliprj_by_x(ct: Any, _out: Any, x: Any, y: Any, z: Any, p: Any) -> Any:
    return ct * (-0.75 * carlson(x, y, z, p, exponents=(1.5, 0.5, 0.5, 1.0)))


# R_J = 3/2·∫ (t + x)^(−1/2)·(t + y)^(−1/2)·(t + z)^(−1/2)·(t + p)^(−1) dt, for p > 0
@scipy_function(
    _elliprj_by_x,
    lambda ct, out, x, y, z, p: _elliprj_by_x(ct, out, y, z, x, p),
    lambda ct, out, x, y, z, p: _elliprj_by_x(ct, out, z, x, y, p),
    lambda ct, _out, x, y, z, p: ct * (-1.5 * carlson(x, y, z, p, exponents=(0.5, 0.5, 0.5, 2.0))),
)
def elliprj(x: ArrayLike, y: ArrayLike, z: ArrayLike, p: ArrayLike, /) -> Array:
    """Symmetric elliptic integral of the third kind; its derivatives are for real numbers, p > 0.

    >>> gt.scipy.special.elliprj(1.0, 2.0, np.array([0.0]), 3.0)
    array([0.77688624])
    """
