"""Attention on arrays, block by block: not all weights of all heads are held at once.

Arrays have the axes (heads, places, size); everything that comes before the last two is a head.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

# The number of weights held at once: a few megabytes.
BLOCK = 1 << 19


class Block(NamedTuple):
    """Some heads, and some of their queries."""

    heads: slice
    rows: slice


def _blocks(heads: int, rows: int, columns: int) -> Iterator[Block]:
    if rows * columns <= BLOCK:
        step = max(1, BLOCK // max(1, rows * columns))
        for start in range(0, heads, step):
            yield Block(slice(start, min(start + step, heads)), slice(0, rows))
        return
    step = max(1, BLOCK // columns)
    for head in range(heads):
        for start in range(0, rows, step):
            yield Block(slice(head, head + 1), slice(start, min(start + step, rows)))


class Parts:
    """The operands, with heads along one axis, and the weights of any block.

    Attributes:
        lead: The axes that are heads.
    """

    def __init__(
        self, xp: Any, q: Any, k: Any, v: Any, others: tuple[Any, ...], params: dict[str, Any]
    ) -> None:
        self.xp = xp
        self.lead: tuple[int, ...] = q.shape[:-2]
        self.q, self.k, self.v = (self.heads(x) for x in (q, k, v))
        self.mask = others[0] if params["masked"] else None
        self.kept = others[-1] if params["keep"] else None
        self.scale, self.causal, self.keep = params["scale"], params["causal"], params["keep"]

    def heads(self, x: Any) -> Any:
        """An array with all heads along one axis."""
        return x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])

    def blocks(self) -> Iterator[Block]:
        """All blocks."""
        return _blocks(len(self.q), self.q.shape[1], self.k.shape[1])

    def of(self, x: Any, block: Block) -> Any:
        """The part of an array for a block; the array broadcasts against all weights."""
        shape = (1,) * (2 - x.ndim) + x.shape
        x = x.reshape(shape)
        if math.prod(shape[:-2]) > 1:
            numbers = np.arange(block.heads.start, block.heads.stop)
            whole = self.xp.broadcast_to(x, (*self.lead, *shape[-2:]))
            x = whole[np.unravel_index(numbers, self.lead)]
        else:
            x = x.reshape(shape[-2:])
        return x if shape[-2] == 1 else x[..., block.rows, :]

    def weights(self, block: Block) -> tuple[Any, Any]:
        """Exponentials of the scores of a block, and the divisor of each row; 1 if its sum is 0."""
        xp = self.xp
        scores = (self.q[block] * self.scale) @ self.k[block.heads].swapaxes(-1, -2)
        if self.causal:
            rows = np.arange(block.rows.start, block.rows.stop)[:, None]
            scores[..., np.arange(scores.shape[-1]) > rows] = -math.inf
        if self.mask is not None:
            part = self.of(self.mask, block)
            if part.dtype == np.bool_:
                scores = xp.where(part, scores, -math.inf)
            else:
                scores += part
        top = scores.max(-1, keepdims=True, initial=-math.inf)
        scores -= xp.where(xp.isfinite(top), top, 0)
        xp.exp(scores, out=scores)
        total = _row_sums(xp, scores)
        return scores, xp.where(total == 0, 1, total)


def _row_sums(xp: Any, x: Any) -> Any:
    """Sums along the last axis, which stays; NumPy's own take five times as long for short rows."""
    return x @ xp.ones((x.shape[-1], 1), x.dtype)


def attention_forward(xp: Any, q: Any, k: Any, v: Any, *others: Any, **params: Any) -> Any:
    """softmax(q·kᵀ·scale)·v."""
    parts = Parts(xp, q, k, v, others, params)
    dtype = np.result_type(q, k, v)
    out = xp.empty((len(parts.q), parts.q.shape[1], v.shape[-1]), dtype)
    for block in parts.blocks():
        weights, total = parts.weights(block)
        if parts.kept is not None:
            weights *= parts.of(parts.kept, block)
            total = total / parts.keep
        out[block] = weights @ parts.v[block.heads] / total
    return out.reshape(*q.shape[:-1], v.shape[-1])


def pull_forward(xp: Any, ct: Any, q: Any, k: Any, v: Any, *others: Any, **params: Any) -> Any:
    """The cotangents of q, k and v, and of a mask that is added."""
    parts = Parts(xp, q, k, v, others, params)
    ct = parts.heads(ct)
    dq, dk, dv = (xp.zeros_like(x, dtype=ct.dtype) for x in (parts.q, parts.k, parts.v))
    adds = parts.mask is not None and parts.mask.dtype != np.bool_
    of_mask = _Summed(parts, ct.dtype) if adds else None
    for block in parts.blocks():
        weights, total = parts.weights(block)
        weights /= total
        own, g = ct[block], parts.k[block.heads]
        change = own @ parts.v[block.heads].swapaxes(-1, -2)
        used = weights
        if parts.kept is not None:
            factor = parts.of(parts.kept, block) * change.dtype.type(parts.keep)
            change *= factor
            used = weights * factor
        dv[block.heads] += used.swapaxes(-1, -2) @ own
        change -= _row_sums(xp, weights * change)
        change *= weights
        dq[block] = change @ g * parts.scale
        dk[block.heads] += change.swapaxes(-1, -2) @ parts.q[block] * parts.scale
        if of_mask is not None:
            of_mask.add(change, block)
    results = tuple(
        d.reshape(x.shape).astype(x.dtype, copy=False)
        for d, x in zip((dq, dk, dv), (q, k, v), strict=True)
    )
    return results if of_mask is None else (*results, of_mask.out)


class _Summed:
    """Sums over the axes that an array was broadcast along, block by block."""

    def __init__(self, parts: Parts, dtype: Any) -> None:
        assert parts.mask is not None
        shape, lead = parts.mask.shape, parts.lead
        self._lead = lead
        self.out = parts.xp.zeros(shape, dtype)
        self._own = (1,) * (len(lead) + 2 - len(shape)) + shape

    def add(self, change: Any, block: Block) -> None:
        """Add the contribution of a block."""
        own = self.out.reshape(self._own)
        rows = slice(None) if self._own[-2] == 1 else block.rows
        for number, part in enumerate(change, start=block.heads.start):
            head = np.unravel_index(number, self._lead)
            place = tuple(0 if n == 1 else i for i, n in zip(head, self._own, strict=False))
            for axis in (-2, -1):
                if self._own[axis] == 1:
                    part = part.sum(axis, keepdims=True)
            own[(*place, rows)] += part
