"""Reading parts of arrays: `x[index]`, basic and with arrays.

A basic index (integers, slices, None, Ellipsis) gives a view. An index with arrays is split in two:
a basic index, and an array for some of the axes that are left, which `gather` does. Boolean masks
become integer arrays.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Sequence
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_first
from gradtape.core.call import record_recomputable, recording_segment
from gradtape.core.define import linear
from gradtape.core.fast import F32, F64
from gradtape.core.level import Node, Segment
from gradtape.core.lowering import Elements, Reader
from gradtape.core.nested import Handle, View, unshell
from gradtape.core.op import Facts, Op
from gradtape.core.recomputable import RecomputableIndexing
from gradtape.core.record import Indexing
from gradtape.core.scalar import Scalar
from gradtape.core.state import STATE, adopted, values_read
from gradtape.core.tensor import Tensor, as_value, innermost
from gradtape.errors import GradtapeError, IndexingError
from gradtape.ops import lowered
from gradtape.ops.arguments import as_array
from gradtape.ops.gather import as_indices, gather_axes, gather_leading
from gradtape.typing import Array, ArrayLike

ndarray = np.ndarray
FULL = slice(None)
Index = tuple[Any, ...]

# Items that can be kept as they are: immutable, and neither arrays nor booleans.
_BOUNDS = frozenset({int, NoneType, np.int64, np.int32})
_ITEMS = _BOUNDS | {EllipsisType}


# ---- basic indices ------------------------------------------------------------------------------


def basic_index(index: Any) -> Index | None:
    """`index` as a tuple if it is a basic one in plain form, else None."""
    items = index if type(index) is tuple else (index,)
    for item in items:
        kind = type(item)
        if kind is slice:
            if (
                type(item.start) not in _BOUNDS
                or type(item.stop) not in _BOUNDS
                or type(item.step) not in _BOUNDS
            ):
                return None
        elif kind not in _ITEMS:
            return None
    return items


def part_shape(index: Index, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the part that a basic index selects."""
    sizes: list[int] = []
    axis = 0
    for place, item in enumerate(index):
        if item is None:
            sizes.append(1)
        elif item is Ellipsis:
            end = len(shape) - sum(later is not None for later in index[place + 1 :])
            sizes += shape[axis:end]
            axis = end
        else:
            if isinstance(item, slice):
                sizes.append(len(range(*item.indices(shape[axis]))))
            axis += 1
    return (*sizes, *shape[axis:])


def _taken(index: Index, shape: tuple[int, ...]) -> list[tuple[range, int | None]]:
    """Per axis the range of a basic index, and the axis of the part it becomes (None: a number)."""
    taken: list[tuple[range, int | None]] = []
    place = 0
    for at, item in enumerate(index):
        if item is Ellipsis:
            end = len(shape) - sum(later is not None for later in index[at + 1 :])
            items = [FULL] * (end - len(taken))
        else:
            items = [item]
        for one in items:
            if isinstance(one, slice):
                taken.append((range(*one.indices(shape[len(taken)])), place))
            elif one is not None:
                taken.append((range(shape[len(taken)])[one : one + 1 or None], None))
            place += one is None or isinstance(one, slice)
    rest = shape[len(taken) :]
    return taken + [(range(n), place + i) for i, n in enumerate(rest)]


def _getitem_element(i: Sequence[Scalar], x: Reader, index: Index) -> Scalar:
    taken = _taken(index, x.aval.shape)
    return x(*(r.start if to is None else i[to] * r.step + r.start for r, to in taken))


def place_in_part(
    i: Sequence[Scalar], index: Index, shape: tuple[int, ...]
) -> tuple[list[Any], Scalar | None]:
    """The place of an element in the part that a basic index takes, and whether it is in it."""
    place: list[Any] = [0] * len(part_shape(index, shape))
    inside = None
    for k, size, (taken, to) in zip(i, shape, _taken(index, shape), strict=True):
        forward = taken if taken.step > 0 else taken[::-1]
        inside = lowered.both(
            inside, lowered.between(k, forward.start, max(forward[-1:], default=-1) + 1, size)
        )
        if forward.step > 1 and len(forward) > 1:
            inside = lowered.both(inside, (k - forward.start) % forward.step == 0)
        if to is not None:
            steps = k - forward.start if taken.step > 0 else taken.start - k
            place[to] = steps // forward.step if forward.step > 1 else steps
    return place, inside


# d x[i] = dx[i]; transpose: zeros with ct at i
getitem_basic = linear(
    "getitem",
    lambda xp, x, index: x[index],
    lambda ct, _out, _x, index: put(ct, shape=_x.shape, index=index),
    infer=lambda x, index: Aval(part_shape(index, x.shape), x.dtype),
    batch=batch_first(lambda size, index: {"index": (FULL, *index)}),
    aliases=True,
    facts=Facts(rearranges=True, layout="view"),
    lower=Elements(_getitem_element),
)


def _put_forward(xp: Any, x: Any, shape: tuple[int, ...], index: Index) -> Any:
    out = xp.zeros(shape, x.dtype)
    out[index] = x
    return out


put: Callable[..., Any] = linear(
    "put",
    _put_forward,
    lambda ct, _out, _x, shape, index: getitem_basic(ct, index=index),
    infer=lambda x, shape, index: Aval(shape, x.dtype),
    batch=batch_first(
        lambda size, shape, index: {"shape": (size, *shape), "index": (FULL, *index)}
    ),
    lower=Elements(
        lambda i, x, shape, index: lowered.read_or(0, x, *place_in_part(i, index, shape))
    ),
)


# ---- any index ----------------------------------------------------------------------------------


def split_index(index: Any, shape: tuple[int, ...], name: str) -> tuple[Index, list[Any], int]:
    """An index as a basic one, and arrays to index its result with.

    Args:
        index: The index in brackets.
        shape: The shape of what is indexed.
        name: The function, for errors.

    Returns:
        The basic index, without Ellipsis; an array or None per axis it leaves (empty if there is no
        array); the axis where NumPy puts the result of the arrays: that of the first array, or 0
        if something stands between the arrays.
    """
    items = _items(index, name)
    at = 0
    if any(isinstance(item, ndarray | Tensor) for item in items):
        # Next to an array, a number acts as an array as well.
        items = [np.asarray(item) if isinstance(item, int) else item for item in items]
        places = [i for i, item in enumerate(items) if isinstance(item, ndarray | Tensor)]
        at = -1 if places[-1] - places[0] == len(places) - 1 else 0
    basic: list[Any] = []
    arrays: list[Any] = []
    axis = 0
    for item in _without_ellipsis(items, shape, name):
        consumed = _axes_of(item)
        if isinstance(item, int):
            _check_bounds(item, axis, shape, name)
            basic.append(item)
        elif item is None or isinstance(item, slice):
            basic.append(item)
            arrays.append(None)
        else:
            at = len(arrays) if at < 0 else at
            found = _places(item, shape[axis : axis + consumed], name)
            basic += [FULL if consumed else None] * len(found)
            arrays += found
        axis += consumed
    return tuple(basic), arrays if any(a is not None for a in arrays) else [], at


def _items(index: Any, name: str) -> list[Any]:
    return [_item(item, name) for item in (index if isinstance(index, tuple) else (index,))]


def items_by_axis(index: Any, shape: tuple[int, ...], name: str) -> list[tuple[Any, int | None]]:
    """The items of an index, each with the axis of the array that it stands for.

    Masks and None have None in place of an axis. There is no Ellipsis: slices stand in its place.
    """
    found: list[tuple[Any, int | None]] = []
    axis = 0
    for item in _without_ellipsis(_items(index, name), shape, name):
        is_mask = isinstance(item, ndarray) and item.dtype == np.bool_
        found.append((item, None if item is None or is_mask else axis))
        axis += _axes_of(item)
    return found


def _item(item: Any, name: str) -> Any:
    """An item as None, Ellipsis, int, a slice of ints, an array of integers or of booleans."""
    if item is None or item is Ellipsis or type(item) is int:
        return item
    if isinstance(item, slice):
        return _slice(item, name)
    if isinstance(item, str):
        item = np.asarray(item)  # refused below, like other arrays that are not integers
    array = as_value(unshell(item))
    if isinstance(array, bool) or getattr(array, "dtype", None) == np.bool_:
        return np.asarray(innermost(array) if isinstance(array, Tensor) else array)
    # A trace reads a tensor from outside at each call, not only now.
    given = as_value(unshell(adopted(item))) if isinstance(item, Tensor) else item
    array = as_indices(given, name)
    return array if array.shape or isinstance(array, Tensor) else int(array)


def _slice(item: slice, name: str) -> slice:
    """A slice whose bounds are int or None: they may be given as arrays, which can change."""
    bounds = (item.start, item.stop, item.step)
    try:
        start, stop, step = (None if b is None else operator.index(b) for b in bounds)
    except GradtapeError:
        raise
    except TypeError as error:
        raise IndexingError(f"{name}: got {item}, expected integers or None in a slice") from error
    if step == 0:
        raise IndexingError(f"{name}: got {item}, expected a step that is not zero")
    return slice(start, stop, step)


def _axes_of(item: Any) -> int:
    """How many axes of the array an item stands for."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, ndarray) and item.dtype == np.bool_ else 1


def _without_ellipsis(items: list[Any], shape: tuple[int, ...], name: str) -> list[Any]:
    """The items with slices in place of the Ellipsis, one for each axis."""
    used = sum(_axes_of(item) for item in items)
    if used > len(shape):
        raise IndexingError(
            f"{name}: got indices for {used} axes, expected at most {len(shape)}, as the shape is "
            f"{shape}"
        )
    rest = [FULL] * (len(shape) - used)
    places = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(places) > 1:
        raise IndexingError(f"{name}: got {len(places)} Ellipsis (...), expected at most one")
    at = places[0] if places else len(items)
    return items[:at] + rest + items[at + 1 :]


def _check_bounds(item: int, axis: int, shape: tuple[int, ...], name: str) -> None:
    n = shape[axis]
    if not -n <= item < n:
        raise IndexingError(
            f"{name}: got index {item} on axis {axis} of shape {shape}, expected one from {-n} to "
            f"{n - 1}"
        )


def _places(array: Any, sizes: tuple[int, ...], name: str) -> list[Any]:
    """An index array as integer arrays, one for each axis; a mask is where it is true."""
    if array.dtype != np.bool_:
        return [array]
    # An axis of a mask may be empty, as in NumPy: then nothing is true.
    fits = len(array.shape) == len(sizes)
    if not fits or any(n not in (0, size) for n, size in zip(array.shape, sizes, strict=True)):
        raise IndexingError(
            f"{name}: got a mask of shape {array.shape} for axes of sizes {sizes}, expected the "
            "same shape"
        )
    values_read(array)
    return list(np.nonzero(np.atleast_1d(array)))


def read_parts(x: Any, basic: Index, arrays: list[Any], at: int, **params: Any) -> Any:
    """`x` indexed with the result of `split_index`; `params` are for the op that reads arrays."""
    if not arrays:
        return getitem_basic(x, index=basic)
    part = x if basic == (FULL,) * len(basic) else getitem_basic(x, index=basic)
    return gather_axes(part, arrays, at, **params)


def index_positions(shape: tuple[int, ...], index: Any, name: str) -> Any:
    """The positions, in the flattened array of a shape, of the elements that an index selects."""
    basic, arrays, at = split_index(index, shape, name)
    numbers = np.arange(math.prod(shape)).reshape(shape)
    params = {"name": name} if arrays else {}
    return read_parts(numbers, basic, [adopted(array) for array in arrays], at, **params)


# ---- x[index] -----------------------------------------------------------------------------------

_GETITEM: Op = getitem_basic.op  # type: ignore[attr-defined]


def getitem(x: ArrayLike, /, index: Any) -> Array:
    """`x[index]`, differentiable; a basic index of a tensor gives a view of it, as in NumPy.

    Args:
        x: What to read from.
        index: The index in brackets: integers, slices, None, Ellipsis, arrays or tensors of
            integers or booleans, or a tuple of them.

    Raises:
        IndexingError: The index is out of bounds, or of a kind arrays do not take.

    >>> gt.grad(lambda x: x[1] * x[-1])(np.array([1.0, 2.0, 3.0]))
    array([0., 3., 2.])
    """
    base = x
    if isinstance(x, Handle) and STATE.get().plain:
        x = x.fresh()
    items = basic_index(index)
    if type(x) is not Tensor or items is None:
        return _getitem_any(base, x, index, items)
    value, parent = x.value, x.record
    dtype = value.dtype
    state = STATE.get()
    if not ((dtype is F64 or dtype is F32) and type(value) is ndarray and state.plain):
        return _getitem_any(base, x, index, items)
    try:
        out = value[items]
    except (IndexError, ValueError) as error:  # ValueError: a step of zero
        raise _explained(index, value.shape, error) from error
    record = None
    if parent is not None:
        segment = parent.segment
        if segment is not state.recorder.segment:
            segment = recording_segment(segment, _GETITEM)
        if segment is not None and segment.policy is not None:
            target = _recomputable(segment, parent, value, out, items)
            return View(base, items, target) if out.shape else target
        if segment is not None:
            record = Indexing(_GETITEM, segment, parent, Aval(value.shape, dtype), items)
    target = Tensor(out, record)
    return View(base, items, target) if out.shape else target


def _recomputable(segment: Segment, parent: Node, value: Any, out: Any, items: Index) -> Tensor:
    """`out`, read from `value`, with a record on a tape whose policy decides what is kept."""
    made: Tensor = record_recomputable(
        segment.policy,
        segment,
        _GETITEM,
        (parent,),
        (value,),
        out,
        {"index": items},
        RecomputableIndexing,
    )
    return made


def part_of(
    x: Any, start: int | None, stop: int | None = None, step: int | None = None, *, axis: int = -1
) -> Any:
    """A range along one axis, by default the last one; all axes stay."""
    return getitem(x, (*(FULL,) * (axis % len(x.shape)), slice(start, stop, step)))


def _explained(index: Any, shape: tuple[int, ...], error: Exception) -> Exception:
    """The error of `split_index` for an index that NumPy refused."""
    split_index(index, shape, "getitem")
    return error


def _is_integer_array(item: Any) -> bool:
    return type(item) is ndarray and item.ndim > 0 and item.dtype.kind in "iu"


def _getitem_any(base: Any, x: Any, index: Any, items: Index | None) -> Any:
    """`getitem` of anything but a plain tensor with a plain basic index."""
    if type(x) is ndarray and items is not None:
        with contextlib.suppress(IndexError, ValueError):  # explained below
            return x[items]
    x = as_array(x)
    items = index if type(index) is tuple else (index,)
    if 0 < len(items) <= len(x.shape) and all(_is_integer_array(item) for item in items):
        return gather_leading(x, *items)
    basic, arrays, at = split_index(index, x.shape, "getitem")
    out = read_parts(x, basic, arrays, at)
    if arrays or not isinstance(base, Tensor) or not out.shape:
        return out
    return View(base, basic, out)
