"""The places of elements that are not zero.

How many there are depends on the values, so these are not ops: they read the values of a tensor,
and raise for a batched one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor, innermost
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_axes
from gradtape.typing import Array, ArrayLike


def _read(x: Any) -> Any:
    return innermost(x) if isinstance(x, Tensor) else as_array(x)


def nonzero(x: ArrayLike, /) -> tuple[Array, ...]:
    """The indices of the elements that are not zero, one array per axis.

    Returns:
        A tuple of integer arrays of one length, fit to be used as an index.

    Raises:
        ConversionError: `x` is batched by `vmap`, where the number of them would differ.

    >>> gt.nonzero(np.array([0.0, 2.0, 3.0]))
    (array([1, 2]),)
    """
    values = _read(x)
    check_axes("nonzero", values, least=1, instead="use gt.atleast_1d")
    found = np.nonzero(values)
    return tuple(Tensor(axis) for axis in found) if isinstance(x, Tensor) else found


def flatnonzero(x: ArrayLike, /) -> Array:
    """The positions in the flattened array of the elements that are not zero.

    Raises:
        ConversionError: `x` is batched by `vmap`, where the number of them would differ.

    >>> gt.flatnonzero(np.array([[0.0, 2.0], [3.0, 0.0]]))
    array([1, 2])
    """
    found = np.flatnonzero(_read(x))
    return Tensor(found) if isinstance(x, Tensor) else found


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
