"""The ops of pooling by the largest or smallest element of windows.

The value is computed axis by axis, without asking for the places of elements. Derivatives need
them: `pool_pick` reads at places and `pool_put` adds at them, each the transpose of the other.
Places are counted through the flattened spatial axes, as in PyTorch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core import promotion, scalar
from gradtape.core.aval import Aval
from gradtape.core.define import general, multilinear
from gradtape.core.lowering import Elements, Reader, Scatter
from gradtape.core.op import Op, Zero
from gradtape.core.scalar import Scalar
from gradtape.errors import IndexingError, UnsupportedError
from gradtape.ops import lowered
from gradtape.ops.nn.window_elements import (
    AllWindows,
    infer_windows,
    is_small,
    seen_by,
    seen_in_windows,
)
from gradtape.ops.nn.windows import Shares, Sizes, along, has_many, joint_parts, part_of

# None leaves an axis as it is.
AllSizes = tuple[int | None, ...]


def lowest(dtype: np.dtype[Any], largest: bool) -> Any:
    """The value that every element beats or ties with."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if largest else np.iinfo(dtype).max
    if dtype.kind == "b":
        return not largest
    return -math.inf if largest else math.inf


# ---- the value ----------------------------------------------------------------------------------


def extreme_forward(xp: Any, x: Any, windows: AllWindows, largest: bool) -> Any:
    better = xp.maximum if largest else xp.minimum
    for axis, w in enumerate(windows, start=-len(windows)):
        if w is None:
            continue
        parts = list(w.parts())
        # Begin with a tap at which all windows see an element, if there is one.
        begin = next((part for part in parts if part.into == slice(0, w.number)), None)
        if begin is None:
            shape = (*x.shape[:axis], w.number, *x.shape[x.ndim + axis + 1 :])
            out = xp.full_like(x, lowest(x.dtype, largest), shape=shape)
        else:
            out = part_of(x, axis, begin.of).copy(order="K")
        for part in parts:
            if part is not begin:
                best = out[along(axis, part.into)]
                better(best, part_of(x, axis, part.of), out=best)
        x = out
    return x


def _window_extreme(i: Sequence[Any], x: Reader, windows: AllWindows, largest: bool) -> Scalar:
    """The best element that a window sees."""
    better = scalar.maximum if largest else scalar.minimum
    fill = lowest(x.aval.dtype, largest)
    seen = seen_in_windows(i, windows, seen_by)
    return functools.reduce(better, [lowered.read_or(fill, x, *element) for element in seen])


# Only compiled functions know it.
WINDOW_EXTREME = Op(
    "window_extreme",
    extreme_forward,
    infer_windows,
    lower=Elements(_window_extreme, often=True),
)


# ---- where it stands ----------------------------------------------------------------------------


def indices_forward(xp: Any, x: Any, windows: AllWindows, largest: bool) -> Any:
    if windows[-1] is None:
        first = indices_forward(xp, xp.moveaxis(x, -1, 0), windows[:-1], largest)
        return xp.moveaxis(first, 0, -1)
    best = extreme_forward(xp, x, windows, largest)
    missing = x.dtype.kind == "f" and bool(xp.isnan(best).any())
    # From the last place in a window to the first, so that the first of equal elements stays.
    seen = list(joint_parts(windows))
    found = xp.zeros_like(best, dtype=np.min_scalar_type(max(len(seen) - 1, 0)))
    for number, (_, into, of) in reversed([*enumerate(seen)]):
        value, places = x, (..., *into)
        for axis, part in enumerate(of, start=-len(windows)):
            value = part_of(value, axis, part)
        wins = value == best[places]
        if missing:
            wins |= value != value
        xp.copyto(found[places], number, where=wins)
    starts, offsets = _tables(windows, [tap for tap, _, _ in seen])
    return xp.asarray(starts) + xp.asarray(offsets).take(found)


def _tables(windows: AllWindows, taps: Sequence[Sizes]) -> tuple[Any, Any]:
    """Where each window starts, and the distance from there of each of the taps."""
    starts = np.zeros((), np.int64)
    offsets = np.zeros(len(taps), np.int64)
    for axis, w in enumerate(windows):
        assert w is not None
        steps = np.array([tap[axis] for tap in taps], np.int64)
        if isinstance(w, Shares):
            start, _ = w.bounds(np.arange(w.number))
        else:
            start = np.arange(w.number) * w.stride - w.before
            steps = steps * w.dilation
        starts = starts[..., None] * w.size + start
        offsets = offsets * w.size + steps
    return starts, offsets


class Best:
    """The best element so far of those that a window sees, in order.

    The first of equal elements stays, and NaN is better than all others. Padding is never seen,
    though it may be all that comes before the first element.
    """

    def __init__(self, largest: bool) -> None:
        self._largest = largest
        self._value: Any = None
        # Where an element was seen already; None for everywhere.
        self._any: Scalar | None = None

    def wins(self, value: Scalar, inside: Scalar | None) -> Any:
        """Where a further element is the best one now."""
        if self._value is None:
            self._value, self._any = value, inside
            return True
        best = self._value
        if value.dtype.kind == "f":
            # Not `>`, which is false for NaN.
            wins = ~(value <= best if self._largest else value >= best) & (best == best)
        else:
            wins = value > best if self._largest else value < best
        if self._any is not None:
            wins = wins | ~self._any
        wins = wins if inside is None else wins & inside
        if self._any is not None:
            self._any = None if inside is None else self._any | inside
        self._value = scalar.where(wins, value, best)
        return wins


def _index_element(i: Sequence[Any], x: Reader, windows: AllWindows, largest: bool) -> Scalar:
    """The place of the best element in the flattened spatial axes."""
    if not is_small(windows):
        raise UnsupportedError("no native code for large windows")
    lead, best, found = len(i) - len(windows), Best(largest), scalar.constant(0, promotion.INT64)
    for index, inside in seen_in_windows(i, windows, seen_by):
        place: Any = 0
        for own, w in zip(index[lead:], windows, strict=True):
            place = place if w is None else place * w.size + own
        value = lowered.read_or(lowest(x.aval.dtype, largest), x, index, inside)
        wins = best.wins(value, inside)
        found = scalar.scalar(place) if wins is True else scalar.where(wins, place, found)
    return found


# ---- reading and adding at places ---------------------------------------------------------------


def _flat(xp: Any, places: Any, rank: int, size: int) -> Any:
    """Places in the flattened spatial axes as places in the whole flattened array, checked."""
    if places.size and not (places.min() >= 0 and places.max() < size):
        raise IndexingError(
            f"max_unpool: got indices from {places.min()} to {places.max()}, expected numbers from "
            f"0 to {size - 1}"
        )
    rows = math.prod(places.shape[: places.ndim - rank])
    own = math.prod(places.shape[places.ndim - rank :])
    return places.reshape((rows, own)) + xp.arange(rows)[:, None] * size


def _pick_forward(xp: Any, x: Any, places: Any, sizes: AllSizes) -> Any:
    if sizes[-1] is None:
        first = _pick_forward(xp, xp.moveaxis(x, -1, 0), xp.moveaxis(places, -1, 0), sizes[:-1])
        return xp.moveaxis(first, 0, -1)
    flat = _flat(xp, places, len(sizes), math.prod(x.shape[x.ndim - len(sizes) :]))
    return x.reshape(-1).take(flat).reshape(places.shape)


def put_forward(xp: Any, x: Any, places: Any, sizes: AllSizes) -> Any:
    if sizes[-1] is None:
        first = put_forward(xp, xp.moveaxis(x, -1, 0), xp.moveaxis(places, -1, 0), sizes[:-1])
        return xp.moveaxis(first, 0, -1)
    own = [n for n in sizes if n is not None]
    out = xp.zeros((*x.shape[: x.ndim - len(own)], *own), x.dtype)
    flat = _flat(xp, places, len(own), math.prod(own))
    xp.add.at(out.reshape(-1), flat.reshape(-1), x.reshape(-1))
    return out


def _place_forward(xp: Any, x: Any, places: Any, sizes: Sizes) -> Any:
    flat = _flat(xp, places, len(sizes), math.prod(sizes))
    if xp.unique(flat).size != flat.size:
        raise IndexingError(
            "max_unpool: got indices that repeat, of windows that overlap, expected different "
            "ones: which element should stand there is not defined"
        )
    return put_forward(xp, x, places, sizes)


def _coordinates(i: Sequence[Any], place: Scalar, places: Reader, sizes: AllSizes) -> list[Any]:
    """An index with the place along each spatial axis in it."""
    size = math.prod(n for n in sizes if n is not None)
    place = places.check(
        place,
        (place >= 0) & (place < size),
        f"max_unpool: got index {{}}, expected numbers from 0 to {size - 1}",
        place,
    )
    index = list(i)
    for axis, n in enumerate(reversed(sizes), start=1):
        if n is not None:
            index[-axis] = scalar.remainder(place, n)
            place = scalar.floor_divide(place, n)
    return index


def _given(i: Sequence[Any], places: Reader) -> Scalar:
    if 0 in places.aval.shape:
        raise UnsupportedError("no native code for arrays without elements")
    return scalar.convert(places(*i), promotion.INT64)


def _pick_element(i: Sequence[Any], x: Reader, places: Reader, sizes: AllSizes) -> Scalar:
    return x(*_coordinates(i, _given(i, places), places, sizes))


def _spatial(sizes: AllSizes, ndim: int) -> tuple[list[int], list[int]]:
    """The axes along which places may coincide, and the others."""
    lead = ndim - len(sizes)
    spatial = [axis for axis in range(lead, ndim) if sizes[axis - lead] is not None]
    return spatial, [axis for axis in range(ndim) if axis not in spatial]


def _put_sizes(x: Aval, _places: Aval, sizes: AllSizes) -> tuple[Any, Any]:
    spatial, others = _spatial(sizes, len(x.shape))
    return tuple(x.shape[axis] for axis in spatial), tuple(x.shape[axis] for axis in others)


def _put_element(
    i: Sequence[Any], x: Reader, places: Reader, sizes: AllSizes
) -> tuple[list[Any], Scalar]:
    spatial, others = _spatial(sizes, len(i))
    known = dict(zip((*spatial, *others), i, strict=True))
    point = [known[axis] for axis in range(len(i))]
    return _coordinates(point, _given(point, places), places, sizes), x(*point)


def _infer_put(x: Aval, _places: Aval, sizes: AllSizes) -> Aval:
    lead = len(x.shape) - len(sizes)
    own = zip(x.shape[lead:], sizes, strict=True)
    return Aval((*x.shape[:lead], *(n if size is None else size for n, size in own)), x.dtype)


# ---- the ops ------------------------------------------------------------------------------------

_NUMBERED = Zero("a place is a number, and does not change by a little")

# Linear in x; transpose: add at the places.
pool_pick: Callable[..., Any] = multilinear(
    "pool_pick",
    _pick_forward,
    lambda ct, _out, _x, places, sizes: pool_put(ct, places, sizes=sizes),
    _NUMBERED,
    infer=lambda x, places, sizes: Aval(places.shape, x.dtype),
    kind="planewise",
    lower=Elements(_pick_element),
    heavy=has_many,
)

# Linear in x; transpose: read at the places.
pool_put: Callable[..., Any] = multilinear(
    "pool_put",
    put_forward,
    lambda ct, _out, _x, places, sizes: pool_pick(ct, places, sizes=sizes),
    _NUMBERED,
    infer=_infer_put,
    kind="planewise",
    lower=Scatter(_put_sizes, _put_element, adds=True),
    heavy=has_many,
)

# The same for places that do not repeat.
pool_place: Callable[..., Any] = multilinear(
    "max_unpool",
    _place_forward,
    lambda ct, _out, _x, places, sizes: pool_pick(ct, places, sizes=sizes),
    _NUMBERED,
    infer=_infer_put,
)

pool_indices: Callable[..., Any] = general(
    "pool_indices",
    indices_forward,
    infer=lambda x, **params: Aval(infer_windows(x, **params).shape, np.dtype(np.int64)),
    kind="planewise",
    lower=Elements(_index_element, often=True),
    heavy=has_many,
)
