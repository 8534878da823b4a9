"""Integrals of samples along an axis under SciPy's names, differentiable in samples and places."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axis, weak_or_array
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.cumulative import cumsum
from gradtape.ops.join import concatenate
from gradtape.ops.rearrange import flip
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import divide_or_zero, where
from gradtape.ops.shape import broadcast_to, moveaxis
from gradtape.ops.which import all as all_of
from gradtape.solvers.require import required


def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """Integrals of samples up to each of them by the trapezoidal rule.

    Args:
        y: The samples.
        x: Where they were taken: along the axis, or for every sample.
        dx: How far apart they are, if `x` is not given.
        axis: The axis to integrate along.
        initial: 0 to begin the result with, or None to leave it out.

    Raises:
        ArgumentError: `initial` is something else, or there are no samples.
        AxisError: There is no such axis.
        ShapeError: The shapes do not fit.

    >>> y = np.array([1.0, 2.0, 4.0])
    >>> gt.jacobian(gt.scipy.integrate.cumulative_trapezoid)(y)
    array([[0.5, 0.5, 0. ],
           [0.5, 1. , 0.5]])
    """
    name = "cumulative_trapezoid"
    if initial is not None and not (np.ndim(initial) == 0 and initial == 0):
        raise ArgumentError(f"{name}: got initial={initial!r}, expected 0 or None")
    y, width, axis = _along_last(name, y, x, dx, axis)
    parts = width * (y[..., 1:] + y[..., :-1]) / 2.0
    out = cumsum(parts, axis=-1)
    if initial is not None:
        out = concatenate([np.zeros((*out.shape[:-1], 1), out.dtype), out], axis=-1)
    return moveaxis(out, -1, axis)


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral of samples by Simpson's rule, as `scipy.integrate.simpson`.

    Args:
        y: The samples.
        x: Where they were taken: along the axis, or for every sample.
        dx: How far apart they are, if `x` is not given.
        axis: The axis to integrate along.

    Raises:
        ArgumentError: There are no samples.
        AxisError: There is no such axis.
        ShapeError: The shapes do not fit.

    >>> gt.grad(lambda y: gt.scipy.integrate.simpson(y, dx=0.5))(np.zeros(3))
    array([0.16666667, 0.66666667, 0.16666667])
    """
    y, width, _ = _along_last("simpson", y, x, dx, axis)
    count = y.shape[-1]
    if count == 2:
        return sum_of(width * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)
    pairs = count - 1 - (count + 1) % 2
    out = sum_of(
        _pairs(y[..., : pairs + 1], width[..., :pairs] if np.ndim(width) else width), axis=-1
    )
    return out if count % 2 else out + _last(y, width)


def _pairs(y: Any, width: Any) -> Any:
    """The integrals of parabolas through three samples, over two intervals each."""
    first, middle, last = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    if not np.ndim(width):
        return width / 3.0 * (first + 4.0 * middle + last)
    h0, h1 = width[..., ::2], width[..., 1::2]
    both = h0 + h1
    # Where two places are the same, SciPy takes a quotient by 0 as 0.
    share = divide_or_zero(h0, h1)
    ends = first * (2.0 - divide_or_zero(1.0, share)) + last * (2.0 - share)
    return both / 6.0 * (ends + middle * both * divide_or_zero(both, h0 * h1))


def _last(y: Any, width: Any) -> Any:
    """The integral over the last interval of the parabola through the last three samples."""
    if not np.ndim(width):
        return width / 12.0 * (5.0 * y[..., -1] + 8.0 * y[..., -2] - y[..., -3])
    width = broadcast_to(width, (*y.shape[:-1], y.shape[-1] - 1))
    h0, h1 = width[..., -2], width[..., -1]
    both = h0 + h1
    end = divide_or_zero(2.0 * h1**2 + 3.0 * h0 * h1, 6.0 * both)
    middle = divide_or_zero(h1**2 + 3.0 * h0 * h1, 6.0 * h0)
    before = divide_or_zero(h1**3, 6.0 * h0 * both)
    return end * y[..., -1] + middle * y[..., -2] - before * y[..., -3]


def cumulative_simpson(
    y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """Integrals of samples up to each of them by Simpson's rule.

    Args:
        y: The samples.
        x: Where they were taken, in rising order: along the axis, or for every sample.
        dx: How far apart they are, if `x` is not given; a number, or one for each row of samples.
        axis: The axis to integrate along.
        initial: What to begin the result with, and to add to it; None leaves it out.

    Raises:
        ArgumentError: There are no samples, or `x` is in another order.
        AxisError: There is no such axis.
        ShapeError: The shapes do not fit.

    >>> gt.scipy.integrate.cumulative_simpson(gt.tensor([0.0, 1.0, 4.0]), initial=0.0)
    tensor([0.        , 0.33333333, 2.66666667])
    """
    name = "cumulative_simpson"
    y, width, axis = _along_last(name, y, x, dx, axis, by_row=True)
    if y.shape[-1] < 3:
        parts = width * (y[..., 1:] + y[..., :-1]) / 2.0
    else:
        width = broadcast_to(width, (*y.shape[:-1], y.shape[-1] - 1))
        if x is not None:
            fine = all_of(stop_gradient(width) > 0)
            text = f"{name}: got x that is not strictly increasing, expected sorted places"
            width = required(width, fine, text)
        ahead = _halves(y, width)
        behind = flip(_halves(flip(y, -1), flip(width, -1)), -1)
        # Each interval by a parabola through the next sample, or through the one before.
        place = np.arange(y.shape[-1] - 1)
        by_next = (place % 2 == 0) & (place < place[-1])
        parts = where(
            by_next,
            concatenate([ahead, behind[..., -1:]], axis=-1),
            concatenate([ahead[..., :1], behind], axis=-1),
        )
    out = cumsum(parts, axis=-1)
    if initial is not None:
        initial = as_array(initial)
        if initial.shape:
            initial = moveaxis(initial, axis, -1)
        first = broadcast_to(initial, (*out.shape[:-1], 1))
        out = concatenate([astype(first, np.result_type(first.dtype, out.dtype)), out + first], -1)
    return moveaxis(out, -1, axis)


def _halves(y: Any, width: Any) -> Any:
    """The integrals of parabolas through three samples, over the first of two intervals."""
    h0, h1 = width[..., :-1], width[..., 1:]
    share, ratio = h0 / (h0 + h1), h0 / h1
    first, middle, last = y[..., :-2], y[..., 1:-1], y[..., 2:]
    bend = share * ratio
    return h0 / 6.0 * ((3.0 - share) * first + (3.0 + bend + share) * middle - bend * last)


def romb(y: Any, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral of samples by Romberg's method, as `scipy.integrate.romb`.

    Args:
        y: The samples; one more than a power of two of them.
        dx: How far apart they are.
        axis: The axis to integrate along.

    Raises:
        ArgumentError: There is another number of samples.
        AxisError: There is no such axis.

    >>> gt.grad(gt.scipy.integrate.romb)(np.zeros(3))
    array([0.33333333, 1.33333333, 0.33333333])
    """
    y, width, _ = _along_last("romb", y, None, dx, axis)
    count = y.shape[-1] - 1
    if count < 1 or count & (count - 1):
        raise ArgumentError(
            f"romb: got {count + 1} samples, expected one more than a power of two, as 17"
        )
    step = count
    h = width * count
    table = [(y[..., 0] + y[..., -1]) / 2.0 * h]
    while step > 1:
        between = sum_of(y[..., step // 2 :: step], axis=-1)
        row = [0.5 * (table[0] + h * between)]
        for order, before in enumerate(table, 1):
            row.append(row[-1] + (row[-1] - before) / (4**order - 1))
        table, step, h = row, step // 2, h / 2.0
    return table[-1]


# ---- arguments ----------------------------------------------------------------------------------


def _along_last(
    name: str, y: Any, x: Any, dx: Any, axis: int, *, by_row: bool = False
) -> tuple[Any, Any, int]:
    """Samples with the axis last, the distances between them, and the number of the axis."""
    y = as_array(y)
    axis = normalize_axis(axis, len(y.shape), name)
    if not y.shape[axis]:
        raise ArgumentError(f"{name}: got no samples along axis {axis}, expected at least one")
    shape = y.shape
    y = moveaxis(y, axis, -1)
    if y.dtype.kind in "biu":
        y = astype(y, np.float64)
    if x is None:
        dx = weak_or_array(dx)
        one = (*shape[:axis], 1, *shape[axis + 1 :])
        if np.shape(dx) not in ((), one if by_row else ()):
            raise ShapeError(
                f"{name}: got dx of shape {np.shape(dx)}, expected a number; give x instead"
            )
        return y, moveaxis(dx, axis, -1) if np.ndim(dx) else dx, axis
    x = as_array(x)
    is_line = len(x.shape) == 1 and x.shape[0] == shape[axis]
    if not is_line and (len(x.shape) != len(shape) or x.shape[axis] != shape[axis]):
        raise ShapeError(
            f"{name}: got x of shape {x.shape} for samples of shape {shape}, expected "
            f"({shape[axis]},) or the shape of the samples"
        )
    if x.dtype.kind in "biu":
        x = astype(x, np.float64)
    x = x if is_line else moveaxis(x, axis, -1)
    return y, x[..., 1:] - x[..., :-1], axis
