"""The contraction of two arrays, named by subscripts such as "ij,jk->ik", and tensordot.

In the subscripts of the op no array repeats a letter, and every letter stands in two places at
least, so that the derivative by one array is the contraction of the cotangent with the other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.call import call
from gradtape.core.define import multilinear
from gradtape.core.op import Op
from gradtape.errors import ArgumentError, AxisError, DTypeError, ShapeError
from gradtape.ops import array_functions
from gradtape.ops.arguments import as_array, as_integer, normalize_axis
from gradtape.ops.cast import conj_if_complex
from gradtape.typing import Array, ArrayLike


class _Pair(NamedTuple):
    """How a contraction becomes one matrix product.

    Attributes:
        swap: Whether the second array goes first, so that the result needs no transpose.
        orders: Per array the permutation to (batch, own, contracted), (batch, contracted, own).
        counts: How many axes are batch, own of the first, contracted, own of the second.
        back: The permutation of (batch, own, own) to the order of the result.
    """

    swap: bool
    orders: tuple[tuple[int, ...], tuple[int, ...]]
    counts: tuple[int, int, int, int]
    back: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def _pair(subscripts: str) -> _Pair:
    x, y, out = split(subscripts)
    batch = "".join(c for c in out if c in x and c in y)
    left = "".join(c for c in out if c not in y)
    right = "".join(c for c in out if c not in x)
    summed = "".join(c for c in x if c not in out)
    swap = bool(left) and bool(right) and out.index(right[0]) < out.index(left[0])
    if swap:
        x, y, left, right = y, x, right, left
    got = batch + left + right
    return _Pair(
        swap=swap,
        orders=(
            tuple(x.index(c) for c in batch + left + summed),
            tuple(y.index(c) for c in batch + summed + right),
        ),
        counts=(len(batch), len(left), len(summed), len(right)),
        back=tuple(got.index(c) for c in out),
    )


def split(subscripts: str) -> tuple[str, str, str]:
    """The letters of the two arrays and of the result."""
    inputs, out = subscripts.split("->")
    x, y = inputs.split(",")
    return x, y, out


def _evaluate(xp: Any, x: Any, y: Any, subscripts: str) -> Any:
    pair = _pair(subscripts)
    # One of them may be a Python number, such as the counter of a loop; never where this is traced.
    x, y = (xp.asarray(v) if isinstance(v, int | float | complex) else v for v in (x, y))
    if pair.swap:
        x, y = y, x
    batch, own, summed, _ = pair.counts
    x, y = x.transpose(pair.orders[0]), y.transpose(pair.orders[1])
    batch_sizes, left = x.shape[:batch], x.shape[batch : batch + own]
    middle, right = x.shape[batch + own :], y.shape[batch + summed :]
    if not summed:
        out = x.reshape(batch_sizes + left + (1,) * len(right)) * y.reshape(
            batch_sizes + (1,) * len(left) + right
        )
    else:
        inner = math.prod(middle)
        # Without batch, a missing own axis makes it a product with a vector.
        head = (math.prod(batch_sizes),) if batch else ()
        rows = (math.prod(left),) if left or batch else ()
        columns = (math.prod(right),) if right or batch else ()
        out = x.reshape((*head, *rows, inner)) @ y.reshape((*head, inner, *columns))
        out = out.reshape(batch_sizes + left + right)
    return out.transpose(pair.back) if pair.back else out[()]


def _infer(x: Aval, y: Aval, subscripts: str) -> Aval:
    letters_x, letters_y, out = split(subscripts)
    sizes = dict(zip(letters_x + letters_y, x.shape + y.shape, strict=True))
    return Aval(tuple(sizes[c] for c in out), np.result_type(x.dtype, y.dtype))


def _by_first(ct: Any, _out: Any, _x: Any, y: Any, subscripts: str) -> Any:
    letters_x, letters_y, out = split(subscripts)
    return contract(ct, conj_if_complex(y), subscripts=f"{out},{letters_y}->{letters_x}")


def _by_second(ct: Any, _out: Any, x: Any, _y: Any, subscripts: str) -> Any:
    letters_x, letters_y, out = split(subscripts)
    return contract(conj_if_complex(x), ct, subscripts=f"{letters_x},{out}->{letters_y}")


def _batch(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> tuple[Any, int]:
    letters_x, letters_y, out = split(params["subscripts"])
    new = fresh_letters(letters_x + letters_y, 1)
    if axes[0] is not None:
        letters_x = letters_x[: axes[0]] + new + letters_x[axes[0] :]
    if axes[1] is not None:
        letters_y = letters_y[: axes[1]] + new + letters_y[axes[1] :]
    return call(op, args, {"subscripts": f"{letters_x},{letters_y}->{new}{out}"}), 0


# d(x·y) = dx·y + x·dy, whichever letters the product sums over
contract: Callable[..., Any] = multilinear(
    "einsum",
    _evaluate,
    _by_first,
    _by_second,
    infer=_infer,
    batch=_batch,
    kind="contraction",
    lower=array_functions,
)


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def fresh_letters(used: str, count: int) -> str:
    """`count` letters that are not in `used`."""
    letters = (_letter(i) for i in range(len(used) + count))
    return "".join(c for c in letters if c not in used)[:count]


def _letter(number: int) -> str:
    """A letter by its number: the alphabet, then other alphabets, as in opt_einsum."""
    return LETTERS[number] if number < 52 else chr(number + 140)


# ---- tensordot ----------------------------------------------------------------------------------


def tensordot(x: ArrayLike, y: ArrayLike, /, axes: Any = 2) -> Array:
    """Sum of products over chosen axes of two arrays.

    Args:
        x: The first array; its other axes come first in the result.
        y: The second array.
        axes: How many of the last axes of `x` meet the first of `y`; or the axes of `x` and the
            axes of `y`, in pairs.

    Raises:
        AxisError: There is no such axis, or one is named twice.
        ShapeError: Axes that meet differ in size.

    >>> gt.tensordot(np.ones((2, 3)), np.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    x, y = as_array(x), as_array(y)
    if isinstance(axes, int | np.integer):
        axes = range(-int(axes), 0), range(int(axes))
    elif not isinstance(axes, Sequence | np.ndarray) or isinstance(axes, str) or len(axes) != 2:
        raise ArgumentError(
            f"tensordot: got axes={axes!r}, expected how many meet, or a pair: the axes of x, and "
            "those of y"
        )
    first, second = (_as_tuple(part) for part in axes)
    pairs, subscripts = _meeting(first, second, len(x.shape), len(y.shape))
    if any(x.shape[a] != y.shape[b] for a, b in pairs):
        raise ShapeError(
            f"tensordot: got shapes {x.shape} and {y.shape} with axes {first} and {second}, "
            "expected axes of the same sizes"
        )
    return contract(x, y, subscripts=subscripts)


def _as_tuple(axes: Any) -> tuple[int, ...]:
    if isinstance(axes, int | np.integer):
        return (int(axes),)
    if not isinstance(axes, Sequence | np.ndarray | range):
        raise DTypeError(f"tensordot: got axes {axes!r}, expected integers")
    return tuple(as_integer(a, "tensordot", "an axis") for a in axes)


@functools.lru_cache(maxsize=4096)
def _meeting(
    first: tuple[int, ...], second: tuple[int, ...], ndim: int, ndim2: int
) -> tuple[tuple[tuple[int, int], ...], str]:
    """The pairs of axes that are summed over, counted from the front, and the subscripts."""
    first = tuple(normalize_axis(a, ndim, "tensordot") for a in first)
    second = tuple(normalize_axis(a, ndim2, "tensordot") for a in second)
    if not len(first) == len(second) == len(set(first)) == len(set(second)):
        raise AxisError(
            f"tensordot: got axes {first} and {second}, expected as many of both, each once"
        )
    letters = fresh_letters("", ndim + ndim2)
    x, rest = letters[:ndim], list(letters[ndim:])
    for a, b in zip(first, second, strict=True):
        rest[b] = x[a]
    y = "".join(rest)
    out = "".join(c for c in x + y if (c in x) != (c in y))
    return tuple(zip(first, second, strict=True)), f"{x},{y}->{out}"
