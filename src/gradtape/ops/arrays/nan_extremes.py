"""Extremes that leave NaN out, and where they are. If all elements are NaN, so is the extreme."""

from __future__ import annotations

import functools
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


def _extreme_forward(largest: bool) -> Callable[..., Any]:
    ufunc = np.fmax if largest else np.fmin
    return lambda xp, x, axis, keepdims: ufunc.reduce(x, axis=axis, keepdims=keepdims)


def _extreme_composition(x: Any, axis: Axes, keepdims: bool, largest: bool) -> Any:
    over = max_over if largest else min_over
    if x.dtype.kind != "f":
        return over(x, axis=axis, keepdims=keepdims)
    none = -math.inf if largest else math.inf
    found = over(where_of(isnan(x), none, x), axis=axis, keepdims=keepdims)
    nothing = all_of(isnan(x), axis, keepdims=keepdims)
    return where_of(nothing, math.nan, found)


def _shares_of(x: Any, axis: Axes, largest: bool) -> Any:
    extreme, *_ = _EXTREMES["nanmax" if largest else "nanmin"]
    hits = hits_of(x, extreme(x, axis=axis, keepdims=True))
    total = sum_over(hits, axis=axis, keepdims=True)
    shares = hits / (total + (total == 0))
    return shares if x.dtype.kind in "biu" else shares.astype(x.dtype, copy=False)


# How much each element takes part in the extreme, as `extreme_shares`; NaN does not.
_shares = general(
    "nan_extreme_shares",
    Composite(_shares_of),
    infer=lambda x, axis, largest: Aval(x.shape, np.dtype(float)) if x.dtype.kind in "biu" else x,
    vjps=(Zero("nan_extreme_shares: piecewise constant"),),
    self_adjoint=True,
)


def _extreme(name: str, largest: bool) -> Callable[..., Any]:
    """The op of an extreme; one that several elements reach is shared among them."""

    def infer(x: Aval, axis: Axes, keepdims: bool) -> Aval:
        if count_over(x.shape, axis) == 0:
            raise ShapeError(f"{name}: got {x}, expected at least one element along axes {axis}")
        return Aval(reduced_shape(x.shape, axis, keepdims), x.dtype)

    # d nanmax(x) = Σ share·dx
    return reduction(
        name,
        _extreme_forward(largest),
        lambda _out, x, axis, keepdims: _shares(x, axis=axis, largest=largest),
        infer=infer,
        lower=Composite(functools.partial(_extreme_composition, largest=largest)),
        chosen=True,
    )


_EXTREMES = {
    "nanmax": (_extreme("nanmax", True), np.fmax, fmax),
    "nanmin": (_extreme("nanmin", False), np.fmin, fmin),
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
    if initial is not None or (where is not True and where is not None):
        taken = True if where is None else where
        return reduce(ufunc, function, x, axes, None, keepdims, initial, taken, name)
    return run(x, axis=axes, keepdims=bool(keepdims))


nanmax = member("nanmax", _extreme_of, what="largest")
nanmin = member("nanmin", _extreme_of, what="smallest")


# ---- where the extremes are ---------------------------------------------------------------------


def _arg_forward(name: str) -> Callable[..., Any]:
    def evaluate(xp: Any, x: Any, axis: int) -> Any:
        try:
            return getattr(xp, name)(x, axis=axis)
        except ValueError as error:
            if x.shape[axis] == 0:
                raise
            raise ArgumentError(
                f"{name}: got nothing but NaN along axis {axis}, expected a number"
            ) from error

    return evaluate


def _arg(name: str) -> Callable[..., Any]:
    return general(
        name,
        _arg_forward(name),
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
