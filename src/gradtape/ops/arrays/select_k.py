"""Selecting without sorting all: partition, the largest elements, the k-th smallest one.

Each is made of the indices of the elements in question, which have no derivative, and of reading
these elements, which has one. NaN counts as larger than all numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.arrays.axes import along
from gradtape.ops.arrays.sort import INDEX, argsort, comparable
from gradtape.ops.checks import check_choice
from gradtape.ops.family import member
from gradtape.ops.gather import take_along_axis
from gradtape.ops.shape import ravel, swapaxes
from gradtape.typing import Array, ArrayLike

# ---- partition ----------------------------------------------------------------------------------

# Along the last axis, as all ops here.
argpartition_last = general(
    "argpartition",
    lambda xp, x, kth: xp.argpartition(comparable(x), kth, axis=-1),
    infer=lambda x, kth: Aval(x.shape, INDEX),
)


def _parted(name: str, x: ArrayLike, kth: Any, axis: int | None) -> tuple[Any, Any, int]:
    """The array, the indices that partition it, and the axis."""
    x, axis = along(name, x, axis)
    n = x.shape[axis]
    given = np.ravel(kth) if isinstance(kth, Sequence | np.ndarray) else (kth,)
    places = [_place(name, n, -n, n - 1, kth=k) % n for k in given]
    order = argpartition_last(swapaxes(x, axis, -1), kth=tuple(places))
    return x, swapaxes(order, axis, -1), axis


def _place(name: str, n: int, low: int, high: int, **given: Any) -> int:
    """A number along an axis of size n, given as an option, checked."""
    ((option, value),) = given.items()
    if not low <= (k := operator.index(value)) <= high:
        raise ArgumentError(
            f"{name}: got {option}={k} for an axis of size {n}, expected one from {low} to {high}"
        )
    return k


def _partition(
    name: str,
    x: ArrayLike,
    kth: int | Sequence[int],
    /,
    axis: int | None = -1,
    kind: str = "introselect",
) -> Array:
    """The {what}: the k-th smallest one at place k, smaller ones before, larger ones after.

    Args:
        x: What to partition.
        kth: One place, or several, counted from 0.
        axis: Along which axis; None partitions the flattened array.
        kind: Only NumPy's "introselect".

    Raises:
        ArgumentError: A place is outside of the axis.
        AxisError: There is no such axis.

    partition:
    >>> gt.partition(np.array([3.0, 1.0, 2.0]), 1)
    array([1., 2., 3.])

    argpartition:
    >>> gt.argpartition(np.array([3.0, 1.0, 2.0]), 1)
    array([1, 2, 0])
    """
    check_choice(name, ("introselect",), kind=kind)
    if name == "partition":
        return take_along_axis(*_parted(name, x, kth, axis))
    x = as_array(x)
    return _parted(name, x if x.shape else ravel(x), kth, axis)[1]


partition = member("partition", _partition, what="elements")
argpartition = member("argpartition", _partition, what="indices")


# ---- topk and kthvalue --------------------------------------------------------------------------


class TopK(NamedTuple):
    """Elements that were selected, and where they were along the axis."""

    values: Array
    indices: Array


# In rows of at least this many parts, the extreme of each part is looked at first.
_PART, _LEAST_PARTS = 256, 64


def _top_forward(xp: Any, x: Any, k: int, largest: bool) -> Any:
    """The first k indices of the stable order; sorted whole only if equal ones are left out."""
    x, n = comparable(x), x.shape[-1]
    parts = n // _PART
    if xp is np and 0 < 4 * k < parts >= _LEAST_PARTS and x.dtype.kind in "fiu":
        rows = x.reshape(-1, n)
        chosen = np.stack([_top_of_row(row, k, largest) for row in rows])
        return chosen.reshape((*x.shape[:-1], k))
    if 0 < 4 * k < n:
        last = n - k if largest else k - 1
        edge = xp.partition(x, last, axis=-1)[..., last : last + 1]
        inside = (x >= edge) | (x != x) if largest else x <= edge
        if (inside.sum(-1) == k).all():
            chosen = xp.nonzero(inside)[-1].reshape((*x.shape[:-1], k))
            values = xp.take_along_axis(x, chosen, -1)
            return xp.take_along_axis(chosen, argsort(values, descending=largest), -1)
    return argsort(x, descending=largest)[..., :k]


def _top_of_row(x: Any, k: int, largest: bool) -> Any:
    """The same for one long row: k parts have an element beyond the k-th extreme of all parts."""
    whole = x[: len(x) // _PART * _PART].reshape(-1, _PART)
    if largest:
        bound = np.partition(whole.max(axis=1), -k)[-k]
        candidates = np.flatnonzero((x >= bound) | (x != x))
    else:
        bound = np.partition(whole.min(axis=1), k - 1)[k - 1]
        candidates = np.flatnonzero(x <= bound)
    if len(candidates) < k:  # NaN
        candidates = np.arange(len(x))
    return candidates[argsort(x[candidates], descending=largest)[:k]]


_top = general(
    "topk",
    _top_forward,
    infer=lambda x, k, largest: Aval((*x.shape[:-1], k), INDEX),
)


def topk(
    x: ArrayLike,
    /,
    k: int,
    axis: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    dim: int | None = None,
) -> TopK:
    """The k largest elements along an axis, and where they are, as `torch.topk`.

    Of equal elements, those that come first are taken. NaN counts as the largest.

    Args:
        x: Where to look.
        k: How many.
        axis: Along which axis.
        largest: Whether to take the largest ones, or the smallest.
        sorted: Whether they have to be in order; they always are, the extreme one first.
        dim: Another name of `axis`.

    Returns:
        A named tuple of `values`, which have gradients, and `indices`.

    Raises:
        ArgumentError: There are less than `k` elements.
        AxisError: There is no such axis.

    >>> gt.topk(np.array([1.0, 5.0, 3.0]), 2)
    TopK(values=array([5., 3.]), indices=array([1, 2]))
    """
    x = as_array(x)
    axis, n = _axis_and_size("topk", x, axis, dim)
    k = _place("topk", n, 0, n, k=k)
    indices = swapaxes(_top(swapaxes(x, axis, -1), k=k, largest=bool(largest)), axis, -1)
    return TopK(take_along_axis(x, indices, axis), indices)


def kthvalue(
    x: ArrayLike, /, k: int, axis: int = -1, keepdims: bool = False, *, dim: int | None = None
) -> TopK:
    """The k-th smallest element along an axis, counted from 1, and where it is.

    As `torch.kthvalue`. Of equal elements, one gets the gradient.

    Args:
        x: Where to look.
        k: Which one: 1 is the smallest.
        axis: Along which axis.
        keepdims: Whether the axis stays, with size 1.
        dim: Another name of `axis`.

    Returns:
        A named tuple of `values`, which have gradients, and `indices`.

    Raises:
        ArgumentError: There are less than `k` elements.
        AxisError: There is no such axis.

    >>> gt.kthvalue(np.array([1.0, 5.0, 3.0]), 2)
    TopK(values=np.float64(3.0), indices=np.int64(2))
    """
    x = as_array(x)
    axis, n = _axis_and_size("kthvalue", x, axis, dim)
    k = _place("kthvalue", n, 1, n, k=k)
    order = argpartition_last(swapaxes(x, axis, -1), kth=(k - 1,))
    indices = swapaxes(order[..., k - 1 : k], axis, -1)
    values = take_along_axis(x, indices, axis)
    only = (slice(None),) * axis + (0,)
    return TopK(values, indices) if keepdims else TopK(values[only], indices[only])


def _axis_and_size(name: str, x: Any, axis: int, dim: int | None) -> tuple[int, int]:
    if dim is not None:
        if axis != -1:
            raise ArgumentError(f"{name}: got axis= and dim=, expected one of them")
        axis = dim
    axis = normalize_axis(axis, len(x.shape), name)
    return axis, x.shape[axis]
