"""Balancing a matrix: rows and columns reordered, and scaled to similar sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.ops.gather import take_along_axis
from gradtape.ops.linalg.common import square, without_effect
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import scipy_linalg
from gradtape.ops.locate import one_hot
from gradtape.ops.norm import inexact
from gradtape.typing import Array, ArrayLike


def _scales_forward(xp: Any, x: Any, permute: bool, scale: bool) -> tuple[Any, Any]:
    *stack, size, _ = x.shape
    scales = np.ones((*stack, size), np.empty(0, x.dtype).real.dtype)
    order = np.broadcast_to(np.arange(size), scales.shape).copy()
    for index in np.ndindex(*stack) if size else ():
        found = scipy_linalg().matrix_balance(
            np.asarray(x[index]), permute=permute, scale=scale, separate=True
        )
        scales[index], order[index] = found[1]
    return xp.asarray(scales), xp.asarray(order)


def _infer_scales(x: Aval, permute: bool, scale: bool) -> tuple[Aval, Aval]:
    numbers = np.empty(0, x.dtype).real.dtype
    return Aval(x.shape[:-1], numbers), Aval(x.shape[:-1], np.dtype(np.int64))


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
    **others: Any,
) -> tuple[Array, Any]:
    """A matrix `inv(t) @ A @ t` whose rows and columns have similar sizes, and `t`.

    The scales are powers of 2 and, as the order, piecewise constant: they have no derivative, and
    the balanced matrix has that of the product.

    Args:
        A: The matrix, or a stack of them.
        permute: Whether rows and columns may be reordered.
        scale: Whether they may be scaled.
        separate: Whether to return scales and order instead of `t`.
        **others: Options of SciPy for speed, which have no effect.

    Returns:
        The balanced matrix; and `t`, or a tuple of scales and order.

    Raises:
        LinAlgError: A matrix is not square.
        UnsupportedError: An option that gradtape does not have.

    >>> balanced, t = gt.linalg.matrix_balance(np.array([[1.0, 1024.0], [1.0, 1.0]]))
    >>> balanced
    array([[ 1., 32.],
           [32.,  1.]])
    """
    without_effect("matrix_balance", others)
    a = square("matrix_balance", inexact(A))
    scales, order = _scales(a, permute=bool(permute), scale=bool(scale))
    moved = take_along_axis(take_along_axis(a, order[..., :, None], -2), order[..., None, :], -1)
    balanced = moved * (scales[..., None, :] / scales[..., :, None])
    if separate:
        return balanced, (scales, order)
    # Row i of t has the scale of the place that i moved to.
    return balanced, (one_hot(order, a.shape[-1], dtype=scales.dtype) * scales[..., None]).mT
