"""Normalization layers, with the names and arguments that PyTorch has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from gradtape.errors import ArgumentError, ShapeError
from gradtape.nn.layers.applied import Applied
from gradtape.nn.layers.first_values import filled, layer_dtype
from gradtape.nn.module import Module
from gradtape.ops.arguments import as_array, as_shape
from gradtape.ops.checks import check_between, check_count, check_least
from gradtape.ops.nn.batch_norm import batch_norm, instance_norm
from gradtape.ops.nn.normalization import group_norm, layer_norm, rms_norm
from gradtape.ops.nn.normalize import local_response_norm
from gradtape.ops.shape import reshape
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike

_OPTIONS = {
    "num_features": "The number of channels.",
    "eps": "Added to the variance, so that it can be divided by.",
    "momentum": "How much of the statistics of a batch goes into the running ones; None for the "
    "mean over all batches.",
    "affine": "Whether the result is scaled and shifted by parameters.",
    "track_running_stats": "Whether to keep running statistics, for evaluation.",
    "dtype": "The dtype of parameters and statistics.",
    "bias": "Whether the result is shifted, if it is scaled.",
}
_INSTANCE_OPTIONS = {
    **_OPTIONS,
    "momentum": "How much of the statistics of the samples goes into the running ones.",
}
_PARAMETERS = {
    "weight": "What channels are multiplied with, or None.",
    "bias": "What is added to them, or None.",
}
_STATISTICS = {
    **_PARAMETERS,
    "running_mean": "A buffer, or None.",
    "running_var": "A buffer, or None.",
    "num_batches_tracked": "How many batches there were; a buffer, or None.",
}
_INSTANCE_STATISTICS = {
    **_STATISTICS,
    "num_batches_tracked": "A buffer that stays 0, as in PyTorch, or None.",
}
_ERRORS = {
    "ArgumentError": "A number has no meaning.",
    "DTypeError": "The dtype is not a floating-point one.",
}


def _set_parameters(module: Module, shape: Any, affine: bool, bias: bool, dtype: Any) -> Any:
    """Weights of 1 and biases of 0, or None; returns the dtype."""
    kind = layer_dtype(dtype, type(module).__name__)
    module.register_parameter("weight", filled(1.0, shape, kind) if affine else None)
    module.register_parameter("bias", filled(0.0, shape, kind) if affine and bias else None)
    return kind


# ---- with running statistics --------------------------------------------------------------------


class _Running(Module):
    """Parameters, running statistics, and what arrays have to be like.

    Attributes of a class:
        _ndims: How many axes an array may have.
    """

    _ndims: ClassVar[tuple[int, ...]]
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init_subclass__(cls, ndims: tuple[int, ...] = (), **others: Any) -> None:
        super().__init_subclass__(**others)
        if ndims:
            cls._ndims = ndims

    def _set_up(
        self,
        num_features: int,
        eps: float,
        affine: bool,
        bias: bool,
        track_running_stats: bool,
        dtype: Any,
    ) -> None:
        name = type(self).__name__
        check_count(name, 1, num_features=num_features)
        check_least(name, 0, eps=eps)
        self.num_features, self.eps = num_features, eps
        self.affine, self.track_running_stats = affine, track_running_stats
        shape = (num_features,)
        kind = _set_parameters(self, shape, affine, bias, dtype)
        first = (np.zeros(shape, kind), np.ones(shape, kind), np.array(0, np.int64))
        mean, var, count = first if track_running_stats else (None, None, None)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)

    def _checked(self, x: ArrayLike, without_samples: int = 0) -> Any:
        """The array, after a look at its axes; channels come first where there are no samples."""
        x = as_array(x)
        shape = x.shape
        ndim = len(shape)
        place = 0 if ndim == without_samples else 1
        if ndim not in self._ndims or shape[place] != self.num_features:
            some = " or ".join(f"{n} axes" for n in self._ndims)
            raise ShapeError(
                f"{type(self).__name__}: got shape {shape}, expected {some} with "
                f"{self.num_features} channels as axis {place}"
            )
        return x

    def extra_repr(self) -> str:
        """Show the settings."""
        held = vars(self)
        shown = ("eps", "momentum", "affine", "track_running_stats")
        listed = ", ".join(f"{name}={held[name]!r}" for name in shown)
        return f"{self.num_features}, {listed}"


class _BatchNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        dtype: Any = np.float32,
        bias: bool = True,
    ) -> None:
        if momentum is not None:
            check_between(type(self).__name__, 0, 1, momentum=momentum)
        self.momentum = momentum
        self._set_up(num_features, eps, affine, bias, track_running_stats, dtype)

    def forward(self, x: ArrayLike) -> Array:
        """Normalize channels, by the batch in training, by running statistics in evaluation."""
        x = self._checked(x)
        parameters = (self.weight, self.bias)
        mean, var = self.running_mean, self.running_var
        if not (self.training and mean is not None):
            by_batch = self.training or mean is None
            return batch_norm(x, mean, var, *parameters, by_batch, eps=self.eps)
        count = self.num_batches_tracked + 1
        momentum = 1 / count if self.momentum is None else self.momentum
        out, mean, var = batch_norm(
            *(x, mean, var, *parameters, True, momentum, self.eps), return_statistics=True
        )
        # If the first of them cannot be written, nothing is.
        self.running_mean, self.running_var = mean, var
        self.num_batches_tracked = count
        return out


@options(_OPTIONS, attributes=_STATISTICS, raises=_ERRORS)
class BatchNorm1d(_BatchNorm, ndims=(2, 3)):
    """Brings channels of vectors or sequences to mean 0 and variance 1: `gt.nn.batch_norm`.

    In training, mean and variance are those of the batch; in evaluation, running ones.

    >>> layer = gt.nn.BatchNorm1d(2)
    >>> layer(np.array([[1.0, 5.0], [3.0, 5.0]], np.float32)).detach()
    tensor([[-0.999995,  0.      ],
            [ 0.999995,  0.      ]], dtype=float32)
    >>> layer.running_mean, layer.num_batches_tracked
    (tensor([0.2, 0.5], dtype=float32), tensor(1))
    """


@options(_OPTIONS, attributes=_STATISTICS, raises=_ERRORS)
class BatchNorm2d(_BatchNorm, ndims=(4,)):
    """Brings channels of images to mean 0 and variance 1: `gt.nn.batch_norm`.

    In training, mean and variance are those of the batch; in evaluation, running ones.

    >>> layer = gt.nn.BatchNorm2d(3, affine=False)
    >>> layer
    BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=False, track_running_stats=True)
    >>> layer(gt.randn(5, 3, 4, 4, dtype=gt.float32)).shape
    (5, 3, 4, 4)
    """


@options(_OPTIONS, attributes=_STATISTICS, raises=_ERRORS)
class BatchNorm3d(_BatchNorm, ndims=(5,)):
    """Brings channels of volumes to mean 0 and variance 1: `gt.nn.batch_norm`.

    In training, mean and variance are those of the batch; in evaluation, running ones.

    >>> gt.nn.BatchNorm3d(3)(gt.randn(2, 3, 4, 4, 4, dtype=gt.float32)).shape
    (2, 3, 4, 4, 4)
    """


class _InstanceNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        dtype: Any = np.float32,
        bias: bool = True,
    ) -> None:
        name = type(self).__name__
        if momentum is None:
            raise ArgumentError(f"{name}: got momentum=None, expected a number from 0 to 1")
        check_between(name, 0, 1, momentum=momentum)
        self.momentum = momentum
        self._set_up(num_features, eps, affine, bias, track_running_stats, dtype)

    def forward(self, x: ArrayLike) -> Array:
        """Normalize channels of each sample; there may be one sample without an axis for it."""
        single = min(self._ndims)
        x = self._checked(x, without_samples=single)
        if len(x.shape) == single:
            return self._normalized(reshape(x, (1, *x.shape)))[0]
        return self._normalized(x)

    def _normalized(self, x: Any) -> Any:
        parameters = (self.weight, self.bias)
        mean, var = self.running_mean, self.running_var
        if not (self.training and mean is not None):
            return instance_norm(x, mean, var, *parameters, mean is None, eps=self.eps)
        out, mean, var = instance_norm(
            *(x, mean, var, *parameters, True, self.momentum, self.eps), return_statistics=True
        )
        self.running_mean, self.running_var = mean, var
        return out


@options(_INSTANCE_OPTIONS, attributes=_INSTANCE_STATISTICS, raises=_ERRORS)
class InstanceNorm1d(_InstanceNorm, ndims=(2, 3)):
    """Brings each channel of each sequence to mean 0 and variance 1: `gt.nn.instance_norm`.

    >>> gt.nn.InstanceNorm1d(2)(np.array([[[1.0, 3.0], [5.0, 5.0]]]))
    array([[[-0.999995,  0.999995],
            [ 0.      ,  0.      ]]])
    """


@options(_INSTANCE_OPTIONS, attributes=_INSTANCE_STATISTICS, raises=_ERRORS)
class InstanceNorm2d(_InstanceNorm, ndims=(3, 4)):
    """Brings each channel of each image to mean 0 and variance 1: `gt.nn.instance_norm`.

    >>> gt.nn.InstanceNorm2d(3, affine=True)(np.ones((2, 3, 4, 4), np.float32)).shape
    (2, 3, 4, 4)
    """


@options(_INSTANCE_OPTIONS, attributes=_INSTANCE_STATISTICS, raises=_ERRORS)
class InstanceNorm3d(_InstanceNorm, ndims=(4, 5)):
    """Brings each channel of each volume to mean 0 and variance 1: `gt.nn.instance_norm`.

    >>> gt.nn.InstanceNorm3d(3)(np.ones((2, 3, 4, 4, 4), np.float32)).shape
    (2, 3, 4, 4, 4)
    """


# ---- without running statistics -----------------------------------------------------------------


def _sizes(name: str, normalized_shape: Any) -> tuple[int, ...]:
    """The sizes of the last axes, at least one."""
    shape = as_shape(normalized_shape, name)
    if not shape or min(shape) < 1:
        raise ArgumentError(
            f"{name}: got normalized_shape={normalized_shape!r}, expected sizes from 1 on"
        )
    return shape


@options(_OPTIONS, raises=_ERRORS)
class LayerNorm(Module):
    """Brings the last axes to mean 0 and variance 1, then scales and shifts: `gt.nn.layer_norm`.

    Args:
        normalized_shape: The sizes of the last axes, over which mean and variance are taken.
        elementwise_affine: Whether the result is scaled and shifted by parameters.
        dtype: The dtype of the parameters.

    Attributes:
        weight: Of shape `normalized_shape`, or None.
        bias: Of shape `normalized_shape`, or None.

    >>> layer = gt.nn.LayerNorm(3)
    >>> layer(np.array([[1.0, 2.0, 3.0]], np.float32)).detach()
    tensor([[-1.22473...,  0.        ,  1.22473...]], dtype=float32)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: Any = np.float32,
    ) -> None:
        self.normalized_shape = _sizes("LayerNorm", normalized_shape)
        check_least("LayerNorm", 0, eps=eps)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        _set_parameters(self, self.normalized_shape, elementwise_affine, bias, dtype)

    def forward(self, x: ArrayLike) -> Array:
        """Normalize the last axes of `x`."""
        return layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Show the settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


@options(_OPTIONS, raises=_ERRORS)
class RMSNorm(Module):
    """Divides by the root of the mean square over the last axes, then scales: `gt.nn.rms_norm`.

    Args:
        normalized_shape: The sizes of the last axes, over which the mean is taken.
        eps: Added to the mean square; None for the resolution of the dtype.
        elementwise_affine: Whether the result is scaled by a parameter.
        dtype: The dtype of the parameter.

    Attributes:
        weight: Of shape `normalized_shape`, or None.

    >>> gt.nn.RMSNorm(4)(np.array([3.0, 4.0, 0.0, 0.0], np.float32)).detach()
    tensor([1.2, 1.6, 0. , 0. ], dtype=float32)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        dtype: Any = np.float32,
    ) -> None:
        self.normalized_shape = _sizes("RMSNorm", normalized_shape)
        if eps is not None:
            check_least("RMSNorm", 0, eps=eps)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        kind = layer_dtype(dtype, "RMSNorm")
        weight = filled(1.0, self.normalized_shape, kind) if elementwise_affine else None
        self.register_parameter("weight", weight)

    def forward(self, x: ArrayLike) -> Array:
        """Normalize the last axes of `x`."""
        return rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Show the settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


@options(_OPTIONS, attributes=_PARAMETERS, raises=_ERRORS)
class GroupNorm(Module):
    """Brings groups of channels of each sample to mean 0 and variance 1: `gt.nn.group_norm`.

    Args:
        num_groups: Into how many groups the channels are split.
        num_channels: The number of channels.
        dtype: The dtype of the parameters.

    Raises:
        ArgumentError: The groups do not divide the channels, or a number has no meaning.

    >>> gt.nn.GroupNorm(2, 4)(np.ones((3, 4, 5), np.float32)).shape
    (3, 4, 5)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        dtype: Any = np.float32,
        bias: bool = True,
    ) -> None:
        check_count("GroupNorm", 1, num_groups=num_groups, num_channels=num_channels)
        check_least("GroupNorm", 0, eps=eps)
        if num_channels % num_groups:
            raise ArgumentError(
                f"GroupNorm: got {num_channels} channels and num_groups={num_groups}, expected "
                "groups that divide them"
            )
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        _set_parameters(self, (num_channels,), affine, bias, dtype)

    def forward(self, x: ArrayLike) -> Array:
        """Normalize groups of the channels of each sample."""
        x = as_array(x)
        if len(x.shape) < 2 or x.shape[1] != self.num_channels:
            raise ShapeError(
                f"GroupNorm: got shape {x.shape}, expected (samples, {self.num_channels} channels, "
                "…)"
            )
        return group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Show the settings."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class LocalResponseNorm(Applied, function=local_response_norm):
    """Divides by a power of the mean square over neighbouring channels.

    It calls `gt.nn.local_response_norm`.

    Raises:
        ArgumentError: `size` is less than 1.

    >>> gt.nn.LocalResponseNorm(2)(np.zeros((1, 3, 4))).shape
    (1, 3, 4)
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    _checks: ClassVar = {"size": (check_count, 1)}
