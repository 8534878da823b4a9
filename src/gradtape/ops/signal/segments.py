"""A signal cut into segments that overlap, and their Fourier transforms."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.known import values_if_known
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_choice
from gradtape.ops.exponential import sqrt
from gradtape.ops.fft.common import real_dtype
from gradtape.ops.fft.transforms import fft, rfft
from gradtape.ops.gather import take
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.signal.parts import window_of
from gradtape.ops.signal.spectral import detrend as without_trend
from gradtape.typing import Array


class Segments(NamedTuple):
    """How a signal is cut: the window, the step from one segment to the next, the transform."""

    window: Any
    step: int
    points: int

    @property
    def length(self) -> int:
        """How many elements a segment has."""
        return self.window.shape[0]  # type: ignore[no-any-return]

    def starts(self, size: int) -> Any:
        """Where segments begin in a signal of some size."""
        return self.step * np.arange(max((size - self.length) // self.step + 1, 0))


def segments_of(
    name: str, window: Any, size: int, nperseg: Any, noverlap: Any, nfft: Any, overlap: int = 2
) -> Segments:
    """How a signal of some size is to be cut.

    Args:
        name: The function, for errors.
        window: The name of a window of SciPy, or an array, which may be a tensor.
        size: How long the signal is; segments with a named window are no longer.
        nperseg: How long segments are; None for 256, or the size of the window.
        noverlap: By how much they overlap; None for a part of them.
        nfft: How many points are transformed; None for as many.
        overlap: The fraction to use then: a half, an eighth.
    """
    if isinstance(window, str | tuple):
        nperseg = min(256 if nperseg is None else operator.index(nperseg), size)
        window = window_of(name, window, nperseg) if nperseg > 0 else np.zeros(0)
    else:
        window = as_array(window)
        nperseg = window.shape[0] if nperseg is None and len(window.shape) == 1 else nperseg
    noverlap = nperseg // overlap if noverlap is None else noverlap
    nfft = nperseg if nfft is None else nfft
    too_long = nperseg > size
    if window.shape != (nperseg,) or too_long or not 1 <= nperseg <= nfft or noverlap >= nperseg:
        raise ArgumentError(
            f"{name}: got a window of shape {window.shape}, nperseg={nperseg}, "
            f"noverlap={noverlap}, nfft={nfft} for {size} elements in time, expected a window of "
            "nperseg elements, at most those of the signal, an overlap that is less, and a "
            "transform that is not"
        )
    return Segments(window, nperseg - noverlap, nfft)


def check_above_0(**given: Any) -> None:
    """Raise for an option, such as a sampling rate, that is not one number above 0."""
    for option, value in given.items():
        number = as_array(value)
        known = values_if_known(number)
        if number.shape or number.dtype.kind == "c" or (known is not None and not known > 0):
            raise ArgumentError(f"got {option}={value!r}, expected one number above 0")


def amplitude_scale(name: str, window: Any, fs: Any, scaling: str, density: str) -> Any:
    """The divisor that turns spectra into amplitudes ("spectrum"), or into roots of densities.

    `density` is the value of `scaling` that asks for these.
    """
    check_choice(name, (density, "spectrum"), scaling=scaling)
    check_above_0(fs=fs)
    return sqrt(fs * sum_of(window * window)) if scaling == density else sum_of(window)


def spectra(x: Array, cut: Segments, factor: Any, detrend: Any, one_sided: bool) -> Array:
    """The transforms of segments along the last axis: (…, segments, frequencies).

    Args:
        x: The signal.
        cut: How it is cut.
        factor: The factor of the window.
        detrend: The trend to subtract from segments: "constant", "linear", False, or a function.
        one_sided: Whether to return only frequencies from 0 on.
    """
    starts = cut.starts(x.shape[-1])
    frames = take(x, starts[:, None] + np.arange(cut.length), axis=-1)
    if callable(detrend):
        frames = detrend(frames)
    elif detrend:
        frames = without_trend(frames, type=detrend)
    dtype = frames.dtype if frames.dtype.kind in "fc" else np.dtype(np.float64)
    frames = frames * astype(cut.window * factor, real_dtype(dtype), copy=False)
    return (rfft if one_sided else fft)(frames, cut.points)


def frequencies_of(cut: Segments, fs: Any, one_sided: bool) -> Any:
    """The frequencies of a transform of segments."""
    return (np.fft.rfftfreq if one_sided else np.fft.fftfreq)(cut.points, 1 / fs)
