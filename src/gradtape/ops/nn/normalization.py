"""Normalization layers without running statistics, as `torch.nn.functional` has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor, is_extended_float
from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array, as_shape, real_only
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_axes
from gradtape.ops.inspection import finfo
from gradtape.ops.nn.parameters import parameters
from gradtape.ops.nn.standardize import standardized
from gradtape.ops.reduce import floats
from gradtape.ops.shape import moveaxis, reshape
from gradtape.typing import Array, ArrayLike

_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)


def real(name: str, x: ArrayLike) -> Array:
    """Real floating numbers."""
    return real_only(name, floats(as_array(x)))


def widely(x: Any, compute: Any) -> Any:
    """Compute half precision and bfloat16 in single precision, and round once."""
    if x.dtype != _HALF and not is_extended_float(x.dtype):
        return compute(x)
    return astype(compute(astype(x, _SINGLE)), x.dtype)


def reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` in another shape; None stays None."""
    return None if x is None else reshape(x, shape)


# ---- over the last axes -------------------------------------------------------------------------


def _trailing(name: str, x: Any, normalized_shape: Any) -> tuple[int, ...]:
    shape = as_shape(normalized_shape, name)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ShapeError(
            f"{name}: got shape {x.shape} and normalized_shape={shape}, expected these as the last "
            "sizes"
        )
    return shape


def _over_trailing(
    x: Any, shape: tuple[int, ...], weight: Any, bias: Any, eps: float, center: bool
) -> Any:
    axes = tuple(range(len(x.shape) - len(shape), len(x.shape)))
    return widely(x, lambda x: standardized(x, weight, bias, axes, eps, center))


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
    x = real("layer_norm", x)
    shape = _trailing("layer_norm", x, normalized_shape)
    weight, bias = parameters("layer_norm", shape, weight=weight, bias=bias)
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
    x = real("rms_norm", x)
    shape = _trailing("rms_norm", x, normalized_shape)
    (weight,) = parameters("rms_norm", shape, weight=weight)
    eps = float(finfo(x.dtype).eps) if eps is None else eps
    return _over_trailing(x, shape, weight, None, eps, False)


# ---- over channels ------------------------------------------------------------------------------


def channels_of(name: str, x: Any, least: int = 2) -> int:
    """The number of channels of an array; raises if it has too few axes."""
    check_axes(name, x, least=least, instead="give (samples, channels, …)")
    return x.shape[1]  # type: ignore[no-any-return]


def beside(per_channel: Any, ndim: int) -> Any:
    """A number for each channel, in a shape that broadcasts against the array."""
    return reshaped(per_channel, (-1, *(1,) * (ndim - 2)))


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
    x = real("group_norm", x)
    channels = channels_of("group_norm", x)
    if num_groups < 1 or channels % num_groups:
        raise ShapeError(
            f"group_norm: got {channels} channels and num_groups={num_groups}, expected groups "
            "that divide them"
        )
    weight, bias = parameters("group_norm", (channels,), weight=weight, bias=bias)
    return over_groups(x, num_groups, weight, bias, eps)


def over_groups(x: Any, groups: int, weight: Any, bias: Any, eps: float) -> Any:
    """The array normalized over each group of channels of each sample."""
    samples, channels, *spatial = x.shape
    own, places = channels // groups, math.prod(spatial)

    def compute(x: Any) -> Any:
        if lies_with_channels_last(x):
            turned = moveaxis(x, 1, -1)
            split = reshape(turned, (samples, places, groups, own))
            w, b = (reshaped(p, (groups, own)) for p in (weight, bias))
            out = reshape(standardized(split, w, b, (1, 3), eps), turned.shape)
            return moveaxis(out, -1, 1)
        split = reshape(x, (samples, groups, own, places))
        w, b = (reshaped(p, (groups, own, 1)) for p in (weight, bias))
        return reshape(standardized(split, w, b, (2, 3), eps), x.shape)

    return widely(x, compute)


def lies_with_channels_last(x: Any) -> bool:
    """Whether an array has its second axis last in memory: it is then computed in that order."""
    array = x.value if type(x) is Tensor else x
    if type(array) is not np.ndarray or array.ndim < 3 or array.flags.c_contiguous:
        return False
    return np.moveaxis(array, 1, -1).flags.c_contiguous
