"""Dropout, and other functions that treat each element at random.

Draws are a pure function of a key and a place in its stream (see `ops.random`): the record, a
second derivative and a replay see the same draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.define import elementwise_op, general
from gradtape.core.op import Zero
from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_axes, check_between
from gradtape.ops.family import by_rank, member
from gradtape.ops.generator import Generator, Key, Source, Words, source_of
from gradtape.ops.nn.activations import sloped
from gradtape.ops.random import no_operands, random_uniform
from gradtape.ops.reduce import floats
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike

# The limit of selu at −∞: elements dropped by alpha_dropout are set to it.
_SATURATED = -1.7580993408473766


# ---- which elements stay ------------------------------------------------------------------------


def _kept_forward(_xp: Any, *, p: float, shape: tuple[int, ...], key: Key, offset: int) -> Any:
    """Where half a word, as a fraction of all of them, is not below the probability `p`."""
    count = math.prod(shape)
    halves = Words(key, offset)(-(-count // 2)).astype("<u8", copy=False).view("<u4")[:count]
    return (halves >= np.uint32(min(round(p * 2**32), 2**32 - 1))).reshape(shape)


random_kept = general(
    "random_kept",
    _kept_forward,
    infer=lambda p, shape, key, offset: Aval(shape, np.dtype(np.bool_)),
    batch=no_operands,
    effect="random",
)


def draw_kept(shape: tuple[int, ...], p: float, source: Source, *near: Any) -> Any:
    """Truth values that are false with probability `p`; for `near`, see `Source.take`."""
    if p == 1:
        return np.zeros(shape, np.bool_)
    return random_kept(p=p, shape=shape, **source.take(-(-math.prod(shape) // 2), near))


def _dropout_forward(xp: Any, x: Any, kept: Any, scale: float, shift: float, other: float) -> Any:
    if shift == 0 and other == 0:
        return xp.where(kept, x * scale, 0)
    return xp.where(kept, x * scale + shift, other)


# x·scale + shift where elements are kept, a number elsewhere: d = scale·dx where they are kept
keep_or_set: Callable[..., Any] = elementwise_op(
    "dropout",
    _dropout_forward,
    lambda ct, _out, _x, kept, scale, shift, other: keep_or_set(
        ct, kept, scale=scale, shift=0.0, other=0.0
    ),
    Zero("which elements are kept does not change by a little"),
    lower=scalar,
    bounded=True,
)


# ---- dropout ------------------------------------------------------------------------------------


def _prepared(name: str, x: ArrayLike, p: float) -> tuple[Any, float]:
    """The array as floats, and the probability, checked."""
    check_between(name, 0, 1, p=p)
    return floats(as_array(x)), float(p)


def _dropped(x: Any, shape: tuple[int, ...], p: float, source: Source) -> Any:
    """Elements set to 0 with probability p, others divided by 1 − p."""
    kept = draw_kept(shape, p, source, x)
    # With p = 1 none is kept; a scale of 0 would turn infinite elements into NaN.
    return keep_or_set(x, kept, scale=1 / (1 - p) if p < 1 else 1.0, shift=0.0, other=0.0)


_DROPPING = {
    "x": "What to drop elements of.",
    "p": "The probability of an element to be dropped.",
    "training": "Whether to drop anything; if not, the result is `x`.",
    "generator": "Where to draw from; the default generator if not given.",
}
_NO_PROBABILITY = {"ArgumentError": "`p` is no probability."}


@options(_DROPPING, raises=_NO_PROBABILITY)
def dropout(
    x: ArrayLike,
    /,
    p: float = 0.5,
    training: bool = True,
    *,
    generator: Generator | None = None,
) -> Array:
    """Elements set to 0 at random, and the others divided by the probability of staying.

    >>> x = gt.nn.dropout(np.ones(1000), 0.25, generator=gt.random.Generator(0))
    >>> np.unique(x)
    array([0.        , 1.33333333])
    """
    x, p = _prepared("dropout", x, p)
    source = source_of(generator, "dropout")
    return _dropped(x, x.shape, p, source) if training and p > 0 else x


# By the number of spatial axes: from how many axes on the first one is the samples, as in PyTorch.
_WITH_SAMPLES = {1: 3, 2: 3, 3: 5}


@options(_DROPPING, raises=_NO_PROBABILITY)
def _dropout_channels(
    name: str,
    rank: int,
    x: ArrayLike,
    /,
    p: float = 0.5,
    training: bool = True,
    *,
    generator: Generator | None = None,
) -> Array:
    """Whole channels of {things} set to 0 at random; otherwise as `dropout`.

    Args:
        x: Of shape (samples, channels, {sizes}). If there is one axis less, `dropout2d` takes the
            first one for the samples, and the other functions for the channels.
        p: The probability that a channel is dropped.

    Raises:
        ShapeError: The array has other axes.

    1d:
    >>> gt.nn.dropout1d(np.ones((2, 3, 4))).shape
    (2, 3, 4)

    2d:
    >>> gt.nn.dropout2d(np.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)

    3d:
    >>> gt.nn.dropout3d(np.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 4, 4, 4)
    """
    x, p = _prepared(name, x, p)
    check_axes(name, x, least=rank + 1, most=rank + 2)
    lead = 2 if len(x.shape) >= _WITH_SAMPLES[rank] else 1
    shape = (*x.shape[:lead], *(1,) * (len(x.shape) - lead))
    source = source_of(generator, name)
    return _dropped(x, shape, p, source) if training and p > 0 else x


dropout1d, dropout2d, dropout3d = by_rank("dropout", _dropout_channels)


@options(_DROPPING, raises=_NO_PROBABILITY)
def _alpha_dropout(
    name: str,
    x: ArrayLike,
    /,
    p: float = 0.5,
    training: bool = False,
    *,
    generator: Generator | None = None,
) -> Array:
    """Dropout for `selu`: sets {elements} to its lower limit, and keeps mean and variance.

    Args:
        x: What to drop {elements} of; channels are along its second axis.
        p: The probability that one of them is dropped.

    Raises:
        ShapeError: `feature_alpha_dropout` got less than two axes.

    alpha_dropout:
    >>> x = gt.nn.alpha_dropout(gt.randn(10000), 0.3, training=True)
    >>> bool(abs(gt.std(x) - 1) < 0.1)
    True

    feature_alpha_dropout:
    >>> gt.nn.feature_alpha_dropout(np.ones((2, 3, 4)), training=True).shape
    (2, 3, 4)
    """
    x, p = _prepared(name, x, p)
    shape = x.shape
    if name == "feature_alpha_dropout":
        check_axes(name, x, least=2, instead="give (samples, channels, …)")
        shape = (*shape[:2], *(1,) * (len(shape) - 2))
    if not training or p == 0:
        return x
    # All elements are scaled so that mean 0 and variance 1 stay.
    scale = 1 / math.sqrt((1 - p) * (1 + p * _SATURATED**2)) if p < 1 else 0.0
    shift = -scale * p * _SATURATED
    other = scale * _SATURATED + shift
    kept = draw_kept(shape, p, source_of(generator, name), x)
    return keep_or_set(x, kept, scale=scale, shift=shift, other=other)


alpha_dropout = member("alpha_dropout", _alpha_dropout, elements="elements")
feature_alpha_dropout = member("feature_alpha_dropout", _alpha_dropout, elements="whole channels")


# ---- slopes drawn at random ---------------------------------------------------------------------


@options(_DROPPING)
def rrelu(
    x: ArrayLike,
    /,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    *,
    generator: Generator | None = None,
) -> Array:
    """The array with its negative elements multiplied by slopes that are drawn at random.

    Args:
        x: Where to evaluate it.
        lower: The smallest slope.
        upper: The largest slope.
        training: Whether to draw a slope for each element; if not, all are the mean of both.

    Raises:
        ArgumentError: The smallest slope is larger than the largest one.

    >>> gt.nn.rrelu(np.array([-1.0, 2.0]), 0.2, 0.3)
    array([-0.25,  2.  ])
    """
    if not lower <= upper:
        raise ArgumentError(f"rrelu: got lower={lower}, upper={upper}, expected lower <= upper")
    x = floats(as_array(x))
    if not training:
        return sloped(x, (lower + upper) / 2)
    taken = source_of(generator, "rrelu").take(math.prod(x.shape), (x,))
    fractions = random_uniform(shape=x.shape, dtype=x.dtype, **taken)
    return sloped(x, astype(lower + (upper - lower) * fractions, x.dtype, copy=False))
