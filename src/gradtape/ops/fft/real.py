"""Fourier transforms of real numbers, which give half of the coefficients, and their inverses.

The coefficients of n real numbers come in conjugate pairs, so that n//2 + 1 of them tell all. The
first one stands for itself, the last one as well if n is even, and each between for two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import linear
from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.arguments import refuse
from gradtape.ops.cast import astype, conj
from gradtape.ops.fft.common import (
    OTHER_NORM,
    as_numbers,
    axes_and_sizes,
    complex_dtype,
    library,
    norm_of,
    real_dtype,
    resized,
)
from gradtape.ops.fft.fourier import LAST_TWO
from gradtape.typing import Array, ArrayLike, Axis

Axes = tuple[int, ...]


def _pairs_times(factor: float, coefficients: Any, n: int, axis: int) -> Any:
    """The coefficients of n numbers, with those that stand for two multiplied by a factor."""
    count = n // 2 + 1
    factors = np.full(count, factor, real_dtype(coefficients.dtype))
    factors[0] = 1
    if n % 2 == 0:
        factors[-1] = 1
    return coefficients * factors.reshape((count,) + (1,) * (len(coefficients.shape) - axis - 1))


def _rfft_adjoint(ct: Any, _out: Any, _x: Any, axis: Axes, norm: str) -> Any:
    n = _x.shape[axis[-1]]
    halved = _pairs_times(0.5, ct, n, axis[-1])
    return irfft_over(halved, n=n, axis=axis, norm=OTHER_NORM[norm])


def _irfft_adjoint(ct: Any, _out: Any, _x: Any, n: int, axis: Axes, norm: str) -> Any:
    return _pairs_times(2.0, rfft_over(ct, axis=axis, norm=OTHER_NORM[norm]), n, axis[-1])


def _irfft(xp: Any, x: Any, n: int, axis: Axes, norm: str) -> Any:
    sizes = (*(x.shape[one] for one in axis[:-1]), n)
    return library(xp).irfftn(x, s=sizes, axes=axis, norm=norm)


def _with_size(shape: tuple[int, ...], axis: int, n: int) -> tuple[int, ...]:
    return (*shape[:axis], n, *shape[axis + 1 :])


# y = R·x with the first n//2 + 1 rows of the Fourier matrix; Re(Rᴴ·ct) is the inverse transform,
# which counts a coefficient between twice, of ct with those halved.
rfft_over: Callable[..., Any] = linear(
    "rfft",
    lambda xp, x, axis, norm: library(xp).rfftn(x, axes=axis, norm=norm),
    _rfft_adjoint,
    infer=lambda x, axis, norm: Aval(
        _with_size(x.shape, axis[-1], x.shape[axis[-1]] // 2 + 1), complex_dtype(x.dtype)
    ),
)
# x = y₀ + 2·Σ Re(yₖ·e) + …; adjoint: the transform of ct with the coefficients between doubled.
# Imaginary parts that are not used, of the first and of the last one, get none from a real ct.
irfft_over: Callable[..., Any] = linear(
    "irfft",
    _irfft,
    _irfft_adjoint,
    infer=lambda x, n, axis, norm: Aval(_with_size(x.shape, axis[-1], n), real_dtype(x.dtype)),
)


# ---- what the public functions have in common ---------------------------------------------------


def coefficients_of(
    name: str, x: ArrayLike, s: Any, axes: Axis, norm: str | None, options: Any
) -> Array:
    """Transform real numbers; one of Hermitian kind ("ihfft") goes in the other direction."""
    refuse(name, options)
    x, norm = as_numbers(x), norm_of(name, norm)
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: got {x.dtype}, expected real numbers; use fft, or real(x)")
    chosen, sizes = axes_and_sizes(name, x, s, axes)
    _check_some(name, chosen)
    x = resized(name, x, chosen, sizes)
    if name[0] != "i":
        return rfft_over(x, axis=chosen, norm=norm)
    return conj(rfft_over(x, axis=chosen, norm=OTHER_NORM[norm]))


def numbers_of(
    name: str, x: ArrayLike, s: Any, axes: Axis, norm: str | None, options: Any
) -> Array:
    """Real numbers from coefficients; one of Hermitian kind ("hfft") goes in this direction."""
    refuse(name, options)
    x, norm = as_numbers(x), norm_of(name, norm)
    chosen, sizes = axes_and_sizes(name, x, s, axes)
    _check_some(name, chosen)
    n = sizes[-1] if sizes[-1] is not None else 2 * (x.shape[chosen[-1]] - 1)
    if n < 1:
        raise ShapeError(
            f"{name}: got {n} points for shape {x.shape}, expected at least one; give n or s"
        )
    x = resized(name, x, chosen, (*sizes[:-1], n // 2 + 1))
    x = astype(x, complex_dtype(x.dtype), copy=False)
    if name[0] == "i":
        return irfft_over(x, n=n, axis=chosen, norm=norm)
    return irfft_over(conj(x), n=n, axis=chosen, norm=OTHER_NORM[norm])


def _check_some(name: str, axes: Axes) -> None:
    if not axes:
        raise ShapeError(f"{name}: got no axes, expected at least one to transform")


# ---- real numbers to coefficients ---------------------------------------------------------------


def rfft(
    x: ArrayLike,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Discrete Fourier transform of real numbers along one axis: the first n//2 + 1 coefficients.

    Args:
        x: Real numbers. Single precision stays single.
        n: How many points to transform: the axis is cut off, or continued by zeros, to so many.
        axis: Along which axis.
        norm: Which of the two directions is scaled, as for `gt.fft.fft`.
        **unsupported: Further options of NumPy, which raise.

    Raises:
        DTypeError: The numbers are complex.
        AxisError: There is no such axis.
        ShapeError: There are no points.

    >>> gt.fft.rfft(np.array([1.0, 1.0, 1.0, 1.0]))
    array([4.+0.j, 0.+0.j, 0.+0.j])
    """
    return coefficients_of("rfft", x, None if n is None else (n,), (axis,), norm, unsupported)


def rfft2(
    x: ArrayLike,
    /,
    s: Any = None,
    axes: Axis = LAST_TWO,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Discrete Fourier transform of real numbers over two axes, with the options of `gt.fft.rfftn`.

    Args:
        x: Real numbers.
        s: The size wanted along each of the axes.
        axes: Over which axes; the last one gives half of the coefficients.
        norm: Which of the two directions is scaled.
        **unsupported: Further options of NumPy, which raise.

    >>> gt.fft.rfft2(np.ones((2, 2))).real
    array([[4., 0.],
           [0., 0.]])
    """
    return coefficients_of("rfft2", x, s, axes, norm, unsupported)


def rfftn(
    x: ArrayLike,
    /,
    s: Any = None,
    axes: Axis = None,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Discrete Fourier transform of real numbers over several axes.

    Args:
        x: Real numbers. Single precision stays single.
        s: The size wanted along each of the axes, as for `gt.fft.fftn`.
        axes: Over which axes, each at most once; None takes all of them. The last one gives half of
            the coefficients.
        norm: Which of the two directions is scaled.
        **unsupported: Further options of NumPy, which raise.

    Raises:
        DTypeError: The numbers are complex.
        AxisError: There is no such axis, or one is named twice.
        ShapeError: There are no points, or not as many sizes as axes.

    >>> gt.fft.rfftn(np.ones((2, 4))).shape
    (2, 3)
    """
    return coefficients_of("rfftn", x, s, axes, norm, unsupported)


# ---- coefficients to real numbers ---------------------------------------------------------------


def irfft(
    x: ArrayLike,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Inverse of `gt.fft.rfft`: real numbers from the first n//2 + 1 coefficients.

    Args:
        x: The coefficients; imaginary parts of the first, and of the last for an even n, are not
            used.
        n: How many numbers come out; twice the coefficients less 2 if it is left out, so that an
            odd n has to be given.
        axis: Along which axis.
        norm: Which of the two directions is scaled.
        **unsupported: Further options of NumPy, which raise.

    Raises:
        AxisError: There is no such axis.
        ShapeError: There are no points.

    >>> gt.fft.irfft(np.array([4.0, 0.0, 0.0]))
    array([1., 1., 1., 1.])
    """
    return numbers_of("irfft", x, None if n is None else (n,), (axis,), norm, unsupported)


def irfft2(
    x: ArrayLike,
    /,
    s: Any = None,
    axes: Axis = LAST_TWO,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Inverse of `gt.fft.rfft2`.

    Args:
        x: The coefficients.
        s: The sizes of the result along the axes; give them if the last one is odd.
        axes: Over which axes.
        norm: Which of the two directions is scaled.
        **unsupported: Further options of NumPy, which raise.

    >>> gt.fft.irfft2(np.array([[4.0, 0.0], [0.0, 0.0]]))
    array([[1., 1.],
           [1., 1.]])
    """
    return numbers_of("irfft2", x, s, axes, norm, unsupported)


def irfftn(
    x: ArrayLike,
    /,
    s: Any = None,
    axes: Axis = None,
    norm: str | None = None,
    **unsupported: Any,
) -> Array:
    """Inverse of `gt.fft.rfftn`.

    Args:
        x: The coefficients.
        s: The sizes of the result along the axes; give them if the last one is odd.
        axes: Over which axes, each at most once; None takes all of them.
        norm: Which of the two directions is scaled.
        **unsupported: Further options of NumPy, which raise.

    Raises:
        AxisError: There is no such axis, or one is named twice.
        ShapeError: There are no points, or not as many sizes as axes.

    >>> gt.fft.irfftn(np.array([[4.0, 0.0], [0.0, 0.0]]))
    array([[1., 1.],
           [1., 1.]])
    """
    return numbers_of("irfftn", x, s, axes, norm, unsupported)
