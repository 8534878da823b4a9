"""Random numbers that are pure functions of (key, offset, shape).

A draw takes a stretch of the stream of a generator; the op only gets key and offset, so evaluating
it again gives the same bits, on any thread and whatever else was drawn. Element i uses words of its
own, so the first n numbers of a longer draw are those of a shorter one.

The draws do not depend on operands: under `vmap` every element of the batch gets the same numbers.
Draw outside `vmap` and pass the numbers in to have different ones.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval, aval_of
from gradtape.core.define import broadcast_sizes, general
from gradtape.core.op import Op
from gradtape.core.tensor import Tensor
from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.arguments import as_dtype, as_shape, weak_or_array
from gradtape.ops.cast import astype
from gradtape.ops.generator import Generator, Key, Source, Words, source_of
from gradtape.ops.inspection import result_type
from gradtape.ops.shape import broadcasts_to
from gradtape.typing import ArrayLike, Shape

# ---- ops: numbers from words --------------------------------------------------------------------

_BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
# Numbers are made in stretches that stay in the cache; even, as normal numbers come in pairs.
_STRETCH = 1 << 14


@functools.cache
def _bits(dtype: np.dtype[Any]) -> int:
    """Significant bits; 0 for dtypes without random numbers."""
    return _BITS.get(dtype.name, 0)


def _stretches(out: Any) -> Iterator[Any]:
    """Views of a flat array, one after the other."""
    return (out[start : start + _STRETCH] for start in range(0, out.size, _STRETCH))


def _halves(whole: Any) -> Any:
    """Words as twice as many 32-bit ones, the low half first on every machine."""
    return whole.astype("<u8", copy=False).view("<u4")


def uniform_numbers(
    _xp: Any, *, shape: tuple[int, ...], dtype: np.dtype[Any], key: Key, offset: int
) -> Any:
    """The top bits of a word (float64) or half a word as a fraction: all below 1."""
    out = np.empty(math.prod(shape), dtype)
    draw, bits = Words(key, offset), _bits(dtype)
    for part in _stretches(out):
        if bits > 32:
            part[...] = (draw(part.size) >> (64 - bits)) * 0.5**bits
        else:
            halves = _halves(draw(-(-part.size // 2)))[: part.size]
            part[...] = (halves >> (32 - bits)).astype(np.float32) * 0.5**bits
    return out.reshape(shape)


def _normal_numbers(
    _xp: Any, *, shape: tuple[int, ...], dtype: np.dtype[Any], key: Key, offset: int
) -> Any:
    """Box and Muller: two uniform numbers make the pair of elements (2j, 2j + 1)."""
    out = np.empty(math.prod(shape), dtype)
    draw, double = Words(key, offset), dtype == np.float64
    for part in _stretches(out):
        pairs = -(-part.size // 2)
        if double:
            fractions = (draw(2 * pairs) >> 11) * 0.5**53
            radius, angle = 1.0 - fractions[0::2], fractions[1::2] * (2 * math.pi)
        else:
            halves = _halves(draw(pairs)).astype(np.float32)
            # The half step keeps the logarithm finite.
            radius = halves[0::2] * 0.5**32 + 0.5**33
            angle = halves[1::2] * (2 * math.pi * 0.5**32)
        np.log(radius, out=radius)
        radius *= -2
        np.sqrt(radius, out=radius)
        part[0::2] = radius * np.cos(angle)
        part[1::2] = (radius * np.sin(angle))[: part.size // 2]
    return out.reshape(shape)


def no_operands(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> tuple[Any, int]:
    raise AssertionError(f"{op.name}: has no operands that could be batched")


def random_op(
    name: str,
    numbers: Callable[..., Any],
    infer: Callable[..., Aval] = lambda shape, dtype, **_params: Aval(shape, dtype),
) -> Callable[..., Any]:
    """Define an op without operands that draws numbers."""
    return general(name, numbers, infer=infer, batch=no_operands, effect="random")


random_uniform = random_op("random_uniform", uniform_numbers)
random_normal = random_op("random_normal", _normal_numbers)


# ---- public functions ---------------------------------------------------------------------------


def drawn(
    op: Callable[..., Any],
    source: Source,
    count: int,
    /,
    *operands: Any,
    near: Sequence[Any] = (),
    **params: Any,
) -> Tensor:
    """The tensor that an op makes of `count` words of a generator.

    Args:
        op: The op.
        source: Where to draw from.
        count: How many words.
        *operands: The operands of the op.
        near: What else the user gave, whose tapes may have a seed.
        **params: The parameters of the op.
    """
    made = op(*operands, **params, **source.take(count, (*operands, *near)))
    return made if isinstance(made, Tensor) else Tensor(made)


def _draw(
    name: str,
    op: Callable[..., Any],
    shape: Shape,
    dtype: Any,
    generator: Generator | None,
    *parameters: Any,
) -> Tensor:
    """A tensor of floating numbers."""
    dtype, sizes = as_floating(dtype, name), as_shape(shape, name)
    source = source_of(generator, name)
    return drawn(op, source, math.prod(sizes), near=parameters, shape=sizes, dtype=dtype)


def as_floating(dtype: Any, name: str) -> np.dtype[Any]:
    """A dtype in which there are random numbers."""
    kind: np.dtype[Any] = as_dtype(dtype, name)
    if not _bits(kind):
        raise DTypeError(f"{name}: got dtype {kind}, expected one of {', '.join(_BITS)}")
    return kind


def _sizes(shape: tuple[Any, ...]) -> Any:
    """`rand((2, 3))` and `rand(2, 3)` mean the same."""
    return shape[0] if len(shape) == 1 else shape


def rand(
    *shape: Shape,
    dtype: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Draw numbers uniformly from [0, 1).

    Args:
        *shape: The sizes, as one tuple or one by one.
        dtype: Its dtype; float64 if not given.
        requires_grad: Whether gradients are to be taken for it.
        generator: Where to draw from; the default generator if not given.

    Raises:
        DTypeError: The dtype is not floating.
        ShapeError: The sizes are not integers from 0.

    >>> gt.rand((2, 3), dtype=gt.float32).shape
    (2, 3)
    """
    made = _draw("rand", random_uniform, _sizes(shape), dtype, generator)
    return made.set_requires_grad() if requires_grad else made


def randn(
    *shape: Shape,
    dtype: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Draw numbers from the normal distribution with mean 0 and variance 1.

    Args:
        *shape: The sizes, as one tuple or one by one.
        dtype: Its dtype; float64 if not given.
        requires_grad: Whether gradients are to be taken for it.
        generator: Where to draw from; the default generator if not given.

    Raises:
        DTypeError: The dtype is not floating.
        ShapeError: The sizes are not integers from 0.

    >>> gt.randn((2, 3), dtype=gt.float32).shape
    (2, 3)
    """
    made = _draw("randn", random_normal, _sizes(shape), dtype, generator)
    return made.set_requires_grad() if requires_grad else made


def drawn_shape(shape: Shape | None, name: str, *parameters: Any) -> tuple[int, ...]:
    """The shape to draw: that of the parameters unless given; then they must broadcast to it."""
    own = broadcast_sizes(*(aval_of(parameter).shape for parameter in parameters))
    if shape is None:
        return own
    wanted = as_shape(shape, name)
    if not broadcasts_to(own, wanted):
        raise ShapeError(
            f"{name}: got parameters of shape {own}, expected what broadcasts to shape {wanted}"
        )
    return wanted


def drawn_dtype(dtype: Any, name: str, *parameters: Any) -> Any:
    """The dtype to draw in: that of the parameters, which are real, unless given."""
    own = result_type(*parameters, 0.0)
    if own.kind == "c":
        raise DTypeError(f"{name}: got parameters of {own}, expected real numbers")
    return own if dtype is None else dtype


def draw_for(
    name: str,
    op: Callable[..., Any],
    shape: Shape | None,
    dtype: Any,
    generator: Generator | None,
    *parameters: Any,
) -> Tensor:
    """Numbers to be scaled by the parameters of a distribution."""
    sizes, kind = drawn_shape(shape, name, *parameters), drawn_dtype(dtype, name, *parameters)
    return _draw(name, op, sizes, kind, generator, *parameters)


def uniform(
    low: ArrayLike = 0.0,
    high: ArrayLike = 1.0,
    shape: Shape | None = None,
    *,
    dtype: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw numbers uniformly from [low, high); differentiable in both.

    Args:
        low: The lower bound or bounds.
        high: The upper bound or bounds.
        shape: The sizes; those of the bounds together if not given.
        dtype: Its dtype; the floating dtype of the bounds if not given.
        generator: Where to draw from; the default generator if not given.

    Raises:
        ShapeError: The bounds do not broadcast to the shape.
        DTypeError: The dtype is not floating, or the bounds are not real.

    >>> gt.uniform(2.0, 3.0, (2, 3)).shape
    (2, 3)
    """
    low, high = weak_or_array(low), weak_or_array(high)
    made = draw_for("uniform", random_uniform, shape, dtype, generator, low, high)
    return astype(low + (high - low) * made, made.dtype, copy=False)  # type: ignore[no-any-return]


def normal(
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    shape: Shape | None = None,
    *,
    dtype: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw numbers from normal distributions; differentiable in mean and standard deviation.

    Args:
        loc: The mean or means.
        scale: The standard deviation or deviations.
        shape: The sizes; those of the parameters together if not given.
        dtype: Its dtype; the floating dtype of the parameters if not given.
        generator: Where to draw from; the default generator if not given.

    Raises:
        ShapeError: The parameters do not broadcast to the shape.
        DTypeError: The dtype is not floating, or the parameters are not real.

    >>> gt.normal(np.zeros(3), 0.1).shape
    (3,)
    """
    loc, scale = weak_or_array(loc), weak_or_array(scale)
    made = draw_for("normal", random_normal, shape, dtype, generator, loc, scale)
    return astype(loc + scale * made, made.dtype, copy=False)  # type: ignore[no-any-return]
