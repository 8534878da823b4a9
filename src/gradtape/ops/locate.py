"""Where elements lie: nonzero and its relatives, one-hot vectors. Nothing here has a derivative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import batch_in_place
from gradtape.core.define import general
from gradtape.core.lowering import Elements, Reader
from gradtape.core.scalar import Scalar
from gradtape.errors import IndexingError
from gradtape.ops.arguments import as_dtype, as_integer
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


def one_hot(indices: ArrayLike, /, num_classes: int, *, dtype: Any = np.float64) -> Array:
    """Vectors with a one at the place given by each index, along a new last axis.

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
