"""Elements in another order or repeated: flip, roll, rotate, tile, repeat."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_first
from gradtape.core.copies import joined
from gradtape.core.define import linear, sharing
from gradtape.core.lowering import Elements, Reader
from gradtape.core.op import Facts, op_of
from gradtape.core.scalar import Scalar
from gradtape.errors import ArgumentError, AxisError, DTypeError, ShapeError
from gradtape.ops import lowered
from gradtape.ops.arguments import (
    INTEGER,
    as_array,
    as_integer,
    as_shape,
    normalize_axes,
    normalize_axis,
)
from gradtape.ops.checks import check_least
from gradtape.ops.gather import take
from gradtape.ops.index import getitem
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import ravel, reshape, swapaxes
from gradtape.typing import Array, ArrayLike, Axis

# ---- flip ---------------------------------------------------------------------------------------


def _flip_forward(xp: Any, x: Any, axis: tuple[int, ...]) -> Any:
    return x[tuple(slice(None, None, -1 if a in axis else 1) for a in range(x.ndim))]


def _flip_element(i: Sequence[Scalar], x: Reader, axis: tuple[int, ...]) -> Scalar:
    sizes = enumerate(x.aval.shape)
    return x(*(n - 1 - i[a] if a in axis else i[a] for a, n in sizes))


# d flip(x) = flip(dx); flipping twice changes nothing, so it is its own transpose
_flip = sharing(
    linear(
        "flip",
        _flip_forward,
        self_adjoint=True,
        facts=Facts(rearranges=True, layout="view"),
        lower=Elements(_flip_element),
        aliases=True,
    ),
    permutes=True,
)

flip_op = op_of(_flip)


def flip(x: ArrayLike, /, axis: Axis = None) -> Array:
    """The elements in reverse order along all or the given axes.

    Args:
        x: What to reverse.
        axis: One or several axes; None reverses along all of them.

    Raises:
        AxisError: There is no such axis.

    >>> gt.flip(np.array([1.0, 2.0, 3.0]))
    array([3., 2., 1.])
    """
    x = as_array(x)
    return _flip(x, axis=normalize_axes(axis, len(x.shape), "flip"))


def flipud(x: ArrayLike, /) -> Array:
    """The rows in reverse order: `flip` along the first axis.

    Raises:
        AxisError: There are no axes.

    >>> gt.flipud(np.array([[1.0], [2.0]]))
    array([[2.],
           [1.]])
    """
    return flip(x, 0)


def fliplr(x: ArrayLike, /) -> Array:
    """The columns in reverse order: `flip` along the second axis.

    Raises:
        AxisError: There are less than two axes.

    >>> gt.fliplr(np.array([[1.0, 2.0]]))
    array([[2., 1.]])
    """
    return flip(x, 1)


def rot90(x: ArrayLike, /, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """The array turned by `k` right angles, from the first of two axes towards the second.

    Args:
        x: What to turn.
        k: How many right angles; negative ones turn back.
        axes: The two axes of the plane in which to turn.

    Raises:
        AxisError: There is no such axis, or there are not two different ones.

    >>> gt.rot90(np.array([[1.0, 2.0]]))
    array([[2.],
           [1.]])
    """
    x = as_array(x)
    plane = () if axes is None else normalize_axes(axes, len(x.shape), "rot90")
    if len(plane) != 2:
        raise AxisError(f"rot90: got axes {axes}, expected two")
    first, second = plane
    turns = as_integer(k, "rot90", "k") % 4
    if turns == 2:
        return _flip(x, axis=plane)
    if turns == 1:
        return swapaxes(_flip(x, axis=(second,)), first, second)
    return x if turns == 0 else _flip(swapaxes(x, first, second), axis=(second,))


# ---- roll ---------------------------------------------------------------------------------------


def _roll_forward(xp: Any, x: Any, shift: tuple[int, ...], axis: tuple[int, ...]) -> Any:
    for by, a in zip(shift, axis, strict=True):
        cut = x.shape[a] - by % x.shape[a] if x.shape[a] else 0
        before = (slice(None),) * a
        parts = x[(*before, slice(cut, None))], x[(*before, slice(None, cut))]
        x = joined(xp, parts, a)
    return x


def _roll_element(
    i: Sequence[Scalar], x: Reader, shift: tuple[int, ...], axis: tuple[int, ...]
) -> Scalar:
    # Two reads per axis, shifted back and shifted forward, rather than one at a remainder.
    reads: list[tuple[Scalar | None, list[Any]]] = [(None, list(i))]
    for a in dict.fromkeys(axis):
        n, k = x.aval.shape[a], i[a]
        by = sum(s for s, other in zip(shift, axis, strict=True) if other == a) % n if n else 0
        if by:
            reads = [
                (lowered.both(inside, here), [*index[:a], k + move, *index[a + 1 :]])
                for inside, index in reads
                for here, move in ((k >= by, -by), (k < by, n - by))
            ]
    inside, index = reads.pop()
    element = x(*index, inside=inside)
    for inside, index in reads:
        element = lowered.read_or(element, x, index, inside)
    return element


# d roll(x) = roll(dx); transpose: roll back
_roll: Callable[..., Any] = linear(
    "roll",
    _roll_forward,
    lambda ct, _out, _x, shift, axis: _roll(ct, shift=tuple(-by for by in shift), axis=axis),
    facts=Facts(rearranges=True),
    lower=Elements(_roll_element),
)


def roll(x: ArrayLike, /, shift: int | Sequence[int], axis: Axis = None) -> Array:
    """The elements moved along axes; those that leave at one end come in at the other.

    Args:
        x: What to roll.
        shift: How far, for each axis.
        axis: Along which axes; None rolls the flattened array.

    Raises:
        AxisError: There is no such axis.
        ArgumentError: `shift` and `axis` are neither numbers nor tuples.

    >>> gt.roll(np.array([1.0, 2.0, 3.0]), 1)
    array([3., 1., 2.])
    """
    x = as_array(x)
    if axis is None:
        return (
            roll(x, shift, 0) if len(x.shape) == 1 else reshape(roll(ravel(x), shift, 0), x.shape)
        )
    if isinstance(shift, INTEGER) and isinstance(axis, INTEGER):
        return _roll(x, shift=(int(shift),), axis=(normalize_axis(axis, len(x.shape), "roll"),))
    given = np.broadcast(as_array(shift), as_array(axis))
    if given.ndim > 1:
        raise ArgumentError(f"roll: got shift {shift} with axis {axis}, expected numbers or tuples")
    pairs = [
        (as_integer(by, "roll", "shift"), normalize_axis(a, len(x.shape), "roll"))
        for by, a in given
    ]
    return _roll(x, shift=tuple(by for by, _ in pairs), axis=tuple(a for _, a in pairs))


# ---- tile and repeat ----------------------------------------------------------------------------


def _untile(ct: Any, _out: Any, _x: Any, reps: tuple[int, ...]) -> Any:
    sizes = [n for pair in zip(reps, _x.shape, strict=True) for n in pair]
    return sum_of(reshape(ct, sizes), axis=tuple(range(0, len(sizes), 2)))


def _tile_element(i: Sequence[Scalar], x: Reader, reps: tuple[int, ...]) -> Scalar:
    sizes = zip(i, x.aval.shape, reps, strict=True)
    return x(*(0 if n == 1 else k % n if times > 1 and n else k for k, n, times in sizes))


# d tile(x) = tile(dx); transpose: sum over the copies
_tile = linear(
    "tile",
    lambda xp, x, reps: xp.tile(x, reps),
    _untile,
    infer=lambda x, reps: Aval(
        tuple(n * times for n, times in zip(x.shape, reps, strict=True)), x.dtype
    ),
    batch=batch_first(lambda size, reps: {"reps": (1, *reps)}),
    facts=Facts(rearranges=True),
    lower=Elements(_tile_element),
)


def tile(x: ArrayLike, /, reps: int | Sequence[int]) -> Array:
    """The array repeated as a whole, `reps` times along each axis.

    Args:
        x: What to repeat.
        reps: How many times, for each axis; more numbers than axes add axes in front.

    Raises:
        ShapeError: A number of repeats is negative.

    >>> gt.tile(np.array([1.0, 2.0]), 2)
    array([1., 2., 1., 2.])
    """
    x = as_array(x)
    times = as_shape(reps, "tile")
    ndim = max(len(times), len(x.shape))
    if len(x.shape) < ndim:
        x = reshape(x, (1,) * (ndim - len(x.shape)) + x.shape)
    return _tile(x, reps=(1,) * (ndim - len(times)) + times)


_FEW_COPIES = 8


def _unrepeat(ct: Any, _out: Any, _x: Any, repeats: int, axis: int) -> Any:
    copies = reshape(ct, (*_x.shape[: axis + 1], repeats, *_x.shape[axis + 1 :]))
    if not 0 < repeats <= _FEW_COPIES:
        return sum_of(copies, axis=axis + 1)
    # Sums of few elements next to each other are slow in NumPy.
    whole = (slice(None),) * (axis + 1)
    parts = [getitem(copies, (*whole, i)) for i in range(repeats)]
    return functools.reduce(operator.add, parts)


def _repeat_forward(xp: Any, x: Any, repeats: int, axis: int) -> Any:
    shape = (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :])
    out = xp.empty(shape, x.dtype)
    out[...] = xp.expand_dims(x, axis + 1)
    return out.reshape((*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]))


def _repeat_element(i: Sequence[Scalar], x: Reader, repeats: int, axis: int) -> Scalar:
    return x(*i[:axis], i[axis] // repeats if repeats > 1 else i[axis], *i[axis + 1 :])


# d repeat(x) = repeat(dx); transpose: sum over the copies of each element
_repeat = linear(
    "repeat",
    _repeat_forward,
    _unrepeat,
    infer=lambda x, repeats, axis: Aval(
        (*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]), x.dtype
    ),
    facts=Facts(rearranges=True),
    lower=Elements(_repeat_element),
)


def repeat(x: ArrayLike, /, repeats: int | Sequence[int], axis: int | None = None) -> Array:
    """Each element repeated, next to itself.

    Args:
        x: What to repeat.
        repeats: How many times: one number, or one for each place along the axis.
        axis: Along which axis; None repeats the elements of the flattened array.

    Raises:
        ShapeError: There are not as many `repeats` as places along the axis.
        ArgumentError: A number of repeats is negative.
        AxisError: There is no such axis.

    >>> gt.repeat(np.array([1.0, 2.0]), 2)
    array([1., 1., 2., 2.])
    """
    x = as_array(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis(axis, len(x.shape), "repeat")
    if not isinstance(repeats, INTEGER):
        counts = np.asarray(as_array(repeats))
        if counts.dtype.kind not in "biu":
            raise DTypeError(f"repeat: got repeats {repeats!r}, expected integers")
        if counts.size != 1:
            if counts.shape != (x.shape[axis],):
                raise ShapeError(
                    f"repeat: got {counts.shape} repeats for shape {x.shape} along axis {axis}, "
                    f"expected one number or {x.shape[axis]} of them"
                )
            check_least("repeat", 0, repeats=counts.min(initial=0))
            return take(x, np.repeat(np.arange(x.shape[axis]), counts), axis=axis)
        repeats = int(counts.reshape(()))
    check_least("repeat", 0, repeats=repeats)
    return _repeat(x, repeats=int(repeats), axis=axis)
