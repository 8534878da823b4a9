"""Filters designed by their pass bands, differentiable in their frequencies."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.ops.arguments import as_array, check_real
from gradtape.ops.cast import astype, real
from gradtape.ops.checks import check_choice, check_least
from gradtape.ops.exponential import sqrt
from gradtape.ops.index import getitem
from gradtape.ops.join import stack
from gradtape.ops.product import prod
from gradtape.ops.shape import reshape
from gradtape.ops.shared_options import options
from gradtape.ops.signal.segments import check_above_0
from gradtape.ops.signal.zpk import (
    Zpk,
    bilinear_zpk,
    check_rising,
    in_pairs,
    lp2bp_zpk,
    lp2bs_zpk,
    lp2hp_zpk,
    lp2lp_zpk,
    zpk2sos,
)
from gradtape.ops.trigonometric import arcsinh, cos, cosh, sinh, tan
from gradtape.typing import Array, ArrayLike

_BANDS = {
    "low": ("lowpass", "low", "lp", "l"),
    "high": ("highpass", "high", "hp", "h"),
    "pass": ("bandpass", "band", "pass", "bp"),
    "stop": ("bandstop", "bands", "stop", "bs"),
}
_KINDS = {name: kind for kind, names in _BANDS.items() for name in names}


# ---- low-pass filters at frequency 1 ------------------------------------------------------------


def _angles(n: int) -> Any:
    return np.pi * np.arange(1 - n, n, 2) / (2 * n)


def _butterworth(n: int) -> Zpk:
    return np.zeros(0), -np.exp(1j * _angles(n)), 1.0


def _chebyshev(n: int, ripple: Any) -> Zpk:
    """The Chebyshev filter with ripples, in decibels, in its pass band."""
    check_real("cheby1", rp=ripple)
    check_above_0(rp=ripple)
    if n == 0:
        return np.zeros(0), np.zeros(0), 10 ** (-ripple / 20)
    square = 10 ** (0.1 * as_array(ripple)) - 1.0
    mu = arcsinh(1 / sqrt(square)) / n
    # −sinh(μ + iθ), in parts
    poles = -(sinh(mu) * np.cos(_angles(n)) + 1j * (cosh(mu) * np.sin(_angles(n))))
    gain = real(prod(-poles))
    return np.zeros(0), poles, gain if n % 2 else gain / sqrt(1 + square)


def _inverse_chebyshev(n: int, attenuation: Any) -> Zpk:
    """The Chebyshev filter with ripples in its stop band, at an attenuation in decibels."""
    check_real("cheby2", rs=attenuation)
    check_above_0(rs=attenuation)
    if n == 0:
        return np.zeros(0), np.zeros(0), 1.0
    mu = arcsinh(sqrt(10 ** (0.1 * as_array(attenuation)) - 1.0)) / n
    angles = _angles(n)
    zeros = 1j / np.sin(angles[np.arange(1 - n, n, 2) != 0])
    poles = 1 / -(sinh(mu) * np.cos(angles) + 1j * (cosh(mu) * np.sin(angles)))
    return zeros, poles, real(prod(-poles) / np.prod(-zeros))


def _of_scipy(name: str, *args: Any) -> Zpk:
    """A filter whose poles SciPy finds by iteration, from constants."""
    import scipy.signal

    if any(isinstance(arg, Tensor) for arg in args):
        raise UnsupportedError(
            "got a tensor as ripple, expected a number; the frequency may be a tensor"
        )
    z, p, k = getattr(scipy.signal, name)(*args)
    return z, p, k


_elliptic = functools.partial(_of_scipy, "ellipap")
_bessel = functools.partial(_of_scipy, "besselap")


# ---- any filter ---------------------------------------------------------------------------------


def _frequencies(name: str, Wn: ArrayLike, count: int, analog: bool, fs: Any) -> list[Any]:
    """Edges as frequencies of an analog filter."""
    edges = as_array(Wn)
    if tuple(edges.shape) not in ((count,), () if count == 1 else (count,)):
        raise ShapeError(f"{name}: got Wn of shape {edges.shape}, expected {count} of them")
    if fs is not None:
        if analog:
            raise ArgumentError(f"{name}: got fs= for an analog filter; it goes with digital ones")
        check_above_0(fs=fs)
        edges = 2 * edges / fs
    check_rising(name, edges, math.inf if analog else 1.0, Wn=Wn)
    edges = reshape(astype(edges, np.float64, copy=False), (count,))
    edges = edges if analog else 4 * tan(np.pi / 2 * edges)
    return [getitem(edges, i) for i in range(count)]


def _designed(
    name: str, prototype: Callable[..., Zpk], given: tuple[Any, ...], Wn: ArrayLike, btype: str,
    analog: bool, output: str, fs: Any,
) -> Any:  # fmt: skip
    """A low-pass filter turned into the type and form asked for; `given` begins with its order."""
    order = operator.index(given[0])
    check_least(name, 0, N=order)
    kind = _KINDS.get(btype.lower())
    if kind is None:
        raise ArgumentError(f"{name}: got btype={btype!r}, expected low, high, band or bandstop")
    check_choice(name, ("ba", "zpk", "sos"), output=output)
    system = prototype(order, *given[1:])
    if kind in ("low", "high"):
        (edge,) = _frequencies(name, Wn, 1, analog, fs)
        system = (lp2lp_zpk if kind == "low" else lp2hp_zpk)(*system, edge)
    else:
        low, high = _frequencies(name, Wn, 2, analog, fs)
        band = (sqrt(low * high), high - low)
        system = (lp2bp_zpk if kind == "pass" else lp2bs_zpk)(*system, *band)
    if not analog:
        system = bilinear_zpk(*system, fs=2.0)
    if output == "zpk":
        return system
    return in_pairs(*system) if output == "ba" else zpk2sos(*system, analog=analog)


_DESIGNS = {
    "N": "Its order.",
    "Wn": "Where it ends to let pass, which may be a tensor: one frequency, or two for a band. "
    "With 1 for half of the sampling rate, unless `fs` is given or it is analog.",
    "btype": '"low", "high", "band" or "bandstop".',
    "analog": "Whether it is an analog filter.",
    "output": '"ba" for coefficients b and a, "zpk" for zeros, poles and gain, "sos" for sections '
    "of second order, best for filtering.",
    "fs": "The sampling rate.",
}
_ERRORS = {
    "ArgumentError": "An option has another value, or a frequency is out of range.",
    "ShapeError": "There are not as many frequencies.",
}


@options(_DESIGNS, raises=_ERRORS)
def butter(
    N: int,
    Wn: ArrayLike,
    /,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    fs: Any = None,
) -> Any:
    """Butterworth's filter, with the flattest pass band; differentiable in the frequencies.

    >>> b, a = gt.scipy.signal.butter(1, 0.5)
    >>> b, np.round(a, 12) + 0.0
    (array([0.5, 0.5]), array([1., 0.]))
    """
    return _designed("butter", _butterworth, (N,), Wn, btype, analog, output, fs)


@options(_DESIGNS, raises=_ERRORS)
def cheby1(
    N: int,
    rp: Any,
    Wn: ArrayLike,
    /,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    fs: Any = None,
) -> Any:
    """Chebyshev's filter of the first kind, with ripples in the pass band.

    Args:
        rp: The height of the ripples in decibels, which may be a tensor.

    >>> gt.scipy.signal.cheby1(2, 1.0, 0.3)[0].round(4)
    array([0.1382, 0.2765, 0.1382])
    """
    return _designed("cheby1", _chebyshev, (N, rp), Wn, btype, analog, output, fs)


@options(_DESIGNS, raises=_ERRORS)
def cheby2(
    N: int,
    rs: Any,
    Wn: ArrayLike,
    /,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    fs: Any = None,
) -> Any:
    """Chebyshev's filter of the second kind, with ripples in the stop band.

    Args:
        rs: The attenuation there in decibels, which may be a tensor.
        Wn: Where that begins, in units as for `gt.scipy.signal.butter`.

    >>> gt.scipy.signal.cheby2(2, 20.0, 0.3)[0].round(4)
    array([ 0.1119, -0.0708,  0.1119])
    """
    return _designed("cheby2", _inverse_chebyshev, (N, rs), Wn, btype, analog, output, fs)


@options(_DESIGNS, raises=_ERRORS)
def ellip(
    N: int,
    rp: float,
    rs: float,
    Wn: ArrayLike,
    /,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    fs: Any = None,
) -> Any:
    """Cauer's elliptic filter, with ripples everywhere; differentiable in the frequencies.

    Args:
        rp: The height of the ripples in the pass band in decibels, a number.
        rs: The attenuation elsewhere in decibels, a number.

    Raises:
        UnsupportedError: `rp` or `rs` is a tensor.

    >>> gt.scipy.signal.ellip(2, 1.0, 20.0, 0.3)[0].round(4)
    array([0.2011, 0.1829, 0.2011])
    """
    return _designed("ellip", _elliptic, (N, rp, rs), Wn, btype, analog, output, fs)


@options(_DESIGNS, raises=_ERRORS)
def bessel(
    N: int,
    Wn: ArrayLike,
    /,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    norm: str = "phase",
    fs: Any = None,
) -> Any:
    """Bessel's filter, with the same delay throughout the pass band; differentiable.

    Args:
        Wn: Its frequency, in units as for `gt.scipy.signal.butter`.
        norm: What happens at that frequency: "phase", "delay" or "mag".

    >>> gt.scipy.signal.bessel(2, 0.3)[0].round(4)
    array([0.1212, 0.2424, 0.1212])
    """
    return _designed("bessel", _bessel, (N, norm), Wn, btype, analog, output, fs)


# ---- one frequency ------------------------------------------------------------------------------


def _notch(name: str, w0: Any, Q: Any, fs: Any, peak: bool) -> tuple[Array, Array]:
    check_above_0(fs=fs)
    check_real(name, w0=w0, Q=Q)
    frequency = np.pi * (2 * w0 / fs)
    check_rising(name, as_array(frequency), np.pi, w0=w0)
    half = tan(frequency / Q / 2)  # what is left at the edges is 3 decibels less
    gain, middle = 1 / (1 + half), cos(as_array(frequency))
    a = stack([1 + 0 * gain, -2 * gain * middle, 2 * gain - 1])
    if peak:
        return stack([1 - gain, 0 * gain, gain - 1]), a
    return stack([gain, -2 * gain * middle, gain]), a


def iirnotch(w0: Any, Q: Any, /, fs: Any = 2.0) -> tuple[Array, Array]:
    """The coefficients of a filter that removes one frequency.

    Args:
        w0: The frequency, which may be a tensor.
        Q: The frequency over the width of the band that is removed, likewise.
        fs: The sampling rate, likewise.

    Returns:
        The coefficients b and a.

    >>> gt.scipy.signal.iirnotch(0.5, 1.0)[0].round(6) + 0.0
    array([0.5, 0. , 0.5])
    """
    return _notch("iirnotch", w0, Q, fs, peak=False)


def iirpeak(w0: Any, Q: Any, /, fs: Any = 2.0) -> tuple[Array, Array]:
    """The coefficients of a filter that lets one frequency pass.

    Args:
        w0: The frequency, which may be a tensor.
        Q: The frequency over the width of the band that passes, likewise.
        fs: The sampling rate, likewise.

    Returns:
        The coefficients b and a.

    >>> gt.scipy.signal.iirpeak(0.5, 1.0)[0]
    array([ 0.5,  0. , -0.5])
    """
    return _notch("iirpeak", w0, Q, fs, peak=True)
