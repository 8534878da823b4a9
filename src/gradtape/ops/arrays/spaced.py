"""Numbers in equal ratios: logspace and geomspace, differentiable in their ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.arithmetic import power
from gradtape.ops.arrays.known import values_if_known
from gradtape.ops.cast import astype
from gradtape.ops.counted import linspace
from gradtape.ops.creation import asarray
from gradtape.ops.exponential import exp, log
from gradtape.ops.index import getitem
from gradtape.ops.join import concatenate
from gradtape.ops.shape import broadcast_to, expand_dims, moveaxis, reshape
from gradtape.typing import ArrayLike


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Make powers whose exponents are equally far apart; differentiable in ends and base.

    Args:
        start: The first exponent.
        stop: The last one.
        num: How many.
        endpoint: Whether the last one is among them.
        base: The base of the powers.
        dtype: Their dtype.
        axis: Where the new axis is in the result.

    Raises:
        ArgumentError: `num` is negative.

    >>> gt.logspace(0.0, 2.0, 3)
    tensor([  1.,  10., 100.])
    """
    if not isinstance(base, int | float) and len(as_array(base).shape):
        given = [as_array(one) for one in (start, stop, base)]
        ndim = max(len(one.shape) for one in given)
        start, stop, base = (reshape(x, (1,) * (ndim - len(x.shape)) + x.shape) for x in given)
        base = expand_dims(base, axis)
    exponents = linspace(start, stop, num, endpoint=endpoint, axis=axis)
    out = power(base, exponents)
    return out if dtype is None else astype(out, dtype, copy=False)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Make numbers in equal ratios; differentiable in both ends.

    Args:
        start: The first one; not 0.
        stop: The last one; not 0, and of the same sign.
        num: How many.
        endpoint: Whether the last one is among them.
        dtype: Their dtype.
        axis: Where the new axis is in the result.

    Raises:
        ArgumentError: `num` is negative, or an end is 0; compiled code gives NaN there.

    >>> gt.geomspace(1.0, 8.0, 4)
    tensor([1., 2., 4., 8.])
    """
    ends = [asarray(one) for one in (start, stop)]
    if any((known := values_if_known(end)) is not None and not np.all(known) for end in ends):
        raise ArgumentError("geomspace: got 0 as an end, expected numbers that have a ratio")
    # As in NumPy, in double precision at least.
    first, last = (astype(end, np.result_type(end.dtype, float), copy=False) for end in ends)
    # xₖ = first·(last/first)^(k/n): both ends are exact.
    steps = linspace(0.0, 1.0, num, endpoint=endpoint)
    ratio = expand_dims(log(last / first), -1)
    out = expand_dims(first, -1) * exp(ratio * steps)
    if endpoint and num > 1:
        end = broadcast_to(expand_dims(last, -1), (*out.shape[:-1], 1))
        out = concatenate([getitem(out, (..., slice(None, -1))), end], -1)
    out = moveaxis(out, -1, normalize_axis(axis, len(out.shape), "geomspace"))
    return out if dtype is None else astype(out, dtype, copy=False)
