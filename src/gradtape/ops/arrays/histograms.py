"""Counting elements in bins.

Counts are not differentiable in the data: they are untracked. With weights they are sums of
weights, which have a gradient with respect to the weights. Edges that were made from the data move
with its least and largest element, and densities with the edges.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, IndexingError
from gradtape.ops.arguments import as_array, real_only
from gradtape.ops.arrays.known import like, values_if_known, values_of
from gradtape.ops.arrays.search import searchsorted
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.checks import check_axes, check_least, check_same_shape
from gradtape.ops.gather import scatter
from gradtape.ops.join import stack
from gradtape.ops.reduce import max as max_of, min as min_of, sum as sum_of
from gradtape.ops.shape import ravel, reshape
from gradtape.typing import Array, ArrayLike

Bounds = tuple[float, float] | None


# ---- bincount -----------------------------------------------------------------------------------


def bincount(x: ArrayLike, /, weights: ArrayLike = None, minlength: int = 0) -> Array:
    """How often each of the numbers 0, 1, 2, … occurs, or the sum of weights where it does.

    Args:
        x: Integers from 0 on, along one axis. They have to be known, as they decide the size of the
            result: a compiled function cannot take them as an argument.
        weights: What to add up for each element, also complex numbers; None counts.
        minlength: The least size of the result.

    Raises:
        ShapeError: `x` has not one axis, or the weights another size.
        IndexingError: An element is no integer, or negative.
        ArgumentError: `minlength` is negative.
        ConversionError: `x` is batched by `vmap`, or traced.

    >>> gt.bincount(np.array([0, 2, 2]), np.array([1.0, 2.0, 3.0]))
    array([1., 0., 5.])
    """
    values = values_of(x)
    check_axes("bincount", values, 1, what="x")
    if (values.dtype.kind not in "biu" and values.size) or (values < 0).any():
        raise IndexingError(f"bincount: got {values.dtype} with {values}, expected integers >= 0")
    least = operator.index(minlength)
    check_least("bincount", 0, minlength=least)
    values = values.astype(np.intp)
    if weights is None:
        return like(x, np.bincount(values, minlength=least))
    weights = as_array(weights)
    check_same_shape("bincount", x=values, weights=weights)
    size = max(int(values.max(initial=-1)) + 1, least)
    wide = np.complex128 if weights.dtype.kind == "c" else np.float64
    return scatter(astype(weights, wide, copy=False), values, shape=(size,))


# ---- edges --------------------------------------------------------------------------------------


def _edges_forward(xp: Any, x: Any, bins: int, bounds: Bounds, dtype: Any) -> Any:
    """Edges of bins of equal width along the last axis, from the least to the largest element."""
    if bounds is not None:
        low, high = (xp.full(x.shape[:-1], float(bound)) for bound in bounds)
    elif x.shape[-1] == 0:
        low, high = xp.zeros(x.shape[:-1]), xp.ones(x.shape[:-1])
    else:
        low, high = x.min(-1), x.max(-1)
    if not (xp.isfinite(low) & xp.isfinite(high)).all():
        raise ArgumentError(f"histogram: got a range from {low} to {high}, expected a finite one")
    if (low > high).any():
        raise ArgumentError(f"histogram: got range={bounds}, expected the lower bound first")
    half = xp.where(low == high, 0.5, 0)  # a single value is in the middle of a bin
    return xp.linspace(low - half, high + half, bins + 1, axis=-1).astype(dtype)


_even_edges = general(
    "bin_edges",
    _edges_forward,
    infer=lambda x, bins, bounds, dtype: Aval((*x.shape[:-1], bins + 1), dtype),
)


def _is_number(bins: Any) -> bool:
    return not hasattr(bins, "__len__") or getattr(bins, "shape", None) == ()


def _edges(name: str, x: Any, bins: Any, bounds: Bounds, weights: Any = None) -> Any:
    """The edges of bins, given by their number, by a rule, or as they are."""
    real_only(name, x)
    if isinstance(bins, str):
        if weights is not None:
            raise ArgumentError(f"{name}: got bins={bins!r} and weights=, expected a number")
        try:
            edges = np.histogram_bin_edges(values_of(x), bins, bounds)
        except ValueError as error:
            raise ArgumentError(f"{name}: got bins={bins!r}; {error}") from error
    elif _is_number(bins):
        count = operator.index(bins)
        check_least(name, 1, bins=count)
        if bounds is not None:
            low, high = bounds
            bounds = (float(low), float(high))
        wide = x.dtype.kind in "biu" or (name == "histogramdd" and bounds is not None)
        dtype = np.dtype(np.float64) if wide else x.dtype
        edges = _even_edges(ravel(x), bins=count, bounds=bounds, dtype=dtype)
    else:
        return like(x, _given_edges(name, as_array(bins)))
    if bounds is not None or not isinstance(x, Tensor) or x.dtype.kind != "f" or 0 in x.shape:
        return like(x, edges)
    # They are even, and move with the range of the data.
    share = np.linspace(0.0, 1.0, edges.shape[0]).astype(x.dtype)
    moved = min_of(x) * (1 - share) + max_of(x) * share
    return edges + (moved - stop_gradient(moved))  # the value is unchanged, to the last digit


def _given_edges(name: str, edges: Any) -> Any:
    """Edges that were given, checked."""
    check_axes(name, edges, 1, what="bins", instead="give edges, or a number of bins")
    if edges.dtype.kind not in "biufV":
        raise DTypeError(f"{name}: got bins of {edges.dtype}, expected real numbers")
    known = values_if_known(edges)
    if known is not None and (known[1:] < known[:-1]).any():
        raise ArgumentError(f"{name}: got bins that decrease, expected ascending edges")
    return edges


def histogram_bin_edges(
    x: ArrayLike,
    /,
    bins: int | str | ArrayLike = 10,
    range: Bounds = None,
    weights: ArrayLike = None,
) -> Array:
    """The edges of the bins that `histogram` counts in, options as of `histogram`.

    Raises:
        ArgumentError: The bins or the range are not possible.
        DTypeError: The elements are complex.
        ConversionError: A rule for the number of bins got with a traced or batched array.

    >>> gt.histogram_bin_edges(np.array([0.0, 1.0]), 2)
    array([0. , 0.5, 1. ])
    """
    return _edges("histogram_bin_edges", as_array(x), bins, range, weights)


# ---- histograms ---------------------------------------------------------------------------------


def _numbers(x: Any, edges: Any) -> Any:
    """The bin of each element, counted from 1; 0 below all bins, their number plus 1 above.

    The last bin holds its upper edge.
    """
    count = edges.shape[0]
    within = searchsorted(edges, x, "right")
    return within - astype(x == edges[count - 1], np.intp)


def _tallied(samples: Sequence[Any], edges: Sequence[Any], weights: Any, dtype: Any) -> Any:
    """Sums of weights in bins along several axes."""
    numbers = [_numbers(x, edge) for x, edge in zip(samples, edges, strict=True)]
    size = samples[0].shape[0]
    weights = np.ones(size, dtype) if weights is None else ravel(as_array(weights))
    check_same_shape("histogram", samples=samples[0], weights=weights)
    whole = scatter(weights, *numbers, shape=tuple(edge.shape[0] + 1 for edge in edges))
    return whole[tuple(slice(1, edge.shape[0]) for edge in edges)]


def _per_volume(counts: Any, edges: Sequence[Any]) -> Any:
    """Counts divided by their sum, and by the volume of their bins."""
    counts = counts / sum_of(counts)
    for axis, edge in enumerate(edges):
        widths = edge[1:] - edge[:-1]
        counts = counts / reshape(widths, (-1, *(1,) * (len(edges) - 1 - axis)))
    return counts


def histogram(
    x: ArrayLike,
    /,
    bins: int | str | ArrayLike = 10,
    range: Bounds = None,
    density: bool | None = None,
    weights: ArrayLike = None,
) -> tuple[Array, Array]:
    """How many elements lie in each of several bins, or the sum of their weights.

    Args:
        x: The elements, in an array of any shape.
        bins: How many bins of equal width, or their edges, or the name of a rule of NumPy's.
        range: The lower and upper end of all bins; None for the least and largest element.
        density: Whether to divide by the sum of all, and by the width of each bin.
        weights: One for each element; the result has a gradient with respect to them.

    Returns:
        The counts, and the edges of the bins: one more than there are bins.

    Raises:
        ArgumentError: The bins or the range are not possible.
        DTypeError: The elements are complex.
        ShapeError: The weights have another shape.
        ConversionError: A rule for the number of bins got with a traced or batched array.

    >>> gt.histogram(np.array([0.0, 0.2, 1.0]), 2)
    (array([2, 1]), array([0. , 0.5, 1. ]))
    """
    x = as_array(x)
    if weights is not None:
        weights = as_array(weights)
        check_same_shape("histogram", x=x, weights=weights)
    edges = _edges("histogram", x, bins, range, weights)
    counts = _tallied([ravel(x)], [edges], weights, np.intp)
    return (_per_volume(counts, [edges]) if density else counts), edges


def histogramdd(
    sample: ArrayLike,
    /,
    bins: int | Sequence[Any] = 10,
    range: Sequence[Bounds] | None = None,
    density: bool | None = None,
    weights: ArrayLike = None,
) -> tuple[Array, list[Array]]:
    """How many points lie in each of the bins of a grid, or the sum of their weights.

    Args:
        sample: The points, one in each row, or a sequence of arrays, one for each coordinate.
        bins: How many bins along each axis, or their edges: for all axes, or for each of them.
        range: The lower and upper end of all bins along each axis.
        density: Whether to divide by the sum of all, and by the volume of each bin.
        weights: One for each point; the result has a gradient with respect to them.

    Returns:
        The counts as floats, and a list of the edges along each axis.

    Raises:
        ArgumentError: The bins or the range are not possible.
        DTypeError: The elements are complex.
        ShapeError: Shapes do not fit.

    >>> gt.histogramdd(np.array([[0.0, 0.0], [1.0, 1.0]]), bins=2)[0]
    array([[1., 0.],
           [0., 1.]])
    """
    points = _points(sample)
    count = points.shape[1]
    each: list[Any] = [bins] * count if _is_number(bins) else list(bins)  # type: ignore[arg-type]
    bounds = [None] * count if range is None else list(range)
    if len(each) != count or len(bounds) != count:
        raise ArgumentError(
            f"histogramdd: got bins for {len(each)} and a range for {len(bounds)} axes, "
            f"expected {count}"
        )
    samples = [points[:, axis] for axis, _ in enumerate(each)]
    edges = [_edges("histogramdd", *given) for given in zip(samples, each, bounds, strict=True)]
    if weights is not None:
        weights = as_array(weights)
        weights = astype(weights, np.result_type(weights.dtype, np.float64), copy=False)
    counts = _tallied(samples, edges, weights, np.float64)
    return (_per_volume(counts, edges) if density else counts), edges


def _points(sample: Any) -> Any:
    if not isinstance(sample, Tensor | np.ndarray):
        return stack([as_array(coordinate) for coordinate in sample], 1)
    check_axes("histogramdd", sample, least=1, most=2, instead="give points as rows")
    return reshape(sample, (-1, 1)) if len(sample.shape) == 1 else sample


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    /,
    bins: int | Sequence[Any] = 10,
    range: Sequence[Bounds] | None = None,
    density: bool | None = None,
    weights: ArrayLike = None,
) -> tuple[Array, Array, Array]:
    """How many points of the plane lie in each of the bins of a grid, as `histogramdd`.

    Args:
        x: The first coordinates.
        y: The second coordinates.
        bins: How many bins along both axes, or their edges: for both axes, or a pair of them.
        range: The lower and upper end of all bins along each axis.
        density: Whether to divide by the sum of all, and by the area of each bin.
        weights: One for each point; the result has a gradient with respect to them.

    Returns:
        The counts as floats, and the edges along both axes.

    Raises:
        ArgumentError: The bins or the range are not possible.
        DTypeError: The elements are complex.
        ShapeError: Shapes do not fit.

    >>> gt.histogram2d(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 2)[0]
    array([[1., 0.],
           [0., 1.]])
    """
    if not _is_number(bins) and len(bins) not in (1, 2):  # type: ignore[arg-type]
        bins = [bins, bins]  # edges for both axes
    counts, (first, second) = histogramdd([x, y], bins, range, density, weights)
    return counts, first, second
