"""Spectra at points of a spiral, by Bluestein's method: a convolution with a chirp."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import UnsupportedError
from gradtape.ops.checks import check_least
from gradtape.ops.fft.common import complex_dtype
from gradtape.ops.fft.frequencies import next_fast_len
from gradtape.ops.fft.transforms import fft, ifft
from gradtape.ops.shape import moveaxis
from gradtape.ops.signal.parts import part, time_last
from gradtape.typing import Array, ArrayLike


def _prepared(name: str, x: ArrayLike, axis: int, m: int | None) -> tuple[Array, int, int, Any]:
    """The signal with time last, its axis of time, how many points, and the numbers k."""
    x, axis = time_last(name, x, axis)
    m = x.shape[-1] if m is None else operator.index(m)
    check_least(name, 1, m=m)
    return x, axis, m, np.arange(max(m, x.shape[-1]))


def _convolved(x: Array, axis: int, chirp: Any, start: Any, m: int) -> Array:
    """X[k] = Σ x[n]·start[n]·w^{nk}, where chirp[k] is w^{k²/2} and 2nk = n² + k² − (k − n)²."""
    n, dtype = x.shape[-1], complex_dtype(x.dtype)
    size = next_fast_len(n + m - 1)
    kernel = np.fft.fft(1 / np.concatenate([chirp[n - 1 : 0 : -1], chirp[:m]]), size)
    spectrum = fft(x * (start * chirp[:n]).astype(dtype), size) * kernel.astype(dtype)
    out = part(ifft(spectrum), n - 1, n + m - 1) * chirp[:m].astype(dtype)
    return moveaxis(out, -1, axis)


def czt(
    x: ArrayLike,
    /,
    m: int | None = None,
    w: complex | None = None,
    a: complex = 1 + 0j,
    *,
    axis: int = -1,
) -> Array:
    """The chirp z-transform: the z-transform of a signal at m points a·w⁻ᵏ.

    Args:
        x: The signal.
        m: How many points; as many as it has elements if it is None.
        w: The ratio of points, a number; None goes once around the unit circle.
        a: The first point, a number.
        axis: The axis of time.

    Raises:
        AxisError: There is no such axis.
        ArgumentError: `m` is less than 1.
        UnsupportedError: `w` or `a` is a tensor.

    >>> np.round(gt.scipy.signal.czt(np.array([1.0, 0.0, 0.0])).real, 12)
    array([1., 1., 1.])
    """
    x, axis, m, k = _prepared("czt", x, axis, m)
    if isinstance(w, Tensor) or isinstance(a, Tensor):
        raise UnsupportedError(
            "czt: got a tensor for the points, expected numbers; use gt.scipy.signal.freqz"
        )
    # Around the circle, squares modulo 2m keep all digits.
    chirp = np.exp(-1j * np.pi * (k * k % (2 * m)) / m) if w is None else complex(w) ** (k * k / 2)
    return _convolved(x, axis, chirp, complex(a) ** -k[: x.shape[-1]], m)


def zoom_fft(
    x: ArrayLike,
    /,
    fn: Any,
    m: int | None = None,
    *,
    fs: float = 2,
    endpoint: bool = False,
    axis: int = -1,
) -> Array:
    """The Fourier transform of a signal at m frequencies of a part of its range.

    Args:
        x: The signal.
        fn: The first and last frequency, or the last one if the first is 0.
        m: How many; as many as it has elements if it is None.
        fs: The sampling rate.
        endpoint: Whether the upper end is the last frequency.
        axis: The axis of time.

    >>> np.round(abs(gt.scipy.signal.zoom_fft(np.ones(4), 1.0, 2)), 12)
    array([4., 0.])
    """
    x, axis, m, k = _prepared("zoom_fft", x, axis, m)
    low, high = (0.0, float(fn)) if np.ndim(fn) == 0 else map(float, fn)
    step = (high - low) / fs
    step = step * m / (m - 1) if endpoint and m > 1 else step
    chirp = np.exp(-1j * np.pi * step * (k * k) / m)
    start = np.exp(-2j * np.pi * low / fs * k[: x.shape[-1]])
    return _convolved(x, axis, chirp, start, m)
