"""The ops of pooling by the largest or smallest element of windows.

The value goes axis by axis, and does not ask where the element stands. Derivatives do: `pool_pick`
reads at such places and `pool_put` adds at them, each the transpose of the other. A place is
counted through the flattened spatial axes, as PyTorch counts it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core import promotion, scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import batch_at_front, batch_together
from gradtape.core.define import general
from gradtape.core.lowering import Elements, Reader, Scatter
from gradtape.core.scalar import Scalar
from gradtape.errors import IndexingError, UnsupportedError
from gradtape.ops import lowered
from gradtape.ops.index import getitem_basic
from gradtape.ops.join import concatenate
from gradtape.ops.nn.windows import Part, Shares, Sizes, Windows, along, part_of
from gradtape.ops.pad import pad_constant
from gradtape.ops.reduce import max_over, min_over
from gradtape.ops.select import maximum, minimum

AllWindows = tuple[Windows | Shares, ...]
# Longer windows are not written out one by one in compiled functions.
_LONGEST = 32


def _lowest(dtype: np.dtype[Any], largest: bool) -> Any:
    """What every element wins against, or ties with."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if largest else np.iinfo(dtype).max
    if dtype.kind == "b":
        return not largest
    return -math.inf if largest else math.inf


def _pooled_shape(shape: tuple[int, ...], windows: AllWindows) -> tuple[int, ...]:
    return (*shape[: -len(windows)], *(w.number for w in windows))


# ---- the value ----------------------------------------------------------------------------------


def _extreme_forward(xp: Any, x: Any, windows: AllWindows, largest: bool) -> Any:
    better = xp.maximum if largest else xp.minimum
    for axis, w in enumerate(windows, start=-len(windows)):
        parts = list(w.parts())
        # Begin with what all windows see, if there is something.
        begin = next((part for part in parts if part.into == slice(0, w.number)), None)
        if begin is None:
            shape = (*x.shape[:axis], w.number, *x.shape[x.ndim + axis + 1 :])
            out = xp.full_like(x, _lowest(x.dtype, largest), shape=shape)
        else:
            out = part_of(x, axis, begin.of).copy(order="K")
        for part in parts:
            if part is not begin:
                best = out[along(axis, part.into)]
                better(best, part_of(x, axis, part.of), out=best)
        x = out
    return x


def _extreme_composition(x: Any, windows: AllWindows, largest: bool) -> Any:
    better = maximum if largest else minimum
    for axis, w in enumerate(windows, start=-len(windows)):
        if isinstance(w, Shares):
            x = _by_shares(x, axis, w, largest)
            continue
        if w.kernel > _LONGEST:
            raise UnsupportedError(f"no native code for windows over more than {_LONGEST} elements")
        x = functools.reduce(better, _all_seen(x, axis, w, _lowest(x.dtype, largest)))
    return x


def _by_shares(x: Any, axis: int, w: Shares, largest: bool) -> Any:
    axis += len(x.shape)
    bounds = map(w.bounds, range(w.number))
    ranges = (
        getitem_basic(x, index=(*(slice(None),) * axis, slice(start, stop)))
        for start, stop in bounds
    )
    extreme = max_over if largest else min_over
    return concatenate([extreme(part, axis=(axis,), keepdims=True) for part in ranges], axis)


def _all_seen(x: Any, axis: int, w: Windows, fill: Any) -> list[Any]:
    """Per place in the windows, what they see there, with padding around the array."""
    around, after = ((0, 0),) * (len(x.shape) + axis), ((0, 0),) * (-axis - 1)
    pad = (w.before, max(w.after, 0))
    padded = x if pad == (0, 0) else pad_constant(x, widths=(*around, pad, *after), fill=fill)
    last = (w.number - 1) * w.stride + 1
    every, rest = (slice(None),) * len(around), (slice(None),) * len(after)
    starts = (tap * w.dilation for tap in range(w.kernel))
    return [
        getitem_basic(padded, index=(*every, slice(start, start + last, w.stride), *rest))
        for start in starts
    ]


# ---- where it stands ----------------------------------------------------------------------------


def _indices_forward(xp: Any, x: Any, windows: AllWindows, largest: bool) -> Any:
    best = _extreme_forward(xp, x, windows, largest)
    missing = x.dtype.kind == "f" and bool(xp.isnan(best).any())
    # Which of the places in its window: from the last to the first, so that the first stays.
    seen = list(itertools.product(*(w.parts() for w in windows)))
    found = xp.zeros_like(best, dtype=np.min_scalar_type(max(len(seen) - 1, 0)))
    for number in range(len(seen) - 1, -1, -1):
        into = (..., *(part.into for part in seen[number]))
        value = x
        for axis, part in enumerate(seen[number], start=-len(windows)):
            value = part_of(value, axis, part.of)
        wins = value == best[into]
        if missing:
            wins |= value != value
        xp.copyto(found[into], number, where=wins)
    starts, offsets = _tables(windows, seen)
    return xp.asarray(starts) + xp.asarray(offsets).take(found)


def _tables(windows: AllWindows, seen: Sequence[tuple[Part, ...]]) -> tuple[Any, Any]:
    """Where each window starts, and how far from there each of the places in it is."""
    starts = np.zeros((), np.int64)
    offsets = np.zeros(len(seen), np.int64)
    for axis, w in enumerate(windows):
        steps = np.array([parts[axis].tap for parts in seen], np.int64)
        if isinstance(w, Shares):
            start, _ = w.bounds(np.arange(w.number))
        else:
            start = np.arange(w.number) * w.stride - w.before
            steps = steps * w.dilation
        starts = starts[..., None] * w.size + start
        offsets = offsets * w.size + steps
    return starts, offsets


# ---- reading and adding at places ---------------------------------------------------------------


def _flat(xp: Any, places: Any, rank: int, size: int) -> Any:
    """Places within the spatial axes as places in the whole flattened array, checked."""
    if places.size and not (places.min() >= 0 and places.max() < size):
        raise IndexingError(
            f"max_unpool: came indices from {places.min()} to {places.max()}; needed numbers from "
            f"0 to {size - 1}"
        )
    rows = math.prod(places.shape[: places.ndim - rank])
    own = math.prod(places.shape[places.ndim - rank :])
    return places.reshape((rows, own)) + xp.arange(rows)[:, None] * size


def _pick_forward(xp: Any, x: Any, places: Any, rank: int) -> Any:
    flat = _flat(xp, places, rank, math.prod(x.shape[x.ndim - rank :]))
    return x.reshape(-1).take(flat).reshape(places.shape)


def _put_forward(xp: Any, x: Any, places: Any, sizes: Sizes) -> Any:
    out = xp.zeros(x.shape[: x.ndim - len(sizes)] + sizes, x.dtype)
    flat = _flat(xp, places, len(sizes), math.prod(sizes))
    xp.add.at(out.reshape(-1), flat.reshape(-1), x.reshape(-1))
    return out


def _place_forward(xp: Any, x: Any, places: Any, sizes: Sizes) -> Any:
    flat = _flat(xp, places, len(sizes), math.prod(sizes))
    if xp.unique(flat).size != flat.size:
        raise IndexingError(
            "max_unpool: came indices that repeat, of windows that overlap; needed different ones: "
            "which element should stand there is not defined"
        )
    return _put_forward(xp, x, places, sizes)


def _coordinates(given: Scalar, places: Reader, sizes: Sizes) -> list[Any]:
    """Where a place is along each spatial axis."""
    size = math.prod(sizes)
    place = places.check(
        given,
        (given >= 0) & (given < size),
        f"max_unpool: came index {{}}; needed numbers from 0 to {size - 1}",
        given,
    )
    found: list[Any] = []
    for n in reversed(sizes):
        found.insert(0, scalar.remainder(place, n))
        place = scalar.floor_divide(place, n)
    return found


def _given(i: Sequence[Any], places: Reader) -> Scalar:
    if 0 in places.aval.shape:
        raise UnsupportedError("no native code for arrays without elements")
    return scalar.convert(places(*i), promotion.INT64)


def _pick_element(i: Sequence[Any], x: Reader, places: Reader, rank: int) -> Scalar:
    lead = len(i) - rank
    return x(*i[:lead], *_coordinates(_given(i, places), places, x.aval.shape[lead:]))


def _put_element(
    i: Sequence[Any], x: Reader, places: Reader, sizes: Sizes
) -> tuple[list[Any], Scalar]:
    lead = i[: len(i) - len(sizes)]
    return [*lead, *_coordinates(_given(i, places), places, sizes)], x(*i)


def _infer_put(x: Aval, _places: Aval, sizes: Sizes) -> Aval:
    return Aval((*x.shape[: len(x.shape) - len(sizes)], *sizes), x.dtype)


# ---- the ops ------------------------------------------------------------------------------------

# Linear in x; transpose: add at the places. Places have no derivative.
pool_pick: Callable[..., Any] = general(
    "pool_pick",
    _pick_forward,
    infer=lambda x, places, rank: Aval(places.shape, x.dtype),
    vjps=(
        lambda ct, _out, _x, places, rank: pool_put(
            ct, places, sizes=tuple(_x.shape[len(_x.shape) - rank :])
        ),
        lambda ct, _out, _x, _places, rank: None,
    ),
    jvp=lambda tangents, _out, _x, places, rank: pool_pick(tangents[0], places, rank=rank),
    batch=batch_together,
    lower=Elements(_pick_element),
)

# Linear in x; transpose: read at the places.
pool_put: Callable[..., Any] = general(
    "pool_put",
    _put_forward,
    infer=_infer_put,
    vjps=(
        lambda ct, _out, _x, places, sizes: pool_pick(ct, places, rank=len(sizes)),
        lambda ct, _out, _x, _places, sizes: None,
    ),
    jvp=lambda tangents, _out, _x, places, sizes: pool_put(tangents[0], places, sizes=sizes),
    batch=batch_together,
    # Along the axes before the spatial ones places never coincide, but those are not the last.
    lower=Scatter(lambda x, places, sizes: (x.shape, ()), _put_element, adds=True),
)

# The same of places that do not repeat.
pool_place: Callable[..., Any] = general(
    "max_unpool",
    _place_forward,
    infer=_infer_put,
    vjps=(
        lambda ct, _out, _x, places, sizes: pool_pick(ct, places, rank=len(sizes)),
        lambda ct, _out, _x, _places, sizes: None,
    ),
    jvp=lambda tangents, _out, _x, places, sizes: pool_put(tangents[0], places, sizes=sizes),
    batch=batch_together,
)

pool_indices: Callable[..., Any] = general(
    "pool_indices",
    _indices_forward,
    infer=lambda x, windows, largest: Aval(_pooled_shape(x.shape, windows), np.dtype(np.int64)),
    batch=batch_at_front,
)


def _extreme_vjp(ct: Any, _out: Any, x: Any, windows: AllWindows, largest: bool) -> Any:
    places = pool_indices(x, windows=windows, largest=largest)
    return pool_put(ct, places, sizes=tuple(w.size for w in windows))


def _extreme_jvp(
    tangents: Sequence[Any], _out: Any, x: Any, windows: AllWindows, largest: bool
) -> Any:
    places = pool_indices(x, windows=windows, largest=largest)
    return pool_pick(tangents[0], places, rank=len(windows))


# d max(x) = dx where the largest element stands, the first of those that are equal
pool_extreme = general(
    "pool_extreme",
    _extreme_forward,
    infer=lambda x, windows, largest: Aval(_pooled_shape(x.shape, windows), x.dtype),
    vjps=(_extreme_vjp,),
    jvp=_extreme_jvp,
    batch=batch_at_front,
    lower=lowered.composite(_extreme_composition),
)
