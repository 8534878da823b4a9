"""Pooling to given sizes: adaptive and global."""

from __future__ import annotations

from typing import Any

from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_axes
from gradtape.ops.family import by_rank
from gradtape.ops.nn.normalization import lies_with_channels_last, widely
from gradtape.ops.nn.pool_max import pool_by_extreme
from gradtape.ops.nn.pooling import POOLING
from gradtape.ops.nn.resample import Map, resample
from gradtape.ops.nn.windows import Shares, Sizes, Windows, per_axis, with_samples, without_samples
from gradtape.ops.reduce import floats, mean_over
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike


def _target(name: str, x: Any, output_size: Any, rank: int) -> Sizes:
    """The sizes asked for; None leaves an axis as it is."""
    sizes = x.shape[2:]
    if any(n == 0 for n in sizes):
        raise ShapeError(f"{name}: got shape {x.shape}, expected at least one element to pool")
    given = output_size if isinstance(output_size, tuple | list) else (output_size,) * rank
    if len(given) == rank:
        given = [n if wanted is None else wanted for wanted, n in zip(given, sizes, strict=True)]
    return per_axis(name, "output_size", given, rank)


def _windows(size: int, count: int) -> Windows | Shares:
    """Windows that cover an axis, all of one size if that is possible."""
    step, rest = divmod(size, count)
    return Shares(size, count) if rest else Windows(size, count, step, step, 0, 1)


_OUTPUT = {
    "output_size": "The size of the result; or one for each axis, None for that of `x`.",
}
_ERRORS = {
    "ShapeError": "The array has other axes, or no elements.",
    "ArgumentError": "`output_size` has no meaning.",
}


@options(POOLING, _OUTPUT, raises=_ERRORS)
def _average(name: str, rank: int, x: ArrayLike, /, output_size: Any) -> Array:
    """Averages over windows of almost equal sizes, as many as are asked for.

    1d:
    >>> gt.nn.adaptive_avg_pool1d(np.array([[1.0, 2.0, 3.0]]), 2)
    array([[1.5, 2.5]])

    2d:
    >>> gt.nn.adaptive_avg_pool2d(np.ones((1, 3, 7, 5)), (2, None)).shape
    (1, 3, 2, 5)

    3d:
    >>> gt.nn.adaptive_avg_pool3d(np.ones((1, 3, 4, 4, 4)), 1).shape
    (1, 3, 1, 1, 1)
    """
    x, added = with_samples(name, x, rank)
    x, sizes = floats(x), _target(name, x, output_size, rank)
    if set(sizes) == {1} and not lies_with_channels_last(x):
        axes = tuple(range(2, rank + 2))
        out = widely(x, lambda x: mean_over(x, axis=axes, keepdims=True))
        return without_samples(out, added)
    pairs = zip(x.shape[2:], sizes, strict=True)
    maps = tuple(None if n == count else Map("area", n, count) for n, count in pairs)
    return without_samples(resample(x, maps=maps, transposed=False), added)


@options(POOLING, _OUTPUT, raises=_ERRORS)
def _extreme(
    name: str, rank: int, x: ArrayLike, /, output_size: Any, return_indices: bool = False
) -> Any:
    """The largest elements of windows of almost equal sizes, as many as are asked for.

    Of elements that are equal, the first one gets the gradient.

    Raises:
        DTypeError: The numbers are complex.

    1d:
    >>> gt.nn.adaptive_max_pool1d(np.array([[1.0, 2.0, 3.0]]), 2)
    array([[2., 3.]])

    2d:
    >>> gt.nn.adaptive_max_pool2d(np.ones((1, 3, 7, 5)), (2, None)).shape
    (1, 3, 2, 5)

    3d:
    >>> gt.nn.adaptive_max_pool3d(np.ones((1, 3, 4, 4, 4)), 1).shape
    (1, 3, 1, 1, 1)
    """
    x, added = with_samples(name, x, rank)
    sizes = _target(name, x, output_size, rank)
    windows = tuple(map(_windows, x.shape[2:], sizes))
    return pool_by_extreme(name, x, added, windows, return_indices)


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = by_rank(
    "adaptive_avg_pool", _average
)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = by_rank(
    "adaptive_max_pool", _extreme
)


def global_avg_pool(x: ArrayLike, /) -> Array:
    """The average over all spatial axes, which stay with size 1.

    Args:
        x: Of shape (samples, channels, and one to three spatial axes).

    Raises:
        ShapeError: The array has other axes, or no elements.

    >>> gt.nn.global_avg_pool(np.arange(4.0).reshape(1, 1, 2, 2))
    array([[[[1.5]]]])
    """
    x, rank = _with_rank("global_avg_pool", x)
    return _average("global_avg_pool", rank, x, 1)


def global_max_pool(x: ArrayLike, /) -> Array:
    """The largest element over all spatial axes, which stay with size 1.

    Of elements that are equal, the first one gets the gradient.

    Args:
        x: Of shape (samples, channels, and one to three spatial axes).

    Raises:
        ShapeError: The array has other axes, or no elements.
        DTypeError: The numbers are complex.

    >>> gt.nn.global_max_pool(np.arange(4.0).reshape(1, 1, 2, 2))
    array([[[[3.]]]])
    """
    x, rank = _with_rank("global_max_pool", x)
    return _extreme("global_max_pool", rank, x, 1)


def _with_rank(name: str, x: ArrayLike) -> tuple[Any, int]:
    x = as_array(x)
    check_axes(
        name, x, least=3, most=5, instead="give samples, channels and one to three spatial axes"
    )
    return x, len(x.shape) - 2
