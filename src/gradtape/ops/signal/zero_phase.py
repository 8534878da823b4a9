"""Filters applied forwards and backwards, so that they delay nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ShapeError
from gradtape.ops.arrays.known import values_if_known
from gradtape.ops.checks import check_choice
from gradtape.ops.gather import take
from gradtape.ops.index import getitem
from gradtape.ops.join import concatenate
from gradtape.ops.linalg.lstsq import lstsq
from gradtape.ops.rearrange import flip
from gradtape.ops.reduce import min as min_of, sum as sum_of
from gradtape.ops.select import where
from gradtape.ops.shape import moveaxis, reshape
from gradtape.ops.signal.filters import (
    as_many,
    coefficients_of,
    lfilter_zi,
    moving_average,
    sections_of,
    sosfilt,
    sosfilt_zi,
)
from gradtape.ops.signal.parts import extended, in_common, longer, part, time_last
from gradtape.ops.signal.recursive import filter_over
from gradtape.typing import Array, ArrayLike

Run = Callable[[Any, Any], tuple[Any, Any]]

# ---- from a settled state -----------------------------------------------------------------------


def _surrounded(name: str, x: Any, padtype: str | None, padlen: int) -> Any:
    """The signal continued by `padlen` beyond both ends; it has to be longer than that."""
    check_choice(name, ("odd", "even", "constant", None), padtype=padtype)
    if padlen < 0 or (padlen >= x.shape[-1] and padtype is not None):
        raise ShapeError(
            f"{name}: got {x.shape[-1]} elements in time, expected more than padlen, which is "
            f"{padlen}, and that at least 0"
        )
    return extended(x, padtype, padlen)


def _there_and_back(x: Any, padlen: int, settled: Any, run: Run, unused: Any = 0) -> Any:
    """Filter in both directions, each from the state settled on its first number.

    Args:
        x: The signal, with `padlen` more elements before and after.
        padlen: How many of these are cut off in the end.
        settled: The state after an infinitely long signal of ones.
        run: Filters from a state; returns the result and the last state.
        unused: How many elements of the padding do not count at either end. Where only a running
            program knows, they are made equal to the first that does: a settled state stays so.
    """
    for _ in range(2):
        first = part(x, 0, 1)
        if isinstance(unused, Tensor):
            first = take(x, reshape(unused, (1,)), axis=-1)
            x = where(np.arange(x.shape[-1]) < unused, first, x)
        x, _end = run(x, settled * first)
        x = flip(x, -1)
    return part(x, padlen, x.shape[-1] - padlen) if padlen else x


# ---- from the states that suit both directions best ---------------------------------------------


def _steps(run: Run, order: int, size: int, dtype: Any) -> Any:
    """The output of a filter without input: a column for each element of its state."""
    start = np.zeros(order, dtype)
    start[0] = 1
    column, _ = run(np.zeros(size, dtype), start)
    later = np.arange(size)[:, None] - np.arange(order)
    shifted = take(column, np.maximum(later, 0), axis=0)
    return where(later >= 0, shifted, np.zeros((), dtype))


def _best(apart: Any, difference: Any, effect: Any) -> Any:
    """The contribution of the states that make up best for the gap between both orders."""
    rows = reshape(apart, (-1, apart.shape[-1]))
    states = lstsq(difference, rows.mT).x
    return reshape((effect @ states).mT, apart.shape)


def _by_best_states(x: Any, order: int, run: Run, irlen: int | None) -> Any:
    """Gustafsson's method: the states with which both orders of directions agree best.

    F. Gustafsson, "Determining the initial states in forward-backward filtering", IEEE Transactions
    on Signal Processing 44 (1996). Their contribution is linear: columns of matrices.
    """
    size, rest = x.shape[-1], np.zeros(order, x.dtype)

    def forwards(x: Any) -> Any:
        return run(x, rest)[0]

    def backwards(x: Any) -> Any:
        return flip(forwards(flip(x, -1)), -1)

    reach = size if irlen is None or size <= 2 * irlen else irlen
    alone = _steps(run, order, reach, x.dtype)  # of the state at the start
    both = backwards(alone.mT).mT  # and filtered backwards after that
    turned_alone, turned_both = flip(alone, 0), flip(both, 0)
    there_first = backwards(forwards(x))
    apart = forwards(backwards(x)) - there_first
    start, end = (both - alone, both), (turned_alone - turned_both, turned_alone)
    if reach == size:
        joined = (concatenate([one, other], 1) for one, other in zip(start, end, strict=True))
        return there_first + _best(apart, *joined)
    # The ends are too far apart to influence each other.
    others = size - reach
    at_start = _best(part(apart, 0, reach), *start)
    at_end = _best(part(apart, others, None), *end)
    return there_first + longer(at_start, 0, others) + longer(at_end, others, 0)


# ---- public functions ---------------------------------------------------------------------------


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
        method: "pad" continues the signal; "gust" does not, and looks for the states at both ends
            with which it does not matter which direction is first (Gustafsson).
        irlen: For "gust", after how many elements the filter has forgotten its state; None takes
            the whole signal.

    Raises:
        AxisError: There is no such axis.
        ShapeError: Coefficients do not have one axis, or the signal is too short.
        ArgumentError: `padtype` or `method` is something else.

    >>> gt.scipy.signal.filtfilt([0.5, 0.5], [1.0], np.array([0.0, 0.0, 4.0, 0.0, 0.0]), padlen=2)
    array([0., 1., 2., 1., 0.])
    """
    check_choice("filtfilt", ("pad", "gust"), method=method)
    b, a = coefficients_of("filtfilt", b, a)
    x, axis = time_last("filtfilt", x, axis)
    b, a, x = in_common("filtfilt", b, a, x)
    b, a = as_many(b, a)
    order = b.shape[0] - 1

    def run(x: Any, state: Any) -> Any:
        return filter_over(b, part(a, 1, None), x, state) if order else moving_average(b, x, state)

    if method == "gust":
        y = _by_best_states(x, order, run, irlen) if order else x * (b * b)
        return moveaxis(y, -1, axis)
    padlen = 0 if padtype is None else 3 * (order + 1) if padlen is None else padlen
    x = _surrounded("filtfilt", x, padtype, padlen)
    return moveaxis(_there_and_back(x, padlen, lfilter_zi(b, a), run), -1, axis)


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
        sos: One row per section, as for `gt.scipy.signal.sosfilt`.
        x: The signal.
        axis: The axis of time.
        padtype: How the signal is continued at the ends: "odd", "even", "constant" or None.
        padlen: By how many elements; if it is None, three times the number of coefficients that
            the filter would have, which depends on how many of `sos` are 0. Under `jit` and `vmap`
            the signal has to be long enough for the case that none is.

    Raises:
        AxisError: There is no such axis.
        ShapeError: `sos` does not fit, or the signal is too short.
        ArgumentError: `padtype` is something else.

    >>> sos = [[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]]
    >>> gt.scipy.signal.sosfiltfilt(sos, np.array([0.0, 0.0, 4.0, 0.0, 0.0]), padlen=2)
    array([0., 1., 2., 1., 0.])
    """
    name = "sosfiltfilt"
    sos = sections_of(name, sos)
    x, axis = time_last(name, x, axis)
    unused: Any = 0
    if padtype is None:
        padlen = 0
    elif padlen is None:
        unused = 3 * _missing(sos)
        padlen = 3 * (2 * sos.shape[0] + 1)
        known = values_if_known(unused)
        if known is not None:
            padlen, unused = padlen - int(known), 0
    sos, x = in_common(name, sos, x)
    x = _surrounded(name, x, padtype, padlen)
    states = reshape(sosfilt_zi(sos), (sos.shape[0], *(1,) * (len(x.shape) - 1), 2))

    def run(x: Any, state: Any) -> Any:
        return sosfilt(sos, x, zi=state)

    return moveaxis(_there_and_back(x, padlen, states, run, unused), -1, axis)


def _missing(sos: Any) -> Any:
    """How many coefficients fewer the filter has than its sections allow: b₂ and a₂ of 0."""
    last = getitem(sos, (slice(None), slice(2, None, 3)))
    return min_of(sum_of(last == 0, axis=0))
