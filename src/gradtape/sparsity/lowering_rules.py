"""Rules of ops by the form of their lowering: what one element of a result reads.

Each gives the rows of the results of a call; see `dependencies`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.call import is_differentiable
from gradtape.core.evaluate import evaluate
from gradtape.core.lowering import Elements, Matrices, Pointwise, Scatter, Terms, Whole
from gradtape.errors import UnsupportedError
from gradtape.sparsity.dependencies import Call, broadcast, reduced
from gradtape.sparsity.rows import Rows, nothing, stacked, union

Made = list[Rows | None]

# With more terms in all an op is taken as dense.
_MOST_TERMS = 1 << 25


# ---- elementwise --------------------------------------------------------------------------------


def pointwise(call: Call) -> Made:
    """out[i] of x[i], y[i], …, broadcast against each other."""
    lower, shape = call.node.op.lower, call.outs[0].shape
    # Arrays beside the argument may be conditions, or factors with zeros.
    beside = any(
        x.known is not None and y.shape for x, y in zip(call.given, call.avals, strict=True)
    )
    if beside and isinstance(lower, Pointwise) and len(call.outs) == 1:
        reads = call.reads(shape)
        args = [reads.beside(n) for n in range(len(call.avals))]
        try:
            expression = lower.expression(*args, **call.node.params)
            return [call.follow(reads, reads.terms(expression, call.tracked))]
        except UnsupportedError:  # there is no native code for these dtypes
            pass
    found = None
    for rows, aval in zip(call.rows, call.avals, strict=True):
        if rows is not None:
            found = union(found, broadcast(rows, aval.shape, shape))
    return [found] * len(call.outs)


def elements(call: Call) -> Made:
    """out[i] of elements at index expressions."""
    lower, reads = call.node.op.lower, call.reads(call.outs[0].shape)
    assert isinstance(lower, Elements)
    try:
        expression = lower.expression(reads.point, *reads.readers, **call.node.params)
    except UnsupportedError as error:
        if call.node.op.facts.rearranges and (found := _rearranged(call)) is not None:
            return [found]
        return dense(call, f"no expression of its elements: {error}")
    return [call.follow(reads, reads.terms(expression, call.tracked))]


def _rearranged(call: Call) -> Rows | None:
    """The rows of an op that only moves elements, which is done to the numbers of the elements."""
    numbers, parts, begin = [], [], 0
    for n, (rows, aval) in enumerate(zip(call.rows, call.avals, strict=True)):
        if rows is not None:
            numbers.append(np.arange(begin, begin + len(rows)).reshape(aval.shape))
            parts.append(rows)
            begin += len(rows)
        elif is_differentiable(aval):
            numbers.append(np.full(aval.shape, -1))
        elif (known := call.known(n)) is not None:
            call.analysis.reliance.on(call.given[n].known)
            numbers.append(known)
        else:
            return None
    places = evaluate(call.node.op, numbers, call.node.params)
    return stacked(parts).take(places.reshape(-1))


def relabelled(call: Call) -> Made:
    """The same elements under another shape."""
    return [call.rows[0]]


# ---- along axes ---------------------------------------------------------------------------------


def reduction(call: Call) -> Made:
    """Elements combined over axes."""
    axes = call.node.params["axis"]
    return [call.over(0, tuple(range(call.avals[0].ndim)) if axes is None else tuple(axes))]


def running(call: Call) -> Made:
    """out[k] of x[0] … x[k]: in steps of 1, 2, 4, … each takes what the one before it has."""
    axis, shape = call.node.params["axis"], call.outs[0].shape
    found = call.rows[0]
    for rows in call.rows[1:]:
        found = union(found, rows)
    stride, size = math.prod(shape[axis + 1 :]), shape[axis]
    numbers = np.arange(math.prod(shape))
    place = numbers // stride % size
    step = 1
    backwards = call.node.params.get("reverse", False)
    while step < size:
        inside = place < size - step if backwards else place >= step
        earlier = numbers + (step if backwards else -step) * stride
        assert found is not None
        found = union(found, found.take(np.where(inside, earlier, -1)))
        step *= 2
    return [found]


def stacks(call: Call, axes: int, why: str, first: int | None = None) -> Made:
    """Every element of a result depends on all elements of its matrix, in a stack of them.

    Args:
        call: The call.
        axes: How many axes belong to a matrix.
        why: Why nothing better is known.
        first: So many operands count; None for all.
    """
    call.block(why)
    leads = [aval.shape[: max(aval.ndim - axes, 0)] for aval in call.avals]
    lead = np.broadcast_shapes(*leads)
    found = None
    for n, (own, aval) in enumerate(list(zip(leads, call.avals, strict=True))[:first]):
        if call.rows[n] is not None:
            rows = call.over(n, tuple(range(len(own), aval.ndim)))
            found = union(found, broadcast(rows, own, lead))
    assert found is not None
    single = [
        Aval(aval.shape[len(own) :], aval.dtype)
        for own, aval in zip(leads, call.avals, strict=True)
    ]
    one = call.node.op.infer(*single, **call.node.params)
    made: Made = []
    for out, alone in zip(call.outs, one if call.node.op.outputs != 1 else (one,), strict=True):
        if out.shape == (*lead, *alone.shape):
            made.append(found.take(np.repeat(np.arange(len(found)), math.prod(alone.shape))))
        else:  # it has a stack of its own, such as that of one operand
            made.append(found.everywhere(math.prod(out.shape)))
    return made


def along(call: Call) -> Made:
    """Every element depends on all that lie along the same axes, at its place on the others."""
    call.block("all elements along its axis are taken to depend on each other")
    axes = call.node.params["axis"]
    axes = axes if isinstance(axes, tuple) else (axes,)
    found = None
    for n, aval in enumerate(call.avals):
        if call.rows[n] is not None:
            found = union(found, call.over(n, axes))
            left = [1 if axis in axes else size for axis, size in enumerate(aval.shape)]
    assert found is not None
    return [broadcast(found, tuple(left), out.shape) for out in call.outs]


def whole(call: Call, stated: Whole) -> Made:
    """Every element depends on all operands that count, for each element of a batch."""
    sizes = call.outs[0].shape[: len(stated.axes)]
    elements = np.arange(math.prod(sizes))
    found = None
    for n in stated.operands[: len(call.rows) - stated.operands.start]:
        rows = call.rows[n]
        if rows is None:
            continue
        places = np.arange(len(rows)).reshape(call.avals[n].shape)
        for level, axes in enumerate(stated.axes):
            axis = axes[n]
            if axis is None:
                own = places.shape
                places = np.expand_dims(places, level)
                places = np.broadcast_to(places, (*own[:level], sizes[level], *own[level:]))
            else:
                places = np.moveaxis(places, level + axis, level)
        to = np.repeat(elements, places.size // max(len(elements), 1))
        found = union(found, rows.combined(to, places.reshape(-1), len(elements)))
    if found is None:
        return [None] * len(call.outs)
    call.block(stated.why)
    inner = [math.prod(out.shape[len(sizes) :]) for out in call.outs]
    moved = [found.take(np.repeat(elements, times)) for times in inner[: stated.results]]
    return [*moved, *[None] * (len(call.outs) - len(moved))]


def terms(call: Call) -> Made:
    """out[i] of terms for all k, as `Terms` says."""
    stated, out = call.node.op.facts.reads, call.outs[0].shape
    assert isinstance(stated, Terms)
    sizes = stated.sizes(*call.avals, **call.node.params)
    if math.prod((*out, *sizes)) > _MOST_TERMS:
        return dense(call, "its elements have too many terms to look at them one by one")
    reads = call.reads((*out, *sizes))
    point = reads.point[: len(out)], reads.point[len(out) :]
    expression = stated.expression(*point, *reads.readers, **call.node.params)
    found = call.follow(reads, reads.terms(expression, call.tracked))
    if found is None:
        return [None]
    axes = tuple(range(len(out), len(reads.shape)))
    return [reduced(found, reads.shape, axes)]


def stated(call: Call) -> Made:
    """What an op without a lowering says of its elements."""
    reads = call.node.op.facts.reads
    if reads == "own":
        return pointwise(call)
    if reads == "axis":
        return along(call)
    if isinstance(reads, int):
        return stacks(call, reads, "all elements of a matrix are taken to depend on all of it")
    return dense(call) if reads is None else terms(call)


def matrices(call: Call) -> Made:
    """An op on stacks of matrices."""
    lower, last = call.node.op.lower, len(call.avals) - 1
    assert isinstance(lower, Matrices)
    why = "all elements of a matrix are taken to depend on all of it"
    if not lower.columns or call.rows[last] is None:
        return stacks(call, lower.axes, why)
    made: Made = [None] * len(call.outs)
    if any(call.tracked[:last]):
        made = stacks(call, lower.axes, why, first=last)
    # Columns of the first result come from those of the last operand, one by one.
    call.block("all elements of a column are taken to depend on all of it")
    shape = call.avals[last].shape
    columns = call.over(last, (len(shape) - 2,))
    made[0] = union(made[0], broadcast(columns, (*shape[:-2], 1, shape[-1]), call.outs[0].shape))
    return made


def dense(call: Call, why: str = "nothing is known of its elements") -> Made:
    """Every element of the results depends on all that the operands depend on."""
    if call.node.op.kind == "elementwise":
        return pointwise(call)
    call.block(why)
    found = None
    for rows in call.rows:
        if rows is not None and len(rows):
            found = union(found, rows.everywhere(1))
    sizes = [math.prod(out.shape) for out in call.outs]
    if found is None:
        return [nothing(size, call.width) for size in sizes]
    return [found.everywhere(size) for size in sizes]


# ---- writes -------------------------------------------------------------------------------------


def scatter(call: Call) -> Made:
    """Elements written, or added, at computed places."""
    lower, out, params = call.node.op.lower, call.outs[0].shape, call.node.params
    assert isinstance(lower, Scatter)
    serial, free = lower.sizes(*call.avals, **params)
    reads = call.reads((*serial, *free))
    try:
        index, value = lower.put(reads.point, *reads.readers, **params)
    except UnsupportedError as error:
        return dense(call, f"no expression of its elements: {error}")
    places = [reads.values(place) for place in index]
    written = call.follow(reads, reads.terms(value, call.tracked))
    if any(place is None for place in places):
        call.block("a place to write to is not known beforehand: it may be any along its axis")
    to, over = _targets(places, out, reads.shape)
    kept = None
    if lower.start is not None:
        before = call.reads(out)
        start = lower.start(before.point, *before.readers, **params)
        kept = call.follow(before, before.terms(start, call.tracked))
    if not lower.adds and not over:
        # Later writes replace earlier ones, and what was there.
        last = np.full(math.prod(out), -1)
        last[to] = np.arange(len(to))
        kept = None if kept is None else kept.take(np.where(last < 0, np.arange(len(last)), -1))
        return [union(kept, None if written is None else written.take(last))]
    if written is not None:
        left = tuple(1 if axis in over else size for axis, size in enumerate(out))
        written = written.combined(to, np.arange(len(to)), math.prod(left))
        written = broadcast(written, left, out)
    return [union(kept, written)]


def _targets(places: Sequence[Any], out: tuple[int, ...], points: tuple[int, ...]) -> Any:
    """Where each point is written to, counted over the axes with known places, and the others."""
    over = [axis for axis, place in enumerate(places) if place is None]
    flat: Any = np.int64(0)
    for place, size in zip(places, out, strict=True):
        if place is not None:
            flat = flat * size + np.clip(place, 0, size - 1)
    return np.broadcast_to(flat, points).reshape(-1), over


def mirrored(call: Call) -> Made:
    """A matrix of one triangle: its derivative is that by a matrix that stays symmetric."""
    rows, shape = call.rows[0], call.outs[0].shape
    assert rows is not None
    turned = np.arange(len(rows)).reshape(shape).swapaxes(-1, -2).reshape(-1)
    return [union(rows, rows.take(turned))]
