"""Sliding windows over arrays, and convolution of sequences, which is made of them.

Two linear ops, each the transpose of the other: `sliding_windows` reads every window of an array,
`overlap_add` adds windows up where they overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_elementwise
from gradtape.core.define import broadcast_sizes, linear, multilinear, unbroadcast
from gradtape.core.lowering import Composite, Elements, Scatter
from gradtape.core.scalar import Scalar
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axes, normalize_axis
from gradtape.ops.cast import astype, conj_if_complex
from gradtape.ops.checks import check_choice
from gradtape.ops.pad import pad_constant
from gradtape.ops.rearrange import flip
from gradtape.ops.reduce import batch_spread, sum as sum_of
from gradtape.ops.shape import atleast_1d, expand_dims
from gradtape.typing import Array, ArrayLike, Axis

Sizes = tuple[int, ...]


# ---- windows ------------------------------------------------------------------------------------


def _windowed_shape(shape: Sizes, window: Sizes, axis: Sizes) -> Sizes:
    sizes = list(shape)
    for a, size in zip(axis, window, strict=True):
        sizes[a] -= size - 1
    return (*sizes, *window)


def _places(i: Sequence[Scalar], axis: Sizes) -> list[Scalar]:
    """The place of an element of a window in the array: the window's start plus its own place."""
    count = len(i) - len(axis)
    places = list(i[:count])
    for own, a in zip(i[count:], axis, strict=True):
        places[a] = places[a] + own
    return places


# d windows(x) = windows(dx); transpose: add up where they overlap
sliding_windows: Callable[..., Any] = linear(
    "sliding_windows",
    lambda xp, x, window, axis: xp.lib.stride_tricks.sliding_window_view(x, window, axis),
    lambda ct, _out, _x, window, axis: overlap_add(ct, shape=_x.shape, window=window, axis=axis),
    infer=lambda x, window, axis: Aval(_windowed_shape(x.shape, window, axis), x.dtype),
    aliases=True,
    lower=Elements(lambda i, x, window, axis: x(*_places(i, axis))),
)


def _overlap_forward(xp: Any, x: Any, shape: Sizes, window: Sizes, axis: Sizes) -> Any:
    out = xp.zeros(shape, x.dtype)
    for own in np.ndindex(*window):
        starts = [0] * len(shape)
        for a, step in zip(axis, own, strict=True):
            starts[a] += step  # an axis may be named several times
        place = tuple(slice(k, k + n) for k, n in zip(starts, x.shape, strict=False))
        out[place] += x[(Ellipsis, *own)]
    return out


overlap_add: Callable[..., Any] = linear(
    "overlap_add",
    _overlap_forward,
    lambda ct, _out, _x, shape, window, axis: sliding_windows(ct, window=window, axis=axis),
    infer=lambda x, shape, window, axis: Aval(shape, x.dtype),
    batch=batch_spread,
    lower=Scatter(
        lambda x, shape, window, axis: (x.shape, ()),
        lambda i, x, shape, window, axis: (_places(i, axis), x(*i)),
        adds=True,
    ),
)


def sliding_window_view(
    x: ArrayLike, /, window_shape: int | Sequence[int], axis: Axis = None
) -> Array:
    """All windows of an array, along new last axes; of a tensor it is a copy that records.

    Args:
        x: What to look at.
        window_shape: The size of the window, for each axis it slides along.
        axis: The axes it slides along; None for all of them.

    Raises:
        ArgumentError: The numbers of sizes and axes differ, or a size is negative.
        ShapeError: A window is larger than the array.

    >>> gt.sliding_window_view(np.array([1.0, 2.0, 3.0]), 2)
    array([[1., 2.],
           [2., 3.]])
    """
    x = as_array(x)
    sizes = tuple(window_shape) if isinstance(window_shape, Sequence) else (window_shape,)
    axes = _slid_axes(axis, len(x.shape))
    if len(sizes) != len(axes) or min(sizes, default=0) < 0:
        raise ArgumentError(
            f"sliding_window_view: got window_shape {window_shape} for axes {axes}, expected a "
            "size from 0 for each of them"
        )
    if any(size > x.shape[a] for size, a in zip(sizes, axes, strict=True)):
        raise ShapeError(f"sliding_window_view: got a window of {sizes} on shape {x.shape}")
    return sliding_windows(x, window=sizes, axis=axes)


def _slid_axes(axis: Axis, ndim: int) -> Sizes:
    if isinstance(axis, Sequence):  # an axis may be named several times
        return tuple(normalize_axis(a, ndim, "sliding_window_view") for a in axis)
    return normalize_axes(axis, ndim, "sliding_window_view")


# ---- convolution --------------------------------------------------------------------------------

# One bilinear op: out[k] = Σ_j x[k − j]·y[j] for k from `start` to `stop`, where x and y are 0
# outside; along the last axes, others broadcast. Its transposes are parts of the same op.


def _convolve_forward(xp: Any, x: Any, y: Any, start: int, stop: int) -> Any:
    if x.ndim == y.ndim == 1:
        n, m = sorted((x.size, y.size))
        if (start, stop) == (n - 1, m):
            return xp.convolve(x, y, "valid")
        return xp.convolve(x, y)[start:stop]
    none = ((0, 0),) * (x.ndim - 1)
    m = y.shape[-1]
    padded = xp.pad(x, (*none, _around(x, y, start, stop)))
    windows = xp.lib.stride_tricks.sliding_window_view(padded, m, -1)
    return xp.einsum("...km,...m->...k", windows, y[..., ::-1])


def _around(x: Any, y: Any, start: int, stop: int) -> tuple[int, int]:
    """How many zeros are needed at the ends of x for its windows, as long as y, to give a part."""
    return y.shape[-1] - 1 - start, stop - x.shape[-1]


def _convolve_composition(x: Any, y: Any, start: int, stop: int) -> Any:
    none = ((0, 0),) * (len(x.shape) - 1)
    padded = pad_constant(x, widths=(*none, _around(x, y, start, stop)), fill=0)
    windows = sliding_windows(padded, window=(y.shape[-1],), axis=(len(x.shape) - 1,))
    product = windows * expand_dims(flip(y, -1), -2)
    return astype(sum_of(product, axis=-1), product.dtype, copy=False)


def _infer_convolve(x: Aval, y: Aval, start: int, stop: int) -> Aval:
    shape = broadcast_sizes(x.shape[:-1], y.shape[:-1])
    return Aval((*shape, stop - start), np.result_type(x.dtype, y.dtype))


def _convolve_transpose(ct: Any, x: Any, y: Any, start: int) -> Any:
    # ct_x[i] = Σ_k ct[k]·ȳ[k − i]: a part of the convolution with the reversed y
    first = y.shape[-1] - 1 - start
    flipped = conj_if_complex(flip(y, -1))
    return unbroadcast(convolve_part(ct, flipped, start=first, stop=first + x.shape[-1]), x.shape)


convolve_part: Callable[..., Any] = multilinear(
    "convolve_part",
    _convolve_forward,
    lambda ct, _out, _x, y, start, stop: _convolve_transpose(ct, _x, y, start),
    lambda ct, _out, x, _y, start, stop: _convolve_transpose(ct, _y, x, start),
    infer=_infer_convolve,
    batch=batch_elementwise,
    kind="contraction",
    lower=Composite(_convolve_composition),
)


def _sequences(name: str, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    x, y = atleast_1d(as_array(x)), atleast_1d(as_array(y))
    if len(x.shape) != 1 or len(y.shape) != 1 or 0 in (*x.shape, *y.shape):
        raise ShapeError(
            f"{name}: got shapes {x.shape} and {y.shape}, expected one axis with at least one "
            "element; use gt.scipy.signal for more axes"
        )
    return x, y


def _mode(name: str, mode: Any) -> str:
    names = {0: "valid", 1: "same", 2: "full", "v": "valid", "s": "same", "f": "full"}
    chosen = names.get(mode, mode)
    check_choice(name, ("full", "same", "valid"), mode=chosen)
    return str(chosen)


def convolve(x: ArrayLike, y: ArrayLike, /, mode: str = "full") -> Array:
    """Convolution of two sequences: out[k] = Σ x[k - j]·y[j].

    Args:
        x: A sequence.
        y: Another one.
        mode: "full" for all places where they overlap, "same" for as many as the longer one has,
            "valid" for where they overlap in full.

    Raises:
        ShapeError: They have not one axis, or no elements.
        ArgumentError: `mode` is something else.

    >>> gt.convolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]))
    array([1., 3., 5., 3.])
    """
    x, y = _sequences("convolve", x, y)
    shorter, longer = sorted((x.shape[0], y.shape[0]))
    start, stop = {
        "full": (0, shorter + longer - 1),
        "same": ((shorter - 1) // 2, (shorter - 1) // 2 + longer),
        "valid": (shorter - 1, longer),
    }[_mode("convolve", mode)]
    return convolve_part(x, y, start=start, stop=stop)


def correlate(x: ArrayLike, y: ArrayLike, /, mode: str = "valid") -> Array:
    """Correlation of two sequences: out[k] = Σ x[k + j]·conj(y[j]).

    Args:
        x: A sequence.
        y: Another one.
        mode: "full" for all places where they overlap, "same" for as many as the longer one has,
            "valid" for where they overlap in full.

    Raises:
        ShapeError: They have not one axis, or no elements.
        ArgumentError: `mode` is something else.

    >>> gt.correlate(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0]))
    array([2., 3.])
    """
    x, y = _sequences("correlate", x, y)
    mode = _mode("correlate", mode)
    if mode == "same" and y.shape[0] > x.shape[0]:
        # The longer one moves along the shorter: the middle lies half a step to the other side.
        start = x.shape[0] // 2
        return convolve_part(x, conj_if_complex(flip(y)), start=start, stop=start + y.shape[0])
    return convolve(x, conj_if_complex(flip(y)), mode)
