"""Convolution and correlation of arrays, directly or by Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axes
from gradtape.ops.checks import check_axes, check_choice
from gradtape.ops.family import member
from gradtape.ops.fft.frequencies import next_fast_len
from gradtape.ops.fft.transforms import fftn, ifftn, irfftn, rfftn
from gradtape.ops.pad import crop
from gradtape.ops.shape import moveaxis, reshape
from gradtape.ops.signal.direct import convolve_over, turned
from gradtape.ops.signal.parts import longer, padded, part
from gradtape.typing import Array, ArrayLike, Axis

_BOUNDARIES = {"fill": "constant", "pad": "constant", "wrap": "wrap", "circular": "wrap"}
_BOUNDARIES |= {"symm": "symmetric", "symmetric": "symmetric"}


# ---- arguments ----------------------------------------------------------------------------------


def _prepared(name: str, in1: ArrayLike, in2: ArrayLike, mode: str) -> tuple[Array, Array]:
    """Both arguments as arrays, checked: equally many axes, and at least one element."""
    x, h = as_array(in1), as_array(in2)
    check_choice(name, ("full", "same", "valid"), mode=mode)
    if len(x.shape) != len(h.shape) or 0 in (*x.shape, *h.shape):
        raise ShapeError(
            f"{name}: got shapes {x.shape} and {h.shape}, expected as many axes of both, and at "
            "least one element"
        )
    if "b" in (x.dtype.kind, h.dtype.kind):
        raise DTypeError(f"{name}: got {x.dtype} and {h.dtype}, expected numbers; use astype(int)")
    return x, h


def _ordered(name: str, x: Array, h: Array, axes: Sequence[int]) -> tuple[Array, Array]:
    """The larger one first, as they must overlap completely somewhere."""
    pairs = [(x.shape[axis], h.shape[axis]) for axis in axes]
    if all(n >= m for n, m in pairs):
        return x, h
    if all(n <= m for n, m in pairs):
        return h, x
    raise ShapeError(
        f"{name}: got shapes {x.shape} and {h.shape}, expected one that is at least as long along "
        'every axis for mode="valid"'
    )


def _centered(out: Array, sizes: Sequence[int]) -> Array:
    """The middle part of an array."""
    extra = [n - size for n, size in zip(out.shape, sizes, strict=True)]
    return crop(out, widths=tuple((e // 2, e - e // 2) for e in extra))


# ---- by sums ------------------------------------------------------------------------------------


def _directly(name: str, x: Array, h: Array, mode: str) -> Array:
    ndim = len(x.shape)
    if ndim == 0:
        return x * h
    if mode == "valid":
        x, h = _ordered(name, x, h, range(ndim))
    out = convolve_over(x, h, ndim=ndim, full=mode != "valid")
    return _centered(out, x.shape) if mode == "same" else out


def _faster_by_fft(x: Array, h: Array, mode: str) -> bool:
    """SciPy's choice, from sizes and dtypes; never for integers, whose sums are to stay exact."""
    import scipy.signal

    if not x.shape or x.dtype.kind not in "fc" or h.dtype.kind not in "fc":
        return False
    x, h = (np.broadcast_to(np.zeros((), array.dtype), array.shape) for array in (x, h))
    return bool(scipy.signal.choose_conv_method(x, h, mode) == "fft")


def _convolved(name: str, x: Array, h: Array, mode: str, method: str) -> Array:
    check_choice(name, ("auto", "direct", "fft"), method=method)
    if method == "fft" or (method == "auto" and _faster_by_fft(x, h, mode)):
        return _by_transforms(name, x, h, mode, tuple(range(len(x.shape))))
    return _directly(name, x, h, mode)


def convolve(in1: ArrayLike, in2: ArrayLike, /, mode: str = "full", method: str = "auto") -> Array:
    """Convolution of two arrays over all their axes.

    Args:
        in1: The first array.
        in2: The second array, of as many axes.
        mode: What to return: "full" for all sums, "same" for the middle part as large as the first
            array, "valid" for the sums in which all of the smaller array takes part.
        method: "direct" adds products up, "fft" uses Fourier transforms, "auto" takes whichever is
            faster for these sizes.

    Raises:
        ShapeError: The numbers of axes differ, an array is empty, or neither is the larger one
            for "valid".
        ArgumentError: `mode` or `method` is something else.

    >>> gt.scipy.signal.convolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]))
    array([1., 3., 5., 3.])
    """
    x, h = _prepared("convolve", in1, in2, mode)
    return _convolved("convolve", x, h, mode, method)


def correlate(in1: ArrayLike, in2: ArrayLike, /, mode: str = "full", method: str = "auto") -> Array:
    """Correlation of two arrays over all their axes: the second one is conjugated and moved.

    Args:
        in1: The first array.
        in2: The second array, of as many axes.
        mode: "full", "same" or "valid", as for `gt.scipy.signal.convolve`.
        method: "auto", "direct" or "fft", likewise.

    Raises:
        ShapeError: The numbers of axes differ, an array is empty, or neither is the larger one
            for "valid".
        ArgumentError: `mode` or `method` is something else.

    >>> gt.scipy.signal.correlate(np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0]))
    array([0., 1., 2., 3.])
    """
    x, h = _prepared("correlate", in1, in2, mode)
    return _convolved("correlate", x, turned(h, len(h.shape)), mode, method)


# ---- by Fourier transforms ----------------------------------------------------------------------


def _by_transforms(name: str, x: Array, h: Array, mode: str, axes: tuple[int, ...]) -> Array:
    """A convolution over some axes; the others broadcast."""
    if not axes:
        return x * h
    if mode == "valid":
        x, h = _ordered(name, x, h, axes)
    sizes = [x.shape[axis] + h.shape[axis] - 1 for axis in axes]
    if x.dtype.kind == "c" or h.dtype.kind == "c":
        fast = tuple(next_fast_len(size) for size in sizes)
        out = ifftn(fftn(x, fast, axes) * fftn(h, fast, axes), axes=axes)
    else:
        fast = tuple(next_fast_len(size, True) for size in sizes)
        out = irfftn(rfftn(x, fast, axes) * rfftn(h, fast, axes), fast, axes)
    widths = [(0, 0)] * len(out.shape)
    for axis, size in zip(axes, sizes, strict=True):
        n, m = x.shape[axis], h.shape[axis]
        before = (size - _wanted(n, m, mode)) // 2
        widths[axis] = (before, out.shape[axis] - before - _wanted(n, m, mode))
    return crop(out, widths=tuple(widths))


def _wanted(n: int, m: int, mode: str) -> int:
    """How many sums of arrays of n and m elements are returned."""
    return {"full": n + m - 1, "same": n, "valid": abs(n - m) + 1}[mode]


def _axes(name: str, x: Array, h: Array, axes: Axis) -> tuple[int, ...]:
    """The axes to convolve over, checked that the others broadcast."""
    chosen = normalize_axes(axes, len(x.shape), name)
    for axis, (n, m) in enumerate(zip(x.shape, h.shape, strict=True)):
        if axis not in chosen and n != m and 1 not in (n, m):
            raise ShapeError(
                f"{name}: got shapes {x.shape} and {h.shape} with axes={axes}, expected other axes "
                "that broadcast"
            )
    return chosen


def fftconvolve(in1: ArrayLike, in2: ArrayLike, /, mode: str = "full", axes: Axis = None) -> Array:
    """Convolution by Fourier transforms: fast for large arrays of similar sizes.

    Args:
        in1: The first array.
        in2: The second array, of as many axes.
        mode: "full", "same" or "valid", as for `gt.scipy.signal.convolve`.
        axes: Over which axes; None takes all of them. The others broadcast.

    Raises:
        ShapeError: The numbers of axes differ, an array is empty, or the shapes do not fit.
        ArgumentError: `mode` is something else.

    >>> np.round(gt.scipy.signal.fftconvolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0])), 12)
    array([1., 3., 5., 3.])
    """
    x, h = _prepared("fftconvolve", in1, in2, mode)
    return _by_transforms("fftconvolve", x, h, mode, _axes("fftconvolve", x, h, axes))


def oaconvolve(in1: ArrayLike, in2: ArrayLike, /, mode: str = "full", axes: Axis = None) -> Array:
    """Convolution block by block by Fourier transforms: fast where one array is much longer.

    Args:
        in1: The first array.
        in2: The second array, of as many axes.
        mode: "full", "same" or "valid", as for `gt.scipy.signal.convolve`.
        axes: Over which axes; None takes all of them. The others broadcast.

    Raises:
        ShapeError: The numbers of axes differ, an array is empty, or the shapes do not fit.
        ArgumentError: `mode` is something else.

    >>> np.round(gt.scipy.signal.oaconvolve(np.ones(5), np.array([1.0, 1.0])), 12)
    array([1., 2., 2., 2., 2., 1.])
    """
    name = "oaconvolve"
    x, h = _prepared(name, in1, in2, mode)
    chosen = _axes(name, x, h, axes)
    if len(chosen) != 1:
        return _by_transforms(name, x, h, mode, chosen)
    (axis,) = chosen
    n, m = x.shape[axis], h.shape[axis]
    # A transform of 8 times the shorter length spends an eighth of itself on the overlap.
    points = next_fast_len(8 * min(n, m), True)
    if max(n, m) < 2 * points:  # one transform of all is as good
        return _by_transforms(name, x, h, mode, chosen)
    x, h = (moveaxis(array, axis, -1) for array in ((x, h) if n >= m else (h, x)))
    out = _overlap_add(name, x, h, points - min(n, m) + 1)
    start = (n + m - 1 - _wanted(n, m, mode)) // 2
    return moveaxis(part(out, start, start + _wanted(n, m, mode)), -1, axis)


def _overlap_add(name: str, x: Array, h: Array, block: int) -> Array:
    """The full convolution along the last axis, by blocks whose results overlap."""
    n, m = x.shape[-1], h.shape[-1]
    count = math.ceil(n / block)
    blocks = reshape(longer(x, 0, count * block - n), (*x.shape[:-1], count, block))
    kernel = reshape(h, (*h.shape[:-1], 1, m))
    parts = _by_transforms(name, blocks, kernel, "full", (len(blocks.shape) - 1,))
    # Each result overlaps the next one by m − 1 elements.
    own, over = part(parts, 0, block), longer(part(parts, block, None), 0, block - m + 1)
    whole = (*parts.shape[:-2], count * block)
    return longer(reshape(own, whole), 0, block) + longer(reshape(over, whole), block, 0)


# ---- images -------------------------------------------------------------------------------------


def _over_images(
    name: str,
    in1: ArrayLike,
    in2: ArrayLike,
    /,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
) -> Array:
    """{what} of two matrices, with a choice of what lies beyond the first one.

    Args:
        in1: The first matrix.
        in2: The second matrix{turned}.
        mode: "full", "same" or "valid", as for `gt.scipy.signal.convolve`.
        boundary: How the first matrix is continued: "fill" by a number, "wrap" by itself,
            "symm" mirrored.
        fillvalue: The number for "fill".

    Raises:
        ShapeError: There are not two axes, or the shapes do not fit.
        ArgumentError: `mode` or `boundary` is something else.

    convolve2d:
    >>> gt.scipy.signal.convolve2d(np.eye(2), np.ones((1, 2)), boundary="wrap")
    array([[1., 1., 1.],
           [1., 1., 1.]])

    correlate2d:
    >>> gt.scipy.signal.correlate2d(np.eye(2), np.array([[1.0, 2.0]]), mode="valid")
    array([[1.],
           [2.]])
    """
    x, h = _prepared(name, in1, in2, mode)
    check_axes(name, x, 2)
    check_choice(name, _BOUNDARIES, boundary=boundary)
    correlated = name == "correlate2d"
    h = turned(h, 2) if correlated else h
    if mode == "valid":
        return _directly(name, x, h, mode)
    widths = [(m - 1, m - 1) for m in h.shape]
    if mode == "same":
        # Where the number of elements to cut off is odd, a correlation begins later.
        after = [(m if correlated else m - 1) // 2 for m in h.shape]
        widths = [(m - 1 - b, b) for m, b in zip(h.shape, after, strict=True)]
    around = padded(x, widths, _BOUNDARIES[boundary], fillvalue)
    return convolve_over(around, h, ndim=2, full=False)


convolve2d = member("convolve2d", _over_images, what="Convolution", turned="")
correlate2d = member(
    "correlate2d", _over_images, what="Correlation", turned=", which is conjugated and moved"
)
