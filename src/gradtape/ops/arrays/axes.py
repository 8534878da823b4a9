"""The axis that a function works along."""

from __future__ import annotations

from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.shape import ravel
from gradtape.typing import Array, ArrayLike


def along(name: str, x: ArrayLike, axis: int | None) -> tuple[Array, int]:
    """An array and an axis of it, checked; without an axis, the flattened array and its axis."""
    x = as_array(x)
    return (ravel(x), 0) if axis is None else (x, normalize_axis(axis, len(x.shape), name))
