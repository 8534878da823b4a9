"""Padding and its transpose, cropping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import functions, general, linear, public
from gradtape.core.lowering import Elements, Reader
from gradtape.core.op import Op
from gradtape.core.scalar import Scalar
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.ops import lowered
from gradtape.ops.arguments import Batch, as_array, refuse
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
    out.fill(fill)
    out[_inner(shape, widths)] = x
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
)

_MODES = {
    "edge": "edge",
    "replicate": "edge",
    "reflect": "reflect",
    "symmetric": "symmetric",
    "wrap": "wrap",
    "circular": "wrap",
}


@public(np.pad)
def pad(
    x: ArrayLike,
    /,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    **unsupported: Any,
) -> Array:
    """The array with elements added at the ends of its axes.

    Args:
        x: What to pad.
        pad_width: How many: one number, (before, after), or one such pair for each axis.
        mode: What to fill in: "constant", "edge" (the last element, also "replicate"), "reflect"
            (mirrored without it), "symmetric" (with it), "wrap" (from the other end, "circular").
        constant_values: The constant, in the same forms as `pad_width`.
        **unsupported: Further options of NumPy, which raise.

    Raises:
        ShapeError: `pad_width` does not fit the array.
        UnsupportedError: The mode or an option is not one of those above.
        ArgumentError: A number in `pad_width` is negative.

    >>> gt.pad(np.array([1.0, 2.0]), (1, 2))
    array([0., 1., 2., 0., 0.])
    """
    refuse("pad", unsupported)
    x = as_array(x)
    ndim = len(x.shape)
    widths = _pairs(pad_width, ndim, "pad_width")
    if any(before < 0 or after < 0 for before, after in widths):
        raise ArgumentError(f"pad: came pad_width {pad_width}; needed none below 0; index to crop")
    if mode == "constant":
        return _pad_axes(x, widths, _pairs(constant_values, ndim, "constant_values"))
    if mode not in _MODES:
        raise UnsupportedError(f"pad: came mode {mode!r}; needed 'constant' or one of {[*_MODES]}")
    for axis, width in enumerate(widths):
        if width != (0, 0):
            x = functions["take"](x, _sources(x.shape[axis], width, mode), axis=axis)
    return x


def _pairs(values: Any, ndim: int, name: str) -> tuple[tuple[Any, Any], ...]:
    """One pair of numbers for each axis."""
    if isinstance(values, int):
        return ((values, values),) * ndim
    try:
        pairs = np.broadcast_to(np.asarray(values), (ndim, 2))
    except ValueError:
        raise ShapeError(
            f"pad: came {name} {values} for an array of {ndim} axes; needed a number, "
            "(before, after), or one pair for each axis"
        ) from None
    if name == "pad_width" and pairs.dtype.kind not in "iu":
        raise ArgumentError(f"pad: came {name} {values}; needed integers")
    return tuple((before, after) for before, after in pairs.tolist())


def _pad_axes(x: Array, widths: Widths, values: Any) -> Array:
    """Padding with constants: at once if it is one constant, else axis by axis as NumPy does."""
    constants = {value for pair in values for value in pair}
    if len(constants) <= 1:
        return pad_constant(x, widths=widths, fill=constants.pop() if constants else 0)
    none = ((0, 0),) * len(widths)
    for axis, ((before, after), fills) in enumerate(zip(widths, values, strict=True)):
        for width, fill in zip(((before, 0), (0, after)), fills, strict=True):
            x = pad_constant(x, widths=(*none[:axis], width, *none[axis + 1 :]), fill=fill)
    return x


def _sources(size: int, width: tuple[int, int], mode: str) -> Any:
    """Which element of an axis stands at each place of the padded axis."""
    if size == 0:
        raise ShapeError(f"pad: came an axis of size 0; mode {mode!r} has nothing to take from it")
    return np.pad(np.arange(size), width, mode=_MODES[mode])  # type: ignore[call-overload]
