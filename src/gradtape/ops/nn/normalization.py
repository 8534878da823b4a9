"""Normalization layers, as `torch.nn.functional` has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.define import functions
from gradtape.core.large import LARGE
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.arguments import as_array, as_shape
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.exponential import sqrt
from gradtape.ops.moments import var
from gradtape.ops.nn.standardize import scale_rows, standardized
from gradtape.ops.rearrange import repeat
from gradtape.ops.reduce import Axes, count_over, floats, mean
from gradtape.ops.shape import moveaxis, reshape
from gradtape.typing import Array, ArrayLike

_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)


def _real(name: str, x: ArrayLike) -> Array:
    x = floats(as_array(x))
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: came {x.dtype}; needed real numbers")
    return x


def _widely(x: Any, compute: Any) -> Any:
    """Half precision is computed in single precision, and rounded once."""
    if x.dtype != _HALF:
        return compute(x)
    return astype(compute(astype(x, _SINGLE)), _HALF)


def _parameter(name: str, what: str, given: ArrayLike | None, shape: tuple[int, ...]) -> Any:
    if given is None:
        return None
    given = as_array(given)
    if given.shape != shape:
        raise ShapeError(f"{name}: came {what} of shape {given.shape}; needed {shape}")
    return given


def _reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    return None if x is None else reshape(x, shape)


# ---- over the last axes -------------------------------------------------------------------------


def _trailing(name: str, x: Any, normalized_shape: Any) -> tuple[int, ...]:
    shape = as_shape(normalized_shape, name)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ShapeError(
            f"{name}: came shape {x.shape} and normalized_shape={shape}; needed these as the last "
            "sizes"
        )
    return shape


def _over_trailing(
    x: Any, shape: tuple[int, ...], weight: Any, bias: Any, eps: float, center: bool
) -> Any:
    """Along one axis, that of all elements which are normalized together."""

    def compute(x: Any) -> Any:
        whole, size = x.shape, math.prod(shape)
        if len(shape) == 1:
            return standardized(x, weight, bias, len(whole) - 1, eps, center)
        rows = reshape(x, (*whole[: len(whole) - len(shape)], size))
        w, b = _reshaped(weight, (size,)), _reshaped(bias, (size,))
        return reshape(standardized(rows, w, b, len(rows.shape) - 1, eps, center), whole)

    return _widely(x, compute)


def layer_norm(
    x: ArrayLike,
    /,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Array:
    """The array brought to mean 0 and variance 1 over its last axes, then scaled and shifted.

    Args:
        x: What to normalize.
        normalized_shape: The sizes of the last axes, over which mean and variance are taken.
        weight: What to multiply with, of this shape.
        bias: What to add, of this shape.
        eps: Added to the variance, so that it can be divided by.

    Raises:
        ShapeError: The last sizes are others, or those of the weight or bias.
        DTypeError: The numbers are complex.

    >>> gt.nn.layer_norm(np.array([[1.0, 2.0, 3.0], [4.0, 4.0, 4.0]]), 3)
    array([[-1.22473...,  0.        ,  1.22473...],
           [ 0.        ,  0.        ,  0.        ]])
    """
    x = _real("layer_norm", x)
    shape = _trailing("layer_norm", x, normalized_shape)
    weight = _parameter("layer_norm", "a weight", weight, shape)
    bias = _parameter("layer_norm", "a bias", bias, shape)
    return _over_trailing(x, shape, weight, bias, eps, True)


def rms_norm(
    x: ArrayLike,
    /,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None = None,
    eps: float | None = None,
) -> Array:
    """The array divided by the root of its mean square over its last axes, then scaled.

    Args:
        x: What to normalize.
        normalized_shape: The sizes of the last axes, over which the mean is taken.
        weight: What to multiply with, of this shape.
        eps: Added to the mean square; None for the resolution of the dtype.

    Raises:
        ShapeError: The last sizes are others, or those of the weight.
        DTypeError: The numbers are complex.

    >>> gt.nn.rms_norm(np.array([3.0, 4.0, 0.0, 0.0]), 4)
    array([1.2, 1.6, 0. , 0. ])
    """
    x = _real("rms_norm", x)
    shape = _trailing("rms_norm", x, normalized_shape)
    weight = _parameter("rms_norm", "a weight", weight, shape)
    if eps is None:
        eps = float(functions["finfo"](x.dtype).eps)
    return _over_trailing(x, shape, weight, None, eps, False)


# ---- over channels ------------------------------------------------------------------------------


def _channels(name: str, x: Any, least: int = 2) -> int:
    if len(x.shape) < least:
        raise ShapeError(
            f"{name}: came shape {x.shape}; needed (samples, channels, …) with {least} axes or more"
        )
    return x.shape[1]  # type: ignore[no-any-return]


def _beside(per_channel: Any, ndim: int) -> Any:
    """A number for each channel, in the form that broadcasts against the array."""
    return _reshaped(per_channel, (-1, *(1,) * (ndim - 2)))


def _update(running: Any, now: Any, momentum: float) -> None:
    """A running statistic moved towards what is seen now; nothing of it is recorded."""
    if running is not None:
        fixed = stop_gradient(now)
        old = stop_gradient(running) if isinstance(running, Tensor) else running
        running[...] = old * (1 - momentum) + fixed * momentum


def _by_row(per_channel: Any, x: Any) -> Any:
    """A number for each row of (samples, channels, places)."""
    if per_channel is None:
        return None
    beside = reshape(per_channel, (1, x.shape[1], 1))
    # Large arrays are computed row by row: each has its own number.
    return repeat(beside, x.shape[0], axis=0) if math.prod(x.shape) >= LARGE else beside


def _scaled(x: Any, scale: Any, shift: Any) -> Any:
    """Channels times their numbers, and others added to them."""
    rows = reshape(x, (*x.shape[:2], math.prod(x.shape[2:])))
    return reshape(scale_rows(rows, _by_row(scale, rows), _by_row(shift, rows), axis=2), x.shape)


def _by_statistics(x: Any, m: Any, v: Any, weight: Any, bias: Any, eps: float) -> Any:
    """(x − m)/√(v + eps), scaled and shifted, as one product and one sum."""
    factor = 1 / sqrt(v + eps)
    factor = factor if weight is None else factor * weight
    return _scaled(x, factor, -m * factor if bias is None else bias - m * factor)


def batch_norm(
    x: ArrayLike,
    /,
    running_mean: Any = None,
    running_var: Any = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """Each channel brought to mean 0 and variance 1 over samples and places.

    Args:
        x: Of shape (samples, channels, …).
        running_mean: A mean for each channel. In training, this tensor or array is written to.
        running_var: A variance for each channel, likewise.
        weight: What to multiply each channel with.
        bias: What to add to each channel.
        training: Whether to take mean and variance of the batch, not the running ones.
        momentum: How much of the statistics of the batch goes into the running ones.
        eps: Added to the variance, so that it can be divided by.

    Raises:
        ShapeError: There are no channels, or not a number for each of them; or, in training, there
            is only one element for each channel.
        ArgumentError: Not in training, and there are no running statistics.
        DTypeError: The numbers are complex.

    >>> x = np.array([[1.0, 5.0], [3.0, 5.0]])
    >>> mean, var = np.zeros(2), np.ones(2)
    >>> gt.nn.batch_norm(x, mean, var, training=True)
    array([[-0.999995,  0.      ],
           [ 0.999995,  0.      ]])
    >>> mean
    array([0.2, 0.5])
    """
    x = _real("batch_norm", x)
    sizes = (_channels("batch_norm", x),)
    weight = _parameter("batch_norm", "a weight", weight, sizes)
    bias = _parameter("batch_norm", "a bias", bias, sizes)
    running_mean = _parameter("batch_norm", "a running mean", running_mean, sizes)
    running_var = _parameter("batch_norm", "a running variance", running_var, sizes)
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentError(
                "batch_norm: came no running statistics; give them, or training=True"
            )
        return _widely(x, lambda x: _by_statistics(x, running_mean, running_var, weight, bias, eps))
    ndim = len(x.shape)
    axes = (0, *range(2, ndim))
    count = count_over(x.shape, axes)
    if count == 1:
        raise ShapeError(
            f"batch_norm: came shape {x.shape}; in training more than one element for each channel "
            "is needed"
        )
    if running_mean is not None:
        _update(running_mean, mean(stop_gradient(x), axes), momentum)
    if running_var is not None:
        _update(running_var, var(stop_gradient(x), axes, correction=1), momentum)
    return _widely(x, lambda x: _over_batch(x, weight, bias, axes, eps))


def _over_batch(x: Any, weight: Any, bias: Any, axes: Axes, eps: float) -> Any:
    ndim = len(x.shape)
    if math.prod(x.shape) < LARGE or ndim == 2:
        return standardized(x, _beside(weight, ndim), _beside(bias, ndim), axes, eps)
    # With all of a channel in a row, native code computes it at once.
    turned = moveaxis(x, 0, 1)
    rows = reshape(turned, (x.shape[1], math.prod(x.shape) // x.shape[1]))
    w, b = _reshaped(weight, (-1, 1)), _reshaped(bias, (-1, 1))
    out = reshape(standardized(rows, w, b, 1, eps), turned.shape)
    # By one axis, so that the result is in order.
    return reshape(reshape(moveaxis(out, 0, 1), (-1,)), x.shape)


def instance_norm(
    x: ArrayLike,
    /,
    running_mean: Any = None,
    running_var: Any = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """Each channel of each sample brought to mean 0 and variance 1 over its places.

    Args:
        x: Of shape (samples, channels, …) with at least one axis of places.
        running_mean: A mean for each channel. With `use_input_stats` this tensor or array is
            written to.
        running_var: A variance for each channel, likewise.
        weight: What to multiply each channel with.
        bias: What to add to each channel.
        use_input_stats: Whether to take mean and variance of the samples, not the running ones.
        momentum: How much of the statistics of the samples goes into the running ones.
        eps: Added to the variance, so that it can be divided by.

    Raises:
        ShapeError: There are no channels or places, or not a number for each channel; or there is
            only one place.
        ArgumentError: The running statistics are to be used, and are missing.
        DTypeError: The numbers are complex.

    >>> gt.nn.instance_norm(np.array([[[1.0, 3.0], [5.0, 5.0]]]))
    array([[[-0.999995,  0.999995],
            [ 0.      ,  0.      ]]])
    """
    x = _real("instance_norm", x)
    sizes = (_channels("instance_norm", x, 3),)
    weight = _parameter("instance_norm", "a weight", weight, sizes)
    bias = _parameter("instance_norm", "a bias", bias, sizes)
    running_mean = _parameter("instance_norm", "a running mean", running_mean, sizes)
    running_var = _parameter("instance_norm", "a running variance", running_var, sizes)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ArgumentError(
                "instance_norm: came no running statistics; give them, or use_input_stats=True"
            )
        return _widely(x, lambda x: _by_statistics(x, running_mean, running_var, weight, bias, eps))
    places = tuple(range(2, len(x.shape)))
    if count_over(x.shape, places) == 1:
        raise ShapeError(f"instance_norm: came shape {x.shape}; needed more than one place")
    if running_mean is not None:
        _update(running_mean, mean(stop_gradient(x), (0, *places)), momentum)
    if running_var is not None:
        _update(running_var, mean(var(stop_gradient(x), places, correction=1), 0), momentum)
    return _over_parts(x, (x.shape[0], sizes[0], 1, -1), weight, bias, eps)


def group_norm(
    x: ArrayLike,
    /,
    num_groups: int,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Array:
    """Groups of channels brought to mean 0 and variance 1 over each sample.

    Args:
        x: Of shape (samples, channels, …).
        num_groups: Into how many groups the channels fall.
        weight: What to multiply each channel with.
        bias: What to add to each channel.
        eps: Added to the variance, so that it can be divided by.

    Raises:
        ShapeError: There are no channels, the groups do not divide them, or there is not a number
            for each of them.
        DTypeError: The numbers are complex.

    >>> gt.nn.group_norm(np.array([[1.0, 3.0, 5.0, 5.0]]), 2)
    array([[-0.999995,  0.999995,  0.      ,  0.      ]])
    """
    x = _real("group_norm", x)
    channels = _channels("group_norm", x)
    if num_groups < 1 or channels % num_groups:
        raise ShapeError(
            f"group_norm: came {channels} channels and num_groups={num_groups}; needed groups that "
            "divide them"
        )
    weight = _parameter("group_norm", "a weight", weight, (channels,))
    bias = _parameter("group_norm", "a bias", bias, (channels,))
    parts = (x.shape[0], num_groups, channels // num_groups, -1)
    return _over_parts(x, parts, weight, bias, eps)


def _over_parts(x: Any, parts: tuple[int, ...], weight: Any, bias: Any, eps: float) -> Any:
    """Normalized over the last two of the axes (samples, groups, channels, places)."""
    shape, (samples, groups, channels, _) = x.shape, parts
    places = math.prod(shape[2:])

    def compute(x: Any) -> Any:
        rows = reshape(x, (samples, groups, channels * places))
        if channels == 1:
            w, b = _by_row(weight, rows), _by_row(bias, rows)
            return reshape(standardized(rows, w, b, 2, eps), shape)
        if (weight is None and bias is None) or math.prod(shape) >= LARGE:
            out = reshape(standardized(rows, None, None, 2, eps), shape)
            if weight is None or bias is None:
                out = out if weight is None else out * _beside(weight, len(shape))
                return out if bias is None else out + _beside(bias, len(shape))
            return _scaled(out, weight, bias)
        split = reshape(x, (samples, groups, channels, places))
        w, b = (_reshaped(p, (groups, channels, 1)) for p in (weight, bias))
        return reshape(standardized(split, w, b, (2, 3), eps), shape)

    return _widely(x, compute)
