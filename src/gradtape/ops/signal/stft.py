"""The spectrum of a signal over time, and back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradtape.core.define import answers, functions
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.fft.fourier import fft, ifft
from gradtape.ops.fft.real import irfft, rfft
from gradtape.ops.gather import scatter, take
from gradtape.ops.join import concatenate
from gradtape.ops.pad import pad
from gradtape.ops.rearrange import flip
from gradtape.ops.shape import moveaxis, reshape
from gradtape.ops.signal.spectral import detrend as without_trend
from gradtape.typing import Array, ArrayLike

_BOUNDARIES = ("zeros", "even", "odd", "constant", None)


class _Segments(NamedTuple):
    """How a signal is cut: the window, the step from one segment to the next, the transform."""

    window: Any
    step: int
    points: int

    @property
    def length(self) -> int:
        return len(self.window)


def _segments(
    name: str, window: Any, nperseg: int, noverlap: int | None, nfft: int | None
) -> _Segments:
    if isinstance(window, str | tuple):
        import scipy.signal

        window = scipy.signal.get_window(window, nperseg)
    window = np.asarray(window)
    noverlap = nperseg // 2 if noverlap is None else noverlap
    nfft = nperseg if nfft is None else nfft
    if window.shape != (nperseg,) or noverlap >= nperseg or nfft < nperseg or nperseg < 1:
        raise ArgumentError(
            f"{name}: came a window of shape {window.shape}, nperseg={nperseg}, "
            f"noverlap={noverlap}, nfft={nfft}; needed a window of nperseg elements, an overlap "
            "that is less, and a transform that is not"
        )
    return _Segments(window, nperseg - noverlap, nfft)


def _scale(name: str, scaling: str, window: Any, fs: float) -> float:
    if scaling not in ("spectrum", "psd"):
        raise ArgumentError(f'{name}: came scaling={scaling!r}; needed "spectrum" or "psd"')
    if scaling == "spectrum":
        return float(window.sum())
    return float(np.sqrt(fs * (window * window).sum()))


def _real(dtype: Any) -> Any:
    return np.empty(0, dtype).real.dtype


# ---- to a spectrum ------------------------------------------------------------------------------


def _surrounded(x: Any, boundary: str | None, width: int) -> Any:
    """The signal continued beyond both ends of its last axis."""
    if boundary not in _BOUNDARIES:
        raise ArgumentError(f"stft: came boundary={boundary!r}; needed one of {_BOUNDARIES}")
    if boundary is None or width == 0:
        return x
    widths = [(0, 0)] * (len(x.shape) - 1) + [(width, width)]
    if boundary == "zeros":
        return pad(x, widths)
    if boundary == "constant":
        return pad(x, widths, mode="edge")
    if width >= x.shape[-1]:
        raise ShapeError(
            f"stft: came {x.shape[-1]} elements in time; needed more than half a segment, which is "
            f"{width}"
        )
    if boundary == "even":
        return pad(x, widths, mode="reflect")
    part, size = functions["getitem"], x.shape[-1]
    first, last = (part(x, (Ellipsis, slice(i, i + 1))) for i in (0, size - 1))
    before = 2 * first - flip(part(x, (Ellipsis, slice(1, width + 1))), -1)
    after = 2 * last - flip(part(x, (Ellipsis, slice(size - 1 - width, size - 1))), -1)
    return concatenate([before, x, after], -1)


@answers("scipy.signal.stft")
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
        window: What segments are multiplied by: the name of a window of SciPy, or an array.
        nperseg: How many elements a segment has.
        noverlap: By how many segments overlap; half of them if it is None.
        nfft: How many points are transformed, with zeros after the segment.
        detrend: The trend that is taken off each segment: "constant", "linear", or False.
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

    >>> frequencies, times, z = gt.signal.stft(np.ones(4), nperseg=4, boundary=None)
    >>> np.abs(z[:, 0]).round(6)
    array([1. , 0.5, 0. ])
    """
    x = as_array(x)
    axis = normalize_axis(axis, len(x.shape), "stft")
    x = moveaxis(x, axis, -1)
    size = x.shape[-1]
    if hasattr(window, "shape"):
        nperseg = window.shape[0]
    cut = _segments("stft", window, min(256 if nperseg is None else nperseg, size), noverlap, nfft)
    x = _surrounded(x, boundary, cut.length // 2)
    if padded:
        more = -(x.shape[-1] - cut.length) % cut.step % cut.length
        x = pad(x, [(0, 0)] * (len(x.shape) - 1) + [(0, more)])
    count = max((x.shape[-1] - cut.length) // cut.step + 1, 0)
    starts = cut.step * np.arange(count)
    frames = take(x, starts[:, None] + np.arange(cut.length), axis=-1)
    if detrend:
        frames = without_trend(frames, type=detrend)
    dtype = frames.dtype if frames.dtype.kind in "fc" else np.dtype(np.float64)
    scale = _scale("stft", scaling, cut.window, fs)
    frames = frames * (cut.window / scale).astype(_real(dtype))
    one_sided = return_onesided and dtype.kind != "c"
    spectrum = (rfft if one_sided else fft)(frames, cut.points)
    frequencies = (np.fft.rfftfreq if one_sided else np.fft.fftfreq)(cut.points, 1 / fs)
    middle = 0.0 if boundary is not None else cut.length / 2
    spectrum = moveaxis(spectrum, (-1, -2), (axis, -1))
    return frequencies, (starts + middle) / fs, spectrum


# ---- and back -----------------------------------------------------------------------------------


@answers("scipy.signal.istft")
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
    """The signal that has a spectrum over time, of those the one that fits best.

    Args:
        Zxx: The spectrum, as `gt.signal.stft` gives it.
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

    >>> _, _, z = gt.signal.stft(np.arange(8.0), nperseg=4)
    >>> gt.signal.istft(z, nperseg=4)[1].round(12) + 0.0
    array([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    z = as_array(Zxx)
    time, frequency = (normalize_axis(a, len(z.shape), "istft") for a in (time_axis, freq_axis))
    if time == frequency:
        raise ShapeError("istft: came the same axis for times and frequencies; needed two")
    if z.dtype.kind not in "fc":
        raise DTypeError(f"istft: came {z.dtype}; needed floating or complex numbers")
    z = moveaxis(z, (time, frequency), (-2, -1))
    bins = z.shape[-1]
    usual = 2 * (bins - 1) if input_onesided else bins
    length = usual if nperseg is None else nperseg
    if nfft is None:
        nfft = length if input_onesided and length == usual + 1 else usual
    cut = _segments("istft", window, length, noverlap, nfft)
    frames = (irfft if input_onesided else ifft)(z, nfft)
    frames = functions["getitem"](frames, (Ellipsis, slice(0, length)))
    real = _real(frames.dtype)
    scale = _scale("istft", scaling, cut.window, fs)
    frames = frames * (cut.window * scale).astype(real)
    count = frames.shape[-2]
    places = cut.step * np.arange(count)[:, None] + np.arange(length)
    total = length + (count - 1) * cut.step
    weights = np.zeros(total)
    np.add.at(weights, places, np.broadcast_to(cut.window**2, places.shape))
    x = _added(frames, places, total)
    x = x / np.where(weights > 1e-10, weights, 1.0).astype(real)
    if boundary:
        x = functions["getitem"](x, (Ellipsis, slice(length // 2, total - length // 2)))
    times = np.arange(x.shape[-1]) / fs
    return times, moveaxis(x, -1, time - (frequency < time)) if len(x.shape) > 1 else x


def _added(frames: Any, places: Any, size: int) -> Any:
    """Segments added up where they belong."""
    lead = frames.shape[:-2]
    flat = moveaxis(reshape(frames, (*lead, places.size)), -1, 0)
    return moveaxis(scatter(flat, places.ravel(), shape=(size, *lead)), 0, -1)
