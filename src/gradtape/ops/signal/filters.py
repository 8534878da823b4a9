"""Digital filters along one axis: by coefficients, and by sections of second order."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.known import values_if_known
from gradtape.ops.cumulative import cumsum
from gradtape.ops.index import getitem
from gradtape.ops.join import stack
from gradtape.ops.rearrange import flip
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import moveaxis, reshape
from gradtape.ops.signal.direct import convolve_over
from gradtape.ops.signal.parts import in_common, longer, part, signal_along, vector
from gradtape.ops.signal.recursive import filter_over
from gradtape.typing import Array, ArrayLike

# ---- arguments ----------------------------------------------------------------------------------


def coefficients_of(name: str, b: ArrayLike, a: ArrayLike) -> tuple[Array, Array]:
    """Both as arrays of one axis, divided by the first of a, which must not be 0."""
    b, a = vector(name, "b", b), vector(name, "a", a)
    first = part(a, 0, 1)
    known = values_if_known(first) if a.shape[0] > 1 else None
    if known is not None and not known.all():
        raise ArgumentError(
            f"{name}: got a[0] = 0, by which all are divided, expected another number; leave out "
            "zeros at the start of a"
        )
    return b / first, a / first


def as_many(b: Any, a: Any) -> tuple[Any, Any]:
    """Coefficients with zeros at the end of the shorter ones."""
    size = max(b.shape[0], a.shape[0])
    return longer(b, 0, size - b.shape[0]), longer(a, 0, size - a.shape[0])


def _state(name: str, zi: Any, x: Any, axis: int, order: int) -> Any:
    """The state at the start with time last: zeros if there is none."""
    if zi is None:
        return np.zeros(order, x.dtype)
    zi = as_array(zi)
    needed = (*x.shape[:axis], order, *x.shape[axis + 1 :])
    fits = len(zi.shape) == len(needed) and zi.shape[axis] == order
    if not fits or any(n not in (1, m) for n, m in zip(zi.shape, needed, strict=True)):
        raise ShapeError(f"{name}: got zi of shape {zi.shape}, expected {needed}")
    return moveaxis(zi, axis, -1)


def moving_average(b: Any, x: Any, state: Any) -> tuple[Any, Any]:
    """The filter without recursion along the last axis, a convolution, and its state at the end."""
    size = x.shape[-1]
    full = convolve_over(x, b, ndim=1, full=True)
    if b.shape[-1] > 1:
        full = full + longer(state, 0, size)
    return part(full, 0, size), part(full, size, None)


# ---- by coefficients ----------------------------------------------------------------------------


def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayLike, /, axis: int = -1, zi: Any = None) -> Any:
    """A digital filter along one axis: Σ aₖ·y[t − k] = Σ bₖ·x[t − k].

    It is differentiable in the coefficients, the signal and the state.

    Args:
        b: The coefficients of the signal.
        a: The coefficients of the result; the first one divides all others.
        x: The signal.
        axis: The axis of time.
        zi: The state at the start, with as many elements along `axis` as there are coefficients
            (of the longer one) less 1; zeros if it is None.

    Returns:
        The filtered signal; with `zi` a pair of it and the state at the end.

    Raises:
        AxisError: There is no such axis.
        ShapeError: Coefficients do not have one axis, or `zi` does not fit.
        ArgumentError: The first of `a` is 0, and there are others; compiled code gives what
            dividing by it gives.

    >>> gt.scipy.signal.lfilter([1.0], [1.0, -0.5], np.array([1.0, 0.0, 0.0]))
    array([1.  , 0.5 , 0.25])
    """
    b, a = coefficients_of("lfilter", b, a)
    x, axis = signal_along("lfilter", x, axis)
    state = _state("lfilter", zi, x, axis, max(b.shape[0], a.shape[0]) - 1)
    b, a, x, state = in_common("lfilter", b, a, moveaxis(x, axis, -1), state)
    if a.shape[0] == 1:
        y, end = moving_average(b, x, state)
    else:
        b, a = as_many(b, a)
        y, end = filter_over(b, part(a, 1, None), x, state)
    y = moveaxis(y, -1, axis)
    return y if zi is None else (y, moveaxis(end, -1, axis))


def lfilter_zi(b: ArrayLike, a: ArrayLike, /) -> Array:
    """The state of `gt.scipy.signal.lfilter` after an infinitely long signal of ones.

    Args:
        b: The coefficients of the signal.
        a: The coefficients of the result.

    Raises:
        ShapeError: Coefficients do not have one axis.

    >>> gt.scipy.signal.lfilter_zi([1.0, 1.0], [1.0, -0.5])
    array([3.])
    """
    b, a = as_many(*in_common("lfilter_zi", *coefficients_of("lfilter_zi", b, a)))
    later = part(a, 1, None)
    # With z the same before and after a step, and x = 1: z_k = B_k + … + a-sums·z₀.
    step = part(b, 1, None) - later * part(b, 0, 1)
    first = sum_of(step) / sum_of(a)
    sums, steps = (cumsum(c) - c for c in (later, step))
    return (1 + sums) * first - steps


def lfiltic(b: ArrayLike, a: ArrayLike, y: ArrayLike, /, x: Any = None) -> Array:
    """The state of `gt.scipy.signal.lfilter` after some outputs and inputs.

    Args:
        b: The coefficients of the signal.
        a: The coefficients of the result.
        y: Earlier outputs, the latest first; zeros before those given.
        x: Earlier inputs, likewise; zeros if it is None.

    >>> gt.scipy.signal.lfiltic([1.0], [1.0, -0.5], [2.0])
    array([1.])
    """
    b, a = coefficients_of("lfiltic", b, a)
    past = [as_array(one) for one in (y, np.zeros(1) if x is None else x)]
    b, a, y, x = in_common("lfiltic", b, a, *(reshape(one, (-1,)) for one in past))
    order = max(b.shape[0], a.shape[0]) - 1
    # z_k = Σ_j b_{k+1+j}·x[−1−j] − a_{k+1+j}·y[−1−j]: correlations; the last ones are shorter.
    total: Any = np.zeros(order, b.dtype)
    for coefficients, earlier, sign in ((b, x, 1), (a, y, -1)):
        count = coefficients.shape[0] - 1
        if count:
            known = part(earlier, 0, count)
            met = convolve_over(part(coefficients, 1, None), flip(known, 0), ndim=1, full=True)
            met = part(met, known.shape[0] - 1, None)
            total = total + sign * longer(met, 0, order - count)
    return total


# ---- by sections of second order ----------------------------------------------------------------


def sections_of(name: str, sos: ArrayLike) -> Array:
    """Sections as an array, checked."""
    sos = as_array(sos)
    if len(sos.shape) != 2 or sos.shape[1] != 6 or sos.shape[0] == 0:
        raise ShapeError(
            f"{name}: got sos of shape {sos.shape}, expected one row of 6 coefficients per section"
        )
    return sos


def _of_section(sos: Array, i: int) -> tuple[Array, Array]:
    """b₀ b₁ b₂ and a₀ a₁ a₂ of a section, divided by a₀."""
    row = getitem(sos, i)
    first = part(row, 3, 4)
    return part(row, 0, 3) / first, part(row, 3, None) / first


def sosfilt(sos: ArrayLike, x: ArrayLike, /, axis: int = -1, zi: Any = None) -> Any:
    """A digital filter along one axis, made of sections of second order one after the other.

    It is differentiable in the coefficients, the signal and the state.

    Args:
        sos: One row per section: b₀, b₁, b₂, a₀, a₁, a₂. All are divided by a₀.
        x: The signal.
        axis: The axis of time.
        zi: The states at the start: one of two elements along `axis` for each section, along a
            further first axis; zeros if it is None.

    Returns:
        The filtered signal; with `zi` a pair of it and the states at the end.

    Raises:
        AxisError: There is no such axis.
        ShapeError: `sos` or `zi` does not fit.

    >>> gt.scipy.signal.sosfilt([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]], np.array([1.0, 0.0, 0.0]))
    array([1.  , 0.5 , 0.25])
    """
    sos = sections_of("sosfilt", sos)
    x, axis = signal_along("sosfilt", x, axis)
    count = sos.shape[0]
    if zi is None:
        states = np.zeros((count, 2), x.dtype)
    else:
        zi = as_array(zi)
        needed = (count, *x.shape[:axis], 2, *x.shape[axis + 1 :])
        if zi.shape != needed:
            raise ShapeError(f"sosfilt: got zi of shape {zi.shape}, expected {needed}")
        states = moveaxis(zi, axis + 1, -1)
    sos, y, states = in_common("sosfilt", sos, moveaxis(x, axis, -1), states)
    ends = []
    for i in range(count):
        b, a = _of_section(sos, i)
        y, end = filter_over(b, part(a, 1, None), y, getitem(states, i))
        ends.append(end)
    y = moveaxis(y, -1, axis)
    return y if zi is None else (y, moveaxis(stack(ends), -1, axis + 1))


def sosfilt_zi(sos: ArrayLike, /) -> Array:
    """The states of `gt.scipy.signal.sosfilt` after an infinitely long signal of ones.

    Args:
        sos: One row per section, as for `gt.scipy.signal.sosfilt`.

    Raises:
        ShapeError: `sos` does not fit.

    >>> gt.scipy.signal.sosfilt_zi([[1.0, 1.0, 0.0, 1.0, -0.5, 0.0]])
    array([[3., 0.]])
    """
    (sos,) = in_common("sosfilt_zi", sections_of("sosfilt_zi", sos))
    scale: Any = 1.0
    states = []
    for i in range(sos.shape[0]):
        b, a = _of_section(sos, i)
        states.append(scale * lfilter_zi(b, a))
        scale = scale * (sum_of(b) / sum_of(a))
    return stack(states)
