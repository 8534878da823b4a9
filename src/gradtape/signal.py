"""Filters and convolutions, under the names of `scipy.signal`."""

from gradtape.ops.signal.convolution import (
    convolve,
    convolve2d,
    correlate,
    correlate2d,
    fftconvolve,
    oaconvolve,
)
from gradtape.ops.signal.filters import (
    filtfilt,
    lfilter,
    lfilter_zi,
    sosfilt,
    sosfilt_zi,
    sosfiltfilt,
)
from gradtape.ops.signal.resampling import resample_poly, savgol_filter, upfirdn
from gradtape.ops.signal.spectral import detrend, hilbert, resample
from gradtape.ops.signal.stft import istft, stft

__all__ = [
    "convolve",
    "correlate",
    "fftconvolve",
    "oaconvolve",
    "convolve2d",
    "correlate2d",
    "lfilter",
    "lfilter_zi",
    "sosfilt",
    "sosfilt_zi",
    "filtfilt",
    "sosfiltfilt",
    "detrend",
    "hilbert",
    "resample",
    "resample_poly",
    "upfirdn",
    "savgol_filter",
    "stft",
    "istft",
]
