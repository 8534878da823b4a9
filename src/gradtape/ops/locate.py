"""Where elements lie: nonzero and its relatives, one-hot vectors. Nothing here has a derivative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import batch_in_place
from gradtape.core.define import general, public
from gradtape.core.lowering import Elements, Reader
from gradtape.core.scalar import Scalar
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import IndexingError, ShapeError
from gradtape.ops.arguments import as_array, as_dtype, as_integer
from gradtape.ops.gather import as_indices
from gradtape.typing import Array, ArrayLike


def _one_hot_forward(xp: Any, indices: Any, num_classes: int, dtype: Any) -> Any:
    outside = (indices < 0) | (indices >= num_classes)
    if outside.any():
        raise IndexingError(
            f"one_hot: got class {indices[outside].flat[0]}, expected classes from 0 to "
            f"{num_classes - 1}"
        )
    return (xp.asarray(indices)[..., None] == xp.arange(num_classes)).astype(dtype)


def _one_hot_element(i: Sequence[Scalar], indices: Reader, num_classes: int, dtype: Any) -> Scalar:
    given = indices(*i[:-1])
    given = indices.check(
        given,
        (given >= 0) & (given < num_classes),
        f"one_hot: got class {{}}, expected classes from 0 to {num_classes - 1}",
        given,
    )
    return scalar.convert(given == i[-1], dtype)


_one_hot = general(
    "one_hot",
    _one_hot_forward,
    infer=lambda indices, num_classes, dtype: Aval((*indices.shape, num_classes), dtype),
    batch=batch_in_place,
    lower=Elements(_one_hot_element),
)


@public()
def one_hot(indices: ArrayLike, /, num_classes: int, *, dtype: Any = np.float64) -> Array:
    """Vectors with a one at the place each index names, along a new last axis.

    Args:
        indices: Integers from 0 to `num_classes - 1`, in an array of any shape.
        num_classes: The length of the vectors.
        dtype: The dtype of the result.

    Raises:
        IndexingError: An index is out of bounds, or not an integer.

    >>> gt.one_hot([2, 0], 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    indices = as_indices(indices, "one_hot")
    num_classes = as_integer(num_classes, "one_hot", "num_classes")
    return _one_hot(indices, num_classes=num_classes, dtype=as_dtype(dtype, "one_hot"))


# How many there are depends on the values, so these are no ops: they read what a tensor holds, and
# raise for a batched one.


def _read(x: Any) -> Any:
    return innermost(x) if isinstance(x, Tensor) else as_array(x)


@public(np.nonzero)
def nonzero(x: ArrayLike, /) -> tuple[Array, ...]:
    """One array of indices per axis: where the elements are that are not zero.

    Returns:
        A tuple of integer arrays of one length, fit to be used as an index.

    Raises:
        ConversionError: `x` is batched by `vmap`, where the number of them would differ.

    >>> gt.nonzero(np.array([0.0, 2.0, 3.0]))
    (array([1, 2]),)
    """
    values = _read(x)
    if not values.shape:
        raise ShapeError("nonzero: got a 0-d array, expected at least one axis; use gt.atleast_1d")
    found = np.nonzero(values)
    return tuple(Tensor(axis) for axis in found) if isinstance(x, Tensor) else found


@public(np.flatnonzero)
def flatnonzero(x: ArrayLike, /) -> Array:
    """The positions in the flattened array of the elements that are not zero.

    Raises:
        ConversionError: `x` is batched by `vmap`, where the number of them would differ.

    >>> gt.flatnonzero(np.array([[0.0, 2.0], [3.0, 0.0]]))
    array([1, 2])
    """
    found = np.flatnonzero(_read(x))
    return Tensor(found) if isinstance(x, Tensor) else found


@public(np.argwhere)
def argwhere(x: ArrayLike, /) -> Array:
    """The indices of the elements that are not zero, one row for each.

    Raises:
        ConversionError: `x` is batched by `vmap`, where the number of them would differ.

    >>> gt.argwhere(np.array([[0.0, 2.0], [3.0, 0.0]]))
    array([[0, 1],
           [1, 0]])
    """
    found = np.argwhere(_read(x))
    return Tensor(found) if isinstance(x, Tensor) else found
