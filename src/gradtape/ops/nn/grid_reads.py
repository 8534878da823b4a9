"""Sums of elements at computed places, with weights: three products, each derived from the others.

There are x (samples, channels, *sizes), y (samples, channels, *spots) and, per spot, some terms: a
place in the flattened spatial axes of x and a weight, both (samples, terms, *spots). The sum of all
y·weight·x[place] is linear in x, y and the weights: `grid_read` is the factor of y, `grid_add` that
of x and `grid_dot` that of the weights. A place of -1 stands for no element.

`sizes` are those of the spatial axes; a None after them says that channels and terms come last.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core import promotion, scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import batch_as_samples
from gradtape.core.call import call
from gradtape.core.define import multilinear
from gradtape.core.lowering import Composite, Elements, Reader, Scatter
from gradtape.core.op import Op, Zero
from gradtape.core.scalar import Scalar
from gradtape.errors import UnsupportedError
from gradtape.ops import lowered
from gradtape.ops.cast import conj_if_complex
from gradtape.ops.index import getitem_basic
from gradtape.ops.join import concatenate
from gradtape.ops.reduce import sum_over

AllSizes = tuple[int | None, ...]

# More terms are not written out one by one in native code.
_MOST_TERMS = 64

# ---- on arrays ----------------------------------------------------------------------------------


def _in_order(xp: Any, sizes: AllSizes, *arrays: Any) -> tuple[Any, ...]:
    """Arrays with channels or terms as their second axis, in a dtype to compute sums in."""
    if sizes[-1] is None:
        arrays = tuple(xp.moveaxis(z, -1, 1) for z in arrays)
    return tuple(z.astype(np.float32) if z.dtype == np.float16 else z for z in arrays)


def _as_given(xp: Any, out: Any, sizes: AllSizes, *arrays: Any) -> Any:
    """A result with the order of axes and the dtype of the arrays it was computed from."""
    out = xp.moveaxis(out, 1, -1) if sizes[-1] is None else out
    return out.astype(np.result_type(*arrays), copy=False)


def _places(xp: Any, places: Any, term: int, channels: int, size: int) -> tuple[Any, Any]:
    """Where a term reads, (samples, channels, *spots) in the flattened array; where it does not."""
    own = places[:, term : term + 1]
    rows = xp.arange(len(places) * channels).reshape((-1, channels, *(1,) * (own.ndim - 2)))
    return rows * size + xp.maximum(own, 0), own < 0


def _read_forward(xp: Any, x: Any, places: Any, weights: Any, sizes: AllSizes) -> Any:
    wide, at, shares = _in_order(xp, sizes, x, places, weights)
    channels, size = wide.shape[1], math.prod(wide.shape[2:])
    out = xp.zeros((len(wide), channels, *at.shape[2:]), np.result_type(wide, shares))
    for term in range(at.shape[1]):
        found, nowhere = _places(xp, at, term, channels, size)
        values = wide.reshape(-1).take(found) * shares[:, term : term + 1]
        out += xp.where(nowhere, 0, values)
    return _as_given(xp, out, sizes, x, weights)


def _add_forward(xp: Any, y: Any, places: Any, weights: Any, sizes: AllSizes) -> Any:
    wide, at, shares = _in_order(xp, sizes, y, places, weights)
    own = [n for n in sizes if n is not None]
    out = xp.zeros((*wide.shape[:2], *own), np.result_type(wide, shares))
    for term in range(at.shape[1]):
        found, nowhere = _places(xp, at, term, wide.shape[1], math.prod(own))
        values = xp.where(nowhere, 0, wide * shares[:, term : term + 1])
        xp.add.at(out.reshape(-1), found.reshape(-1), values.reshape(-1))
    return _as_given(xp, out, sizes, y, weights)


def _dot_forward(xp: Any, x: Any, y: Any, places: Any, sizes: AllSizes) -> Any:
    wide, other, at = _in_order(xp, sizes, x, y, places)
    channels, size = wide.shape[1], math.prod(wide.shape[2:])
    out = xp.zeros(at.shape, np.result_type(wide, other))
    for term in range(at.shape[1]):
        found, nowhere = _places(xp, at, term, channels, size)
        values = xp.where(nowhere, 0, wide.reshape(-1).take(found) * other)
        out[:, term] = values.sum(axis=1)
    return _as_given(xp, out, sizes, x, y)


# ---- one element --------------------------------------------------------------------------------


def _index(sizes: AllSizes, sample: Any, own: Any, spatial: Sequence[Any]) -> list[Any]:
    """An index from its parts: the sample, the channel or term, and the rest."""
    return [sample, *spatial, own] if sizes[-1] is None else [sample, own, *spatial]


def _split(i: Sequence[Any], sizes: AllSizes) -> tuple[Any, Any, Sequence[Any]]:
    return (i[0], i[-1], i[1:-1]) if sizes[-1] is None else (i[0], i[1], i[2:])


def _coordinates(place: Scalar, sizes: AllSizes) -> list[Any]:
    """Where a place in flattened axes is along each of them."""
    found: list[Any] = []
    for n in [n for n in sizes if n is not None][:0:-1]:
        found.insert(0, scalar.remainder(place, n))
        place = scalar.floor_divide(place, n)
    return [place, *found]


def _count(places: Aval, sizes: AllSizes) -> int:
    """How many terms there are."""
    count: int = places.shape[-1 if sizes[-1] is None else 1]
    if count > _MOST_TERMS or 0 in places.shape:
        raise UnsupportedError("no native code for so many terms, or for none")
    return count


def _term(i: Sequence[Any], term: int, x: Reader, places: Reader, sizes: AllSizes) -> Scalar:
    """The element that a term reads, 0 for none."""
    sample, channel, spot = _split(i, sizes)
    place = scalar.convert(places(*_index(sizes, sample, term, spot)), promotion.INT64)
    index = _index(sizes, sample, channel, _coordinates(place, sizes))
    return lowered.read_or(0, x, index, place >= 0)


def _read_element(
    i: Sequence[Any], x: Reader, places: Reader, weights: Reader, sizes: AllSizes
) -> Scalar:
    sample, _, spot = _split(i, sizes)
    terms = []
    for term in range(_count(places.aval, sizes)):
        at = _index(sizes, sample, term, spot)
        value = _term(i, term, x, places, sizes) * weights(*at)
        terms.append(scalar.where(places(*at) < 0, 0, value))
    return functools.reduce(operator.add, terms)


def _add_sizes(y: Aval, places: Aval, _weights: Aval, sizes: AllSizes) -> tuple[Any, Any]:
    _, channels, spots = _split(y.shape, sizes)
    return (_count(places, sizes), *spots), (y.shape[0], channels)


def _add_put(
    i: Sequence[Any], y: Reader, places: Reader, weights: Reader, sizes: AllSizes
) -> tuple[list[Any], Scalar]:
    term, *spot, sample, channel = i
    at = _index(sizes, sample, term, spot)
    place = scalar.convert(places(*at), promotion.INT64)
    value = y(*_index(sizes, sample, channel, spot)) * weights(*at)
    index = _coordinates(scalar.where(place < 0, 0, place), sizes)
    return _index(sizes, sample, channel, index), scalar.where(place < 0, 0, value)


# The elements that one term reads; only compiled functions use this op.
_SEEN = Op(
    "seen_at_places",
    lambda xp, x, places, sizes: _read_forward(
        xp, x, places, xp.ones(places.shape, x.dtype), sizes
    ),
    lambda x, places, sizes: _infer_read(x, places, x, sizes),
    lower=Elements(lambda i, x, places, sizes: _term(i, 0, x, places, sizes)),
)


def _dot_composition(x: Any, y: Any, places: Any, sizes: AllSizes) -> Any:
    axis = len(places.shape) - 1 if sizes[-1] is None else 1
    sums = []
    for term in range(_count(places, sizes)):
        own = getitem_basic(places, index=(*(slice(None),) * axis, slice(term, term + 1)))
        seen = call(_SEEN, (x, own), {"sizes": sizes})
        sums.append(sum_over(seen * y, axis=(axis,), keepdims=True))
    return concatenate(sums, axis)


# ---- the ops ------------------------------------------------------------------------------------


def _infer_read(x: Aval, places: Aval, weights: Aval, sizes: AllSizes) -> Aval:
    (_, channels, _), (sample, _, spots) = (_split(z.shape, sizes) for z in (x, places))
    shape = tuple(_index(sizes, sample, channels, spots))
    return Aval(shape, np.result_type(x.dtype, weights.dtype))


def _infer_add(y: Aval, _places: Aval, weights: Aval, sizes: AllSizes) -> Aval:
    sample, channels, _ = _split(y.shape, sizes)
    shape = tuple(_index(sizes, sample, channels, [n for n in sizes if n is not None]))
    return Aval(shape, np.result_type(y.dtype, weights.dtype))


_NUMBERED = Zero("a place is a number, and does not change by a little")

# out[n, c, s] = Σ over terms k: w[n, k, s]·x[n, c, place[n, k, s]]
grid_read: Callable[..., Any] = multilinear(
    "grid_read",
    _read_forward,
    lambda ct, _out, _x, places, weights, sizes: grid_add(
        ct, places, conj_if_complex(weights), sizes=sizes
    ),
    _NUMBERED,
    lambda ct, _out, x, places, _weights, sizes: grid_dot(
        conj_if_complex(x), ct, places, sizes=sizes
    ),
    infer=_infer_read,
    batch=batch_as_samples,
    kind="planewise",
    lower=Elements(_read_element, often=True),
)

# Σ w[n, k, s]·y[n, c, s] added at place[n, k, s]
grid_add: Callable[..., Any] = multilinear(
    "grid_add",
    _add_forward,
    lambda ct, _out, _y, places, weights, sizes: grid_read(
        ct, places, conj_if_complex(weights), sizes=sizes
    ),
    _NUMBERED,
    lambda ct, _out, y, places, _weights, sizes: grid_dot(
        ct, conj_if_complex(y), places, sizes=sizes
    ),
    infer=_infer_add,
    batch=batch_as_samples,
    kind="planewise",
    lower=Scatter(_add_sizes, _add_put, adds=True),
)

# out[n, k, s] = Σ over channels c: x[n, c, place[n, k, s]]·y[n, c, s]
grid_dot: Callable[..., Any] = multilinear(
    "grid_dot",
    _dot_forward,
    lambda ct, _out, _x, y, places, sizes: grid_add(conj_if_complex(y), places, ct, sizes=sizes),
    lambda ct, _out, x, _y, places, sizes: grid_read(conj_if_complex(x), places, ct, sizes=sizes),
    _NUMBERED,
    infer=lambda x, y, places, sizes: Aval(places.shape, np.result_type(x.dtype, y.dtype)),
    batch=batch_as_samples,
    kind="planewise",
    lower=Composite(_dot_composition),
)
