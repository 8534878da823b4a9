"""Modules that change shapes and sizes, with the names and arguments that PyTorch has."""

from __future__ import annotations

import math
import operator
from typing import Any, ClassVar

from gradtape.errors import ArgumentError, ShapeError
from gradtape.nn.layers.applied import Applied
from gradtape.nn.module import Module
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_choice, check_count
from gradtape.ops.nn.resize import interpolate
from gradtape.ops.nn.shuffle import pixel_shuffle, pixel_unshuffle
from gradtape.ops.nn.unfold import fold, unfold
from gradtape.ops.nn.windows import Sizes
from gradtape.ops.shape import reshape
from gradtape.typing import Array

_MODES = ("nearest", "nearest-exact", "area", "linear", "bilinear", "bicubic", "trilinear")


class Identity(Module):
    """Returns what it gets; takes any arguments when it is made, to stand in for another layer.

    >>> gt.nn.Identity(10, bias=False)(np.arange(3.0))
    array([0., 1., 2.])
    """

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        """Return `x`."""
        return x


def _axis(name: str, dim: int, shape: tuple[int, ...]) -> int:
    if not -len(shape) <= dim < len(shape):
        raise ShapeError(f"{name}: got shape {shape}, which has no axis {dim}")
    return dim % len(shape)


def _flattened(x: Any, start_dim: int, end_dim: int) -> Array:
    x = as_array(x)
    shape = x.shape
    first, last = (_axis("Flatten", dim, shape) for dim in (start_dim, end_dim))
    if first > last:
        raise ShapeError(f"Flatten: got shape {shape}, where axis {end_dim} is before {start_dim}")
    middle = math.prod(shape[first : last + 1])
    return reshape(x, (*shape[:first], middle, *shape[last + 1 :]))


class Flatten(Applied, function=_flattened):
    """Makes one axis of several, by default of all but the first.

    Args:
        start_dim: The first of them.
        end_dim: The last of them.

    >>> gt.nn.Flatten()(np.ones((5, 2, 3, 4))).shape
    (5, 24)
    """

    start_dim: int = 1
    end_dim: int = -1


def _unflattened(x: Any, dim: int, unflattened_size: Sizes) -> Array:
    x = as_array(x)
    at = _axis("Unflatten", dim, x.shape)
    size, known = x.shape[at], math.prod(n for n in unflattened_size if n != -1)
    fits = size % known == 0 if -1 in unflattened_size and known else size == known
    if not fits:
        raise ShapeError(
            f"Unflatten: got shape {x.shape} and sizes {unflattened_size} for axis {dim}, expected "
            f"sizes with the product {size}"
        )
    sizes = [size // known if n == -1 else n for n in unflattened_size]
    return reshape(x, (*x.shape[:at], *sizes, *x.shape[at + 1 :]))


class Unflatten(Applied, function=_unflattened):
    """Makes several axes of one.

    Args:
        dim: The axis.
        unflattened_size: The sizes of the new axes; one of them may be -1 for what is left.

    Raises:
        ArgumentError: The sizes are not integers, or more than one is -1.

    >>> gt.nn.Unflatten(1, (2, -1))(np.ones((5, 24))).shape
    (5, 2, 12)
    """

    dim: int
    unflattened_size: Sizes

    def _check(self) -> None:
        """Raise for sizes that have no meaning, and take them as a tuple."""
        given: Any = self.unflattened_size
        try:
            sizes = tuple(operator.index(n) for n in given)
        except TypeError:
            sizes = ()
        if not sizes or min(sizes) < -1 or sizes.count(-1) > 1:
            raise ArgumentError(
                f"Unflatten: got unflattened_size={given!r}, expected sizes, at most one of them -1"
            )
        self.unflattened_size = sizes


class PixelShuffle(Applied, function=pixel_shuffle):
    """Turns channels into places, so that images grow: `gt.nn.pixel_shuffle`.

    >>> gt.nn.PixelShuffle(2)(np.ones((1, 8, 3, 3))).shape
    (1, 2, 6, 6)
    """

    upscale_factor: int
    _checks: ClassVar = {"upscale_factor": (check_count, 1)}


class PixelUnshuffle(Applied, function=pixel_unshuffle):
    """Turns places into channels, so that images shrink: `gt.nn.pixel_unshuffle`.

    >>> gt.nn.PixelUnshuffle(2)(np.ones((1, 2, 6, 6))).shape
    (1, 8, 3, 3)
    """

    downscale_factor: int
    _checks: ClassVar = {"downscale_factor": (check_count, 1)}


class Upsample(Applied, function=interpolate):
    """Resizes sequences, images or volumes: `gt.nn.interpolate`.

    Raises:
        ArgumentError: There is not one of `size` and `scale_factor`, or no such mode.

    >>> gt.nn.Upsample(scale_factor=2)(np.array([[[1.0, 3.0]]]))
    array([[[1., 1., 3., 3.]]])
    """

    size: int | Sizes | None = None
    scale_factor: float | tuple[float, ...] | None = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None

    def _check(self) -> None:
        """Raise unless there is either a size or a factor, and the mode exists."""
        check_choice("Upsample", _MODES, mode=self.mode)
        if (self.size is None) == (self.scale_factor is None):
            raise ArgumentError(
                f"Upsample: got size={self.size} and scale_factor={self.scale_factor}, expected "
                "one of them"
            )


class Unfold(Applied, function=unfold):
    """Makes a column of each window that moves over images: `gt.nn.unfold`.

    >>> gt.nn.Unfold(2)(np.ones((1, 3, 4, 4))).shape
    (1, 12, 9)
    """

    kernel_size: int | Sizes
    dilation: int | Sizes = 1
    padding: int | Sizes = 0
    stride: int | Sizes = 1


class Fold(Applied, function=fold):
    """Adds columns up to images, as the transpose of `Unfold`: `gt.nn.fold`.

    >>> gt.nn.Fold(4, 2)(np.ones((1, 12, 9))).shape
    (1, 3, 4, 4)
    """

    output_size: int | Sizes
    kernel_size: int | Sizes
    dilation: int | Sizes = 1
    padding: int | Sizes = 0
    stride: int | Sizes = 1
