"""The frequency responses of filters: complex gains and group delays."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.ops.arguments import as_array
from gradtape.ops.arithmetic import absolute
from gradtape.ops.arrays.known import values_of
from gradtape.ops.arrays.polynomials import polyval
from gradtape.ops.cast import conj_if_complex, real
from gradtape.ops.checks import check_axes
from gradtape.ops.exponential import exp
from gradtape.ops.index import getitem
from gradtape.ops.product import prod
from gradtape.ops.rearrange import flip
from gradtape.ops.select import where
from gradtape.ops.shape import reshape
from gradtape.ops.signal.direct import convolve_over
from gradtape.ops.signal.filters import sections_of
from gradtape.ops.signal.parts import vector
from gradtape.ops.signal.segments import check_above_0
from gradtape.typing import Array, ArrayLike

_RATE = 2 * np.pi


def _angles(worN: Any, whole: bool, fs: Any, include_nyquist: bool = False) -> tuple[Any, Any]:
    """Frequencies in radians per sample, and in the units that are returned."""
    check_above_0(fs=fs)
    if isinstance(worN, int | np.integer) or worN is None:
        end = _RATE if whole else np.pi
        endpoint = include_nyquist and not whole
        w = np.linspace(0, end, 512 if worN is None else int(worN), endpoint=endpoint)
        return w, w * (fs / _RATE)
    given = as_array(worN)
    return given * (_RATE / fs), given


def _delayed(w: Any, c: Any) -> Any:
    """Σ cₖ·exp(−i·w·k)."""
    return exp(-1j * (reshape(w, (*w.shape, 1)) * np.arange(c.shape[0]))) @ (c + 0j)


def freqz(
    b: ArrayLike,
    /,
    a: ArrayLike = 1,
    worN: Any = 512,
    whole: bool = False,
    *,
    fs: Any = _RATE,
    include_nyquist: bool = False,
) -> tuple[Any, Array]:
    """The complex response of a digital filter to frequencies, differentiable in all three.

    Args:
        b: The coefficients of the signal.
        a: The coefficients of the result.
        worN: How many frequencies, or which; they may be a tensor.
        whole: Whether they go up to the sampling rate, and not to half of it.
        fs: The sampling rate; frequencies are in radians per sample if it is not given.
        include_nyquist: Whether half of the sampling rate is the last one.

    Returns:
        The frequencies, and the response.

    Raises:
        ShapeError: Coefficients do not have one axis.

    >>> w, h = gt.scipy.signal.freqz([0.5, 0.5], worN=2)
    >>> np.abs(h).round(6)
    array([1.      , 0.707107])
    """
    b, a = vector("freqz", "b", b), vector("freqz", "a", a)
    w, given = _angles(worN, whole, fs, include_nyquist)
    return given, _delayed(w, b) / _delayed(w, a)


def freqz_sos(
    sos: ArrayLike, /, worN: Any = 512, whole: bool = False, fs: Any = _RATE
) -> tuple[Any, Array]:
    """The complex response of sections of second order, as `gt.scipy.signal.freqz` has it.

    Args:
        sos: One row per section, as for `gt.scipy.signal.sosfilt`.
        worN: How many frequencies, or which.
        whole: Whether they go up to the sampling rate.
        fs: The sampling rate.

    >>> np.abs(gt.scipy.signal.freqz_sos([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]], worN=2)[1]).round(6)
    array([1.      , 0.707107])
    """
    sos = sections_of("freqz_sos", sos)
    w, given = _angles(worN, whole, fs)
    waves = exp(-1j * (reshape(w, (*w.shape, 1)) * np.arange(3)))
    halves = (getitem(sos, (slice(None), s)) for s in (slice(3), slice(3, 6)))
    above, below = (waves @ (half.mT + 0j) for half in halves)
    return given, prod(above / below, axis=-1)


sosfreqz = freqz_sos


def freqz_zpk(
    z: ArrayLike, p: ArrayLike, k: ArrayLike, /, worN: Any = 512, whole: bool = False,
    fs: Any = _RATE,
) -> tuple[Any, Array]:  # fmt: skip
    """The complex response of a digital filter given by zeros, poles and gain.

    Args:
        z: The zeros.
        p: The poles.
        k: The gain.
        worN: How many frequencies, or which, as for `gt.scipy.signal.freqz`.
        whole: Whether they go up to the sampling rate.
        fs: The sampling rate.

    >>> np.abs(gt.scipy.signal.freqz_zpk([-1.0], [], 0.5, worN=2)[1]).round(6)
    array([1.      , 0.707107])
    """
    w, given = _angles(worN, whole, fs)
    return given, _of_roots("freqz_zpk", exp(1j * w), z, p, k)


def _of_roots(name: str, at: Any, z: ArrayLike, p: ArrayLike, k: ArrayLike) -> Any:
    """k·∏(at − z)/∏(at − p)."""
    z, p = as_array(z), as_array(p)
    check_axes(name, z, 1, what="zeros")
    check_axes(name, p, 1, what="poles")
    at = reshape(at, (*at.shape, 1))
    return as_array(k) * prod(at - z, axis=-1) / prod(at - p, axis=-1)


def _found(worN: Any, above: Any, below: Any, kind: str) -> Any:
    """Frequencies of an analog filter: those given, or a number of them chosen by SciPy."""
    if not isinstance(worN, int | np.integer) and worN is not None:
        return as_array(worN)
    import scipy.signal

    count = 200 if worN is None else int(worN)
    return scipy.signal.findfreqs(values_of(above), values_of(below), count, kind=kind)


def freqs(b: ArrayLike, a: ArrayLike, /, worN: Any = 200) -> tuple[Any, Array]:
    """The complex response of an analog filter to frequencies, differentiable in all three.

    Args:
        b: The coefficients of the numerator, the highest power first.
        a: Those of the denominator.
        worN: Which frequencies, in radians per time; or how many, around the zeros and poles, for
            which the values of the coefficients have to be known.

    Returns:
        The frequencies, and the response.

    >>> w, h = gt.scipy.signal.freqs([1.0], [1.0, 1.0], [0.0, 1.0])
    >>> h
    array([1. +0.j , 0.5-0.5j])
    """
    b, a = vector("freqs", "b", b), vector("freqs", "a", a)
    w = _found(worN, b, a, "ba")
    return w, polyval(b + 0j, 1j * w) / polyval(a + 0j, 1j * w)


def freqs_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, /, worN: Any = 200) -> tuple[Any, Array]:
    """The complex response of an analog filter given by zeros, poles and gain.

    Args:
        z: The zeros.
        p: The poles.
        k: The gain.
        worN: Which frequencies, or how many, as for `gt.scipy.signal.freqs`.

    >>> gt.scipy.signal.freqs_zpk([], [-1.0], 1.0, [0.0, 1.0])[1]
    array([1. +0.j , 0.5-0.5j])
    """
    w = _found(worN, as_array(z), as_array(p), "zp")
    return w, _of_roots("freqs_zpk", 1j * w, z, p, k)


def group_delay(
    system: tuple[ArrayLike, ArrayLike], /, w: Any = 512, whole: bool = False, fs: Any = _RATE
) -> tuple[Any, Array]:
    """By how many samples a digital filter delays frequencies: minus the slope of its phase.

    Args:
        system: The coefficients b and a.
        w: How many frequencies, or which, as for `gt.scipy.signal.freqz`.
        whole: Whether they go up to the sampling rate.
        fs: The sampling rate.

    Returns:
        The frequencies, and the delay; 0 where nothing passes and it is undefined.

    >>> gt.scipy.signal.group_delay(([0.0, 0.0, 1.0], [1.0]), 2)[1].round(12)
    array([2., 2.])
    """
    b, a = (vector("group_delay", "coefficients", one) for one in system)
    angles, given = _angles(w, whole, fs)
    # The delay of b·conj(a reversed), whose response has the same phase but for a delay.
    c = convolve_over(b, conj_if_complex(flip(a, 0)), ndim=1, full=True)
    below = _delayed(angles, c)
    none = absolute(below) < 10 * np.finfo(np.float64).eps
    slope = _delayed(angles, c * np.arange(c.shape[0]))
    delay = real(slope / where(none, 1.0, below)) - (a.shape[0] - 1)
    return given, where(none, 0.0, delay)
