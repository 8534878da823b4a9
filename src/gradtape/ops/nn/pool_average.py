"""Average, sum and power pooling over one to three axes, as `torch.nn.functional` has them."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError
from gradtape.ops.arguments import real_only
from gradtape.ops.cast import astype
from gradtape.ops.family import by_rank
from gradtape.ops.nn.pool_sums import lp_pool, pool_average
from gradtape.ops.nn.pooling import POOLING, POOLING_ERRORS, pool_windows
from gradtape.ops.nn.windows import Sizes, Windows, with_samples, without_samples
from gradtape.ops.reduce import floats
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike


@functools.lru_cache(maxsize=256)
def _counts(windows: tuple[Windows, ...], count_include_pad: bool) -> Any:
    """How many elements the windows have: a number if it is the same for all, else an array."""
    counts = np.ones(())
    for w in windows:
        start = np.arange(w.number) * w.stride - w.before
        # Padding is equally wide on both sides; windows that reach beyond it end there.
        stop = np.minimum(start + w.kernel, w.size + w.before)
        if not count_include_pad:
            start, stop = np.maximum(start, 0), np.minimum(stop, w.size)
        counts = counts[..., None] * (stop - start)
    first = counts.flat[0].item()
    return first if (counts == first).all() else counts


@options(POOLING, raises=POOLING_ERRORS)
def _average(
    name: str,
    rank: int,
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Averages over windows that move over the spatial axes.

    Args:
        count_include_pad: Whether added zeros count in the average.
        divisor_override: What to divide sums by, instead of their number of elements.

    1d:
    >>> gt.nn.avg_pool1d(np.array([[1.0, 3.0, 5.0, 7.0]]), 2)
    array([[2., 6.]])

    2d:
    >>> gt.nn.avg_pool2d(np.arange(16.0).reshape(1, 4, 4), 2)
    array([[[ 2.5,  4.5],
            [10.5, 12.5]]])

    3d:
    >>> gt.nn.avg_pool3d(np.ones((1, 1, 4, 4, 4)), 2, stride=1).shape
    (1, 1, 3, 3, 3)
    """
    x, added = with_samples(name, x, rank)
    x = floats(x)
    windows = pool_windows(name, x.shape[2:], kernel_size, stride, padding, 1, ceil_mode)
    if divisor_override == 0:
        raise ArgumentError(f"{name}: got divisor_override=0, expected another number, or None")
    counts: Any = divisor_override or _counts(windows, count_include_pad)
    same = not isinstance(counts, np.ndarray)
    out = pool_average(x, windows=windows, divide=counts if same else 1, back=False)
    return without_samples(out if same else out / counts.astype(x.dtype), added)


@options(POOLING, raises=POOLING_ERRORS)
def _sum(
    name: str,
    rank: int,
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    ceil_mode: bool = False,
) -> Array:
    """Sums over windows that move over the spatial axes.

    1d:
    >>> gt.nn.sum_pool1d(np.array([[1.0, 3.0, 5.0, 7.0]]), 2)
    array([[ 4., 12.]])

    2d:
    >>> gt.nn.sum_pool2d(np.ones((1, 4, 4)), 2)
    array([[[4., 4.],
            [4., 4.]]])

    3d:
    >>> gt.nn.sum_pool3d(np.ones((1, 1, 2, 2, 2)), 2).item()
    8.0
    """
    x, added = with_samples(name, x, rank)
    if x.dtype.kind in "biu":
        x = astype(x, np.add.reduce(np.empty(0, x.dtype)).dtype)  # as NumPy's sums
    windows = pool_windows(name, x.shape[2:], kernel_size, stride, padding, 1, ceil_mode)
    return without_samples(pool_average(x, windows=windows, divide=1, back=False), added)


@options(POOLING, raises=POOLING_ERRORS)
def _lp(
    name: str,
    rank: int,
    x: ArrayLike,
    /,
    norm_type: float,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    ceil_mode: bool = False,
) -> Array:
    """The p-th root of the sum of p-th powers, over windows that move over the spatial axes.

    Where all elements of a window are 0 there is a kink; the gradient is taken as 0 there.

    Args:
        norm_type: The power p; odd ones take negative elements as they are.
        ceil_mode: Whether the elements left over at the end make one more, smaller window; the mean
            of their powers stands in for the missing ones.

    Raises:
        DTypeError: The numbers are complex.

    1d:
    >>> gt.nn.lp_pool1d(np.array([[3.0, 4.0, 0.0, 1.0]]), 2, 2)
    array([[5., 1.]])

    2d:
    >>> gt.nn.lp_pool2d(np.ones((1, 4, 4)), 2, 2)
    array([[[2., 2.],
            [2., 2.]]])

    3d:
    >>> gt.nn.lp_pool3d(np.ones((1, 1, 2, 2, 2)), 3, 2).item()
    2.0
    """
    x, added = with_samples(name, x, rank)
    x = real_only(name, floats(x))
    if not 0 < norm_type < float("inf"):
        raise ArgumentError(
            f"{name}: got norm_type={norm_type}, expected a number above 0; use "
            f"max_pool{rank}d for the largest element"
        )
    windows = pool_windows(name, x.shape[2:], kernel_size, stride, 0, 1, ceil_mode)
    out = lp_pool(x, windows=windows, p=norm_type)
    counts = _counts(windows, True)
    full = math.prod(w.kernel for w in windows)
    if isinstance(counts, np.ndarray) or counts != full:
        out = out * np.asarray((full / counts) ** (1 / norm_type), x.dtype)
    return without_samples(out, added)


avg_pool1d, avg_pool2d, avg_pool3d = by_rank("avg_pool", _average)
sum_pool1d, sum_pool2d, sum_pool3d = by_rank("sum_pool", _sum)
lp_pool1d, lp_pool2d, lp_pool3d = by_rank("lp_pool", _lp)
