"""Distances of all pairs in a vector or in a square matrix, and between sets of points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_axes, check_choice
from gradtape.ops.gather import gather_leading
from gradtape.ops.join import concatenate
from gradtape.ops.nn.known import known_values
from gradtape.ops.reduce import max as max_of, min as min_of
from gradtape.ops.spatial.pairs import cdist
from gradtape.ops.which import argmax, argmin
from gradtape.typing import Array, ArrayLike


def squareform(X: ArrayLike, force: str = "no", checks: bool = True) -> Array:
    """The matrix of distances from the vector that `pdist` returns, or that vector from the matrix.

    Args:
        X: A vector of the distances above the diagonal, row by row, or a symmetric matrix.
        force: "tomatrix" or "tovector" if `X` has to be a vector or a matrix.
        checks: Whether a matrix has to be symmetric up to rounding, with zeros on its diagonal.
            While a function is traced, its values are not known, and are not checked.

    Raises:
        ShapeError: `X` is no vector or square matrix, or a vector whose size is not n·(n − 1)/2.
        ArgumentError: The matrix is not symmetric, or its diagonal is not 0.

    >>> from gradtape.scipy.spatial import distance
    >>> distance.squareform(gt.tensor([1.0, 2.0, 3.0]))
    tensor([[0., 1., 2.],
            [1., 0., 3.],
            [2., 3., 0.]])
    """
    x, force = as_array(X), force.lower()
    check_choice("squareform", ("no", "tomatrix", "tovector"), force=force)
    expected = {"no": (1, 2), "tomatrix": (1,), "tovector": (2,)}[force]
    if len(x.shape) not in expected:
        axes = "one or two axes" if force == "no" else f"{expected[0]} axes for force={force!r}"
        raise ShapeError(f"squareform: got shape {x.shape}, expected {axes}")
    if len(x.shape) == 2:
        return _to_vector(x, checks)
    count = math.ceil(math.sqrt(2 * x.shape[0])) if x.shape[0] else 1
    if count * (count - 1) != 2 * x.shape[0]:
        raise ShapeError(
            f"squareform: got {x.shape[0]} distances, expected n·(n - 1)/2 of them for n points"
        )
    places = np.zeros((count, count), np.intp)  # 0 is the element that stands on the diagonal
    places[np.triu_indices(count, 1)] = np.arange(1, x.shape[0] + 1)
    return gather_leading(concatenate([np.zeros(1, x.dtype), x]), places + places.T)


def _to_vector(x: Any, checks: bool) -> Any:
    count = x.shape[0]
    if count != x.shape[1]:
        raise ShapeError(f"squareform: got shape {x.shape}, expected a square matrix")
    known = known_values(x) if checks else None
    if known is not None and known.ndim == 2:
        # SciPy allows no difference, but its own distances are computed one by one.
        rounding = 64 * np.finfo(known.dtype).eps * np.abs(known).max(initial=0)
        if known.dtype.kind in "biu":
            rounding = 0
        if not (np.abs(known - known.T) <= rounding).all():
            raise ArgumentError(
                "squareform: got a matrix of distances that is not symmetric, expected a symmetric "
                "one; pass checks=False to take what is above the diagonal"
            )
        if not (np.abs(np.diagonal(known)) <= rounding).all():
            raise ArgumentError(
                "squareform: got a matrix of distances whose diagonal is not 0, expected zeros; "
                "pass checks=False to take what is above it"
            )
    return gather_leading(x, *np.triu_indices(count, 1))


def directed_hausdorff(u: ArrayLike, v: ArrayLike, rng: Any = 0) -> tuple[Array, Any, Any]:
    """The largest distance of a point of one set from the nearest point of the other.

    Where several pairs of points are that far apart they share the gradient.

    Args:
        u: The points of one set, one in each row.
        v: Those of the other set.
        rng: Without effect: SciPy shuffles the points with it.

    Returns:
        The distance, and the indices of the two points.

    Raises:
        ShapeError: The arguments are not matrices of as many columns, or have no rows.

    >>> from gradtape.scipy.spatial import distance
    >>> u = gt.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> distance.directed_hausdorff(u, np.array([[2.0, 0.0], [0.0, 4.0]]))
    (tensor(2.23606798), 1, 0)
    """
    name = "directed_hausdorff"
    points = as_array(u), as_array(v)
    for what, x in zip("uv", points, strict=True):
        check_axes(name, x, 2, what=what)
        if not x.shape[0]:
            raise ShapeError(f"{name}: got {what} of shape {x.shape}, expected at least one point")
    distances = cdist(*points)
    nearest = min_of(distances, 1)
    first = argmax(nearest)
    second = argmin(distances, 1)[first]
    return max_of(nearest), _as_index(first), _as_index(second)


def _as_index(place: Any) -> Any:
    """An index as a Python integer, unless values are not known, or differ in a batch."""
    raw = innermost(place, show=True) if isinstance(place, Tensor) else place
    return int(raw) if isinstance(raw, np.ndarray | np.generic) and not np.ndim(raw) else place
