"""Large arrays: ops on them that go by elements, rows or planes are left to the compiler's kernels.

The compiler is known here by what it installs in the registry, and loaded by the first large array.
Where it has no kernel for a call, or the user asked NumPy to raise floating-point errors, which
native code does not notice, the call is computed by NumPy as always.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.lowering import Scan
from gradtape.core.op import NotLoadedError, Op, registry

# From so many elements on, a kernel makes up for what calling it costs.
LARGE = 1 << 15
# Fresh memory for so many bytes takes a millisecond or more.
_HUGE = 1 << 22
# From so many elements on, starting threads for a call of NumPy takes little of the time it does.
_WORTH_THREADS = 1 << 17


def is_tiled(op: Op) -> bool:
    """Whether an op can be done in native code, part by part."""
    if op.outputs != 1 or op.lower is None:
        return False
    return op.kind in ("elementwise", "planewise") or works_along_axis(op)


def works_along_axis(op: Op) -> bool:
    """Whether an op treats rows along its parameter `axis` alike, and each by itself."""
    return op.kind in ("reduction", "axiswise") or isinstance(op.lower, Scan)


def is_large(operands: Sequence[Any]) -> bool:
    """Whether there is a large array among raw values."""
    # Not by `any`, which takes twice as long: every op that is not on a fast path asks.
    for x in operands:  # noqa: SIM110
        if type(x) is np.ndarray and x.size >= LARGE:
            return True
    return False


def compute_large(op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The forward of an op on raw values, some of them large arrays."""
    if is_tiled(op) and _installed() is not None and _quiet():
        for kernels in _kernels(op):
            out = kernels.forward(op, operands, params)
            if out is not NotImplemented:
                return out
    if op.fast is None:
        return pooled(op.evaluate, np, *operands, **params)
    return pooled(op.fast, *operands, **params)


def pull_large(
    op: Op,
    wanted: tuple[bool, ...],
    ct: Any,
    out: Any,
    inputs: Sequence[Any],
    params: dict[str, Any],
) -> Any:
    """The cotangents of the inputs of an op that `is_tiled`, or `NotImplemented`.

    They are those of its `careful` rules.
    """
    if type(ct) is not np.ndarray or _installed() is None:
        return NotImplemented
    for kernels in _kernels(op):
        pulled = kernels.pull(op, wanted, ct, out, inputs, params)
        if pulled is not NotImplemented:
            return pulled
    return NotImplemented


def _installed() -> Any:
    """All there is for large arrays; None for NumPy."""
    try:
        return registry.kernels
    except NotLoadedError:
        return None


def _kernels(op: Op) -> tuple[Any, ...]:
    """What may have native code for an op: by tiles, or else for the whole of its arrays."""
    if op.kind == "planewise":
        return (registry.kernels.planes,)
    return registry.kernels, registry.kernels.planes


def _quiet() -> bool:
    return not {"raise", "call", "log", "print"} & set(np.geterr().values())


def pooled(function: Callable[..., Any], /, *args: Any, **params: Any) -> Any:
    """Call a function of NumPy on large arrays; those it makes get memory that is kept for them.

    If the compiler was not needed up to now, it is loaded for this where fresh memory takes long.
    """
    kernels = registry.loaded_kernels
    if kernels is None and any(type(x) is np.ndarray and x.nbytes >= _HUGE for x in args):
        kernels = _installed()
    if kernels is None:
        return function(*args, **params)
    return kernels.pooled(function, *args, **params)


def copied(array: Any) -> Any:
    """A copy of an array, its elements in order."""
    if array.size >= LARGE and (kernels := _installed()) is not None:
        if array.flags.c_contiguous:
            out = kernels.pooled(np.empty, array.shape, array.dtype)
            copy_into(out, array)
            return out
        out = kernels.copied(array)
        if out is not NotImplemented:
            return out
        out = kernels.pooled(np.empty, array.shape, array.dtype)
        if kernels.copied_into(out, array):
            return out
    return np.array(array, order="C")


def copy_into(target: Any, source: Any) -> None:
    """Copy an array into one of the same shape that shares no memory with it, as `np.copyto`."""
    if source.size >= LARGE and (kernels := _installed()) is not None:
        whole = target.flags.c_contiguous and source.flags.c_contiguous
        plain = target.dtype == source.dtype and not source.dtype.hasobject
        if whole and plain:
            kernels.copy_into(target, source)
            return
        if plain and kernels.copied_into(target, source):
            return
    np.copyto(target, source)


def add_to_zeros(zeros: Any, index: Any, part: Any) -> None:
    """Add to a part of an array that holds zeros so far; a large one is copied there instead."""
    if is_large((part,)):
        copy_into(zeros[index], part)
    else:
        zeros[index] += part  # 0 + (−0) is 0, as in compiled code; a copy would keep the sign


def joined(xp: Any, arrays: Sequence[Any], axis: int) -> Any:
    """Arrays one after the other along an axis, as `concatenate` of their module."""
    if xp is not np or not is_large(arrays):
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
    """A function of NumPy that works along the last axis and gives as many elements; on threads.

    Args:
        function: Of an array; lets other threads run, as sorting does.
        x: The array, contiguous.
    """
    kernels = _installed() if x.ndim > 1 and x.size >= _WORTH_THREADS else None
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
