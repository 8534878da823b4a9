"""Rules of matrix products, dense and sparse: rows of one factor meet columns of the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.ops.sparse.product import rows_of
from gradtape.sparsity.dependencies import Call
from gradtape.sparsity.lowering_rules import Made, stacks
from gradtape.sparsity.rows import Rows, union

# With more products of elements the zeros of a constant factor are not looked at.
_MOST_PRODUCTS = 1 << 26


def contraction(call: Call) -> Made:
    """out[…, i, j] = Σₖ a[…, i, k]·b[…, k, j]."""
    a, b = (aval.shape for aval in call.avals)
    lead = np.broadcast_shapes(a[:-2], b[:-2])
    left = (*a[:-2], 1 if len(a) == 1 else a[-2], a[-1])
    right = (*b[:-2], b[0], 1) if len(b) == 1 else b
    found = None
    if call.rows[0] is not None:
        found = _from_left(call, left, right, lead)
    if call.rows[1] is not None:
        found = union(found, _from_right(call, left, right, lead))
    return [found]


def _from_left(call: Call, a: tuple[int, ...], b: tuple[int, ...], lead: tuple[int, ...]) -> Rows:
    rows, (m, k), n = call.rows[0], a[-2:], b[-1]
    assert rows is not None
    nonzero = _nonzero(call, 1, (*lead, *b[-2:]), b, m)
    if nonzero is None:
        each = call.over(0, (len(call.avals[0].shape) - 1,))
        return each.take(_spread((*a[:-1], 1), (*lead, m, n)))
    at, inner, j = nonzero
    i, own = np.arange(m), _spread(a[:-2], lead)[at]
    to = ((at * m)[:, None] + i) * n + j[:, None]
    places = ((own * m)[:, None] + i) * k + inner[:, None]
    return rows.combined(to.reshape(-1), places.reshape(-1), math.prod((*lead, m, n)))


def _from_right(call: Call, a: tuple[int, ...], b: tuple[int, ...], lead: tuple[int, ...]) -> Rows:
    rows, m, (k, n) = call.rows[1], a[-2], b[-2:]
    assert rows is not None
    nonzero = _nonzero(call, 0, (*lead, *a[-2:]), a, n)
    if nonzero is None:
        each = call.over(1, (max(len(call.avals[1].shape) - 2, 0),))
        return each.take(_spread((*b[:-2], 1, n), (*lead, m, n)))
    at, i, inner = nonzero
    j, own = np.arange(n), _spread(b[:-2], lead)[at]
    to = ((at * m + i) * n)[:, None] + j
    places = ((own * k + inner) * n)[:, None] + j
    return rows.combined(to.reshape(-1), places.reshape(-1), math.prod((*lead, m, n)))


def _nonzero(call: Call, operand: int, whole: tuple[int, ...], shape: Any, times: int) -> Any:
    """Where a constant factor is not zero, in the stack of all matrices; None if that is no use."""
    array = call.known(operand)
    if array is None or np.all(array):
        return None
    wide = np.broadcast_to(array.reshape(shape) != 0, whole)
    if np.count_nonzero(wide) * times > _MOST_PRODUCTS:
        return None
    call.analysis.reliance.on(call.given[operand].known, zeros=True)
    return np.nonzero(wide.reshape(-1, *whole[-2:]))


def _spread(shape: tuple[int, ...], to: tuple[int, ...]) -> Any:
    """The number of the element of an array that each element of its broadcast form is."""
    return np.broadcast_to(np.arange(math.prod(shape)).reshape(shape), to).reshape(-1)


# ---- with sparse matrices -----------------------------------------------------------------------


def sparse_product(call: Call) -> Made:
    """out[…, r, j] = Σ data[…, e]·x[…, c, j] over the stored numbers e, at places (r, c)."""
    places = _places(call)
    if places is None:
        return stacks(call, 2, "the places of its stored numbers are not known beforehand")
    rows, columns = places[::-1] if call.node.params["transpose"] else places
    (data, x), out = (aval.shape for aval in call.avals[:2]), call.outs[0].shape
    lead, count, side = out[:-2], len(rows), out[-1]
    at = np.arange(math.prod(lead)).reshape(-1, 1, 1)
    j = np.arange(side)
    to = (at * out[-2] + rows[:, None]) * side + j
    found = None
    if call.rows[0] is not None:
        own = _spread(data[:-1], lead).reshape(-1, 1, 1)
        read = np.broadcast_to(own * count + np.arange(count)[:, None], to.shape)
        found = call.rows[0].combined(to.reshape(-1), read.reshape(-1), math.prod(out))
    if call.rows[1] is not None:
        own = _spread(x[:-2], lead).reshape(-1, 1, 1)
        read = (own * x[-2] + columns[:, None]) * side + j
        new = call.rows[1].combined(to.reshape(-1), read.reshape(-1), math.prod(out))
        found = union(found, new)
    return [found]


def sampled_product(call: Call) -> Made:
    """out[…, e] = Σₖ u[…, r, k]·v[…, c, k] for the places (r, c) of the stored numbers e."""
    places = _places(call)
    if places is None:
        return stacks(call, 2, "the places of its stored numbers are not known beforehand")
    lead = call.outs[0].shape[:-1]
    found = None
    for n, place in enumerate(places):
        shape = call.avals[n].shape
        if call.rows[n] is not None:
            own = _spread(shape[:-2], lead)[:, None] * shape[-2]
            found = union(found, call.over(n, (len(shape) - 1,)).take((own + place).reshape(-1)))
    return [found]


def _places(call: Call) -> tuple[Any, Any] | None:
    """The row and the column of each stored number; None if they depend on the argument."""
    columns, starts = call.known(2), call.known(3)
    if columns is None or starts is None:
        return None
    for operand in (2, 3):
        call.analysis.reliance.on(call.given[operand].known)
    return rows_of(starts), columns
