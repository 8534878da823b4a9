"""Rows of a table by their numbers, and sums of rows: embeddings and bags of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core import promotion, scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import batch_as_samples, in_front, move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import multilinear
from gradtape.core.lowering import Elements, Reader, Scatter
from gradtape.core.op import Op, Zero
from gradtape.core.scalar import Scalar
from gradtape.errors import IndexingError, ShapeError, UnsupportedError
from gradtape.ops.arguments import Batch, as_array, as_integer
from gradtape.ops.cast import stop_gradient
from gradtape.ops.gather import as_indices
from gradtape.ops.index import getitem
from gradtape.ops.select import mask, where
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike

# For sums of fewer numbers it is not worth loading sparse matrices.
_FEW = 1 << 12


# ---- reading rows, and adding to them -----------------------------------------------------------


def _check_rows(indices: Any, count: int) -> None:
    if indices.size and (indices.min() < 0 or indices.max() >= count):
        bad = indices[(indices < 0) | (indices >= count)]
        raise IndexingError(_no_row(bad.flat[0], count))


def _no_row(given: Any, count: int) -> str:
    return f"embedding: got index {given}, expected one from 0 to {count - 1}"


def _place(indices: Reader, at: Sequence[Any], count: int) -> tuple[Scalar, Scalar]:
    """An index as it was given, and the same after a check that it is in range."""
    given = scalar.convert(indices(*at), promotion.INT64)
    known = (given >= 0) & (given < count)
    return given, indices.check(given, known, _no_row("{}", count), given)


def _read_forward(xp: Any, table: Any, indices: Any, skip: int | None) -> Any:
    _check_rows(indices, table.shape[0])
    out = table.take(indices, axis=0)
    if skip is not None:
        out[indices == skip] = 0
    return out


def _read_element(i: Sequence[Scalar], table: Reader, indices: Reader, skip: int | None) -> Scalar:
    count, ndim = table.aval.shape[0], indices.aval.ndim
    if 0 in table.aval.shape or 0 in indices.aval.shape:
        raise UnsupportedError("embedding: no native code for arrays without elements")
    given, place = _place(indices, i[:ndim], count)
    value = table(place, *i[ndim:])
    return value if skip is None else scalar.where(given == skip, 0, value)


def _add_forward(
    xp: Any, values: Any, indices: Any, count: int, skip: int | None, tables: bool
) -> Any:
    _check_rows(indices, count)
    shape = _added_shape(values, indices, count, tables)
    rows = values.reshape(indices.size, math.prod(values.shape[indices.ndim :]))
    flat = (_one_after_another(indices, count) if tables else indices).reshape(-1)
    if skip is not None:
        kept = indices.reshape(-1) != skip
        flat, rows = flat[kept], rows[kept]
    total = math.prod(shape[: 1 + tables])
    few = rows.size < _FEW or xp is not np or rows.dtype == np.float16
    if not few and total <= len(flat):
        return _sums(rows, flat, total).reshape(shape)
    out = xp.zeros(shape, values.dtype)
    into = out.reshape((total, rows.shape[1]))
    if few:
        xp.add.at(into, flat, rows)
    else:
        chosen, places = np.unique(flat, return_inverse=True)
        into[chosen] = _sums(rows, places, len(chosen))
    return out


def _sums(rows: Any, places: Any, count: int) -> Any:
    """The sums of the rows for each place, by a product with a matrix of a 1 in each column."""
    from scipy import sparse  # ten times as fast as np.add.at

    ones = np.ones(len(places), rows.dtype)
    chosen = sparse.csc_array(
        (ones, places, np.arange(len(places) + 1)), shape=(count, len(places))
    )
    return chosen @ rows


def _added_shape(values: Any, indices: Any, count: int, tables: bool) -> tuple[int, ...]:
    return (*indices.shape[:tables], count, *values.shape[len(indices.shape) :])


def _add_sizes(
    values: Aval, indices: Aval, count: int, skip: int | None, tables: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return indices.shape, values.shape[len(indices.shape) :]


def _add_put(
    i: Sequence[Any], values: Reader, indices: Reader, count: int, skip: int | None, tables: bool
) -> tuple[Sequence[Any], Scalar]:
    if 0 in values.aval.shape or count == 0:
        raise UnsupportedError("embedding: no native code for arrays without elements")
    ndim = indices.aval.ndim
    given, place = _place(indices, i[:ndim], count)
    value = values(*i)
    put = [*i[:tables], place, *i[ndim:]]
    return put, value if skip is None else scalar.where(given == skip, 0, value)


def _one_after_another(indices: Any, count: int) -> Any:
    """Indices into tables of `count` rows, as those into one table of all their rows."""
    size, *rest = indices.shape
    return indices + np.arange(size).reshape(size, *(1 for _ in rest)) * count


def _batch_read(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    (table, indices), (table_axis, indices_axis) = args, axes
    if indices_axis is None:
        # The other axes of a table can be anything.
        last = len(table.shape) - 1
        out = call(op, (move_batch_axis(table, table_axis, last), indices), params)
        return out, len(out.shape) - 1
    indices = move_batch_axis(indices, indices_axis)
    if table_axis is None:
        return call(op, (table, indices), params), 0
    table = move_batch_axis(table, table_axis)
    size, count, *rest = table.shape
    joined = reshape(table, (size * count, *rest))
    out = read_rows(joined, _one_after_another(indices, count), skip=None)
    return _without(out, indices, params["skip"]), 0


def _batch_add(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    (values, indices), (values_axis, indices_axis) = args, axes
    if indices_axis is None:
        values = move_batch_axis(values, values_axis, len(values.shape) - 1)
        out = call(op, (values, indices), params)
        return out, len(out.shape) - 1
    if params["tables"]:
        return batch_as_samples(op, axes, args, params)
    return call(op, in_front(args, axes), {**params, "tables": True}), 0


def _without(rows: Any, indices: Any, skip: int | None) -> Any:
    if skip is None:
        return rows
    rest = (1,) * (len(rows.shape) - len(indices.shape))
    return mask(rows, reshape(indices != skip, (*indices.shape, *rest)))


def _read_back(
    ct: Any, _out: Any, _values: Any, indices: Any, count: int, skip: int | None, tables: bool
) -> Any:
    if not tables:
        return read_rows(ct, indices, skip=skip)
    return _batch_read(read_rows.op, (0, 0), (ct, indices), {"skip": skip})[0]


_NUMBERED = Zero("the number of a row does not change by a little")

# table[indices], with 0 in place of the row `skip`; transpose: add values to rows of zeros
read_rows: Any = multilinear(
    "read_rows",
    _read_forward,
    lambda ct, _out, _table, indices, skip: add_rows(ct, indices, count=_table.shape[0], skip=skip),
    _NUMBERED,
    infer=lambda table, indices, skip: Aval((*indices.shape, *table.shape[1:]), table.dtype),
    batch=_batch_read,
    lower=Elements(_read_element),
)
# With `tables`, there is one for each index of the first axis.
_add_rows: Any = multilinear(
    "add_rows",
    _add_forward,
    _read_back,
    _NUMBERED,
    infer=lambda values, indices, count, skip, tables: Aval(
        _added_shape(values, indices, count, tables), values.dtype
    ),
    batch=_batch_add,
    lower=Scatter(_add_sizes, _add_put, adds=True),
)


def add_rows(values: Any, indices: Any, *, count: int, skip: int | None) -> Any:
    """Rows of zeros, `count` of them, with values added to those of these numbers."""
    return _add_rows(values, indices, count=count, skip=skip, tables=False)


# ---- embedding ----------------------------------------------------------------------------------


def table_of(name: str, weight: ArrayLike) -> Array:
    weight = as_array(weight)
    if len(weight.shape) != 2:
        raise ShapeError(f"{name}: got a table of shape {weight.shape}, expected (rows, size)")
    return weight


def row_number(name: str, number: int | None, count: int) -> int | None:
    if number is None:
        return None
    number = as_integer(number, name, "padding_idx")
    if not -count <= number < count:
        raise IndexingError(f"{name}: got padding_idx={number}; there are {count} rows")
    return number % count


def embedding(
    x: ArrayLike,
    /,
    weight: ArrayLike,
    padding_idx: int | None = None,
) -> Array:
    """Rows of a table by their numbers.

    Args:
        x: The numbers of rows, in an array of any shape.
        weight: The table.
        padding_idx: A row that has no gradient.

    Returns:
        An array of the shape of `x`, and one further axis.

    Raises:
        IndexingError: There is no such row, or a number is not an integer.
        ShapeError: The table has other than two axes.

    >>> gt.nn.embedding(np.array([1, 1, 0]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[3., 4.],
           [3., 4.],
           [1., 2.]])
    """
    weight = table_of("embedding", weight)
    indices = as_indices(x, "embedding")
    skip = row_number("embedding", padding_idx, weight.shape[0])
    rows = read_rows(weight, indices, skip=skip)
    if skip is None:
        return rows
    padding = reshape(indices == skip, (*indices.shape, 1))
    return where(padding, getitem(stop_gradient(weight), skip), rows)
