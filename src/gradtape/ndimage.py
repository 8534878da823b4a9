"""Interpolation and filters of images, under the names of `scipy.ndimage`."""

from gradtape.ops.ndimage.edges import (
    gaussian_gradient_magnitude,
    gaussian_laplace,
    laplace,
    prewitt,
    sobel,
)
from gradtape.ops.ndimage.extremes import (
    maximum_filter,
    maximum_filter1d,
    minimum_filter,
    minimum_filter1d,
)
from gradtape.ops.ndimage.filters import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    uniform_filter,
    uniform_filter1d,
)
from gradtape.ops.ndimage.interpolation import (
    affine_transform,
    map_coordinates,
    rotate,
    shift,
    zoom,
)
from gradtape.ops.ndimage.prefilter import spline_filter, spline_filter1d

__all__ = [
    "map_coordinates",
    "shift",
    "zoom",
    "rotate",
    "affine_transform",
    "spline_filter",
    "spline_filter1d",
    "correlate",
    "correlate1d",
    "convolve",
    "convolve1d",
    "gaussian_filter",
    "gaussian_filter1d",
    "uniform_filter",
    "uniform_filter1d",
    "sobel",
    "prewitt",
    "laplace",
    "gaussian_laplace",
    "gaussian_gradient_magnitude",
    "maximum_filter",
    "maximum_filter1d",
    "minimum_filter",
    "minimum_filter1d",
]
