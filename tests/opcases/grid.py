"""Samples of grid sampling, by a reference that goes from place to place."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from opcases.case import At, OpCase, Raises, draw
from opcases.resize import cubic

F = gt.nn.functional


def reflected(i: float, size: int, corners: bool | None) -> float:
    low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
    if low == high:
        return 0.0
    while not low <= i <= high:
        i = 2 * low - i if i < low else 2 * high - i
    return i


def padded(i: float, size: int, padding: str, corners: bool | None) -> float:
    if padding == "reflection":
        i = reflected(i, size, corners)
    return i if padding == "zeros" else min(max(i, 0), size - 1)


def terms(u: float, size: int, mode: str, padding: str, corners: bool | None) -> Any:
    """Which elements along an axis count for a coordinate, and how much."""
    place = (u + 1) / 2 * (size - 1) if corners else ((u + 1) * size - 1) / 2
    if mode != "bicubic":
        place = padded(place, size, padding, corners)
    if mode == "nearest":
        found = [(round(place), 1.0)]
    elif mode == "bilinear":
        left = math.floor(place)
        found = [(left, 1 - (place - left)), (left + 1, place - left)]
    else:
        left = math.floor(place)
        around = range(left - 1, left + 3)
        found = [(int(padded(k, size, padding, corners)), cubic(place - k)) for k in around]
    return [(k, weight) for k, weight in found if 0 <= k < size]


def sampled(
    x: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    rank = x.ndim - 2
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]), np.result_type(x, grid))
    for n, *at in np.ndindex(grid.shape[:-1]):
        axes = [
            terms(float(u), size, mode, padding_mode, align_corners)
            for u, size in zip(grid[(n, *at)][::-1], x.shape[2:], strict=True)
        ]
        for chosen in itertools.product(*axes):
            weight = math.prod(share for _, share in chosen)
            out[(n, slice(None), *at)] += weight * x[(n, slice(None), *(k for k, _ in chosen))]
    assert rank == grid.shape[-1]
    return out


IMAGE, PLACES = draw(1, 2, 3, 4), draw(1, 2, 2, 2, low=-1.3, high=1.3)
VOLUME, IN_VOLUME = draw(2, 1, 2, 3, 2), draw(2, 1, 2, 2, 3, low=-1.3, high=1.3)


def on_edges(padding: str) -> At:
    """Places on an edge, in a corner, and inside; on edges there is no derivative across them."""
    image, places = [[[[1.0, 2.0], [4.0, 8.0]]]], [[[[1.0, 0.0], [-1.0, -1.0], [0.0, 0.0]]]]
    by_image = [[[[1.25, 0.75], [0.25, 0.75]]]]
    by_places = [[[[0.0, 3.0], [0.0, 0.0], [1.25, 2.25]]]]
    return At((image, places, "bilinear", padding, True), (by_image, by_places))


def sampling(label: str, x: Any, grid: Any, *args: Any, **more: Any) -> OpCase:
    """A case of grid sampling."""
    nearest = args[:1] == ("nearest",)
    return OpCase(
        F.grid_sample,
        (x, grid, *args),
        sampled,
        ops=("grid_read", "grid_add") if nearest else ("grid_read", "grid_add", "grid_dot"),
        label=label,
        rtol=256,
        torch=lambda torch, *args: torch.nn.functional.grid_sample(
            *args, **({} if len(args) == 5 else {"align_corners": False})
        ),
        **more,
    )


GRID = [
    sampling(
        "",
        IMAGE,
        PLACES,
        raises=[
            Raises((IMAGE, PLACES[0]), ShapeError, "grid_sample: got shapes"),
            Raises((IMAGE[..., :0], PLACES), ShapeError, "grid_sample: got shapes"),
            Raises((IMAGE, PLACES, "cubic"), ArgumentError, "mode='cubic'"),
            Raises((VOLUME, IN_VOLUME, "bicubic"), ArgumentError, "got mode='bicubic'"),
            Raises((IMAGE, PLACES, "nearest", "wrap"), ArgumentError, "padding_mode='wrap'"),
            Raises((IMAGE, PLACES.astype(int)), DTypeError, "a grid of int64"),
        ],
    ),
    sampling("corners", IMAGE, PLACES, "bilinear", "zeros", True),
    sampling("border", IMAGE, PLACES, "bilinear", "border"),
    sampling("border-corners", IMAGE, PLACES, "bilinear", "border", True, at=[on_edges("border")]),
    sampling("reflection", IMAGE, PLACES * 3, "bilinear", "reflection"),
    sampling(
        "reflection-corners",
        IMAGE,
        PLACES * 3,
        "bilinear",
        "reflection",
        True,
        at=[on_edges("reflection")],
    ),
    sampling("reflection-one", IMAGE[:, :, :1], PLACES, "bilinear", "reflection", True),
    sampling("nearest", IMAGE, PLACES, "nearest"),
    sampling("nearest-border", IMAGE, PLACES, "nearest", "border", True),
    sampling("bicubic", IMAGE, PLACES[:, :1], "bicubic", second_order=False),
    sampling(
        "bicubic-reflection",
        IMAGE[:, :1],
        PLACES[:, :1],
        "bicubic",
        "reflection",
        second_order=False,
    ),
    sampling("volume", VOLUME, IN_VOLUME, second_order=False),
]


def mapped(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    n, _, *sizes = size
    out = np.zeros((n, *sizes, len(sizes)), theta.dtype)
    for place in np.ndindex(*sizes):
        at = [
            0.0 if m == 1 else (2 * i / (m - 1) - 1 if align_corners else (2 * i + 1) / m - 1)
            for i, m in zip(place, sizes, strict=True)
        ]
        out[(slice(None), *place)] = theta @ np.array([*at[::-1], 1.0], theta.dtype)
    return out


AFFINE = [
    OpCase(
        F.affine_grid,
        (draw(2, 2, 3), (2, 1, 2, 3)),
        mapped,
        ops=("matmul",),
        torch=lambda torch, theta, size: torch.nn.functional.affine_grid(
            theta, list(size), align_corners=False
        ),
        raises=[
            Raises((draw(2, 2, 3), (1, 1, 2, 3)), ShapeError, "affine_grid: got shape"),
            Raises((draw(2, 3, 4), (2, 1, 2, 3)), ShapeError, "affine_grid: got shape"),
        ],
    ),
    OpCase(
        F.affine_grid,
        (draw(1, 3, 4), (1, 1, 2, 2, 3), True),
        mapped,
        ops=("matmul",),
        label="volume",
        torch=lambda torch, theta, size, corners: torch.nn.functional.affine_grid(
            theta, list(size), align_corners=corners
        ),
    ),
]

CASES = [*GRID, *AFFINE]
