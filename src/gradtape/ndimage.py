"""Interpolation and filters of images, under the names of `scipy.ndimage`."""

from gradtape.help.public import make_public as _make_public
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
)
from gradtape.ops.ndimage.interpolation import (
    affine_transform,
    map_coordinates,
    rotate,
    shift,
    zoom,
)
from gradtape.ops.ndimage.measurements import (
    center_of_mass,
    maximum,
    mean,
    median,
    minimum,
    standard_deviation,
    sum_labels,
    variance,
)
from gradtape.ops.ndimage.morphology import (
    black_tophat,
    grey_closing,
    grey_dilation,
    grey_erosion,
    grey_opening,
    morphological_gradient,
    morphological_laplace,
    white_tophat,
)
from gradtape.ops.ndimage.prefilter import spline_filter, spline_filter1d
from gradtape.ops.ndimage.ranks import (
    median_filter,
    percentile_filter,
    rank_filter,
    vectorized_filter,
)
from gradtape.ops.ndimage.smoothing import (
    gaussian_filter,
    gaussian_filter1d,
    uniform_filter,
    uniform_filter1d,
)
from gradtape.ops.ndimage.spectra import fourier_gaussian, fourier_shift, fourier_uniform

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
    "rank_filter",
    "median_filter",
    "percentile_filter",
    "vectorized_filter",
    "grey_erosion",
    "grey_dilation",
    "grey_opening",
    "grey_closing",
    "white_tophat",
    "black_tophat",
    "morphological_gradient",
    "morphological_laplace",
    "sum_labels",
    "sum",
    "mean",
    "variance",
    "standard_deviation",
    "maximum",
    "minimum",
    "median",
    "center_of_mass",
    "fourier_gaussian",
    "fourier_uniform",
    "fourier_shift",
]

sum = sum_labels

_make_public(globals())
