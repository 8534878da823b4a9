"""Elements put back to where max pooling found them."""

from __future__ import annotations

from typing import Any

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_shape
from gradtape.ops.gather import as_indices
from gradtape.ops.nn.pool_extremes import pool_place
from gradtape.ops.nn.windows import Sizes, per_axis, with_samples, without_samples
from gradtape.typing import Array, ArrayLike


def _unpooled(
    name: str,
    rank: int,
    x: ArrayLike,
    indices: ArrayLike,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    output_size: Any,
) -> Array:
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


def max_unpool1d(
    x: ArrayLike,
    indices: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    output_size: Sizes | None = None,
) -> Array:
    """The elements put back to where `max_pool1d` found them, among zeros.

    Args:
        x: Of shape (samples, channels, length), or the same without samples.
        indices: What `max_pool1d` returned, of windows that do not overlap.
        kernel_size: As it was given to `max_pool1d`.
        stride: As it was given to `max_pool1d`.
        padding: As it was given to `max_pool1d`.
        output_size: The sizes of the array that was pooled, if some of it was left over.

    Raises:
        ShapeError: The shapes differ.
        IndexingError: An index lies outside, or one repeats.
        ArgumentError: An option has a value that has no meaning.

    >>> gt.nn.max_unpool1d(np.array([[3.0, 7.0]]), np.array([[1, 2]]), 2)
    array([[0., 3., 7., 0.]])
    """
    return _unpooled("max_unpool1d", 1, x, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    x: ArrayLike,
    indices: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    output_size: Sizes | None = None,
) -> Array:
    """The elements put back to where `max_pool2d` found them, among zeros.

    Args:
        x: Of shape (samples, channels, height, width), or the same without samples.
        indices: What `max_pool2d` returned, of windows that do not overlap.
        kernel_size: As it was given to `max_pool2d`.
        stride: As it was given to `max_pool2d`.
        padding: As it was given to `max_pool2d`.
        output_size: The sizes of the array that was pooled, if some of it was left over.

    Raises:
        ShapeError: The shapes differ.
        IndexingError: An index lies outside, or one repeats.
        ArgumentError: An option has a value that has no meaning.

    >>> values, indices = gt.nn.max_pool2d(np.eye(2)[None], 2, return_indices=True)
    >>> gt.nn.max_unpool2d(values, indices, 2)
    array([[[1., 0.],
            [0., 0.]]])
    """
    return _unpooled("max_unpool2d", 2, x, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    x: ArrayLike,
    indices: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    output_size: Sizes | None = None,
) -> Array:
    """The elements put back to where `max_pool3d` found them, among zeros.

    Args:
        x: Of shape (samples, channels, depth, height, width), or the same without samples.
        indices: What `max_pool3d` returned, of windows that do not overlap.
        kernel_size: As it was given to `max_pool3d`.
        stride: As it was given to `max_pool3d`.
        padding: As it was given to `max_pool3d`.
        output_size: The sizes of the array that was pooled, if some of it was left over.

    Raises:
        ShapeError: The shapes differ.
        IndexingError: An index lies outside, or one repeats.
        ArgumentError: An option has a value that has no meaning.

    >>> values, indices = gt.nn.max_pool3d(np.ones((1, 4, 4, 4)), 2, return_indices=True)
    >>> gt.nn.max_unpool3d(values, indices, 2).shape
    (1, 4, 4, 4)
    """
    return _unpooled("max_unpool3d", 3, x, indices, kernel_size, stride, padding, output_size)
