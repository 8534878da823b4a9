"""Taking arrays apart: one op with as many outputs as there are parts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from gradtape.core.aval import Aval
from gradtape.core.define import linear
from gradtape.core.lowering import Composite
from gradtape.core.nested import View
from gradtape.core.tensor import Tensor
from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.arguments import INTEGER, as_array, as_integer, normalize_axis
from gradtape.ops.checks import check_least
from gradtape.ops.join import concatenate_at
from gradtape.ops.pad import crop_axis
from gradtape.typing import Array, ArrayLike


def _between(bounds: Sequence[int], axis: int) -> list[tuple[slice, ...]]:
    before = (slice(None),) * axis
    return [(*before, slice(start, stop)) for start, stop in itertools.pairwise(bounds)]


def _infer_split(x: Aval, axis: int, bounds: tuple[int, ...]) -> tuple[Aval, ...]:
    return tuple(
        Aval((*x.shape[:axis], stop - start, *x.shape[axis + 1 :]), x.dtype)
        for start, stop in itertools.pairwise(bounds)
    )


def _parts(x: Any, axis: int, bounds: Sequence[int]) -> tuple[Any, ...]:
    return tuple(crop_axis(x, axis, *pair) for pair in itertools.pairwise(bounds))


# d split(x) = split(dx); transpose: concatenate
_split: Callable[..., Any] = linear(
    "split",
    lambda xp, x, axis, bounds: tuple(x[index] for index in _between(bounds, axis)),
    lambda ct, _out, _x, axis, bounds: concatenate_at(*ct, axis=axis, bounds=bounds),
    infer=_infer_split,
    aliases=True,
    outputs=None,
    lower=Composite(_parts),
)


def split_at(x: Array, axis: int, bounds: Sequence[int]) -> list[Array]:
    """The parts of `x` between `bounds` (the first is 0, the last the size of the axis)."""
    if len(bounds) == 2:
        return [_slice(x, axis, *bounds)]
    parts = list(_split(x, axis=axis, bounds=tuple(bounds)))
    if not isinstance(x, Tensor):
        return parts
    return [View(x, *pair) for pair in zip(_between(bounds, axis), parts, strict=True)]


def split(x: ArrayLike, /, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """The array cut into several along an axis.

    Args:
        x: What to cut.
        indices_or_sections: How many equal parts, or the places where to cut.
        axis: Along which to cut.

    Returns:
        A list of the parts, in order.

    Raises:
        ShapeError: The axis does not divide into that many equal parts.
        AxisError: There is no such axis.
        ArgumentError: The number of parts is not positive.

    >>> gt.split(np.arange(4.0), 2)
    [array([0., 1.]), array([2., 3.])]
    """
    x = as_array(x)
    if isinstance(indices_or_sections, INTEGER):
        axis = normalize_axis(axis, len(x.shape), "split")
        size = x.shape[axis]
        if indices_or_sections > 0 and size % indices_or_sections:
            raise ShapeError(
                f"split: got shape {x.shape} to split axis {axis} into {indices_or_sections}, "
                f"expected a divisor of {size}; use array_split for unequal parts"
            )
    return array_split(x, indices_or_sections, axis)


def array_split(x: ArrayLike, /, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """The array cut into several along an axis, into parts as equal as possible.

    Args:
        x: What to cut.
        indices_or_sections: How many parts, the first ones longer if need be; or where to cut.
        axis: Along which to cut.

    Returns:
        A list of the parts, in order.

    Raises:
        ArgumentError: The number of parts is not positive.
        AxisError: There is no such axis.

    >>> gt.array_split(np.arange(3.0), 2)
    [array([0., 1.]), array([2.])]
    """
    x = as_array(x)
    axis = normalize_axis(axis, len(x.shape), "split")
    size = x.shape[axis]
    if not isinstance(indices_or_sections, INTEGER):
        # As slices do: places count from the end if negative, and stop at the end.
        cuts = [slice(place).indices(size)[1] for place in _places(indices_or_sections)]
        starts, stops = [0, *cuts], [*cuts, size]
        if any(start > stop for start, stop in zip(starts, stops, strict=True)):
            return [_slice(x, axis, i, j) for i, j in zip(starts, stops, strict=True)]
        return split_at(x, axis, [0, *cuts, size])
    check_least("split", 1, indices_or_sections=indices_or_sections)
    each, extra = divmod(size, int(indices_or_sections))
    sizes = [each + 1] * extra + [each] * (int(indices_or_sections) - extra)
    return split_at(x, axis, list(itertools.accumulate(sizes, initial=0)))


def _places(given: Any) -> list[int]:
    """Where to cut."""
    if isinstance(given, str | dict) or not hasattr(given, "__iter__"):
        raise DTypeError(
            f"split: got {given!r}, expected the number of parts, or the places to cut at: [2, 4]"
        )
    return [as_integer(place, "split", "a place to cut at") for place in given]


def _slice(x: Array, axis: int, start: int, stop: int) -> Array:
    """One part by itself."""
    stop = max(start, stop)
    part = crop_axis(x, axis, start, stop)
    (index,) = _between((start, stop), axis)
    return View(x, index, part) if isinstance(x, Tensor) else part


def chunk(x: ArrayLike, /, chunks: int, axis: int = 0) -> list[Array]:
    """The array cut into at most `chunks` parts of one size, the last one smaller if need be.

    Args:
        x: What to cut.
        chunks: How many parts at most; an axis that is too short gives fewer.
        axis: Along which to cut.

    Returns:
        A list of the parts, in order.

    Raises:
        ArgumentError: The number of parts is not positive.
        AxisError: There is no such axis.

    >>> [part.shape for part in gt.chunk(np.ones(5), 3)]
    [(2,), (2,), (1,)]
    """
    x = as_array(x)
    axis = normalize_axis(axis, len(x.shape), "chunk")
    chunks = as_integer(chunks, "chunk", "chunks")
    check_least("chunk", 1, chunks=chunks)
    size = x.shape[axis]
    each = max(-(-size // chunks), 1)
    return split_at(x, axis, [*range(0, size, each), size] if size else [0, 0])
