"""The error function and its kin; SciPy, which has the values, is loaded when one is computed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.define import elementwise
from gradtape.locks import load
from gradtape.ops.exponential import exp
from gradtape.typing import Array, ArrayLike

F16 = np.dtype(np.float16)
_ROOT_PI = math.sqrt(math.pi)
_NORMAL_PEAK = 1.0 / math.sqrt(2.0 * math.pi)


@functools.cache
def scipy_special(xp: Any) -> Any:
    """The module of special functions that goes with an array module."""
    return load("scipy.special" if xp is np else "cupyx.scipy.special")


def special(name: str) -> Callable[[Any, Any], Any]:
    """The forward of a special function of one array."""
    return lambda xp, x: narrowed(getattr(scipy_special(xp), name)(x), x)


def narrowed(out: Any, x: Any) -> Any:
    """A result of SciPy, which has no float16, in float16 if the argument was."""
    return out.astype(F16) if getattr(x, "dtype", None) == F16 else out


# d erf x = 2/√π·exp(−x²)·dx
@elementwise(
    special("erf"),
    lambda ct, _out, x: ct * (2.0 / _ROOT_PI * exp(-x * x)),
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
    lower=scalar.erfinv,
)
def erfinv(x: ArrayLike, /) -> Array:
    """Inverse of the error function, for arguments from -1 to 1.

    >>> gt.erfinv(np.array([0.0, 0.5]))
    array([0.        , 0.47693628])
    """


# d Φ(x) = exp(−x²/2)/√(2π)·dx
@elementwise(
    special("ndtr"),
    lambda ct, _out, x: ct * (exp(-0.5 * x * x) * _NORMAL_PEAK),
    lower=scalar.ndtr,
)
def ndtr(x: ArrayLike, /) -> Array:
    """Cumulative distribution function of the standard normal distribution.

    >>> gt.ndtr(np.array([0.0, 1.0]))
    array([0.5       , 0.84134475])
    """
