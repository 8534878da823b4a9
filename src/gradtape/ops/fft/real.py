"""Fourier transforms of real numbers, which give half of the coefficients, and their inverses.

The coefficients of n real numbers come in conjugate pairs, so n//2 + 1 of them are enough. The
first one stands for itself, so does the last if n is even, and each in between stands for two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import linear
from gradtape.core.op import Facts
from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.cast import astype, conj
from gradtape.ops.fft.common import (
    OTHER_NORM,
    as_numbers,
    axes_and_sizes,
    complex_dtype,
    library,
    norm_of,
    prepared,
    real_dtype,
    resized,
)
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
    facts=Facts(reads="axis"),
)
# x = y₀ + 2·Σ Re(yₖ·e) + …; adjoint: the transform of ct with the coefficients between doubled.
# Imaginary parts that are not used, of the first and of the last one, get none from a real ct.
irfft_over: Callable[..., Any] = linear(
    "irfft",
    _irfft,
    _irfft_adjoint,
    infer=lambda x, n, axis, norm: Aval(_with_size(x.shape, axis[-1], n), real_dtype(x.dtype)),
    facts=Facts(reads="axis"),
)


# ---- what the public functions have in common ---------------------------------------------------


def coefficients_of(name: str, x: ArrayLike, s: Any, axes: Axis, norm: str | None) -> Array:
    """Transform real numbers; a function of Hermitian kind, "ihfft", goes in the other direction.

    Conjugating the coefficients reverses the direction.
    """
    x, chosen, norm = prepared(name, x, s, axes, norm)
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: got {x.dtype}, expected real numbers; use fft, or real(x)")
    _check_some(name, chosen)
    if name[0] != "i":
        return rfft_over(x, axis=chosen, norm=norm)
    return conj(rfft_over(x, axis=chosen, norm=OTHER_NORM[norm]))


def numbers_of(name: str, x: ArrayLike, s: Any, axes: Axis, norm: str | None) -> Array:
    """Real numbers from coefficients; a function of Hermitian kind, "hfft", goes forward."""
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
