"""Random integers, permutations, coins and counts; see `ops.random` for how numbers are drawn."""

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
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.arguments import INTEGER, as_array, as_dtype, as_shape, normalize_axis
from gradtape.ops.checks import check_axes
from gradtape.ops.erf import scipy_special
from gradtape.ops.exponential import log
from gradtape.ops.generator import Generator, Key, Words, source_of
from gradtape.ops.index import getitem
from gradtape.ops.random import (
    drawn,
    drawn_dtype,
    drawn_shape,
    random_op,
    random_uniform,
    uniform_numbers,
)
from gradtape.ops.random_positive import (
    WORDS_EACH,
    batch_elementwise_numbers,
    elementwise_numbers,
)
from gradtape.ops.select import maximum
from gradtape.ops.shape import broadcast_to, broadcasts_to, moveaxis, reshape
from gradtape.ops.which import argmax
from gradtape.typing import Array, ArrayLike, Shape

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)


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
    source = source_of(generator, "bernoulli")
    return drawn(random_bernoulli, source, math.prod(sizes), p, shape=sizes, dtype=dtype)


# ---- counts -------------------------------------------------------------------------------------

# From this mean on counts are drawn by rejection.
_MANY = 10.0


def _poisson_search(xp: Any, mean: Any, p: Any) -> Any:
    """The least k with P(k) ≥ p, by adding up the chances of 0, 1, 2, … for small means."""
    chance = xp.exp(-mean)
    below, k = chance.copy(), xp.zeros(mean.shape)
    while True:
        more = below < p
        # Beyond the last digit the sum no longer grows.
        if not more.any() or k.max() > 200:
            return k
        k = k + more
        chance = xp.where(more, chance * mean / xp.maximum(k, 1), chance)
        below = below + xp.where(more, chance, 0.0)


def _poisson_inverse(xp: Any, mean: Any, p: Any) -> Any:
    """The least k with P(k) ≥ p, from SciPy's inverse, which may be off by one."""
    special = scipy_special(xp)
    k = xp.ceil(special.pdtrik(p, mean))
    return xp.where((k > 0) & (special.pdtr(xp.maximum(k - 1, 0), mean) >= p), k - 1, k)


def _poisson_fractions(xp: Any, mean: Any, fractions: Any) -> Any:
    many = mean >= _MANY
    last = xp.broadcast_to(fractions[6] + 0.5**54, mean.shape)
    few = _poisson_search(xp, xp.where(many, 0.0, mean), last)
    if not many.any():
        return few
    # Hörmann's transformed rejection with squeeze.
    lam = xp.where(many, mean, _MANY)
    b = 0.931 + 2.53 * xp.sqrt(lam)
    a = 0.02483 * b - 0.059
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    gammaln = scipy_special(xp).gammaln
    counts, found = few, ~many
    for first in (0, 2, 4):
        u, v = fractions[first] - 0.5, 1 - fractions[first + 1]
        us = 0.5 - xp.abs(u)
        safe = xp.maximum(us, 0.5**54)
        k = xp.floor((2 * a / safe + b) * u + lam + 0.43)
        left = xp.log(v * inverse_alpha / (a / (safe * safe) + b))
        right = k * xp.log(lam) - lam - gammaln(xp.maximum(k, 0) + 1)
        accepted = (k >= 0) & (us > 0) & (left <= right) & ~found
        counts, found = xp.where(accepted, k, counts), found | accepted
    rest = ~found
    if rest.any():
        counts[rest] = _poisson_inverse(xp, mean[rest], last[rest])
    return counts


def _poisson_forward(xp: Any, mean: Any, *, shape: Any, dtype: Any, key: Key, offset: int) -> Any:
    if not xp.all((mean >= 0) & (mean < _MOST_MEAN)):
        raise ArgumentError(f"poisson: got a mean that is not in [0, {_MOST_MEAN:g})")
    made = elementwise_numbers(_poisson_fractions, xp, mean, shape, key, offset)
    return made.astype(dtype)


# Counts beyond are not exact in float64.
_MOST_MEAN = 1e15
_POISSON = NotDifferentiable("poisson: a count has no derivative with respect to its mean")
random_poisson = general(
    "random_poisson",
    _poisson_forward,
    infer=lambda mean, dtype, **_params: Aval(mean.shape, dtype),
    vjps=(_POISSON,),
    jvp=_POISSON,
    batch=batch_elementwise_numbers,
    effect="random",
)


def poisson(
    mean: ArrayLike = 1.0,
    shape: Shape | None = None,
    *,
    dtype: Any = np.int64,
    generator: Generator | None = None,
) -> Tensor:
    """Draw counts from Poisson distributions.

    Args:
        mean: The mean or means, from 0.
        shape: The sizes; those of the means if not given.
        dtype: Its dtype, of integers or floating.
        generator: Where to draw from; the default generator if not given.

    Raises:
        ArgumentError: A mean is negative or not finite.
        DTypeError: The means are not real.
        NotDifferentiableError: A derivative with respect to a mean was asked for, and the dtype is
            floating; integers are not tracked.
        ShapeError: The means do not broadcast to the shape.

    >>> gt.random.poisson(np.array([0.0, 3.0, 100.0])).dtype
    dtype('int64')
    """
    mean = as_array(mean)
    drawn_dtype(None, "poisson", mean)
    sizes = drawn_shape(shape, "poisson", mean)
    kind = as_dtype(dtype, "poisson")
    if kind.kind not in "iuf":
        raise DTypeError(f"poisson: got dtype {kind}, expected integers or floating numbers")
    mean = broadcast_to(mean, sizes)
    source, words = source_of(generator, "poisson"), WORDS_EACH * math.prod(sizes)
    return drawn(random_poisson, source, words, mean, shape=sizes, dtype=kind)


# ---- choices ------------------------------------------------------------------------------------


def categorical(
    logits: ArrayLike,
    shape: Shape | None = None,
    *,
    axis: int = -1,
    generator: Generator | None = None,
) -> Array:
    """Draw numbers of categories, with probabilities that are the softmax of `logits`.

    Args:
        logits: The logarithms of the probabilities, up to a number that they share; `gt.log(p)` for
            probabilities p. A category with −∞ is never drawn.
        shape: The sizes; those of the logits without `axis` if not given.
        axis: Along which axis of the logits the categories are.
        generator: Where to draw from; the default generator if not given.

    Raises:
        DTypeError: The logits are not real.
        ShapeError: The logits without `axis` do not broadcast to the shape, or there are no
            categories.

    >>> x = gt.random.categorical(np.log([0.5, 0.5, 1e-300]), 1000)
    >>> gt.unique(x)
    tensor([0, 1])
    """
    logits = as_array(logits)
    axis = normalize_axis(axis, len(logits.shape), "categorical")
    logits = moveaxis(logits, axis, -1)
    if logits.shape[-1] == 0:
        raise ShapeError(f"categorical: got logits of shape {logits.shape} without categories")
    own = logits.shape[:-1]
    sizes = own if shape is None else as_shape(shape, "categorical")
    if not broadcasts_to(own, sizes):
        raise ShapeError(
            f"categorical: got logits for shape {own}, expected what broadcasts to {sizes}"
        )
    kind = drawn_dtype(None, "categorical", logits)
    dtype = kind if kind.itemsize > 2 else _F32
    # Gumbel: the largest of logits − log(−log u) is at each place with its probability.
    every = (*sizes, logits.shape[-1])
    source, count = source_of(generator, "categorical"), math.prod(every)
    made = drawn(random_uniform, source, count, near=(logits,), shape=every, dtype=dtype)
    fractions = maximum(made, np.finfo(dtype).tiny)
    return argmax(logits - log(-log(fractions)), axis=-1)


# ---- integers -----------------------------------------------------------------------------------


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
    options: dict[str, Any] = {"low": low, "high": high, "shape": sizes, "dtype": kind}
    return drawn(random_integers, source_of(generator, "randint"), math.prod(sizes), **options)


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
    source = source_of(generator, "permutation")
    if isinstance(x, INTEGER):
        (count,) = as_shape(int(x), "permutation")
        return drawn(random_permutation, source, count, count=count)
    x = as_array(x)
    check_axes("permutation", x, least=1, instead="to permute integers, give their number")
    order = drawn(random_permutation, source, x.shape[0], near=(x,), count=x.shape[0])
    return getitem(x if isinstance(x, Tensor) else Tensor(x), order)
