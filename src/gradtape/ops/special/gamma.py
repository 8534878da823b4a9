"""The gamma function and its kin."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradtape.core import scalar
from gradtape.core.define import elementwise, elementwise_op
from gradtape.core.op import Zero
from gradtape.errors import UnsupportedError
from gradtape.ops.erf import narrowed, special
from gradtape.ops.rounding import floor
from gradtape.ops.select import where
from gradtape.ops.special.common import (
    check_whole,
    in_parameter,
    of_scipy,
    operand,
    scipy_function,
)
from gradtape.ops.special.quadrature import blockwise
from gradtape.ops.special.stirling import (
    complex_polygamma,
    polygamma_difference,
    real_polygamma,
)
from gradtape.ops.trigonometric import cos, sin
from gradtape.typing import Array, ArrayLike


def _polygamma_forward(xp: Any, x: Any, order: int) -> Any:
    x = x if hasattr(x, "dtype") else xp.asarray(x)
    if x.dtype.kind == "c":
        return complex_polygamma(xp, order, x)
    return narrowed(real_polygamma(xp, order, x), x)


def _polygamma_element(x: Any, order: int) -> Any:
    if order > 2:
        raise UnsupportedError(f"polygamma: no native code for order {order}")
    return scalar.trigamma(x) if order == 1 else scalar.tetragamma(x)


# d ψ⁽ⁿ⁾(x) = ψ⁽ⁿ⁺¹⁾(x)·dx
_polygamma: Callable[..., Any] = elementwise_op(
    "polygamma",
    _polygamma_forward,
    lambda ct, _out, x, order: ct * _polygamma(x, order=order + 1),
    lower=_polygamma_element,
)


# d ψ(x) = ψ⁽¹⁾(x)·dx
@scipy_function(lambda ct, _out, x: ct * _polygamma(x, order=1), lower=scalar.digamma)
def digamma(x: ArrayLike, /) -> Array:
    """Derivative of the logarithm of the gamma function.

    >>> gt.digamma(np.array([1.0, 2.0]))
    array([-0.57721566,  0.42278434])
    """


def polygamma(n: int, x: ArrayLike, /) -> Array:
    """Derivative of order `n` of the digamma function.

    Args:
        n: The order, a Python integer from 0.
        x: Where to evaluate it.

    Raises:
        ArgumentError: The order is not an integer from 0.

    >>> gt.polygamma(1, np.array([1.0, 2.0]))
    array([1.64493407, 0.64493407])
    """
    check_whole("polygamma", 0, n=n)
    return digamma(x) if n == 0 else _polygamma(x, order=int(n))


# d log Γ(x) = ψ(x)·dx
@elementwise(
    special("gammaln"),
    lambda ct, _out, x: ct * digamma(x),
    lower=scalar.lgamma,
)
def lgamma(x: ArrayLike, /) -> Array:
    """Logarithm of the absolute value of the gamma function.

    >>> gt.lgamma(np.array([1.0, 5.0]))
    array([0.        , 3.17805383])
    """


# d log Γ(z) = ψ(z)·dz, on the branch that is continuous off the negative axis
@scipy_function(
    lambda ct, _out, z: ct * digamma(z),
    # Of real numbers: the logarithm of a negative one is complex.
    lower=lambda x: scalar.where(x < 0, math.nan, scalar.lgamma(x)),
)
def loggamma(z: ArrayLike, /) -> Array:
    """Principal branch of the logarithm of the gamma function, of complex numbers too.

    >>> gt.scipy.special.loggamma(np.array([1.0, 5.0]))
    array([0.        , 3.17805383])
    """


# d Γ(x) = Γ(x)·ψ(x)·dx
@scipy_function(lambda ct, out, x: ct * (out * digamma(x)))
def gamma(x: ArrayLike, /) -> Array:
    """Gamma function, element by element.

    >>> gt.scipy.special.gamma(np.array([0.5, 5.0]))
    array([ 1.77245385, 24.        ])
    """


def _rgamma_slope(x: Any, out: Any) -> Any:
    """The derivative of 1/Γ(x) = `out` of real numbers, which has no poles."""
    # 1/Γ(x) = Γ(1 − x)·sin(πx)/π has none for x < 1.
    low = x < 0.5
    t = where(low, x, 0.0)
    mirrored = cos(math.pi * t) - digamma(1.0 - t) * sin(math.pi * t) / math.pi
    return where(low, gamma(1.0 - t) * mirrored, -out * digamma(where(low, 1.0, x)))


def _rgamma_partial(ct: Any, out: Any, x: Any) -> Any:
    return ct * (-out * digamma(x) if x.dtype.kind == "c" else _rgamma_slope(x, out))


# d 1/Γ(x) = −ψ(x)/Γ(x)·dx
@scipy_function(_rgamma_partial)
def rgamma(x: ArrayLike, /) -> Array:
    """One over the gamma function, which is 0 at its poles.

    >>> gt.scipy.special.rgamma(np.array([-1.0, 5.0]))
    array([0.        , 0.04166667])
    """


@scipy_function(Zero("the sign of the gamma function is piecewise constant"))
def gammasgn(x: ArrayLike, /) -> Array:
    """Sign of the gamma function.

    >>> gt.scipy.special.gammasgn(np.array([-0.5, 5.0]))
    array([-1.,  1.])
    """


# ---- quotients ----------------------------------------------------------------------------------


# Δₙ = ψ⁽ⁿ⁾(x + s) − ψ⁽ⁿ⁾(x): dΔₙ = Δₙ₊₁·dx + ψ⁽ⁿ⁺¹⁾(x + s)·ds
polygamma_step: Callable[..., Any] = elementwise_op(
    "polygamma_step",
    blockwise(polygamma_difference),
    lambda ct, _out, x, step, order: ct * polygamma_step(x, step, order=order + 1),
    lambda ct, _out, x, step, order: ct * _polygamma(x + step, order=order + 1),
)


def digamma_step(x: Any, step: Any) -> Any:
    """ψ(x + step) − ψ(x), exact where both are close."""
    return polygamma_step(x, step, order=0)


def _pole(x: Any) -> Any:
    """Where the gamma function has its poles."""
    return (x <= 0) & (x == floor(x))


def _slope_at_pole(x: Any, at: Any) -> Any:
    """The derivative of 1/Γ(x) where the condition holds: there it is 0, and ψ(x) infinite."""
    return _rgamma_slope(where(at, x, 0.0), 0.0)


def _poch_by_z(ct: Any, out: Any, z: Any, m: Any) -> Any:
    # At a pole of the divisor alone the quotient is 0, and Γ(z + m)·(1/Γ)′(z) its slope.
    total = z + m
    zero = _pole(z) & (_pole(total) ^ True)
    at_pole = gamma(where(zero, total, 1.0)) * _slope_at_pole(z, zero)
    return ct * where(zero, at_pole, out * digamma_step(where(zero, 1.0, z), m))


# d Γ(z + m)/Γ(z) = out·((ψ(z + m) − ψ(z))·dz + ψ(z + m)·dm)
@scipy_function(_poch_by_z, lambda ct, out, z, m: ct * (out * digamma(z + m)))
def poch(z: ArrayLike, m: ArrayLike, /) -> Array:
    """Rising factorial, gamma(z + m)/gamma(z).

    >>> gt.scipy.special.poch(np.array([1.0, 3.0]), 2.0)
    array([ 2., 12.])
    """


def _beta_slope(out: Any, a: Any, b: Any) -> Any:
    """∂B(a, b)/∂a."""
    # At a pole of Γ(a + b) alone: Γ(a)·Γ(b)·(1/Γ)′(a + b)
    zero = _pole(a + b) & ((_pole(a) | _pole(b)) ^ True)
    at_pole = gamma(where(zero, a, 1.0)) * gamma(where(zero, b, 1.0)) * _slope_at_pole(a + b, zero)
    return where(zero, at_pole, -out * digamma_step(where(zero, 1.0, a), b))


# d B(a, b) = B·((ψ(a) − ψ(a + b))·da + (ψ(b) − ψ(a + b))·db)
@scipy_function(
    lambda ct, out, a, b: ct * _beta_slope(out, a, b),
    lambda ct, out, a, b: ct * _beta_slope(out, b, a),
)
def beta(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Beta function, gamma(a)·gamma(b)/gamma(a + b).

    >>> gt.scipy.special.beta(np.array([1.0, 2.0]), 2.0)
    array([0.5       , 0.16666667])
    """


# d log|B(a, b)| = (ψ(a) − ψ(a + b))·da + (ψ(b) − ψ(a + b))·db
@scipy_function(
    lambda ct, _out, a, b: -ct * digamma_step(a, b),
    lambda ct, _out, a, b: -ct * digamma_step(b, a),
)
def betaln(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Logarithm of the absolute value of the beta function.

    >>> gt.scipy.special.betaln(np.array([1.0, 2.0]), 2.0)
    array([-0.69314718, -1.79175947])
    """


def _binom_at_poles(n: Any, k: Any) -> tuple[Any, Any, Any, Any]:
    """Where Γ(n − k + 1) has a pole, and Γ(k + 1), and what the slope is by its argument."""
    whole = _pole(n + 1)
    above, below = (_pole(v + 1) & (whole ^ True) for v in (n - k, k))
    # C = Γ(n + 1)/(Γ(k + 1)·Γ(n − k + 1)), where two of them are a rising factorial
    by_rest = _slope_at_pole(n - k + 1, above) / poch(
        where(above, n + 1, 1.0), where(above, k - n, 0.0)
    )
    by_k = _slope_at_pole(k + 1, below) / poch(where(below, n + 1, 1.0), where(below, -k, 0.0))
    return above, below, by_rest, by_k


def _binom_by_n(ct: Any, out: Any, n: Any, k: Any) -> Any:
    above, _, by_rest, _ = _binom_at_poles(n, k)
    step = digamma_step(where(above, 1.0, n - k + 1), where(above, 0.0, k))
    return ct * where(above, by_rest, out * step)


def _binom_by_k(ct: Any, out: Any, n: Any, k: Any) -> Any:
    above, below, by_rest, by_k = _binom_at_poles(n, k)
    regular = (above | below) ^ True
    slope = digamma(where(regular, n - k + 1, 1.0)) - digamma(where(regular, k + 1, 1.0))
    return ct * where(above, -by_rest, where(below, by_k, out * slope))


# d C(n, k) = C·((ψ(n + 1) − ψ(n − k + 1))·dn + (ψ(n − k + 1) − ψ(k + 1))·dk)
@scipy_function(_binom_by_n, _binom_by_k)
def binom(n: ArrayLike, k: ArrayLike, /) -> Array:
    """Binomial coefficient of real arguments.

    >>> gt.scipy.special.binom(np.array([4.0, 0.5]), 2.0)
    array([ 6.   , -0.125])
    """


# dζ(x, q) = −x·ζ(x + 1, q)·dq
@elementwise(
    of_scipy("zeta"),
    in_parameter("zeta", "its first argument"),
    lambda ct, _out, x, q: -ct * (x * hurwitz_zeta(x + 1, q)),  # type: ignore[has-type]
)
def hurwitz_zeta(x: ArrayLike, q: ArrayLike, /) -> Array:
    """Zeta function of Hurwitz, the sum of (k + q)^-x over k from 0.

    >>> gt.ops.special.gamma.hurwitz_zeta(2.0, np.array([1.0]))
    array([1.64493407])
    """


@elementwise(special("zeta"), in_parameter("zeta", "its first argument"))
def riemann_zeta(x: ArrayLike, /) -> Array:
    """Zeta function of Riemann, of all numbers but 1.

    >>> gt.ops.special.gamma.riemann_zeta(np.array([-1.0, 2.0]))
    array([-0.08333333,  1.64493407])
    """


def zeta(x: ArrayLike, q: ArrayLike = None, /) -> Array:
    """Zeta function of Riemann, or with `q` of Hurwitz; differentiable in `q`.

    Raises:
        NotDifferentiableError: A derivative with respect to `x` was asked for.

    >>> gt.scipy.special.zeta(2.0, np.array([1.0, 2.0]))
    array([1.64493407, 0.64493407])
    """
    return riemann_zeta(x) if q is None else hurwitz_zeta(x, q)


# ---- a product of them --------------------------------------------------------------------------


def multigammaln(a: ArrayLike, d: int, /) -> Array:
    """Logarithm of the multivariate gamma function of dimension `d`.

    It is defined for `a` above (d - 1)/2, and NaN below.

    Raises:
        ArgumentError: The dimension is not an integer from 1.

    >>> gt.scipy.special.multigammaln(np.array([2.0, 3.0]), 2)
    array([0.45158271, 1.55019499])
    """
    check_whole("multigammaln", 1, d=d)
    a = operand(a)
    a = where(a > 0.5 * (d - 1), a, math.nan)
    total = lgamma(a)
    for k in range(1, int(d)):
        total = total + lgamma(a - 0.5 * k)
    return total + 0.25 * d * (d - 1) * math.log(math.pi)
