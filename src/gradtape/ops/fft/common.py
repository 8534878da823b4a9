"""Shared by Fourier transforms: their arguments, and the library that computes them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.tensor import is_extended_float
from gradtape.errors import ShapeError
from gradtape.locks import load
from gradtape.ops.arguments import as_array, normalize_axes
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_choice
from gradtape.ops.pad import crop, pad_constant
from gradtape.typing import Array, ArrayLike, Axis

# Which direction is divided by the number of elements. The other direction of a transform has the
# same scale under the other name, which is what transposes need.
OTHER_NORM = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
_SINGLE = "efF"
# The options that transforms share.
OPTIONS = {
    "n": "How many points the signal has; the axis is cut off, or continued by zeros, to fit.",
    "s": "The same for each of the axes; -1 leaves one as it is. Without `axes`, the last ones are "
    "meant.",
    "axis": "Along which axis.",
    "axes": "Over which axes, each at most once; None takes all of them.",
    "norm": 'What is divided by the number of points: the inverse transform ("backward", also '
    'None), this one ("forward"), or both by its root ("ortho").',
    "type": "Which one of the four, 1 to 4.",
    "orthogonalize": "Whether the matrix is made a multiple of an orthogonal one; None does so "
    'for "ortho".',
}


@functools.cache
def library(xp: Any) -> Any:
    """The module of transforms that goes with an array module; SciPy's keeps single precision."""
    return load("scipy.fft" if xp is np else "cupyx.scipy.fft")


def complex_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype of the coefficients of numbers of some dtype."""
    return np.dtype(np.complex64 if dtype.char in _SINGLE else np.complex128)


def real_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype of the real numbers whose coefficients have some dtype."""
    return np.dtype(np.float32 if dtype.char in _SINGLE else np.float64)


def as_numbers(x: ArrayLike) -> Array:
    """`x` as an array of a dtype that transforms take."""
    x = as_array(x)
    return astype(x, np.float32) if is_extended_float(x.dtype) else x


def norm_of(name: str, norm: str | None) -> str:
    """Which direction is scaled, checked."""
    norm = "backward" if norm is None else norm
    check_choice(name, OTHER_NORM, norm=norm)
    return norm


def axes_and_sizes(
    name: str, x: Any, s: Any, axes: Axis
) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    """The axes to transform, counted from the front, and the size wanted for each, or None."""
    ndim = len(x.shape)
    if s is None:
        chosen = normalize_axes(axes, ndim, name)
        return chosen, (None,) * len(chosen)
    listed = s if isinstance(s, Sequence | np.ndarray) else (s,)
    # As in NumPy, -1 leaves an axis unchanged.
    sizes = tuple(None if n in (None, -1) else operator.index(n) for n in listed)
    chosen = normalize_axes(range(-len(sizes), 0) if axes is None else axes, ndim, name)
    if len(chosen) != len(sizes):
        raise ShapeError(
            f"{name}: got s={s} and axes={axes}, expected as many sizes as there are axes"
        )
    return chosen, sizes


def prepared(
    name: str, x: ArrayLike, s: Any, axes: Axis, norm: str | None
) -> tuple[Array, tuple[int, ...], str]:
    """The array with the sizes asked for, the axes to transform, and which direction is scaled."""
    x = as_numbers(x)
    chosen, sizes = axes_and_sizes(name, x, s, axes)
    return resized(name, x, chosen, sizes), chosen, norm_of(name, norm)


def resized(name: str, x: Any, axes: Sequence[int], sizes: Sequence[int | None]) -> Any:
    """`x` cut off, or continued by zeros, to the given sizes along some axes."""
    wanted = list(x.shape)
    for axis, size in zip(axes, sizes, strict=True):
        wanted[axis] = wanted[axis] if size is None else size
        if wanted[axis] < 1:
            raise ShapeError(
                f"{name}: got {wanted[axis]} points along axis {axis} of shape {x.shape}, expected "
                "at least one to transform"
            )
    more = tuple((0, max(n - old, 0)) for n, old in zip(wanted, x.shape, strict=True))
    less = tuple((0, max(old - n, 0)) for n, old in zip(wanted, x.shape, strict=True))
    if any(after for _, after in less):
        x = crop(x, widths=less)
    return pad_constant(x, widths=more, fill=0) if any(after for _, after in more) else x
