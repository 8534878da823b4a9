"""Estimates of spectral densities from segments of a signal."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.ops.arguments import as_array
from gradtape.ops.arithmetic import absolute
from gradtape.ops.arrays.complexes import angle
from gradtape.ops.arrays.differences import unwrap
from gradtape.ops.arrays.median import median
from gradtape.ops.cast import conj_if_complex, imag, real
from gradtape.ops.checks import check_choice
from gradtape.ops.reduce import mean
from gradtape.ops.shape import moveaxis
from gradtape.ops.shared_options import options
from gradtape.ops.signal.parts import longer, part, time_last, window_of
from gradtape.ops.signal.segments import (
    Segments,
    amplitude_scale,
    frequencies_of,
    segments_of,
    spectra,
)
from gradtape.ops.signal.spectral import one_sided_weights
from gradtape.typing import Array, ArrayLike

# ---- what they share ----------------------------------------------------------------------------


def _products(
    name: str, x: Array, y: Array, cut: Segments, fs: Any, detrend: Any, one_sided: bool,
    scaling: str,
) -> Array:  # fmt: skip
    """conj(X)·Y of the transforms of segments: (…, segments, frequencies)."""
    factor = 1 / amplitude_scale(name, cut.window, fs, scaling, "density")
    first = spectra(x, cut, factor, detrend, one_sided)
    second = first if y is x else spectra(y, cut, factor, detrend, one_sided)
    out = conj_if_complex(first) * second
    out = real(out) if y is x else out
    if one_sided:
        # Frequencies between the ends count for their mirror images as well.
        out = out * one_sided_weights(cut.points, out.dtype, 1.0)[: cut.points // 2 + 1]
    return out


def _averaged(name: str, out: Array, average: str) -> Array:
    """The mean or the median over segments, the median without its bias."""
    check_choice(name, ("mean", "median"), average=average)
    if average == "mean" or out.shape[-2] == 1:
        return mean(out, axis=-2)
    count = out.shape[-2]
    even = 2.0 * np.arange(1, (count - 1) // 2 + 1)
    # The expected median of squares of normal numbers, as a fraction of their mean.
    bias = float(1 + np.sum(1 / (even + 1) - 1 / even))
    if out.dtype.kind != "c":
        return median(out, axis=-2) / bias
    return (median(real(out), axis=-2) + 1j * median(imag(out), axis=-2)) / bias


def _cross_density(
    name: str, x: ArrayLike, y: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any,
    detrend: Any, return_onesided: bool, scaling: str, axis: int, average: str,
) -> tuple[Any, Array]:  # fmt: skip
    """Frequencies, and the spectral density of two signals or, with y=None, of one."""
    x, _ = time_last(name, x, axis)
    if y is None:
        y = x
    else:
        y, _ = time_last(name, y, axis)
        size = max(x.shape[-1], y.shape[-1])
        x, y = (longer(one, 0, size - one.shape[-1]) for one in (x, y))
    cut = segments_of(name, window, x.shape[-1], nperseg, noverlap, nfft)
    one_sided = return_onesided and x.dtype.kind != "c" and y.dtype.kind != "c"
    out = _products(name, x, y, cut, fs, detrend, one_sided, scaling)
    return frequencies_of(cut, fs, one_sided), moveaxis(_averaged(name, out, average), -1, axis)


# ---- public functions ---------------------------------------------------------------------------


_DENSITIES = {
    "x": "The signal.",
    "fs": "The sampling rate.",
    "window": "What segments are multiplied by: the name of a window of SciPy, or an array, which "
    "may be a tensor.",
    "nperseg": "How many elements a segment has: 256, or those of the window, if it is None.",
    "noverlap": "By how many segments overlap; half of them if it is None.",
    "nfft": "How many points are transformed, with zeros after the segment.",
    "detrend": 'What is taken off each segment: "constant", "linear", False, or a function of '
    "segments along the last axis.",
    "return_onesided": "Whether only frequencies from 0 on are given; not of complex signals.",
    "scaling": '"density" for power per frequency, "spectrum" for power.',
    "axis": "The axis of time.",
    "average": '"mean" or "median" over segments.',
}
_ERRORS = {
    "AxisError": "There is no such axis.",
    "ArgumentError": "An option has another value, or segments do not fit.",
}


@options(_DENSITIES, raises=_ERRORS)
def welch(
    x: ArrayLike,
    /,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Array]:
    """The power spectral density of a signal, averaged over segments (Welch's method).

    Returns:
        The frequencies, and the density.

    >>> x = np.cos(np.pi / 2 * np.arange(8))
    >>> gt.scipy.signal.welch(x, window="boxcar", nperseg=4)[1].round(12)
    array([0., 2., 0.])
    """
    options = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling)
    return _cross_density("welch", x, None, *options, axis, average)


@options(_DENSITIES, raises=_ERRORS)
def csd(
    x: ArrayLike,
    y: ArrayLike,
    /,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Array]:
    """The cross power spectral density of two signals, averaged over segments.

    Args:
        x: A signal, whose transform is conjugated.
        y: Another one; the shorter one is continued by zeros.

    Returns:
        The frequencies, and the density, which is complex.

    >>> x = np.cos(np.pi / 2 * np.arange(8))
    >>> gt.scipy.signal.csd(x, -x, window="boxcar", nperseg=4)[1].real.round(12) + 0.0
    array([ 0., -2.,  0.])
    """
    y = None if y is x else as_array(y)
    options = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling)
    return _cross_density("csd", x, y, *options, axis, average)


@options(_DENSITIES, raises=_ERRORS)
def periodogram(
    x: ArrayLike,
    /,
    fs: Any = 1.0,
    window: Any = "boxcar",
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
) -> tuple[Any, Array]:
    """The power spectral density of a signal by the transform of all of it.

    Args:
        window: The factors of its elements, as for `gt.scipy.signal.welch`; None for no window.
        nfft: How many points are transformed: the signal is cut off, or continued by zeros.
        detrend: The trend to subtract: "constant", "linear", False, or a function.

    Returns:
        The frequencies, and the density.

    >>> gt.scipy.signal.periodogram(np.array([1.0, 0.0, -1.0, 0.0]))[1]
    array([0., 2., 0.])
    """
    x, at = time_last("periodogram", x, axis)
    size = x.shape[-1] if nfft is None else min(nfft, x.shape[-1])
    x = moveaxis(part(x, 0, size), -1, at)
    window = window_of("periodogram", "boxcar" if window is None else window, size)
    options = (fs, window, size, 0, nfft, detrend, return_onesided, scaling)
    return _cross_density("periodogram", x, None, *options, axis, "mean")


@options(_DENSITIES, raises=_ERRORS)
def coherence(
    x: ArrayLike,
    y: ArrayLike,
    /,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    axis: int = -1,
) -> tuple[Any, Array]:
    """How well one signal predicts another at each frequency: |Pxy|²/(Pxx·Pyy), from 0 to 1.

    Args:
        x: A signal.
        y: Another one.

    Returns:
        The frequencies, and the coherence.

    >>> x = np.array([1.0, 3.0, 2.0, -1.0, 0.0, 1.0, 5.0, 2.0])
    >>> gt.scipy.signal.coherence(x, 2 * x, nperseg=4)[1].round(12)
    array([1., 1., 1.])
    """
    options = (fs, window, nperseg, noverlap, nfft, detrend, True, "density", axis, "mean")
    frequencies, across = _cross_density("coherence", x, as_array(y), *options)
    own, other = (_cross_density("coherence", one, None, *options)[1] for one in (x, y))
    return frequencies, absolute(across) ** 2 / own / other


@options(_DENSITIES, raises=_ERRORS)
def spectrogram(
    x: ArrayLike,
    /,
    fs: Any = 1.0,
    window: Any = ("tukey", 0.25),
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    mode: str = "psd",
) -> tuple[Any, Any, Array]:
    """The power spectral density of a signal over time.

    Args:
        noverlap: By how many segments overlap; an eighth of them if it is None.
        mode: "psd" for densities, "complex" for the transforms themselves, or their "magnitude",
            "angle", or "phase", the angle without jumps from one frequency to the next.

    Returns:
        The frequencies, the times of the segments, and the result, with the frequencies along
        `axis` and the times along a new last axis.

    >>> gt.scipy.signal.spectrogram(np.ones(8), window="boxcar", nperseg=4, detrend=False)[2]
    array([[4., 4.],
           [0., 0.],
           [0., 0.]])
    """
    name = "spectrogram"
    check_choice(name, ("psd", "complex", "magnitude", "angle", "phase"), mode=mode)
    x, at = time_last(name, x, axis)
    cut = segments_of(name, window, x.shape[-1], nperseg, noverlap, nfft, overlap=8)
    one_sided = return_onesided and x.dtype.kind != "c"
    if mode == "psd":
        out = _products(name, x, x, cut, fs, detrend, one_sided, scaling)
    else:
        factor = 1 / amplitude_scale(name, cut.window, fs, scaling, "density")
        out = spectra(x, cut, factor, detrend, one_sided)
        if mode == "magnitude":
            out = absolute(out)
        elif mode != "complex":
            out = angle(out)
        if mode == "phase":
            out = unwrap(out, axis=-1)
    times = (cut.starts(x.shape[-1]) + cut.length / 2) / fs
    return frequencies_of(cut, fs, one_sided), times, moveaxis(out, (-1, -2), (at, -1))
