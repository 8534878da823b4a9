"""Channels and places traded for each other: pixel shuffling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape.core.aval import Aval
from gradtape.core.define import linear
from gradtape.core.lowering import Composite
from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.nn.windows import per_axis
from gradtape.typing import Array, ArrayLike


def _shape(shape: Sequence[int], r: int, back: bool) -> tuple[int, ...]:
    *lead, channels, height, width = shape
    if back:
        return (*lead, channels * r**2, height // r, width // r)
    return (*lead, channels // r**2, height * r, width * r)


def _moved(x: Any, factor: int, back: bool) -> Any:
    """Split axes, swap the parts and join them, by operations that arrays and tensors share."""
    *lead, channels, height, width = x.shape
    r, k = factor, len(lead)
    if back:
        split, order = (channels, height // r, r, width // r, r), (k, k + 2, k + 4, k + 1, k + 3)
    else:
        split, order = (channels // r**2, r, r, height, width), (k, k + 3, k + 1, k + 4, k + 2)
    turned = x.reshape((*lead, *split)).transpose((*range(k), *order))
    return turned.reshape(_shape(x.shape, factor, back))


# (…, c·r², h, w) to (…, c, h·r, w·r): elements are moved; transpose: back
_shuffle: Callable[..., Any] = linear(
    "pixel_shuffle",
    Composite(_moved),
    lambda ct, _out, _x, factor, back: _shuffle(ct, factor=factor, back=not back),
    infer=lambda x, factor, back: Aval(_shape(x.shape, factor, back), x.dtype),
    aliases=True,
)


def _checked(name: str, x: ArrayLike, option: str, factor: int) -> tuple[Array, int]:
    (factor,), x = per_axis(name, option, factor, rank=1), as_array(x)
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
    x, factor = _checked("pixel_shuffle", x, "upscale_factor", upscale_factor)
    if x.shape[-3] % factor**2:
        raise ShapeError(
            f"pixel_shuffle: got shape {x.shape}, expected a number of channels that {factor**2} "
            "divides"
        )
    return _shuffle(x, factor=factor, back=False)


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
    x, factor = _checked("pixel_unshuffle", x, "downscale_factor", downscale_factor)
    if x.shape[-2] % factor or x.shape[-1] % factor:
        raise ShapeError(
            f"pixel_unshuffle: got shape {x.shape}, expected a height and a width that {factor} "
            "divides"
        )
    return _shuffle(x, factor=factor, back=True)
