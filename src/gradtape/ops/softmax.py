"""Sums of exponentials that do not overflow: logsumexp, softmax, log_softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general, public
from gradtape.core.finite import is_finite
from gradtape.core.lowering import Composite
from gradtape.errors import DTypeError
from gradtape.ops.arguments import refuse
from gradtape.ops.cast import astype
from gradtape.ops.comparison import isfinite
from gradtape.ops.exponential import exp, log
from gradtape.ops.reduce import (
    Axes,
    count_over,
    floats,
    max_over,
    prepared,
    reduced_shape,
    reduction,
    sum_over,
)
from gradtape.ops.select import where
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike, Axis


def _infer_float(x: Aval, axis: Axes, **_params: Any) -> Aval:
    return Aval(x.shape, np.dtype(np.float64) if x.dtype.kind in "biu" else x.dtype)


def _top(x: Any, axis: Axes) -> Any:
    """The largest elements along `axis`, kept as axes of size 1; −inf if there are none."""
    if count_over(x.shape, axis) == 0:
        return sum_over(x, axis=axis, keepdims=True) - math.inf
    return max_over(x, axis=axis, keepdims=True)


def _prepared(name: str, x: ArrayLike, axis: Axis) -> tuple[Array, Axes]:
    x, axes = prepared(name, x, axis, None, {})
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: got {x.dtype}, expected real numbers")
    return x, axes


# ---- softmax ------------------------------------------------------------------------------------


def _softmax_of(x: Any, axis: Axes, limits: bool) -> Any:
    x = floats(x)
    top = _top(x, axis)
    if not limits or is_finite(top):
        parts = exp(x - top)
        return parts / sum_over(parts, axis=axis, keepdims=True)
    with np.errstate(all="ignore"):
        parts = where(top == math.inf, astype(x == math.inf, x.dtype), exp(x - top))
        shares = parts / sum_over(parts, axis=axis, keepdims=True)
    return where(top == -math.inf, 0, shares)


# With p = softmax(x): dp = p·(dx − Σ p·dx), a symmetric map. `limits` decides on infinite
# arguments: shares among those that are +inf, and 0 if all are −inf, instead of NaN.
_softmax = general(
    "softmax",
    Composite(_softmax_of),
    infer=_infer_float,
    vjps=(
        lambda ct, out, _x, axis, limits: out * (ct - sum_over(ct * out, axis=axis, keepdims=True)),
    ),
    self_adjoint=True,
    kind="axiswise",
)


@public()
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
    return _softmax(x, axis=axes, limits=False)


# ---- log_softmax --------------------------------------------------------------------------------


def _log_softmax_of(x: Any, axis: Axes) -> Any:
    x = floats(x)
    down = x - _top(x, axis)
    return down - log(sum_over(exp(down), axis=axis, keepdims=True))


# With p = exp(out): d out = dx − Σ p·dx; transpose: ct − p·Σ ct
_log_softmax = general(
    "log_softmax",
    Composite(_log_softmax_of),
    infer=_infer_float,
    vjps=(lambda ct, out, _x, axis: ct - exp(out) * sum_over(ct, axis=axis, keepdims=True),),
    jvp=lambda tangents, out, _x, axis: (
        tangents[0] - sum_over(exp(out) * tangents[0], axis=axis, keepdims=True)
    ),
    kind="axiswise",
)


@public()
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


def _logsumexp_of(x: Any, axis: Axes, keepdims: bool) -> Any:
    x = floats(x)
    top = _top(x, axis)
    if not is_finite(top):
        top = where(isfinite(top), top, 0)
    with np.errstate(divide="ignore", over="ignore"):
        out = log(sum_over(exp(x - top), axis=axis, keepdims=True)) + top
    return out if keepdims else reshape(out, reduced_shape(x.shape, axis, False))


def _infer_logsumexp(x: Aval, axis: Axes, keepdims: bool) -> Aval:
    return Aval(reduced_shape(x.shape, axis, keepdims), _infer_float(x, axis).dtype)


# d logsumexp(x) = Σ softmax(x)·dx
logsumexp_over = reduction(
    "logsumexp",
    Composite(_logsumexp_of),
    lambda _out, x, axis, keepdims: _softmax(x, axis=axis, limits=True),
    infer=_infer_logsumexp,
)


@public()
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
    return logsumexp_over(x, axis=axes, keepdims=bool(keepdims))
