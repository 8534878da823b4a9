"""Filters and convolutions, under the names of `scipy.signal`."""

from gradtape.help.public import make_public as _make_public
from gradtape.ops.ndimage.medians import medfilt, medfilt2d, order_filter, wiener
from gradtape.ops.signal.chirp_z import czt, zoom_fft
from gradtape.ops.signal.convolution import (
    convolve,
    convolve2d,
    correlate,
    correlate2d,
    fftconvolve,
    oaconvolve,
)
from gradtape.ops.signal.density import coherence, csd, periodogram, spectrogram, welch
from gradtape.ops.signal.design import bessel, butter, cheby1, cheby2, ellip, iirnotch, iirpeak
from gradtape.ops.signal.filters import lfilter, lfilter_zi, lfiltic, sosfilt, sosfilt_zi
from gradtape.ops.signal.fir import firwin
from gradtape.ops.signal.resampling import decimate, resample_poly, savgol_filter, upfirdn
from gradtape.ops.signal.response import (
    freqs,
    freqs_zpk,
    freqz,
    freqz_sos,
    freqz_zpk,
    group_delay,
    sosfreqz,
)
from gradtape.ops.signal.spectral import detrend, hilbert, hilbert2, resample
from gradtape.ops.signal.stft import istft, stft
from gradtape.ops.signal.uneven import lombscargle
from gradtape.ops.signal.zero_phase import filtfilt, sosfiltfilt
from gradtape.ops.signal.zpk import (
    bilinear_zpk,
    lp2bp_zpk,
    lp2bs_zpk,
    lp2hp_zpk,
    lp2lp_zpk,
    sos2tf,
    zpk2sos,
    zpk2tf,
)

__all__ = [
    "convolve",
    "correlate",
    "fftconvolve",
    "oaconvolve",
    "convolve2d",
    "correlate2d",
    "lfilter",
    "lfilter_zi",
    "lfiltic",
    "sosfilt",
    "sosfilt_zi",
    "filtfilt",
    "sosfiltfilt",
    "detrend",
    "hilbert",
    "hilbert2",
    "resample",
    "resample_poly",
    "decimate",
    "upfirdn",
    "savgol_filter",
    "stft",
    "istft",
    "medfilt",
    "medfilt2d",
    "order_filter",
    "wiener",
    "welch",
    "csd",
    "periodogram",
    "coherence",
    "spectrogram",
    "lombscargle",
    "czt",
    "zoom_fft",
    "firwin",
    "butter",
    "cheby1",
    "cheby2",
    "ellip",
    "bessel",
    "iirnotch",
    "iirpeak",
    "lp2lp_zpk",
    "lp2hp_zpk",
    "lp2bp_zpk",
    "lp2bs_zpk",
    "bilinear_zpk",
    "zpk2tf",
    "zpk2sos",
    "sos2tf",
    "freqz",
    "freqz_zpk",
    "freqz_sos",
    "sosfreqz",
    "freqs",
    "freqs_zpk",
    "group_delay",
]

_make_public(globals())
