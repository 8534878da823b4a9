"""Sums, means and extremes of an array over labelled regions.

Labels are constant integers. SciPy's rules hold for all functions: without `labels` the whole array
is one region, without `index` all labels that are not 0 are, and the result has the shape of
`index`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.median import nanmedian
from gradtape.ops.cast import real_product
from gradtape.ops.gather import gather_leading, scatter
from gradtape.ops.moments import root
from gradtape.ops.reduce import max as max_of, min as min_of
from gradtape.ops.select import where
from gradtape.ops.shape import reshape
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike

_REGIONS = {
    "input": "The array.",
    "labels": "Which region each element is in; None for one region.",
    "index": "Of which regions; None for all labels that are not 0 together.",
}


class _Regions(NamedTuple):
    """The elements of regions: `places` in the flat array, and which region each is in."""

    values: Any
    places: Any
    region: Any
    shape: tuple[int, ...]
    which: Any

    @property
    def sizes(self) -> Any:
        """How many elements each region has."""
        return np.bincount(self.region, minlength=int(self.which.max(initial=-1)) + 1)

    def sums(self, values: Any) -> Any:
        """The sum of numbers, one per element, over each region."""
        return scatter(values, self.region, shape=self.sizes.shape)

    def result(self, per_region: Any) -> Any:
        """Results for regions in the order and shape of `index`."""
        return reshape(gather_leading(per_region, self.which.ravel()), self.shape)

    def means(self, values: Any) -> Any:
        """The mean of numbers, one per element, over each region; NaN without any."""
        sizes = np.where(self.sizes, self.sizes, math.nan)
        return self.sums(values) / sizes.astype(values.dtype)


def _regions(name: str, input: ArrayLike, labels: Any, index: Any) -> _Regions:
    x = as_array(input)
    if x.dtype.kind not in "fc":
        raise DTypeError(f"{name}: got {x.dtype}, expected floating numbers; use astype")
    flat = reshape(x, (-1,))
    if labels is None:
        known, index = np.zeros(flat.shape[0], np.intp), 0
    else:
        labels = np.asarray(labels)
        if labels.dtype.kind not in "biu":
            raise DTypeError(f"{name}: got labels of {labels.dtype}, expected integers")
        try:
            known = np.broadcast_to(labels, x.shape).ravel()
        except ValueError as error:
            raise ShapeError(
                f"{name}: got labels of shape {labels.shape} for an array of shape {x.shape}, "
                "expected the same"
            ) from error
        if index is None:
            known, index = (known != 0).astype(np.intp), 1
    index = np.asarray(index)
    if index.dtype.kind not in "biuf":
        raise DTypeError(f"{name}: got index of {index.dtype}, expected integers")
    wanted, which = np.unique(index, return_inverse=True)
    region = np.searchsorted(wanted, known)
    inside = wanted[np.minimum(region, len(wanted) - 1)] == known if len(wanted) else known != known
    (places,) = np.nonzero(inside)
    values = gather_leading(flat, places)
    return _Regions(values, places, region[places], index.shape, which.reshape(index.shape))


# ---- sums ---------------------------------------------------------------------------------------


@options(_REGIONS)
def sum_labels(input: ArrayLike, /, labels: Any = None, index: Any = None) -> Array:
    """The sum over each region.

    Raises:
        DTypeError: The array is not floating, or labels are not integers.
        ShapeError: Labels do not fit the array.

    >>> gt.scipy.ndimage.sum_labels(np.array([1.0, 2.0, 4.0]), [1, 2, 2], [1, 2])
    array([1., 6.])
    """
    regions = _regions("sum_labels", input, labels, index)
    return regions.result(regions.sums(regions.values))


@options(_REGIONS)
def mean(input: ArrayLike, /, labels: Any = None, index: Any = None) -> Array:
    """The mean over each region; NaN where there is no element.

    >>> gt.scipy.ndimage.mean(np.array([1.0, 2.0, 4.0]), [1, 2, 2], [1, 2])
    array([1., 3.])
    """
    regions = _regions("mean", input, labels, index)
    return regions.result(regions.means(regions.values))


@options(_REGIONS)
def variance(input: ArrayLike, /, labels: Any = None, index: Any = None) -> Array:
    """The variance over each region: the mean squared distance from the mean.

    >>> gt.scipy.ndimage.variance(gt.tensor([1.0, 2.0, 4.0]), [1, 2, 2], [1, 2])
    tensor([0., 1.])
    """
    regions = _regions("variance", input, labels, index)
    apart = regions.values - gather_leading(regions.means(regions.values), regions.region)
    return regions.result(regions.means(real_product(apart, apart)))


@options(_REGIONS)
def standard_deviation(input: ArrayLike, /, labels: Any = None, index: Any = None) -> Array:
    """The root of `gt.scipy.ndimage.variance`; its derivative is 0 where it is 0, as for `gt.std`.

    >>> gt.scipy.ndimage.standard_deviation(np.array([1.0, 2.0, 4.0]), [1, 2, 2], 2)
    np.float64(1.0)
    """
    return root(variance(input, labels, index))


@options(_REGIONS)
def center_of_mass(input: ArrayLike, /, labels: Any = None, index: Any = None) -> Any:
    """The mean of the coordinates of elements, with the elements as weights.

    Returns:
        A tuple of coordinates, or a list of such for a sequence of regions.

    >>> [float(c) for c in gt.scipy.ndimage.center_of_mass(np.array([[0.0, 1.0], [0.0, 3.0]]))]
    [0.75, 1.0]
    """
    regions = _regions("center_of_mass", input, labels, index)
    mass = regions.sums(regions.values)
    coordinates = np.unravel_index(regions.places, np.shape(input))
    centers = [
        regions.result(regions.sums(regions.values * c.astype(regions.values.dtype)) / mass)
        for c in coordinates
    ]
    if len(regions.shape) > 1:
        raise ShapeError(
            f"center_of_mass: got index of shape {regions.shape}, expected a number, or a sequence"
        )
    if not regions.shape:
        return tuple(centers)
    return [tuple(center[i] for center in centers) for i in range(*regions.shape)]


# ---- what needs the elements side by side -------------------------------------------------------


def _rows(regions: _Regions, fill: float) -> Any:
    """The elements of each region along a row, with a number after them."""
    order = np.argsort(regions.region, kind="stable")
    sizes = regions.sizes
    starts = np.cumsum(sizes) - sizes
    along = np.arange(int(sizes.max(initial=0)))
    there = along < sizes[:, None]
    rows = order[np.where(there, starts[:, None] + along, 0)]
    return where(there, gather_leading(regions.values, rows), regions.values.dtype.type(fill))


def _over_rows(
    name: str, input: ArrayLike, labels: Any, index: Any, fill: float, reduce: Callable[..., Any]
) -> Array:
    """A reduction over regions; one of several that is empty gives 0, as in SciPy."""
    regions = _regions(name, input, labels, index)
    if regions.values.dtype.kind == "c":
        raise DTypeError(f"{name}: got complex numbers, expected real ones")
    if not len(regions.places):
        raise ShapeError(f"{name}: got regions without any element, expected some")
    out = reduce(_rows(regions, fill), axis=1)
    return regions.result(where(regions.sizes > 0, out, regions.values.dtype.type(0)))


@options(_REGIONS)
def maximum(input: ArrayLike, /, labels: Any = None, index: Any = None) -> Array:
    """The largest element of each region; equal ones share the gradient.

    >>> gt.scipy.ndimage.maximum(np.array([1.0, 2.0, 4.0]), [1, 2, 2], [1, 2])
    array([1., 4.])
    """
    return _over_rows("maximum", input, labels, index, -math.inf, max_of)


@options(_REGIONS)
def minimum(input: ArrayLike, /, labels: Any = None, index: Any = None) -> Array:
    """The smallest element of each region; equal ones share the gradient.

    >>> gt.scipy.ndimage.minimum(np.array([1.0, 2.0, 4.0]), [1, 2, 2], [1, 2])
    array([1., 2.])
    """
    return _over_rows("minimum", input, labels, index, math.inf, min_of)


@options(_REGIONS)
def median(input: ArrayLike, /, labels: Any = None, index: Any = None) -> Array:
    """The median of each region.

    >>> gt.scipy.ndimage.median(np.array([1.0, 2.0, 4.0]), [1, 2, 2], [1, 2])
    array([1., 3.])
    """
    return _over_rows("median", input, labels, index, math.nan, nanmedian)
