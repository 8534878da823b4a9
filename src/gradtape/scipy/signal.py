"""Filters and convolutions, under the names of `scipy.signal`."""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.ops.ndimage.medians import (
    medfilt as medfilt,
    medfilt2d as medfilt2d,
    order_filter as order_filter,
    wiener as wiener,
)
from gradtape.ops.signal.chirp_z import czt as czt, zoom_fft as zoom_fft
from gradtape.ops.signal.convolution import (
    convolve as convolve,
    convolve2d as convolve2d,
    correlate as correlate,
    correlate2d as correlate2d,
    fftconvolve as fftconvolve,
    oaconvolve as oaconvolve,
)
from gradtape.ops.signal.density import (
    coherence as coherence,
    csd as csd,
    periodogram as periodogram,
    spectrogram as spectrogram,
    welch as welch,
)
from gradtape.ops.signal.design import (
    bessel as bessel,
    butter as butter,
    cheby1 as cheby1,
    cheby2 as cheby2,
    ellip as ellip,
    iirnotch as iirnotch,
    iirpeak as iirpeak,
)
from gradtape.ops.signal.filters import (
    lfilter as lfilter,
    lfilter_zi as lfilter_zi,
    lfiltic as lfiltic,
    sosfilt as sosfilt,
    sosfilt_zi as sosfilt_zi,
)
from gradtape.ops.signal.fir import firwin as firwin
from gradtape.ops.signal.resampling import (
    decimate as decimate,
    resample_poly as resample_poly,
    savgol_filter as savgol_filter,
    upfirdn as upfirdn,
)
from gradtape.ops.signal.response import (
    freqs as freqs,
    freqs_zpk as freqs_zpk,
    freqz as freqz,
    freqz_sos as freqz_sos,
    freqz_zpk as freqz_zpk,
    group_delay as group_delay,
    sosfreqz as sosfreqz,
)
from gradtape.ops.signal.spectral import (
    detrend as detrend,
    hilbert as hilbert,
    hilbert2 as hilbert2,
    resample as resample,
)
from gradtape.ops.signal.stft import istft as istft, stft as stft
from gradtape.ops.signal.uneven import lombscargle as lombscargle
from gradtape.ops.signal.zero_phase import filtfilt as filtfilt, sosfiltfilt as sosfiltfilt
from gradtape.ops.signal.zpk import (
    bilinear_zpk as bilinear_zpk,
    lp2bp_zpk as lp2bp_zpk,
    lp2bs_zpk as lp2bs_zpk,
    lp2hp_zpk as lp2hp_zpk,
    lp2lp_zpk as lp2lp_zpk,
    sos2tf as sos2tf,
    zpk2sos as zpk2sos,
    zpk2tf as zpk2tf,
)

_make_scipy(globals())
