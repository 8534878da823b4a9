"""Elements put back to where max pooling found them."""

from __future__ import annotations

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_shape
from gradtape.ops.family import by_rank
from gradtape.ops.gather import as_indices
from gradtape.ops.nn.pool_extremes import pool_place
from gradtape.ops.nn.pooling import POOLING
from gradtape.ops.nn.windows import Sizes, per_axis, with_samples, without_samples
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike


@options(POOLING)
def _unpool(
    name: str,
    rank: int,
    x: ArrayLike,
    indices: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    output_size: Sizes | None = None,
) -> Array:
    """The elements put back to where `max_pool{rank}d` found them, among zeros.

    Args:
        indices: What `max_pool{rank}d` returned, of windows that do not overlap.
        kernel_size: As it was given to `max_pool{rank}d`.
        stride: As it was given to `max_pool{rank}d`.
        padding: As it was given to `max_pool{rank}d`.
        output_size: The sizes of the array that was pooled, if some of it was left over.

    Raises:
        ShapeError: The shapes differ.
        IndexingError: An index lies outside, or one repeats.
        ArgumentError: An option has a value that has no meaning.

    1d:
    >>> gt.nn.max_unpool1d(np.array([[3.0, 7.0]]), np.array([[1, 2]]), 2)
    array([[0., 3., 7., 0.]])

    2d:
    >>> values, indices = gt.nn.max_pool2d(np.eye(2)[None], 2, return_indices=True)
    >>> gt.nn.max_unpool2d(values, indices, 2)
    array([[[1., 0.],
            [0., 0.]]])

    3d:
    >>> values, indices = gt.nn.max_pool3d(np.ones((1, 4, 4, 4)), 2, return_indices=True)
    >>> gt.nn.max_unpool3d(values, indices, 2).shape
    (1, 4, 4, 4)
    """
    x, added = with_samples(name, x, rank)
    indices, _ = with_samples(name, as_indices(indices, name), rank)
    if indices.shape != x.shape:
        raise ShapeError(
            f"{name}: got shapes {x.shape} and {indices.shape}, expected an index for each element"
        )
    kernel = per_axis(name, "kernel_size", kernel_size, rank)
    strides = kernel if stride is None else per_axis(name, "stride", stride, rank)
    pads = per_axis(name, "padding", padding, rank, least=0)
    axes = zip(x.shape[2:], strides, pads, kernel, strict=True)
    sizes = tuple((n - 1) * s - 2 * p + k for n, s, p, k in axes)
    if output_size is not None:
        given = as_shape(output_size, name)[-rank:]
        limits = zip(given, sizes, strides, strict=False)
        if len(given) != rank or any(abs(n - size) >= s for n, size, s in limits):
            raise ArgumentError(
                f"{name}: got output_size={output_size}, expected {rank} sizes that differ by less "
                f"than the stride {strides} from {sizes}"
            )
        sizes = given
    return without_samples(pool_place(x, indices, sizes=sizes), added)


max_unpool1d, max_unpool2d, max_unpool3d = by_rank("max_unpool", _unpool)
