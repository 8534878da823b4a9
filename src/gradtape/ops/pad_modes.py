"""`gt.pad` with all of NumPy's modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.lazy import Deferred
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_choice, check_least
from gradtape.ops.creation import asarray
from gradtape.ops.gather import take
from gradtape.ops.index import part_of
from gradtape.ops.join import concatenate
from gradtape.ops.joined import holds_tensor
from gradtape.ops.pad import Widths, along, pad_constant
from gradtape.ops.reduce import max as max_of, mean as mean_of, min as min_of
from gradtape.ops.rounding import floor, round as round_of
from gradtape.ops.shape import broadcast_to
from gradtape.typing import Array, ArrayLike

# Modes that repeat elements of the array itself, and NumPy's names for them.
_TAKES = {
    "edge": "edge",
    "replicate": "edge",
    "reflect": "reflect",
    "symmetric": "symmetric",
    "wrap": "wrap",
    "circular": "wrap",
}
_STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": max_of,
    "mean": mean_of,
    "median": Deferred("gradtape.ops.arrays.median:median"),
    "minimum": min_of,
}
_MODES = ("constant", "empty", "linear_ramp", *_STATISTICS, *_TAKES)
# Options, their defaults, and the modes that have them.
_OPTIONS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "constant_values": (0, ("constant",)),
    "end_values": (0, ("linear_ramp",)),
    "stat_length": (None, tuple(_STATISTICS)),
    "reflect_type": ("even", ("reflect", "symmetric")),
}


def pad(
    x: ArrayLike,
    /,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: str = "even",
) -> Array:
    """The array with elements added at the ends of its axes.

    Args:
        x: What to pad.
        pad_width: How many: one number, (before, after), one such pair for each axis, or a dict
            from axes to them.
        mode: What to fill in: "constant", "edge" (the last element, also "replicate"), "reflect"
            (mirrored without it), "symmetric" (with it), "wrap" (from the other end, "circular"),
            "linear_ramp" (from the last element to a constant), "maximum", "mean", "median",
            "minimum" (of the elements next to it), "empty" (anything: here zeros).
        constant_values: The constant, in the same forms as `pad_width` but a dict; the result has
            a gradient by it if it is a tensor.
        end_values: Where linear ramps end, likewise.
        stat_length: How many elements the maximum, mean, … is taken of, likewise; None for all.
        reflect_type: "odd" continues the mirrored elements so that they go through the edge: twice
            the edge minus them.

    Raises:
        ShapeError: `pad_width` does not fit the array, or there is nothing to fill in.
        UnsupportedError: The mode is a function, or not one of those above.
        ArgumentError: A number in `pad_width` is negative, or an option belongs to another mode.

    >>> gt.pad(np.array([1.0, 2.0]), (1, 2))
    array([0., 1., 2., 0., 0.])
    >>> gt.pad(np.array([1.0, 2.0, 6.0]), 2, "mean")
    array([3., 3., 1., 2., 6., 3., 3.])
    """
    given = (constant_values, end_values, stat_length, reflect_type)
    _check_mode(mode, dict(zip(_OPTIONS, given, strict=True)))
    x = as_array(x)
    ndim = len(x.shape)
    widths = _pairs(_by_axis(pad_width, ndim), ndim, "pad_width")
    if any(before < 0 or after < 0 for before, after in widths):
        raise ArgumentError(f"pad: got pad_width {pad_width}, expected none below 0; index to crop")
    if mode == "constant":
        return _pad_axes(x, widths, _pairs(constant_values, ndim, "constant_values"))
    if mode == "empty":
        return pad_constant(x, widths=widths, fill=0)
    ramps = _pairs(end_values, ndim, "end_values")
    lengths = _pairs(stat_length, ndim, "stat_length")
    for axis, width in enumerate(widths):
        if width == (0, 0):
            continue
        if x.shape[axis] == 0:
            raise ShapeError(
                f"pad: got an axis of size 0; mode {mode!r} has nothing to take from it"
            )
        if mode == "linear_ramp":
            x = _between(_ramps(x, axis, width, ramps[axis]), x, axis, width)
        elif mode in _STATISTICS:
            x = _between(_statistics(x, axis, lengths[axis], mode), x, axis, width)
        elif reflect_type == "odd" and x.shape[axis] > 1:
            x = _odd(x, axis, width, mode)
        else:
            x = take(x, _sources(x.shape[axis], width, mode), axis=axis)
    return x


def _check_mode(mode: Any, options: dict[str, Any]) -> None:
    if callable(mode):
        raise UnsupportedError(
            "pad: got a function as mode, which writes into arrays; use mode='constant', and "
            "write into the result"
        )
    if mode not in _MODES:
        raise UnsupportedError(f"pad: got mode {mode!r}, expected one of {', '.join(_MODES)}")
    for name, value in options.items():
        default, modes = _OPTIONS[name]
        if value is not default and mode not in modes:
            raise ArgumentError(
                f"pad: got {name}= with mode {mode!r}; it belongs to {', '.join(modes)}"
            )
    check_choice("pad", ("even", "odd"), reflect_type=options["reflect_type"])


def _by_axis(values: Any, ndim: int) -> Any:
    """Widths that may be given for single axes, as pairs for all of them."""
    if not isinstance(values, dict):
        return values
    pairs: list[Any] = [(0, 0)] * ndim
    for axis, width in values.items():
        both = width if isinstance(width, Sequence) else (width, width)
        pairs[normalize_axis(axis, ndim, "pad")] = both
    return pairs


def _pairs(values: Any, ndim: int, name: str) -> tuple[tuple[Any, Any], ...]:
    """One pair of numbers for each axis."""
    if type(values) is int or (values is None and name == "stat_length"):
        return ((values, values),) * ndim
    counts = name in ("pad_width", "stat_length")
    values = asarray(values) if not counts and holds_tensor(values) else as_array(values)
    if values.dtype.kind not in ("iu" if counts else "biufcV"):
        raise ArgumentError(
            f"pad: got {name} of {values.dtype}, expected {'integers' if counts else 'numbers'}"
        )
    try:
        pairs = broadcast_to(values, (ndim, 2))
    except ShapeError:
        raise ShapeError(
            f"pad: got {name} of shape {values.shape} for an array of {ndim} axes, expected a "
            "number, (before, after), or one pair for each axis"
        ) from None
    if isinstance(pairs, Tensor) and not counts:
        return tuple((pairs[axis, 0], pairs[axis, 1]) for axis in range(ndim))
    return tuple((before, after) for before, after in pairs.tolist())


def _pad_axes(x: Array, widths: Widths, values: Any) -> Array:
    """Padding with constants: at once if it is one constant, else axis by axis as NumPy does."""
    if values and isinstance(values[0][0], Tensor):  # then all of them are
        return _pad_with_tensors(x, widths, values)
    constants = {value for pair in values for value in pair}
    if len(constants) <= 1:
        return pad_constant(x, widths=widths, fill=constants.pop() if constants else 0)
    for axis, ((before, after), fills) in enumerate(zip(widths, values, strict=True)):
        for width, fill in zip(((before, 0), (0, after)), fills, strict=True):
            x = pad_constant(x, widths=along(axis, len(widths), *width), fill=fill)
    return x


def _pad_with_tensors(x: Array, widths: Widths, values: Any) -> Array:
    """Padding with constants that have a gradient, axis by axis."""
    for axis, (width, fills) in enumerate(zip(widths, values, strict=True)):
        if width != (0, 0):
            x = _between(fills, x, axis, width)
    return x


# ---- what is taken of the array, along one axis -------------------------------------------------


def _sources(size: int, width: tuple[int, int], mode: str) -> Any:
    """Which element of an axis stands at each place of the padded axis."""
    return np.pad(np.arange(size), width, mode=_TAKES[mode])  # type: ignore[call-overload]


def _odd(x: Array, axis: int, width: tuple[int, int], mode: str) -> Array:
    """The array mirrored at its edges, values reflected about the edge, again and again.

    Two mirrorings make a period; from one to the next, everything grows by 2·(last − first), and
    within one, the mirrored half is 2·last minus what it mirrors.
    """
    size = x.shape[axis]
    half = size if mode == "symmetric" else size - 1
    place = np.arange(-width[0], size + width[1])
    periods, within = np.divmod(place, 2 * half)
    mirrored = within >= size
    column = (-1, *(1,) * (len(x.shape) - axis - 1))
    grown = (2 * periods).astype(x.dtype).reshape(column)
    turned = np.where(mirrored, 2, 0).astype(x.dtype).reshape(column)
    sign = np.where(mirrored, -1, 1).astype(x.dtype).reshape(column)
    taken = take(x, _sources(size, width, mode), axis=axis)
    first, last = (part_of(x, n, n + 1, axis=axis) for n in (0, size - 1))
    return sign * taken + turned * last + grown * (last - first)


def _ramps(x: Array, axis: int, width: tuple[int, int], ends: tuple[Any, Any]) -> list[Array]:
    """Steps of equal size from the ends to the last elements, which are not repeated."""
    edges = part_of(x, 0, 1, axis=axis), part_of(x, -1, axis=axis)
    column = (-1, *(1,) * (len(x.shape) - axis - 1))
    ramps = []
    for edge, end, count, step in zip(edges, ends, width, (1, -1), strict=True):
        share = (np.arange(count) / max(count, 1))[::step].reshape(column)
        if x.dtype.kind == "f":
            share = share.astype(x.dtype)
        ramp = end + (edge - end) * share
        ramps.append(floor(ramp) if x.dtype.kind in "iu" else ramp)
    return ramps


def _statistics(x: Array, axis: int, lengths: tuple[Any, Any], mode: str) -> list[Array]:
    """The maximum, mean, … of the elements next to each end."""
    size = x.shape[axis]
    counts = [size if length is None else min(length, size) for length in lengths]
    check_least("pad", 1, stat_length=min(counts))
    parts = part_of(x, 0, counts[0], axis=axis), part_of(x, -counts[1], axis=axis)
    ends = [_STATISTICS[mode](part, axis=axis, keepdims=True) for part in parts]
    return [round_of(end) for end in ends] if x.dtype.kind in "iu" else ends


def _between(ends: Sequence[Array], x: Array, axis: int, width: tuple[int, int]) -> Array:
    """The array with two others before and after it, repeated as often as needed."""
    shapes = [(*x.shape[:axis], count, *x.shape[axis + 1 :]) for count in width]
    ends = [broadcast_to(*end) for end in zip(ends, shapes, strict=True)]
    before, after = (astype(end, x.dtype) for end in ends)
    return concatenate([before, x, after], axis=axis)
