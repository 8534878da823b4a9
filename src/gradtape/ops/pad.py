"""Padding and its transpose, cropping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call
from gradtape.core.copies import copy_into
from gradtape.core.define import functions, general, linear, public
from gradtape.core.lowering import Elements, Reader
from gradtape.core.op import Op
from gradtape.core.scalar import Scalar
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.ops import lowered
from gradtape.ops.arguments import Batch, as_array, normalize_axis, refuse
from gradtape.typing import Array, ArrayLike

# Sizes to add or cut off, (before, after) for each axis.
Widths = tuple[tuple[int, int], ...]


def _inner(shape: tuple[int, ...], widths: Widths) -> tuple[slice, ...]:
    """The index of what is left of `shape` when `widths` are cut off."""
    return tuple(slice(before, n - after) for n, (before, after) in zip(shape, widths, strict=True))


def _batch_widths(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    x = move_batch_axis(args[0], axes[0])
    return call(op, (x,), {**params, "widths": ((0, 0), *params["widths"])}), 0


def _infer_crop(x: Aval, widths: Widths) -> Aval:
    return Aval(tuple(n - b - a for n, (b, a) in zip(x.shape, widths, strict=True)), x.dtype)


# d crop(x) = crop(dx); transpose: pad with zeros
crop = linear(
    "crop",
    lambda xp, x, widths: x[_inner(x.shape, widths)],
    lambda ct, _out, _x, widths: pad_constant(ct, widths=widths, fill=0),
    infer=_infer_crop,
    batch=_batch_widths,
    aliases=True,
    lower=Elements(lambda i, x, widths: x(*(k + b for k, (b, _) in zip(i, widths, strict=True)))),
)


def _pad(xp: Any, x: Any, widths: Widths, fill: Any) -> Any:
    shape = tuple(n + b + a for n, (b, a) in zip(x.shape, widths, strict=True))
    out = xp.empty(shape, x.dtype)
    inner = _inner(shape, widths)
    out.fill(fill)
    out[inner] = x
    return out


def _pad_around(x: Any, widths: Widths, fill: Any) -> Any:
    """The same with only the border filled, and the rest copied on all threads."""
    shape = tuple(n + b + a for n, (b, a) in zip(x.shape, widths, strict=True))
    out: Any = np.empty(shape, x.dtype)
    for axis, (before, after) in enumerate(widths):
        whole = (slice(None),) * axis
        out[(*whole, slice(before))] = fill
        out[(*whole, slice(shape[axis] - after, None))] = fill
    copy_into(out[_inner(shape, widths)], x)
    return out


def _pad_element(i: Sequence[Scalar], x: Reader, widths: Widths, fill: Any) -> Scalar:
    inner = [k - before for k, (before, _) in zip(i, widths, strict=True)]
    inside = lowered.both(
        *(
            lowered.between(k, before, before + n, before + n + after)
            for k, n, (before, after) in zip(i, x.aval.shape, widths, strict=True)
        )
    )
    return lowered.read_or(scalar.constant(fill, x.aval.dtype), x, inner, inside)


# pad(x + dx) = pad(x) + pad(dx) with zeros around dx; transpose: crop
pad_constant: Callable[..., Any] = general(
    "pad",
    _pad,
    infer=lambda x, widths, fill: Aval(
        tuple(n + b + a for n, (b, a) in zip(x.shape, widths, strict=True)), x.dtype
    ),
    vjps=(lambda ct, _out, _x, widths, fill: crop(ct, widths=widths),),
    jvp=lambda tangents, _out, _x, widths, fill: pad_constant(tangents[0], widths=widths, fill=0),
    batch=_batch_widths,
    lower=Elements(_pad_element),
    composed=_pad_around,
)

# ---- modes --------------------------------------------------------------------------------------

# What takes elements of the array itself, and what NumPy calls it.
_TAKES = {
    "edge": "edge",
    "replicate": "edge",
    "reflect": "reflect",
    "symmetric": "symmetric",
    "wrap": "wrap",
    "circular": "wrap",
}
_STATISTICS = ("maximum", "mean", "median", "minimum")
_MODES = ("constant", "empty", "linear_ramp", *_STATISTICS, *_TAKES)
# Options, what they are if nothing is said, and the modes that have them.
_OPTIONS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "constant_values": (0, ("constant",)),
    "end_values": (0, ("linear_ramp",)),
    "stat_length": (None, _STATISTICS),
    "reflect_type": ("even", ("reflect", "symmetric")),
}


@public(np.pad)
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
    **unsupported: Any,
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
        **unsupported: Further options, which raise.

    Raises:
        ShapeError: `pad_width` does not fit the array, or there is nothing to fill in.
        UnsupportedError: The mode is a function, or not one of those above.
        ArgumentError: A number in `pad_width` is negative, or an option belongs to another mode.

    >>> gt.pad(np.array([1.0, 2.0]), (1, 2))
    array([0., 1., 2., 0., 0.])
    >>> gt.pad(np.array([1.0, 2.0, 6.0]), 2, "mean")
    array([3., 3., 1., 2., 6., 3., 3.])
    """
    refuse("pad", unsupported)
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
            x = _between(_ramps(x, axis, width, ramps[axis]), x, axis)
        elif mode in _STATISTICS:
            x = _between(_statistics(x, axis, width, lengths[axis], mode), x, axis)
        elif reflect_type == "odd" and x.shape[axis] > 1:
            x = _odd(x, axis, width, mode)
        else:
            x = functions["take"](x, _sources(x.shape[axis], width, mode), axis=axis)
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
    if options["reflect_type"] not in ("even", "odd"):
        raise ArgumentError(
            f"pad: got reflect_type {options['reflect_type']!r}, expected 'even' or 'odd'"
        )


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
    if not counts and _holds_tensor(values):
        values = functions["asarray"](values)
    else:
        values = as_array(values)
    if values.dtype.kind not in ("iu" if counts else "biufcV"):
        raise ArgumentError(
            f"pad: got {name} of {values.dtype}, expected {'integers' if counts else 'numbers'}"
        )
    try:
        pairs = functions["broadcast_to"](values, (ndim, 2))
    except ShapeError:
        raise ShapeError(
            f"pad: got {name} of shape {values.shape} for an array of {ndim} axes, expected a "
            "number, (before, after), or one pair for each axis"
        ) from None
    if isinstance(pairs, Tensor) and not counts:
        return tuple((pairs[axis, 0], pairs[axis, 1]) for axis in range(ndim))
    return tuple((before, after) for before, after in pairs.tolist())


def _holds_tensor(values: Any) -> bool:
    """Whether there is a tensor among numbers in lists, by which the result has a gradient."""
    if isinstance(values, list | tuple):
        return any(map(_holds_tensor, values))
    return isinstance(values, Tensor)


def _pad_axes(x: Array, widths: Widths, values: Any) -> Array:
    """Padding with constants: at once if it is one constant, else axis by axis as NumPy does."""
    if values and isinstance(values[0][0], Tensor):  # then all of them are
        return _pad_with_tensors(x, widths, values)
    constants = {value for pair in values for value in pair}
    if len(constants) <= 1:
        return pad_constant(x, widths=widths, fill=constants.pop() if constants else 0)
    none = ((0, 0),) * len(widths)
    for axis, ((before, after), fills) in enumerate(zip(widths, values, strict=True)):
        for width, fill in zip(((before, 0), (0, after)), fills, strict=True):
            x = pad_constant(x, widths=(*none[:axis], width, *none[axis + 1 :]), fill=fill)
    return x


def _pad_with_tensors(x: Array, widths: Widths, values: Any) -> Array:
    """Padding with constants that have a gradient, axis by axis."""
    for axis, (width, fills) in enumerate(zip(widths, values, strict=True)):
        if width == (0, 0):
            continue
        shapes = [(*x.shape[:axis], count, *x.shape[axis + 1 :]) for count in width]
        ends = [functions["broadcast_to"](*end) for end in zip(fills, shapes, strict=True)]
        x = _between(ends, x, axis)
    return x


# ---- what is taken of the array, along one axis -------------------------------------------------


def _sources(size: int, width: tuple[int, int], mode: str) -> Any:
    """Which element of an axis stands at each place of the padded axis."""
    return np.pad(np.arange(size), width, mode=_TAKES[mode])  # type: ignore[call-overload]


def _odd(x: Array, axis: int, width: tuple[int, int], mode: str) -> Array:
    """Mirrored, and turned round at the edges, again and again.

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
    taken = functions["take"](x, _sources(size, width, mode), axis=axis)
    first, last = (_part(x, axis, slice(n, n + 1)) for n in (0, size - 1))
    return sign * taken + turned * last + grown * (last - first)


def _ramps(x: Array, axis: int, width: tuple[int, int], ends: tuple[Any, Any]) -> list[Array]:
    """Steps of equal size from the ends to the last elements, which are not repeated."""
    edges = (_part(x, axis, slice(0, 1)), _part(x, axis, slice(x.shape[axis] - 1, None)))
    column = (-1, *(1,) * (len(x.shape) - axis - 1))
    ramps = []
    for edge, end, count, step in zip(edges, ends, width, (1, -1), strict=True):
        share = (np.arange(count) / max(count, 1))[::step].reshape(column)
        if x.dtype.kind == "f":
            share = share.astype(x.dtype)
        ramp = end + (edge - end) * share
        ramps.append(functions["floor"](ramp) if x.dtype.kind in "iu" else ramp)
    return ramps


def _statistics(
    x: Array, axis: int, width: tuple[int, int], lengths: tuple[Any, Any], mode: str
) -> list[Array]:
    """The maximum, mean, … of the elements next to each end, as often as needed."""
    size = x.shape[axis]
    reduce = functions[{"maximum": "max", "minimum": "min"}.get(mode, mode)]
    counts = [size if length is None else min(length, size) for length in lengths]
    if min(counts) <= 0:
        raise ArgumentError(f"pad: got stat_length {lengths}, expected one element or more")
    parts = (_part(x, axis, slice(0, counts[0])), _part(x, axis, slice(size - counts[1], None)))
    ends = []
    for part, count in zip(parts, width, strict=True):
        value = reduce(part, axis=axis, keepdims=True)
        if x.dtype.kind in "iu":
            value = functions["round"](value)
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        ends.append(functions["broadcast_to"](value, shape))
    return ends


def _part(x: Array, axis: int, part: slice) -> Array:
    index = (*(slice(None),) * axis, part)
    return x[index]


def _between(ends: list[Array], x: Array, axis: int) -> Array:
    """The array with something before and after it, in its own dtype."""
    before, after = (functions["astype"](end, x.dtype) for end in ends)
    return functions["concatenate"]([before, x, after], axis=axis)
