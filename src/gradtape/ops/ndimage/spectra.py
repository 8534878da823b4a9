"""Filters of images on their Fourier transforms: transforms in, transforms out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.ops.arguments import as_array, as_integer, check_real, normalize_axis
from gradtape.ops.cast import astype
from gradtape.ops.exponential import exp
from gradtape.ops.fft.common import complex_dtype, real_dtype
from gradtape.ops.ndimage.windows import per_axis
from gradtape.ops.shape import reshape
from gradtape.ops.shared_options import options
from gradtape.ops.trigonometric import sinc
from gradtape.typing import Array, ArrayLike

Factor = Callable[[Any, Any], Any]
_TRANSFORMS = {
    "input": "The transform of an image.",
    "n": "Of how many real numbers `axis` holds the first half of the transform; negative if it "
    "holds a complex transform.",
    "axis": "That axis.",
}


def _multiplied(
    name: str, input: ArrayLike, what: str, values: Any, n: int, axis: int, factor: Factor,
) -> Array:  # fmt: skip
    """A transform times a factor for each axis, `factor(frequencies, value)`.

    Frequencies are in cycles per element. With n ≥ 0, the axis `axis` holds the first half of the
    transform of n real numbers.
    """
    x, n = as_array(input), as_integer(n, name, "n")
    ndim = len(x.shape)
    last = normalize_axis(axis, ndim, name) if ndim else 0
    x = x if x.dtype.kind in "fc" else astype(x, np.float64)
    for at, value in enumerate(per_axis(name, what, values, ndim)):
        check_real(name, **{what: value})
        size = x.shape[at]
        half = at == last and n >= 0
        f = np.arange(size) / max(n, 1) if half else np.fft.fftfreq(size)
        weights = factor(f, value)
        kind = complex_dtype if weights.dtype.kind == "c" else real_dtype
        weights = astype(weights, kind(x.dtype), copy=False)
        x = x * reshape(weights, (size,) + (1,) * (ndim - at - 1))
    return x


@options(_TRANSFORMS)
def fourier_gaussian(input: ArrayLike, /, sigma: Any, n: int = -1, axis: int = -1) -> Array:
    """The transform of an image times that of a Gaussian, differentiable in both.

    Args:
        sigma: The standard deviation in elements, for all axes or for each; it may be a tensor.

    >>> gt.scipy.ndimage.fourier_gaussian(np.ones(4), 1.0).round(4)
    array([1.    , 0.2912, 0.0072, 0.2912])
    """

    # The transform of a Gaussian: exp(−2·π²·σ²·f²)
    def factor(f: Any, width: Any) -> Any:
        return exp(-2 * (np.pi * f * width) ** 2)

    return _multiplied("fourier_gaussian", input, "sigma", sigma, n, axis, factor)


@options(_TRANSFORMS)
def fourier_uniform(input: ArrayLike, /, size: Any, n: int = -1, axis: int = -1) -> Array:
    """The transform of an image times that of a box.

    Args:
        size: The size of the box in elements, for all axes or for each; it may be a tensor.

    >>> gt.scipy.ndimage.fourier_uniform(np.ones(4), 2.0).round(4)
    array([1.    , 0.6366, 0.    , 0.6366])
    """

    def factor(f: Any, width: Any) -> Any:
        return sinc(f * width)

    return _multiplied("fourier_uniform", input, "size", size, n, axis, factor)


@options(_TRANSFORMS)
def fourier_shift(input: ArrayLike, /, shift: Any, n: int = -1, axis: int = -1) -> Array:
    """The transform of an image that is moved, differentiable in the distance as well.

    Args:
        shift: How far, for all axes or for each; it may be a tensor.

    >>> gt.fft.ifft(gt.scipy.ndimage.fourier_shift(np.fft.fft([1.0, 2.0, 3.0, 4.0]), 1)).real.round(
    ...     12
    ... )
    array([4., 1., 2., 3.])
    """

    def factor(f: Any, distance: Any) -> Any:
        return exp(-2j * np.pi * f * distance)

    return _multiplied("fourier_shift", input, "shift", shift, n, axis, factor)
