"""Running extremes, sums and products along an axis.

The gradient of a running extreme goes to the element that holds it; of equal ones to the last, as
in PyTorch. From the first NaN on it is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.core.op import Facts
from gradtape.ops.arguments import as_array, real_only
from gradtape.ops.arrays.axes import along
from gradtape.ops.arrays.sort import INDEX, put_along
from gradtape.ops.checks import check_axes
from gradtape.ops.cumulative import cumprod, cumsum
from gradtape.ops.family import member
from gradtape.ops.gather import take_along_axis
from gradtape.ops.join import concatenate
from gradtape.ops.reduce import NO_AXIS, REDUCTIONS
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike

# ---- running extremes ---------------------------------------------------------------------------


def _holders_forward(xp: Any, x: Any, axis: int, largest: bool) -> Any:
    """The number of the element that holds the extreme at each place."""
    extreme = (np.maximum if largest else np.minimum).accumulate(x, axis)
    numbers = xp.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - axis - 1))
    holds = (x == extreme) | (x != x)
    return np.maximum.accumulate(xp.where(holds, numbers, 0), axis)


_holders = general(
    "extreme_holders",
    _holders_forward,
    infer=lambda x, axis, largest: Aval(x.shape, INDEX),
)


def _running(name: str, ufunc: np.ufunc) -> Callable[..., Any]:
    """The op of a running extreme."""
    largest = ufunc is np.maximum

    # d out = dx of the element that holds the extreme; transpose: add up the places it holds
    def vjp(ct: Any, _out: Any, x: Any, axis: int) -> Any:
        return put_along(ct, _holders(x, axis=axis, largest=largest), axis, x.shape)

    def jvp(tangents: Any, _out: Any, x: Any, axis: int) -> Any:
        return take_along_axis(tangents[0], _holders(x, axis=axis, largest=largest), axis)

    return general(
        name,
        lambda xp, x, axis: ufunc.accumulate(x, axis),
        vjps=(vjp,),
        jvp=jvp,
        facts=Facts(reads="axis"),
    )


_running_max = _running("cumulative_max", np.maximum)
_running_min = _running("cumulative_min", np.minimum)


def _along(name: str, x: ArrayLike, axis: int | None) -> tuple[Array, int]:
    return along(name, real_only(name, as_array(x)), axis)


def cumulative_max(x: ArrayLike, /, axis: int | None = None) -> Array:
    """The largest of the elements up to each place along an axis, as `np.maximum.accumulate`.

    Args:
        x: Where to look.
        axis: Along which axis; None goes along the flattened array.

    Raises:
        AxisError: There is no such axis.
        DTypeError: `x` is complex.

    >>> gt.cumulative_max(np.array([1.0, 3.0, 2.0]))
    array([1., 3., 3.])
    """
    x, axis = _along("cumulative_max", x, axis)
    return _running_max(x, axis=axis)


def cumulative_min(x: ArrayLike, /, axis: int | None = None) -> Array:
    """The smallest of the elements up to each place along an axis, as `np.minimum.accumulate`.

    Args:
        x: Where to look.
        axis: Along which axis; None goes along the flattened array.

    Raises:
        AxisError: There is no such axis.
        DTypeError: `x` is complex.

    >>> gt.cumulative_min(np.array([2.0, 1.0, 3.0]))
    array([2., 1., 1.])
    """
    x, axis = _along("cumulative_min", x, axis)
    return _running_min(x, axis=axis)


class Running(NamedTuple):
    """Running extremes, and where along the axis their elements are."""

    values: Array
    indices: Array


@options(raises=NO_AXIS)
def _with_places(name: str, x: ArrayLike, /, axis: int) -> Running:
    """The {what} of the elements up to each place along an axis, and where it is, as in PyTorch.

    Args:
        x: Where to look.
        axis: Along which axis.

    Returns:
        A named tuple of `values`, which have gradients, and `indices`.

    Raises:
        DTypeError: `x` is complex.

    cummax:
    >>> gt.cummax(np.array([1.0, 3.0, 2.0]), 0)
    Running(values=array([1., 3., 3.]), indices=array([0, 1, 1]))

    cummin:
    >>> gt.cummin(np.array([2.0, 1.0, 3.0]), 0)
    Running(values=array([2., 1., 1.]), indices=array([0, 1, 1]))
    """
    x, axis = _along(name, x, axis)
    indices = _holders(x, axis=axis, largest=name == "cummax")
    return Running(take_along_axis(x, indices, axis), indices)


cummax = member("cummax", _with_places, what="largest")
cummin = member("cummin", _with_places, what="smallest")


# ---- sums and products with what they begin with -------------------------------------------------

# The function that computes them, and the result for no elements.
_RUNNING = {"cumulative_sum": (cumsum, 0), "cumulative_prod": (cumprod, 1)}


@options(REDUCTIONS, raises=NO_AXIS)
def _cumulative(
    name: str,
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """{what} of the elements up to each place along an axis, as the Array API has it.

    Args:
        x: The numbers.
        axis: Along which axis; may be left out if there is only one.
        include_initial: Whether to begin with the result for no elements, 0 or 1.

    Raises:
        ShapeError: There are several axes and none was given.

    cumulative_sum:
    >>> gt.cumulative_sum(np.array([1.0, 2.0]), include_initial=True)
    array([0., 1., 3.])

    cumulative_prod:
    >>> gt.cumulative_prod(np.array([2.0, 3.0]), include_initial=True)
    array([1., 2., 6.])
    """
    x = as_array(x)
    if axis is None:
        check_axes(name, x, 1, instead="give axis=")
    x, axis = along(name, x, axis)
    running, initial = _RUNNING[name]
    out = running(x, axis, dtype)
    if not include_initial:
        return out
    first = np.full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), initial, out.dtype)
    return concatenate([first, out], axis)


cumulative_sum = member("cumulative_sum", _cumulative, what="Sums")
cumulative_prod = member("cumulative_prod", _cumulative, what="Products")
