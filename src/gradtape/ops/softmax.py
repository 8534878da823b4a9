"""Sums of exponentials that do not overflow: logsumexp, softmax, log_softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_along_axis
from gradtape.core.define import general
from gradtape.core.op import Facts
from gradtape.errors import DTypeError, UnsupportedError
from gradtape.ops import lowered
from gradtape.ops.arguments import refuse
from gradtape.ops.cast import astype
from gradtape.ops.comparison import isfinite
from gradtape.ops.exponential import exp, log
from gradtape.ops.reduce import (
    Axes,
    beside,
    count_over,
    floats,
    keep_axes,
    max_over,
    prepared,
    reduced_shape,
    sum_forward,
    sum_over,
)
from gradtape.ops.select import where
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike, Axis


def _float(x: Any) -> Any:
    return x.astype(np.float64) if x.dtype.kind in "biu" else x


def _infer_float(x: Aval, axis: Axes, **_params: Any) -> Aval:
    return Aval(x.shape, np.dtype(np.float64) if x.dtype.kind in "biu" else x.dtype)


def _largest(xp: Any, x: Any, axis: Axes) -> Any:
    """The largest elements along `axis`, kept as axes of size 1; −inf if there are none."""
    if xp is np:
        return np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)
    if count_over(x.shape, axis) == 0:  # CuPy's maximum has no value to start from
        return xp.full(keep_axes(x.shape, axis), -np.inf, x.dtype)
    return xp.max(x, axis=axis, keepdims=True)


def _finite(xp: Any, top: Any) -> bool:
    return math.isfinite(top.item()) if top.size == 1 else bool(xp.isfinite(top).all())


def _top(x: Any, axis: Axes) -> Any:
    """`_largest` of anything, written with ops."""
    if count_over(x.shape, axis) == 0:
        raise UnsupportedError("no native code for the largest of no elements")
    return max_over(x, axis=axis, keepdims=True)


def _prepared(name: str, x: ArrayLike, axis: Axis) -> tuple[Array, Axes]:
    x, axes = prepared(name, x, axis, None, {})
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: got {x.dtype}, expected real numbers")
    return x, axes


# ---- softmax ------------------------------------------------------------------------------------


def _softmax_forward(xp: Any, x: Any, axis: Axes, limits: bool) -> Any:
    x = _float(x)
    top = _largest(xp, x, axis)
    if not limits or _finite(xp, top):
        parts = xp.exp(x - top)
        return parts / sum_forward(xp, parts, axis, True)
    with np.errstate(all="ignore"):
        parts = xp.where(top == np.inf, x == np.inf, xp.exp(x - top)).astype(x.dtype)
        shares = parts / sum_forward(xp, parts, axis, True)
    return xp.where(top == -np.inf, 0, shares)


def _softmax_composition(x: Any, axis: Axes, limits: bool) -> Any:
    x = floats(x)
    top = _top(x, axis)
    parts = exp(x - top)
    if limits:
        parts = where(top == math.inf, astype(x == math.inf, x.dtype), parts)
    shares = parts / sum_over(parts, axis=axis, keepdims=True)
    return where(top == -math.inf, 0, shares) if limits else shares


def _softmax_rule(change: Any, out: Any, axis: Axes) -> Any:
    return out * (change - sum_over(change * out, axis=axis, keepdims=True))


# With p = softmax(x): dp = p·(dx − Σ p·dx), a symmetric map. `limits` decides on infinite
# arguments: shares among those that are +inf, and 0 if all are −inf, instead of NaN.
softmax_over = general(
    "softmax",
    _softmax_forward,
    infer=_infer_float,
    vjps=(lambda ct, out, _x, axis, limits: _softmax_rule(ct, out, axis),),
    jvp=lambda tangents, out, _x, axis, limits: _softmax_rule(tangents[0], out, axis),
    batch=batch_along_axis,
    kind="axiswise",
    facts=Facts(layout="kept"),
    lower=lowered.composite(_softmax_composition),
)


def softmax(x: ArrayLike, /, axis: Axis = -1, **unsupported: Any) -> Array:
    """Exponentials divided by their sum along an axis: positive shares that add up to 1.

    Args:
        x: The logits.
        axis: Along which axis (or axes) the shares add up to 1.
        **unsupported: Other libraries' options, which raise.

    Raises:
        AxisError: There is no such axis.

    >>> gt.softmax(np.zeros(4))
    array([0.25, 0.25, 0.25, 0.25])
    """
    if unsupported:
        refuse("softmax", unsupported)
    x, axes = _prepared("softmax", x, axis)
    return softmax_over(x, axis=axes, limits=False)


# ---- log_softmax --------------------------------------------------------------------------------


def _log_softmax_forward(xp: Any, x: Any, axis: Axes) -> Any:
    x = _float(x)
    down = x - _largest(xp, x, axis)
    return down - xp.log(sum_forward(xp, xp.exp(down), axis, True))


def _log_softmax_composition(x: Any, axis: Axes) -> Any:
    x = floats(x)
    down = x - _top(x, axis)
    return down - log(sum_over(exp(down), axis=axis, keepdims=True))


# With p = exp(out): d out = dx − Σ p·dx; transpose: ct − p·Σ ct
_log_softmax = general(
    "log_softmax",
    _log_softmax_forward,
    infer=_infer_float,
    vjps=(lambda ct, out, _x, axis: ct - exp(out) * sum_over(ct, axis=axis, keepdims=True),),
    jvp=lambda tangents, out, _x, axis: (
        tangents[0] - sum_over(exp(out) * tangents[0], axis=axis, keepdims=True)
    ),
    batch=batch_along_axis,
    kind="axiswise",
    facts=Facts(layout="kept"),
    lower=lowered.composite(_log_softmax_composition),
)


def log_softmax(x: ArrayLike, /, axis: Axis = -1, **unsupported: Any) -> Array:
    """Logarithm of `softmax`, exact where softmax itself would underflow to 0.

    Args:
        x: The logits.
        axis: Along which axis (or axes) the exponentials add up to 1.
        **unsupported: Other libraries' options, which raise.

    Raises:
        AxisError: There is no such axis.

    >>> gt.log_softmax(np.array([0.0, -1000.0]))
    array([    0., -1000.])
    """
    if unsupported:
        refuse("log_softmax", unsupported)
    x, axes = _prepared("log_softmax", x, axis)
    return _log_softmax(x, axis=axes)


# ---- logsumexp ----------------------------------------------------------------------------------


def _logsumexp_forward(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    x = _float(x)
    top = _largest(xp, x, axis)
    if _finite(xp, top):
        out = xp.log(sum_forward(xp, xp.exp(x - top), axis, True)) + top
    else:
        top = xp.where(xp.isfinite(top), top, 0)
        with np.errstate(all="ignore"):
            out = xp.log(sum_forward(xp, xp.exp(x - top), axis, True)) + top
    return out if keepdims else out.reshape(reduced_shape(x.shape, axis, False))[()]


def _logsumexp_composition(x: Any, axis: Axes, keepdims: bool) -> Any:
    x = floats(x)
    top = _top(x, axis)
    top = where(isfinite(top), top, 0)
    out = log(sum_over(exp(x - top), axis=axis, keepdims=True)) + top
    return out if keepdims else reshape(out, reduced_shape(x.shape, axis, False))


def _infer_logsumexp(x: Aval, axis: Axes, keepdims: bool) -> Aval:
    return Aval(reduced_shape(x.shape, axis, keepdims), _infer_float(x, axis).dtype)


# d logsumexp(x) = Σ softmax(x)·dx
_logsumexp = general(
    "logsumexp",
    _logsumexp_forward,
    infer=_infer_logsumexp,
    vjps=(
        lambda ct, _out, x, axis, keepdims: (
            beside(ct, x.shape, axis, keepdims) * softmax_over(x, axis=axis, limits=True)
        ),
    ),
    jvp=lambda tangents, _out, x, axis, keepdims: sum_over(
        softmax_over(x, axis=axis, limits=True) * tangents[0], axis=axis, keepdims=keepdims
    ),
    batch=batch_along_axis,
    kind="reduction",
    lower=lowered.composite(_logsumexp_composition),
)


def logsumexp(
    x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False, **unsupported: Any
) -> Array:
    """Logarithm of the sum of exponentials, over all or the given axes, without overflow.

    Infinite elements: those that are +inf share the gradient; it is 0 if all are −inf.

    Args:
        x: The exponents.
        axis: One or several axes; None takes all of them.
        keepdims: Whether the reduced axes stay, with size 1.
        **unsupported: Other libraries' options, which raise.

    Raises:
        AxisError: There is no such axis.

    >>> gt.logsumexp(np.array([1000.0, 1000.0]))
    np.float64(1000.6931471805599)
    """
    if unsupported:
        refuse("logsumexp", unsupported)
    x, axes = _prepared("logsumexp", x, axis)
    return _logsumexp(x, axis=axes, keepdims=bool(keepdims))
