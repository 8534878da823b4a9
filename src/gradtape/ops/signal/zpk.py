"""Filters by their zeros, poles and gain: moved, made digital, converted to coefficients.

All of it is arithmetic with complex numbers, so filters are differentiable in their parameters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.known import values_if_known, values_of
from gradtape.ops.arrays.polynomials import polymul
from gradtape.ops.cast import astype, real
from gradtape.ops.exponential import sqrt
from gradtape.ops.gather import take
from gradtape.ops.index import getitem
from gradtape.ops.join import concatenate, stack
from gradtape.ops.norm import inexact
from gradtape.ops.product import prod
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.ops.signal.filters import sections_of
from gradtape.ops.signal.parts import part
from gradtape.typing import Array, ArrayLike

Zpk = tuple[Any, Any, Any]

# ---- arguments ----------------------------------------------------------------------------------


def _filter(name: str, z: ArrayLike, p: ArrayLike, k: ArrayLike) -> Zpk:
    """Zeros and poles as vectors, and the gain."""
    z, p, k = as_array(z), as_array(p), as_array(k)
    if len(z.shape) > 1 or len(p.shape) > 1 or k.shape not in ((), (1,)):
        raise ShapeError(
            f"{name}: got zeros, poles and a gain of shapes {z.shape}, {p.shape} and {k.shape}, "
            "expected two vectors and a number"
        )
    z, p = (inexact(reshape(one, (-1,))) for one in (z, p))
    return z, p, reshape(k, ())


def _moved(name: str, z: ArrayLike, p: ArrayLike, k: ArrayLike) -> tuple[Any, Any, Any, int]:
    """The same, and how many zeros lie at infinity."""
    z, p, k = _filter(name, z, p, k)
    degree = p.shape[0] - z.shape[0]
    if degree < 0:
        raise ArgumentError(
            f"{name}: got {z.shape[0]} zeros and {p.shape[0]} poles, expected no more zeros than "
            "poles"
        )
    return z, p, k, degree


def _ratio(z: Any, p: Any, at: Any) -> Any:
    """∏(at − z)/∏(at − p), which is real for conjugate pairs."""
    return real(prod(at - z) / prod(at - p))


def _with(roots: Any, more: Any, count: int) -> Any:
    """Roots, and another one several times."""
    return concatenate([roots, broadcast_to(as_array(more), (count,))]) if count else roots


def check_rising(name: str, frequencies: Any, below: float, **given: Any) -> None:
    """Raise unless frequencies rise between 0 and a bound, as far as their values are known.

    Args:
        name: The function, for errors.
        frequencies: The frequencies.
        below: Half of the sampling rate in their unit; infinity if there is none.
        **given: The option they were given by.
    """
    known = values_if_known(frequencies)
    if known is not None and not (np.diff(known.ravel(), prepend=0.0, append=below) > 0).all():
        got = ", ".join(f"{option}={value}" for option, value in given.items())
        limit = " and below half of the sampling rate" if below < np.inf else ""
        raise ArgumentError(f"{name}: got {got}, expected frequencies that rise, above 0{limit}")


# ---- from a low-pass filter at frequency 1 ------------------------------------------------------


def lp2lp_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, /, wo: Any = 1.0) -> Zpk:
    """An analog low-pass filter at another frequency.

    Args:
        z: The zeros of one at frequency 1.
        p: Its poles.
        k: Its gain.
        wo: The frequency, which may be a tensor.

    Returns:
        The zeros, poles and gain.

    Raises:
        ArgumentError: There are more zeros than poles.

    >>> z, p, k = gt.scipy.signal.lp2lp_zpk([], [-1.0], 1.0, 3.0)
    >>> float(p[0].real), float(k)
    (-3.0, 3.0)
    """
    z, p, k, degree = _moved("lp2lp_zpk", z, p, k)
    return wo * z, wo * p, k * wo**degree


def lp2hp_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, /, wo: Any = 1.0) -> Zpk:
    """An analog high-pass filter from a low-pass one.

    Args:
        z: The zeros of a low-pass filter at frequency 1.
        p: Its poles.
        k: Its gain.
        wo: The frequency of the high-pass filter, which may be a tensor.

    >>> z, p, k = gt.scipy.signal.lp2hp_zpk([], [-1.0], 1.0, 3.0)
    >>> float(z[0].real), float(p[0].real), float(k)
    (0.0, -3.0, 1.0)
    """
    z, p, k, degree = _moved("lp2hp_zpk", z, p, k)
    return _with(wo / z, 0.0, degree), wo / p, k * _ratio(z, p, 0)


def _split(roots: Any, wo: Any) -> Any:
    """Both solutions s of s + wo²/s = 2·root."""
    roots = astype(roots, np.complex128, copy=False)
    away = sqrt(roots * roots - wo * wo)
    return concatenate([roots + away, roots - away])


def lp2bp_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, /, wo: Any = 1.0, bw: Any = 1.0) -> Zpk:
    """An analog band-pass filter from a low-pass one.

    Args:
        z: The zeros of a low-pass filter at frequency 1.
        p: Its poles.
        k: Its gain.
        wo: The middle of the band, which may be a tensor.
        bw: Its width, likewise.

    >>> z, p, k = gt.scipy.signal.lp2bp_zpk([], [-1.0], 1.0, 2.0, 5.0)
    >>> np.round(p.real, 12)
    array([-1., -4.])
    """
    z, p, k, degree = _moved("lp2bp_zpk", z, p, k)
    zeros, poles = (_split(roots * (bw / 2), wo) for roots in (z, p))
    return _with(zeros, 0.0, degree), poles, k * bw**degree


def lp2bs_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, /, wo: Any = 1.0, bw: Any = 1.0) -> Zpk:
    """An analog band-stop filter from a low-pass one.

    Args:
        z: The zeros of a low-pass filter at frequency 1.
        p: Its poles.
        k: Its gain.
        wo: The middle of the band, which may be a tensor.
        bw: Its width, likewise.

    >>> z, p, k = gt.scipy.signal.lp2bs_zpk([], [-1.0], 1.0, 2.0, 5.0)
    >>> np.round(z.imag, 12)
    array([ 2., -2.])
    """
    z, p, k, degree = _moved("lp2bs_zpk", z, p, k)
    # Of one dtype, as SciPy divides: the sign of a zero decides which of a pair comes first.
    dtype = np.result_type(z.dtype, p.dtype)
    zeros, poles = (_split((bw / 2) / astype(roots, dtype, copy=False), wo) for roots in (z, p))
    for place in (1j * wo, -1j * wo):
        zeros = _with(zeros, place, degree)
    return zeros, poles, k * _ratio(z, p, 0)


def bilinear_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, /, fs: Any) -> Zpk:
    """A digital filter from an analog one, by s = 2·fs·(z − 1)/(z + 1).

    Args:
        z: The zeros of the analog filter.
        p: Its poles.
        k: Its gain.
        fs: The sampling rate, which may be a tensor.

    >>> z, p, k = gt.scipy.signal.bilinear_zpk([], [-2.0], 2.0, 1.0)
    >>> float(z[0].real), float(p[0].real), float(k)
    (-1.0, 0.0, 0.5)
    """
    z, p, k, degree = _moved("bilinear_zpk", z, p, k)
    twice = 2.0 * fs
    zeros, poles = ((twice + roots) / (twice - roots) for roots in (z, p))
    return _with(zeros, -1.0, degree), poles, k * _ratio(z, p, twice)


# ---- coefficients -------------------------------------------------------------------------------


def expanded(roots: Any) -> Any:
    """The coefficients of ∏(x − root), the highest power first."""
    none = np.zeros(1, np.complex128)
    out: Any = np.ones(1, np.complex128)
    for i in range(roots.shape[0]):
        out = concatenate([out, none]) - part(roots, i, i + 1) * concatenate([none, out])
    return out


def in_pairs(z: Any, p: Any, k: Any) -> tuple[Any, Any]:
    """The real coefficients b and a of a filter whose zeros and poles come in conjugate pairs."""
    return k * real(expanded(z)), real(expanded(p))


def _paired(roots: Any) -> bool:
    """Whether numbers are real, or come in conjugate pairs, by their values."""
    values = values_of(roots)
    above, below = (np.sort_complex(values[sign * values.imag > 0]) for sign in (1, -1))
    return bool(np.array_equal(above, np.sort_complex(below.conj())))


def zpk2tf(z: ArrayLike, p: ArrayLike, k: ArrayLike, /) -> tuple[Array, Array]:
    """The coefficients b and a of a filter with some zeros, poles and gain.

    Args:
        z: The zeros.
        p: The poles.
        k: The gain.

    Returns:
        The coefficients, real if the numbers are, or come in conjugate pairs. Under `jit`, complex
        ones raise, as that cannot be known.

    >>> b, a = gt.scipy.signal.zpk2tf([1.0], [0.5], 2.0)
    >>> b, a
    (array([ 2., -2.]), array([ 1. , -0.5]))
    """
    plain = [as_array(roots).dtype.kind != "c" for roots in (z, p)]
    z, p, k = _filter("zpk2tf", z, p, k)
    b, a = (
        real(expanded(roots)) if known or _paired(roots) else expanded(roots)
        for roots, known in zip((z, p), plain, strict=True)
    )
    return k * b, a


def sos2tf(sos: ArrayLike, /) -> tuple[Array, Array]:
    """The coefficients b and a of a filter made of sections of second order.

    Args:
        sos: One row per section, as for `gt.scipy.signal.sosfilt`.

    >>> b, a = gt.scipy.signal.sos2tf([[1.0, 1.0, 0.0, 1.0, -0.5, 0.0]])
    >>> b, a
    (array([1., 1., 0.]), array([ 1. , -0.5,  0. ]))
    """
    sos = sections_of("sos2tf", sos)
    rows = [getitem(sos, i) for i in range(sos.shape[0])]
    halves = ([part(row, start, start + 3) for row in rows] for start in (0, 3))
    b, a = (functools.reduce(polymul, half) for half in halves)
    return b, a


# ---- sections of second order -------------------------------------------------------------------

# Numbers whose imaginary part is below this fraction of them count as real, as in SciPy.
_REAL = 100 * np.finfo(np.float64).eps


class _Root(NamedTuple):
    """A real number, or a pair of conjugate ones, and where in an array it and the other is."""

    value: complex
    place: int
    other: int | None = None


def _roots(values: Any) -> list[_Root]:
    """Pairs first, both kinds by their real part."""
    is_real = np.abs(values.imag) <= _REAL * np.abs(values)
    above = np.flatnonzero(~is_real & (values.imag > 0))
    below = np.flatnonzero(~is_real & (values.imag < 0)).tolist()
    found = []
    for place in above[np.argsort(values[above].real, kind="stable")]:
        distance = [abs(values[other] - values[place].conj()) for other in below]
        if not distance or min(distance) > 1e-6 * abs(values[place]):
            raise ArgumentError(f"zpk2sos: got {values[place]} without its conjugate")
        found.append(_Root(values[place], place, below.pop(int(np.argmin(distance)))))
    if below:
        raise ArgumentError(f"zpk2sos: got {values[below[0]]} without its conjugate")
    singles = np.flatnonzero(is_real)
    ordered = singles[np.argsort(values[singles].real, kind="stable")]
    return found + [_Root(values[place].real, place) for place in ordered]


def _two_taken(roots: list[_Root], key: Callable[[_Root], float]) -> tuple[_Root, int, int]:
    """Remove the root with the least key from a list, and another one if it is not a pair.

    Returns the root, and the places of both.
    """
    first = min(roots, key=key)
    roots.remove(first)
    if first.other is not None:
        return first, first.place, first.other
    second = min((root for root in roots if root.other is None), key=key)
    roots.remove(second)
    return first, first.place, second.place


def _pairs_of(z: Any, p: Any) -> Any:
    """For each section, where its two zeros and two poles are; there are as many, even in number.

    Poles closest to the unit circle come last, each with the zeros closest to it.
    """
    zeros, poles, sections = _roots(z), _roots(p), []

    def from_circle(root: _Root) -> float:
        return abs(1 - abs(root.value))

    while poles:
        pole, *two_poles = _two_taken(poles, from_circle)

        def from_pole(root: _Root, at: complex = pole.value) -> float:
            return abs(root.value - at)

        _, *two_zeros = _two_taken(zeros, from_pole)
        sections.append((*two_zeros, *two_poles))
    return np.array(sections[::-1], np.intp)


def _pairs_forward(xp: Any, z: Any, p: Any) -> Any:
    out = np.empty((*z.shape[:-1], z.shape[-1] // 2, 4), np.intp)
    for i in np.ndindex(*z.shape[:-1]):
        out[i] = _pairs_of(z[i], p[i])
    return out


# Which zeros and poles go together is constant between filters where it changes.
_pairs = general(
    "sos_pairs",
    _pairs_forward,
    infer=lambda z, p: Aval((*z.shape[:-1], z.shape[-1] // 2, 4), np.dtype(np.intp)),
)


def zpk2sos(
    z: ArrayLike, p: ArrayLike, k: ArrayLike, /, pairing: str | None = None, *, analog: bool = False
) -> Array:
    """Sections of second order from zeros, poles and gain, which come in conjugate pairs.

    Args:
        z: The zeros of a digital filter.
        p: Its poles.
        k: Its gain.
        pairing: "nearest", also None: each pole goes with the zeros nearest to it, and those
            closest to the unit circle come last. SciPy's other ways raise.
        analog: Only False.

    Raises:
        ArgumentError: Something complex comes without its conjugate.
        UnsupportedError: `pairing` or `analog` is something else.

    >>> gt.scipy.signal.zpk2sos(gt.tensor([-1.0]), [0.5], 2.0)
    tensor([[ 2. ,  2. , -0. ,  1. , -0.5,  0. ]])
    """
    if pairing not in (None, "nearest") or analog:
        raise UnsupportedError(
            f"zpk2sos: got pairing={pairing!r}, analog={analog}, expected 'nearest' and a digital "
            "filter; use scipy.signal.zpk2sos for constants"
        )
    z, p, k = _filter("zpk2sos", z, p, k)
    size = max(z.shape[0], p.shape[0], 1)
    size += size % 2
    z, p = (_with(roots, 0.0, size - roots.shape[0]) for roots in (z, p))
    pairs = _pairs(z, p)
    first, second = (take(z, getitem(pairs, (slice(None), i))) for i in (0, 1))
    third, fourth = (take(p, getitem(pairs, (slice(None), i))) for i in (2, 3))
    one = np.ones(size // 2)
    gains = concatenate([reshape(k, (1,)), one[1:]])
    above = [gains, gains * -real(first + second), gains * real(first * second)]
    return stack([*above, one, -real(third + fourth), real(third * fourth)], -1)
