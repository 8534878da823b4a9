"""Softmax and its relatives, under the names and with the options of `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import composite
from gradtape.errors import ShapeError
from gradtape.ops.activation import sigmoid
from gradtape.ops.arguments import as_array, normalize_axis, real_only
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.checks import check_positive
from gradtape.ops.exponential import log, log1p
from gradtape.ops.generator import Generator, source_of
from gradtape.ops.index import getitem_basic
from gradtape.ops.join import concatenate
from gradtape.ops.locate import one_hot
from gradtape.ops.random import random_uniform
from gradtape.ops.reduce import floats
from gradtape.ops.select import clip
from gradtape.ops.shape import moveaxis
from gradtape.ops.softmax import log_softmax as log_softmax_of, softmax as softmax_of
from gradtape.ops.which import argmax
from gradtape.typing import Array, ArrayLike

# ---- softmax ------------------------------------------------------------------------------------


def softmax(x: ArrayLike, /, dim: int = -1, *, dtype: Any = None, axis: int | None = None) -> Array:
    """Exponentials divided by their sum along an axis: positive shares that add up to 1.

    Args:
        x: The logits.
        dim: Along which axis the shares add up to 1.
        dtype: The dtype to compute in.
        axis: Another name of `dim`.

    Raises:
        AxisError: There is no such axis.

    >>> gt.nn.softmax(np.zeros((2, 4)), dim=1)[0]
    array([0.25, 0.25, 0.25, 0.25])
    """
    return softmax_of(_in(dtype, x), dim if axis is None else axis)


def log_softmax(
    x: ArrayLike, /, dim: int = -1, *, dtype: Any = None, axis: int | None = None
) -> Array:
    """Logarithm of `softmax`, exact where softmax itself would underflow to 0.

    Args:
        x: The logits.
        dim: Along which axis the exponentials add up to 1.
        dtype: The dtype to compute in.
        axis: Another name of `dim`.

    Raises:
        AxisError: There is no such axis.

    >>> gt.nn.log_softmax(np.array([0.0, -1000.0]), dim=0)
    array([    0., -1000.])
    """
    return log_softmax_of(_in(dtype, x), dim if axis is None else axis)


def softmin(x: ArrayLike, /, dim: int = -1, *, dtype: Any = None, axis: int | None = None) -> Array:
    """`softmax` of the negative: the smallest elements get the largest shares.

    Args:
        x: The logits, with opposite sign.
        dim: Along which axis the shares add up to 1.
        dtype: The dtype to compute in.
        axis: Another name of `dim`.

    Raises:
        AxisError: There is no such axis.

    >>> gt.nn.softmin(np.array([0.0, 1000.0]), dim=0)
    array([1., 0.])
    """
    return softmax_of(-_in(dtype, x), dim if axis is None else axis)


def _in(dtype: Any, x: ArrayLike) -> Array:
    x = as_array(x)
    return x if dtype is None else astype(x, dtype, copy=False)


def gumbel_softmax(
    logits: ArrayLike,
    /,
    tau: float = 1.0,
    hard: bool = False,
    dim: int = -1,
    *,
    generator: Generator | None = None,
) -> Array:
    """Draw from the distribution over classes that logits describe, in a form with a gradient.

    Args:
        logits: Logarithms of probabilities, up to a constant.
        tau: The temperature: the lower it is, the nearer the result is to a single class.
        hard: Whether the value is a single class; the gradient is that of the shares all the same.
        dim: The axis of the classes.
        generator: Where to draw from; the default generator if not given.

    Raises:
        ArgumentError: The temperature is not positive.
        AxisError: There is no such axis.

    >>> x = gt.nn.gumbel_softmax(np.zeros((5, 3)), hard=True)
    >>> np.sum(x, 1)
    array([1., 1., 1., 1., 1.])
    """
    check_positive("gumbel_softmax", tau=tau)
    logits = floats(as_array(logits))
    dim = normalize_axis(dim, len(logits.shape), "gumbel_softmax")
    taken = source_of(generator, "gumbel_softmax").take(math.prod(logits.shape), (logits,))
    # In double precision, so that 0 is as good as never drawn; then the noise would be infinite.
    fractions = random_uniform(shape=logits.shape, dtype=np.dtype(np.float64), **taken)
    noise = astype(-log(clip(-log1p(-fractions), 2.0**-60)), logits.dtype, copy=False)
    shares = softmax_of((logits + noise) / tau, dim)
    if not hard:
        return shares
    fixed = stop_gradient(shares)
    single = moveaxis(one_hot(argmax(fixed, dim), logits.shape[dim], dtype=shares.dtype), -1, dim)
    return stop_gradient(single - fixed) + shares


# ---- gated linear unit --------------------------------------------------------------------------


def _halves(x: Any, axis: int) -> tuple[Any, Any]:
    half = x.shape[axis] // 2
    before = (slice(None),) * axis
    return (
        getitem_basic(x, index=(*before, slice(0, half))),
        getitem_basic(x, index=(*before, slice(half, None))),
    )


def _glu_of(x: Any, axis: int) -> Any:
    first, second = _halves(x, axis)
    return first * sigmoid(second)


def _glu_vjp(ct: Any, _out: Any, x: Any, axis: int) -> Any:
    first, second = _halves(x, axis)
    s = sigmoid(second)
    opened = ct * s
    return concatenate([opened, opened * first * (1 - s)], axis)


def _infer_glu(x: Aval, axis: int) -> Aval:
    return Aval((*x.shape[:axis], x.shape[axis] // 2, *x.shape[axis + 1 :]), x.dtype)


# d a·σ(b) = σ(b)·(da + a·(1 − σ(b))·db)
_glu = composite("glu", _glu_of, _glu_vjp, infer=_infer_glu, kind="axiswise")


def glu(x: ArrayLike, /, dim: int = -1) -> Array:
    """The first half along an axis times the `sigmoid` of the second half.

    Args:
        x: Both halves.
        dim: The axis to halve.

    Raises:
        AxisError: There is no such axis.
        ShapeError: The axis cannot be halved.

    >>> gt.nn.glu(np.array([2.0, 4.0, 0.0, 1000.0]))
    array([1., 4.])
    """
    x = real_only("glu", floats(as_array(x)))
    axis = normalize_axis(dim, len(x.shape), "glu")
    if x.shape[axis] % 2:
        raise ShapeError(f"glu: got shape {x.shape}, expected an even size along axis {axis}")
    return _glu(x, axis=axis)
