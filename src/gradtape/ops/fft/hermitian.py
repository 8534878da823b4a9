"""Fourier transforms of coefficients with Hermitian symmetry: the real spectrum of a signal.

They are those of `real` in the other direction: conjugating the coefficients turns it around.
"""

from __future__ import annotations

from typing import Any

from gradtape.ops.fft.fourier import LAST_TWO
from gradtape.ops.fft.real import coefficients_of, numbers_of
from gradtape.typing import Array, ArrayLike, Axis


def hfft(
    x: ArrayLike,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Transform of a signal with Hermitian symmetry, given by its first half: a real spectrum.

    Args:
        x: The first n//2 + 1 numbers of the signal.
        n: How many numbers come out; twice those given less 2 if it is left out.
        axis: Along which axis.
        norm: Which of the two directions is scaled, as for `gt.fft.fft`.
        **unsupported: Further options of NumPy, which raise.

    Raises:
        AxisError: There is no such axis.
        ShapeError: There are no points.

    >>> gt.fft.hfft(np.array([1.0, 0.0, 0.0]))
    array([1., 1., 1., 1.])
    """
    return numbers_of("hfft", x, None if n is None else (n,), (axis,), norm, unsupported)


def ihfft(
    x: ArrayLike,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Inverse of `gt.fft.hfft`: half of the signal that has a real spectrum.

    Args:
        x: The spectrum.
        n: How many of its numbers to use: cut off, or continued by zeros.
        axis: Along which axis.
        norm: Which of the two directions is scaled.
        **unsupported: Further options of NumPy, which raise.

    Raises:
        DTypeError: The spectrum is complex.
        AxisError: There is no such axis.
        ShapeError: There are no points.

    >>> gt.fft.ihfft(np.array([1.0, 1.0, 1.0, 1.0])).real
    array([1., 0., 0.])
    """
    return coefficients_of("ihfft", x, None if n is None else (n,), (axis,), norm, unsupported)


def hfft2(
    x: ArrayLike,
    /,
    s: Any = None,
    axes: Axis = LAST_TWO,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """`gt.fft.hfft` over two axes, as in SciPy.

    Args:
        x: The signal, half of it along the last axis.
        s: The sizes of the result along the axes.
        axes: Over which axes.
        norm: Which of the two directions is scaled.
        **unsupported: Further options of SciPy, which raise.

    >>> gt.fft.hfft2(np.array([[1.0, 0.0], [0.0, 0.0]]))
    array([[1., 1.],
           [1., 1.]])
    """
    return numbers_of("hfft2", x, s, axes, norm, unsupported)


def ihfft2(
    x: ArrayLike,
    /,
    s: Any = None,
    axes: Axis = LAST_TWO,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Inverse of `gt.fft.hfft2`.

    Args:
        x: The spectrum.
        s: The size wanted along each of the axes.
        axes: Over which axes.
        norm: Which of the two directions is scaled.
        **unsupported: Further options of SciPy, which raise.

    >>> gt.fft.ihfft2(np.ones((2, 2))).real
    array([[1., 0.],
           [0., 0.]])
    """
    return coefficients_of("ihfft2", x, s, axes, norm, unsupported)


def hfftn(
    x: ArrayLike,
    /,
    s: Any = None,
    axes: Axis = None,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """`gt.fft.hfft` over several axes, as in SciPy.

    Args:
        x: The signal, half of it along the last axis.
        s: The sizes of the result along the axes.
        axes: Over which axes; None takes all of them.
        norm: Which of the two directions is scaled.
        **unsupported: Further options of SciPy, which raise.

    >>> gt.fft.hfftn(np.array([[1.0, 0.0], [0.0, 0.0]]))
    array([[1., 1.],
           [1., 1.]])
    """
    return numbers_of("hfftn", x, s, axes, norm, unsupported)


def ihfftn(
    x: ArrayLike,
    /,
    s: Any = None,
    axes: Axis = None,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Inverse of `gt.fft.hfftn`.

    Args:
        x: The spectrum.
        s: The size wanted along each of the axes.
        axes: Over which axes; None takes all of them.
        norm: Which of the two directions is scaled.
        **unsupported: Further options of SciPy, which raise.

    >>> gt.fft.ihfftn(np.ones((2, 2))).real
    array([[1., 0.],
           [0., 0.]])
    """
    return coefficients_of("ihfftn", x, s, axes, norm, unsupported)
