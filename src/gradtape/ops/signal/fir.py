"""Filters without recursion by the window method, differentiable in their frequencies."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_choice
from gradtape.ops.index import getitem
from gradtape.ops.join import concatenate
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import reshape
from gradtape.ops.signal.parts import window_of
from gradtape.ops.signal.segments import check_above_0
from gradtape.ops.signal.zpk import check_rising
from gradtape.ops.trigonometric import cos, sinc
from gradtape.typing import Array, ArrayLike

_ONE_EDGE, _MORE_EDGES = ("lowpass", "highpass"), ("bandpass", "bandstop")


def _passes_zero(pass_zero: Any, count: int) -> bool:
    """Whether frequency 0 passes a filter with so many edges."""
    check_choice("firwin", (True, False, *_ONE_EDGE, *_MORE_EDGES), pass_zero=pass_zero)
    if pass_zero in (_MORE_EDGES if count == 1 else _ONE_EDGE):
        needed = "one" if pass_zero in _ONE_EDGE else "two, or more"
        raise ArgumentError(f"firwin: got {count} edges for {pass_zero!r}, expected {needed}")
    return pass_zero in (True, "lowpass", "bandstop")


def _window(window: Any, numtaps: int, width: Any, half_rate: Any) -> Any:
    if width is not None:
        import scipy.signal

        attenuation = scipy.signal.kaiser_atten(numtaps, float(width) / half_rate)
        window = ("kaiser", scipy.signal.kaiser_beta(attenuation))
    return window_of("firwin", window, numtaps, periodic=False)


def firwin(
    numtaps: int,
    cutoff: ArrayLike,
    /,
    *,
    width: float | None = None,
    window: Any = "hamming",
    pass_zero: Any = True,
    scale: bool = True,
    fs: Any = None,
) -> Array:
    """The coefficients of a filter without recursion that lets some frequencies pass.

    Args:
        numtaps: How many coefficients.
        cutoff: The edges between pass and stop bands, in rising order, which may be a
            tensor; with 1 for half of the sampling rate, unless `fs` is given.
        width: How wide an edge may be; if given, a Kaiser window is used instead of `window`.
        window: The name of a window of SciPy, or an array, which may be a tensor.
        pass_zero: Whether frequency 0 passes; or "lowpass", "highpass", "bandpass", "bandstop".
        scale: Whether the filter is scaled to a gain of 1 in the middle of its first band.
        fs: The sampling rate; 2 if it is None.

    Raises:
        ArgumentError: An option has another value, a frequency is out of range, or half of the
            sampling rate is to pass, which an even number of coefficients cannot do.
        ShapeError: Edges or the window do not have one axis of as many elements.

    >>> gt.scipy.signal.firwin(3, 0.5).round(6)
    array([0.046221, 0.907557, 0.046221])
    """
    numtaps = operator.index(numtaps)
    fs = 2 if fs is None else fs
    check_above_0(fs=fs)
    half_rate = fs / 2
    edges = as_array(cutoff)
    if len(edges.shape) > 1 or 0 in edges.shape or numtaps < 1:
        raise ShapeError(
            f"firwin: got {numtaps} coefficients and cutoff of shape {edges.shape}, expected at "
            "least one of both, along one axis"
        )
    edges = reshape(astype(edges, np.float64, copy=False), (-1,)) / half_rate
    check_rising("firwin", edges, 1.0, cutoff=cutoff)
    count = edges.shape[0]
    zero = _passes_zero(pass_zero, count)
    last = count % 2 != zero
    if last and numtaps % 2 == 0:
        raise ArgumentError(
            f"firwin: got {numtaps} coefficients for a filter that lets half of the sampling rate "
            "pass, expected an odd number"
        )
    bands = concatenate([np.zeros(int(zero)), edges, np.ones(int(last))])
    places = np.arange(numtaps) - (numtaps - 1) / 2
    column = reshape(bands, (-1, 1))
    waves = column * sinc(column * places)
    # Up to the upper edges of all bands, less up to their lower ones.
    signs = np.tile([-1.0, 1.0], bands.shape[0] // 2)[:, None]
    h = sum_of(signs * waves, axis=0) * _window(window, numtaps, width, half_rate)
    if not scale:
        return h
    low, high = getitem(bands, 0), getitem(bands, 1)
    middle = 0.0 if zero else 1.0 if last and count == 1 else (low + high) / 2
    return h / sum_of(h * cos(np.pi * places * middle))
