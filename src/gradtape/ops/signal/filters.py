"""Digital filters along one axis: by coefficients, and by sections of second order."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.define import answers, functions
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.cast import astype
from gradtape.ops.cumulative import cumsum
from gradtape.ops.join import concatenate, stack
from gradtape.ops.pad import crop, pad, pad_constant
from gradtape.ops.rearrange import flip
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import moveaxis, reshape
from gradtape.ops.signal.direct import convolve_over
from gradtape.ops.signal.recursive import filter_over
from gradtape.typing import Array, ArrayLike

# ---- arguments ----------------------------------------------------------------------------------


def _part(x: Any, *index: Any) -> Any:
    return functions["getitem"](x, (Ellipsis, *index))


def _signal(name: str, x: ArrayLike, axis: int) -> Array:
    """The signal as an array that has elements along its axis of time."""
    x = as_array(x)
    axis = normalize_axis(axis, len(x.shape), name)
    if x.shape[axis] == 0:
        raise ShapeError(f"{name}: came shape {x.shape}; needed elements along axis {axis}")
    return x


def _floating(name: str, *arrays: Any) -> list[Any]:
    """Arrays in the common dtype of a filter: single or double precision, real or complex."""
    dtype = np.result_type(*(array.dtype for array in arrays))
    if dtype.kind in "biu":
        dtype = np.dtype(np.float64)
    if dtype.char not in "fdFD":
        raise DTypeError(f"{name}: came {dtype}; needed float32 or float64; use astype")
    return [astype(array, dtype, copy=False) for array in arrays]


def _coefficients(name: str, b: ArrayLike, a: ArrayLike) -> tuple[Array, Array]:
    """Both as arrays of one axis, divided by the first of a."""
    b, a = as_array(b), as_array(a)
    if len(b.shape) > 1 or len(a.shape) > 1 or 0 in b.shape or 0 in a.shape:
        raise ShapeError(
            f"{name}: came coefficients of shapes {b.shape} and {a.shape}; needed one axis of at "
            "least one element"
        )
    b, a = reshape(b, -1), reshape(a, -1)
    first = _part(a, slice(0, 1))
    return b / first, a / first


def _as_many(b: Any, a: Any) -> tuple[Any, Any]:
    """Coefficients with zeros at the end of the shorter ones."""
    size = max(b.shape[0], a.shape[0])
    b, a = (pad_constant(c, widths=((0, size - c.shape[0]),), fill=0) for c in (b, a))
    return b, a


def _state(name: str, zi: Any, x: Any, axis: int, order: int) -> Any:
    """The state at the start with time last: zeros if there is none."""
    if zi is None:
        return np.zeros(order, x.dtype)
    zi = as_array(zi)
    needed = (*x.shape[:axis], order, *x.shape[axis + 1 :])
    fits = len(zi.shape) == len(needed) and zi.shape[axis] == order
    if not fits or any(n not in (1, m) for n, m in zip(zi.shape, needed, strict=True)):
        raise ShapeError(f"{name}: came zi of shape {zi.shape}; needed {needed}")
    return moveaxis(zi, axis, -1)


def _moving_average(b: Any, x: Any, state: Any) -> tuple[Any, Any]:
    """The filter without recursion along the last axis, a convolution, and its state at the end."""
    order, size = b.shape[-1] - 1, x.shape[-1]
    full = convolve_over(x, b, ndim=1, full=True)
    none = ((0, 0),) * (len(full.shape) - 1)
    if order:
        before = ((0, 0),) * (len(state.shape) - 1)
        full = full + pad_constant(state, widths=(*before, (0, size)), fill=0)
    return crop(full, widths=(*none, (0, order))), crop(full, widths=(*none, (size, 0)))


# ---- by coefficients ----------------------------------------------------------------------------


@answers("scipy.signal.lfilter")
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

    >>> gt.signal.lfilter([1.0], [1.0, -0.5], np.array([1.0, 0.0, 0.0]))
    array([1.  , 0.5 , 0.25])
    """
    b, a = _coefficients("lfilter", b, a)
    x = _signal("lfilter", x, axis)
    axis = normalize_axis(axis, len(x.shape), "lfilter")
    state = _state("lfilter", zi, x, axis, max(b.shape[0], a.shape[0]) - 1)
    b, a, x, state = _floating("lfilter", b, a, moveaxis(x, axis, -1), state)
    if a.shape[0] == 1:
        y, end = _moving_average(b, x, state)
    else:
        b, a = _as_many(b, a)
        y, end = filter_over(b, _part(a, slice(1, None)), x, state)
    y = moveaxis(y, -1, axis)
    return y if zi is None else (y, moveaxis(end, -1, axis))


@answers("scipy.signal.lfilter_zi")
def lfilter_zi(b: ArrayLike, a: ArrayLike, /) -> Array:
    """The state of `gt.signal.lfilter` after a signal of ones since ever.

    Args:
        b: The coefficients of the signal.
        a: The coefficients of the result.

    Raises:
        ShapeError: Coefficients do not have one axis.

    >>> gt.signal.lfilter_zi([1.0, 1.0], [1.0, -0.5])
    array([3.])
    """
    b, a = _as_many(*_floating("lfilter_zi", *_coefficients("lfilter_zi", b, a)))
    later = _part(a, slice(1, None))
    # With z the same before and after a step, and x = 1: z_k = B_k + … + a-sums·z₀.
    step = _part(b, slice(1, None)) - later * _part(b, slice(0, 1))
    first = sum_of(step) / sum_of(a)
    none = np.zeros(1, a.dtype)
    sums, steps = (
        concatenate([none, _part(cumsum(c), slice(None, -1))])[: later.shape[0]]
        for c in (later, step)
    )
    return (1 + sums) * first - steps


# ---- by sections of second order ----------------------------------------------------------------


def _sections(name: str, sos: ArrayLike) -> Array:
    sos = as_array(sos)
    if len(sos.shape) != 2 or sos.shape[1] != 6 or sos.shape[0] == 0:
        raise ShapeError(
            f"{name}: came sos of shape {sos.shape}; needed one row of 6 coefficients per section"
        )
    return sos


def _of_section(sos: Array, i: int) -> tuple[Array, Array]:
    """b₀ b₁ b₂ and a₀ a₁ a₂ of a section, divided by a₀."""
    row = functions["getitem"](sos, i)
    first = _part(row, slice(3, 4))
    return _part(row, slice(0, 3)) / first, _part(row, slice(3, None)) / first


@answers("scipy.signal.sosfilt")
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

    >>> gt.signal.sosfilt([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]], np.array([1.0, 0.0, 0.0]))
    array([1.  , 0.5 , 0.25])
    """
    sos, x = _sections("sosfilt", sos), _signal("sosfilt", x, axis)
    axis = normalize_axis(axis, len(x.shape), "sosfilt")
    count = sos.shape[0]
    if zi is None:
        states = np.zeros((count, 2), x.dtype)
    else:
        zi = as_array(zi)
        needed = (count, *x.shape[:axis], 2, *x.shape[axis + 1 :])
        if zi.shape != needed:
            raise ShapeError(f"sosfilt: came zi of shape {zi.shape}; needed {needed}")
        states = moveaxis(zi, axis + 1, -1)
    sos, y, states = _floating("sosfilt", sos, moveaxis(x, axis, -1), states)
    ends = []
    for i in range(count):
        b, a = _of_section(sos, i)
        y, end = filter_over(b, _part(a, slice(1, None)), y, functions["getitem"](states, i))
        ends.append(end)
    y = moveaxis(y, -1, axis)
    return y if zi is None else (y, moveaxis(stack(ends), -1, axis + 1))


@answers("scipy.signal.sosfilt_zi")
def sosfilt_zi(sos: ArrayLike, /) -> Array:
    """The states of `gt.signal.sosfilt` after a signal of ones since ever.

    Args:
        sos: One row per section, as for `gt.signal.sosfilt`.

    Raises:
        ShapeError: `sos` does not fit.

    >>> gt.signal.sosfilt_zi([[1.0, 1.0, 0.0, 1.0, -0.5, 0.0]])
    array([[3., 0.]])
    """
    (sos,) = _floating("sosfilt_zi", _sections("sosfilt_zi", sos))
    scale: Any = 1.0
    states = []
    for i in range(sos.shape[0]):
        b, a = _of_section(sos, i)
        states.append(scale * lfilter_zi(b, a))
        scale = scale * (sum_of(b) / sum_of(a))
    return stack(states)


# ---- forwards and backwards ---------------------------------------------------------------------


def _extended(name: str, x: Any, padtype: str | None, padlen: int) -> Any:
    """The signal continued beyond both ends of its last axis."""
    if padtype not in ("odd", "even", "constant", None):
        raise ArgumentError(
            f'{name}: came padtype={padtype!r}; needed "odd", "even", "constant" or None'
        )
    if padlen >= x.shape[-1]:
        raise ShapeError(
            f"{name}: came {x.shape[-1]} elements in time; needed more than padlen, which is "
            f"{padlen}"
        )
    if padtype is None or padlen == 0:
        return x
    widths = [(0, 0)] * (len(x.shape) - 1) + [(padlen, padlen)]
    if padtype != "odd":
        return pad(x, widths, mode="reflect" if padtype == "even" else "edge")
    first, last = _part(x, slice(0, 1)), _part(x, slice(-1, None))
    before = 2 * first - flip(_part(x, slice(1, padlen + 1)), -1)
    after = 2 * last - flip(_part(x, slice(-padlen - 1, -1)), -1)
    return concatenate([before, x, after], -1)


def _there_and_back(x: Any, padlen: int, settled: Any, run: Any) -> Any:
    """Filter in both directions, each from the settled state for the number that comes first."""
    for _ in range(2):
        x, _end = run(x, settled * _part(x, slice(0, 1)))
        x = flip(x, -1)
    return _part(x, slice(padlen, x.shape[-1] - padlen)) if padlen else x


@answers("scipy.signal.filtfilt")
def filtfilt(
    b: ArrayLike,
    a: ArrayLike,
    x: ArrayLike,
    /,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
    method: str = "pad",
    irlen: int | None = None,
) -> Array:
    """A digital filter applied forwards and backwards, so that it delays nothing.

    Args:
        b: The coefficients of the signal.
        a: The coefficients of the result.
        x: The signal.
        axis: The axis of time.
        padtype: How the signal is continued at the ends: "odd", "even", "constant" or None.
        padlen: By how many elements; three times the number of coefficients if it is None.
        method: "pad"; SciPy's other one is not there.
        irlen: An option of the other method, which raises.

    Raises:
        AxisError: There is no such axis.
        ShapeError: Coefficients do not have one axis, or the signal is too short.
        ArgumentError: `padtype` or `method` is something else.

    >>> gt.signal.filtfilt([0.5, 0.5], [1.0], np.array([0.0, 0.0, 4.0, 0.0, 0.0]), padlen=2)
    array([0., 1., 2., 1., 0.])
    """
    if method != "pad" or irlen is not None:
        raise ArgumentError(f'filtfilt: came method={method!r}, irlen={irlen}; needed "pad"')
    b, a = _coefficients("filtfilt", b, a)
    x = _signal("filtfilt", x, axis)
    axis = normalize_axis(axis, len(x.shape), "filtfilt")
    b, a, x = _floating("filtfilt", b, a, moveaxis(x, axis, -1))
    b, a = _as_many(b, a)
    padlen = 3 * b.shape[0] if padlen is None else padlen
    padlen = 0 if padtype is None else padlen
    x = _extended("filtfilt", x, padtype, padlen)

    def run(x: Any, state: Any) -> Any:
        if b.shape[0] == 1:
            return _moving_average(b, x, state)
        return filter_over(b, _part(a, slice(1, None)), x, state)

    return moveaxis(_there_and_back(x, padlen, lfilter_zi(b, a), run), -1, axis)


@answers("scipy.signal.sosfiltfilt")
def sosfiltfilt(
    sos: ArrayLike,
    x: ArrayLike,
    /,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
) -> Array:
    """Sections of second order applied forwards and backwards, so that they delay nothing.

    Args:
        sos: One row per section, as for `gt.signal.sosfilt`.
        x: The signal.
        axis: The axis of time.
        padtype: How the signal is continued at the ends: "odd", "even", "constant" or None.
        padlen: By how many elements; if it is None, three times the number of coefficients that
            the filter would have, for which the values of `sos` are looked at.

    Raises:
        AxisError: There is no such axis.
        ShapeError: `sos` does not fit, or the signal is too short.
        ArgumentError: `padtype` is something else.

    >>> sos = [[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]]
    >>> gt.signal.sosfiltfilt(sos, np.array([0.0, 0.0, 4.0, 0.0, 0.0]), padlen=2)
    array([0., 1., 2., 1., 0.])
    """
    sos, x = _sections("sosfiltfilt", sos), _signal("sosfiltfilt", x, axis)
    axis = normalize_axis(axis, len(x.shape), "sosfiltfilt")
    if padlen is None:
        lowest = min(int((_part(sos, column) == 0).sum().item()) for column in (2, 5))
        padlen = 3 * (2 * sos.shape[0] + 1 - lowest)
    padlen = 0 if padtype is None else padlen
    sos, x = _floating("sosfiltfilt", sos, moveaxis(x, axis, -1))
    x = _extended("sosfiltfilt", x, padtype, padlen)
    settled = sosfilt_zi(sos)
    states = reshape(settled, (sos.shape[0], *(1,) * (len(x.shape) - 1), 2))

    def run(x: Any, state: Any) -> Any:
        return sosfilt(sos, x, zi=state)

    return moveaxis(_there_and_back(x, padlen, states, run), -1, axis)
