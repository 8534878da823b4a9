"""Convolution as a sum of products: the op that filters and convolutions are made of.

Its arrays are stacks, as those of `matmul`: the last axes are convolved, the axes before broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import broadcast_sizes, multilinear, unbroadcast
from gradtape.core.lowering import Reader, Terms
from gradtape.core.scalar import Scalar, where
from gradtape.ops.cast import conj_if_complex
from gradtape.ops.linalg.stacks import batch_stacks
from gradtape.ops.lowered import spread_index, within
from gradtape.ops.rearrange import flip

# ---- the forward --------------------------------------------------------------------------------


def _forward(xp: Any, x: Any, h: Any, ndim: int, full: bool) -> Any:
    dtype = np.result_type(x.dtype, h.dtype)
    shape = _infer(Aval(x.shape, x.dtype), Aval(h.shape, h.dtype), ndim, full).shape
    if 0 in (*x.shape, *h.shape, *shape):
        return xp.zeros(shape, dtype)
    if xp is np and ndim == x.ndim == h.ndim == 1 and dtype != np.float16:
        return np.convolve(x, h, "full" if full else "valid")
    if full:
        if math.prod(h.shape[-ndim:]) > math.prod(x.shape[-ndim:]):
            x, h = h, x
        widths = [(0, 0)] * (x.ndim - ndim) + [(m - 1, m - 1) for m in h.shape[-ndim:]]
        x = xp.pad(x, widths)
    return _valid(xp, x, h[(..., *(slice(None, None, -1),) * ndim)], ndim, dtype)


def _valid(xp: Any, x: Any, weights: Any, ndim: int, dtype: Any) -> Any:
    """out[k] = Σ weights[j]·x[k + j], wherever all of x[k + j] are there."""
    sizes = weights.shape[-ndim:]
    count = tuple(n - m + 1 for n, m in zip(x.shape[-ndim:], sizes, strict=True))
    if math.prod(count) < math.prod(sizes):
        # Few results of many terms: each is a sum over the weights.
        lead = np.broadcast_shapes(x.shape[:-ndim], weights.shape[:-ndim])
        out = xp.empty((*lead, *count), dtype)
        for place in np.ndindex(*count):
            part = x[(..., *map(slice, place, np.add(place, sizes)))]
            out[(..., *place)] = (part * weights).sum(axis=tuple(range(-ndim, 0)))
        return out
    if xp is np and weights.ndim == ndim and dtype.char in "fdFD":
        return _by_ndimage(x.astype(dtype, copy=False), weights.astype(dtype, copy=False), count)
    total: Any = 0
    for place in np.ndindex(*sizes):
        factor = weights[(..., *(slice(j, j + 1) for j in place))]
        total = total + factor * x[(..., *map(slice, place, np.add(place, count)))]
    return total.astype(dtype, copy=False)


def _by_ndimage(x: Any, weights: Any, count: Sequence[int]) -> Any:
    """The same with one set of weights for all, by SciPy's filter, which computes edges as well."""
    import scipy.ndimage

    weights = weights.conj()  # SciPy conjugates them again
    long = [axis for axis, m in enumerate(weights.shape, -weights.ndim) if m > 1]
    if len(long) == 1:
        out = scipy.ndimage.correlate1d(x, weights.ravel(), axis=long[0], mode="constant")
    else:
        stretched = weights.reshape((1,) * (x.ndim - weights.ndim) + weights.shape)
        out = scipy.ndimage.correlate(x, stretched, mode="constant")
    inner = (slice(m // 2, m // 2 + n) for m, n in zip(weights.shape, count, strict=True))
    return out[(..., *inner)].copy()


def _infer(x: Aval, h: Aval, ndim: int, full: bool) -> Aval:
    sizes = zip(x.shape[-ndim:], h.shape[-ndim:], strict=True)
    lead = broadcast_sizes(x.shape[:-ndim], h.shape[:-ndim])
    own = (n + m - 1 if full else n - m + 1 for n, m in sizes)
    return Aval((*lead, *own), np.result_type(x.dtype, h.dtype))


# ---- rules --------------------------------------------------------------------------------------


def turned(x: Any, ndim: int) -> Any:
    """The last axes reversed, and conjugated: as a correlation treats its second array."""
    return conj_if_complex(flip(x, tuple(range(-ndim, 0))))


def _by_first(ct: Any, _out: Any, _x: Any, h: Any, ndim: int, full: bool) -> Any:
    return unbroadcast(convolve_over(ct, turned(h, ndim), ndim=ndim, full=not full), _x.shape)


def _by_second(ct: Any, _out: Any, x: Any, _h: Any, ndim: int, full: bool) -> Any:
    first, second = (ct, turned(x, ndim)) if full else (turned(x, ndim), ct)
    return unbroadcast(convolve_over(first, second, ndim=ndim, full=False), _h.shape)


def _sizes(_x: Aval, h: Aval, ndim: int, full: bool) -> tuple[int, ...]:
    return h.shape[-ndim:]


def _term(
    i: Sequence[Scalar], k: Sequence[Scalar], x: Reader, h: Reader, ndim: int, full: bool
) -> Scalar:
    sizes, lead = h.aval.shape[-ndim:], i[:-ndim]
    places = [at - j + (0 if full else m - 1) for at, j, m in zip(i[-ndim:], k, sizes, strict=True)]
    stacks = [spread_index(lead, array.aval.shape[:-ndim]) for array in (x, h)]
    product = x(*stacks[0], *places) * h(*stacks[1], *k)
    return where(within(places, x.aval.shape[-ndim:]), product, 0)


# Over all k, or where the arrays overlap completely, out[k] = Σ x[k − j]·h[j]: bilinear. Transposes
# are correlations with the other factor, over where they overlap completely, or over all k.
convolve_over: Callable[..., Any] = multilinear(
    "convolve_nd",
    _forward,
    _by_first,
    _by_second,
    infer=_infer,
    batch=batch_stacks,
    reads=Terms(_sizes, _term),
)
