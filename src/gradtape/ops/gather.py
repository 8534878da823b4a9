"""Reading and adding at places given by integer arrays: gather, scatter, take.

Two linear ops, each the transpose of the other, do all of it. `gather` indexes the leading axes of
an array with as many integer arrays; `scatter` adds values at such places of an array of zeros.
Everything else brings the axes it indexes to the front first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import broadcast_sizes, general
from gradtape.core.lowering import Elements, Scatter
from gradtape.core.op import Op
from gradtape.core.state import adopted
from gradtape.core.tensor import Tensor, as_value
from gradtape.errors import ArgumentError, IndexingError, ShapeError
from gradtape.ops import lowered
from gradtape.ops.arguments import ARRAYS, as_array, normalize_axis
from gradtape.ops.cast import astype
from gradtape.ops.select import clip
from gradtape.ops.shape import broadcast_to, moveaxis, reshape, transpose
from gradtape.typing import Array, ArrayLike


def as_indices(indices: Any, name: str) -> Any:
    """Integers in any form as an array of integers, or a tensor of them as it is."""
    if not isinstance(indices, Tensor):
        given, indices = indices, np.asarray(as_value(indices))
        if indices.size == 0 and not isinstance(given, np.ndarray):
            indices = indices.astype(np.intp)  # NumPy makes an empty list floating
    if indices.dtype.kind not in "iu":
        raise IndexingError(
            f"{name}: got an index of dtype {indices.dtype}, expected integers; "
            "use astype(int) if they are whole numbers"
        )
    return indices


# ---- the pair of ops ----------------------------------------------------------------------------


def _gather_forward(xp: Any, x: Any, *arrays: Any, name: str = "getitem") -> Any:
    try:
        first = getattr(arrays[0], "dtype", None)  # a traced index may be a Python number
        if len(arrays) == 1 and x.ndim > 1 and x.flags.c_contiguous and first == np.intp:
            return x.take(arrays[0], axis=0)  # up to three times faster than x[array]
        return x[arrays]
    except IndexError as error:
        raise _bad_index(x.shape, arrays, error, name) from error


def _scatter_forward(xp: Any, x: Any, *arrays: Any, shape: tuple[int, ...]) -> Any:
    out = xp.zeros(shape, x.dtype)
    try:
        if x.size < 64 or (len(arrays) == 1 and len(shape) == 1):
            xp.add.at(out, arrays, x)
        else:
            # `add.at` is five times faster along one axis.
            places = _flat_places(xp, arrays, shape)
            xp.add.at(out.reshape(-1), places.reshape(-1), xp.broadcast_to(x, places.shape).ravel())
    except (IndexError, ValueError) as error:
        raise _bad_index(shape, arrays, error) from error
    return out


def _flat_places(xp: Any, arrays: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """The places in the flattened array of elements that `arrays` select, rest axes included."""
    count = len(arrays)
    wide = (xp.asarray(array, np.intp) for array in arrays)  # int8 could not hold the positions
    counted = tuple(
        xp.where(array < 0, array + n, array) for array, n in zip(wide, shape, strict=False)
    )
    first = xp.ravel_multi_index(counted, shape[:count])
    rest = math.prod(shape[count:])
    return (first.reshape(-1, 1) * rest + xp.arange(rest)).reshape(first.shape + shape[count:])


def _bad_index(
    shape: tuple[int, ...], arrays: Sequence[Any], error: Exception, name: str = "getitem"
) -> IndexingError:
    """The error for index arrays that an array of `shape` cannot be indexed with."""
    arrays = [np.asarray(array) for array in arrays]
    for array, n in zip(arrays, shape, strict=False):
        bad = array[(array < -n) | (array >= n)]
        if bad.size:
            return IndexingError(
                f"{name}: got index {bad.flat[0]} for an axis of size {n}, expected one from "
                f"{-n} to {n - 1}"
            )
    shapes = ", ".join(str(array.shape) for array in arrays)
    return IndexingError(f"{name}: got index arrays of shapes {shapes} for shape {shape}; {error}")


def _infer_gather(x: Aval, *arrays: Aval, name: str = "") -> Aval:
    return Aval(broadcast_sizes(*(a.shape for a in arrays)) + x.shape[len(arrays) :], x.dtype)


def _batch_gather(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> tuple[Any, int]:
    (x, *arrays), (x_axis, *array_axes) = args, axes
    if all(axis is None for axis in array_axes):
        # The arrays index leading axes, so that a trailing one stays where it is.
        last = len(x.shape) - 1
        out = call(op, (move_batch_axis(x, x_axis, last), *arrays), params)
        return out, len(out.shape) - 1
    arrays, rows = _line_up(arrays, array_axes)
    if x_axis is None:
        return call(op, (x, *arrays), params), 0
    return call(op, (move_batch_axis(x, x_axis), rows, *arrays), params), 0


def _batch_scatter(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> tuple[Any, int]:
    (x, *arrays), (x_axis, *array_axes) = args, axes
    shape = params["shape"]
    if all(axis is None for axis in array_axes):
        size = x.shape[x_axis]
        x = move_batch_axis(x, x_axis, len(x.shape) - 1)
        return call(op, (x, *arrays), {"shape": (*shape, size)}), len(shape)
    arrays, rows = _line_up(arrays, array_axes)
    size = rows.shape[0]
    x = broadcast_to(x, (size, *x.shape)) if x_axis is None else move_batch_axis(x, x_axis)
    return call(op, (x, rows, *arrays), {"shape": (size, *shape)}), 0


def _line_up(arrays: Sequence[Any], axes: Sequence[int | None]) -> tuple[list[Any], Any]:
    """Index arrays with their batch axis before all others, and one that numbers the batch."""
    count = max(len(a.shape) - (axis is not None) for a, axis in zip(arrays, axes, strict=True))
    size = 0
    lined_up = []
    for array, axis in zip(arrays, axes, strict=True):
        if axis is not None:
            array = move_batch_axis(array, axis)
            size, *own = array.shape
            array = reshape(array, (size, *(1,) * (count - len(own)), *own))
        lined_up.append(array)
    return lined_up, np.arange(size).reshape(size, *(1,) * count)


def _reads_arrays(rule: Any) -> Any:
    """Declare that a rule reads none of (out, x, *arrays) but the arrays; NumPy allows 64 of them.

    By its signature, `*arrays` would mean every input, and a record would keep `x` alive.
    """
    rule.reads = frozenset(range(2, 66))
    return rule


@_reads_arrays
def _gather_vjp(_i: int, ct: Any, _out: Any, _x: Any, *arrays: Any, name: str = "") -> Any:
    return scatter(ct, *arrays, shape=_x.shape)


@_reads_arrays
def _gather_jvp(tangents: Sequence[Any], _out: Any, _x: Any, *arrays: Any, **params: Any) -> Any:
    return gather_leading(tangents[0], *arrays, **params)


@_reads_arrays
def _scatter_vjp(_i: int, ct: Any, _out: Any, _x: Any, *arrays: Any, shape: Any) -> Any:
    return gather_leading(ct, *arrays)


@_reads_arrays
def _scatter_jvp(tangents: Sequence[Any], _out: Any, _x: Any, *arrays: Any, shape: Any) -> Any:
    return scatter(tangents[0], *arrays, shape=shape)


# d x[i] = dx[i]; transpose: add ct into zeros at i, several times where i repeats. A parameter
# `name` is for errors.
gather_leading = general(
    "gather",
    _gather_forward,
    infer=_infer_gather,
    vjp_each=_gather_vjp,
    jvp=_gather_jvp,
    batch=_batch_gather,
    lower=Elements(lowered.gather_element),
)
scatter = general(
    "scatter",
    _scatter_forward,
    infer=lambda x, *arrays, shape: Aval(shape, x.dtype),
    vjp_each=_scatter_vjp,
    jvp=_scatter_jvp,
    batch=_batch_scatter,
    lower=Scatter(lowered.scatter_sizes, lowered.scatter_put, adds=True),
)


def gather_axes(x: Any, arrays: Sequence[Any], at: int, **params: Any) -> Any:
    """`x` indexed with an array (or None) per axis; the axes of the arrays come at `at`."""
    indexed = [axis for axis, array in enumerate(arrays) if array is not None]
    rest = [axis for axis, array in enumerate(arrays) if array is None]
    if indexed[-1] != len(indexed) - 1:
        x = transpose(x, indexed + rest)
    chosen = [arrays[axis] for axis in indexed]
    out = gather_leading(x, *chosen, **params)
    if at == 0:
        return out
    count = max(len(array.shape) for array in chosen)
    order = [*range(count, count + at), *range(count), *range(count + at, len(out.shape))]
    return transpose(out, order)


# ---- public functions ---------------------------------------------------------------------------


def take(
    x: ArrayLike, indices: ArrayLike, /, axis: int | None = None, *, mode: str = "raise"
) -> Array:
    """Elements, or slices along an axis, by their numbers.

    Args:
        x: What to take from.
        indices: Which ones, in an array of any shape; negative numbers count from the end.
        axis: The axis to take along; None takes from the flattened array.
        mode: What to do out of bounds: "raise", "wrap" around, or "clip" to the ends.

    Raises:
        IndexingError: An index is out of bounds, or not an integer.
        AxisError: There is no such axis.
        ArgumentError: `mode` is something else.

    >>> gt.take(np.array([1.0, 2.0, 3.0]), [2, 0])
    array([3., 1.])
    """
    x, indices = as_array(x), as_indices(indices, "take")
    if axis is None:
        x, axis = reshape(x, -1), 0
    axis = normalize_axis(axis, len(x.shape), "take")
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f'take: got mode={mode!r}, expected "raise", "wrap" or "clip"')
    n = x.shape[axis]
    if mode != "raise" and n:
        indices = astype(adopted(indices), np.intp, copy=False)
        indices = indices % n if mode == "wrap" else clip(indices, 0, n - 1)
    arrays: list[Any] = [None] * len(x.shape)
    arrays[axis] = indices
    return gather_axes(x, arrays, axis)


def places_along(sizes: Sequence[int], indices: Any, axis: int) -> list[Any]:
    """Index arrays that go along with `indices` on every axis but one."""
    ndim = len(sizes)
    arrays = [
        np.arange(n).reshape((1,) * d + (n,) + (1,) * (ndim - 1 - d)) for d, n in enumerate(sizes)
    ]
    arrays[axis] = indices
    return arrays


def take_along_axis(x: ArrayLike, indices: ArrayLike, /, axis: int | None = -1) -> Array:
    """Along an axis, the elements at places given by an array of integers.

    Args:
        x: What to take from.
        indices: Integers; the other axes broadcast against those of `x`.
        axis: The axis to take along; None takes from the flattened array.

    Raises:
        IndexingError: An index is out of bounds, or not an integer.
        ShapeError: The number of axes differs, or the others do not broadcast.
        AxisError: There is no such axis.

    >>> x = np.array([[3.0, 1.0], [2.0, 4.0]])
    >>> gt.take_along_axis(x, np.argsort(x, axis=1), axis=1)
    array([[1., 3.],
           [2., 4.]])
    """
    x, indices = as_array(x), as_indices(indices, "take_along_axis")
    if axis is None:
        x, axis = reshape(x, -1), 0
    _same_ndim(x, indices, "take_along_axis")
    axis = normalize_axis(axis, len(x.shape), "take_along_axis")
    for a, (n, own) in enumerate(zip(x.shape, indices.shape, strict=True)):
        if a != axis and n != own and 1 not in (n, own):
            raise ShapeError(
                f"take_along_axis: got indices of shape {indices.shape} for shape {x.shape}, "
                f"expected 1 or {n} along axis {a}"
            )
    return gather_leading(x, *places_along(x.shape, indices, axis))


def _same_ndim(x: Any, indices: Any, name: str) -> None:
    if len(x.shape) != len(indices.shape):
        raise ShapeError(
            f"{name}: got indices of shape {indices.shape} for shape {x.shape}, expected as many "
            "axes"
        )


def check_fits(small: Any, large: Any, skip: int | None, name: str, what: str) -> None:
    """Raise unless no axis of `small` (but `skip`) is longer than that of `large`."""
    _same_ndim(large, small, name)
    for axis, (n, limit) in enumerate(zip(small.shape, large.shape, strict=True)):
        if axis != skip and n > limit:
            raise ShapeError(
                f"{name}: got index of shape {small.shape} and {what} of shape {large.shape}, "
                f"expected at most {limit} along axis {axis}"
            )


def prepared(call: str, x: Any, index: Any, axis: Any) -> tuple[Any, Any, int]:
    """Arguments of a function that PyTorch has with the axis before the index, checked."""
    name = call.partition("(")[0]
    if isinstance(index, int) and isinstance(axis, ARRAYS) and axis.shape:
        raise ArgumentError(
            f"{name}: got the number {index} as index and an array as axis, which is PyTorch's "
            f"order, expected gt.{call}"
        )
    x, index = as_array(x), adopted(as_indices(index, name))
    return x, index, normalize_axis(axis, len(x.shape), name)


def gather(x: ArrayLike, index: ArrayLike, /, axis: int) -> Array:
    """Along an axis, the elements that an array of integers names, as `torch.gather`.

    `out[i, j] = x[index[i, j], j]` for axis 0. Unlike in `take_along_axis`, nothing broadcasts and
    the other axes of `index` may be shorter than those of `x`.

    Args:
        x: What to take from.
        index: Integers, in an array with as many axes as `x`.
        axis: The axis that `index` counts along.

    Raises:
        IndexingError: An index is out of bounds, or not an integer.
        ShapeError: The number of axes differs, or `index` is longer along another axis.
        AxisError: There is no such axis.

    >>> gt.gather(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1, 0]]), axis=0)
    array([[3., 2.]])
    """
    x, index, axis = prepared("gather(x, index, axis)", x, index, axis)
    check_fits(index, x, axis, "gather", "x")
    return gather_leading(x, *places_along(index.shape, index, axis))


def scatter_add(x: ArrayLike, index: ArrayLike, src: ArrayLike, /, axis: int) -> Array:
    """The array with values added at places along an axis, as `torch.scatter_add`.

    For axis 0: `out = x`, then `out[index[i, j], j] += src[i, j]` for all i, j. It is the transpose
    of `gather`; an index that repeats adds several times.

    Args:
        x: What to add to; it is not changed.
        index: Integers, in an array with as many axes as `x`.
        src: What to add; elements outside the shape of `index` are not used.
        axis: The axis that `index` counts along.

    Raises:
        IndexingError: An index is out of bounds, or not an integer.
        ShapeError: The numbers of axes differ, or `index` is too long along one.
        AxisError: There is no such axis.

    >>> gt.scatter_add(np.zeros(3), np.array([0, 0, 2]), np.array([1.0, 2.0, 3.0]), axis=0)
    array([3., 0., 3.])
    """
    x, index, axis = prepared("scatter_add(x, index, src, axis)", x, index, axis)
    src = as_array(src)
    check_fits(index, x, axis, "scatter_add", "x")
    check_fits(index, src, None, "scatter_add", "src")
    if src.shape != index.shape:
        src = src[tuple(slice(n) for n in index.shape)]
    return x + scatter(src, *places_along(index.shape, index, axis), shape=x.shape)


def index_add(x: ArrayLike, index: ArrayLike, src: ArrayLike, /, axis: int) -> Array:
    """The array with slices added at places along an axis, as `torch.index_add`.

    Args:
        x: What to add to; it is not changed.
        index: Integers along one axis: where each slice of `src` goes.
        src: The slices to add, with the shape of `x` but for `axis`.
        axis: The axis that `index` counts along.

    Raises:
        IndexingError: An index is out of bounds, or not an integer.
        ShapeError: The shapes do not fit.
        AxisError: There is no such axis.

    >>> gt.index_add(np.zeros((2, 2)), [1, 1], np.ones((2, 2)), axis=0)
    array([[0., 0.],
           [2., 2.]])
    """
    x, index, axis = prepared("index_add(x, index, src, axis)", x, index, axis)
    src = as_array(src)
    needed = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    if len(index.shape) != 1 or src.shape != needed:
        raise ShapeError(
            f"index_add: got x {x.shape}, index {index.shape}, src {src.shape}, expected an index "
            f"of one axis and src with the shape of x but that many along axis {axis}"
        )
    shape = (x.shape[axis], *x.shape[:axis], *x.shape[axis + 1 :])
    added = scatter(moveaxis(src, axis, 0), index, shape=shape)
    return x + moveaxis(added, 0, axis)
