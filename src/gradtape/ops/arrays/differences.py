"""Differences of neighbours, and functions made of them: gradients, integrals, phases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axes, normalize_axis
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.checks import check_axes, check_choice, check_least
from gradtape.ops.comparison import not_equal
from gradtape.ops.cumulative import cumsum
from gradtape.ops.index import getitem, part_of
from gradtape.ops.inspection import result_type
from gradtape.ops.join import concatenate
from gradtape.ops.reduce import floats, sum as sum_of
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.typing import Array, ArrayLike, Axis

# ---- diff ---------------------------------------------------------------------------------------


def diff(
    x: ArrayLike,
    /,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike = None,
    append: ArrayLike = None,
) -> Array:
    """Differences of neighbours along an axis: `x[i + 1] - x[i]`.

    Args:
        x: What to take differences of; of truth values, whether neighbours differ.
        n: How many times.
        axis: Along which axis.
        prepend: What to put before the array first; a number stands for one element.
        append: What to put after it.

    Raises:
        ArgumentError: `n` is negative.
        ShapeError: The array has no axes.
        AxisError: There is no such axis.

    >>> gt.diff(np.array([1.0, 4.0, 9.0]))
    array([3., 5.])
    """
    x = as_array(x)
    if n != 1:
        check_least("diff", 0, n=n)
    check_axes("diff", x, least=1)
    axis = normalize_axis(axis, len(x.shape), "diff")
    # NumPy's own default for "nothing" is not None.
    around = [None if v is np._NoValue else v for v in (prepend, append)]
    before, after = ([] if v is None else [_one_along(v, x, axis)] for v in around)
    if n and (before or after):
        x = concatenate([*before, x, *after], axis)
    for _ in range(n):
        later, earlier = part_of(x, 1, axis=axis), part_of(x, None, -1, axis=axis)
        x = not_equal(later, earlier) if x.dtype == np.bool_ else later - earlier
    return x


def _one_along(value: ArrayLike, x: Array, axis: int) -> Array:
    value = as_array(value)
    if value.shape:
        return value
    return broadcast_to(value, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


def ediff1d(x: ArrayLike, /, to_end: ArrayLike = None, to_begin: ArrayLike = None) -> Array:
    """Differences of neighbours in the flattened array, with other elements around them.

    Args:
        x: What to take differences of.
        to_end: What to put after the differences.
        to_begin: What to put before them.

    Raises:
        DTypeError: These are of another kind than the array.

    >>> gt.ediff1d(np.array([1.0, 4.0, 9.0]), to_begin=0.0)
    array([0., 3., 5.])
    """
    x = reshape(as_array(x), -1)
    middle = part_of(x, 1, axis=0) - part_of(x, None, -1, axis=0)
    before, after = ([] if v is None else [_beside(v, x.dtype)] for v in (to_begin, to_end))
    return concatenate([*before, middle, *after]) if before or after else middle


def _beside(value: ArrayLike, dtype: Any) -> Array:
    """The values to put beside the differences, in their dtype."""
    value = as_array(value)
    if not np.can_cast(value.dtype, dtype, "same_kind"):
        raise DTypeError(f"ediff1d: got {value.dtype} beside differences of {dtype}; use astype")
    return astype(reshape(value, -1), dtype, copy=False)


# ---- gradient -----------------------------------------------------------------------------------


def gradient(
    f: ArrayLike, /, *varargs: ArrayLike, axis: Axis = None, edge_order: int = 1
) -> Array | tuple[Array, ...]:
    """Derivatives of sampled values along axes, by central differences inside.

    Args:
        f: The samples.
        *varargs: How far apart samples are: one number for all axes, or for each axis a number or
            the coordinates along it. Differentiable as well.
        axis: One or several axes; None for all of them.
        edge_order: Whether the ends use differences of first or second order.

    Returns:
        An array, or a tuple of them if there are several axes.

    Raises:
        ArgumentError: The number of spacings is not that of the axes, or `edge_order` is above 2.
        ShapeError: An axis is too short, or coordinates do not fit it.

    >>> gt.gradient(np.array([0.0, 1.0, 4.0, 9.0]))
    array([1., 2., 4., 5.])
    """
    f = floats(as_array(f))
    axes = normalize_axes(axis, len(f.shape), "gradient")
    check_choice("gradient", (1, 2), edge_order=edge_order)
    # As in NumPy, the result has the dtype of the samples, however exact the spacings are.
    results = tuple(
        astype(_along(f, a, _spacing(f, h, a), edge_order), f.dtype, copy=False)
        for a, h in zip(axes, _each(varargs, axes), strict=True)
    )
    return results[0] if len(axes) == 1 else results


def _each(given: tuple[Any, ...], axes: tuple[int, ...]) -> tuple[Any, ...]:
    """One spacing for each axis."""
    spacings = given or (1.0,)
    if len(spacings) == 1 and not as_array(spacings[0]).shape:
        return spacings * len(axes)
    if len(spacings) != len(axes):
        raise ArgumentError(
            f"gradient: got {len(spacings)} spacings for {len(axes)} axes, expected none, one "
            "number, or one for each axis"
        )
    return spacings


def _spacing(f: Array, spacing: Any, axis: int) -> Any:
    """A number, or the distances of neighbours in a form that broadcasts against `f`."""
    spacing = spacing if isinstance(spacing, int | float) else as_array(spacing)
    shape = getattr(spacing, "shape", ())
    if not shape:
        return spacing
    if shape != (f.shape[axis],):
        raise ShapeError(
            f"gradient: got coordinates of shape {shape} for axis {axis} of shape {f.shape}, "
            f"expected {f.shape[axis]} of them"
        )
    steps = diff(floats(spacing))  # differences of unsigned numbers could not be negative
    return reshape(steps, (-1, *(1,) * (len(f.shape) - axis - 1)))


def _along(f: Array, axis: int, h: Any, edge_order: int) -> Array:
    n, least = f.shape[axis], edge_order + 1
    if n < least:
        raise ShapeError(f"gradient: got {n} samples along axis {axis}, expected at least {least}")

    def at(start: int | None, stop: int | None) -> Array:
        return part_of(f, start, stop, axis=axis)

    def step(i: int) -> Any:
        return getitem(h, slice(i, i + 1 or None)) if not even else h

    even = getattr(h, "shape", ()) == ()
    if even:
        middle = (at(2, None) - at(None, -2)) / (2.0 * h)
    else:
        # With a step of a before and b after: −b/(a(a+b)), (b−a)/(ab), a/(b(a+b))
        a, b = getitem(h, slice(None, -1)), getitem(h, slice(1, None))
        outer = at(2, None) * (a / (b * (a + b))) - at(None, -2) * (b / (a * (a + b)))
        middle = outer + at(1, -1) * ((b - a) / (a * b))
    if edge_order == 1:
        start, end = (at(1, 2) - at(0, 1)) / step(0), (at(-1, None) - at(-2, -1)) / step(-1)
    else:
        start = _one_sided([at(0, 1), at(1, 2), at(2, 3)], step(0), step(1))
        end = -_one_sided([at(-1, None), at(-2, -1), at(-3, -2)], step(-1), step(-2))
    return concatenate([start, middle, end], axis)


def _one_sided(f: Sequence[Array], a: Any, b: Any) -> Array:
    """The derivative at the first of three samples with steps a and b, exact for parabolas."""
    # −(2a+b)/(a(a+b))·f0 + (a+b)/(ab)·f1 − a/(b(a+b))·f2
    total = a + b
    near = f[1] * (total / (a * b)) - f[0] * ((a + total) / (a * total))
    return near - f[2] * (a / (b * total))


# ---- integrals ----------------------------------------------------------------------------------


def trapezoid(y: ArrayLike, /, x: ArrayLike = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """Integral of samples along an axis by the trapezoidal rule; differentiable in all of them.

    Args:
        y: The samples.
        x: Where they were taken: along the axis, or for every sample.
        dx: How far apart they are, if `x` is not given.
        axis: The axis to integrate along.

    Raises:
        AxisError: There is no such axis.
        ShapeError: The shapes do not fit.

    >>> gt.trapezoid(np.array([1.0, 2.0, 3.0]), dx=2.0)
    np.float64(8.0)
    """
    y = as_array(y)
    axis = normalize_axis(axis, len(y.shape), "trapezoid")
    step: Any = dx
    if x is not None:
        x = as_array(x)
        if len(x.shape) == 1:
            step = reshape(diff(x), (-1, *(1,) * (len(y.shape) - axis - 1)))
        else:
            step = diff(x, axis=axis - len(y.shape))
    if not getattr(step, "shape", ()) and y.dtype.kind in "fc" and y.shape[axis] > 1:
        # All but the ends count twice: one sum, without arrays in between.
        first, last = (getitem(y, (*(slice(None),) * axis, i)) for i in (0, -1))
        inside = sum_of(part_of(y, 1, -1, axis=axis), axis=axis)
        return step * (inside + (first + last) / 2.0)
    later, earlier = part_of(y, 1, axis=axis), part_of(y, None, -1, axis=axis)
    return sum_of(step * (later + earlier) / 2.0, axis=axis)


# ---- unwrap -------------------------------------------------------------------------------------


def unwrap(
    p: ArrayLike,
    /,
    discont: float | None = None,
    axis: int = -1,
    *,
    period: float = 2 * math.pi,
) -> Array:
    """Phases without jumps: whole periods are added where neighbours differ by more than a half.

    The added periods are piecewise constant, so the gradient passes unchanged.

    Args:
        p: The phases.
        discont: The least difference that counts as a jump; half a period by default, and at least.
        axis: Along which axis.
        period: The size of a period.

    Raises:
        AxisError: There is no such axis.

    >>> gt.unwrap(np.array([0.0, 2.0, 4.0, 0.0]), period=6.0)
    array([0., 2., 4., 6.])
    """
    p = as_array(p)
    axis = normalize_axis(axis, len(p.shape), "unwrap")
    whole = p.dtype.kind in "iu" and isinstance(period, int)
    high, odd = (period // 2, period % 2) if whole else (period / 2, 1)
    low = -high
    steps = diff(stop_gradient(p), axis=axis)
    wrapped = (steps - low) % period + low
    if not (whole and odd):
        # A step of exactly half a period up stays a step up.
        wrapped = where((wrapped == low) & (steps > 0), high, wrapped)
    least = high if discont is None else discont
    added = cumsum(where(abs(steps) < least, 0, wrapped - steps), axis=axis)
    first = part_of(p, 0, 1, axis=axis)
    out = concatenate([first, part_of(p, 1, axis=axis) + added], axis)
    return astype(out, result_type(p.dtype, period), copy=False)
