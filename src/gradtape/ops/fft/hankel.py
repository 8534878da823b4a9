"""Hankel transforms of numbers that are spaced evenly in the logarithm, by Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, DTypeError
from gradtape.ops.arguments import check_real
from gradtape.ops.cast import astype
from gradtape.ops.fft.common import as_numbers
from gradtape.ops.fft.transforms import irfft, rfft
from gradtape.ops.rearrange import flip
from gradtape.typing import Array, ArrayLike


def _coefficients(name: str, n: int, dln: float, mu: float, offset: float, bias: float) -> Any:
    """The factors of the Fourier coefficients of n numbers: 2^s·Γ(s₊)/Γ(s₋) and a shift."""
    import scipy.special

    above, below = (mu + 1 + bias) / 2, (mu + 1 - bias) / 2
    y = np.pi / (n * dln) * np.arange(n // 2 + 1)
    up, down = (scipy.special.loggamma(part + 1j * y) for part in (above, below))
    with np.errstate(invalid="ignore", over="ignore"):
        u = np.exp(
            up.real - down.real + np.log(2) * bias
            + 1j * (up.imag + down.imag + 2 * y * (np.log(2) - offset))
        )  # fmt: skip
    # The last coefficient of an even number of points is real. The first one is a ratio of gamma
    # functions that may both be infinite.
    if n % 2 == 0:
        u.imag[-1] = 0
    if not np.isfinite(u[0]):
        u[0] = 2**bias * scipy.special.poch(below, bias)
    if (name == "fht" and np.isinf(u[0])) or (name == "ifht" and u[0] == 0):
        raise ArgumentError(
            f"{name}: got mu={mu} and bias={bias}, for which the transform is singular, expected "
            "another bias"
        )
    return u


def _transformed(
    name: str, x: ArrayLike, dln: float, mu: float, offset: float, bias: float
) -> Array:
    """Either transform: they differ in the sign of the bias and in the use of coefficients."""
    x = as_numbers(x)
    check_real(name, dln=dln, mu=mu, offset=offset, bias=bias)
    if x.dtype.kind == "c" or not x.shape or x.shape[-1] == 0:
        raise DTypeError(
            f"{name}: got {x.dtype}{list(x.shape)}, expected real numbers along an axis; transform "
            "real(x) and imag(x) one by one"
        )
    if x.dtype.char not in "fd":
        x = astype(x, np.float64)
    n, dtype = x.shape[-1], x.dtype
    u = _coefficients(name, n, dln, mu, offset, bias)
    steps = (np.arange(n) - (n - 1) / 2) * dln
    before, after = np.exp(-bias * steps), np.exp(-bias * (steps + offset))
    if name == "ifht":
        u, before, after = 1 / u.conj(), 1 / after, 1 / before
    single = np.complex64 if dtype == np.float32 else np.complex128
    spectrum = rfft(x * before.astype(dtype)) * u.astype(single)
    return flip(irfft(spectrum, n), -1) * after.astype(dtype)


def fht(a: ArrayLike, /, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Array:
    """Fast Hankel transform along the last axis, as `scipy.fft.fht`.

    Args:
        a: Real numbers at points whose logarithms are spaced evenly.
        dln: The distance between these. It and the other parameters are constants.
        mu: The order of the Bessel function, any real number.
        offset: By how much the logarithms of the results' points are moved; `scipy.fft.fhtoffset`
            finds one that suits.
        bias: The exponent of a power law that is divided out before and restored after.

    Raises:
        DTypeError: The numbers are complex, or there are none.
        ArgumentError: The transform is singular for this order and bias.

    >>> x = np.array([1.0, 2.0, 3.0, 2.0])
    >>> gt.fft.ifht(gt.fft.fht(x, 0.1, 0.5), 0.1, 0.5).round(12)
    array([1., 2., 3., 2.])
    """
    return _transformed("fht", a, dln, mu, offset, bias)


def ifht(A: ArrayLike, /, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Array:
    """Inverse of `gt.fft.fht`, with its options.

    Args:
        A: Real numbers.
        dln: The distance between the logarithms of their points.
        mu: The order of the Bessel function.
        offset: By how much the logarithms of the points are moved.
        bias: The exponent of a power law.

    >>> gt.fft.ifht(np.zeros(3), 0.1, 0.5)
    array([0., 0., 0.])
    """
    return _transformed("ifht", A, dln, mu, offset, bias)
