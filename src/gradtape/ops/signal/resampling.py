"""Other sampling rates by filters, and smoothing by polynomials: filters without recursion."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.cast import astype, copy as copy_of
from gradtape.ops.checks import check_choice, check_least
from gradtape.ops.join import concatenate
from gradtape.ops.reduce import max as max_of, mean, min as min_of
from gradtape.ops.shape import moveaxis, reshape, swapaxes
from gradtape.ops.signal.direct import convolve_over
from gradtape.ops.signal.filters import sosfilt
from gradtape.ops.signal.parts import along_last, longer, padded, part, time_last, vector
from gradtape.ops.signal.zero_phase import sosfiltfilt
from gradtape.typing import Array, ArrayLike

_BACKGROUNDS: dict[str, Any] = {"mean": mean, "minimum": min_of, "maximum": max_of}


def _continued(x: Any, before: int, after: int, mode: str, cval: Any) -> Any:
    """The signal continued beyond both ends of its last axis."""
    return padded(x, along_last(len(x.shape), (before, after)), mode, cval)


def _rates(name: str, **given: int) -> list[int]:
    """Factors of a sampling rate as integers, checked."""
    rates = {option: operator.index(value) for option, value in given.items()}
    check_least(name, 1, **rates)
    return list(rates.values())


# ---- up, filter, down ---------------------------------------------------------------------------


def upfirdn(
    h: ArrayLike,
    x: ArrayLike,
    /,
    up: int = 1,
    down: int = 1,
    axis: int = -1,
    mode: str = "constant",
    cval: Any = 0,
) -> Array:
    """The signal with zeros put between its elements, filtered, then thinned out.

    Args:
        h: The coefficients of the filter, along one axis.
        x: The signal.
        up: By how many times the zeros make it longer.
        down: Every `down`-th element of the filtered signal is kept.
        axis: The axis of time.
        mode: What lies beyond the ends: "constant", "symmetric", "reflect", "edge", "wrap".
        cval: The number for "constant".

    Raises:
        AxisError: There is no such axis.
        ShapeError: The filter does not have one axis, or something is empty.
        ArgumentError: `up`, `down` or `mode` is something else.

    >>> gt.scipy.signal.upfirdn(np.array([1.0, 1.0]), np.array([1.0, 2.0]), up=2)
    array([1., 1., 2., 2.])
    """
    h = vector("upfirdn", "a filter", h)
    x, axis = time_last("upfirdn", x, axis)
    up, down = _rates("upfirdn", up=up, down=down)
    check_choice("upfirdn", ("constant", "symmetric", "reflect", "edge", "wrap"), mode=mode)
    size, taps = x.shape[-1], h.shape[0]
    # Between elements of the signal there are only zeros, so each of `up` phases of the result is a
    # convolution with every up-th coefficient.
    length = -(-taps // up)
    phases = swapaxes(reshape(longer(h, 0, length * up - taps), (length, up)), 0, 1)
    zeros = mode == "constant" and not isinstance(cval, Tensor) and cval == 0
    margin = 0 if zeros else length
    x = _continued(x, margin, margin, mode, cval) if margin else x
    x = reshape(x, (*x.shape[:-1], 1, x.shape[-1]))
    out = swapaxes(convolve_over(x, phases, ndim=1, full=True), -1, -2)
    out = reshape(out, (*out.shape[:-2], out.shape[-2] * up))
    start = margin * up
    out = part(out, start, start + (size - 1) * up + taps, down)
    return moveaxis(out, -1, axis)


def resample_poly(
    x: ArrayLike,
    /,
    up: int,
    down: int,
    axis: int = 0,
    window: Any = ("kaiser", 5.0),
    padtype: str = "constant",
    cval: Any = None,
) -> Array:
    """The signal at a sampling rate that is up/down times its own, by a low-pass filter.

    Args:
        x: The signal.
        up: The factor of the rate.
        down: The divisor of the rate.
        axis: The axis of time.
        window: The window the filter is designed with, or its coefficients.
        padtype: What lies beyond the ends: as for `gt.scipy.signal.upfirdn`, or "mean", "minimum"
            or "maximum" of the signal.
        cval: The number for "constant"; 0 if it is None.

    Raises:
        AxisError: There is no such axis.
        ShapeError: Something is empty.
        ArgumentError: `up`, `down` or `padtype` is something else.

    >>> gt.scipy.signal.resample_poly(np.ones(4), 1, 2, padtype="edge").round(3)
    array([1., 1.])
    """
    name = "resample_poly"
    x = as_array(x)
    axis = normalize_axis(axis, len(x.shape), name)
    up, down = _rates(name, up=up, down=down)
    if cval is not None and padtype != "constant":
        raise ArgumentError(f'{name}: got cval with padtype={padtype!r}; it goes with "constant"')
    common = math.gcd(up, down)
    up, down = up // common, down // common
    if up == down == 1:
        return copy_of(x)
    x = moveaxis(x, axis, -1)
    size = x.shape[-1]
    count = -(-size * up // down)
    h = _low_pass(window, max(up, down), x.dtype) * up
    half = (h.shape[0] - 1) // 2
    before = down - half % down
    first = (half + before) // down
    # Enough zeros after it for the last element.
    missing = (count + first - 1) * down + 1 - ((size - 1) * up + h.shape[0] + before)
    h = longer(h, before, max(missing, 0))
    background: Any = None
    if padtype in _BACKGROUNDS:
        background = _BACKGROUNDS[padtype](x, axis=-1, keepdims=True)
        x, padtype = x - background, "constant"
    out = upfirdn(h, x, up, down, -1, padtype, 0 if cval is None else cval)
    out = part(out, first, first + count)
    return moveaxis(out if background is None else out + background, -1, axis)


def _low_pass(window: Any, rate: int, dtype: Any) -> Any:
    """The coefficients of a filter that lets 1/rate of the frequencies pass, or those given."""
    if isinstance(window, list) or hasattr(window, "shape"):
        return vector("resample_poly", "a window", window)
    import scipy.signal

    h = scipy.signal.firwin(20 * rate + 1, 1.0 / rate, window=window)
    return h.astype(dtype) if dtype.kind in "fc" else h


def decimate(
    x: ArrayLike,
    /,
    q: int,
    n: int | None = None,
    ftype: Any = "iir",
    axis: int = -1,
    zero_phase: bool = True,
) -> Array:
    """The signal at a sampling rate q times lower, after a low-pass filter.

    Args:
        x: The signal.
        q: The divisor of the rate.
        n: The order of the filter; 8 for "iir", 20·q for "fir" if it is None.
        ftype: "iir" for a Chebyshev filter, "fir" for one without recursion.
        axis: The axis of time.
        zero_phase: Whether the filter delays nothing.

    Raises:
        AxisError: There is no such axis.
        ArgumentError: `q` or `ftype` is something else.
        ShapeError: The signal is too short for the filter.

    >>> gt.scipy.signal.decimate(np.ones(8), 2, ftype="fir").shape
    (4,)
    """
    import scipy.signal

    x, axis = time_last("decimate", x, axis)
    (q,) = _rates("decimate", q=q)
    check_choice("decimate", ("iir", "fir"), ftype=ftype)
    dtype = x.dtype if x.dtype.char in "fdFD" else np.dtype(np.float64)
    if ftype == "iir":
        order = 8 if n is None else operator.index(n)
        sos = scipy.signal.cheby1(order, 0.05, 0.8 / q, output="sos").astype(dtype)
        y = part((sosfiltfilt if zero_phase else sosfilt)(sos, x), None, None, q)
    else:
        order = 20 * q if n is None else operator.index(n)
        b = scipy.signal.firwin(order + 1, 1.0 / q, window="hamming").astype(dtype)
        whole = resample_poly(x, 1, q, -1, b) if zero_phase else upfirdn(b, x, 1, q)
        y = part(whole, 0, -(-x.shape[-1] // q))
    return moveaxis(y, -1, axis)


# ---- polynomials --------------------------------------------------------------------------------

_BEYOND = {"mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant"}


def savgol_filter(
    x: ArrayLike,
    /,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: Any = 0.0,
) -> Array:
    """The signal smoothed by polynomials that fit it best in a window (Savitzky and Golay).

    Args:
        x: The signal.
        window_length: How many elements a window has.
        polyorder: The degree of the polynomials, less than that.
        deriv: Which derivative of them to take.
        delta: The distance between elements, for derivatives.
        axis: The axis of time.
        mode: What is done at the ends: "interp" takes the polynomial of the last whole window,
            others continue the signal: "mirror", "nearest", "wrap", "constant".
        cval: The number for "constant".

    Raises:
        AxisError: There is no such axis.
        ShapeError: The signal is shorter than a window, for "interp".
        ArgumentError: `window_length`, `polyorder` or `mode` is something else.

    >>> gt.scipy.signal.savgol_filter(np.array([0.0, 1.0, 4.0, 9.0, 16.0]), 3, 2).round(12) + 0.0
    array([ 0.,  1.,  4.,  9., 16.])
    """
    import scipy.signal

    x = as_array(x)
    axis = normalize_axis(axis, len(x.shape), "savgol_filter")
    check_choice("savgol_filter", ("interp", *_BEYOND), mode=mode)
    if not 0 <= polyorder < window_length:
        raise ArgumentError(
            f"savgol_filter: got window_length={window_length}, polyorder={polyorder}, expected a "
            "degree that is less than the length of the window"
        )
    x = moveaxis(x, axis, -1)
    if x.dtype.char not in "fd":
        x = astype(x, np.float64)
    options = (window_length, polyorder, deriv, delta)
    kernel = scipy.signal.savgol_coeffs(*options).astype(x.dtype)
    half = window_length // 2
    if mode != "interp":
        # The middle of an even window lies to its right; of a reversed one, to its left.
        around = _continued(x, window_length - 1 - half, half, _BEYOND[mode], cval)
        return moveaxis(convolve_over(around, kernel, ndim=1, full=False), -1, axis)
    if window_length > x.shape[-1]:
        raise ShapeError(
            f"savgol_filter: got {x.shape[-1]} elements in time, expected window_length="
            f'{window_length} for mode="interp"'
        )
    # The values of the polynomial of a window at each of its own elements.
    own = scipy.signal.savgol_filter(np.eye(window_length), *options, axis=0).astype(x.dtype)
    first = part(x, 0, window_length) @ own[:half].T
    last = part(x, x.shape[-1] - window_length, None) @ own[window_length - half :].T
    middle = convolve_over(x, kernel, ndim=1, full=False)
    if window_length % 2 == 0:
        middle = part(middle, 1, None)  # that one lies on the left of the middle
    return moveaxis(concatenate([first, middle, last], -1), -1, axis)
