"""Logarithms of cumulative sums of exponentials, without overflow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.batching import batch_along_axis, batch_together
from gradtape.core.define import general, public
from gradtape.core.op import infer_like
from gradtape.errors import DTypeError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.cast import conj_if_complex
from gradtape.ops.exponential import exp
from gradtape.ops.index import part_of
from gradtape.ops.join import concatenate
from gradtape.ops.rearrange import flip
from gradtape.ops.reduce import floats
from gradtape.ops.select import where
from gradtape.ops.shape import swapaxes
from gradtape.typing import Array, ArrayLike

# Up to so many elements are gone through one by one; more are in blocks that go along together.
_BLOCK = 64


# ---- recurrence ---------------------------------------------------------------------------------


def _one_by_one(b: Any, r: Any) -> Any:
    out = b.copy()
    for k in range(1, b.shape[-1]):
        out[..., k] += r[..., k] * out[..., k - 1]
    return out


def _recurrence_forward(xp: Any, b: Any, r: Any) -> Any:
    n = b.shape[-1]
    if n <= _BLOCK:
        return _one_by_one(b, r)
    size = math.isqrt(n) + 1
    blocks = -(-n // size)
    rows, factors = (_in_blocks(xp, x, blocks, size) for x in (b, r))
    out = _one_by_one(rows, factors)
    # What the end of one block hands to the next decays with the product of the factors.
    passed = factors.cumprod(-1)
    ends = _recurrence_forward(xp, out[..., -1], passed[..., -1])
    out[..., 1:, :] += passed[..., 1:, :] * ends[..., :-1, None]
    return out.reshape(*b.shape[:-1], blocks * size)[..., :n]


def _in_blocks(xp: Any, x: Any, blocks: int, size: int) -> Any:
    whole = xp.zeros((*x.shape[:-1], blocks * size), x.dtype)
    whole[..., : x.shape[-1]] = x
    return whole.reshape(*x.shape[:-1], blocks, size)


def _before(x: Any, first: float = 0) -> Any:
    """The elements moved on by one place along the last axis, with another one first."""
    if x.shape[-1] == 0:
        return x
    start = np.full((*x.shape[:-1], 1), first, x.dtype)
    return concatenate([start, part_of(x, 0, x.shape[-1] - 1)], -1)


def _backwards(ct: Any, r: Any) -> Any:
    """The transpose of the recurrence in b: the same from the other end, with r one place later."""
    return flip(recurrence(flip(ct, -1), _before(flip(r, -1))), -1)


def _recurrence_jvp(tangents: Any, out: Any, _b: Any, r: Any) -> Any:
    d_b, d_r = tangents
    change = None if d_r is None else d_r * _before(out)
    if d_b is not None:
        change = d_b if change is None else d_b + change
    return recurrence(change, r)


# out[k] = b[k] + r[k]·out[k − 1] along the last axis, without the second term for k = 0;
# d out[k] = db[k] + dr[k]·out[k − 1] + r[k]·d out[k − 1]
recurrence = general(
    "recurrence",
    _recurrence_forward,
    infer=lambda b, r: b,
    vjps=(
        lambda ct, _out, _b, r: _backwards(ct, conj_if_complex(r)),
        lambda ct, out, _b, r: _backwards(ct, conj_if_complex(r)) * conj_if_complex(_before(out)),
    ),
    jvp=_recurrence_jvp,
    batch=batch_together,
)


# ---- logcumsumexp -------------------------------------------------------------------------------


def _weights(out: Any, x: Any, axis: int) -> tuple[Any, Any]:
    """How much of out is its own element's, and how much that before it, along the last axis."""
    out, x = swapaxes(out, axis, -1), swapaxes(x, axis, -1)
    level = where(out == -math.inf, 0, out)  # nothing has a share of nothing
    return exp(x - level), exp(_before(out, -math.inf) - level)


def _vjp(ct: Any, out: Any, x: Any, axis: int) -> Any:
    own, before = _weights(out, x, axis)
    return swapaxes(own * _backwards(swapaxes(ct, axis, -1), before), axis, -1)


def _jvp(tangents: Any, out: Any, x: Any, axis: int) -> Any:
    own, before = _weights(out, x, axis)
    return swapaxes(recurrence(own * swapaxes(tangents[0], axis, -1), before), axis, -1)


# d out[k] = exp(x[k] − out[k])·dx[k] + exp(out[k − 1] − out[k])·d out[k − 1]: no exponent is
# positive
_logcumsumexp = general(
    "logcumsumexp",
    lambda xp, x, axis: np.logaddexp.accumulate(x, axis),
    infer=infer_like,
    vjps=(_vjp,),
    jvp=_jvp,
    batch=batch_along_axis,
)


@public()
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
    x = as_array(x)
    if x.dtype.kind == "c":
        raise DTypeError(f"logcumsumexp: came {x.dtype}; needed real numbers")
    return _logcumsumexp(floats(x), axis=normalize_axis(axis, len(x.shape), "logcumsumexp"))
