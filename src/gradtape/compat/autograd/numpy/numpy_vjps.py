"""Helpers that rules for reverse mode are written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.compat.autograd.core import defvjp as defvjp
from gradtape.core.aval import aval_of
from gradtape.ops.cast import real
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to, reshape

Function = Callable[..., Any]


def metadata(A: Any) -> tuple[tuple[int, ...], int, Any, bool]:
    """Shape, number of axes and dtype of an array, and whether it is complex."""
    aval = aval_of(A)
    return aval.shape, len(aval.shape), aval.dtype, aval.dtype.kind == "c"


def unbroadcast(x: Any, target_meta: Any, broadcast_idx: int = 0) -> Any:
    """Sum a cotangent over the axes along which an argument was broadcast.

    Args:
        x: The cotangent.
        target_meta: What `metadata` says of the argument.
        broadcast_idx: Where axes were added: before this one; -1 for at the end.
    """
    shape, rank, _, is_complex = target_meta
    while x.ndim > rank:
        x = sum_of(x, axis=broadcast_idx)
    for axis, size in enumerate(shape):
        if size == 1 and x.shape[axis] != 1:
            x = sum_of(x, axis=axis, keepdims=True)
    return real(x) if x.dtype.kind == "c" and not is_complex else x


def unbroadcast_f(target: Any, f: Function) -> Function:
    """A function to cotangents, summed over the axes along which an argument was broadcast.

    >>> from gradtape.compat.autograd import grad
    >>> from gradtape.compat.autograd.extend import defvjp, primitive
    >>> from gradtape.compat.autograd.numpy.numpy_vjps import unbroadcast_f
    >>> times = primitive(lambda x, y: x * y)
    >>> defvjp(
    ...     times,
    ...     lambda ans, x, y: unbroadcast_f(x, lambda g: g * y),
    ...     lambda ans, x, y: unbroadcast_f(y, lambda g: g * x),
    ... )
    >>> grad(lambda x: np.sum(times(x, np.array([1.0, 2.0]))))(5.0)
    np.float64(3.0)
    """
    meta = metadata(target)
    return lambda g: unbroadcast(f(g), meta)


def match_complex(target: Any, x: Any) -> Any:
    """A cotangent that is real if its argument is, and complex if that is."""
    to_complex, is_complex = (aval_of(v).dtype.kind == "c" for v in (target, x))
    if is_complex and not to_complex:
        return real(x)
    return x + 0j if to_complex and not is_complex else x


def replace_zero(x: Any, val: Any) -> Any:
    """An array with a value in place of zeros."""
    return where(x != 0, x, val)


def balanced_eq(x: Any, z: Any, y: Any) -> Any:
    """1 where x is z and y is not, 1/2 where both are, else 0: shares of a maximum's slope."""
    return (x == z) / (1.0 + (x == y))


def repeat_to_match_shape(
    g: Any, shape: tuple[int, ...], dtype: Any, axis: Any, keepdims: bool
) -> tuple[Any, int]:
    """The cotangent of a reduction, repeated along what was reduced, and how often.

    Args:
        g: The cotangent.
        shape: The shape before the reduction.
        dtype: Its dtype.
        axis: The axis or axes of the reduction; None for all.
        keepdims: Whether the axes were kept.
    """
    if shape == ():
        return g, 1
    count = len(shape)
    axes = range(count) if axis is None else (axis,) if isinstance(axis, int) else axis
    reduced = {n % count for n in axes}
    kept = [1 if n in reduced else size for n, size in enumerate(shape)]
    repeats = 1
    for n in reduced:
        repeats *= shape[n]
    return broadcast_to(reshape(g, tuple(kept)), shape), repeats
