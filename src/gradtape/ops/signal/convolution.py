"""Convolution and correlation of arrays, directly or by Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axes
from gradtape.ops.cast import conj_if_complex
from gradtape.ops.fft.frequencies import next_fast_len
from gradtape.ops.fft.transforms import fftn, ifftn, irfftn, rfftn
from gradtape.ops.pad import crop
from gradtape.ops.pad_modes import pad
from gradtape.ops.shape import reshape
from gradtape.ops.signal.direct import convolve_over, turned
from gradtape.ops.signal.parts import padded
from gradtape.typing import Array, ArrayLike, Axis

_MODES = ("full", "same", "valid")
_BOUNDARIES = {"fill": "constant", "pad": "constant", "wrap": "wrap", "circular": "wrap"}
_BOUNDARIES |= {"symm": "symmetric", "symmetric": "symmetric"}


# ---- arguments ----------------------------------------------------------------------------------


def _prepared(name: str, in1: ArrayLike, in2: ArrayLike, mode: str) -> tuple[Array, Array]:
    """Both arguments as arrays, checked: equally many axes, and at least one element."""
    x, h = as_array(in1), as_array(in2)
    if mode not in _MODES:
        raise ArgumentError(f'{name}: got mode={mode!r}, expected "full", "same" or "valid"')
    if len(x.shape) != len(h.shape):
        raise ShapeError(
            f"{name}: got shapes {x.shape} and {h.shape}, expected as many axes; reshape one of "
            "them"
        )
    if 0 in x.shape or 0 in h.shape:
        raise ShapeError(
            f"{name}: got shapes {x.shape} and {h.shape}, expected at least one element of both"
        )
    for array in (x, h):
        if array.dtype.kind == "b":
            raise DTypeError(f"{name}: got {array.dtype}, expected numbers; use astype(int)")
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
    if tuple(out.shape) == tuple(sizes):
        return out
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
    if method not in ("auto", "direct", "fft"):
        raise ArgumentError(f'{name}: got method={method!r}, expected "auto", "direct" or "fft"')
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

    >>> gt.signal.convolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]))
    array([1., 3., 5., 3.])
    """
    x, h = _prepared("convolve", in1, in2, mode)
    return _convolved("convolve", x, h, mode, method)


def correlate(in1: ArrayLike, in2: ArrayLike, /, mode: str = "full", method: str = "auto") -> Array:
    """Correlation of two arrays over all their axes: the second one is conjugated and moved.

    Args:
        in1: The first array.
        in2: The second array, of as many axes.
        mode: "full", "same" or "valid", as for `gt.signal.convolve`.
        method: "auto", "direct" or "fft", likewise.

    Raises:
        ShapeError: The numbers of axes differ, an array is empty, or neither is the larger one
            for "valid".
        ArgumentError: `mode` or `method` is something else.

    >>> gt.signal.correlate(np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0]))
    array([0., 1., 2., 3.])
    """
    x, h = _prepared("correlate", in1, in2, mode)
    ndim = len(x.shape)
    return _convolved("correlate", x, turned(h, ndim) if ndim else conj_if_complex(h), mode, method)


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
    full, wanted = list(out.shape), list(out.shape)
    for axis, size in zip(axes, sizes, strict=True):
        n, m = x.shape[axis], h.shape[axis]
        full[axis] = size
        wanted[axis] = {"full": size, "same": n, "valid": n - m + 1}[mode]
    out = crop(out, widths=tuple((0, n - m) for n, m in zip(out.shape, full, strict=True)))
    return _centered(out, wanted)


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
        mode: "full", "same" or "valid", as for `gt.signal.convolve`.
        axes: Over which axes; None takes all of them. The others broadcast.

    Raises:
        ShapeError: The numbers of axes differ, an array is empty, or the shapes do not fit.
        ArgumentError: `mode` is something else.

    >>> np.round(gt.signal.fftconvolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0])), 12)
    array([1., 3., 5., 3.])
    """
    x, h = _prepared("fftconvolve", in1, in2, mode)
    return _by_transforms("fftconvolve", x, h, mode, _axes("fftconvolve", x, h, axes))


def oaconvolve(in1: ArrayLike, in2: ArrayLike, /, mode: str = "full", axes: Axis = None) -> Array:
    """Convolution block by block by Fourier transforms: fast where one array is much longer.

    Args:
        in1: The first array.
        in2: The second array, of as many axes.
        mode: "full", "same" or "valid", as for `gt.signal.convolve`.
        axes: Over which axes; None takes all of them. The others broadcast.

    Raises:
        ShapeError: The numbers of axes differ, an array is empty, or the shapes do not fit.
        ArgumentError: `mode` is something else.

    >>> np.round(gt.signal.oaconvolve(np.ones(5), np.array([1.0, 1.0])), 12)
    array([1., 2., 2., 2., 2., 1.])
    """
    name = "oaconvolve"
    x, h = _prepared(name, in1, in2, mode)
    chosen = _axes(name, x, h, axes)
    if mode == "valid":
        x, h = _ordered(name, x, h, chosen)
    sizes = [(x.shape[axis], h.shape[axis]) for axis in chosen]
    block = [_block_size(n, m) for n, m in sizes]
    if len(chosen) != 1 or block[0] is None:
        return _by_transforms(name, x, h, mode, chosen)
    (axis,), ((n, m),) = chosen, sizes
    long, short = (x, h) if n >= m else (h, x)
    out = _overlap_add(name, long, short, axis, block[0])
    wanted = list(out.shape)
    wanted[axis] = {"full": n + m - 1, "same": n, "valid": n - m + 1}[mode]
    return _centered(out, wanted)


def _block_size(n: int, m: int) -> int | None:
    """The length of blocks of the longer array; None if one transform of all is as good."""
    n, m = max(n, m), min(n, m)
    # A transform of 8 times the shorter length spends an eighth of itself on the overlap.
    size = next_fast_len(8 * m, True)
    return None if n < 2 * size else size - m + 1


def _overlap_add(name: str, x: Array, h: Array, axis: int, block: int) -> Array:
    """The full convolution along one axis, by blocks whose results overlap."""
    n, m = x.shape[axis], h.shape[axis]
    count = math.ceil(n / block)
    before, after = x.shape[:axis], x.shape[axis + 1 :]

    def longer(array: Array, front: int, back: int, at: int) -> Array:
        return pad(array, _widths(len(array.shape), at, (front, back)))

    blocks = reshape(longer(x, 0, count * block - n, axis), (*before, count, block, *after))
    kernel = reshape(h, (*h.shape[:axis], 1, m, *h.shape[axis + 1 :]))
    parts = _by_transforms(name, blocks, kernel, "full", (axis + 1,))
    before, after = parts.shape[:axis], parts.shape[axis + 2 :]
    whole = (*before, count * block, *after)
    # Each result overlaps the next one by m − 1 elements.
    own = crop(parts, widths=_widths(len(parts.shape), axis + 1, (0, m - 1)))
    over = crop(parts, widths=_widths(len(parts.shape), axis + 1, (block, 0)))
    over = longer(over, 0, block - m + 1, axis + 1)
    out = longer(reshape(own, whole), 0, block, axis) + longer(reshape(over, whole), block, 0, axis)
    return crop(out, widths=_widths(len(out.shape), axis, (0, (count + 1) * block - n - m + 1)))


def _widths(ndim: int, axis: int, width: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple(width if at == axis else (0, 0) for at in range(ndim))


# ---- images -------------------------------------------------------------------------------------


def _convolved_2d(
    name: str, x: Array, h: Array, mode: str, boundary: str, fillvalue: float
) -> Array:
    """A convolution of matrices; the first one is continued beyond its edges.

    The middle part of a correlation begins later than that of a convolution where the number of
    elements to cut off is odd.
    """
    if len(x.shape) != 2:
        raise ShapeError(f"{name}: got shapes {x.shape} and {h.shape}, expected two axes of both")
    if boundary not in _BOUNDARIES:
        raise ArgumentError(f'{name}: got boundary={boundary!r}, expected "fill", "wrap" or "symm"')
    if mode == "valid":
        return _directly(name, x, h, mode)
    widths = [(m - 1, m - 1) for m in h.shape]
    if mode == "same":
        later = name == "correlate2d"
        before = [m // 2 if later else (m - 1) // 2 for m in h.shape]
        widths = [(m - 1 - b, b) for m, b in zip(h.shape, before, strict=True)]
    if _BOUNDARIES[boundary] == "constant":
        around = padded(x, widths, fillvalue)
    else:
        around = pad(x, widths, mode=_BOUNDARIES[boundary])
    return convolve_over(around, h, ndim=2, full=False)


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    /,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
) -> Array:
    """Convolution of two matrices, with a choice of what lies beyond the first one.

    Args:
        in1: The first matrix.
        in2: The second matrix.
        mode: "full", "same" or "valid", as for `gt.signal.convolve`.
        boundary: How the first matrix is continued: "fill" by a number, "wrap" by itself,
            "symm" mirrored.
        fillvalue: The number for "fill".

    Raises:
        ShapeError: There are not two axes, or the shapes do not fit.
        ArgumentError: `mode` or `boundary` is something else.

    >>> gt.signal.convolve2d(np.eye(2), np.ones((1, 2)), boundary="wrap")
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """
    x, h = _prepared("convolve2d", in1, in2, mode)
    return _convolved_2d("convolve2d", x, h, mode, boundary, fillvalue)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    /,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
) -> Array:
    """Correlation of two matrices, with the options of `gt.signal.convolve2d`.

    Args:
        in1: The first matrix.
        in2: The second matrix, which is conjugated and moved.
        mode: "full", "same" or "valid".
        boundary: "fill", "wrap" or "symm".
        fillvalue: The number for "fill".

    >>> gt.signal.correlate2d(np.eye(2), np.array([[1.0, 2.0]]), mode="valid")
    array([[1.],
           [2.]])
    """
    x, h = _prepared("correlate2d", in1, in2, mode)
    h = turned(h, len(h.shape)) if len(h.shape) == 2 else h
    return _convolved_2d("correlate2d", x, h, mode, boundary, fillvalue)
