"""Padding and its transpose, cropping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import batch_first
from gradtape.core.copies import copy_into
from gradtape.core.define import general, linear
from gradtape.core.lowering import Elements, Reader
from gradtape.core.op import EVERY, Facts
from gradtape.core.scalar import Scalar
from gradtape.ops import lowered

# Sizes to add or cut off, (before, after) for each axis.
Widths = tuple[tuple[int, int], ...]


def _inner(shape: tuple[int, ...], widths: Widths) -> tuple[slice, ...]:
    """The index of the part of `shape` that remains when `widths` are cut off."""
    return tuple(slice(before, n - after) for n, (before, after) in zip(shape, widths, strict=True))


_batch_widths = batch_first(lambda size, widths, **_fill: {"widths": ((0, 0), *widths)})


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
    facts=Facts(rearranges=True),
    lower=Elements(lambda i, x, widths: x(*(k + b for k, (b, _) in zip(i, widths, strict=True)))),
)


def along(axis: int, ndim: int, before: int, after: int) -> Widths:
    """Widths for one of `ndim` axes; 0 for all others."""
    return (*((0, 0),) * axis, (before, after), *((0, 0),) * (ndim - axis - 1))


def crop_axis(x: Any, axis: int, start: int, stop: int) -> Any:
    """The part of `x` from `start` to `stop` along one axis."""
    return crop(x, widths=along(axis, len(x.shape), start, x.shape[axis] - stop))


def _pad(xp: Any, x: Any, widths: Widths, fill: Any) -> Any:
    shape = tuple(n + b + a for n, (b, a) in zip(x.shape, widths, strict=True))
    out = xp.empty(shape, x.dtype)
    out.fill(fill)
    out[_inner(shape, widths)] = x
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
    facts=Facts(carries=EVERY),
    lower=Elements(_pad_element),
    composed=_pad_around,
)
