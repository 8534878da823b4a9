"""Convolutions of each channel by itself: no matrices, but multiples of the input for each tap.

The three products of a convolution are ops that only these kernels know, so that native code does
them on large arrays. Weights have the axes of the arrays, (1, channels, *kernel); arrays may have
any order in memory.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.call import call
from gradtape.core.evaluate import evaluate
from gradtape.core.lowering import Composite, Elements, Reader
from gradtape.core.op import Op
from gradtape.core.scalar import Scalar
from gradtape.errors import UnsupportedError
from gradtape.ops import lowered
from gradtape.ops.join import stack
from gradtape.ops.nn.window_elements import (
    AllWindows,
    infer_windows,
    is_small,
    seen_by,
    seen_from,
    seen_in_windows,
)
from gradtape.ops.nn.windows import Sizes, Windows, taps
from gradtape.ops.reduce import sum_over
from gradtape.ops.shape import moveaxis, reshape, swapaxes

# The largest array with zeros between its elements, relative to the array without them.
_MOST_ZEROS = 4

# ---- on arrays ----------------------------------------------------------------------------------


def _parts(windows: AllWindows) -> Iterator[tuple[Any, Any, Any]]:
    """For each tap, which windows see an element there, the elements, and the weight of the tap.

    All three are indices of the last axes, those of weights with axes of size 1 for places.
    """
    axes = [
        [(slice(None), slice(None), slice(None))]
        if w is None
        else [(part.into, part.of, slice(part.tap, part.tap + 1)) for part in w.parts()]
        for w in windows
    ]
    for parts in itertools.product(*axes):
        into, of, tap = zip(*parts, strict=True)
        yield (..., *into), (..., *of), (..., *tap)


def _forward(xp: Any, x: Any, w: Any, windows: AllWindows, back: bool = False) -> Any:
    """The sums over windows; or backwards, over the windows that see an element."""
    out = xp.zeros_like(x, shape=infer_windows(x, windows, back=back).shape)
    for into, of, tap in _parts(windows):
        into, of = (of, into) if back else (into, of)
        part = out[into]
        part += x[of] * w[tap]
    return out


def _weight_forward(xp: Any, x: Any, y: Any, windows: AllWindows) -> Any:
    spatial = _spatial(x, windows)
    out = xp.zeros(_infer_weight(x, y, windows).shape, x.dtype)
    for into, of, tap in _parts(windows):
        out[tap] = (x[of] * y[into]).sum((0, *spatial), keepdims=True)
    return out


# ---- one element --------------------------------------------------------------------------------


def _weight_at(w: Reader, i: Sequence[Any], windows: AllWindows, tap: Sequence[Any]) -> Scalar:
    """The weight of the channel of an element for a tap."""
    lead, left = len(i) - len(windows), iter(tap)
    pairs = zip(i[lead:], windows, strict=True)
    ends = (own if along is None else next(left) for own, along in pairs)
    return w(0, *i[1:lead], *ends)


def _moving(windows: AllWindows) -> list[Windows]:
    """The windows of the axes along which they move."""
    if not is_small(windows):
        raise UnsupportedError("no native code for large windows")
    return [along for along in windows if isinstance(along, Windows)]


def _kernel(windows: AllWindows) -> Sizes:
    return tuple(along.kernel for along in _moving(windows))


def _element(i: Sequence[Any], x: Reader, w: Reader, windows: AllWindows) -> Scalar:
    seen = seen_in_windows(i, windows, seen_by)
    terms = [
        lowered.read_or(0, x, *element) * _weight_at(w, i, windows, tap)
        for tap, element in zip(taps(_kernel(windows)), seen, strict=True)
    ]
    return functools.reduce(operator.add, terms)


def _input_element(i: Sequence[Any], y: Reader, w: Reader, windows: AllWindows) -> Scalar:
    moving, lead = _moving(windows), len(i) - len(windows)
    axes = [axis for axis, along in enumerate(windows, start=lead) if along is not None]
    # With a stride of 1 the tap is known; else it follows from the distance to the element.
    steps = itertools.product(*(range(-(-one.kernel // one.stride)) for one in moving))
    terms = []
    for back, (which, inside) in zip(steps, seen_in_windows(i, windows, seen_from), strict=True):
        tap = [
            n if one.stride == 1 else i[axis] + one.before - which[axis] * one.stride
            for n, axis, one in zip(back, axes, moving, strict=True)
        ]
        if inside is not None:
            # Outside there is no such weight either.
            tap = [t if isinstance(t, int) else scalar.where(inside, t, 0) for t in tap]
        terms.append(lowered.read_or(0, y, which, inside) * _weight_at(w, i, windows, tap))
    return functools.reduce(operator.add, terms)


def _tap_element(i: Sequence[Any], x: Reader, windows: AllWindows, number: int) -> Scalar:
    seen = itertools.islice(seen_in_windows(i, windows, seen_by), number, None)
    return lowered.read_or(0, x, *next(seen))


# The elements that windows see at one of their taps.
_AT_TAP = Op(
    "seen_at_tap",
    lambda xp, x, windows, number: _forward(xp, x, _one_tap(xp, x, windows, number), windows),
    lambda x, windows, number: infer_windows(x, windows),
    lower=Elements(_tap_element),
)


def _one_tap(xp: Any, x: Any, windows: AllWindows, number: int) -> Any:
    kernel = [w.kernel for w in windows if w is not None]
    ones = xp.zeros(kernel, x.dtype)
    ones.reshape(-1)[number] = 1
    return ones if windows[-1] is not None else ones[..., None]


def _weight_composition(x: Any, y: Any, windows: AllWindows) -> Any:
    kernel, spatial = _kernel(windows), _spatial(x, windows)
    sums = [
        sum_over(
            call(_AT_TAP, (x,), {"windows": windows, "number": n}) * y,
            axis=(0, *spatial),
            keepdims=False,
        )
        for n, _ in enumerate(taps(kernel))
    ]
    together = reshape(stack(sums, 0), (1, *kernel, x.shape[-1 if windows[-1] is None else 1]))
    return together if windows[-1] is None else moveaxis(together, -1, 1)


# ---- the products -------------------------------------------------------------------------------


def _spatial(x: Any, windows: AllWindows) -> list[int]:
    first = len(x.shape) - len(windows)
    return [axis for axis, w in enumerate(windows, start=first) if w is not None]


def _infer_weight(x: Any, _y: Any, windows: AllWindows) -> Aval:
    first = len(x.shape) - len(windows)
    ends = (n if w is None else w.kernel for n, w in zip(x.shape[first:], windows, strict=True))
    return Aval((1, *x.shape[1:first], *ends), x.dtype)


_CONV = Op(
    "depthwise",
    _forward,
    lambda x, _w, windows: infer_windows(x, windows),
    kind="planewise",
    lower=Elements(_element, often=True),
)


def _spread_apart(y: Any, w: Any, windows: AllWindows) -> Any:
    """The same with windows that move by 1, and zeros between their values, if these are few.

    Neighbours are then read for neighbours, many at once.
    """
    axes = [window for window in windows if isinstance(window, Windows)]
    steps = [window.stride for window in axes]
    fits = len(axes) == len(windows) and 1 < math.prod(steps) <= _MOST_ZEROS and is_small(windows)
    if not fits or not y.flags.c_contiguous:
        return NotImplemented
    wide = tuple(
        window._replace(number=(window.number - 1) * window.stride + 1, stride=1) for window in axes
    )
    apart: Any = np.zeros((*y.shape[: -len(wide)], *(window.number for window in wide)), y.dtype)
    apart[(..., *(slice(None, None, step) for step in steps))] = y
    return evaluate(_INPUT, (apart, w), {"windows": wide})


_INPUT = Op(
    "depthwise_input",
    functools.partial(_forward, back=True),
    lambda y, _w, windows: infer_windows(y, windows, back=True),
    kind="planewise",
    lower=Elements(_input_element, often=True),
    composed=_spread_apart,
)
_WEIGHT = Op(
    "depthwise_weight",
    _weight_forward,
    _infer_weight,
    kind="planewise",
    lower=Composite(_weight_composition),
)


def depthwise(x: Any, w: Any, windows: AllWindows) -> Any:
    """Windows of (samples, channels, …) times the weights (channels, 1, …) of their channel."""
    return call(_CONV, (x, swapaxes(w, 0, 1)), {"windows": windows})


def depthwise_input(y: Any, w: Any, windows: AllWindows) -> Any:
    """The transpose of `depthwise` in its first array."""
    return call(_INPUT, (y, swapaxes(w, 0, 1)), {"windows": windows})


def depthwise_weight(x: Any, y: Any, windows: AllWindows) -> Any:
    """The transpose of `depthwise` in the weights."""
    return swapaxes(call(_WEIGHT, (x, y), {"windows": windows}), 0, 1)
