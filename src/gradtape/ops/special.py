"""Special functions; the values come from SciPy, which is loaded when one is first computed."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.define import elementwise, public
from gradtape.errors import ArgumentError
from gradtape.ops import lowered
from gradtape.ops.exponential import exp
from gradtape.ops.parametric import parametric
from gradtape.ops.select import mask, where
from gradtape.typing import Array, ArrayLike

_F16 = np.dtype(np.float16)
_ROOT_PI = math.sqrt(math.pi)
_ROOT_2_PI = math.sqrt(2.0 * math.pi)


@functools.cache
def scipy_special(xp: Any) -> Any:
    """The module of special functions that goes with an array module."""
    if xp is not np:
        return importlib.import_module("cupyx.scipy.special")
    import scipy.special

    return scipy.special


def special(name: str) -> Callable[[Any, Any], Any]:
    """The forward of a special function of one array."""
    return lambda xp, x: _narrowed(getattr(scipy_special(xp), name)(x), x)


def _narrowed(out: Any, x: Any) -> Any:
    """A result of SciPy, which has no float16, in float16 if the argument was."""
    return out.astype(_F16) if getattr(x, "dtype", None) is _F16 else out


# d erf x = 2/√π·exp(−x²)·dx
@elementwise(
    special("erf"),
    lambda ct, _out, x: ct * (2.0 / _ROOT_PI * exp(-x * x)),
    replaces=("scipy.special.erf",),
    lower=scalar.erf,
)
def erf(x: ArrayLike, /) -> Array:
    """Error function, element by element.

    >>> gt.erf(np.array([0.0, 1.0]))
    array([0.        , 0.84270079])
    """


# d erfc x = −2/√π·exp(−x²)·dx
@elementwise(
    special("erfc"),
    lambda ct, _out, x: ct * (-2.0 / _ROOT_PI * exp(-x * x)),
    replaces=("scipy.special.erfc",),
    lower=scalar.erfc,
)
def erfc(x: ArrayLike, /) -> Array:
    """One minus the error function, exact for large arguments too.

    >>> gt.erfc(np.array([0.0, 1.0]))
    array([1.        , 0.15729921])
    """


# y = erf⁻¹(x): dy = √π/2·exp(y²)·dx
@elementwise(
    special("erfinv"),
    lambda ct, out, _x: ct * (_ROOT_PI / 2.0 * exp(out * out)),
    replaces=("scipy.special.erfinv",),
)
def erfinv(x: ArrayLike, /) -> Array:
    """Inverse of the error function, for arguments from -1 to 1.

    >>> gt.erfinv(np.array([0.0, 0.5]))
    array([0.        , 0.47693628])
    """


# d Φ(x) = exp(−x²/2)/√(2π)·dx
@elementwise(
    special("ndtr"),
    lambda ct, _out, x: ct * (exp(-0.5 * x * x) / _ROOT_2_PI),
    replaces=("scipy.special.ndtr",),
    lower=lowered.ndtr,
)
def ndtr(x: ArrayLike, /) -> Array:
    """Cumulative distribution function of the standard normal distribution.

    >>> gt.ndtr(np.array([0.0, 1.0]))
    array([0.5       , 0.84134475])
    """


def _polygamma_forward(xp: Any, x: Any, order: int) -> Any:
    # ψ⁽ⁿ⁾(x) = (−1)ⁿ⁺¹·n!·ζ(n + 1, x)
    sign = 1.0 if order % 2 else -1.0
    return _narrowed(sign * math.factorial(order) * scipy_special(xp).zeta(order + 1, x), x)


# d ψ⁽ⁿ⁾(x) = ψ⁽ⁿ⁺¹⁾(x)·dx
_polygamma: Callable[..., Any] = parametric(
    "polygamma",
    _polygamma_forward,
    lambda ct, _out, x, order: ct * _polygamma(x, order=order + 1),
)


# d ψ(x) = ψ⁽¹⁾(x)·dx
@elementwise(
    special("digamma"),
    lambda ct, _out, x: ct * _polygamma(x, order=1),
    replaces=("scipy.special.psi",),
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
)
def lgamma(x: ArrayLike, /) -> Array:
    """Logarithm of the absolute value of the gamma function.

    >>> gt.lgamma(np.array([1.0, 5.0]))
    array([0.        , 3.17805383])
    """


def _xlogy_forward(xp: Any, x: Any, y: Any) -> Any:
    # SciPy's ufuncs take Python's numbers for float64; here they are as weak as everywhere.
    dtype = xp.result_type(x, y)
    x, y = (v if hasattr(v, "dtype") else xp.asarray(v, dtype) for v in (x, y))
    out = scipy_special(xp).xlogy(x, y)
    return out.astype(_F16) if dtype == _F16 else out


def _xlogy_by_x(ct: Any, _out: Any, x: Any, y: Any) -> Any:
    flat = (x == 0) & (y <= 0)
    return mask(xlogy(ct, y if isinstance(y, int | float) else where(flat, 1, y)), flat ^ True)


def _xlogy_by_y(ct: Any, _out: Any, x: Any, y: Any) -> Any:
    flat = (x == 0) & (y <= 0)
    return mask(ct * (x / where(flat, 1, y)), flat ^ True)


# d x·log y = log y·dx + x/y·dy; both 0 where log y does not exist and x = 0 makes the function 0
@elementwise(
    _xlogy_forward,
    _xlogy_by_x,
    _xlogy_by_y,
    replaces=("scipy.special.xlogy",),
    lower=lowered.xlogy,
)
def xlogy(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The first array times the logarithm of the second, 0 where the first is 0.

    >>> gt.xlogy(np.array([0.0, 2.0]), np.array([0.0, 1.0]))
    array([0., 0.])
    """
