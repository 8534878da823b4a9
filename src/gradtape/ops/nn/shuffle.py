"""Channels and places traded for each other: pixel shuffling."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from gradtape.core.aval import Aval
from gradtape.core.define import linear
from gradtape.core.lowering import Composite
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.typing import Array, ArrayLike


def _shuffled(x: Any, factor: int) -> Any:
    """(…, c·r², h, w) to (…, c, h·r, w·r), by operations that arrays and tensors share."""
    *lead, channels, height, width = x.shape
    r, k = factor, len(lead)
    split = x.reshape((*lead, channels // r**2, r, r, height, width))
    order = (*range(k), k, k + 3, k + 1, k + 4, k + 2)
    return split.transpose(order).reshape((*lead, channels // r**2, height * r, width * r))


def _unshuffled(x: Any, factor: int) -> Any:
    """(…, c, h·r, w·r) to (…, c·r², h, w)."""
    *lead, channels, height, width = x.shape
    r, k = factor, len(lead)
    split = x.reshape((*lead, channels, height // r, r, width // r, r))
    order = (*range(k), k, k + 2, k + 4, k + 1, k + 3)
    return split.transpose(order).reshape((*lead, channels * r**2, height // r, width // r))


def _infer_shuffled(x: Aval, factor: int) -> Aval:
    *lead, channels, height, width = x.shape
    return Aval((*lead, channels // factor**2, height * factor, width * factor), x.dtype)


def _infer_unshuffled(x: Aval, factor: int) -> Aval:
    *lead, channels, height, width = x.shape
    return Aval((*lead, channels * factor**2, height // factor, width // factor), x.dtype)


# Elements are moved; transpose: back
_shuffle: Callable[..., Any] = linear(
    "pixel_shuffle",
    Composite(_shuffled),
    lambda ct, _out, _x, factor: _unshuffle(ct, factor=factor),
    infer=_infer_shuffled,
    aliases=True,
)

_unshuffle: Callable[..., Any] = linear(
    "pixel_unshuffle",
    Composite(_unshuffled),
    lambda ct, _out, _x, factor: _shuffle(ct, factor=factor),
    infer=_infer_unshuffled,
    aliases=True,
)


def _checked(name: str, x: ArrayLike, factor: Any) -> tuple[Array, int]:
    x = as_array(x)
    try:
        factor = operator.index(factor)
    except TypeError:
        factor = 0
    if factor < 1:
        raise ArgumentError(f"{name}: got another factor than an integer above 0, expected one")
    if len(x.shape) < 3:
        raise ShapeError(f"{name}: got shape {x.shape}, expected (…, channels, height, width)")
    return x, factor


def pixel_shuffle(x: ArrayLike, /, upscale_factor: int) -> Array:
    """Turn channels into places: (…, c·r², h, w) becomes (…, c, h·r, w·r).

    Args:
        x: Images, with their channels before height and width.
        upscale_factor: The number r by which the images grow.

    Raises:
        ShapeError: The number of channels is not a multiple of r².
        ArgumentError: The factor is not a positive integer.

    >>> gt.nn.pixel_shuffle(np.arange(4.0).reshape(4, 1, 1), 2)
    array([[[0., 1.],
            [2., 3.]]])
    """
    x, factor = _checked("pixel_shuffle", x, upscale_factor)
    if x.shape[-3] % factor**2:
        raise ShapeError(
            f"pixel_shuffle: got shape {x.shape}, expected a number of channels that {factor**2} "
            "divides"
        )
    return _shuffle(x, factor=factor)


def pixel_unshuffle(x: ArrayLike, /, downscale_factor: int) -> Array:
    """Turn places into channels: (…, c, h·r, w·r) becomes (…, c·r², h, w).

    Args:
        x: Images, with their channels before height and width.
        downscale_factor: The number r by which the images shrink.

    Raises:
        ShapeError: Height or width is not a multiple of r.
        ArgumentError: The factor is not a positive integer.

    >>> gt.nn.pixel_unshuffle(np.arange(4.0).reshape(1, 2, 2), 2).shape
    (4, 1, 1)
    """
    x, factor = _checked("pixel_unshuffle", x, downscale_factor)
    if x.shape[-2] % factor or x.shape[-1] % factor:
        raise ShapeError(
            f"pixel_unshuffle: got shape {x.shape}, expected a height and a width that {factor} "
            "divides"
        )
    return _unshuffle(x, factor=factor)
