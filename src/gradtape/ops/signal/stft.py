"""The spectrum of a signal over time, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_choice
from gradtape.ops.fft.common import real_dtype
from gradtape.ops.fft.transforms import ifft, irfft
from gradtape.ops.gather import scatter
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to, moveaxis, reshape
from gradtape.ops.signal.parts import CONTINUATIONS, extended, longer, part
from gradtape.ops.signal.segments import amplitude_scale, frequencies_of, segments_of, spectra
from gradtape.typing import Array, ArrayLike

# Weights of windows up to this size count as 0.
_NONE = 1e-10


# ---- to a spectrum ------------------------------------------------------------------------------


def stft(
    x: ArrayLike,
    /,
    fs: float = 1.0,
    window: Any = "hann",
    nperseg: int | None = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> tuple[Any, Any, Array]:
    """The spectrum of a signal over time: Fourier transforms of segments that overlap.

    Args:
        x: The signal.
        fs: Its sampling rate.
        window: The factors of segments: the name of a window of SciPy, or an array, which
            may be a tensor.
        nperseg: How many elements a segment has; at most those of the signal.
        noverlap: By how many segments overlap; half of them if it is None.
        nfft: How many points are transformed, with zeros after the segment.
        detrend: The trend that is taken off each segment: "constant", "linear", False,
            or a function of segments along the last axis.
        return_onesided: Whether only frequencies from 0 on are given; not of complex signals.
        boundary: How the signal is continued at the ends, by half a segment: "zeros", "even",
            "odd", "constant", or None for not at all.
        padded: Whether zeros follow it, so that segments use all of it.
        axis: The axis of time.
        scaling: "spectrum" for amplitudes, "psd" for densities.

    Returns:
        The frequencies, the times of the segments, and the spectrum, with the frequencies along
        `axis` and the times along a new last axis.

    Raises:
        AxisError: There is no such axis.
        ArgumentError: An option has another value.

    >>> frequencies, times, z = gt.scipy.signal.stft(np.ones(4), nperseg=4, boundary=None)
    >>> np.abs(z[:, 0]).round(6)
    array([1. , 0.5, 0. ])
    """
    x = as_array(x)
    axis = normalize_axis(axis, len(x.shape), "stft")
    x = moveaxis(x, axis, -1)
    if nperseg == 256 and not isinstance(window, str | tuple):
        nperseg = None  # not given: the window decides
    cut = segments_of("stft", window, x.shape[-1], nperseg, noverlap, nfft)
    check_choice("stft", CONTINUATIONS, boundary=boundary)
    x = extended(x, boundary, cut.length // 2)
    if padded:
        x = longer(x, 0, -(x.shape[-1] - cut.length) % cut.step % cut.length)
    scale = amplitude_scale("stft", cut.window, fs, scaling, "psd")
    one_sided = return_onesided and x.dtype.kind != "c"
    spectrum = moveaxis(spectra(x, cut, 1 / scale, detrend, one_sided), (-1, -2), (axis, -1))
    middle = 0.0 if boundary is not None else cut.length / 2
    times = (cut.starts(x.shape[-1]) + middle) / fs
    return frequencies_of(cut, fs, one_sided), times, spectrum


# ---- and back -----------------------------------------------------------------------------------


def istft(
    Zxx: ArrayLike,
    /,
    fs: float = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> tuple[Any, Array]:
    """The signal that best fits a spectrum over time.

    Args:
        Zxx: The spectrum, as `gt.scipy.signal.stft` gives it.
        fs: The sampling rate of the signal.
        window: The window it was computed with.
        nperseg: How many elements a segment has; as many as the frequencies tell if it is None.
        noverlap: By how many segments overlap; half of them if it is None.
        nfft: How many points were transformed.
        input_onesided: Whether it has only frequencies from 0 on.
        boundary: Whether the signal was continued at the ends.
        time_axis: The axis of the segments.
        freq_axis: The axis of the frequencies.
        scaling: "spectrum" or "psd", as it was computed.

    Returns:
        The times, and the signal. Where no window reaches, it is 0.

    Raises:
        AxisError: There is no such axis.
        ArgumentError: An option has another value.
        ShapeError: There are not two different axes.

    >>> _, _, z = gt.scipy.signal.stft(np.arange(8.0), nperseg=4)
    >>> gt.scipy.signal.istft(z, nperseg=4)[1].round(12) + 0.0
    array([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    z = as_array(Zxx)
    time, frequency = (normalize_axis(a, len(z.shape), "istft") for a in (time_axis, freq_axis))
    if time == frequency:
        raise ShapeError("istft: got the same axis for times and frequencies, expected two")
    if z.dtype.kind not in "fc":
        raise DTypeError(f"istft: got {z.dtype}, expected floating or complex numbers")
    z = moveaxis(z, (time, frequency), (-2, -1))
    bins = z.shape[-1]
    usual = 2 * (bins - 1) if input_onesided else bins
    length = usual if nperseg is None else nperseg
    if nfft is None:
        nfft = length if input_onesided and length == usual + 1 else usual
    cut = segments_of("istft", window, length, length, noverlap, nfft)
    frames = part((irfft if input_onesided else ifft)(z, nfft), 0, length)
    scale = amplitude_scale("istft", cut.window, fs, scaling, "psd")
    real = real_dtype(frames.dtype)
    frames = frames * astype(cut.window * scale, real, copy=False)
    count = frames.shape[-2]
    places = cut.step * np.arange(count)[:, None] + np.arange(length)
    total = length + (count - 1) * cut.step
    weights = _added(broadcast_to(cut.window * cut.window, places.shape), places, total)
    x = _added(frames, places, total)
    x = x / astype(where(weights > _NONE, weights, 1.0), real, copy=False)
    if boundary:
        x = part(x, length // 2, total - length // 2)
    times = np.arange(x.shape[-1]) / fs
    return times, moveaxis(x, -1, time - (frequency < time)) if len(x.shape) > 1 else x


def _added(frames: Any, places: Any, size: int) -> Any:
    """Segments added up at their places."""
    lead = frames.shape[:-2]
    flat = moveaxis(reshape(frames, (*lead, places.size)), -1, 0)
    return moveaxis(scatter(flat, places.ravel(), shape=(size, *lead)), 0, -1)
