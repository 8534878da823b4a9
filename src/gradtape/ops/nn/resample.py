"""One linear op for everything that combines elements along single axes with known weights.

Resizing, adaptive averages and padding by reflection are of this kind: along each axis, every
element of the result is a sum of a few elements with weights that depend on sizes only. Its
transpose is the same op with the weights transposed.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import general
from gradtape.core.lowering import Composite, Elements, Reader
from gradtape.core.op import Op
from gradtape.core.scalar import Scalar
from gradtape.errors import UnsupportedError
from gradtape.ops import lowered
from gradtape.ops.arguments import Batch
from gradtape.ops.nn.windows import Shares, along, part_of

# Longer sums are not written out term by term in native code.
_MOST_TERMS = 64


class Map(NamedTuple):
    """How an axis of `size` elements becomes one of `length`.

    Attributes:
        kind: One of the names in `_SOURCES` below.
        size: How many elements there are.
        length: How many there will be.
        step: The distance between the places read for neighbouring elements; for padding, how many
            elements are added before the others.
        corners: Whether the first and the last elements keep their places.
    """

    kind: str
    size: int
    length: int
    step: float = 0.0
    corners: bool = False


# One for each of the last axes; None leaves an axis unchanged.
Maps = tuple[Map | None, ...]


class Term(NamedTuple):
    """One product of the sum: elements of the operand times weights, added to the result.

    Attributes:
        into: Which elements of the result; None for all of them.
        of: Which element of the operand, for each.
        weights: Its factor; None for 1.
    """

    into: Any
    of: Any
    weights: Any


# ---- weights ------------------------------------------------------------------------------------
#
# Each function gives which elements are read for each element of the result, and with what weight:
# arrays (elements of the result, terms).


def _nearest(m: Map) -> tuple[Any, Any]:
    # In single precision, so that almost whole numbers become whole, as in PyTorch.
    of = np.floor((np.arange(m.length) * m.step).astype(np.float32))
    return np.minimum(of, m.size - 1)[:, None], np.ones((m.length, 1))


def _nearest_exact(m: Map) -> tuple[Any, Any]:
    of = np.floor((np.maximum(_places(m), 0) + 0.5).astype(np.float32))
    return np.minimum(of, m.size - 1)[:, None], np.ones((m.length, 1))


def _places(m: Map) -> Any:
    """The places of the elements of the result between those of the operand."""
    number = np.arange(m.length)
    return number * m.step if m.corners else (number + 0.5) * m.step - 0.5


def _linear(m: Map) -> tuple[Any, Any]:
    place = np.maximum(_places(m), 0)
    left = np.minimum(np.floor(place), m.size - 1)
    share = np.clip(place - left, 0, 1)
    right = np.minimum(left + 1, m.size - 1)
    return np.stack([left, right], 1), np.stack([1 - share, share], 1)


# The slope of cubic convolution at distance 1.
_SLOPE = -0.75


def cubic_near(t: Any) -> Any:
    """The weight of cubic convolution at a distance up to 1."""
    return ((_SLOPE + 2) * t - (_SLOPE + 3)) * t * t + 1


def cubic_far(t: Any) -> Any:
    """The weight of cubic convolution at a distance from 1 to 2."""
    return ((_SLOPE * t - 5 * _SLOPE) * t + 8 * _SLOPE) * t - 4 * _SLOPE


def _cubic(m: Map) -> tuple[Any, Any]:
    place, offsets = _places(m), np.arange(-1, 3)
    left = np.floor(place)
    t = np.abs((place - left)[:, None] - offsets)
    weights = np.where(t <= 1, cubic_near(t), cubic_far(t))
    return np.clip(left[:, None] + offsets, 0, m.size - 1), weights  # the ends are repeated


def _area(m: Map) -> tuple[Any, Any]:
    start, stop = Shares(m.size, m.length).bounds(np.arange(m.length)[:, None])
    of = start + np.arange(int((stop - start).max(initial=0)))
    return np.minimum(of, m.size - 1), (of < stop) / (stop - start)


def _padded(m: Map) -> tuple[Any, Any]:
    place = np.arange(m.length) - int(m.step)
    if m.kind == "replicate":
        of = np.clip(place, 0, m.size - 1)
    elif m.kind == "circular":
        of = place % m.size
    else:
        # There and back again without repeating the ends.
        period = max(2 * (m.size - 1), 1)
        of = (m.size - 1) - np.abs(place % period - (m.size - 1))
    return of[:, None], np.ones((m.length, 1))


_SOURCES: dict[str, Callable[[Map], tuple[Any, Any]]] = {
    "nearest": _nearest,
    "nearest-exact": _nearest_exact,
    "linear": _linear,
    "cubic": _cubic,
    "area": _area,
    "reflect": _padded,
    "replicate": _padded,
    "circular": _padded,
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
    """Places as a slice, if they are next to each other: far faster to add to."""
    side_by_side = places[-1] - places[0] == len(places) - 1
    return slice(places[0], places[-1] + 1) if side_by_side else places


@functools.lru_cache(maxsize=256)
def _matrix(m: Map, transposed: bool) -> Any:
    """All weights as a matrix (elements of the operand, of the result), if none of them is 0."""
    if m.kind != "area" or m.length > 1 or m.size == 0:
        return None
    ones = np.full((m.size, 1), 1 / m.size)
    return ones.T if transposed else ones


# ---- on arrays ----------------------------------------------------------------------------------


def is_selection(m: Map | None) -> bool:
    """Whether elements are only moved, so that any dtype will do."""
    return m is None or all(term.weights is None for term in _terms(m, False))


def _resample_forward(xp: Any, x: Any, *_tables: Any, maps: Maps, transposed: bool) -> Any:
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


def _infer(x: Aval, *_tables: Aval, maps: Maps, transposed: bool) -> Aval:
    shape = list(x.shape)
    for axis, m in enumerate(maps, start=-len(maps)):
        if m is not None:
            shape[axis] = m.size if transposed else m.length
    return Aval(tuple(shape), x.dtype)


# ---- one element --------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def _tables(m: Map, transposed: bool, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Which elements are read for each element of the result, and with what weights.

    Both are arrays (elements of the result, terms). Where there are fewer terms, the last one is
    split into parts that add up to it; a weight of 0 stands for no term at all.
    """
    terms, count = _terms(m, transposed), m.size if transposed else m.length
    of = np.zeros((count, len(terms)), np.int64)
    weights = np.zeros((count, len(terms)), np.empty(0, dtype).real.dtype)
    for n, term in enumerate(terms):
        into = slice(None) if term.into is None else term.into
        of[into, n] = term.of
        weights[into, n] = 1 if term.weights is None else term.weights
    if weights.dtype.kind == "f":
        for n in range(1, len(terms)):
            missing = weights[:, n] == 0
            weights[missing, n - 1] /= 2
            weights[missing, n] = weights[missing, n - 1]
            of[missing, n] = of[missing, n - 1]
    return of, weights


def _resample_composition(x: Any, *tables: Any, maps: Maps, transposed: bool) -> Any:
    """All axes at once where few elements are summed; else axis by axis, in fewer steps."""
    first = len(x.shape) - len(maps)
    axes = tuple(axis for axis, m in enumerate(maps, start=first) if m is not None)
    if not axes:
        return x
    counts = [of.shape[1] for of in tables[::2]]
    dtype = np.dtype(x.dtype)
    weights = (_tables(m, transposed, dtype)[1] for m in maps if m is not None)
    params = {"axes": axes, "gaps": any(not table.all() for table in weights)}
    if max(counts, default=0) > _MOST_TERMS:
        raise UnsupportedError(f"no native code for sums of more than {_MOST_TERMS} elements")
    if math.prod(counts) <= _MOST_TERMS:
        return call(_WEIGHTED_SUMS, (x, *tables), params)
    for n, axis in enumerate(axes):
        x = call(_WEIGHTED_SUMS, (x, *tables[2 * n : 2 * n + 2]), {**params, "axes": (axis,)})
    return x


def _weighted_element(
    i: Sequence[Any], x: Reader, *tables: Reader, axes: tuple[int, ...], gaps: bool
) -> Scalar:
    """The sum of all products of the weights along each axis with the element they belong to."""
    by_axis = [
        [(of(i[axis], k), weights(i[axis], k)) for k in range(of.aval.shape[1])]
        for axis, of, weights in zip(axes, tables[::2], tables[1::2], strict=True)
    ]
    terms = []
    for chosen in itertools.product(*by_axis):
        index = list(i)
        for axis, (place, _) in zip(axes, chosen, strict=True):
            index[axis] = place
        weight = functools.reduce(operator.mul, [weight for _, weight in chosen])
        terms.append(lowered.read_or(0, x, index, weight != 0 if gaps else None) * weight)
    return functools.reduce(operator.add, terms)


def _weighted_forward(xp: Any, x: Any, *tables: Any, axes: tuple[int, ...], gaps: bool) -> Any:
    for axis, of, weights in zip(axes, tables[::2], tables[1::2], strict=True):
        last = xp.moveaxis(x, axis, -1)
        terms = xp.where(weights != 0, last[..., of], 0) * weights
        x = xp.moveaxis(terms.sum(-1, dtype=x.dtype), -1, axis)
    return x


def _infer_weighted(x: Aval, *tables: Aval, axes: tuple[int, ...], gaps: bool) -> Aval:
    shape = list(x.shape)
    for axis, of in zip(axes, tables[::2], strict=True):
        shape[axis] = of.shape[0]
    return Aval(tuple(shape), x.dtype)


# Only compiled functions know it.
_WEIGHTED_SUMS = Op(
    "weighted_sums",
    _weighted_forward,
    _infer_weighted,
    lower=Elements(_weighted_element, often=True),
)


# ---- the op -------------------------------------------------------------------------------------


def resample(x: Any, /, *, maps: Maps, transposed: bool) -> Any:
    """Map each of the last axes that has a map, or apply the transpose of that."""
    tables: list[Any] = []
    for m in maps:
        tables += () if m is None else _tables(m, transposed, np.dtype(x.dtype))
    return _resample(x, *tables, maps=maps, transposed=transposed)


def _vjp(
    which: int, ct: Any, _out: Any, _x: Any, *_tables: Any, maps: Maps, transposed: bool
) -> Any:
    return resample(ct, maps=maps, transposed=not transposed) if which == 0 else None


def _batch(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    x, *tables = args
    return call(op, (move_batch_axis(x, axes[0]), *tables), params), 0


# d(W·x) = W·dx; transpose: Wᵀ. The tables of W are for native code.
_resample = general(
    "resample",
    _resample_forward,
    infer=_infer,
    vjp_each=_vjp,
    jvp=lambda tangents, _out, _x, *_tables, **params: resample(tangents[0], **params),
    batch=_batch,
    kind="planewise",
    lower=Composite(_resample_composition),
)
