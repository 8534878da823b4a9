"""Copies of raw arrays: on all threads where they are large, by NumPy otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.kernels import installed, is_large, pooled
from gradtape.core.promotion import FLOAT32, is_half

# Arrays at least this large are worth starting threads for.
_WORTH_THREADS = 1 << 17


def copied(array: Any) -> Any:
    """A C-contiguous copy of an array."""
    if is_large((array,)) and (kernels := installed()) is not None:
        if array.flags.c_contiguous:
            out = kernels.pooled(np.empty, array.shape, array.dtype)
            copy_into(out, array)
            return out
        return kernels.copied(array)
    return np.array(array, order="C")


def converted(array: Any, dtype: np.dtype[Any]) -> Any:
    """An array in another dtype, as `astype`, but not a copy of one that has it."""
    if array.dtype == dtype:
        return array
    pair = {array.dtype, dtype}
    # NumPy converts 16-bit floats one by one.
    if is_large((array,)) and FLOAT32 in pair and any(map(is_half, pair)):
        kernels = installed()
        out = None if kernels is None else kernels.converted(array, dtype)
        if out is not None:
            return out
    if is_half(dtype):
        # Loss scaling tries scales until gradients overflow; kernels do not warn of it either.
        with np.errstate(over="ignore"):
            return array.astype(dtype)
    return array.astype(dtype)


def copy_into(target: Any, source: Any) -> None:
    """Copy an array into one of the same shape that shares no memory with it, as `np.copyto`."""
    if is_large((source,)) and target.dtype == source.dtype and not source.dtype.hasobject:
        kernels = installed()
        if kernels is not None and kernels.copy_into(target, source):
            return
    np.copyto(target, source)


def add_to_zeros(zeros: Any, index: Any, part: Any) -> None:
    """Add to a part of an array that holds only zeros so far; a large part is copied instead."""
    if is_large((part,)):
        copy_into(zeros[index], part)
    else:
        zeros[index] += part  # 0 + (−0) is 0, as in compiled code; a copy would keep the sign


def joined(xp: Any, arrays: Sequence[Any], axis: int) -> Any:
    """Arrays one after the other along an axis, as `concatenate` of their module."""
    others = {(*x.shape[:axis], *x.shape[axis + 1 :]) for x in arrays}
    if xp is not np or not is_large(arrays) or len(others) > 1:  # NumPy refuses shapes that differ
        return xp.concatenate(arrays, axis=axis)
    sizes = [x.shape[axis] for x in arrays]
    shape = list(arrays[0].shape)
    shape[axis] = sum(sizes)
    out = pooled(np.empty, shape, np.result_type(*arrays))
    stop = 0
    for x, size in zip(arrays, sizes, strict=True):
        start, stop = stop, stop + size
        copy_into(out[(*(slice(None),) * axis, slice(start, stop))], x)
    return out


def by_rows(function: Callable[[Any], Any], x: Any) -> Any:
    """Run a shape-preserving NumPy function along the last axis, with rows shared among threads.

    Args:
        function: Takes an array; must release the GIL to be worth it, as sorting does.
        x: A contiguous array.
    """
    kernels = installed() if x.ndim > 1 and x.size >= _WORTH_THREADS else None
    threads = 1 if kernels is None else kernels.threads()
    if threads == 1 or x.size == x.shape[-1]:
        return function(x)
    parts = np.array_split(x.reshape(-1, x.shape[-1]), threads)
    results: list[Any] = [None] * len(parts)
    failed: list[Exception] = []

    def work(i: int) -> None:
        try:
            results[i] = function(parts[i])
        except Exception as error:  # out of memory, say
            failed.append(error)

    others = [threading.Thread(target=work, args=(i,)) for i in range(1, len(parts))]
    for other in others:
        other.start()
    work(0)
    for other in others:
        other.join()
    if failed:
        raise failed[0]
    return np.concatenate(results).reshape(x.shape)
