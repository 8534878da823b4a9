"""Cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_along_axis
from gradtape.core.define import general, linear, public
from gradtape.core.lowering import Scan
from gradtape.ops.arguments import as_array, normalize_axis, refuse
from gradtape.ops.cast import astype, conj_if_complex
from gradtape.ops.index import part_of
from gradtape.ops.join import concatenate
from gradtape.ops.pad import pad_constant
from gradtape.ops.shape import ravel, swapaxes
from gradtape.typing import Array, ArrayLike


def _infer(x: Aval, axis: int, **_params: Any) -> Aval:
    return Aval(x.shape, np.cumsum(np.empty(0, x.dtype)).dtype)


def _prepared(
    name: str, x: ArrayLike, axis: int | None, dtype: Any, unsupported: dict[str, Any]
) -> tuple[Array, int]:
    refuse(name, unsupported)
    x = as_array(x)
    if dtype is not None:
        x = astype(x, dtype, copy=False)
    if axis is None:
        return ravel(x), 0
    return x, normalize_axis(axis, len(x.shape), name)


# ---- cumsum -------------------------------------------------------------------------------------


def _cumsum_forward(xp: Any, x: Any, axis: int, reverse: bool) -> Any:
    if not reverse:
        return x.cumsum(axis)
    backwards = (slice(None),) * axis + (slice(None, None, -1),)
    return x[backwards].cumsum(axis)[backwards]


# d cumsum(x) = cumsum(dx); transpose: sum from the other end
_cumsum: Callable[..., Any] = linear(
    "cumsum",
    _cumsum_forward,
    lambda ct, _out, _x, axis, reverse: _cumsum(ct, axis=axis, reverse=not reverse),
    infer=_infer,
    batch=batch_along_axis,
    lower=Scan("add"),
)


@public(np.cumsum)
def cumsum(
    x: ArrayLike, /, axis: int | None = None, dtype: Any = None, **unsupported: Any
) -> Array:
    """Sums of the elements up to each place along an axis.

    Args:
        x: What to sum.
        axis: Along which axis; None sums along the flattened array.
        dtype: The dtype to sum in.
        **unsupported: Further options of NumPy, which raise.

    Raises:
        AxisError: There is no such axis.

    >>> gt.cumsum(np.array([1.0, 2.0, 3.0]))
    array([1., 3., 6.])
    """
    x, axis = _prepared("cumsum", x, axis, dtype, unsupported)
    out = _cumsum(x, axis=axis, reverse=False)
    # Small integers are summed in int64: modulo their size it is the same.
    return out if dtype is None else astype(out, dtype, copy=False)


# ---- cumprod ------------------------------------------------------------------------------------


def _steps(x: Any) -> list[tuple[int, Any]]:
    """The steps of a cumulative product along the last axis by doubling, without division.

    In a step of width w each element is multiplied by the one w places before it; after steps of
    1, 2, 4, … each has met all before it.
    """
    size, width = x.shape[-1], 1
    steps = []
    while width < size:
        steps.append((width, x))
        met = part_of(x, width, size) * part_of(x, 0, size - width)
        x = concatenate([part_of(x, 0, width), met], -1)
        width *= 2
    return steps


def _cumprod_vjp(ct: Any, _out: Any, x: Any, axis: int) -> Any:
    ct, size = swapaxes(conj_if_complex(ct), axis, -1), x.shape[axis]
    for width, c in reversed(_steps(swapaxes(x, axis, -1))):
        later = part_of(ct, width, size)
        ahead = concatenate([part_of(ct, 0, width), later * part_of(c, 0, size - width)], -1)
        none = ((0, 0),) * (len(ct.shape) - 1)
        back = later * part_of(c, width, size)
        ct = ahead + pad_constant(back, widths=(*none, (0, width)), fill=0)
    return conj_if_complex(swapaxes(ct, axis, -1))


def _cumprod_jvp(tangents: Any, _out: Any, x: Any, axis: int) -> Any:
    tangent, size = swapaxes(tangents[0], axis, -1), x.shape[axis]
    for width, c in _steps(swapaxes(x, axis, -1)):
        met = part_of(tangent, width, size) * part_of(c, 0, size - width)
        met = met + part_of(c, width, size) * part_of(tangent, 0, size - width)
        tangent = concatenate([part_of(tangent, 0, width), met], -1)
    return swapaxes(tangent, axis, -1)


# By the product rule through the steps above; zeros are elements like any other.
_cumprod = general(
    "cumprod",
    lambda xp, x, axis: x.cumprod(axis),
    infer=_infer,
    vjps=(_cumprod_vjp,),
    jvp=_cumprod_jvp,
    batch=batch_along_axis,
    lower=Scan("multiply"),
)


@public(np.cumprod)
def cumprod(
    x: ArrayLike, /, axis: int | None = None, dtype: Any = None, **unsupported: Any
) -> Array:
    """Products of the elements up to each place along an axis.

    Args:
        x: What to multiply.
        axis: Along which axis; None multiplies along the flattened array.
        dtype: The dtype to multiply in.
        **unsupported: Further options of NumPy, which raise.

    Raises:
        AxisError: There is no such axis.

    >>> gt.cumprod(np.array([1.0, 2.0, 3.0]))
    array([1., 2., 6.])
    """
    x, axis = _prepared("cumprod", x, axis, dtype, unsupported)
    out = _cumprod(x, axis=axis)
    return out if dtype is None else astype(out, dtype, copy=False)
