"""Further activation functions, under the names and with the kinks of `torch.nn.functional`.

The more common ones are in `ops.activation`.
"""

from __future__ import annotations

import math
from typing import Any

from gradtape.core import scalar
from gradtape.core.define import elementwise, elementwise_op
from gradtape.core.op import op_of
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.activation import sigmoid, softplus as softplus_of
from gradtape.ops.arguments import as_array, real_only
from gradtape.ops.checks import check_least, check_positive
from gradtape.ops.exponential import exp
from gradtape.ops.select import clip, mask, where
from gradtape.ops.shape import reshape
from gradtape.ops.trigonometric import tanh
from gradtape.typing import Array, ArrayLike

# Arguments are clipped to this size where a factor of them vanishes: 0·∞ would be NaN.
_FAR = 1000.0


# ---- pieces of straight lines -------------------------------------------------------------------


# d = dx/6 for −3 < x < 3; it passes at NaN
@elementwise(
    lambda xp, x: xp.minimum(xp.maximum(real_only("hardsigmoid", x) + 3.0, 0), 6) / 6,
    lambda ct, out, _x: mask(ct / 6, (out != 0) & (out != 1)),
    lower=scalar,
    bounded=True,
)
def hardsigmoid(x: ArrayLike, /) -> Array:
    """A sigmoid of straight lines: (x + 3)/6 between 0 and 1; the gradient is 0 at -3 and 3.

    >>> gt.nn.hardsigmoid(np.array([-4.0, 0.0, 1.5]))
    array([0.  , 0.5 , 0.75])
    """


def _hardswish_forward(xp: Any, x: Any) -> Any:
    # The factor is 0 from −3 on.
    return xp.maximum(real_only("hardswish", x), -_FAR) * xp.minimum(xp.maximum(x + 3.0, 0), 6) / 6


# d = (x/3 + ½)·dx for −3 < x < 3, 0 below and dx above
@elementwise(
    _hardswish_forward,
    lambda ct, _out, x: where(x <= -3, 0, where(x < 3, ct * (x / 3 + 0.5), ct)),
    lower=scalar,
    bounded=True,
)
def hardswish(x: ArrayLike, /) -> Array:
    """The array times its `hardsigmoid`.

    >>> gt.nn.hardswish(np.array([-4.0, 1.5, 4.0]))
    array([-0.   ,  1.125,  4.   ])
    """


# d = dx for low < x < high; it passes at NaN
_hardtanh = elementwise_op(
    "hardtanh",
    lambda xp, x, low, high: xp.minimum(xp.maximum(real_only("hardtanh", x), low), high),
    lambda ct, _out, x, low, high: mask(ct, ((x <= low) | (x >= high)) ^ True),
    lower=scalar,
    bounded=True,
)
hardtanh_op = op_of(_hardtanh)


def hardtanh(x: ArrayLike, /, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    """The array clipped to an interval; unlike that of `clip`, the gradient is 0 at its ends.

    Args:
        x: What to clip.
        min_val: The lower end.
        max_val: The upper end.

    Raises:
        ArgumentError: The lower end is above the upper one.

    >>> gt.nn.hardtanh(np.array([-3.0, 0.5, 3.0]))
    array([-1. ,  0.5,  1. ])
    """
    if not min_val <= max_val:
        raise ArgumentError(
            f"hardtanh: got min_val={min_val} and max_val={max_val}, expected a lower and an upper "
            "bound"
        )
    return _hardtanh(x, low=float(min_val), high=float(max_val))


# d = dx where x is above the threshold, or NaN
_threshold = elementwise_op(
    "threshold",
    lambda xp, x, threshold, value: xp.where(real_only("threshold", x) <= threshold, value, x),
    lambda ct, _out, x, threshold, value: mask(ct, (x <= threshold) ^ True),
    lower=scalar,
    bounded=True,
)


def threshold(x: ArrayLike, /, threshold: float, value: float) -> Array:
    """The array with a value in place of all elements that are not above a threshold.

    Args:
        x: Where to evaluate it.
        threshold: Elements above it stay.
        value: The replacement for the others.

    >>> gt.nn.threshold(np.array([1.0, 2.0, 3.0]), 2.0, 0.0)
    array([0., 0., 3.])
    """
    return _threshold(x, threshold=float(threshold), value=float(value))


def _outside(ct: Any, _out: Any, x: Any, lambd: float) -> Any:
    return mask(ct, ((x >= -lambd) & (x <= lambd)) ^ True)


# d = dx for |x| > λ, or NaN
_softshrink = elementwise_op(
    "softshrink",
    lambda xp, x, lambd: x - xp.minimum(xp.maximum(real_only("softshrink", x), -lambd), lambd),
    _outside,
    lower=scalar,
    bounded=True,
)


def softshrink(x: ArrayLike, /, lambd: float = 0.5) -> Array:
    """The array with every element moved towards 0 by `lambd`, but not beyond 0.

    Args:
        x: What to shrink.
        lambd: By how much; 0 or more.

    Raises:
        ArgumentError: `lambd` is negative.

    >>> gt.nn.softshrink(np.array([-2.0, 0.3, 2.0]))
    array([-1.5,  0. ,  1.5])
    """
    check_least("softshrink", 0, lambd=lambd)
    return _softshrink(x, lambd=float(lambd))


# d = dx for |x| > λ, or NaN
_hardshrink = elementwise_op(
    "hardshrink",
    lambda xp, x, lambd: xp.where((real_only("hardshrink", x) >= -lambd) & (x <= lambd), 0.0, x),
    _outside,
    lower=scalar,
    bounded=True,
)


def hardshrink(x: ArrayLike, /, lambd: float = 0.5) -> Array:
    """The array with 0 in place of all elements whose absolute value is at most `lambd`.

    Args:
        x: What to shrink.
        lambd: The largest absolute value that becomes 0.

    >>> gt.nn.hardshrink(np.array([-2.0, 0.3, 2.0]))
    array([-2.,  0.,  2.])
    """
    return _hardshrink(x, lambd=float(lambd))


def tanhshrink(x: ArrayLike, /) -> Array:
    """The array less its hyperbolic tangent.

    >>> gt.nn.tanhshrink(np.array([0.0, 1.0]))
    array([0.        , 0.23840584])
    """
    x = as_array(x)
    return x - tanh(x)


# ---- slopes below 0 that are given --------------------------------------------------------------


# d = dx for x > 0; else w·dx + x·dw
sloped = elementwise_op(
    "prelu",
    lambda xp, x, weight: xp.where(real_only("prelu", x) > 0, x, weight * x),
    lambda ct, _out, x, weight: where(x > 0, ct, weight * ct),
    lambda ct, _out, x, _weight: mask(ct * x, (x > 0) ^ True),
    lower=scalar,
)


def prelu(x: ArrayLike, /, weight: ArrayLike) -> Array:
    """The array with its negative elements multiplied by slopes that are learned.

    Args:
        x: Of shape (samples, channels, …), or any other if there is only one slope.
        weight: One slope, or one for each channel.

    Raises:
        ShapeError: There is not one slope, and not one for each channel.

    >>> gt.nn.prelu(np.array([-2.0, 3.0]), np.array([0.25]))
    array([-0.5,  3. ])
    """
    x, weight = as_array(x), as_array(weight)
    shape, slopes = x.shape, weight.shape
    if math.prod(slopes) == 1:
        return sloped(x, reshape(weight, ()))
    channels = 1 if len(shape) < 2 else shape[1]
    if len(slopes) != 1 or slopes[0] != channels:
        raise ShapeError(
            f"prelu: got {shape} and a weight of shape {slopes}, expected one slope, or "
            f"{channels}: one for each channel, which are along axis 1"
        )
    return sloped(x, reshape(weight, (channels, *(1,) * (len(shape) - 2))))


# ---- smooth bends -------------------------------------------------------------------------------


_ALPHA, _SCALE = 1.6732632423543772, 1.0507009873554805


def _selu_forward(xp: Any, x: Any) -> Any:
    return _SCALE * xp.maximum(real_only("selu", x), 0) + (_SCALE * _ALPHA) * xp.expm1(
        xp.minimum(x, 0)
    )


# d = λ·dx for x > 0, λα·eˣ·dx else
@elementwise(
    _selu_forward,
    lambda ct, _out, x: where(x <= 0, ct * (_SCALE * _ALPHA * exp(mask(x, x <= 0))), ct * _SCALE),
    lower=scalar,
)
def selu(x: ArrayLike, /) -> Array:
    """A scaled `elu` that keeps mean 0 and variance 1 from layer to layer.

    >>> gt.nn.selu(np.array([-1.0, 1.0]))
    array([-1.11133074,  1.05070099])
    """


# d = dx for x > 0, e^(x/α)·dx else
_celu = elementwise_op(
    "celu",
    lambda xp, x, alpha: (
        xp.maximum(real_only("celu", x), 0) + alpha * xp.expm1(xp.minimum(x, 0) / alpha)
    ),
    lambda ct, _out, x, alpha: where(x <= 0, ct * exp(mask(x, x <= 0) / alpha), ct),
    lower=scalar,
)


def celu(x: ArrayLike, /, alpha: float = 1.0) -> Array:
    """The array with its negative elements bent to alpha·(exp(x/alpha) - 1), smoothly at 0.

    Args:
        x: Where to evaluate it.
        alpha: The limit for x → −∞, with opposite sign.

    Raises:
        ArgumentError: `alpha` is not positive.

    >>> gt.nn.celu(np.array([-1.0, 2.0]), 2.0)
    array([-0.78693868,  2.        ])
    """
    check_positive("celu", alpha=alpha)
    return _celu(x, alpha=float(alpha))


def _mish_forward(xp: Any, x: Any) -> Any:
    bend = xp.tanh(xp.maximum(real_only("mish", x), 0) + xp.log1p(xp.exp(-xp.abs(x))))
    return xp.maximum(x, -_FAR) * bend


def _mish_partial(ct: Any, _out: Any, x: Any) -> Any:
    t, s = tanh(softplus_of(x)), sigmoid(x)
    return ct * (t + clip(x, -_FAR, _FAR) * (s * (1 - t * t)))


# With t = tanh(log(1 + eˣ)): d x·t = (t + x·(1 − t²)·σ)·dx
@elementwise(_mish_forward, _mish_partial, lower=scalar)
def mish(x: ArrayLike, /) -> Array:
    """The array times the hyperbolic tangent of its `softplus`.

    >>> gt.nn.mish(np.array([-np.inf, 0.0, 1.0]))
    array([-0.        ,  0.        ,  0.86509839])
    """


def softplus(x: ArrayLike, /, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """A smooth relu, log(1 + exp(beta·x))/beta, and x itself above a threshold.

    Args:
        x: Where to evaluate it.
        beta: How sharp the bend is.
        threshold: Where beta·x is above it, the result is x.

    Raises:
        ArgumentError: `beta` is not a positive number.

    >>> gt.nn.softplus(np.array([-1000.0, 0.0, 1000.0]))
    array([0.00000000e+00, 6.93147181e-01, 1.00000000e+03])
    """
    return softplus_of(x, beta, threshold)


# ---- one divided by the root --------------------------------------------------------------------


# d x^(−½) = −½·x^(−3/2)·dx
@elementwise(
    lambda xp, x: 1 / xp.sqrt(x),
    lambda ct, out, _x: -0.5 * ct * (out * out * out),
    lower=scalar,
)
def rsqrt(x: ArrayLike, /) -> Array:
    """One divided by the square root of each element.

    >>> gt.nn.rsqrt(np.array([4.0, 0.25]))
    array([0.5, 2. ])
    """
