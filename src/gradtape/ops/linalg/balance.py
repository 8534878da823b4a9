"""Balancing a matrix: rows and columns reordered, and scaled to similar sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.ops.linalg.common import real_dtype, reordered, square
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import scipy_linalg
from gradtape.ops.linalg.stacks import over_stack
from gradtape.ops.locate import one_hot
from gradtape.ops.norm import inexact
from gradtape.typing import Array, ArrayLike


def _scales_forward(_xp: Any, x: Any, permute: bool, scale: bool) -> Any:
    dtype = real_dtype(x.dtype)

    def one(x: Any) -> tuple[Any, Any]:
        if not x.size:
            return np.ones(0, dtype), np.arange(0)
        balance = scipy_linalg().matrix_balance
        scales, order = balance(x, permute=permute, scale=scale, separate=True)[1]
        return scales.astype(dtype), order.astype(np.int64)

    return over_stack(one, x)


def _infer_scales(x: Aval, permute: bool, scale: bool) -> tuple[Aval, Aval]:
    return Aval(x.shape[:-1], real_dtype(x.dtype)), Aval(x.shape[:-1], np.dtype(np.int64))


# Powers of 2, and an order: both piecewise constant
_scales = general(
    "balanced_scales",
    _scales_forward,
    infer=_infer_scales,
    outputs=2,
)


@in_float32
def matrix_balance(
    A: ArrayLike,
    permute: bool = True,
    scale: bool = True,
    separate: bool = False,
) -> tuple[Array, Any]:
    """A matrix `inv(t) @ A @ t` whose rows and columns have similar sizes, and `t`.

    The scales are powers of 2 and, as the order, piecewise constant: they have no derivative, and
    the balanced matrix has that of the product.

    Args:
        A: The matrix, or a stack of them.
        permute: Whether rows and columns may be reordered.
        scale: Whether they may be scaled.
        separate: Whether to return scales and order instead of `t`.

    Returns:
        The balanced matrix; and `t`, or a tuple of scales and order.

    Raises:
        LinAlgError: A matrix is not square.

    >>> balanced, t = gt.linalg.matrix_balance(np.array([[1.0, 1024.0], [1.0, 1.0]]))
    >>> balanced
    array([[ 1., 32.],
           [32.,  1.]])
    """
    a = square("matrix_balance", inexact(A))
    scales, order = _scales(a, permute=bool(permute), scale=bool(scale))
    balanced = reordered(a, order) * (scales[..., None, :] / scales[..., :, None])
    if separate:
        return balanced, (scales, order)
    # Row i of t has the scale of the place that i moved to.
    return balanced, (one_hot(order, a.shape[-1], dtype=scales.dtype) * scales[..., None]).mT
