"""Bessel functions of orders 0 and 1."""

from __future__ import annotations

import math
from typing import Any

from gradtape.core import scalar
from gradtape.core.define import elementwise
from gradtape.ops.arithmetic import sign
from gradtape.ops.erf import scipy_special
from gradtape.ops.exponential import sqrt
from gradtape.ops.select import where
from gradtape.ops.special.bessel import iv, ive, jv, kv, kve, yv
from gradtape.ops.special.common import scipy_function, series
from gradtape.typing import Array, ArrayLike


# d J₀ = −J₁·dx
@scipy_function(lambda ct, _out, x: -ct * j1(x))  # type: ignore[has-type]
def j0(x: ArrayLike, /) -> Array:
    """Bessel function of the first kind of order 0.

    >>> gt.scipy.special.j0(np.array([0.5, 1.0]))
    array([0.93846981, 0.76519769])
    """


# d J₁ = ½·(J₀ − J₂)·dx
@scipy_function(lambda ct, _out, x: ct * (0.5 * (j0(x) - jv(2, x))))
def j1(x: ArrayLike, /) -> Array:
    """Bessel function of the first kind of order 1.

    >>> gt.scipy.special.j1(np.array([0.5, 1.0]))
    array([0.24226846, 0.44005059])
    """


# d Y₀ = −Y₁·dx
@scipy_function(lambda ct, _out, x: -ct * y1(x))  # type: ignore[has-type]
def y0(x: ArrayLike, /) -> Array:
    """Bessel function of the second kind of order 0.

    >>> gt.scipy.special.y0(np.array([0.5, 1.0]))
    array([-0.44451873,  0.08825696])
    """


# d Y₁ = ½·(Y₀ − Y₂)·dx
@scipy_function(lambda ct, _out, x: ct * (0.5 * (y0(x) - yv(2, x))))
def y1(x: ArrayLike, /) -> Array:
    """Bessel function of the second kind of order 1.

    >>> gt.scipy.special.y1(np.array([0.5, 1.0]))
    array([-1.47147239, -0.78121282])
    """


# d I₀ = I₁·dx
@scipy_function(lambda ct, _out, x: ct * i1(x), lower=scalar.bessel_i0)  # type: ignore[has-type]
def i0(x: ArrayLike, /) -> Array:
    """Modified Bessel function of the first kind of order 0.

    >>> gt.scipy.special.i0(np.array([0.5, 1.0]))
    array([1.06348337, 1.26606588])
    """


# d I₁ = ½·(I₀ + I₂)·dx
@scipy_function(lambda ct, _out, x: ct * (0.5 * (i0(x) + i2(x))), lower=scalar.bessel_i1)  # type: ignore[has-type]
def i1(x: ArrayLike, /) -> Array:
    """Modified Bessel function of the first kind of order 1.

    >>> gt.scipy.special.i1(np.array([0.5, 1.0]))
    array([0.25789431, 0.5651591 ])
    """


# ---- scaled by exponentials ---------------------------------------------------------------------

# From here on asymptotic series are exact in double precision.
_FAR = 30.0


def _terms(order: int, side: int) -> list[float]:
    """Factors of x⁻ᵏ in −√(2πx³)·(exp(−x)·Iₙ)′, or with side 1 in −√(2x³/π)·(exp(x)·Kₙ)′.

    Those of √(2πx)·exp(−x)·Iₙ are Π (4n² − (2j − 1)²)/(−8j) over j up to k.
    """
    factor, terms = 1.0, []
    for k in range(18):
        terms.append((k + 0.5) * factor)
        factor *= side * (4.0 * order * order - (2 * k + 1) ** 2) / (8 * (k + 1))
    return terms


_I_TERMS = [_terms(order, -1) for order in range(3)]
_K_TERMS = [_terms(order, 1) for order in range(2)]


def _outer_slope(x: Any, terms: list[float], scale: float) -> Any:
    """A slope beyond `_FAR`, by its series in 1/x."""
    inverse = 1 / where(x > _FAR, x, _FAR)
    return (inverse * sqrt(inverse)) * (series(terms, inverse) * -scale)


def _i_slope(order: int, x: Any, near: Any) -> Any:
    """`near(x)`, a difference of functions; far out, where they cancel, a series."""
    outer = _outer_slope(abs(x), _I_TERMS[order], 1 / math.sqrt(2 * math.pi))
    # The slope of an even function is odd.
    outer = outer if order == 1 else sign(x) * outer
    far = abs(x) > _FAR
    return where(far, outer, near(where(far, 1.0, x)))


def _k_slope(order: int, x: Any, near: Any) -> Any:
    """The same of the second kind, which has values for positive arguments only."""
    far = x > _FAR
    outer = _outer_slope(x, _K_TERMS[order], math.sqrt(0.5 * math.pi))
    return where(far, outer, near(where(far, 1.0, x)))


# d I₀·exp(−|x|) = (I₁ − sign x·I₀)·exp(−|x|)·dx
@scipy_function(
    lambda ct, out, x: ct * _i_slope(0, x, lambda t: i1e(t) - sign(t) * out),  # type: ignore[has-type]
    lower=scalar.bessel_i0e,
)
def i0e(x: ArrayLike, /) -> Array:
    """`i0` times exp(-|x|), which does not overflow.

    >>> gt.scipy.special.i0e(np.array([0.5, 1.0]))
    array([0.64503527, 0.46575961])
    """


# d I₁·exp(−|x|) = (½·(I₀ + I₂) − sign x·I₁)·exp(−|x|)·dx
@scipy_function(
    lambda ct, out, x: (
        ct * _i_slope(1, x, lambda t: 0.5 * (i0e(t) + i2e(t)) - sign(t) * out)  # type: ignore[has-type]
    ),
    lower=scalar.bessel_i1e,
)
def i1e(x: ArrayLike, /) -> Array:
    """`i1` times exp(-|x|), which does not overflow.

    >>> gt.scipy.special.i1e(np.array([0.5, 1.0]))
    array([0.1564208 , 0.20791042])
    """


# ---- order 2, for the slopes of order 1 ---------------------------------------------------------


def _second(xp: Any, x: Any, whole: str, scaled: str) -> Any:
    """I₂ by SciPy's functions, where `iv` and `ive` have no value too: next to 0, and far out."""
    special, dtype = scipy_special(xp), xp.asarray(x).dtype
    x = x * 1.0  # the smallest integer has no absolute value
    size = xp.abs(x)
    far, tiny = size > 8.0, size < 1e-9
    t = xp.where(far, x, 8.0)
    # I₂ = I₀ − 2·I₁/x
    share = 1.0 - 2.0 * special.i1e(t) / (special.i0e(t) * t)
    at_end = xp.where(xp.isinf(t), 1.0, share)
    beyond = getattr(special, whole)(t) * at_end
    near = getattr(special, scaled)(2, xp.where(far | tiny, 1.0, x))
    out = xp.where(far, beyond, xp.where(tiny, 0.125 * x * x, near))
    return (out.astype(dtype) if dtype.kind == "f" else out)[()]


# d I₂ = ½·(I₁ + I₃)·dx
@elementwise(
    lambda xp, x: _second(xp, x, "i0", "iv"),
    lambda ct, _out, x: ct * (0.5 * (i1(x) + iv(3, x))),
    lower=scalar.bessel_i2,
)
def i2(x: ArrayLike, /) -> Array:
    """Modified Bessel function of the first kind of order 2.

    >>> gt.ops.special.bessel_fixed.i2(np.array([0.5, 1.0]))
    array([0.03190615, 0.13574767])
    """


# d I₂·exp(−|x|) = (½·(I₁ + I₃) − sign x·I₂)·exp(−|x|)·dx
@elementwise(
    lambda xp, x: _second(xp, x, "i0e", "ive"),
    lambda ct, out, x: ct * _i_slope(2, x, lambda t: 0.5 * (i1e(t) + ive(3, t)) - sign(t) * out),
    lower=scalar.bessel_i2e,
)
def i2e(x: ArrayLike, /) -> Array:
    """`i2` times exp(-|x|), which does not overflow.

    >>> gt.ops.special.bessel_fixed.i2e(np.array([0.5, 1.0]))
    array([0.01935206, 0.04993878])
    """


# ---- the second kind ----------------------------------------------------------------------------


# d K₀ = −K₁·dx
@scipy_function(lambda ct, _out, x: -ct * k1(x))  # type: ignore[has-type]
def k0(x: ArrayLike, /) -> Array:
    """Modified Bessel function of the second kind of order 0.

    >>> gt.scipy.special.k0(np.array([0.5, 1.0]))
    array([0.92441907, 0.42102444])
    """


# d K₁ = −½·(K₀ + K₂)·dx
@scipy_function(lambda ct, _out, x: -ct * (0.5 * (k0(x) + kv(2, x))))
def k1(x: ArrayLike, /) -> Array:
    """Modified Bessel function of the second kind of order 1.

    >>> gt.scipy.special.k1(np.array([0.5, 1.0]))
    array([1.65644112, 0.60190723])
    """


# d K₀·eˣ = (K₀ − K₁)·eˣ·dx
@scipy_function(lambda ct, out, x: ct * _k_slope(0, x, lambda t: out - k1e(t)))  # type: ignore[has-type]
def k0e(x: ArrayLike, /) -> Array:
    """`k0` times exp(x), which does not vanish.

    >>> gt.scipy.special.k0e(np.array([0.5, 1.0]))
    array([1.52410939, 1.14446308])
    """


# d K₁·eˣ = (K₁ − ½·(K₀ + K₂))·eˣ·dx
@scipy_function(lambda ct, out, x: ct * _k_slope(1, x, lambda t: out - 0.5 * (k0e(t) + kve(2, t))))
def k1e(x: ArrayLike, /) -> Array:
    """`k1` times exp(x), which does not vanish.

    >>> gt.scipy.special.k1e(np.array([0.5, 1.0]))
    array([2.73100971, 1.63615349])
    """
