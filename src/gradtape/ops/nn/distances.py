"""Distances and angles between vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_elementwise
from gradtape.core.define import added, broadcast_sizes, general, unbroadcast
from gradtape.core.lowering import Composite
from gradtape.errors import ShapeError
from gradtape.ops import array_functions
from gradtape.ops.arguments import normalize_axis, real_only
from gradtape.ops.checks import check_least, common_shape
from gradtape.ops.exponential import sqrt
from gradtape.ops.matmul import matmul
from gradtape.ops.nn.reduction import floating
from gradtape.ops.norm import norm
from gradtape.ops.reduce import beside, reduced_shape, reduction, sum_forward, sum_over
from gradtape.ops.select import clip, divide_or_zero
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.typing import Array, ArrayLike

# ---- cosine of the angle ------------------------------------------------------------------------


def _cosine_forward(xp: Any, x: Any, y: Any, axis: int, eps: float) -> Any:
    over = (axis,)
    lengths = (xp.sqrt(sum_forward(xp, z * z, over, False)) for z in (x, y))
    first, second = (xp.maximum(length, eps) for length in lengths)
    return sum_forward(xp, x * y, over, False) / first / second


def _slope(out: Any, x: Any, y: Any, axis: int, eps: float) -> Any:
    """By the first vector: (v − cos·u)/|x| with vectors u and v of length 1.

    Lengths below eps are divided by as eps, but differentiated all the same, as in PyTorch.
    """
    length, other = (sqrt(sum_over(z * z, axis=(axis,), keepdims=True)) for z in (x, y))
    cosine = beside(out, x.shape, (axis,), keepdims=False)
    return (y / clip(other, eps) - cosine * divide_or_zero(x, length)) / clip(length, eps)


_cosine = reduction(
    "cosine_similarity",
    _cosine_forward,
    lambda out, x, y, axis, eps: _slope(out, x, y, axis, eps),
    lambda out, x, y, axis, eps: _slope(out, y, x, axis, eps),
    infer=lambda x, y, axis, eps: Aval(
        reduced_shape(x.shape, (axis,), False), np.result_type(x.dtype, y.dtype)
    ),
    lower=array_functions,
)


def cosine_similarity(x1: ArrayLike, x2: ArrayLike, /, dim: int = 1, eps: float = 1e-8) -> Array:
    """Cosines of the angles between vectors; 0 for vectors of length 0.

    Args:
        x1: The vectors of one side.
        x2: Those of the other side.
        dim: The axis along which the elements of a vector lie.
        eps: The least length: shorter ones count as this.

    Raises:
        ShapeError: The shapes do not broadcast.
        AxisError: There is no such axis.

    >>> gt.nn.cosine_similarity(np.array([[1.0, 1.0]]), np.array([[3.0, 0.0]]))
    array([0.70710678])
    """
    check_least("cosine_similarity", 0, eps=eps)
    x, y = (real_only("cosine_similarity", z) for z in floating(x1, x2))
    shape = common_shape("cosine_similarity", x, y)
    axis = normalize_axis(dim, len(shape), "cosine_similarity")
    x, y = (z if z.shape == shape else broadcast_to(z, shape) for z in (x, y))
    return _cosine(x, y, axis=axis, eps=float(eps))


# ---- distances of pairs -------------------------------------------------------------------------


def pairwise_distance(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    p: float = 2.0,
    eps: float = 1e-6,
    keepdim: bool = False,
) -> Array:
    """Distances between vectors, pair by pair, along the last axis.

    Args:
        x1: The vectors of one side.
        x2: Those of the other side.
        p: Which norm of the difference: a number or inf.
        eps: Added to every difference, so that equal vectors have a distance with a slope.
        keepdim: Whether the last axis stays, with size 1.

    Raises:
        ShapeError: The shapes do not broadcast.

    >>> gt.nn.pairwise_distance(np.array([[3.0, 4.0]]), np.zeros((1, 2)), eps=0.0)
    array([5.])
    """
    x, y = floating(x1, x2)
    common_shape("pairwise_distance", x, y)
    return norm(x - y + eps, p, -1, keepdims=keepdim)


# ---- distances of all pairs ---------------------------------------------------------------------

# The number of differences held at once.
_BLOCK = 1 << 18
# For at least so many pairs, a matrix product pays off, corrections included.
_MANY = 1 << 10
# Squares of distances below this share of what they are a difference of are computed again: there
# the product has lost digits.
_LOST = 0.02


def _squares_forward(xp: Any, x: Any, y: Any) -> Any:
    lead = broadcast_sizes(x.shape[:-2], y.shape[:-2])
    x, y = (xp.broadcast_to(z, (*lead, *z.shape[-2:])) for z in (x, y))
    out = xp.empty((*lead, x.shape[-2], y.shape[-2]), np.result_type(x, y))
    for sample in np.ndindex(lead):
        _squares(xp, x[sample], y[sample], out[sample])
    return out


def _cdist_forward(xp: Any, x: Any, y: Any) -> Any:
    out = _squares_forward(xp, x, y)
    return xp.sqrt(out, out=out)


def _squares(xp: Any, x: Any, y: Any, out: Any) -> None:
    """Squared distances of all pairs, |x|² + |y|² − 2·x·y where that is exact enough."""
    others, size = y.shape
    if out.size < _MANY:
        apart = x[:, None] - y
        out[...] = sum_forward(xp, apart * apart, (2,), False)
        return
    # Around a common center, so that vectors are no longer than necessary.
    middle = y.mean(0)
    with np.errstate(invalid="ignore"):
        around = x - middle, y - middle
        lengths = [xp.einsum("ij,ij->i", z, z) for z in around]
        xp.matmul(around[0] * -2, around[1].T, out=out)
        out += lengths[0][:, None]
        out += lengths[1]
        # Not `<`: NaN, which a vector at infinity makes, is computed again, too.
        near = xp.flatnonzero(~(out >= _LOST * (lengths[0][:, None] + lengths[1])))
    step = max(1, _BLOCK // max(1, size))
    for start in range(0, near.size, step):
        first, second = divmod(near[start : start + step], others)
        apart = x[first] - y[second]
        out[first, second] = xp.einsum("ij,ij->i", apart, apart)


def _differences(x: Any, y: Any) -> Any:
    """Differences of all pairs of vectors, of shape (…, n, m, size)."""
    wide = reshape(x, (*x.shape[:-1], 1, x.shape[-1]))
    return wide - reshape(y, (*y.shape[:-2], 1, *y.shape[-2:]))


def _squares_composition(x: Any, y: Any) -> Any:
    apart = _differences(x, y)
    return sum_over(apart * apart, axis=(len(apart.shape) - 1,), keepdims=False)


def _cdist_composition(x: Any, y: Any) -> Any:
    return sqrt(_squares_composition(x, y))


def _rowsum(x: Any) -> Any:
    return sum_over(x, axis=(len(x.shape) - 1,), keepdims=True)


def _toward(ct: Any, out: Any, x: Any, y: Any) -> Any:
    """Σ over the others of ct·(x − y)/d, for each x; 0 where points coincide."""
    return _weighted_differences(divide_or_zero(ct, out), x, y)


def _pulled_squares(ct: Any, x: Any, y: Any) -> Any:
    return 2.0 * _weighted_differences(ct, x, y)


def _weighted_differences(weights: Any, x: Any, y: Any) -> Any:
    """Σ over the others of weight·(x − y), for each x."""
    return unbroadcast(x * _rowsum(weights) - matmul(weights, y), x.shape)


def _moved_products(tangents: Any, x: Any, y: Any) -> Any:
    """(x − y)·(dx − dy) of all pairs, as products of matrices."""
    dx, dy = tangents
    by_x = None if dx is None else _rowsum(x * dx) - matmul(dx, y.mT)
    by_y = None if dy is None else _rowsum(y * dy).mT - matmul(x, dy.mT)
    return added(by_x, by_y)


def _cdist_jvp(tangents: Any, out: Any, x: Any, y: Any) -> Any:
    return divide_or_zero(_moved_products(tangents, x, y), out)


def _infer_cdist(x: Aval, y: Aval) -> Aval:
    shape = (*broadcast_sizes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-2])
    return Aval(shape, np.result_type(x.dtype, y.dtype))


# d|x − y| = (x − y)·(dx − dy)/|x − y|, and 0 where they coincide
_cdist = general(
    "cdist",
    _cdist_forward,
    infer=_infer_cdist,
    vjps=(
        lambda ct, out, x, y: _toward(ct, out, x, y),
        lambda ct, out, x, y: _toward(ct.mT, out.mT, y, x),
    ),
    jvp=_cdist_jvp,
    batch=batch_elementwise,
    lower=Composite(_cdist_composition),
)


# d|x − y|² = 2·(x − y)·(dx − dy)
_squared_cdist = general(
    "squared_cdist",
    _squares_forward,
    infer=_infer_cdist,
    vjps=(
        lambda ct, _out, x, y: _pulled_squares(ct, x, y),
        lambda ct, _out, x, y: _pulled_squares(ct.mT, y, x),
    ),
    jvp=lambda tangents, _out, x, y: 2.0 * _moved_products(tangents, x, y),
    batch=batch_elementwise,
    lower=Composite(_squares_composition),
)


def squared_distances(x: Array, y: Array) -> Array:
    """Squared distances between all vectors of one matrix and all of another."""
    return _squared_cdist(x, y)


def cdist(x1: ArrayLike, x2: ArrayLike, /, p: float = 2.0) -> Array:
    """Distances between all vectors of one side and all of the other.

    Args:
        x1: Of shape (…, n, size).
        x2: Of shape (…, m, size).
        p: Which norm of the difference: a number from 0 or inf.

    Returns:
        An array of shape (…, n, m); the gradient is 0 where points coincide.

    Raises:
        ShapeError: The vectors have different sizes, or there are no matrices of them.
        ArgumentError: `p` is negative.

    >>> gt.nn.cdist(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0]]))
    array([[0.],
           [5.]])
    """
    x, y = floating(x1, x2)
    if len(x.shape) < 2 or len(y.shape) < 2 or x.shape[-1] != y.shape[-1]:
        raise ShapeError(
            f"cdist: got shapes {x.shape} and {y.shape}, expected (…, n, size) and (…, m, size)"
        )
    check_least("cdist", 0, p=p)
    common_shape("cdist", x, y, last=2)
    if p == 2 and x.dtype.kind == y.dtype.kind == "f":
        return _cdist(x, y)
    return norm(_differences(x, y), p, -1)
