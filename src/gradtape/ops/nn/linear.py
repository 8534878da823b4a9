"""Linear layers: products with weights, and a bias."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import in_front, move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import added, broadcast_tangent, general
from gradtape.core.lowering import Composite
from gradtape.core.op import Op
from gradtape.errors import ShapeError
from gradtape.ops.arguments import Batch, as_array
from gradtape.ops.cast import conj_if_complex
from gradtape.ops.einsum import einsum
from gradtape.ops.matmul import matmul
from gradtape.ops.nn.parameters import parameters
from gradtape.ops.reduce import sum_over
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike

# ---- linear -------------------------------------------------------------------------------------


def _flat(x: Any) -> Any:
    """Vectors along the last axis as the rows of a matrix."""
    return x if len(x.shape) == 2 else x.reshape((math.prod(x.shape[:-1]), x.shape[-1]))


def _products(x: Any, weight: Any, bias: Any) -> Any:
    out = matmul(_flat(x), weight.mT) + bias
    return out if len(x.shape) == 2 else out.reshape((*x.shape[:-1], weight.shape[0]))


def _by_weight(ct: Any, _out: Any, x: Any, _weight: Any, _bias: Any) -> Any:
    x = conj_if_complex(x)
    if len(x.shape) == 1:
        return reshape(ct, (*ct.shape, 1)) * x  # faster than a product of matrices
    return matmul(_flat(ct).mT, _flat(x))


def _by_bias(ct: Any, _out: Any, _x: Any, _weight: Any, _bias: Any) -> Any:
    return sum_over(ct, axis=tuple(range(len(ct.shape) - 1)), keepdims=False)


def _jvp(tangents: Any, _out: Any, x: Any, weight: Any, _bias: Any) -> Any:
    dx, dw, db = tangents
    by_x = None if dx is None else matmul(dx, weight.mT)
    total = added(by_x, None if dw is None else matmul(x, dw.mT), db)
    return broadcast_tangent(total, _out)


def _batch(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    x, weight, bias = args
    if axes[1] is None and axes[2] is None:
        return call(op, (move_batch_axis(x, axes[0]), weight, bias), params), 0
    x, weight, bias = in_front(args, axes)
    rows = x
    if len(x.shape) != 3:
        rows = reshape(x, (x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1]))
    out = matmul(rows, weight.mT) + reshape(bias, (bias.shape[0], 1, bias.shape[1]))
    return out if rows is x else reshape(out, (*x.shape[:-1], out.shape[-1])), 0


# x·Wᵀ + b: d = dx·Wᵀ + x·dWᵀ + db
_linear = general(
    "linear",
    Composite(_products),
    infer=lambda x, weight, bias: Aval(
        (*x.shape[:-1], weight.shape[0]), np.result_type(x.dtype, weight.dtype, bias.dtype)
    ),
    vjps=(
        lambda ct, _out, _x, weight, _bias: matmul(ct, conj_if_complex(weight)),
        _by_weight,
        _by_bias,
    ),
    jvp=_jvp,
    batch=_batch,
    kind="contraction",
)
linear_op: Op = _linear.op  # type: ignore[attr-defined]


def linear(x: ArrayLike, /, weight: ArrayLike, bias: ArrayLike | None = None) -> Array:
    """Products of vectors with the rows of a matrix, and a bias.

    Args:
        x: Vectors along the last axis, of shape (…, inputs).
        weight: Of shape (outputs, inputs), or (inputs,) for a single output without axis.
        bias: What to add, of shape (outputs,).

    Raises:
        ShapeError: The shapes do not fit.

    >>> gt.nn.linear(np.array([1.0, 2.0]), np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.5, 0.0]))
    array([1.5, 3. ])
    """
    x, weight = as_array(x), as_array(weight)
    outputs = weight.shape[:-1]
    if not x.shape or len(weight.shape) not in (1, 2) or weight.shape[-1] != x.shape[-1]:
        fits = f"; these weights take vectors of {weight.shape[-1]}" if weight.shape else ""
        raise ShapeError(
            f"linear: got shapes {x.shape} and {weight.shape}, expected (…, inputs) and (outputs, "
            f"inputs){fits}"
        )
    if bias is None:
        return matmul(x, weight if len(weight.shape) == 1 else weight.mT)
    bias = as_array(bias)
    if bias.shape != outputs:
        raise ShapeError(f"linear: got bias of shape {bias.shape}, expected {outputs}")
    return matmul(x, weight) + bias if not outputs else _linear(x, weight, bias)


# ---- bilinear -----------------------------------------------------------------------------------


def bilinear(
    x1: ArrayLike, x2: ArrayLike, /, weight: ArrayLike, bias: ArrayLike | None = None
) -> Array:
    """Products x1ᵀ·W·x2 of pairs of vectors with several matrices, and a bias.

    Args:
        x1: Vectors along the last axis, of shape (…, inputs of the first side).
        x2: The same of the second side, with equal leading axes.
        weight: Of shape (outputs, inputs of the first side, inputs of the second side).
        bias: What to add, of shape (outputs,).

    Raises:
        ShapeError: The shapes do not fit.

    >>> gt.nn.bilinear(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]), np.ones((1, 2, 2)))
    array([[21.]])
    """
    x, y, weight = as_array(x1), as_array(x2), as_array(weight)
    fits = (
        len(weight.shape) == 3
        and x.shape[:-1] == y.shape[:-1]
        and (*x.shape[-1:], *y.shape[-1:]) == weight.shape[1:]
    )
    if not fits:
        raise ShapeError(
            f"bilinear: got shapes {x.shape}, {y.shape} and {weight.shape}, expected (…, n), (…, "
            "m) and (outputs, n, m)"
        )
    (bias,) = parameters("bilinear", weight.shape[:1], bias=bias)
    out = einsum("bi,kij,bj->bk", _flat(x), weight, _flat(y))
    out = reshape(out, (*x.shape[:-1], weight.shape[0]))
    return out if bias is None else out + bias
