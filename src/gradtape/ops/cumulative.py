"""Cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general, linear
from gradtape.core.lowering import Scan
from gradtape.core.op import Facts
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.cast import astype, conj_if_complex
from gradtape.ops.comparison import isfinite
from gradtape.ops.recurrence import backwards, previous, recurrence
from gradtape.ops.select import where
from gradtape.ops.shape import ravel
from gradtape.typing import Array, ArrayLike


def _infer(x: Aval, axis: int, **_params: Any) -> Aval:
    return Aval(x.shape, np.cumsum(np.empty(0, x.dtype)).dtype)


def _in_order(scan: Callable[..., Any]) -> Callable[..., Any]:
    """The forward of a scan, which may begin at the other end."""

    def forward(xp: Any, x: Any, axis: int, reverse: bool) -> Any:
        if not reverse:
            return scan(x, axis)
        backwards = (slice(None),) * axis + (slice(None, None, -1),)
        return scan(x[backwards], axis)[backwards]

    return forward


# d cumsum(x) = cumsum(dx); transpose: sum from the other end
_cumsum: Callable[..., Any] = linear(
    "cumsum",
    _in_order(lambda x, axis: x.cumsum(axis)),
    lambda ct, _out, _x, axis, reverse: _cumsum(ct, axis=axis, reverse=not reverse),
    infer=_infer,
    facts=Facts(layout="kept"),
    lower=Scan("add"),
)


def _cumprod_vjp(ct: Any, out: Any, x: Any, axis: int, reverse: bool) -> Any:
    # out[i − 1]·Σⱼ ct[j]·Π x[k] over i < k ≤ j: without a division, so that zeros are elements like
    # any other. Where the products of what comes later overflow, Σⱼ ct[j]·out[j]/x[i] over j ≥ i.
    before = conj_if_complex(previous(out, axis, reverse, 1))
    direct = backwards(ct, x, axis, reverse) * before
    divided = _cumsum(ct * conj_if_complex(out), axis=axis, reverse=not reverse)
    divided = divided / conj_if_complex(where(x == 0, 1, x))
    return where(isfinite(direct), direct, divided)


# out[k] = out[k − 1]·x[k]; d out[k] = out[k − 1]·dx[k] + x[k]·d out[k − 1]
cumulative_product: Callable[..., Any] = general(
    "cumprod",
    _in_order(lambda x, axis: x.cumprod(axis)),
    infer=_infer,
    vjps=(_cumprod_vjp,),
    jvp=lambda tangents, out, x, axis, reverse: recurrence(
        tangents[0] * previous(out, axis, reverse, 1), x, axis=axis, reverse=reverse
    ),
    facts=Facts(layout="kept"),
    lower=Scan("multiply"),
)


def cumsum(x: ArrayLike, /, axis: int | None = None, dtype: Any = None) -> Array:
    """Sums of the elements up to each place along an axis.

    Args:
        x: What to sum.
        axis: Along which axis; None sums along the flattened array.
        dtype: The dtype to sum in.

    Raises:
        AxisError: There is no such axis.

    >>> gt.cumsum(np.array([1.0, 2.0, 3.0]))
    array([1., 3., 6.])
    """
    return _cumulated(_cumsum, "cumsum", x, axis, dtype)


def cumprod(x: ArrayLike, /, axis: int | None = None, dtype: Any = None) -> Array:
    """Products of the elements up to each place along an axis.

    Args:
        x: What to multiply.
        axis: Along which axis; None multiplies along the flattened array.
        dtype: The dtype to multiply in.

    Raises:
        AxisError: There is no such axis.

    >>> gt.cumprod(np.array([1.0, 2.0, 3.0]))
    array([1., 2., 6.])
    """
    return _cumulated(cumulative_product, "cumprod", x, axis, dtype)


def _cumulated(op: Any, name: str, x: ArrayLike, axis: int | None, dtype: Any) -> Array:
    x = as_array(x)
    if dtype is not None:
        x = astype(x, dtype, copy=False)
    if axis is None:
        x, axis = ravel(x), 0
    out = op(x, axis=normalize_axis(axis, len(x.shape), name), reverse=False)
    # Small integers are computed in int64: modulo their size it is the same.
    return out if dtype is None else astype(out, dtype, copy=False)
