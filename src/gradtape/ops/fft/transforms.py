"""Fourier transforms along one axis, over two, and over several.

There are six kinds: of complex numbers, of real ones (`rfft`), of signals with Hermitian symmetry,
which have a real spectrum (`hfft`), and the inverses of the three.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from gradtape.errors import ShapeError
from gradtape.ops.family import member
from gradtape.ops.fft.common import OPTIONS
from gradtape.ops.fft.fourier import transformed
from gradtape.ops.fft.real import coefficients_of, numbers_of
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis

P = ParamSpec("P")
R = TypeVar("R")

_RUN = {
    "fft": transformed,
    "ifft": transformed,
    "rfft": coefficients_of,
    "irfft": numbers_of,
    "hfft": numbers_of,
    "ihfft": coefficients_of,
}
_UNLESS_ODD = "Without n or s, twice those given less 2 come out; give it if the number is odd."
# The texts of each kind, to replace the words in braces.
_KINDS = {
    "fft": {"what": "Discrete Fourier transform", "x": "Real or complex numbers.", "more": ""},
    "ifft": {"what": "Inverse discrete Fourier transform", "x": "The coefficients.", "more": ""},
    "rfft": {
        "what": "Discrete Fourier transform of real numbers",
        "x": "Real numbers; complex ones raise DTypeError.",
        "more": " Only n//2 + 1 coefficients come out along the last axis: the others are "
        "conjugates of them.",
    },
    "irfft": {
        "what": "Inverse discrete Fourier transform with a real result",
        "x": "The first n//2 + 1 coefficients; imaginary parts of the first, and of the last for "
        "an even n, are not used.",
        "more": f" Half of the coefficients are given, as `rfft` returns them. {_UNLESS_ODD}",
    },
    "hfft": {
        "what": "Discrete Fourier transform of a signal with Hermitian symmetry",
        "x": "The first n//2 + 1 numbers of the signal along the last axis.",
        "more": f" The result is real. {_UNLESS_ODD}",
    },
    "ihfft": {
        "what": "Inverse discrete Fourier transform of a real spectrum",
        "x": "The spectrum: real numbers; complex ones raise DTypeError.",
        "more": " Half of the signal comes out, as `hfft` takes it.",
    },
}


def _kind(name: str) -> str:
    return name.rstrip("2n")


def _defined(declared: Callable[Concatenate[str, P], R], name: str) -> Callable[P, R]:
    """The function of a name."""
    return member(name, declared, **_KINDS[_kind(name)])


@options(
    OPTIONS, raises={"ShapeError": "There are no points.", "AxisError": "There is no such axis."}
)
def _along(
    name: str,
    x: ArrayLike,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
) -> Array:
    """{what} along one axis.

    Single precision stays single.{more}

    Args:
        x: {x}

    fft:
    >>> gt.fft.fft(np.array([1.0, 0.0, 0.0, 0.0])).real
    array([1., 1., 1., 1.])

    ifft:
    >>> gt.fft.ifft(np.array([4.0, 0.0, 0.0, 0.0])).real
    array([1., 1., 1., 1.])

    rfft:
    >>> gt.fft.rfft(np.array([1.0, 1.0, 1.0, 1.0]))
    array([4.+0.j, 0.+0.j, 0.+0.j])

    irfft:
    >>> gt.fft.irfft(np.array([4.0, 0.0, 0.0]))
    array([1., 1., 1., 1.])

    hfft:
    >>> gt.fft.hfft(np.array([1.0, 0.0, 0.0]))
    array([1., 1., 1., 1.])

    ihfft:
    >>> gt.fft.ihfft(np.array([1.0, 1.0, 1.0, 1.0])).real
    array([1., 0., 0.])
    """
    if n is not None and n < 0:
        raise ShapeError(f"{name}: got {n} points, expected at least one to transform")
    return _RUN[_kind(name)](name, x, None if n is None else (n,), (axis,), norm)


_SEVERAL = {
    "ShapeError": "There are no points, or not as many sizes as axes.",
    "AxisError": "There is no such axis, or one is named twice.",
}


@options(OPTIONS, raises=_SEVERAL)
def _over_two(
    name: str, x: ArrayLike, /, s: Any = None, axes: Axis = (-2, -1), norm: str | None = None
) -> Array:
    """{what} over two axes.

    Single precision stays single.{more}

    Args:
        x: {x}
        axes: Over which axes.

    fft2:
    >>> gt.fft.fft2(np.ones((2, 2))).real
    array([[4., 0.],
           [0., 0.]])

    ifft2:
    >>> gt.fft.ifft2(np.array([[4.0, 0.0], [0.0, 0.0]])).real
    array([[1., 1.],
           [1., 1.]])

    rfft2:
    >>> gt.fft.rfft2(np.ones((2, 2))).real
    array([[4., 0.],
           [0., 0.]])

    irfft2:
    >>> gt.fft.irfft2(np.array([[4.0, 0.0], [0.0, 0.0]]))
    array([[1., 1.],
           [1., 1.]])

    hfft2:
    >>> gt.fft.hfft2(np.array([[1.0, 0.0], [0.0, 0.0]]))
    array([[1., 1.],
           [1., 1.]])

    ihfft2:
    >>> gt.fft.ihfft2(np.ones((2, 2))).real
    array([[1., 0.],
           [0., 0.]])
    """
    return _RUN[_kind(name)](name, x, s, axes, norm)


@options(OPTIONS, raises=_SEVERAL)
def _over(
    name: str, x: ArrayLike, /, s: Any = None, axes: Axis = None, norm: str | None = None
) -> Array:
    """{what} over several axes.

    Single precision stays single.{more}

    Args:
        x: {x}

    fftn:
    >>> gt.fft.fftn(np.ones((2, 1, 2))).real
    array([[[4., 0.]],
           [[0., 0.]]])

    ifftn:
    >>> gt.fft.ifftn(np.array([[4.0, 0.0], [0.0, 0.0]])).real
    array([[1., 1.],
           [1., 1.]])

    rfftn:
    >>> gt.fft.rfftn(np.ones((2, 4))).shape
    (2, 3)

    irfftn:
    >>> gt.fft.irfftn(np.array([[4.0, 0.0], [0.0, 0.0]]))
    array([[1., 1.],
           [1., 1.]])

    hfftn:
    >>> gt.fft.hfftn(np.array([[1.0, 0.0], [0.0, 0.0]]))
    array([[1., 1.],
           [1., 1.]])

    ihfftn:
    >>> gt.fft.ihfftn(np.ones((2, 2))).real
    array([[1., 0.],
           [0., 0.]])
    """
    return _RUN[_kind(name)](name, x, s, axes, norm)


fft, ifft, rfft, irfft, hfft, ihfft = (_defined(_along, name) for name in _KINDS)
fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = (_defined(_over_two, f"{name}2") for name in _KINDS)
fftn, ifftn, rfftn, irfftn, hfftn, ihfftn = (_defined(_over, f"{name}n") for name in _KINDS)
