"""Pooling by the largest element of windows at random places, by non-integer ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_as_samples
from gradtape.core.define import general
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array, real_only
from gradtape.ops.checks import check_shape
from gradtape.ops.family import by_rank
from gradtape.ops.generator import source_of
from gradtape.ops.nn.pool_extremes import pool_pick
from gradtape.ops.nn.pooling import POOLING
from gradtape.ops.nn.windows import Sizes, per_axis, ratios_per_axis, with_samples, without_samples
from gradtape.ops.random import random_uniform
from gradtape.ops.shared_options import options
from gradtape.typing import ArrayLike


def _starts(xp: Any, sample: Any, size: int, kernel: int, number: int) -> Any:
    """Where the windows along an axis start, for a number from [0, 1) per channel."""
    if number == 1:
        return xp.full((*sample.shape, 1), size - kernel)
    step = (size - kernel) / (number - 1)
    shifted = xp.floor((xp.arange(number) + sample[..., None]) * step)
    starts = (shifted - xp.floor(sample * step)[..., None]).astype(np.int64)
    starts[..., -1] = size - kernel
    return starts


def _indices_forward(xp: Any, x: Any, samples: Any, kernel: Sizes, output: Sizes) -> Any:
    rank, sizes = len(kernel), x.shape[2:]
    # PyTorch takes the numbers of images from the last axis on, those of volumes from the first.
    order = range(rank) if rank == 3 else range(rank - 1, -1, -1)
    places = xp.zeros((*x.shape[:2], *(1,) * (2 * rank)), np.int64)
    for axis, column in zip(range(rank), order, strict=True):
        starts = _starts(xp, samples[..., column], sizes[axis], kernel[axis], output[axis])
        shape = [1] * (2 * rank)
        shape[axis] = output[axis]
        taps = xp.arange(kernel[axis]).reshape((-1, *(1,) * (rank - 1 - axis)))
        along_axis = starts.reshape((*x.shape[:2], *shape)) + taps
        places = places * sizes[axis] + along_axis
    flat = places.reshape((*x.shape[:2], *output, math.prod(kernel)))
    rows = x.reshape((*x.shape[:2], math.prod(sizes)))
    all_places = flat.reshape((*x.shape[:2], math.prod(flat.shape[2:])))
    seen = xp.take_along_axis(rows, all_places, axis=-1).reshape(flat.shape)
    best = xp.argmax(seen, axis=-1)
    return xp.take_along_axis(flat, best[..., None], axis=-1)[..., 0]


# Untracked: the places of the largest elements.
_indices = general(
    "fractional_indices",
    _indices_forward,
    infer=lambda x, samples, kernel, output: Aval((*x.shape[:2], *output), np.dtype(np.int64)),
    batch=batch_as_samples,
)


def _output(name: str, sizes: Sizes, output_size: Any, output_ratio: Any) -> Sizes:
    rank = len(sizes)
    if (output_size is None) == (output_ratio is None):
        raise ArgumentError(f"{name}: expected either output_size= or output_ratio=")
    if output_size is not None:
        return per_axis(name, "output_size", output_size, rank)
    given = ratios_per_axis(name, "output_ratio", output_ratio, rank, below=1)
    return tuple(int(n * ratio) for n, ratio in zip(sizes, given, strict=True))


@options(POOLING)
def _pool(
    name: str,
    rank: int,
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    output_size: int | Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: ArrayLike | None = None,
) -> Any:
    """The largest elements of windows at random distances, so that any size can come out.

    Args:
        output_size: The size of the result; either this or `output_ratio`.
        output_ratio: The size of the result relative to that of `x`, between 0 and 1.
        _random_samples: Numbers from [0, 1) that decide the places, of shape (samples,
            channels, {rank}); None draws them from the default generator.

    Raises:
        ShapeError: The array has other axes, or there are more windows than fit.
        ArgumentError: An option has a value that has no meaning.
        DTypeError: The numbers are complex.

    2d:
    >>> x = np.arange(25.0).reshape(1, 1, 5, 5)
    >>> gt.nn.fractional_max_pool2d(x, 2, 3, _random_samples=np.full((1, 1, 2), 0.5))
    array([[[[ 6.,  8.,  9.],
             [16., 18., 19.],
             [21., 23., 24.]]]])

    3d:
    >>> gt.nn.fractional_max_pool3d(np.ones((1, 1, 5, 5, 5)), 2, output_ratio=0.6).shape
    (1, 1, 3, 3, 3)
    """
    x, added = with_samples(name, x, rank)
    real_only(name, x)
    kernel = per_axis(name, "kernel_size", kernel_size, rank)
    output = _output(name, x.shape[2:], output_size, output_ratio)
    limits = zip(x.shape[2:], kernel, output, strict=True)
    if any(number < 1 or k + number - 1 > n for n, k, number in limits):
        raise ShapeError(
            f"{name}: got sizes {x.shape[2:]}, windows of {kernel} and {output} of them, expected "
            "windows that can all start at different elements"
        )
    shape = (*x.shape[:2], rank)
    if _random_samples is None:
        taken = source_of(None, name).take(math.prod(shape), (x,))
        _random_samples = random_uniform(shape=shape, dtype=np.dtype(np.float64), **taken)
    samples = as_array(_random_samples)
    check_shape(name, shape, _random_samples=samples)
    places = _indices(x, samples, kernel=kernel, output=output)
    out = without_samples(pool_pick(x, places, sizes=tuple(x.shape[-rank:])), added)
    return (out, without_samples(places, added)) if return_indices else out


fractional_max_pool2d, fractional_max_pool3d = by_rank("fractional_max_pool", _pool, (2, 3))
