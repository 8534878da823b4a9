"""Resizing of sequences, images and volumes, as `torch.nn.functional.interpolate` does it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_choice
from gradtape.ops.nn.resample import Map, is_selection, resample
from gradtape.ops.nn.windows import Sizes, per_axis, ratios_per_axis
from gradtape.ops.reduce import floats
from gradtape.typing import Array, ArrayLike

# Per mode: what happens along each axis, and how many spatial axes there may be.
_MODES: dict[str, tuple[str, tuple[int, ...]]] = {
    "nearest": ("nearest", (1, 2, 3)),
    "nearest-exact": ("nearest-exact", (1, 2, 3)),
    "area": ("area", (1, 2, 3)),
    "linear": ("linear", (1,)),
    "bilinear": ("linear", (2,)),
    "bicubic": ("cubic", (2,)),
    "trilinear": ("linear", (3,)),
}


def interpolate(
    x: ArrayLike,
    /,
    size: int | Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Array:
    """The spatial axes resized, by the nearest element or by weighted sums of those around.

    Args:
        x: Of shape (samples, channels, and one to three spatial axes).
        size: The new size, or one for each spatial axis; either this or `scale_factor`.
        scale_factor: The factor of the sizes: a number, or one for each spatial axis.
        mode: "nearest", "nearest-exact", "area" (averages); "linear" for one spatial axis,
            "bilinear" or "bicubic" for two, "trilinear" for three.
        align_corners: Whether the first and the last elements keep their places, instead of the
            edges around them; only where weighted sums are taken.
        recompute_scale_factor: Whether places follow the ratio of the sizes, which are rounded, and
            not `scale_factor` as it was given.

    Raises:
        ShapeError: The array has other axes than the mode needs, or none of the elements is left.
        ArgumentError: Options contradict each other, or the mode is unknown.

    >>> x = np.array([[[1.0, 3.0]]])
    >>> gt.nn.interpolate(x, scale_factor=2)
    array([[[1., 1., 3., 3.]]])
    >>> gt.nn.interpolate(x, size=3, mode="linear", align_corners=True)
    array([[[1., 2., 3.]]])
    """
    x = as_array(x)
    kind = _checked_mode(x, mode, align_corners)
    old = x.shape[2:]
    new, factors = _sizes(old, size, scale_factor)
    if recompute_scale_factor:
        if scale_factor is None:
            raise ArgumentError(
                "interpolate: got recompute_scale_factor=True without scale_factor, expected one"
            )
        factors = (None,) * len(old)
    if mode == "nearest" and len(old) == 2:
        # In images that keep or double their size PyTorch does not ask for the factor.
        exact = (count in (n, 2 * n) for n, count in zip(old, new, strict=True))
        factors = tuple(None if e else factor for e, factor in zip(exact, factors, strict=True))
    axes = zip(old, new, factors, strict=True)
    maps = tuple(_map(kind, n, count, factor, bool(align_corners)) for n, count, factor in axes)
    if not all(is_selection(m) for m in maps):
        x = floats(x)
    return resample(x, maps=maps, transposed=False)


def _checked_mode(x: Any, mode: str, align_corners: bool | None) -> str:
    rank = len(x.shape) - 2
    check_choice("interpolate", _MODES, mode=mode)
    kind, ranks = _MODES[mode]
    if rank not in ranks:
        raise ShapeError(
            f"interpolate: got shape {x.shape} with mode {mode!r}, expected samples, channels and "
            f"{' or '.join(map(str, ranks))} spatial axes"
        )
    if align_corners is not None and kind not in ("linear", "cubic"):
        raise ArgumentError(
            f"interpolate: got align_corners with mode {mode!r}, expected a mode that takes "
            "weighted sums; leave it out"
        )
    return kind


def _sizes(old: Sizes, size: Any, scale_factor: Any) -> tuple[Sizes, tuple[float | None, ...]]:
    """The new sizes, and the factors of places if these are not the ratios of sizes."""
    if (size is None) == (scale_factor is None):
        raise ArgumentError("interpolate: expected either size= or scale_factor=")
    if any(n == 0 for n in old):
        raise ShapeError(f"interpolate: got spatial sizes {old}, expected at least one element")
    if size is not None:
        return per_axis("interpolate", "size", size, len(old)), (None,) * len(old)
    given = ratios_per_axis("interpolate", "scale_factor", scale_factor, len(old), math.inf)
    new = tuple(math.floor(n * factor) for n, factor in zip(old, given, strict=True))
    if 0 in new:
        raise ShapeError(
            f"interpolate: got sizes {old} and scale_factor={scale_factor}, which "
            "leaves none, expected larger factors"
        )
    return new, tuple(float(factor) for factor in given)


def _map(kind: str, size: int, count: int, factor: float | None, corners: bool) -> Map | None:
    if corners:
        step = (size - 1) / (count - 1) if count > 1 else 0.0
    else:
        step = size / count if factor is None else 1 / factor
    if size == count and (step == 1 or kind == "linear"):
        return None
    return Map(kind, size, count, 0.0 if kind == "area" else step, corners)
