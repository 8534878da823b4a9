"""The memory layout of traced values.

Whether NumPy's reshape gives a view or a copy depends on it, and so does the effect of a write to
the result. A trace has no arrays; it computes the strides that NumPy's would have. Arguments and
captured tensors count as stored in C order, and so do the results of ops that do not say otherwise
(`core.op.Facts`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Abstract, Aval, contiguous_strides
from gradtape.core.op import Op
from gradtape.core.tensor import Tensor
from gradtape.ops.cast import copy_op
from gradtape.ops.shape import reshape_op

Strides = tuple[int, ...]

# Results of these kinds of op keep the axis order that the operands have in memory.
_KEEPING_KINDS = ("elementwise", "reduction")


def layout(op: Op, args: Sequence[Any], params: dict[str, Any], aval: Aval) -> dict[str, Any]:
    """Base and strides of the result of an op, as arguments of `Abstract`.

    Args:
        op: The op that is called.
        args: Its arguments: traced tensors, arrays, numbers.
        params: Its parameters.
        aval: The abstract result.

    Returns:
        An empty dict for a result with its own memory in C order, as almost all are.
    """
    first = args[0].value if args and isinstance(args[0], Tensor) else None
    if not aval.shape:  # a 0-d result is read, so it is not a view
        return {}
    form = op.facts.layout
    if form in ("view", "same"):
        return _view(op, first, params) if isinstance(first, Abstract) and first.size else {}
    if form is None and op.kind not in _KEEPING_KINDS:
        return {}
    values = [arg.value if isinstance(arg, Tensor) else arg for arg in args]
    if form == "copy":
        op, values, params = copy_op, values[:1], {}
        if values[0].shape != aval.shape:
            return {}
    if all(map(_in_order, values)):
        return {}
    with np.errstate(all="ignore"):
        result = op.evaluate(np, *map(_model, values), **params)
    return {"strides": _packed(aval, np.asarray(result).strides)}


def _in_order(value: Any) -> bool:
    """Whether elements are stored in C order; true of a number."""
    if not isinstance(value, Abstract | np.ndarray) or 0 in value.shape:
        return True
    expected = contiguous_strides(value.shape, value.dtype.itemsize)
    return value.strides == expected or all(
        n == 1 or given == step
        for n, given, step in zip(value.shape, value.strides, expected, strict=True)
    )


# ---- views --------------------------------------------------------------------------------------


def _view(op: Op, abstract: Abstract, params: dict[str, Any]) -> dict[str, Any]:
    if op.facts.layout == "same":
        return {"base": abstract.base, "strides": abstract.strides}
    if op is reshape_op:
        strides = reshaped_strides(abstract.shape, abstract.strides, params["shape"])
        if strides is None:
            return {}
    else:
        # Nothing is read: these ops only compute sizes and steps.
        seed = np.empty(1, abstract.dtype)
        phantom = np.lib.stride_tricks.as_strided(seed, abstract.shape, abstract.strides)
        strides = op.evaluate(np, phantom, **params).strides
    return {"base": abstract if abstract.base is None else abstract.base, "strides": strides}


def reshaped_strides(
    shape: tuple[int, ...], strides: Strides, into: tuple[int, ...]
) -> Strides | None:
    """Strides of a reshaped view; None where NumPy has to copy.

    The old axes of a run must be nested in memory without gaps. Axes of size 1 do not matter.
    """
    result = [0] * len(into)
    for old, new in matching_runs(shape, into):
        if any(strides[a] != shape[b] * strides[b] for a, b in itertools.pairwise(old)):
            return None
        step = strides[old[-1]]
        for axis in reversed(new):
            result[axis] = step
            step *= into[axis]
    return tuple(result)


def matching_runs(
    shape: Sequence[int], into: Sequence[int]
) -> Iterator[tuple[list[int], list[int]]]:
    """The axes before and after a reshape, in the shortest runs that hold as many elements.

    Axes of size 1 are in no run. There are no axes of size 0.
    """
    before = [axis for axis, n in enumerate(shape) if n != 1]
    after = [axis for axis, n in enumerate(into) if n != 1]
    while before:
        old, new = [before.pop(0)], [after.pop(0)]
        left, right = shape[old[0]], into[new[0]]
        while left != right:
            if left < right:
                old.append(before.pop(0))
                left *= shape[old[-1]]
            else:
                new.append(after.pop(0))
                right *= into[new[-1]]
        yield old, new


# ---- results of their own -----------------------------------------------------------------------


def _model(value: Any) -> Any:
    """An array of ones with the same axis order in memory and at most two elements per axis."""
    if not isinstance(value, Abstract | np.ndarray):
        return value
    # Repeated axes have a stride of 0, as broadcast ones have.
    sizes = [
        1 if n and step == 0 else min(n, 2)
        for n, step in zip(value.shape, value.strides, strict=True)
    ]
    order = sorted(range(len(sizes)), key=lambda axis: -abs(value.strides[axis]))
    packed = np.ones([sizes[axis] for axis in order], value.dtype)
    ones = packed.transpose(sorted(range(len(order)), key=order.__getitem__))
    return np.broadcast_to(ones, [min(n, 2) for n in value.shape])


def _packed(aval: Aval, model: Strides) -> Strides:
    """Strides without gaps, with the axes in the order that the strides of a model have."""
    order = sorted(range(len(model)), key=lambda axis: -abs(model[axis]))
    packed = contiguous_strides(tuple(aval.shape[axis] for axis in order), aval.dtype.itemsize)
    return tuple(packed[order.index(axis)] for axis in range(len(order)))
