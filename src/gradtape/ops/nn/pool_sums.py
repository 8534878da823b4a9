"""The ops of pooling by sums: averages and powers over windows that move over an array.

Averaging is linear. Its transpose, which spreads each number over its window, is an op of its own,
and each is the derivative of the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_at_front
from gradtape.core.define import general, linear
from gradtape.errors import UnsupportedError
from gradtape.ops import lowered
from gradtape.ops.index import getitem_basic, put
from gradtape.ops.nn.windows import Windows, along
from gradtape.ops.pad import crop, pad_constant
from gradtape.ops.select import where

AllWindows = tuple[Windows, ...]
# Longer windows are not written out one by one in compiled functions.
_LONGEST = 32


def _divided(x: Any, divide: float) -> Any:
    return x if divide == 1 else x / divide


def _wide(x: Any) -> Any:
    """The array in a dtype that sums can be computed in."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


# ---- sums over windows --------------------------------------------------------------------------


def _pool_forward(xp: Any, x: Any, windows: AllWindows, divide: float) -> Any:
    out = _wide(x)
    for axis, w in enumerate(windows, start=-len(windows)):
        out = _sum_along(xp, out, axis, w)
    return _divided(out, divide).astype(x.dtype, copy=False)


def _sum_along(xp: Any, x: Any, axis: int, w: Windows) -> Any:
    shape = (*x.shape[:axis], w.number, *x.shape[len(x.shape) + axis + 1 :])
    out = xp.zeros_like(x, shape=shape)  # laid out as `x` is
    for _, into, of in w.parts():
        part = out[along(axis, into)]
        part += x[along(axis, of)]
    return out


def _pool_composition(x: Any, windows: AllWindows, divide: float) -> Any:
    _check_written_out(windows)
    for axis, w in enumerate(windows, start=-len(windows)):
        widths = _widths(x, axis, (w.before, max(w.after, 0)))
        padded = pad_constant(x, widths=widths, fill=0) if widths else x
        parts = [getitem_basic(padded, index=index) for index in _tap_indices(x, axis, w)]
        x = functools.reduce(lambda a, b: a + b, parts)
    return _divided(x, divide)


def _check_written_out(windows: AllWindows) -> None:
    if any(w.kernel > _LONGEST for w in windows):
        raise UnsupportedError(f"no native code for windows over more than {_LONGEST} elements")


def _widths(x: Any, axis: int, pad: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Padding along one axis for all axes; nothing if there is none."""
    if pad == (0, 0):
        return ()
    before = len(x.shape) + axis
    return (*((0, 0),) * before, pad, *((0, 0),) * (-axis - 1))


def _tap_indices(x: Any, axis: int, w: Windows) -> list[tuple[Any, ...]]:
    """Per place in the windows, the index of what they see there in the padded array."""
    last = (w.number - 1) * w.stride + 1
    every = (slice(None),) * (len(x.shape) + axis)
    after = (slice(None),) * (-axis - 1)
    starts = (tap * w.dilation for tap in range(w.kernel))
    return [(*every, slice(start, start + last, w.stride), *after) for start in starts]


# ---- the transpose ------------------------------------------------------------------------------


def _spread_forward(xp: Any, x: Any, windows: AllWindows, divide: float) -> Any:
    out = _divided(_wide(x), divide)
    for axis, w in enumerate(windows, start=-len(windows)):
        shape = (*out.shape[:axis], w.size, *out.shape[len(out.shape) + axis + 1 :])
        whole = xp.zeros_like(out, shape=shape)
        for _, of, into in w.parts():
            part = whole[along(axis, into)]
            part += out[along(axis, of)]
        out = whole
    return out.astype(x.dtype, copy=False)


def _spread_composition(x: Any, windows: AllWindows, divide: float) -> Any:
    _check_written_out(windows)
    x = _divided(x, divide)
    for axis, w in enumerate(windows, start=-len(windows)):
        after = max(w.after, 0)
        padded = w.before + w.size + after
        shape = (*x.shape[:axis], padded, *x.shape[len(x.shape) + axis + 1 :])
        parts = [put(x, shape=shape, index=index) for index in _tap_indices(x, axis, w)]
        whole = functools.reduce(lambda a, b: a + b, parts)
        widths = _widths(x, axis, (w.before, after))
        x = crop(whole, widths=widths) if widths else whole
    return x


# d pool(x) = pool(dx); transpose: each number divided over its window
pool_average: Callable[..., Any] = linear(
    "pool_average",
    _pool_forward,
    lambda ct, _out, _x, windows, divide: spread_average(ct, windows=windows, divide=divide),
    infer=lambda x, windows, divide: Aval(
        (*x.shape[: -len(windows)], *(w.number for w in windows)), x.dtype
    ),
    batch=batch_at_front,
    lower=lowered.composite(_pool_composition),
)

spread_average: Callable[..., Any] = linear(
    "spread_average",
    _spread_forward,
    lambda ct, _out, _x, windows, divide: pool_average(ct, windows=windows, divide=divide),
    infer=lambda x, windows, divide: Aval(
        (*x.shape[: -len(windows)], *(w.size for w in windows)), x.dtype
    ),
    batch=batch_at_front,
    lower=lowered.composite(_spread_composition),
)


# ---- powers -------------------------------------------------------------------------------------


def _lp_forward(xp: Any, x: Any, windows: AllWindows, p: float) -> Any:
    wide = _wide(x)
    return (_pool_forward(xp, wide**p, windows, 1) ** (1 / p)).astype(x.dtype, copy=False)


def _lp_composition(x: Any, windows: AllWindows, p: float) -> Any:
    return _pool_composition(x**p, windows, 1) ** (1 / p)


def _steepness(out: Any, p: float) -> Any:
    """out^(1 − p), and 0 where all elements are: the gradient is taken as 0 at that kink."""
    zero = out == 0
    return where(zero, 0, where(zero, 1, out) ** (1 - p))


# out = (Σ x^p)^(1/p): d out = out^(1 − p)·Σ x^(p−1)·dx
lp_pool = general(
    "lp_pool",
    _lp_forward,
    infer=lambda x, windows, p: Aval(
        (*x.shape[: -len(windows)], *(w.number for w in windows)), x.dtype
    ),
    vjps=(
        lambda ct, out, x, windows, p: (
            spread_average(ct * _steepness(out, p), windows=windows, divide=1) * x ** (p - 1)
        ),
    ),
    jvp=lambda tangents, out, x, windows, p: (
        _steepness(out, p) * pool_average(x ** (p - 1) * tangents[0], windows=windows, divide=1)
    ),
    batch=batch_at_front,
    lower=lowered.composite(_lp_composition),
)
