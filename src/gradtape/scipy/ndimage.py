"""Interpolation and filters of images, under the names of `scipy.ndimage`."""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.ops.ndimage.edges import (
    gaussian_gradient_magnitude as gaussian_gradient_magnitude,
    gaussian_laplace as gaussian_laplace,
    laplace as laplace,
    prewitt as prewitt,
    sobel as sobel,
)
from gradtape.ops.ndimage.filters import (
    convolve as convolve,
    convolve1d as convolve1d,
    correlate as correlate,
    correlate1d as correlate1d,
)
from gradtape.ops.ndimage.interpolation import (
    affine_transform as affine_transform,
    map_coordinates as map_coordinates,
    rotate as rotate,
    shift as shift,
    zoom as zoom,
)
from gradtape.ops.ndimage.measurements import (
    center_of_mass as center_of_mass,
    maximum as maximum,
    mean as mean,
    median as median,
    minimum as minimum,
    standard_deviation as standard_deviation,
    sum_labels as sum_labels,
    variance as variance,
)
from gradtape.ops.ndimage.morphology import (
    black_tophat as black_tophat,
    grey_closing as grey_closing,
    grey_dilation as grey_dilation,
    grey_erosion as grey_erosion,
    grey_opening as grey_opening,
    morphological_gradient as morphological_gradient,
    morphological_laplace as morphological_laplace,
    white_tophat as white_tophat,
)
from gradtape.ops.ndimage.prefilter import (
    spline_filter as spline_filter,
    spline_filter1d as spline_filter1d,
)
from gradtape.ops.ndimage.ranks import (
    maximum_filter as maximum_filter,
    maximum_filter1d as maximum_filter1d,
    median_filter as median_filter,
    minimum_filter as minimum_filter,
    minimum_filter1d as minimum_filter1d,
    percentile_filter as percentile_filter,
    rank_filter as rank_filter,
    vectorized_filter as vectorized_filter,
)
from gradtape.ops.ndimage.smoothing import (
    gaussian_filter as gaussian_filter,
    gaussian_filter1d as gaussian_filter1d,
    uniform_filter as uniform_filter,
    uniform_filter1d as uniform_filter1d,
)
from gradtape.ops.ndimage.spectra import (
    fourier_gaussian as fourier_gaussian,
    fourier_shift as fourier_shift,
    fourier_uniform as fourier_uniform,
)

sum = sum_labels

_make_scipy(globals())
