"""The coefficients of the spline through the elements of an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import linear
from gradtape.core.op import Facts
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.checks import check_choice
from gradtape.ops.shape import moveaxis
from gradtape.typing import Array, ArrayLike

# How an array continues beyond its ends, by the rule that the spline has there.
_ENDS = {
    **dict.fromkeys(("mirror", "constant", "wrap", "grid-constant"), "mirror"),
    **dict.fromkeys(("reflect", "nearest", "grid-mirror"), "reflect"),
    "grid-wrap": "grid-wrap",
}
# SciPy's recursion for a repeated end begins with a sum that it cuts off: for fewer elements than
# this its matrix is not symmetric to the last bits.
_EXACT = 32


def check_spline(name: str, order: int, mode: str) -> None:
    """Raise for a degree or a mode that splines do not have."""
    check_choice(name, range(6), order=order)
    check_choice(name, _ENDS, mode=mode)


def _forward(xp: Any, x: Any, axis: int, order: int, mode: str) -> Any:
    import scipy.ndimage

    dtype = np.complex128 if x.dtype.kind == "c" else np.float64
    return scipy.ndimage.spline_filter1d(x, order, axis, output=dtype, mode=mode)


def _transpose(ct: Any, _out: Any, _x: Any, axis: int, order: int, mode: str) -> Any:
    size = ct.shape[axis]
    if mode == "reflect" and size < _EXACT:
        matrix = _forward(np, np.eye(size), 0, order, mode)
        return moveaxis(moveaxis(ct, axis, -1) @ matrix, -1, axis)
    if mode != "mirror":
        return filter_along(ct, axis=axis, order=order, mode=mode)
    ends = np.ones(size)
    ends[:1] = ends[-1:] = 2
    ends = ends.reshape((-1,) + (1,) * (len(ct.shape) - axis - 1))
    return filter_along(ct * ends, axis=axis, order=order, mode=mode) / ends


# B·c = x with the values B of splines at the elements. B is symmetric where an end is repeated or
# the other one follows; mirrored at an end, B with the rows of both ends halved is.
filter_along = linear(
    "spline_filter1d",
    _forward,
    _transpose,
    infer=lambda x, **_params: Aval(
        x.shape, np.dtype(np.complex128 if x.dtype.kind == "c" else np.float64)
    ),
    facts=Facts(reads="axis"),
)


def spline_filter1d(
    input: ArrayLike, /, order: int = 3, axis: int = -1, *, mode: str = "mirror"
) -> Array:
    """The coefficients of a spline through the elements along one axis, in double precision.

    Args:
        input: The elements.
        order: The degree of the spline, from 0 to 5; for 0 and 1 they are the elements.
        axis: Along which axis.
        mode: How the array goes on beyond its ends.

    Raises:
        AxisError: There is no such axis.
        ArgumentError: `order` or `mode` is something else.

    >>> gt.scipy.ndimage.spline_filter1d(np.array([1.0, 1.0, 1.0]))
    array([1., 1., 1.])
    """
    check_spline("spline_filter1d", order, mode)
    x = as_array(input)
    axis = normalize_axis(axis, len(x.shape), "spline_filter1d")
    return filter_along(x, axis=axis, order=order, mode=_ENDS[mode])


def spline_filter(input: ArrayLike, /, order: int = 3, *, mode: str = "mirror") -> Array:
    """The coefficients of a spline through the elements of an array, in double precision.

    Args:
        input: The elements.
        order: The degree of the spline, from 0 to 5; for 0 and 1 they are the elements.
        mode: How the array goes on beyond its ends.

    Raises:
        ArgumentError: `order` or `mode` is something else.

    >>> gt.scipy.ndimage.spline_filter(np.ones((2, 2)))
    array([[1., 1.],
           [1., 1.]])
    """
    x = as_array(input)
    for axis in range(len(x.shape)):
        x = spline_filter1d(x, order, axis, mode=mode)
    return x
