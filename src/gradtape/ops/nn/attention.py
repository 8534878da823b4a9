"""Scaled dot-product attention: one op, with a rule of its own, and one for its cotangents."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import in_front
from gradtape.core.call import call
from gradtape.core.define import composite, general, unbroadcast
from gradtape.core.lowering import Composite, Elements
from gradtape.core.op import Op
from gradtape.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from gradtape.ops.arguments import as_array, real_only
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_between, check_broadcasts, common_shape
from gradtape.ops.generator import Generator, source_of
from gradtape.ops.matmul import matmul
from gradtape.ops.nn.attention_blocks import BLOCK, attention_forward, pull_forward
from gradtape.ops.nn.dropout import draw_kept
from gradtape.ops.rearrange import repeat
from gradtape.ops.reduce import floats, sum_over
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.ops.softmax import softmax_over
from gradtape.typing import Array, ArrayLike

# ---- with all weights at once -------------------------------------------------------------------


# Which scores are of a query with a key up to its own place; the sizes alone decide it
_up_to_own = general(
    "up_to_own",
    lambda xp, scores: xp.broadcast_to(xp.tri(*scores.shape[-2:], dtype=np.bool_), scores.shape),
    infer=lambda scores: Aval(scores.shape, np.dtype(np.bool_)),
    lower=Elements(lambda i, _scores: i[-1] <= i[-2]),
)


class _Weights:
    """All weights P = softmax(S) with S = scale·q·kᵀ + mask, as ops.

    For compiled functions of moderate sizes, and for derivatives of higher order.
    """

    def __init__(self, q: Any, k: Any, others: Any, params: dict[str, Any]) -> None:
        self.mask = others[0] if params["masked"] else None
        scores = matmul(q * params["scale"], k.mT)
        if params["causal"]:
            scores = where(_up_to_own(scores), scores, -math.inf)
        if self.mask is not None and self.mask.dtype == np.bool_:
            scores = where(self.mask, scores, -math.inf)
        elif self.mask is not None:
            scores = scores + self.mask
        # Where no key is open to a query, all of its weights are 0.
        self.p = softmax_over(scores, axis=(len(scores.shape) - 1,), limits=True)
        kept = others[-1] if params["keep"] else None
        self._factor = None if kept is None else astype(kept, self.p.dtype) * params["keep"]

    def dropped(self, x: Any) -> Any:
        """Apply dropout to weights, or to changes of them."""
        return x if self._factor is None else x * self._factor


def _attended(q: Any, k: Any, v: Any, *others: Any, **params: Any) -> Any:
    """The values that queries get: P·v."""
    weights = _Weights(q, k, others, params)
    return matmul(weights.dropped(weights.p), v)


# With A = ct·vᵀ, the cotangent of the scores is P∘(A − Σ P∘A)
def _pulled(ct: Any, q: Any, k: Any, v: Any, *others: Any, **params: Any) -> Any:
    """The cotangents of q, k, v, and of a mask that is added."""
    weights = _Weights(q, k, others, params)
    p, mask, scale = weights.p, weights.mask, params["scale"]
    a = weights.dropped(matmul(ct, v.mT))
    by_scores = p * (a - sum_over(p * a, axis=(len(p.shape) - 1,), keepdims=True))
    given = (
        matmul(by_scores, k) * scale,
        matmul(by_scores.mT, q) * scale,
        matmul(weights.dropped(p).mT, ct),
    )
    if mask is None or mask.dtype == np.bool_:
        return given
    return (*given, unbroadcast(by_scores, mask.shape))


def _native(function: Callable[..., Any], place: int) -> Composite:
    """The native form of a function of all weights, with queries at a place among its arguments."""

    def moderate(*arrays: Any, **params: Any) -> Any:
        q, k = arrays[place : place + 2]
        if math.prod(q.shape[:-1]) * k.shape[-2] > BLOCK:
            raise UnsupportedError("attention: no native code for so many weights at once")
        return function(*arrays, **params)

    return Composite(moderate)


# ---- the ops ------------------------------------------------------------------------------------


def _infer(q: Aval, k: Aval, v: Aval, *_others: Aval, **_params: Any) -> Aval:
    return Aval((*q.shape[:-1], v.shape[-1]), np.result_type(q.dtype, k.dtype, v.dtype))


def _infer_pull(ct: Aval, q: Aval, k: Aval, v: Aval, *others: Aval, **params: Any) -> Any:
    if params["masked"] and others[0].dtype != np.bool_:
        return q, k, v, Aval(others[0].shape, ct.dtype)
    return q, k, v


def _batch(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> tuple[Any, Any]:
    """The batch goes first; masks are lined up with the other axes."""
    given = in_front(args, axes)
    size, ndim = given[0].shape[0], len(given[0].shape)
    wide = [reshape(x, (size, *(1,) * (ndim - len(x.shape)), *x.shape[1:])) for x in given]
    out = call(op, wide, params)
    if op.outputs == 1:
        return out, 0
    # Cotangents are of the inputs after the first one.
    pairs = zip(out, given[1:], strict=False)
    return tuple(reshape(part, x.shape) for part, x in pairs), (0,) * len(out)


def _vjp(
    wanted: Any, ct: Any, _out: Any, q: Any, k: Any, v: Any, *others: Any, **params: Any
) -> Any:
    pulled = _pull(ct, q, k, v, *others, **params)
    return (*pulled, *(None,) * (len(wanted) - len(pulled)))


_attention = composite(
    "attention",
    _attended,
    forward=attention_forward,
    lower=_native(_attended, 0),
    infer=_infer,
    vjp_all=_vjp,
    batch=_batch,
    kind="contraction",
)
_pull = composite(
    "attention_pull",
    _pulled,
    forward=pull_forward,
    lower=_native(_pulled, 1),
    infer=_infer_pull,
    batch=_batch,
    kind="contraction",
    outputs=None,
)


# ---- the public function ------------------------------------------------------------------------


_NAME = "scaled_dot_product_attention"


def _repeated(k: Any, q: Any) -> Any:
    """Keys or values that groups of the heads of queries share, for each head."""
    fits = len(q.shape) > 2 < len(k.shape) and k.shape[-3] and not q.shape[-3] % k.shape[-3]
    if not fits:
        raise ShapeError(
            f"{_NAME}: got queries of shape {q.shape}, and keys or values of shape {k.shape}, "
            "expected heads along axis -3, those of queries a multiple"
        )
    times = q.shape[-3] // k.shape[-3]
    return k if times == 1 else repeat(k, times, axis=len(k.shape) - 3)


def _mask(mask: ArrayLike, shape: tuple[int, ...], causal: bool, dtype: Any) -> Any:
    if causal:
        raise ArgumentError(
            f"{_NAME}: got attn_mask and is_causal=True, expected one of them; join them in a mask"
        )
    mask = as_array(mask)
    if mask.dtype.kind in "iuc":
        raise DTypeError(
            f"{_NAME}: got a mask of {mask.dtype}, expected truth values, or floats to add"
        )
    check_broadcasts(_NAME, shape, attn_mask=mask)
    return mask if mask.dtype.kind == "b" else astype(mask, dtype, copy=False)


def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    /,
    attn_mask: ArrayLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    generator: Generator | None = None,
) -> Array:
    """Means of values, weighted by the softmax of the products of queries with keys.

    A query that no key is open to gets 0, and has no gradient.

    Args:
        query: Of shape (…, queries, size).
        key: Of shape (…, keys, size).
        value: Of shape (…, keys, size of values).
        attn_mask: Which keys are open to which query, as truth values, or numbers to add to the
            products; broadcast to (…, queries, keys).
        dropout_p: The probability that a weight is dropped.
        is_causal: Whether a query sees only keys up to its own place.
        scale: The factor of the products; None for 1/√size.
        enable_gqa: Whether several heads of queries (axis -3) share one of keys and values.
        generator: Where to draw from; the default generator if not given.

    Raises:
        ShapeError: The shapes do not fit.
        DTypeError: The numbers are complex, or the mask is of integers.
        ArgumentError: Both a mask and `is_causal` got, or no probability.

    >>> q = k = np.array([[100.0, 0.0], [0.0, 100.0]])
    >>> gt.nn.scaled_dot_product_attention(q, k, np.array([[1.0], [2.0]]))
    array([[1.],
           [2.]])
    """
    q, k, v = (real_only(_NAME, floats(as_array(x))) for x in (query, key, value))
    shapes = (q.shape, k.shape, v.shape)
    if min(map(len, shapes)) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"{_NAME}: got shapes {q.shape}, {k.shape}, {v.shape}, expected (…, queries, size), "
            "(…, keys, size), (…, keys, size of values)"
        )
    check_between(_NAME, 0, 1, dropout_p=dropout_p)
    if enable_gqa:
        k, v = (_repeated(x, q) for x in (k, v))
    lead = common_shape(_NAME, q, k, v, last=2)
    q, k, v = (
        x if x.shape[:-2] == lead else broadcast_to(x, (*lead, *x.shape[-2:])) for x in (q, k, v)
    )
    own, shape = q.dtype, (*lead, q.shape[-2], k.shape[-2])
    wide = np.float32 if own == np.float16 else own
    others = [] if attn_mask is None else [_mask(attn_mask, shape, is_causal, wide)]
    if dropout_p > 0:
        source = source_of(generator, _NAME)
        others.append(draw_kept(shape, float(dropout_p), source, q, k, v))
    params = {
        "scale": 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else float(scale),
        "causal": bool(is_causal),
        "masked": attn_mask is not None,
        "keep": 1 / (1 - dropout_p) if 0 < dropout_p < 1 else float(dropout_p),
    }
    if own == np.float16:
        q, k, v = (astype(x, np.float32) for x in (q, k, v))
    out = _attention(q, k, v, *others, **params)
    return astype(out, own, copy=False) if own == np.float16 else out
