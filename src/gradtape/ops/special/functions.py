"""Functions of whole arrays, with the signatures of `scipy.special`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.ops import softmax as base
from gradtape.ops.arguments import as_array
from gradtape.ops.arithmetic import absolute, sign
from gradtape.ops.cast import astype, real, stop_gradient
from gradtape.ops.comparison import isfinite
from gradtape.ops.exponential import exp, log
from gradtape.ops.reduce import max as max_of, sum as sum_of
from gradtape.ops.select import minimum, where
from gradtape.ops.shape import broadcast_to, expand_dims
from gradtape.ops.special.common import check_whole
from gradtape.ops.trigonometric import cos
from gradtape.typing import Array, ArrayLike, Axis


def softmax(x: ArrayLike, /, axis: Axis = None) -> Array:
    """Exponentials divided by their sum, over all or the given axes.

    Args:
        x: The logits.
        axis: Along which axis (or axes) the shares add up to 1; None takes all of them.

    Raises:
        AxisError: There is no such axis.

    >>> gt.scipy.special.softmax(np.zeros((2, 2)))
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """
    return base.softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, axis: Axis = None) -> Array:
    """Logarithm of `softmax`, over all or the given axes.

    Args:
        x: The logits.
        axis: Along which axis (or axes) the exponentials add up to 1; None takes all of them.

    Raises:
        AxisError: There is no such axis.

    >>> gt.scipy.special.log_softmax(np.array([0.0, -1000.0]))
    array([    0., -1000.])
    """
    return base.log_softmax(x, axis=axis)


def logsumexp(
    a: ArrayLike,
    /,
    axis: Axis = None,
    b: ArrayLike = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """Logarithm of a sum of exponentials with weights, without overflow.

    Args:
        a: The exponents.
        axis: One or several axes; None takes all of them.
        b: Weights of the exponentials, which may be negative.
        keepdims: Whether the reduced axes stay, with size 1.
        return_sign: Whether to return the sign of the sum as well, and the logarithm of its size;
            without it, that of a negative sum is NaN.

    Returns:
        The logarithm; with `return_sign` a pair of it and the sign.

    Raises:
        AxisError: There is no such axis.

    >>> gt.scipy.special.logsumexp(np.array([1000.0, 1000.0]), b=np.array([2.0, -1.0]))
    np.float64(1000.0)
    """
    if b is None:
        out = base.logsumexp(a, axis=axis, keepdims=keepdims)
        # A sum of exponentials is positive, or 0.
        return (out, sign(exp(minimum(stop_gradient(out), 0.0)))) if return_sign else out
    a, b = as_array(a), as_array(b)
    shape = np.broadcast_shapes(a.shape, b.shape)
    level = stop_gradient(real(a) if a.dtype.kind == "c" else a)
    level = broadcast_to(where(b == 0, -math.inf, level), shape)
    top = max_of(level, axis=axis, keepdims=True)
    raised = a - _finite(top)
    # A term without weight may be far above the others: it does not overflow here, and its slope by
    # the weight, exp(a) over the sum, is as large as numbers go.
    highest = float(np.log(np.finfo(raised.dtype).max)) - 1.0
    free = (b == 0) & ((raised <= highest) ^ True)
    total = sum_of(b * exp(where(free, highest, raised)), axis=axis, keepdims=keepdims)
    rest = top if keepdims else max_of(level, axis=axis)
    nothing = rest == -math.inf  # only zero terms: -inf, and flat as in `base.logsumexp`
    size = where(nothing, 1.0, absolute(total) if return_sign else total)
    out = log(size) + where(nothing, -math.inf, _finite(rest))
    return (out, sign(total)) if return_sign else out


def _finite(top: Any) -> Any:
    return where(isfinite(top), top, 0.0)


def diric(x: ArrayLike, n: int, /) -> Array:
    """Periodic sinc function, sin(n·x/2)/(n·sin(x/2)).

    Args:
        x: Where to evaluate it.
        n: Its order, an integer from 1.

    Raises:
        ArgumentError: The order is not an integer from 1.

    >>> gt.scipy.special.diric(np.array([0.0, 1.0]), 3)
    array([1.        , 0.69353487])
    """
    check_whole("diric", 1, n=n)
    x = as_array(x)
    # The cosines it is a sum of, which is regular where the quotient is 0/0
    steps = np.arange(1 - n % 2, n, 2)
    weights = np.where(steps == 0, 1.0, 2.0) / n
    kind = x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)
    phases = expand_dims(astype(x, kind), -1) * (0.5 * steps).astype(kind)
    return sum_of(cos(phases) * weights.astype(kind), axis=-1)
