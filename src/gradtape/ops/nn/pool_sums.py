"""The ops of pooling by sums: averages and powers over windows that move over an array.

Averaging is linear. Its transpose spreads each number over its window: the same op with `back`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.define import general, linear
from gradtape.core.lowering import Composite, Elements, Reader
from gradtape.core.op import Op
from gradtape.core.scalar import Scalar
from gradtape.ops import lowered
from gradtape.ops.cast import astype
from gradtape.ops.nn.window_elements import (
    AllWindows,
    by_small_windows,
    infer_windows,
    seen_by,
    seen_from,
    seen_in_windows,
)
from gradtape.ops.nn.windows import Shares, Windows, along
from gradtape.ops.select import where


def _divided(x: Any, divide: float) -> Any:
    return x if divide == 1 else x / divide


def _wide(x: Any) -> Any:
    """The array in a dtype that sums can be computed in."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


# ---- on arrays ----------------------------------------------------------------------------------


def _average_forward(xp: Any, x: Any, windows: AllWindows, divide: float, back: bool) -> Any:
    wide = _divided(_wide(x), divide) if back else _wide(x)
    out = _sums_forward(xp, wide, windows, back)
    return (out if back else _divided(out, divide)).astype(x.dtype, copy=False)


def _sums_forward(xp: Any, x: Any, windows: AllWindows, back: bool) -> Any:
    """Sums over windows; or backwards, over the windows that see an element."""
    for axis, w in enumerate(windows, start=-len(windows)):
        if w is not None:
            x = _sums_along(xp, x, axis, w, back)
    return x


def _sums_along(xp: Any, x: Any, axis: int, w: Windows | Shares, back: bool) -> Any:
    count = w.size if back else w.number
    # Laid out as `x` is.
    out = xp.zeros_like(x, shape=(*x.shape[:axis], count, *x.shape[x.ndim + axis + 1 :]))
    for _, into, of in w.parts():
        into, of = (of, into) if back else (into, of)
        part = out[along(axis, into)]
        part += x[along(axis, of)]
    return out


# ---- one element of either ----------------------------------------------------------------------


def _window_element(i: Sequence[Any], x: Reader, windows: AllWindows, back: bool) -> Scalar:
    seen = seen_in_windows(i, windows, seen_from if back else seen_by)
    return functools.reduce(operator.add, [lowered.read_or(0, x, *element) for element in seen])


# Only compiled functions know it: sums over windows, or over those that see an element.
_WINDOW_SUM = Op(
    "window_sum",
    _sums_forward,
    infer_windows,
    lower=Elements(_window_element, often=True),
)


# d pool(x) = pool(dx); transpose: each number divided over its window
pool_average: Callable[..., Any] = linear(
    "pool_average",
    _average_forward,
    lambda ct, _out, _x, back, **params: pool_average(ct, back=not back, **params),
    infer=infer_windows,
    kind="planewise",
    lower=Composite(
        lambda x, divide, **params: _divided(by_small_windows(_WINDOW_SUM, x, **params), divide)
    ),
)


def _pooled(x: Any, windows: AllWindows, back: bool = False) -> Any:
    """Sums over windows; or backwards, over the windows that see an element."""
    return pool_average(x, windows=windows, divide=1, back=back)


# ---- powers -------------------------------------------------------------------------------------


def _lp_forward(xp: Any, x: Any, windows: AllWindows, p: float) -> Any:
    powers = _sums_forward(xp, _wide(x) ** p, windows, back=False)
    return (powers ** (1 / p)).astype(x.dtype, copy=False)


def _steepness(out: Any, p: float) -> Any:
    """out^(1 − p), and 0 where all elements are: the gradient is taken as 0 at that kink."""
    zero = out == 0
    return where(zero, 0, where(zero, 1, out) ** (1 - p))


def _slopes(x: Any, out: Any, windows: AllWindows, p: float) -> Any:
    """x^(p − 1), which for p < 2 has no slope at 0: none where all windows of an element are 0."""
    if not 1 < p < 2:
        return x ** (p - 1)
    idle = _pooled(astype(out != 0, x.dtype), windows, back=True) == 0
    return where(idle, 0, where(idle, 1, x) ** (p - 1))


# out = (Σ x^p)^(1/p): d out = out^(1 − p)·Σ x^(p−1)·dx
lp_pool = general(
    "lp_pool",
    _lp_forward,
    infer=infer_windows,
    vjps=(
        lambda ct, out, x, windows, p: (
            _pooled(ct * _steepness(out, p), windows, back=True) * _slopes(x, out, windows, p)
        ),
    ),
    jvp=lambda tangents, out, x, windows, p: (
        _steepness(out, p) * _pooled(_slopes(x, out, windows, p) * tangents[0], windows)
    ),
    kind="planewise",
    lower=Composite(
        lambda x, windows, p: by_small_windows(_WINDOW_SUM, x**p, windows, back=False) ** (1 / p)
    ),
)
