"""The gamma function and its kin."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.define import answers, elementwise, public
from gradtape.core.op import Zero
from gradtape.errors import ArgumentError, UnsupportedError
from gradtape.ops.erf import narrowed, special
from gradtape.ops.parametric import parametric
from gradtape.ops.select import mask, where
from gradtape.ops.special.common import in_parameter, of_scipy, operand, with_params
from gradtape.ops.special.quadrature import in_blocks
from gradtape.ops.special.stirling import (
    complex_polygamma,
    polygamma_difference,
    real_polygamma,
)
from gradtape.ops.trigonometric import cos, sin
from gradtape.typing import Array, ArrayLike


def _polygamma_forward(xp: Any, x: Any, order: int) -> Any:
    if x.dtype.kind == "c":
        return complex_polygamma(xp, order, x)
    return narrowed(real_polygamma(xp, order, x), x)


def _polygamma_element(x: Any, order: int) -> Any:
    if order > 2:
        raise UnsupportedError(f"polygamma: no native code for order {order}")
    return scalar.trigamma(x) if order == 1 else scalar.tetragamma(x)


# d ψ⁽ⁿ⁾(x) = ψ⁽ⁿ⁺¹⁾(x)·dx
_polygamma: Callable[..., Any] = parametric(
    "polygamma",
    _polygamma_forward,
    lambda ct, _out, x, order: ct * _polygamma(x, order=order + 1),
    lower=_polygamma_element,
)


# d ψ(x) = ψ⁽¹⁾(x)·dx
@elementwise(
    special("digamma"),
    lambda ct, _out, x: ct * _polygamma(x, order=1),
    replaces=("scipy.special.psi",),
    lower=scalar.digamma,
)
def digamma(x: ArrayLike, /) -> Array:
    """Derivative of the logarithm of the gamma function.

    >>> gt.digamma(np.array([1.0, 2.0]))
    array([-0.57721566,  0.42278434])
    """


@public()
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
    if not isinstance(n, int | np.integer) or n < 0:
        raise ArgumentError(f"polygamma: came order {n!r}; needed a Python integer from 0")
    return digamma(x) if n == 0 else _polygamma(x, order=int(n))


# d log Γ(x) = ψ(x)·dx
@elementwise(
    special("gammaln"),
    lambda ct, _out, x: ct * digamma(x),
    replaces=("scipy.special.gammaln",),
    lower=scalar.lgamma,
)
def lgamma(x: ArrayLike, /) -> Array:
    """Logarithm of the absolute value of the gamma function.

    >>> gt.lgamma(np.array([1.0, 5.0]))
    array([0.        , 3.17805383])
    """


# d log Γ(z) = ψ(z)·dz, on the branch that is continuous off the negative axis
@elementwise(
    special("loggamma"),
    lambda ct, _out, z: ct * digamma(z),
    replaces=("scipy.special.loggamma",),
    # Of real numbers: the logarithm of a negative one is complex.
    lower=lambda x: scalar.where(x < 0, math.nan, scalar.lgamma(x)),
)
def loggamma(z: ArrayLike, /) -> Array:
    """Principal branch of the logarithm of the gamma function, of complex numbers too.

    >>> gt.special.loggamma(np.array([1.0, 5.0]))
    array([0.        , 3.17805383])
    """


# d Γ(x) = Γ(x)·ψ(x)·dx
@elementwise(
    special("gamma"),
    lambda ct, out, x: ct * (out * digamma(x)),
    replaces=("scipy.special.gamma",),
)
def gamma(x: ArrayLike, /) -> Array:
    """Gamma function, element by element.

    >>> gt.special.gamma(np.array([0.5, 5.0]))
    array([ 1.77245385, 24.        ])
    """


def _rgamma_partial(ct: Any, out: Any, x: Any) -> Any:
    if x.dtype.kind == "c":
        return ct * (-out * digamma(x))
    # 1/Γ(x) = Γ(1 − x)·sin(πx)/π has no poles for x < 1, and neither have its derivatives.
    low = x < 0.5
    t = where(low, x, 0.0)
    mirrored = cos(math.pi * t) - digamma(1.0 - t) * sin(math.pi * t) / math.pi
    return ct * where(low, gamma(1.0 - t) * mirrored, -out * digamma(where(low, 1.0, x)))


# d 1/Γ(x) = −ψ(x)/Γ(x)·dx
@elementwise(special("rgamma"), _rgamma_partial, replaces=("scipy.special.rgamma",))
def rgamma(x: ArrayLike, /) -> Array:
    """One over the gamma function, which is 0 at its poles.

    >>> gt.special.rgamma(np.array([-1.0, 5.0]))
    array([0.        , 0.04166667])
    """


@elementwise(
    special("gammasgn"),
    Zero("the sign of the gamma function is piecewise constant"),
    replaces=("scipy.special.gammasgn",),
)
def gammasgn(x: ArrayLike, /) -> Array:
    """Sign of the gamma function.

    >>> gt.special.gammasgn(np.array([-0.5, 5.0]))
    array([-1.,  1.])
    """


# ---- quotients ----------------------------------------------------------------------------------


def _step_forward(xp: Any, x: Any, step: Any, order: int) -> Any:
    return in_blocks(xp, functools.partial(polygamma_difference, xp, order), x, step)


# Δₙ = ψ⁽ⁿ⁾(x + s) − ψ⁽ⁿ⁾(x): dΔₙ = Δₙ₊₁·dx + ψ⁽ⁿ⁺¹⁾(x + s)·ds
polygamma_step: Callable[..., Any] = with_params(
    "polygamma_step",
    _step_forward,
    lambda ct, _out, x, step, order: ct * polygamma_step(x, step, order=order + 1),
    lambda ct, _out, x, step, order: ct * _polygamma(x + step, order=order + 1),
)


def digamma_step(x: Any, step: Any) -> Any:
    """ψ(x + step) − ψ(x), exact where both are close."""
    return polygamma_step(x, step, order=0)


# d Γ(z + m)/Γ(z) = out·((ψ(z + m) − ψ(z))·dz + ψ(z + m)·dm)
@elementwise(
    of_scipy("poch"),
    lambda ct, out, z, m: ct * (out * digamma_step(z, m)),
    lambda ct, out, z, m: ct * (out * digamma(z + m)),
    replaces=("scipy.special.poch",),
)
def poch(z: ArrayLike, m: ArrayLike, /) -> Array:
    """Rising factorial, gamma(z + m)/gamma(z).

    >>> gt.special.poch(np.array([1.0, 3.0]), 2.0)
    array([ 2., 12.])
    """


# d B(a, b) = B·((ψ(a) − ψ(a + b))·da + (ψ(b) − ψ(a + b))·db)
@elementwise(
    of_scipy("beta"),
    lambda ct, out, a, b: -ct * (out * digamma_step(a, b)),
    lambda ct, out, a, b: -ct * (out * digamma_step(b, a)),
    replaces=("scipy.special.beta",),
)
def beta(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Beta function, gamma(a)·gamma(b)/gamma(a + b).

    >>> gt.special.beta(np.array([1.0, 2.0]), 2.0)
    array([0.5       , 0.16666667])
    """


# d log|B(a, b)| = (ψ(a) − ψ(a + b))·da + (ψ(b) − ψ(a + b))·db
@elementwise(
    of_scipy("betaln"),
    lambda ct, _out, a, b: -ct * digamma_step(a, b),
    lambda ct, _out, a, b: -ct * digamma_step(b, a),
    replaces=("scipy.special.betaln",),
)
def betaln(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Logarithm of the absolute value of the beta function.

    >>> gt.special.betaln(np.array([1.0, 2.0]), 2.0)
    array([-0.69314718, -1.79175947])
    """


# d C(n, k) = C·((ψ(n + 1) − ψ(n − k + 1))·dn + (ψ(n − k + 1) − ψ(k + 1))·dk)
@elementwise(
    of_scipy("binom"),
    lambda ct, out, n, k: ct * (out * digamma_step(n - k + 1, k)),
    lambda ct, out, n, k: ct * (out * (digamma(n - k + 1) - digamma(k + 1))),
    replaces=("scipy.special.binom",),
)
def binom(n: ArrayLike, k: ArrayLike, /) -> Array:
    """Binomial coefficient of real arguments.

    >>> gt.special.binom(np.array([4.0, 0.5]), 2.0)
    array([ 6.   , -0.125])
    """


# dζ(x, q) = −x·ζ(x + 1, q)·dq
@elementwise(
    of_scipy("zeta"),
    in_parameter("zeta", "its first argument"),
    lambda ct, _out, x, q: -ct * (x * _zeta(x + 1, q)),
)
def hurwitz_zeta(x: ArrayLike, q: ArrayLike, /) -> Array:
    """Zeta function of Hurwitz, the sum of (k + q)^-x over k from 0.

    >>> gt.ops.special.gamma.hurwitz_zeta(2.0, np.array([1.0]))
    array([1.64493407])
    """


_zeta: Callable[..., Any] = hurwitz_zeta


@answers("scipy.special.zeta")
def zeta(x: ArrayLike, q: ArrayLike = None, /) -> Array:
    """Zeta function of Riemann, or with `q` of Hurwitz; differentiable in `q`.

    Raises:
        NotDifferentiableError: A derivative with respect to `x` was asked for.

    >>> gt.special.zeta(2.0, np.array([1.0, 2.0]))
    array([1.64493407, 0.64493407])
    """
    return hurwitz_zeta(x, 1.0 if q is None else q)


# ---- what these are used for --------------------------------------------------------------------


def multigammaln(a: ArrayLike, d: int, /) -> Array:
    """Logarithm of the multivariate gamma function of dimension `d`.

    Raises:
        ArgumentError: The dimension is not an integer from 1.

    >>> gt.special.multigammaln(np.array([2.0, 3.0]), 2)
    array([0.45158271, 1.55019499])
    """
    if not isinstance(d, int | np.integer) or d < 1:
        raise ArgumentError(f"multigammaln: came dimension {d!r}; needed an integer from 1")
    a = operand(a)
    total = lgamma(a)
    for k in range(1, int(d)):
        total = total + lgamma(a - 0.5 * k)
    return total + 0.25 * d * (d - 1) * math.log(math.pi)


def factorial(n: ArrayLike, /, exact: bool = False) -> Array:
    """Factorial of real arguments, gamma(n + 1), and 0 of negative ones.

    Args:
        n: Where to evaluate it.
        exact: Only False: integers of any size have no derivatives.

    Raises:
        UnsupportedError: `exact` is True.

    >>> gt.special.factorial(np.array([3.0, -1.0]))
    array([6., 0.])
    """
    _refuse_exact("factorial", exact)
    n = operand(n)
    below = n < 0
    return mask(gamma(where(below, 0, n) + 1.0), below ^ True)


def comb(n: ArrayLike, k: ArrayLike, /, *, exact: bool = False, repetition: bool = False) -> Array:
    """Number of ways to choose `k` of `n` things, of real arguments.

    Args:
        n: How many things there are.
        k: How many are chosen.
        exact: Only False: integers of any size have no derivatives.
        repetition: Whether a thing may be chosen again.

    Raises:
        UnsupportedError: `exact` is True.

    >>> gt.special.comb(np.array([4.0, 1.0]), 2.0)
    array([6., 0.])
    """
    _refuse_exact("comb", exact)
    n, k = operand(n), operand(k)
    if repetition:
        n = n + k - 1
    possible = (k <= n) & (n >= 0) & (k >= 0)
    return mask(binom(where(possible, n, 1.0), where(possible, k, 1.0)), possible)


def perm(n: ArrayLike, k: ArrayLike, /, exact: bool = False) -> Array:
    """Number of ways to arrange `k` of `n` things, of real arguments.

    Args:
        n: How many things there are.
        k: How many are arranged.
        exact: Only False: integers of any size have no derivatives.

    Raises:
        UnsupportedError: `exact` is True.

    >>> gt.special.perm(np.array([4.0, 1.0]), 2.0)
    array([12.,  0.])
    """
    _refuse_exact("perm", exact)
    n, k = operand(n), operand(k)
    possible = (k <= n) & (n >= 0) & (k >= 0)
    rise = poch(where(possible, n - k + 1, 1.0), where(possible, k, 1.0))
    return mask(rise, possible)


def _refuse_exact(name: str, exact: bool) -> None:
    if exact:
        raise UnsupportedError(
            f"{name}: came exact=True; integers of any size have no derivatives; use exact=False, "
            f"or scipy.special.{name} on numbers"
        )
