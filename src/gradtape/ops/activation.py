"""Activation functions of neural networks: each one op with a rule that does not overflow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.define import elementwise, elementwise_op
from gradtape.core.fast import F32, F64
from gradtape.core.op import op_of
from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_number, real_only
from gradtape.ops.arithmetic import sign
from gradtape.ops.cast import conj, real
from gradtape.ops.erf import ndtr, special
from gradtape.ops.exponential import exp, expm1
from gradtape.ops.select import clip, mask, where
from gradtape.ops.trigonometric import tanh
from gradtape.typing import Array, ArrayLike

# Beyond this, products of x with a vanishing tail are 0 in every dtype; infinities are clipped
# to it first, so that the product is not NaN.
_FAR = 1000.0

_expit, _ndtr = special("expit"), special("ndtr")


# ---- sigmoid and softplus -----------------------------------------------------------------------


def _sigmoid_forward(xp: Any, x: Any) -> Any:
    # NumPy's exponential is vectorized, but four calls are slower than one on small arrays.
    if type(x) is np.ndarray and x.size > 512 and (x.dtype is F64 or x.dtype is F32):
        with np.errstate(over="ignore"):
            return 1 / (1 + np.exp(-x))
    return _expit(xp, x)


# d σ(x) = σ·(1 − σ)·dx
@elementwise(_sigmoid_forward, lambda ct, out, _x: ct * (out - out * out), lower=scalar.sigmoid)
def sigmoid(x: ArrayLike, /) -> Array:
    """The logistic function, 1/(1 + exp(-x)).

    >>> gt.sigmoid(np.array([-1000.0, 0.0, 1.0]))
    array([0.        , 0.5       , 0.73105858])
    """


def _softplus_forward(xp: Any, x: Any, beta: float, threshold: float) -> Any:
    scaled = real_only("softplus", x if beta == 1 else x * beta)
    result = xp.maximum(scaled, 0) + xp.log1p(xp.exp(-xp.abs(scaled)))
    result = result if beta == 1 else result / beta
    return result if threshold == math.inf else xp.where(scaled > threshold, x, result)


def _softplus_partial(ct: Any, _out: Any, x: Any, beta: float, threshold: float) -> Any:
    scaled = x if beta == 1 else x * beta
    slope = ct * sigmoid(scaled)
    return slope if threshold == math.inf else where(scaled > threshold, ct, slope)


# d log(1 + exp(βx))/β = σ(βx)·dx, and dx where βx is above the threshold
_softplus = elementwise_op(
    "softplus",
    _softplus_forward,
    _softplus_partial,
    lower=scalar,
)


softplus_op = op_of(_softplus)


def softplus(x: ArrayLike, /, beta: float = 1.0, threshold: float = math.inf) -> Array:
    """A smooth relu, log(1 + exp(beta·x))/beta.

    Args:
        x: Where to evaluate it.
        beta: How sharp the bend is.
        threshold: Where beta·x is above it, the result is x itself. Nothing overflows without it;
            `gt.nn.softplus` has the threshold of PyTorch.

    Raises:
        ArgumentError: `beta` is not a positive number.

    >>> gt.softplus(np.array([-1000.0, 0.0, 1000.0]))
    array([0.00000000e+00, 6.93147181e-01, 1.00000000e+03])
    """
    beta = beta if type(beta) is float else as_number(beta, "softplus", "beta")
    if not beta > 0:
        raise ArgumentError(f"softplus: got beta={beta}, expected a positive number")
    if type(threshold) is not float:
        threshold = as_number(threshold, "softplus", "threshold")
    return _softplus(x, beta=beta, threshold=threshold)


# y = log σ(x): dy = (1 − σ)·dx = (1 − eʸ)·dx
@elementwise(
    lambda xp, x: xp.minimum(real_only("log_sigmoid", x), 0) - xp.log1p(xp.exp(-xp.abs(x))),
    lambda ct, out, _x: -ct * expm1(out),
    lower=scalar,
)
def log_sigmoid(x: ArrayLike, /) -> Array:
    """Logarithm of the logistic function, exact in both tails.

    >>> gt.log_sigmoid(np.array([-1000.0, 0.0]))
    array([-1.00000000e+03, -6.93147181e-01])
    """


# ---- relu and relatives -------------------------------------------------------------------------


# d relu(x) = [x > 0]·dx; it passes at NaN, as in PyTorch
@elementwise(
    lambda xp, x: xp.maximum(x, 0),
    lambda ct, out, _x: mask(ct, out != 0),
    fast=lambda x: np.maximum(x, 0),
    lower=scalar,
    bounded=True,
)
def relu(x: ArrayLike, /) -> Array:
    """The array with its negative elements set to 0; the gradient at 0 is 0.

    >>> gt.relu(np.array([-1.0, 2.0]))
    array([0., 2.])
    """


# d relu6(x) = [0 < x < 6]·dx; it passes at NaN
@elementwise(
    lambda xp, x: xp.minimum(xp.maximum(real_only("relu6", x), 0), 6),
    lambda ct, out, _x: mask(ct, (out != 0) & (out != 6)),
    lower=scalar,
    bounded=True,
)
def relu6(x: ArrayLike, /) -> Array:
    """The array clipped to the interval from 0 to 6; the gradient is 0 at both ends.

    >>> gt.relu6(np.array([-1.0, 2.0, 9.0]))
    array([0., 2., 6.])
    """


# d leaky(x) = dx for x > 0, slope·dx else
_leaky_relu = elementwise_op(
    "leaky_relu",
    lambda xp, x, slope: xp.where(real_only("leaky_relu", x) > 0, x, slope * x),
    lambda ct, _out, x, slope: where(x > 0, ct, slope * ct if slope else 0),
    lower=scalar,
    bounded=True,
)


def leaky_relu(x: ArrayLike, /, negative_slope: float = 0.01) -> Array:
    """The array with its negative elements multiplied by a slope.

    Args:
        x: Where to evaluate it.
        negative_slope: The slope below and at 0.

    >>> gt.leaky_relu(np.array([-1.0, 2.0]))
    array([-0.01,  2.  ])
    """
    if type(negative_slope) is not float:
        negative_slope = as_number(negative_slope, "leaky_relu", "negative_slope")
    return _leaky_relu(x, slope=negative_slope)


# d elu(x) = α·eˣ·dx for x ≤ 0, dx else; not out + α, which cancels far out
_elu = elementwise_op(
    "elu",
    lambda xp, x, alpha: xp.maximum(real_only("elu", x), 0) + alpha * xp.expm1(xp.minimum(x, 0)),
    lambda ct, _out, x, alpha: where(x <= 0, ct * (alpha * exp(mask(x, x <= 0))), ct),
    lower=scalar,
)


def elu(x: ArrayLike, /, alpha: float = 1.0) -> Array:
    """The array with its negative elements bent to alpha·(exp(x) - 1).

    Args:
        x: Where to evaluate it.
        alpha: The limit for x → −∞, with opposite sign.

    >>> gt.elu(np.array([-1.0, 2.0]))
    array([-0.63212056,  2.        ])
    """
    return _elu(x, alpha=alpha if type(alpha) is float else as_number(alpha, "elu", "alpha"))


# ---- silu, gelu, softsign -----------------------------------------------------------------------


def _silu_partial(ct: Any, _out: Any, x: Any) -> Any:
    s = sigmoid(x)
    return ct * (s + clip(x, -_FAR, _FAR) * (s - s * s))


# d x·σ(x) = (σ + x·σ·(1 − σ))·dx
@elementwise(
    lambda xp, x: xp.maximum(x, -_FAR) * _sigmoid_forward(xp, x),
    _silu_partial,
    lower=lambda x: scalar.maximum(x, -_FAR) * scalar.sigmoid(x),
)
def silu(x: ArrayLike, /) -> Array:
    """The array times its logistic function.

    >>> gt.silu(np.array([-np.inf, 0.0, 1.0]))
    array([-0.        ,  0.        ,  0.73105858])
    """


_BEND = math.sqrt(2.0 / math.pi)
_NORMAL_PEAK = 1.0 / math.sqrt(2.0 * math.pi)
_CUBIC = 0.044715


def _gelu_forward(xp: Any, x: Any, approximate: str) -> Any:
    bounded = xp.maximum(real_only("gelu", x), -_FAR)
    if approximate == "none":
        return bounded * (scalar.ndtr(x) if xp is scalar else _ndtr(xp, x))
    near = xp.minimum(bounded, _FAR)
    return bounded * (0.5 + 0.5 * xp.tanh(_BEND * (near + _CUBIC * (near * near * near))))


def _gelu_partial(ct: Any, _out: Any, x: Any, approximate: str) -> Any:
    near = clip(x, -_FAR, _FAR)
    square = near * near
    if approximate == "none":
        return ct * (ndtr(x) + near * exp(-0.5 * square) * _NORMAL_PEAK)
    t = tanh(_BEND * near * (1 + _CUBIC * square))
    slope = _BEND * (1 + 3.0 * _CUBIC * square)
    return ct * (0.5 + 0.5 * (t + near * (1 - t * t) * slope))


# d x·Φ(x) = (Φ(x) + x·φ(x))·dx; or with (1 + tanh u)/2 for Φ, u = √(2/π)·(x + 0.044715·x³)
_gelu = elementwise_op("gelu", _gelu_forward, _gelu_partial, lower=scalar)


def gelu(x: ArrayLike, /, *, approximate: str = "none") -> Array:
    """The array times the normal distribution function of it.

    Args:
        x: Where to evaluate it.
        approximate: "none", or "tanh" for a cheaper approximation of the distribution function.

    Raises:
        ArgumentError: `approximate` is something else.

    >>> gt.gelu(np.array([-np.inf, 0.0, 1.0]))
    array([-0.        ,  0.        ,  0.84134475])
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f'gelu: got approximate={approximate!r}, expected "none" or "tanh"')
    return _gelu(x, approximate=approximate)


def _softsign_partial(ct: Any, out: Any, _x: Any) -> Any:
    rest = 1 - abs(out)
    if out.dtype.kind != "c":
        return ct * (rest * rest)
    return rest * (ct - out * real(conj(sign(out)) * ct))


# d x/(1 + |x|) = (1 − |out|)²·dx; of complex numbers (1 − |out|)·(dx − out·Re(s̄·dx)) with
# s = x/|x|, a map that is its own adjoint
@elementwise(
    lambda xp, x: x / (1 + xp.abs(x)),
    _softsign_partial,
    vjps=(_softsign_partial,),
    jvp=lambda tangents, out, _x: _softsign_partial(tangents[0], out, _x),
    lower=scalar,
)
def softsign(x: ArrayLike, /) -> Array:
    """The array divided by one plus its absolute value.

    >>> gt.softsign(np.array([-1.0, 3.0]))
    array([-0.5 ,  0.75])
    """
