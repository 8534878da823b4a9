"""Products. Their rules divide only where it is safe, and are right for zeros as well."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.define import general
from gradtape.core.lowering import Reduction
from gradtape.core.op import op_of
from gradtape.ops.arithmetic import divide
from gradtape.ops.cast import astype, conj_if_complex
from gradtape.ops.cumulative import cumulative_product
from gradtape.ops.index import part_of
from gradtape.ops.join import concatenate, stack
from gradtape.ops.recurrence import previous
from gradtape.ops.reduce import (
    Axes,
    accumulated,
    infer_reduction,
    masked,
    prepared,
    reducer,
    reduction,
)
from gradtape.ops.shape import moveaxis, reshape
from gradtape.typing import Array, ArrayLike, Axis


def _lanes(x: Any, axis: Axes) -> Any:
    """The axes of the product as one last axis."""
    if axis == (len(x.shape) - 1,):
        return x
    kept = [n for a, n in enumerate(x.shape) if a not in axis]
    moved = moveaxis(x, axis, tuple(range(-len(axis), 0)))
    return reshape(moved, (*kept, math.prod(x.shape[a] for a in axis)))


def _unlanes(lanes: Any, shape: tuple[int, ...], axis: Axes) -> Any:
    """The inverse of `_lanes` for an array of `shape`."""
    if axis == (len(shape) - 1,):
        return lanes
    unfolded = reshape(lanes, (*lanes.shape[:-1], *(shape[a] for a in axis)))
    return moveaxis(unfolded, tuple(range(-len(axis), 0)), axis)


def _others_forward(xp: Any, x: Any, axis: Axes) -> Any:
    lanes = _lanes(x, axis)
    with np.errstate(all="ignore"):
        product = _prod(lanes, axis=(lanes.ndim - 1,), keepdims=True)
        others = divide(product, lanes)
    if _divides(xp, product, lanes):
        return _unlanes(others, x.shape, axis)
    last = lanes.ndim - 1
    before, after = (
        previous(cumulative_product(lanes, axis=last, reverse=reverse), last, reverse, 1)
        for reverse in (False, True)
    )
    return _unlanes(before * after, x.shape, axis)


def _divides(xp: Any, product: Any, lanes: Any) -> bool:
    """Whether it is safe to divide by all elements: no product has lost digits, or is 0."""
    if lanes.dtype.kind not in "fc" or not lanes.size:
        return False
    size = xp.abs(product)
    info = xp.finfo(lanes.dtype)
    normal = (size > info.tiny / info.eps) & (size < info.max * info.eps)
    return bool(normal.all())


def _pair_up(even: Any, odd: Any, rest: Any) -> Any:
    """`even` and `odd` in turns along the last axis, then `rest`."""
    both = stack([even, odd], -1)
    return concatenate([reshape(both, (*even.shape[:-1], 2 * even.shape[-1])), rest], -1)


def _second(change: Any, x: Any) -> Any:
    """Along the last axis, element i: Σₖ changeₖ · Π xⱼ over the j that are neither i nor k.

    With p = even·odd the products of pairs, the others of an even element are the others of its
    pair times the odd one. So the change of the others is that of half as many elements.
    """
    size = x.shape[-1]
    if size < 2:
        return np.zeros(x.shape, x.dtype)
    paired = size // 2 * 2
    even, odd, rest = part_of(x, 0, paired, 2), part_of(x, 1, paired, 2), part_of(x, paired)
    d_even, d_odd = part_of(change, 0, paired, 2), part_of(change, 1, paired, 2)
    halved = concatenate([even * odd, rest], -1)
    d_halved = concatenate([d_even * odd + even * d_odd, part_of(change, paired)], -1)
    d_others = _second(d_halved, halved)
    others = part_of(_others(halved, axis=(len(x.shape) - 1,)), 0, size // 2)
    d_pairs, d_rest = part_of(d_others, 0, size // 2), part_of(d_others, size // 2)
    return _pair_up(d_pairs * odd + others * d_odd, d_pairs * even + others * d_even, d_rest)


def _others_rule(change: Any, x: Any, axis: Axes) -> Any:
    return _unlanes(_second(_lanes(change, axis), _lanes(x, axis)), x.shape, axis)


# For each element the product of the others: the gradient of the product. The derivative is a
# symmetric matrix, so that it serves both ways.
_others = general(
    "product_of_others",
    _others_forward,
    vjps=(lambda ct, _out, x, axis: conj_if_complex(_others_rule(conj_if_complex(ct), x, axis)),),
    jvp=lambda tangents, _out, x, axis: _others_rule(tangents[0], x, axis),
)

_prod_forward = reducer(np.multiply, "prod")

# d prod(x) = Σ dx · (product of the others)
_prod = reduction(
    "prod",
    _prod_forward,
    lambda _out, x, axis, keepdims: _others(x, axis=axis),
    infer=infer_reduction(_prod_forward),
    lower=Reduction("multiply", accumulated),
)
prod_op = op_of(_prod)


def prod(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Array:
    """Product of the elements, over all or the given axes; differentiable at zeros as well.

    Args:
        x: What to multiply.
        axis: One or several axes; None takes all of them.
        dtype: The dtype to multiply in.
        keepdims: Whether the reduced axes stay, with size 1.
        initial: What the result starts from.
        where: Which elements take part, as truth values that broadcast to `x`.

    Raises:
        AxisError: There is no such axis.

    >>> gt.prod(np.array([2.0, 3.0, 4.0]))
    np.float64(24.0)
    """
    if initial is not None or (where is not True and where is not None):
        return masked("prod", x, axis, dtype, keepdims, initial, where)
    x, axes = prepared("prod", x, axis, dtype)
    out = _prod(x, axis=axes, keepdims=bool(keepdims))
    return out if dtype is None else astype(out, dtype, copy=False)
