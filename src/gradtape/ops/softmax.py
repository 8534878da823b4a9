"""Sums of exponentials that do not overflow: logsumexp, softmax, log_softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.core.op import Facts
from gradtape.ops import array_functions
from gradtape.ops.arguments import real_only
from gradtape.ops.exponential import exp
from gradtape.ops.reduce import (
    Axes,
    count_over,
    prepared,
    reduced_shape,
    reduction,
    sum_forward,
    sum_over,
)
from gradtape.typing import Array, ArrayLike, Axis


def _float(x: Any) -> Any:
    return x.astype(np.float64) if x.dtype.kind in "biu" else x


def _infer_float(x: Aval, axis: Axes, **_params: Any) -> Aval:
    return Aval(x.shape, np.dtype(np.float64) if x.dtype.kind in "biu" else x.dtype)


def _largest(xp: Any, x: Any, axis: Axes) -> Any:
    """The largest elements along `axis`, kept as axes of size 1; −inf if there are none."""
    if xp is np:
        return np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)
    if count_over(x.shape, axis) == 0:  # other modules lack `initial`
        return sum_forward(xp, x, axis, True) - np.inf
    return xp.max(x, axis=axis, keepdims=True)


def _finite(xp: Any, top: Any) -> bool:
    """Whether all of them are known to be finite."""
    if xp is not np:
        return False
    return math.isfinite(top.item()) if top.size == 1 else bool(np.isfinite(top).all())


def _prepared(name: str, x: ArrayLike, axis: Axis) -> tuple[Array, Axes]:
    x, axes = prepared(name, x, axis)
    return real_only(name, x), axes


# ---- softmax ------------------------------------------------------------------------------------


def softmax_forward(xp: Any, x: Any, axis: Axes, limits: bool) -> Any:
    """The forward of `softmax_over`; a new array."""
    x = _float(x)
    top = _largest(xp, x, axis)
    if not limits or _finite(xp, top):
        parts = xp.exp(x - top)
        return parts / sum_forward(xp, parts, axis, True)
    with np.errstate(all="ignore"):
        parts = xp.where(top == np.inf, x == np.inf, xp.exp(x - top)).astype(x.dtype)
        shares = parts / sum_forward(xp, parts, axis, True)
    return xp.where(top == -np.inf, 0, shares)


# With p = softmax(x): dp = p·(dx − Σ p·dx), a symmetric map. `limits` decides on infinite
# arguments: shares among those that are +inf, and 0 if all are −inf, instead of NaN.
softmax_over = general(
    "softmax",
    softmax_forward,
    infer=_infer_float,
    vjps=(
        lambda ct, out, _x, axis, limits: out * (ct - sum_over(ct * out, axis=axis, keepdims=True)),
    ),
    self_adjoint=True,
    kind="axiswise",
    facts=Facts(layout="kept"),
    lower=array_functions,
)


def softmax(x: ArrayLike, /, axis: Axis = -1) -> Array:
    """Exponentials divided by their sum along an axis: positive shares that add up to 1.

    Args:
        x: The logits.
        axis: Along which axis (or axes) the shares add up to 1.

    Raises:
        AxisError: There is no such axis.

    >>> gt.softmax(np.zeros(4))
    array([0.25, 0.25, 0.25, 0.25])
    """
    x, axes = _prepared("softmax", x, axis)
    return softmax_over(x, axis=axes, limits=False)


# ---- log_softmax --------------------------------------------------------------------------------


def _logsoftmax_forward(xp: Any, x: Any, axis: Axes) -> Any:
    x = _float(x)
    down = x - _largest(xp, x, axis)
    return down - xp.log(sum_forward(xp, xp.exp(down), axis, True))


# With p = exp(out): d out = dx − Σ p·dx; transpose: ct − p·Σ ct
_log_softmax = general(
    "log_softmax",
    _logsoftmax_forward,
    infer=_infer_float,
    vjps=(lambda ct, out, _x, axis: ct - exp(out) * sum_over(ct, axis=axis, keepdims=True),),
    jvp=lambda tangents, out, _x, axis: (
        tangents[0] - sum_over(exp(out) * tangents[0], axis=axis, keepdims=True)
    ),
    kind="axiswise",
    facts=Facts(layout="kept"),
    lower=array_functions,
)


def log_softmax(x: ArrayLike, /, axis: Axis = -1) -> Array:
    """Logarithm of `softmax`, exact where softmax itself would underflow to 0.

    Args:
        x: The logits.
        axis: Along which axis (or axes) the exponentials add up to 1.

    Raises:
        AxisError: There is no such axis.

    >>> gt.log_softmax(np.array([0.0, -1000.0]))
    array([    0., -1000.])
    """
    x, axes = _prepared("log_softmax", x, axis)
    return _log_softmax(x, axis=axes)


# ---- logsumexp ----------------------------------------------------------------------------------


def logsumexp_forward(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    x = _float(x)
    top = _largest(xp, x, axis)
    if _finite(xp, top):
        out = xp.log(sum_forward(xp, xp.exp(x - top), axis, True)) + top
    else:
        top = xp.where(xp.isfinite(top), top, 0)
        with np.errstate(all="ignore"):
            out = xp.log(sum_forward(xp, xp.exp(x - top), axis, True)) + top
    return out if keepdims else out.reshape(reduced_shape(x.shape, axis, False))[()]


def _infer_logsumexp(x: Aval, axis: Axes, keepdims: bool) -> Aval:
    return Aval(reduced_shape(x.shape, axis, keepdims), _infer_float(x, axis).dtype)


# d logsumexp(x) = Σ softmax(x)·dx
_logsumexp = reduction(
    "logsumexp",
    logsumexp_forward,
    lambda _out, x, axis, keepdims: softmax_over(x, axis=axis, limits=True),
    infer=_infer_logsumexp,
    lower=array_functions,
)


def logsumexp(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """Logarithm of the sum of exponentials, over all or the given axes, without overflow.

    Infinite elements: those that are +inf share the gradient; it is 0 if all are −inf.

    Args:
        x: The exponents.
        axis: One or several axes; None takes all of them.
        keepdims: Whether the reduced axes stay, with size 1.

    Raises:
        AxisError: There is no such axis.

    >>> gt.logsumexp(np.array([1000.0, 1000.0]))
    np.float64(1000.6931471805599)
    """
    x, axes = _prepared("logsumexp", x, axis)
    return _logsumexp(x, axis=axes, keepdims=bool(keepdims))
