"""Convolutions and transposed convolutions as layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from gradtape.errors import ArgumentError, ShapeError
from gradtape.nn.layers.first_values import by_fan_in, layer_dtype
from gradtape.nn.module import Module
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_choice, check_count
from gradtape.ops.nn.conv import conv1d, conv2d, conv3d, pads_of
from gradtape.ops.nn.conv_transpose import conv_transpose1d, conv_transpose2d, conv_transpose3d
from gradtape.ops.nn.padding import pad
from gradtape.ops.nn.windows import Sizes, per_axis
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike

_CONV = {1: conv1d, 2: conv2d, 3: conv3d}
_TRANSPOSED = {1: conv_transpose1d, 2: conv_transpose2d, 3: conv_transpose3d}
_MODES = ("zeros", "reflect", "replicate", "circular")

_OPTIONS = {
    "in_channels": "How many channels go in.",
    "out_channels": "How many come out.",
    "kernel_size": "The size of the windows: a number, or one for each axis.",
    "stride": "By how much a window moves to the next one: a number, or one for each axis.",
    "padding": "How much is added at both ends: a number, or one for each axis; "
    '"same" keeps the size, "valid" adds nothing.',
    "dilation": "The distance between elements of a window: a number, or one for each axis.",
    "groups": "Into how many groups the channels are split; each is convolved by itself.",
    "bias": "Whether there is a bias.",
    "padding_mode": 'What is added: "zeros", "reflect" (mirrored without the end), "replicate" '
    '(the end), or "circular" (from the other end).',
    "dtype": "The dtype of the parameters.",
}
_TRANSPOSED_OPTIONS = {
    **_OPTIONS,
    "stride": "The distance between the windows of neighbouring elements.",
    "padding": "How many elements are cut off at both ends of the result.",
    "output_padding": "How many of those at the end are kept after all; less than the stride or "
    "the dilation.",
}
_ERRORS = {
    "ArgumentError": "A number is too small, groups do not divide the channels, or an option has a "
    "value that has no meaning.",
    "DTypeError": "The dtype is not a floating-point one.",
}


class _Convolution(Module):
    """What both kinds of convolutions have in common: sizes, parameters and their text."""

    _rank: ClassVar[int]
    _transposed: ClassVar[bool] = False

    def __init_subclass__(cls, rank: int | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if rank is not None:
            cls._rank = rank

    def _set_sizes(
        self,
        channels: tuple[int, int],
        kernel_size: Any,
        stride: Any,
        dilation: Any,
        groups: int,
    ) -> None:
        name = type(self).__name__
        inputs, outputs = channels
        check_count(name, 1, in_channels=inputs, out_channels=outputs, groups=groups)
        if inputs % groups or outputs % groups:
            raise ArgumentError(
                f"{name}: got {inputs} and {outputs} channels and groups={groups}, expected groups "
                "that divide both"
            )
        self.in_channels, self.out_channels, self.groups = inputs, outputs, groups
        self.kernel_size = per_axis(name, "kernel_size", kernel_size, self._rank)
        self.stride = per_axis(name, "stride", stride, self._rank)
        self.dilation = per_axis(name, "dilation", dilation, self._rank)

    def _set_parameters(self, bias: bool, dtype: Any) -> None:
        kind = layer_dtype(dtype, type(self).__name__)
        first, second = self.in_channels, self.out_channels
        if not self._transposed:
            first, second = second, first
        shape = (first, second // self.groups, *self.kernel_size)
        fan_in = math.prod(shape[1:])  # also where inputs come first, as in PyTorch
        self.weight = by_fan_in(shape, fan_in, kind)
        has_bias = by_fan_in((self.out_channels,), fan_in, kind) if bias else None
        self.register_parameter("bias", has_bias)

    def extra_repr(self) -> str:
        """Show the sizes and the options that are not the usual ones."""
        shown: dict[str, Any] = {"kernel_size": self.kernel_size, "stride": self.stride}
        held, ones, zeros = vars(self), (1,) * self._rank, (0,) * self._rank
        usual = {"padding": zeros, "output_padding": zeros, "dilation": ones, "groups": 1}
        usual["padding_mode"] = "zeros"
        shown |= {name: held[name] for name, n in usual.items() if held.get(name, n) != n}
        if self.bias is None:
            shown["bias"] = False
        listed = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return f"{self.in_channels}, {self.out_channels}, {listed}"


class _Conv(_Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sizes,
        stride: int | Sizes = 1,
        padding: int | Sizes | str = 0,
        dilation: int | Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        dtype: Any = np.float32,
    ) -> None:
        name = type(self).__name__
        check_choice(name, _MODES, padding_mode=padding_mode)
        self._set_sizes((in_channels, out_channels), kernel_size, stride, dilation, groups)
        self.padding_mode = padding_mode
        self._pads = pads_of(name, padding, self.kernel_size, self.stride, self.dilation)
        numbers = tuple(before for before, _ in self._pads)
        self.padding = padding if isinstance(padding, str) else numbers
        self._set_parameters(bias, dtype)

    def forward(self, x: ArrayLike) -> Array:
        """Apply the layer to (samples, channels, sizes), or to one sample."""
        padding: int | Sizes | str = self.padding
        if self.padding_mode != "zeros":
            flat = [number for pair in self._pads[::-1] for number in pair]
            x, padding = pad(x, flat, self.padding_mode), 0
        function = _CONV[self._rank]
        options = (self.stride, padding, self.dilation, self.groups)
        return function(x, self.weight, self.bias, *options)


class _ConvTranspose(_Convolution):
    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sizes,
        stride: int | Sizes = 1,
        padding: int | Sizes = 0,
        output_padding: int | Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sizes = 1,
        *,
        dtype: Any = np.float32,
    ) -> None:
        name, rank = type(self).__name__, self._rank
        self._set_sizes((in_channels, out_channels), kernel_size, stride, dilation, groups)
        self.padding = per_axis(name, "padding", padding, rank, least=0)
        more = per_axis(name, "output_padding", output_padding, rank, least=0)
        if any(m >= max(s, d) for m, s, d in zip(more, self.stride, self.dilation, strict=True)):
            raise ArgumentError(
                f"{name}: got output_padding={output_padding!r}, expected less than the stride "
                f"{self.stride} or the dilation {self.dilation}"
            )
        self.output_padding = more
        self._set_parameters(bias, dtype)

    def forward(self, x: ArrayLike, output_size: Sequence[int] | None = None) -> Array:
        """Apply the layer to (samples, channels, sizes), or to one sample.

        Args:
            x: The array.
            output_size: The sizes to come out, one for each spatial axis, in place of
                `output_padding`.
        """
        more = self.output_padding if output_size is None else self._padding_for(x, output_size)
        function = _TRANSPOSED[self._rank]
        options = (self.stride, self.padding, more, self.groups, self.dilation)
        return function(x, self.weight, self.bias, *options)

    def _padding_for(self, x: Any, output_size: Sequence[int]) -> Sizes:
        """The output padding that leads to given sizes."""
        name, rank, x = type(self).__name__, self._rank, as_array(x)
        wanted = per_axis(name, "output_size", tuple(output_size)[-rank:], rank)
        axes = zip(
            *(x.shape[-rank:], self.stride, self.padding, self.dilation, self.kernel_size),
            strict=True,
        )
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in axes]
        most = [
            n + max(s, d) - 1 for n, s, d in zip(least, self.stride, self.dilation, strict=True)
        ]
        if any(not low <= n <= high for low, n, high in zip(least, wanted, most, strict=True)):
            raise ShapeError(
                f"{name}: got output_size={tuple(output_size)} for an array of shape "
                f"{x.shape}, expected sizes from {tuple(least)} to {tuple(most)}"
            )
        return tuple(n - low for n, low in zip(wanted, least, strict=True))


# ---- convolutions -------------------------------------------------------------------------------


@options(_OPTIONS, raises=_ERRORS)
class Conv1d(_Conv, rank=1):
    """Sums of products of weights with windows that move over sequences: `gt.nn.conv1d`.

    Attributes:
        weight: Of shape (out_channels, in_channels / groups, size).
        bias: Of shape (out_channels,), or None.

    >>> layer = gt.nn.Conv1d(2, 4, 3, padding="same")
    >>> layer
    Conv1d(2, 4, kernel_size=(3,), stride=(1,), padding='same'): weight[4, 2, 3], bias[4]
    >>> layer(np.ones((5, 2, 8), np.float32)).shape
    (5, 4, 8)
    """


@options(_OPTIONS, raises=_ERRORS)
class Conv2d(_Conv, rank=2):
    """Sums of products of weights with windows that move over images: `gt.nn.conv2d`.

    Attributes:
        weight: Of shape (out_channels, in_channels / groups, height, width).
        bias: Of shape (out_channels,), or None.

    >>> layer = gt.nn.Conv2d(1, 8, kernel_size=3, padding=1, padding_mode="reflect")
    >>> layer(np.ones((5, 1, 8, 8), np.float32)).shape
    (5, 8, 8, 8)
    """


@options(_OPTIONS, raises=_ERRORS)
class Conv3d(_Conv, rank=3):
    """Sums of products of weights with windows that move over volumes: `gt.nn.conv3d`.

    Attributes:
        weight: Of shape (out_channels, in_channels / groups, depth, height, width).
        bias: Of shape (out_channels,), or None.

    >>> gt.nn.Conv3d(2, 3, 2, stride=2)(np.ones((1, 2, 4, 4, 4), np.float32)).shape
    (1, 3, 2, 2, 2)
    """


# ---- transposed convolutions --------------------------------------------------------------------


@options(_TRANSPOSED_OPTIONS, raises=_ERRORS)
class ConvTranspose1d(_ConvTranspose, rank=1):
    """The transpose of `Conv1d`, as its gradient is computed: `gt.nn.conv_transpose1d`.

    Attributes:
        weight: Of shape (in_channels, out_channels / groups, size).
        bias: Of shape (out_channels,), or None.

    >>> gt.nn.ConvTranspose1d(2, 4, 3, stride=2)(np.ones((5, 2, 8), np.float32)).shape
    (5, 4, 17)
    """


@options(_TRANSPOSED_OPTIONS, raises=_ERRORS)
class ConvTranspose2d(_ConvTranspose, rank=2):
    """The transpose of `Conv2d`, as its gradient is computed: `gt.nn.conv_transpose2d`.

    Attributes:
        weight: Of shape (in_channels, out_channels / groups, height, width).
        bias: Of shape (out_channels,), or None.

    >>> layer = gt.nn.ConvTranspose2d(8, 1, kernel_size=3, stride=2, padding=1)
    >>> x = np.ones((5, 8, 4, 4), np.float32)
    >>> layer(x).shape, layer(x, output_size=(8, 8)).shape
    ((5, 1, 7, 7), (5, 1, 8, 8))
    """


@options(_TRANSPOSED_OPTIONS, raises=_ERRORS)
class ConvTranspose3d(_ConvTranspose, rank=3):
    """The transpose of `Conv3d`, as its gradient is computed: `gt.nn.conv_transpose3d`.

    Attributes:
        weight: Of shape (in_channels, out_channels / groups, depth, height, width).
        bias: Of shape (out_channels,), or None.

    >>> gt.nn.ConvTranspose3d(2, 3, 2, stride=2)(np.ones((1, 2, 3, 3, 3), np.float32)).shape
    (1, 3, 6, 6, 6)
    """
