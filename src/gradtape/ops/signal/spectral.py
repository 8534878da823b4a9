"""Functions of signals by way of their spectrum, and the removal of trends."""

from __future__ import annotations

import operator
from itertools import pairwise
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axes, normalize_axis
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_choice
from gradtape.ops.fft.common import real_dtype
from gradtape.ops.fft.transforms import fft, fftn, ifft, ifftn, irfft, rfft
from gradtape.ops.join import concatenate
from gradtape.ops.rearrange import flip, roll
from gradtape.ops.reduce import mean
from gradtape.ops.shape import moveaxis
from gradtape.ops.signal.parts import part, window_of
from gradtape.typing import Array, ArrayLike, Axis

# ---- the analytic signal ------------------------------------------------------------------------


def hilbert(x: ArrayLike, /, N: int | None = None, axis: int = -1) -> Array:
    """The analytic signal: with x as its real part, and no negative frequencies.

    Args:
        x: A real signal.
        N: How many points to transform: cut off, or continued by zeros.
        axis: The axis of time.

    Raises:
        DTypeError: The signal is complex.
        AxisError: There is no such axis.
        ShapeError: There are no points.

    >>> np.abs(gt.scipy.signal.hilbert(np.array([1.0, 0.0, -1.0, 0.0])))
    array([1., 1., 1., 1.])
    """
    x = as_array(x)
    axis = normalize_axis(axis, len(x.shape), "hilbert")
    return _analytic("hilbert", x, None if N is None else (N,), (axis,), 1.0)


def _analytic(name: str, x: Array, sizes: Any, axes: tuple[int, ...], middle: float) -> Array:
    """The signal without negative frequencies along some axes."""
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: got {x.dtype}, expected a real signal; use real(x)")
    spectrum = fftn(x, sizes, axes)
    for axis in axes:
        n = spectrum.shape[axis]
        weights = one_sided_weights(n, spectrum.dtype, middle)
        spectrum = spectrum * weights.reshape((n,) + (1,) * (len(x.shape) - axis - 1))
    return ifftn(spectrum, axes=axes)


def one_sided_weights(n: int, dtype: Any, middle: float) -> Any:
    """The factors of coefficients that leave no negative frequencies.

    Positive ones count twice, 0 once, and the middle one of an even number as given.
    """
    weights = np.zeros(n, real_dtype(dtype))
    if n % 2 == 0:
        weights[n // 2] = middle
    weights[1 : (n + 1) // 2] = 2
    weights[0] = 1
    return weights


def hilbert2(x: ArrayLike, /, N: Any = None, axes: Axis = (-2, -1)) -> Array:
    """The analytic signal over two axes: the frequencies of both are not negative.

    Args:
        x: A real signal of at least two axes.
        N: How many points to transform, of both or of each: cut off, or continued by zeros.
        axes: The two axes.

    Raises:
        DTypeError: The signal is complex.
        AxisError: There are no such axes.
        ArgumentError: There are not two axes.

    >>> np.round(gt.scipy.signal.hilbert2(np.ones((2, 2))).real, 12)
    array([[1., 1.],
           [1., 1.]])
    """
    x = as_array(x)
    plane = normalize_axes(axes, len(x.shape), "hilbert2")
    if len(plane) != 2:
        raise ArgumentError(f"hilbert2: got axes={axes} for shape {x.shape}, expected two")
    sizes = None if N is None else (N, N) if np.ndim(N) == 0 else N
    return _analytic("hilbert2", x, sizes, plane, 0.0)


# ---- the trend ----------------------------------------------------------------------------------


def detrend(data: ArrayLike, /, axis: int = -1, type: str = "linear", bp: Any = 0) -> Array:
    """The signal without its mean, or without the line that fits it best.

    Args:
        data: The signal.
        axis: The axis of time.
        type: "linear", or "constant" for the mean.
        bp: Where new lines begin: numbers of elements, in any order.

    Raises:
        AxisError: There is no such axis.
        ArgumentError: `type` is something else, or a line begins beyond the end.

    >>> np.round(gt.scipy.signal.detrend(np.array([1.0, 3.0, 5.0])), 12) + 0.0
    array([0., 0., 0.])
    """
    x = as_array(data)
    axis = normalize_axis(axis, len(x.shape), "detrend")
    check_choice("detrend", ("linear", "l", "constant", "c"), type=type)
    if type in ("constant", "c"):
        return x - mean(x, axis=axis, keepdims=True)
    size = x.shape[axis]
    starts = sorted({0, *np.atleast_1d(bp).tolist()})
    if size == 0 or starts[0] < 0 or starts[-1] > size:
        raise ArgumentError(
            f"detrend: got bp={bp} for {size} elements in time, expected numbers from 0 to {size}"
        )
    x = moveaxis(x, axis, -1)
    if x.dtype.char not in "fdFD":
        x = astype(x, np.float64)
    ends = pairwise([*(start for start in starts if start < size), size])
    parts = [_straightened(part(x, start, stop)) for start, stop in ends]
    return moveaxis(concatenate(parts, -1) if len(parts) > 1 else parts[0], -1, axis)


def _straightened(x: Any) -> Any:
    """`x` without its projection on straight lines."""
    n = x.shape[-1]
    lines = np.stack([np.ones(n), np.arange(n) - (n - 1) / 2])[: min(n, 2)]
    lines /= np.linalg.norm(lines, axis=1, keepdims=True)
    lines = lines.astype(real_dtype(x.dtype))
    return x - (x @ lines.T) @ lines


# ---- other sampling rates -----------------------------------------------------------------------


def resample(
    x: ArrayLike,
    /,
    num: int,
    t: Any = None,
    axis: int = 0,
    window: Any = None,
    domain: str = "time",
) -> Any:
    """The signal with another number of samples, by its spectrum: it is taken to be periodic.

    Args:
        x: The signal, or its spectrum.
        num: How many samples.
        t: The times of the given samples; with them, those of the result are given as well.
        axis: The axis of time.
        window: The factors of the spectrum: an array in the order of `gt.fft.fft`, a
            function of the frequencies, or the name of one of SciPy's windows.
        domain: "time", or "freq" if `x` is a spectrum.

    Returns:
        The samples; with `t` a pair of them and their times.

    Raises:
        AxisError: There is no such axis.
        ShapeError: There are no samples, or the window does not fit.
        ArgumentError: `domain` is something else.

    >>> np.round(gt.scipy.signal.resample(np.array([1.0, 0.0, -1.0, 0.0]), 8)[::2], 12) + 0.0
    array([ 1.,  0., -1.,  0.])
    """
    x, num = as_array(x), operator.index(num)
    axis = normalize_axis(axis, len(x.shape), "resample")
    n = x.shape[axis]
    check_choice("resample", ("time", "freq"), domain=domain)
    if n < 1 or num < 1:
        raise ShapeError(f"resample: got {n} samples and num={num}, expected at least one of both")
    x = moveaxis(x, axis, -1)
    weights = None if window is None else _window(window, n)
    if domain == "time" and x.dtype.kind != "c":
        out = _resampled_real(x, num, weights)
    else:
        out = _resampled(fft(x) if domain == "time" else x, num, weights)
    out = moveaxis(out, -1, axis)
    if t is None:
        return out
    return out, t[0] + (t[1] - t[0]) * (n / num) * np.arange(num)


def _window(window: Any, n: int) -> Any:
    """The factors of n coefficients, in the order of a transform."""
    named = isinstance(window, str | tuple)
    window = window_of("resample", window(np.fft.fftfreq(n)) if callable(window) else window, n)
    return np.fft.fftshift(window) if named else window


def _resampled_real(x: Any, num: int, weights: Any) -> Any:
    n = x.shape[-1]
    spectrum = rfft(x)
    if weights is not None:
        # A coefficient stands for itself and its mirror image.
        mirrored = roll(flip(weights, 0), 1, 0)
        half = part((weights + mirrored) / 2, 0, n // 2 + 1)
        spectrum = spectrum * astype(half, real_dtype(spectrum.dtype), copy=False)
    m = min(num, n)
    spectrum = part(spectrum, 0, m // 2 + 1)
    factors = np.full(m // 2 + 1, num / n)
    if m % 2 == 0 and num != n:
        # The middle one becomes a pair, or a pair becomes the middle one.
        factors[-1] *= 2 if num < n else 0.5
    return irfft(spectrum * factors.astype(real_dtype(spectrum.dtype)), n=num)


def _resampled(spectrum: Any, num: int, weights: Any) -> Any:
    n = spectrum.shape[-1]
    if weights is not None:
        spectrum = spectrum * weights
    if num == n:
        return ifft(spectrum)
    m = min(num, n)
    half = m // 2
    low, high = [part(spectrum, 0, (m + 1) // 2)], [part(spectrum, n - (m - 1) // 2, n)]
    if m % 2 == 0:
        middle = part(spectrum, half, half + 1)
        if num < n:  # a pair becomes the middle one
            low.append(middle + part(spectrum, n - half, n - half + 1))
        else:  # the middle one becomes a pair
            low, high = [*low, middle / 2], [middle / 2, *high]
    if num > n:
        gap = num - sum(one.shape[-1] for one in (*low, *high))
        low.append(np.zeros((*spectrum.shape[:-1], gap), spectrum.dtype))
    return ifft(concatenate([*low, *high], -1) * (num / n))
