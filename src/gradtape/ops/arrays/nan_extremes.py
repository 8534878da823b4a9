"""Extremes that leave NaN out, and where they are. If all elements are NaN, so is the extreme."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.core.lowering import Composite
from gradtape.core.op import Zero
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arrays.ufunc_methods import reduce
from gradtape.ops.comparison import isnan
from gradtape.ops.family import member
from gradtape.ops.reduce import (
    NO_AXIS,
    REDUCTIONS,
    Axes,
    count_over,
    hits_of,
    max_over,
    min_over,
    prepared,
    reduced_shape,
    reduction,
    sum_over,
)
from gradtape.ops.select import fmax, fmin, where as where_of
from gradtape.ops.shared_options import options
from gradtape.ops.which import all as all_of, position_along
from gradtape.typing import Array, ArrayLike, Axis

# ---- extremes -----------------------------------------------------------------------------------


def _shares_of(x: Any, axis: Axes, name: str) -> Any:
    extreme, *_ = _EXTREMES[name]
    hits = hits_of(x, extreme(x, axis=axis, keepdims=True))
    total = sum_over(hits, axis=axis, keepdims=True)
    shares = hits / (total + (total == 0))
    return shares if x.dtype.kind in "biu" else shares.astype(x.dtype, copy=False)


# How much each element takes part in the extreme, as `extreme_shares`; NaN does not.
_shares = general(
    "nan_extreme_shares",
    Composite(_shares_of),
    infer=lambda x, axis, name: Aval(x.shape, np.dtype(float)) if x.dtype.kind in "biu" else x,
    vjps=(Zero("nan_extreme_shares: piecewise constant"),),
    self_adjoint=True,
)


def _extreme(name: str, ufunc: np.ufunc, over: Callable[..., Any], worst: float) -> Any:
    """The op of an extreme; one that several elements reach is shared among them."""

    def composition(x: Any, axis: Axes, keepdims: bool) -> Any:
        if x.dtype.kind != "f":
            return over(x, axis=axis, keepdims=keepdims)
        found = over(where_of(isnan(x), worst, x), axis=axis, keepdims=keepdims)
        return where_of(all_of(isnan(x), axis, keepdims=keepdims), math.nan, found)

    def infer(x: Aval, axis: Axes, keepdims: bool) -> Aval:
        if count_over(x.shape, axis) == 0:
            raise ShapeError(f"{name}: got {x}, expected at least one element along axes {axis}")
        return Aval(reduced_shape(x.shape, axis, keepdims), x.dtype)

    # d nanmax(x) = Σ share·dx
    return reduction(
        name,
        lambda xp, x, axis, keepdims: ufunc.reduce(x, axis=axis, keepdims=keepdims),
        lambda _out, x, axis, keepdims: _shares(x, axis=axis, name=name),
        infer=infer,
        lower=Composite(composition),
        chosen=True,
    )


_EXTREMES = {
    "nanmax": (_extreme("nanmax", np.fmax, max_over, -math.inf), np.fmax, fmax),
    "nanmin": (_extreme("nanmin", np.fmin, min_over, math.inf), np.fmin, fmin),
}


@options(REDUCTIONS, raises=NO_AXIS)
def _extreme_of(
    name: str,
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Array:
    """The {what} element that is not NaN.

    Raises:
        ShapeError: There are no elements.

    nanmax:
    >>> gt.nanmax(np.array([1.0, np.nan, 3.0]))
    np.float64(3.0)

    nanmin:
    >>> gt.nanmin(np.array([1.0, np.nan, 3.0]))
    np.float64(1.0)
    """
    x, axes = prepared(name, x, axis)
    run, ufunc, function = _EXTREMES[name]
    where = where is None or where
    if initial is not None or where is not True:
        return reduce(ufunc, function, x, axes, None, keepdims, initial, where, name)
    return run(x, axis=axes, keepdims=bool(keepdims))


nanmax = member("nanmax", _extreme_of, what="largest")
nanmin = member("nanmin", _extreme_of, what="smallest")


# ---- where the extremes are ---------------------------------------------------------------------


def _arg(name: str) -> Callable[..., Any]:
    """The op of the place of an extreme."""

    def evaluate(xp: Any, x: Any, axis: int) -> Any:
        try:
            return getattr(xp, name)(x, axis=axis)
        except ValueError as error:
            if x.shape[axis] == 0:
                raise
            raise ArgumentError(
                f"{name}: got nothing but NaN along axis {axis}, expected a number"
            ) from error

    return general(
        name,
        evaluate,
        infer=lambda x, axis: Aval(reduced_shape(x.shape, (axis,), False), np.dtype(np.intp)),
        kind="reduction",
    )


_POSITIONS = {name: _arg(name) for name in ("nanargmax", "nanargmin")}


@options(REDUCTIONS, raises=NO_AXIS)
def _position(
    name: str, x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False
) -> Array:
    """Where the {what} element is that is not NaN.

    Args:
        axis: Along which axis; None looks at the flattened array.

    Raises:
        ArgumentError: All elements are NaN.
        ShapeError: There are no elements.

    nanargmax:
    >>> gt.nanargmax(np.array([1.0, np.nan, 3.0]))
    np.int64(2)

    nanargmin:
    >>> gt.nanargmin(np.array([1.0, np.nan, 3.0]))
    np.int64(0)
    """
    return position_along(_POSITIONS[name], name, x, axis, keepdims)


nanargmax = member("nanargmax", _position, what="largest")
nanargmin = member("nanargmin", _position, what="smallest")
