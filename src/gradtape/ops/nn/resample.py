"""One linear op for everything that combines elements along single axes with known weights.

Resizing, adaptive averages and padding by reflection are such: along each axis, every element of
the result is a sum of a few elements with weights that depend on sizes only. Its transpose is the
same op with the weights transposed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_at_front
from gradtape.core.define import linear
from gradtape.ops.nn.windows import Shares, along, part_of


class Map(NamedTuple):
    """How an axis of `size` elements becomes one of `length`.

    Attributes:
        kind: One of the names in `_SOURCES` below.
        size: How many elements there are.
        length: How many there will be.
        step: By how many elements the place moves that is read for the next element; for padding,
            how many elements are added before the others.
        corners: Whether the first and the last elements keep their places.
    """

    kind: str
    size: int
    length: int
    step: float = 0.0
    corners: bool = False


class Term(NamedTuple):
    """One of the products that are summed: for these elements of the result, of which, times what.

    Attributes:
        into: Which elements of the result; None for all of them.
        of: Which element of the operand, for each.
        weights: What it is multiplied with; None for 1.
    """

    into: Any
    of: Any
    weights: Any


# ---- weights ------------------------------------------------------------------------------------
#
# Each function gives which elements are read for each element of the result, and with what weight:
# arrays (elements of the result, terms).


def _nearest(m: Map) -> tuple[Any, Any]:
    # In single precision, so that what is almost whole is whole, as in PyTorch.
    of = np.floor((np.arange(m.length) * m.step).astype(np.float32))
    return np.minimum(of, m.size - 1)[:, None], np.ones((m.length, 1))


def _nearest_exact(m: Map) -> tuple[Any, Any]:
    of = np.floor((np.maximum(_places(m), 0) + 0.5).astype(np.float32))
    return np.minimum(of, m.size - 1)[:, None], np.ones((m.length, 1))


def _places(m: Map) -> Any:
    """Where between the elements those of the result lie."""
    number = np.arange(m.length)
    return number * m.step if m.corners else (number + 0.5) * m.step - 0.5


def _linear(m: Map) -> tuple[Any, Any]:
    place = np.maximum(_places(m), 0)
    left = np.minimum(np.floor(place), m.size - 1)
    share = np.clip(place - left, 0, 1)
    right = np.minimum(left + 1, m.size - 1)
    return np.stack([left, right], 1), np.stack([1 - share, share], 1)


def _cubic(m: Map) -> tuple[Any, Any]:
    """Cubic convolution with the slope −0.75 at distance 1; the ends are repeated."""
    slope, place = -0.75, _places(m)
    left = np.floor(place)
    share = place - left
    offsets = np.arange(-1, 3)
    t = np.abs(share[:, None] - offsets)
    near = ((slope + 2) * t - (slope + 3)) * t * t + 1
    far = ((slope * t - 5 * slope) * t + 8 * slope) * t - 4 * slope
    return np.clip(left[:, None] + offsets, 0, m.size - 1), np.where(t <= 1, near, far)


def _area(m: Map) -> tuple[Any, Any]:
    start, stop = Shares(m.size, m.length).bounds(np.arange(m.length)[:, None])
    of = start + np.arange(int((stop - start).max(initial=0)))
    return np.minimum(of, m.size - 1), (of < stop) / (stop - start)


def _padded(mode: str) -> Callable[[Map], tuple[Any, Any]]:
    def source(m: Map) -> tuple[Any, Any]:
        place = np.arange(m.length) - int(m.step)
        if mode == "replicate":
            of = np.clip(place, 0, m.size - 1)
        elif mode == "circular":
            of = place % m.size
        else:
            # There and back again without repeating the ends.
            period = max(2 * (m.size - 1), 1)
            of = (m.size - 1) - np.abs(place % period - (m.size - 1))
        return of[:, None], np.ones((m.length, 1))

    return source


_SOURCES: dict[str, Callable[[Map], tuple[Any, Any]]] = {
    "nearest": _nearest,
    "nearest-exact": _nearest_exact,
    "linear": _linear,
    "cubic": _cubic,
    "area": _area,
    "reflect": _padded("reflect"),
    "replicate": _padded("replicate"),
    "circular": _padded("circular"),
}


@functools.lru_cache(maxsize=256)
def _terms(m: Map, transposed: bool) -> tuple[Term, ...]:
    """The products that are summed for each element of the result."""
    of, weights = _SOURCES[m.kind](m)
    row, column = np.nonzero(weights)
    into, of, weights = row, of[row, column].astype(np.intp), weights[row, column]
    if transposed:
        order = np.argsort(of, kind="stable")
        into, of, weights = of[order], into[order], weights[order]
    size = m.size if transposed else m.length
    # The number of each term among those of its element.
    starts = np.searchsorted(into, np.arange(size))
    number = np.arange(len(into)) - starts[into]
    found = []
    for k in range(int(number.max(initial=-1)) + 1):
        chosen = number == k
        whole, one = np.count_nonzero(chosen) == size, (weights[chosen] == 1).all()
        target = None if whole else _as_slice(into[chosen])
        found.append(Term(target, of[chosen], None if one else weights[chosen]))
    return tuple(found)


def _as_slice(places: Any) -> Any:
    """Places as a slice, if they are beside each other: far faster to add to."""
    side_by_side = places[-1] - places[0] == len(places) - 1
    return slice(places[0], places[-1] + 1) if side_by_side else places


@functools.lru_cache(maxsize=256)
def _matrix(m: Map, transposed: bool) -> Any:
    """All weights as a matrix (elements of the operand, of the result), if none of them is 0."""
    if m.kind != "area" or m.length > 1 or m.size == 0:
        return None
    ones = np.full((m.size, 1), 1 / m.size)
    return ones.T if transposed else ones


# ---- the op -------------------------------------------------------------------------------------


def is_selection(m: Map | None) -> bool:
    """Whether elements are only moved, so that numbers of any kind can be."""
    return m is None or all(term.weights is None for term in _terms(m, False))


def _resample_forward(xp: Any, x: Any, maps: tuple[Map | None, ...], transposed: bool) -> Any:
    out = x.astype(np.float32) if x.dtype == np.float16 else x
    for axis, m in enumerate(maps, start=-len(maps)):
        if m is not None:
            out = _along_axis(xp, out, axis, m, transposed)
    return out.astype(x.dtype, copy=out is x)


def _along_axis(xp: Any, x: Any, axis: int, m: Map, transposed: bool) -> Any:
    matrix = _matrix(m, transposed)
    if matrix is not None:
        product = x.swapaxes(axis, -1) @ xp.asarray(matrix, x.real.dtype)
        return product.swapaxes(axis, -1)
    terms, count = _terms(m, transposed), m.size if transposed else m.length
    begins = bool(terms) and terms[0].into is None
    shape = (*x.shape[:axis], count, *x.shape[x.ndim + axis + 1 :])
    out = None if begins else xp.zeros(shape, x.dtype)
    for into, of, weights in terms:
        value = part_of(x, axis, of)
        if weights is not None:
            value *= xp.asarray(weights, x.real.dtype).reshape((-1, *(1,) * (-axis - 1)))
        if out is None:
            out = value
        elif into is None:
            out += value
        else:
            out[along(axis, into)] += value
    return out


def _infer(x: Aval, maps: tuple[Map | None, ...], transposed: bool) -> Aval:
    shape = list(x.shape)
    for axis, m in enumerate(maps, start=-len(maps)):
        if m is not None:
            shape[axis] = m.size if transposed else m.length
    return Aval(tuple(shape), x.dtype)


# d(W·x) = W·dx; transpose: Wᵀ
resample: Callable[..., Any] = linear(
    "resample",
    _resample_forward,
    lambda ct, _out, _x, maps, transposed: resample(ct, maps=maps, transposed=not transposed),
    infer=_infer,
    batch=batch_at_front,
)
