"""Linear recurrences along an axis, for derivatives of cumulative products and sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.define import added, general
from gradtape.core.lowering import Scan
from gradtape.core.op import Facts
from gradtape.ops.cast import conj_if_complex
from gradtape.ops.index import part_of
from gradtape.ops.pad import along, pad_constant

# Up to this many elements are computed one by one; more in blocks that advance together.
_BLOCK = 64


def previous(x: Any, axis: int, reverse: bool, first: float = 0) -> Any:
    """The element before each one along an axis; before the first one, `first`."""
    size = x.shape[axis]
    if size == 0:
        return x
    kept = part_of(x, 1, axis=axis) if reverse else part_of(x, 0, size - 1, axis=axis)
    before, after = (0, 1) if reverse else (1, 0)
    return pad_constant(kept, widths=along(axis, len(x.shape), before, after), fill=first)


# ---- by NumPy -----------------------------------------------------------------------------------


def _forward(xp: Any, x: Any, factor: Any, axis: int, reverse: bool) -> Any:
    x, factor = (xp.moveaxis(v, axis, -1) for v in (x, factor))
    step = -1 if reverse else 1
    out = _in_order(xp, x[..., ::step], factor[..., ::step])[..., ::step]
    return xp.moveaxis(out, -1, axis)


def _in_order(xp: Any, x: Any, factor: Any) -> Any:
    if x.shape[-1] <= _BLOCK:
        return _one_by_one(x, factor)
    with np.errstate(all="ignore"):
        out = _by_blocks(xp, x, factor)
    # A product of factors may overflow where its other factor is 0, or small enough for the result.
    return out if xp.isfinite(out).all() else _one_by_one(x, factor)


def _one_by_one(x: Any, factor: Any) -> Any:
    out = x.copy()
    for k in range(1, x.shape[-1]):
        out[..., k] += factor[..., k] * out[..., k - 1]
    return out


def _by_blocks(xp: Any, x: Any, factor: Any) -> Any:
    n = x.shape[-1]
    size = math.isqrt(n) + 1
    blocks = -(-n // size)
    rows, factors = (_in_blocks(xp, v, blocks, size) for v in (x, factor))
    out = _one_by_one(rows, factors)
    # The end of one block enters the next one times the product of the factors so far.
    passed = factors.cumprod(-1)
    ends = _in_order(xp, out[..., -1], passed[..., -1])
    out[..., 1:, :] += passed[..., 1:, :] * ends[..., :-1, None]
    return out.reshape(*x.shape[:-1], blocks * size)[..., :n]


def _in_blocks(xp: Any, x: Any, blocks: int, size: int) -> Any:
    whole = xp.zeros((*x.shape[:-1], blocks * size), x.dtype)
    whole[..., : x.shape[-1]] = x
    return whole.reshape(*x.shape[:-1], blocks, size)


# ---- the op -------------------------------------------------------------------------------------


def backwards(ct: Any, factor: Any, axis: int, reverse: bool) -> Any:
    """The transpose of a recurrence in x: one from the other end, by the factors one place on."""
    factor = previous(conj_if_complex(factor), axis, not reverse)
    return recurrence(ct, factor, axis=axis, reverse=not reverse)


def _jvp(tangents: Any, out: Any, _x: Any, factor: Any, axis: int, reverse: bool) -> Any:
    d_x, d_factor = tangents
    moved = None if d_factor is None else d_factor * previous(out, axis, reverse)
    return recurrence(added(d_x, moved), factor, axis=axis, reverse=reverse)


# out[k] = x[k] + factor[k]·out[k − 1], without the second term for k = 0;
# d out[k] = dx[k] + dfactor[k]·out[k − 1] + factor[k]·d out[k − 1]
recurrence = general(
    "recurrence",
    _forward,
    vjps=(
        lambda ct, _out, _x, factor, axis, reverse: backwards(ct, factor, axis, reverse),
        lambda ct, out, _x, factor, axis, reverse: (
            backwards(ct, factor, axis, reverse) * conj_if_complex(previous(out, axis, reverse))
        ),
    ),
    jvp=_jvp,
    facts=Facts(divisors=(1,)),
    lower=Scan("add"),
)
