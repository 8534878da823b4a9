"""Arrays as sets of values: those that occur, in both or in one of two arrays.

How many there are depends on the values, so these are not ops: they read the values of a tensor,
and raise for one that is batched or traced. They return elements of their arguments, with their
gradient; of equal ones the first gets it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.arrays.known import like, values_of
from gradtape.ops.arrays.sort import comparable
from gradtape.ops.cast import astype
from gradtape.ops.gather import take
from gradtape.ops.join import concatenate
from gradtape.ops.shape import ravel
from gradtape.typing import Array, ArrayLike


def _read(x: Any) -> Any:
    return comparable(values_of(x))


# ---- unique -------------------------------------------------------------------------------------


def unique(
    x: ArrayLike,
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The values that occur in an array, in ascending order and each once.

    Args:
        x: Where to look.
        return_index: Whether to return where each of them is first.
        return_inverse: Whether to return the number of the value that each element has.
        return_counts: Whether to return how often each of them occurs.
        axis: Along which axis slices are compared; None compares elements.
        equal_nan: Whether all NaN are one value.
        sorted: Whether they have to be in order; they always are.

    Returns:
        The values, or a tuple of them and the further results asked for.

    Raises:
        AxisError: There is no such axis.
        ConversionError: `x` is batched by `vmap`, or traced: the size would depend on its values.

    >>> gt.unique(np.array([3.0, 1.0, 3.0]))
    array([1., 3.])
    """
    x = as_array(x)
    if axis is not None:
        axis = normalize_axis(axis, len(x.shape), "unique")
    find: Any = np.unique  # NumPy's types do not cover options given as variables
    _, index, *rest = find(_read(x), True, return_inverse, return_counts, axis, equal_nan=equal_nan)
    values = take(x, index, axis)
    further = [index, *rest] if return_index else rest
    return (values, *(like(x, array) for array in further)) if further else values


class UniqueAllResult(NamedTuple):
    """The values of an array, where they are first, and the number and count of each."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """The values of an array, and how often each of them occurs."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """The values of an array, and the number of the value that each element has."""

    values: Array
    inverse_indices: Array


def unique_values(x: ArrayLike, /) -> Array:
    """The values that occur in an array, each once; every NaN is a value of its own.

    Raises:
        ConversionError: `x` is batched by `vmap`, or traced: the size would depend on its values.

    >>> gt.unique_values(np.array([3.0, 1.0, 3.0]))
    array([1., 3.])
    """
    return unique(x, equal_nan=False)


def unique_counts(x: ArrayLike, /) -> UniqueCountsResult:
    """The values that occur in an array, each once, and how often they do.

    Raises:
        ConversionError: `x` is batched by `vmap`, or traced: the size would depend on its values.

    >>> gt.unique_counts(np.array([3.0, 1.0, 3.0])).counts
    array([1, 2])
    """
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: ArrayLike, /) -> UniqueInverseResult:
    """The values that occur in an array, each once, and the number of the value of each element.

    Raises:
        ConversionError: `x` is batched by `vmap`, or traced: the size would depend on its values.

    >>> gt.unique_inverse(np.array([3.0, 1.0, 3.0])).inverse_indices
    array([1, 0, 1])
    """
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


def unique_all(x: ArrayLike, /) -> UniqueAllResult:
    """The values that occur in an array, each once, and all that `unique` can tell about them.

    Raises:
        ConversionError: `x` is batched by `vmap`, or traced: the size would depend on its values.

    >>> gt.unique_all(np.array([3.0, 1.0, 3.0])).indices
    array([1, 0])
    """
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False))


# ---- two arrays ---------------------------------------------------------------------------------


def union1d(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The values that occur in one of two arrays or in both, in ascending order.

    Raises:
        ConversionError: An array is batched by `vmap`, or traced.

    >>> gt.union1d(np.array([3.0, 1.0]), np.array([2.0, 3.0]))
    array([1., 2., 3.])
    """
    return unique(concatenate([ravel(as_array(x)), ravel(as_array(y))]))


def intersect1d(
    x: ArrayLike, y: ArrayLike, /, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """The values that occur in both of two arrays, in ascending order.

    Args:
        x: The first array, whose elements have the gradient.
        y: The second array.
        assume_unique: Whether no value repeats within an array; saves time.
        return_indices: Whether to return where each value is first in both arrays.

    Raises:
        ConversionError: An array is batched by `vmap`, or traced.

    >>> gt.intersect1d(np.array([3.0, 1.0]), np.array([2.0, 3.0]))
    array([3.])
    """
    x, y = as_array(x), as_array(y)
    _, first, second = np.intersect1d(_read(x), _read(y), assume_unique, return_indices=True)
    values = astype(take(ravel(x), first), np.result_type(x.dtype, y.dtype), copy=False)
    tensor = x if isinstance(x, Tensor) else y
    results = tuple(like(tensor, array) for array in (values, first, second))
    return results if return_indices else results[0]


def setdiff1d(x: ArrayLike, y: ArrayLike, /, assume_unique: bool = False) -> Array:
    """The values of one array that do not occur in another, in ascending order.

    Args:
        x: The array whose values are returned.
        y: The array in which they must not occur.
        assume_unique: Whether no value repeats within an array; they are left in their order then.

    Raises:
        ConversionError: An array is batched by `vmap`, or traced.

    >>> gt.setdiff1d(np.array([3.0, 1.0]), np.array([2.0, 3.0]))
    array([1.])
    """
    x, y = as_array(x), as_array(y)
    values = ravel(x) if assume_unique else unique(x)
    return take(values, np.flatnonzero(np.isin(_read(values), _read(y), invert=True)))


def setxor1d(x: ArrayLike, y: ArrayLike, /, assume_unique: bool = False) -> Array:
    """The values that occur in exactly one of two arrays, in ascending order.

    Args:
        x: The first array.
        y: The second array.
        assume_unique: Whether no value repeats within an array; saves time.

    Raises:
        ConversionError: An array is batched by `vmap`, or traced.

    >>> gt.setxor1d(np.array([3.0, 1.0]), np.array([2.0, 3.0]))
    array([1., 2.])
    """
    parts = [ravel(z) if assume_unique else unique(z) for z in (as_array(x), as_array(y))]
    values = concatenate(parts)
    find: Any = np.unique  # as in `unique`
    _, place, count = find(_read(values), True, return_counts=True, equal_nan=False)
    return take(values, place[count == 1])
