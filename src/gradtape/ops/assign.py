"""Writing parts of arrays: `x[index] = value`, as a function that returns a new array.

With a basic index the part is written as it stands. An index with arrays is turned into positions
in the flattened array: one op on flat arrays does it, and a batch of them is again a flat array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import in_front, move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import general
from gradtape.core.lowering import Composite, Elements, Reader, Scatter
from gradtape.core.nested import View
from gradtape.core.op import Facts, NotDifferentiable, Op
from gradtape.core.scalar import Scalar
from gradtape.core.state import adopted, values_read
from gradtape.core.tensor import Tensor, as_value
from gradtape.errors import DTypeError, ShapeError, UnsupportedError
from gradtape.ops import lowered
from gradtape.ops.arguments import ARRAYS, Batch, as_array
from gradtape.ops.cast import astype
from gradtape.ops.comparison import equal
from gradtape.ops.gather import gather_leading, scatter
from gradtape.ops.index import (
    FULL,
    Index,
    basic_index,
    getitem_basic,
    part_shape,
    place_in_part,
    put,
    read_parts,
    split_index,
)
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to, broadcasts_to, reshape
from gradtape.ops.which import numbers_along
from gradtape.typing import Array, ArrayLike

# ---- basic indices ------------------------------------------------------------------------------


def _assign_forward(xp: Any, x: Any, value: Any, index: Index) -> Any:
    out = xp.array(x)
    out[index] = value
    return out


def _assign_by_array(ct: Any, _out: Any, _x: Any, _value: Any, index: Index) -> Any:
    # Where everything is overwritten nothing is passed, not even zeros: the old values may be NaN.
    if math.prod(part_shape(index, ct.shape)) == math.prod(ct.shape):
        return None
    return assign(ct, 0.0, index=index)


def _assign_jvp(tangents: Sequence[Any], _out: Any, _x: Any, _value: Any, index: Index) -> Any:
    dx, dvalue = tangents
    if dx is None:
        return put(dvalue, shape=_x.shape, index=index)
    return assign(dx, 0.0 if dvalue is None else dvalue, index=index)


def _batch_assign(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    return call(op, in_front(args, axes), {"index": (FULL, *params["index"])}), 0


def _assign_element(i: Sequence[Scalar], x: Reader, value: Reader, index: Index) -> Scalar:
    place, inside = place_in_part(i, index, x.aval.shape)
    new = value(*place, inside=inside) if value.aval.shape else value()
    new = scalar.fit(new, x.aval.dtype)
    return new if inside is None else scalar.where(inside, new, x(*i))


# The part that is written passes nothing to x, and all of its cotangent to the value. The value has
# the shape of the part, or is a bare number.
assign: Callable[..., Any] = general(
    "setitem",
    _assign_forward,
    vjps=(
        _assign_by_array,
        lambda ct, _out, _x, _value, index: getitem_basic(ct, index=index),
    ),
    jvp=_assign_jvp,
    batch=_batch_assign,
    facts=Facts(layout="copy"),
    lower=Elements(_assign_element),
)


# ---- positions in a flat array ------------------------------------------------------------------


def _last_writes_forward(xp: Any, positions: Any, size: int) -> Any:
    order = xp.arange(positions.size)
    writer = xp.empty(size, order.dtype)
    writer[positions] = order
    return writer[positions] == order


def _remaining(positions: Any, size: int) -> Any:
    if 0 in positions.shape:
        raise UnsupportedError("setitem: no native code for arrays without elements")
    order = numbers_along(positions, axis=0)
    start = broadcast_to(getitem_basic(order, index=(slice(0, 1),)), (size,))
    return equal(gather_leading(assign_at(start, order, positions), positions), order)


def _batch_last_writes(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    positions, n = move_batch_axis(args[0], axes[0]), params["size"]
    out = call(op, (flat_positions(positions, n),), {"size": n * positions.shape[0]})
    return reshape(out, positions.shape), 0


def flat_positions(positions: Any, n: int) -> Any:
    """Positions in each of a batch of arrays of `n` elements as positions in all of them."""
    return reshape(positions + n * np.arange(positions.shape[0])[:, None], -1)


# Which of the values written to `positions` remain: those no later one overwrites.
last_writes = general(
    "last_writes",
    _last_writes_forward,
    infer=lambda positions, size: Aval(positions.shape, np.dtype(np.bool_)),
    batch=_batch_last_writes,
    lower=Composite(_remaining),
)


def _assign_at_by_value(ct: Any, _out: Any, _x: Any, _value: Any, positions: Any) -> Any:
    remains = last_writes(positions, size=ct.shape[0])
    return where(remains, gather_leading(ct, positions), 0.0)


def _assign_at_jvp(tangents: Sequence[Any], _out: Any, _x: Any, _value: Any, positions: Any) -> Any:
    dx, dvalue, _ = tangents
    if dx is None:
        remains = last_writes(positions, size=_x.shape[0])
        return scatter(where(remains, dvalue, 0.0), positions, shape=_x.shape)
    return assign_at(dx, 0.0 if dvalue is None else dvalue, positions)


def _batch_assign_at(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    x, value, positions = in_front(args, axes)
    if hasattr(value, "shape"):
        value = reshape(value, -1)
    flat = call(op, (reshape(x, -1), value, flat_positions(positions, x.shape[1])), params)
    return reshape(flat, x.shape), 0


def _put_at(i: Sequence[Scalar], x: Reader, value: Reader, positions: Reader) -> Any:
    (size,) = x.aval.shape
    if 0 in (size, *positions.aval.shape):
        raise UnsupportedError("setitem: no native code for arrays without elements")
    new = scalar.fit(value(*i) if value.aval.shape else value(), x.aval.dtype)
    return [lowered.named_place(i, positions, size, "setitem")], new


assign_at: Callable[..., Any] = general(
    "setitem_at",
    lambda xp, x, value, positions: _assign_forward(xp, x, value, positions),
    vjps=(
        lambda ct, _out, _x, _value, positions: assign_at(ct, 0.0, positions),
        _assign_at_by_value,
        NotDifferentiable("setitem: an index has no derivative"),
    ),
    jvp=_assign_at_jvp,
    batch=_batch_assign_at,
    lower=Scatter(
        lambda x, value, positions: (positions.shape, ()),
        _put_at,
        lambda i, x, value, positions: x(*i),
    ),
)


# ---- x[index] = value ---------------------------------------------------------------------------


def setitem(x: ArrayLike, value: ArrayLike, /, index: Any) -> Array:
    """The array with `x[index] = value` done, as a new array; differentiable in `x` and `value`.

    Args:
        x: What to write into; it is not changed.
        value: What to write, broadcast to the part and cast to the dtype of `x`. Where an index
            repeats, the last one remains.
        index: The index in brackets, as for reading.

    Raises:
        IndexingError: The index is out of bounds, or of a kind arrays do not take.
        ShapeError: The value does not broadcast to the part.
        DTypeError: The value is of another kind than `x`, floating instead of integer.

    >>> gt.setitem(np.zeros(3), 1.0, slice(1, None))
    array([0., 1., 1.])
    """
    if type(value) is View and value.base is x and value.index == basic_index(index):
        return x  # second half of x[index] += y; the first has written through a view
    x = as_array(x)
    shape = x.shape
    value = adopted(cast_value(value, x.dtype))
    if one_for_all(index, value, shape):
        return _where_true(index, value, x)
    basic, arrays, at = split_index(index, shape, "setitem")
    if not arrays:
        return assign(x, spread_value(value, part_shape(basic, shape)), index=basic)
    numbers = np.arange(math.prod(shape)).reshape(shape)
    positions = read_parts(numbers, basic, arrays, at, name="setitem")
    value = spread_value(value, positions.shape)
    if _are_all(positions, shape):
        for array in arrays:
            values_read(array)
        value = reshape(value, shape) if hasattr(value, "shape") else value
        return assign(x, value, index=(FULL,) * len(shape))
    places = [adopted(array) for array in arrays]
    if any(place is not array for place, array in zip(places, arrays, strict=True)):
        positions = read_parts(numbers, basic, places, at, name="setitem")  # at each call
    if hasattr(value, "shape"):
        value = reshape(value, -1)
    return reshape(assign_at(reshape(x, -1), value, reshape(positions, -1)), shape)


def _are_all(positions: Any, shape: tuple[int, ...]) -> bool:
    """Whether positions are all elements in order, as for a mask that is True everywhere."""
    known = positions.value if type(positions) is Tensor else positions
    size = math.prod(shape)
    if type(known) is not np.ndarray or known.size != size or not size:
        return False
    return bool((known.ravel() == np.arange(size)).all())


def one_for_all(index: Any, value: Any, shape: tuple[int, ...]) -> bool:
    """Whether the index is a mask, and all it selects gets one value: then where() does it.

    where() needs no number of elements, which is unknown while a function is traced or batched.
    """
    if not isinstance(index, ARRAYS) or index.dtype != np.bool_ or not index.shape:
        return False
    covered, rest = shape[: len(index.shape)], shape[len(index.shape) :]
    return index.shape == covered and broadcasts_to(getattr(value, "shape", ()), rest)


def _where_true(mask: Any, value: Any, x: Any) -> Any:
    mask = reshape(mask, (*mask.shape, *(1,) * (len(x.shape) - len(mask.shape))))
    return where(mask, value, x)


def cast_value(value: Any, dtype: Any, name: str = "setitem") -> Any:
    """The value in the dtype of its target; raises if that is of another kind."""
    value = as_value(value)
    weak = type(value) in (bool, int, float, complex)  # Python numbers have no dtype
    own = np.result_type(value, dtype) if weak else value.dtype
    if not np.can_cast(own, dtype, "same_kind"):
        raise DTypeError(
            f"{name}: got a value of dtype {own}, expected {dtype}, as the array has; "
            "use astype on one of them"
        )
    return value if weak or own == dtype else astype(value, dtype)


def spread_value(value: Any, shape: tuple[int, ...], name: str = "setitem") -> Any:
    """The value broadcast to the shape of the part it is written to; a number stays one."""
    if not hasattr(value, "shape") or value.shape == shape:
        return value
    own = value.shape
    extra = max(len(own) - len(shape), 0)  # NumPy drops leading axes of size 1
    if own[:extra] != (1,) * extra or not broadcasts_to(own[extra:], shape):
        raise ShapeError(
            f"{name}: got a value of shape {own}, expected one that broadcasts to {shape}, as "
            "the part has"
        )
    return broadcast_to(reshape(value, own[extra:]) if extra else value, shape)
