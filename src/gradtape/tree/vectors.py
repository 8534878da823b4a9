"""Nested containers of arrays as one vector, and back."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradtape import containers
from gradtape.backends import is_raw
from gradtape.core.aval import aval_of
from gradtape.core.tensor import Tensor
from gradtape.errors import DTypeError, ShapeError, a_type
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype
from gradtape.ops.index import getitem
from gradtape.ops.inspection import result_type
from gradtape.ops.join import concatenate
from gradtape.ops.shape import reshape
from gradtape.tree.structures import Structure, flatten
from gradtape.typing import Array


class _Leaf(NamedTuple):
    """What a leaf was, to make another one like it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_number: bool


def ravel(tree: Any) -> tuple[Array, Callable[[Array], Any]]:
    """All elements in one vector, and the function that puts them back.

    Both are differentiable, and may be batched and compiled. The leaves of a module are its
    parameters.

    Args:
        tree: Nested containers of arrays, tensors or numbers, all of them floating, all complex,
            all integers, or all truth values.

    Returns:
        A vector, and a function that takes such a vector and returns containers like `tree`, with
        the shapes and dtypes of its leaves.

    Raises:
        DTypeError: The leaves are of several kinds, or one is neither an array nor a number.

    >>> vector, unravel = gt.tree.ravel({"w": np.ones((2, 2)), "b": 0.5})
    >>> vector
    array([0.5, 1. , 1. , 1. , 1. ])
    >>> unravel(2.0 * vector)
    {'w': array([[2., 2.],
           [2., 2.]]), 'b': np.float64(1.0)}
    """
    leaves, structure = flatten(tree)
    found = [_leaf(leaf, tree, number) for number, leaf in enumerate(leaves)]
    for number, one in enumerate(found):
        if _kind(one.dtype) != _kind(found[0].dtype):
            first, other = (containers.Place("tree", tree, n) for n in (0, number))
            raise DTypeError(
                f"tree.ravel: {first} is {found[0].dtype} and {other} is {one.dtype}, expected one "
                "kind of numbers, as a vector has one dtype; keep the others in containers of "
                "their own"
            )
    back = functools.partial(_unravelled, structure, found)
    if not found:
        return np.zeros(0), back
    dtype = result_type(*(one.dtype for one in found))
    parts = [reshape(astype(as_array(leaf), dtype, copy=False), -1) for leaf in leaves]
    return concatenate(parts), back


def _leaf(leaf: Any, tree: Any, number: int) -> _Leaf:
    if not isinstance(leaf, Tensor) and not is_raw(leaf):
        raise DTypeError(
            f"tree.ravel: {containers.Place('tree', tree, number)} is {a_type(leaf)}, expected an "
            "array, a tensor or a number"
        )
    aval = aval_of(leaf)
    return _Leaf(aval.shape, aval.dtype, not isinstance(leaf, Tensor | np.ndarray))


def _kind(dtype: np.dtype[Any]) -> str:
    kind = dtype.kind
    return {"u": "i", "V": "f"}.get(kind, kind)  # bfloat16 is of kind V


def _unravelled(structure: Structure, found: list[_Leaf], vector: Array) -> Any:
    vector = as_array(vector)
    sizes = [math.prod(one.shape) for one in found]
    if vector.shape != (sum(sizes),):
        raise ShapeError(
            f"unravel: got shape {vector.shape}, expected ({sum(sizes)},), as the vector had"
        )
    parts, start = [], 0
    for one, size in zip(found, sizes, strict=True):
        if not np.can_cast(vector.dtype, one.dtype, "same_kind"):
            raise DTypeError(
                f"unravel: got a vector of {vector.dtype}, expected {one.dtype}, as a leaf had"
            )
        part = reshape(getitem(vector, slice(start, start + size)), one.shape)
        part = astype(part, one.dtype)  # a copy: leaves are no views of the vector
        parts.append(part[()] if one.is_number and isinstance(part, np.ndarray) else part)
        start += size
    return structure.unflatten(parts)
