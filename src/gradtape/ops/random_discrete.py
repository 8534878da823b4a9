"""Random integers, permutations and coins; see `ops.random` for how numbers are drawn."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import broadcast_sizes, general
from gradtape.core.op import NotDifferentiable, Op
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError
from gradtape.ops.arguments import INTEGER, as_array, as_dtype, as_shape
from gradtape.ops.checks import check_axes
from gradtape.ops.generator import Generator, Key, Words
from gradtape.ops.index import getitem
from gradtape.ops.random import drawn, drawn_dtype, drawn_shape, random_op, uniform_numbers
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike, Shape

_F64 = np.dtype(np.float64)


def _integer_numbers(
    _xp: Any,
    *,
    low: int,
    high: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    key: Key,
    offset: int,
) -> Any:
    """A word modulo the number of integers, so that the bias is below high − low in 2⁶⁴."""
    numbers = Words(key, offset)(math.prod(shape))
    if high - low < 2**64:
        numbers %= np.uint64(high - low)
    numbers += np.uint64(low % 2**64)  # wraps round as two's complement does
    return numbers.view(np.int64).astype(dtype).reshape(shape)


def _permuted_numbers(_xp: Any, *, count: int, key: Key, offset: int) -> Any:
    return np.argsort(Words(key, offset)(count), kind="stable")


def _coins(xp: Any, p: Any, *, shape: Any, dtype: Any, key: Key, offset: int) -> Any:
    if not xp.all((p >= 0) & (p <= 1)):
        raise ArgumentError("bernoulli: got a probability that is not in [0, 1]")
    fractions = uniform_numbers(np, shape=shape, dtype=_F64, key=key, offset=offset)
    return xp.asarray(xp.asarray(fractions) < p).astype(dtype)


def _batch_coins(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> tuple[Any, int]:
    # In compiled code the state of the generator comes before the probability.
    *state, p = args
    p = move_batch_axis(p, axes[-1])
    size, *own = p.shape
    p = reshape(p, (size, *(1,) * (len(params["shape"]) - len(own)), *own))
    return call(op, (*state, p), params), 0


random_integers = random_op("random_integers", _integer_numbers)
random_permutation = random_op(
    "random_permutation",
    _permuted_numbers,
    lambda count, **_params: Aval((count,), np.dtype(np.intp)),
)
# The result jumps between 0 and 1: its derivative says nothing about that of the mean.
_DISCRETE = NotDifferentiable(
    "bernoulli: a draw of 0 or 1 has no derivative with respect to its probability"
)
random_bernoulli = general(
    "random_bernoulli",
    _coins,
    infer=lambda p, shape, dtype, key, offset: Aval(broadcast_sizes(p.shape, shape), dtype),
    vjps=(_DISCRETE,),
    jvp=_DISCRETE,
    batch=_batch_coins,
    effect="random",
)


def bernoulli(
    p: ArrayLike,
    shape: Shape | None = None,
    *,
    dtype: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw 1 with probability p and 0 otherwise.

    Args:
        p: The probability or probabilities.
        shape: The sizes; those of `p` if not given.
        dtype: Its dtype; the floating dtype of `p` if not given.
        generator: Where to draw from; the default generator if not given.

    Raises:
        ArgumentError: A probability is not in [0, 1].
        DTypeError: The dtype is not of numbers, or the probabilities are not real.
        NotDifferentiableError: A derivative with respect to `p` was asked for.
        ShapeError: `p` does not broadcast to the shape.

    >>> gt.bernoulli(np.array([0.0, 1.0]))
    tensor([0., 1.])
    """
    p = as_array(p)
    sizes = drawn_shape(shape, "bernoulli", p)
    dtype = as_dtype(drawn_dtype(dtype, "bernoulli", p), "bernoulli")
    return drawn(random_bernoulli, generator, math.prod(sizes), p, shape=sizes, dtype=dtype)


def randint(
    low: int,
    high: int | None = None,
    shape: Shape = (),
    *,
    dtype: Any = np.int64,
    generator: Generator | None = None,
) -> Tensor:
    """Draw integers uniformly from low, low + 1, …, high - 1.

    Args:
        low: The least integer; if `high` is None, integers are drawn from 0 up to `low`.
        high: One more than the greatest integer.
        shape: The sizes.
        dtype: An integer dtype that can hold them.
        generator: Where to draw from; the default generator if not given.

    Raises:
        ArgumentError: There are no such integers, the dtype cannot hold them, or the bounds are
            something else.
        DTypeError: The dtype is not an integer one.
        ShapeError: The sizes are not integers from 0.

    >>> gt.randint(0, 10, (2, 3)).shape
    (2, 3)
    """
    try:
        bounds = [operator.index(bound) for bound in (low, high) if bound is not None]
    except TypeError:
        raise ArgumentError(
            f"randint: got low={low!r}, high={high!r}, expected integers, the same for all elements"
        ) from None
    low, high = bounds if len(bounds) == 2 else (0, *bounds)
    kind = as_dtype(dtype, "randint")
    if kind.kind not in "iu":
        raise DTypeError(f"randint: got dtype {kind}, expected an integer dtype")
    limits = np.iinfo(kind)
    if not limits.min <= low < high <= limits.max + 1:
        raise ArgumentError(
            f"randint: got low={low}, high={high}, dtype {kind}, expected low < high within "
            f"{limits.min} and {limits.max + 1}"
        )
    sizes = as_shape(shape, "randint")
    options = {"low": low, "high": high, "shape": sizes, "dtype": kind}
    return drawn(random_integers, generator, math.prod(sizes), **options)


def permutation(x: ArrayLike, *, generator: Generator | None = None) -> Array:
    """Put the integers below a number, or an array along its first axis, in random order.

    Args:
        x: A number, or what to reorder; differentiable in that.
        generator: Where to draw from; the default generator if not given.

    Raises:
        ShapeError: A number is negative, or an array has no axes.

    >>> gt.sum(gt.permutation(5))
    tensor(10)
    """
    if isinstance(x, INTEGER):
        (count,) = as_shape(int(x), "permutation")
        return drawn(random_permutation, generator, count, count=count)
    x = as_array(x)
    check_axes("permutation", x, least=1, instead="to permute integers, give their number")
    order = drawn(random_permutation, generator, x.shape[0], count=x.shape[0])
    return getitem(x if isinstance(x, Tensor) else Tensor(x), order)
