"""Complex Fourier transforms along one or several axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.core.aval import Aval
from gradtape.core.define import linear
from gradtape.ops.arguments import normalize_axis, refuse
from gradtape.ops.fft.common import (
    OTHER_NORM,
    as_numbers,
    axes_and_sizes,
    complex_dtype,
    library,
    norm_of,
    resized,
)
from gradtape.typing import Array, ArrayLike, Axis

LAST_TWO = (-2, -1)


def _forward(xp: Any, x: Any, axis: tuple[int, ...], inverse: bool, norm: str) -> Any:
    fft = library(xp)
    return (fft.ifftn if inverse else fft.fftn)(x, axes=axis, norm=norm)


# y = F·x with a symmetric matrix F; adjoint: conj(F), the transform in the other direction with
# the scale of this one. Of a real x the walk keeps the real part.
fft_over: Callable[..., Any] = linear(
    "fft",
    _forward,
    lambda ct, _out, _x, axis, inverse, norm: fft_over(
        ct, axis=axis, inverse=not inverse, norm=OTHER_NORM[norm]
    ),
    infer=lambda x, **_params: Aval(x.shape, complex_dtype(x.dtype)),
)


def _along(name: str, x: ArrayLike, n: int | None, axis: int, norm: Any, options: Any) -> Array:
    """A transform along one axis; that it is inverse shows in its name."""
    refuse(name, options)
    x, norm = as_numbers(x), norm_of(name, norm)
    axes = (normalize_axis(axis, len(x.shape), name),)
    return fft_over(resized(name, x, axes, (n,)), axis=axes, inverse=name[0] == "i", norm=norm)


def _over(name: str, x: ArrayLike, s: Any, axes: Axis, norm: str | None, options: Any) -> Array:
    """A transform over several axes; that it is inverse shows in its name."""
    refuse(name, options)
    x, norm = as_numbers(x), norm_of(name, norm)
    chosen, sizes = axes_and_sizes(name, x, s, axes)
    if not chosen:
        return x
    x = resized(name, x, chosen, sizes)
    return fft_over(x, axis=chosen, inverse=name[0] == "i", norm=norm)


def fft(
    x: ArrayLike,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Discrete Fourier transform along one axis.

    Args:
        x: Real or complex numbers. Single precision stays single.
        n: How many points to transform: the axis is cut off, or continued by zeros, to so many.
        axis: Along which axis.
        norm: What is divided by the number of points: the inverse transform ("backward", also
            None), this one ("forward"), or both by its root ("ortho").
        **unsupported: Further options of NumPy, which raise.

    Raises:
        AxisError: There is no such axis.
        ShapeError: There are no points.

    >>> gt.fft.fft(np.array([1.0, 0.0, 0.0, 0.0])).real
    array([1., 1., 1., 1.])
    """
    return _along("fft", x, n, axis, norm, unsupported)


def ifft(
    x: ArrayLike,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Inverse discrete Fourier transform along one axis, with the options of `gt.fft.fft`.

    Args:
        x: The coefficients.
        n: How many of them to use: cut off, or continued by zeros.
        axis: Along which axis.
        norm: Which of the two directions is scaled.
        **unsupported: Further options of NumPy, which raise.

    >>> gt.fft.ifft(np.array([4.0, 0.0, 0.0, 0.0])).real
    array([1., 1., 1., 1.])
    """
    return _along("ifft", x, n, axis, norm, unsupported)


def fft2(
    x: ArrayLike,
    /,
    s: Any = None,
    axes: Axis = LAST_TWO,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Discrete Fourier transform over two axes, with the options of `gt.fft.fftn`.

    Args:
        x: Real or complex numbers.
        s: The size wanted along each of the axes.
        axes: Over which axes.
        norm: Which of the two directions is scaled.
        **unsupported: Further options of NumPy, which raise.

    >>> gt.fft.fft2(np.ones((2, 2))).real
    array([[4., 0.],
           [0., 0.]])
    """
    return _over("fft2", x, s, axes, norm, unsupported)


def ifft2(
    x: ArrayLike,
    /,
    s: Any = None,
    axes: Axis = LAST_TWO,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Inverse discrete Fourier transform over two axes, with the options of `gt.fft.fftn`.

    Args:
        x: The coefficients.
        s: The size wanted along each of the axes.
        axes: Over which axes.
        norm: Which of the two directions is scaled.
        **unsupported: Further options of NumPy, which raise.

    >>> gt.fft.ifft2(np.array([[4.0, 0.0], [0.0, 0.0]])).real
    array([[1., 1.],
           [1., 1.]])
    """
    return _over("ifft2", x, s, axes, norm, unsupported)


def fftn(
    x: ArrayLike,
    /,
    s: Any = None,
    axes: Axis = None,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Discrete Fourier transform over several axes.

    Args:
        x: Real or complex numbers. Single precision stays single.
        s: The size wanted along each of the axes, to which they are cut off or continued by zeros;
            -1 leaves one as it is. Without `axes`, the last ones are meant.
        axes: Over which axes, each at most once; None takes all of them.
        norm: What is divided by the number of points: the inverse transform ("backward", also
            None), this one ("forward"), or both by its root ("ortho").
        **unsupported: Further options of NumPy, which raise.

    Raises:
        AxisError: There is no such axis, or one is named twice.
        ShapeError: There are no points, or not as many sizes as axes.

    >>> gt.fft.fftn(np.ones((2, 1, 2))).real
    array([[[4., 0.]],
           [[0., 0.]]])
    """
    return _over("fftn", x, s, axes, norm, unsupported)


def ifftn(
    x: ArrayLike,
    /,
    s: Any = None,
    axes: Axis = None,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Inverse discrete Fourier transform over several axes, with the options of `gt.fft.fftn`.

    Args:
        x: The coefficients.
        s: The size wanted along each of the axes.
        axes: Over which axes; None takes all of them.
        norm: Which of the two directions is scaled.
        **unsupported: Further options of NumPy, which raise.

    >>> gt.fft.ifftn(np.array([[4.0, 0.0], [0.0, 0.0]])).real
    array([[1., 1.],
           [1., 1.]])
    """
    return _over("ifftn", x, s, axes, norm, unsupported)
