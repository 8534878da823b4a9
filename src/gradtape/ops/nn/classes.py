"""The ops below the losses of classes: cross entropy from logits, each one op along the last axis.

With p = softmax(x) they all have the slope p − target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.call import call
from gradtape.core.define import batch_in_place, general
from gradtape.core.lowering import Elements, Reader
from gradtape.core.op import Op, Zero
from gradtape.core.scalar import Scalar
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import IndexingError
from gradtape.ops import lowered
from gradtape.ops.arguments import Batch
from gradtape.ops.cast import astype
from gradtape.ops.nn.distances import in_front
from gradtape.ops.reduce import mean_over, sum_forward, sum_over
from gradtape.ops.select import mask, where
from gradtape.ops.shape import reshape
from gradtape.ops.softmax import log_softmax, logsumexp, softmax

# An `ignore_index` that no class has: none is ignored.
NOTHING = int(np.iinfo(np.int64).min)


# ---- which class --------------------------------------------------------------------------------


def _out_of_range(given: Any, classes: int) -> str:
    return f"cross entropy: came class {given}; needed one from 0 to {classes - 1}"


def check_classes(target: Any, classes: int, ignore_index: int) -> None:
    """Raise for a class there is not, if the values are there to be read."""
    raw = innermost(target, show=True) if isinstance(target, Tensor) else target
    if isinstance(raw, np.ndarray):
        bad = raw[((raw < 0) | (raw >= classes)) & (raw != ignore_index)]
        if bad.size:
            raise IndexingError(_out_of_range(bad.flat[0], classes))


def _hit_element(i: Sequence[Scalar], target: Reader, classes: int, ignore_index: int) -> Scalar:
    given = target(*i[:-1])
    known = ((given >= 0) & (given < classes)) | (given == ignore_index)
    return target.check(given, known, _out_of_range("{}", classes), given) == i[-1]


# Along a new last axis, whether each class is the one that is named
class_hits = general(
    "class_hits",
    lambda xp, target, classes, ignore_index: target[..., None] == xp.arange(classes),
    infer=lambda target, classes, ignore_index: Aval((*target.shape, classes), np.dtype(np.bool_)),
    batch=batch_in_place,
    lower=Elements(_hit_element),
)


# ---- classes by number --------------------------------------------------------------------------


def _logsumexp(xp: Any, x: Any, axis: int) -> Any:
    """Along an axis that stays, with size 1."""
    top = x.max(axis=axis, keepdims=True, initial=-np.inf)
    top = xp.where(xp.isfinite(top), top, 0)
    return xp.log(sum_forward(xp, xp.exp(x - top), (axis,), True)) + top


def _sparse_forward(
    xp: Any, x: Any, target: Any, axis: int, ignore_index: int, smoothing: float
) -> Any:
    ignored = target == ignore_index
    named = xp.where(ignored, 0, target)
    if named.min(initial=0) < 0:
        raise IndexingError(_out_of_range(named.min(), x.shape[axis]))
    total = _logsumexp(xp, x, axis)[..., 0]
    chosen = xp.take_along_axis(x, named[..., None], axis)[..., 0] if named.size else total
    out = total - chosen
    if smoothing:
        out = (1 - smoothing) * out + smoothing * (total - x.mean(axis))
    return xp.where(ignored, 0, out)


def _sparse_composition(x: Any, target: Any, axis: int, ignore_index: int, smoothing: float) -> Any:
    total = logsumexp(x, axis)
    hits = class_hits(target, classes=x.shape[axis], ignore_index=ignore_index)
    out = total - sum_over(mask(x, hits), axis=(axis,), keepdims=False)
    if smoothing:
        mean = mean_over(x, axis=(axis,), keepdims=False)
        out = (1 - smoothing) * out + smoothing * (total - mean)
    return where(target == ignore_index, 0, out)


def _sparse_slope(x: Any, target: Any, axis: int, ignore_index: int, smoothing: float) -> Any:
    classes = x.shape[axis]
    hits = astype(class_hits(target, classes=classes, ignore_index=ignore_index), x.dtype)
    slope = softmax(x, axis) - (1 - smoothing) * hits if smoothing else softmax(x, axis) - hits
    return slope - smoothing / classes if smoothing else slope


def _sparse_vjp(ct: Any, _out: Any, x: Any, target: Any, **params: Any) -> Any:
    ct = mask(ct, target != params["ignore_index"])
    return reshape(ct, (*ct.shape, 1)) * _sparse_slope(x, target, **params)


def _sparse_jvp(tangents: Any, _out: Any, x: Any, target: Any, **params: Any) -> Any:
    change = tangents[0] * _sparse_slope(x, target, **params)
    total = sum_over(change, axis=(params["axis"],), keepdims=False)
    return mask(total, target != params["ignore_index"])


def _batch(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    return call(op, in_front(args, axes), {**params, "axis": params["axis"] + 1}), 0


_NUMBERED = Zero("a class is a number, and does not change by a little")

# −log p[target], with the share ε of the loss spread over all classes; 0 where it is ignored:
# d = (p − (1 − ε)·hit − ε/n)·dx
sparse_cross_entropy = general(
    "sparse_cross_entropy",
    _sparse_forward,
    infer=lambda x, target, **_params: Aval(x.shape[:-1], x.dtype),
    vjps=(_sparse_vjp, _NUMBERED),
    jvp=_sparse_jvp,
    batch=_batch,
    kind="reduction",
    lower=lowered.composite(_sparse_composition),
)


# ---- classes by probabilities -------------------------------------------------------------------


def _dense_forward(xp: Any, x: Any, target: Any, axis: int) -> Any:
    apart = _logsumexp(xp, x, axis) - x
    return sum_forward(xp, target * apart, (axis,), False)


def _dense_composition(x: Any, target: Any, axis: int) -> Any:
    return -sum_over(target * log_softmax(x, axis), axis=(axis,), keepdims=False)


def _by_logits(x: Any, target: Any, axis: int) -> Any:
    return softmax(x, axis) * sum_over(target, axis=(axis,), keepdims=True) - target


def _dense_jvp(tangents: Any, _out: Any, x: Any, target: Any, axis: int) -> Any:
    dx, dt = tangents
    change = None if dx is None else dx * _by_logits(x, target, axis)
    if dt is not None:
        by_target = -dt * log_softmax(x, axis)
        change = by_target if change is None else change + by_target
    return sum_over(change, axis=(axis,), keepdims=False)


# −Σ t·log p: d = (p·Σt − t)·dx − log p·dt
dense_cross_entropy = general(
    "dense_cross_entropy",
    _dense_forward,
    infer=lambda x, target, axis: Aval(x.shape[:-1], np.result_type(x.dtype, target.dtype)),
    vjps=(
        lambda ct, _out, x, target, axis: reshape(ct, (*ct.shape, 1)) * _by_logits(x, target, axis),
        lambda ct, _out, x, _target, axis: -reshape(ct, (*ct.shape, 1)) * log_softmax(x, axis),
    ),
    jvp=_dense_jvp,
    batch=_batch,
    kind="reduction",
    lower=lowered.composite(_dense_composition),
)
