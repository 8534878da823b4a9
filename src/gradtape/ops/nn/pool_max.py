"""Pooling by the largest or smallest element, over one to three axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import ShapeError
from gradtape.ops.arguments import real_only
from gradtape.ops.family import by_rank
from gradtape.ops.nn.pool_extremes import pool_indices
from gradtape.ops.nn.pool_gradients import pool_extreme
from gradtape.ops.nn.pooling import POOLING, POOLING_ERRORS, pool_windows
from gradtape.ops.nn.windows import Sizes, Windows, with_samples, without_samples
from gradtape.ops.shared_options import options
from gradtape.typing import ArrayLike


def pool_by_extreme(name: str, x: Any, added: bool, windows: Any, return_indices: bool) -> Any:
    """The largest elements of windows ("min" in the name: the smallest), and their places."""
    real_only(name, x)
    params = {"windows": windows, "largest": not name.startswith("min")}
    out = without_samples(pool_extreme(x, **params), added)
    if not return_indices:
        return out
    return out, without_samples(pool_indices(x, **params), added)


def _check_seen(name: str, w: Windows) -> None:
    """Raise if dilated windows jump over all elements."""
    seen = np.zeros(w.number, bool)
    for part in w.parts():
        seen[part.into] = True
    if not seen.all():
        raise ShapeError(
            f"{name}: got {w.size} elements along an axis, and windows of {w.kernel} with "
            f"dilation {w.dilation} that see none of them, expected less dilation or padding"
        )


@options(POOLING, raises=POOLING_ERRORS)
def _pool(
    name: str,
    rank: int,
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    dilation: int | Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The {extreme} elements of windows that move over the spatial axes.

    Of elements that are equal, the first one gets the gradient. A NaN in a window is its result.

    Args:
        padding: By how much windows may begin before the array and end after it.

    Raises:
        DTypeError: The numbers are complex.

    max_pool1d:
    >>> gt.nn.max_pool1d(np.array([[1.0, 3.0, 7.0, 5.0]]), 2)
    array([[3., 7.]])

    max_pool2d:
    >>> values, indices = gt.nn.max_pool2d(np.arange(16.0).reshape(1, 4, 4), 2, return_indices=True)
    >>> values
    array([[[ 5.,  7.],
            [13., 15.]]])
    >>> indices
    array([[[ 5,  7],
            [13, 15]]])

    min_pool1d:
    >>> gt.nn.min_pool1d(np.array([[1.0, 3.0, 7.0, 5.0]]), 2)
    array([[1., 5.]])

    min_pool2d:
    >>> gt.nn.min_pool2d(np.arange(16.0).reshape(1, 4, 4), 2)
    array([[[ 0.,  2.],
            [ 8., 10.]]])

    max_pool3d:
    >>> gt.nn.max_pool3d(np.ones((1, 1, 4, 4, 4)), 2, stride=1).shape
    (1, 1, 3, 3, 3)

    min_pool3d:
    >>> gt.nn.min_pool3d(np.ones((1, 1, 4, 4, 4)), 2, stride=1).shape
    (1, 1, 3, 3, 3)
    """
    x, added = with_samples(name, x, rank)
    windows = pool_windows(name, x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
    for w in windows:
        if w.dilation > 1:
            _check_seen(name, w)
    return pool_by_extreme(name, x, added, windows, return_indices)


max_pool1d, max_pool2d, max_pool3d = by_rank("max_pool", _pool, extreme="largest")
min_pool1d, min_pool2d, min_pool3d = by_rank("min_pool", _pool, extreme="smallest")
