"""Logarithms of cumulative sums of exponentials, without overflow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.define import general
from gradtape.core.op import Facts
from gradtape.ops.arguments import as_array, normalize_axis, real_only
from gradtape.ops.exponential import exp
from gradtape.ops.recurrence import backwards, previous, recurrence
from gradtape.ops.reduce import floats
from gradtape.ops.select import where
from gradtape.typing import Array, ArrayLike


def _weights(out: Any, x: Any, axis: int) -> tuple[Any, Any]:
    """The share of its own element in each result, and the share of the result before it."""
    level = where(out == -math.inf, 0, out)  # an empty sum has no shares
    return exp(x - level), exp(previous(out, axis, False, -math.inf) - level)


def _vjp(ct: Any, out: Any, x: Any, axis: int) -> Any:
    own, before = _weights(out, x, axis)
    return own * backwards(ct, before, axis, False)


def _jvp(tangents: Any, out: Any, x: Any, axis: int) -> Any:
    own, before = _weights(out, x, axis)
    return recurrence(own * tangents[0], before, axis=axis, reverse=False)


# d out[k] = exp(x[k] − out[k])·dx[k] + exp(out[k − 1] − out[k])·d out[k − 1]: no exponent is
# positive
_logcumsumexp = general(
    "logcumsumexp",
    lambda xp, x, axis: np.logaddexp.accumulate(x, axis),
    vjps=(_vjp,),
    jvp=_jvp,
    facts=Facts(reads="axis"),
)


def logcumsumexp(x: ArrayLike, /, axis: int) -> Array:
    """Logarithms of the sums of exponentials up to each place along an axis, without overflow.

    Args:
        x: The exponents.
        axis: Along which axis.

    Raises:
        AxisError: There is no such axis.
        DTypeError: `x` is complex.

    >>> gt.logcumsumexp(np.array([1000.0, 1000.0]), 0)
    array([1000.        , 1000.69314718])
    """
    x = real_only("logcumsumexp", as_array(x))
    return _logcumsumexp(floats(x), axis=normalize_axis(axis, len(x.shape), "logcumsumexp"))
