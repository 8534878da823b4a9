"""Functions of matrices applied to stacks of them: loops, shapes and batches.

An operand of such an op has its matrix in the last two axes; the axes before, those of the stack,
broadcast against each other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import broadcast_sizes, general, unbroadcast
from gradtape.core.op import Facts, Op, Rule, rule_reads
from gradtape.ops.linalg.common import check_fit, dtype_of, of_two_axes, square
from gradtape.ops.norm import inexact
from gradtape.ops.shape import reshape
from gradtape.typing import ArrayLike


def over_stack(function: Callable[..., Any], *arrays: Any) -> Any:
    """`function` of each matrix of stacks that broadcast: an array of a fixed shape, or several.

    For an empty stack, identity matrices are used to find the shape and dtype of the result.
    """
    stack = np.broadcast_shapes(*(array.shape[:-2] for array in arrays))
    if not stack:
        return function(*arrays)
    results = list(map(function, *(_one_by_one(array, stack) for array in arrays)))
    if not results:
        results = [function(*(np.eye(*array.shape[-2:], dtype=array.dtype) for array in arrays))]

    def stacked(parts: Any) -> Any:
        whole = np.array(parts)
        shape = stack + whole.shape[1:]
        return whole if whole.shape == shape else whole[: math.prod(stack)].reshape(shape)

    if isinstance(results[0], tuple):
        return tuple(stacked(parts) for parts in zip(*results, strict=True))
    return stacked(results)


def _one_by_one(array: Any, stack: tuple[int, ...]) -> Any:
    """The matrices of a stack along one axis."""
    size = array.shape[-2:]
    full = array if array.shape[:-2] == stack else np.broadcast_to(array, stack + size)
    return full if len(stack) == 1 else full.reshape(math.prod(stack), *size)


def matrixwise(
    name: str,
    one: Callable[..., Any],
    *,
    like: int = -1,
    divisors: tuple[int, ...] = (),
    **rules: Any,
) -> Callable[..., Any]:
    """Define an op on stacks of matrices, which is computed for one after the other.

    Args:
        name: The name of the op.
        one: `one(*matrices, **params)` computes it for one matrix of each operand, in one dtype.
        like: The position of the operand that has the size of the result.
        divisors: The positions of operands that it divides by, as in `Facts`.
        **rules: Its derivatives, as for `general`.
    """

    def forward(_xp: Any, *arrays: Any, **params: Any) -> Any:
        dtype = computed_in(*[array.dtype for array in arrays])
        if not arrays[like].size:
            return np.empty(infer(*arrays).shape, dtype)
        alike = [array.astype(dtype, copy=False) for array in arrays]
        return over_stack(functools.partial(one, **params), *alike).astype(dtype, copy=False)

    def infer(*arrays: Any, **_params: Any) -> Aval:
        shape = (*stack_of(*arrays), *arrays[like].shape[-2:])
        return Aval(shape, computed_in(*(array.dtype for array in arrays)))

    facts = Facts(divisors=divisors, reads=2)
    return general(name, forward, infer=infer, batch=batch_stacks, facts=facts, **rules)


def summed(rule: Rule) -> Rule:
    """A rule for all inputs whose cotangents are summed over the axes that were broadcast."""

    def vjp(wanted: tuple[bool, ...], ct: Any, out: Any, *inputs: Any, **params: Any) -> Any:
        found = zip(rule(wanted, ct, out, *inputs, **params), inputs, strict=True)
        return tuple(None if one is None else unbroadcast(one, x.shape) for one, x in found)

    vjp.reads = rule_reads(rule, skip=2)  # type: ignore[attr-defined]
    return vjp


def batch_stacks(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> tuple[Any, Any]:
    """Batching of such an op: the batch is the first axis of the stack."""
    ndim = max(len(x.shape) - (n is not None) for x, n in zip(args, axes, strict=True))
    out = call(op, [batch_first(x, n, ndim) for x, n in zip(args, axes, strict=True)], params)
    return out, 0 if op.outputs == 1 else (0,) * len(out)


def batch_first(x: Any, axis: int | None, ndim: int) -> Any:
    """The batch axis first, then axes of size 1 so that the others line up from the right."""
    if axis is None:
        return x
    moved = move_batch_axis(x, axis)
    size, *own = moved.shape
    return reshape(moved, (size, *(1,) * (ndim - len(own)), *own))


def stack_of(*arrays: Any) -> tuple[Any, ...]:
    """The shape of the stack that operands broadcast to."""
    return broadcast_sizes(*(array.shape[:-2] for array in arrays))


@functools.cache
def computed_in(first: Any, *others: Any) -> np.dtype[Any]:
    """The dtype in which equations with operands of these dtypes are solved."""
    return functools.reduce(functools.partial(dtype_of, "solve"), others, dtype_of("inv", first))


def matrix_stack(name: str, x: ArrayLike) -> Any:
    """`x` as an inexact array, checked to have two axes or more."""
    return of_two_axes(name, inexact(x))


def matrices(name: str, *arrays: ArrayLike, same: bool = True) -> list[Any]:
    """Arguments as inexact square matrices, or stacks of them, of one size if `same`."""
    found = [square(name, inexact(array)) for array in arrays]
    sizes = {array.shape[-1] for array in found} if same else ()
    check_fit(name, len(sizes) < 2, "matrices of one size", *found)
    return found
