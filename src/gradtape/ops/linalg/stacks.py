"""Functions of matrices applied to stacks of them: loops, shapes and batches.

An operand of such an op has its matrix in the last two axes; the axes before, those of the stack,
broadcast against each other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import broadcast_sizes
from gradtape.core.op import Op
from gradtape.errors import LinAlgError, ShapeError
from gradtape.ops.linalg.common import dtype_of, square
from gradtape.ops.norm import inexact
from gradtape.ops.shape import reshape
from gradtape.typing import ArrayLike


def over_stack(function: Callable[..., Any], *arrays: Any) -> Any:
    """`function` of each matrix of stacks that broadcast; it returns one array of a fixed shape.

    For an empty stack, identity matrices are used to find the shape and dtype of the result.
    """
    stack = np.broadcast_shapes(*(array.shape[:-2] for array in arrays))
    if not stack:
        return np.asarray(function(*arrays))
    full = [np.broadcast_to(array, stack + array.shape[-2:]) for array in arrays]
    results = [np.asarray(function(*(a[index] for a in full))) for index in np.ndindex(*stack)]
    if results:
        return np.stack(results).reshape(stack + results[0].shape)
    sample = np.asarray(function(*(np.eye(*a.shape[-2:], dtype=a.dtype) for a in arrays)))
    return np.empty(stack + sample.shape, sample.dtype)


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


def computed_in(*dtypes: Any) -> np.dtype[Any]:
    """The dtype in which equations with such operands are solved."""
    return dtype_of("solve", *dtypes) if len(dtypes) == 2 else dtype_of("inv", *dtypes)  # type: ignore[no-any-return]


def common_dtype(*arrays: Any) -> np.dtype[Any]:
    """The dtype that functions of several matrices compute in."""
    return functools.reduce(computed_in, (array.dtype for array in arrays))


def matrix_stack(name: str, x: ArrayLike) -> Any:
    """`x` as an inexact array, checked to have two axes or more."""
    x = inexact(x)
    if len(x.shape) < 2:
        raise LinAlgError(
            f"{name}: got shape {x.shape}, expected a matrix, or a stack of them along the first "
            "axes"
        )
    return x


def matrices(name: str, *arrays: ArrayLike, same: bool = True) -> list[Any]:
    """Arguments as inexact square matrices, or stacks of them, of one size if `same`."""
    found = [square(name, inexact(array)) for array in arrays]
    if same and len({array.shape[-1] for array in found}) > 1:
        got = ", ".join(str(array.shape) for array in found)
        raise ShapeError(f"{name}: got shapes {got}, expected matrices of one size")
    return found


def failed(name: str, arrays: Sequence[Any], problem: str, remedy: str) -> LinAlgError:
    """The error of an op that found no result: what it got, what is wrong, what to do."""
    got = ", ".join(f"{array.dtype}{list(array.shape)}" for array in arrays)
    return LinAlgError(f"{name}: got {got}; {problem}; {remedy}")
