"""The ops below the losses of classes, which are along the last axis.

Cross entropy from logits is one op: with p = softmax(x) its slope is p − target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core import promotion, scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import batch_in_place, in_front
from gradtape.core.define import composite, general, multilinear
from gradtape.core.lowering import Composite, Elements, Reader
from gradtape.core.op import Op, Zero
from gradtape.core.scalar import Scalar
from gradtape.errors import IndexingError, UnsupportedError
from gradtape.ops import array_functions
from gradtape.ops.arguments import Batch
from gradtape.ops.cast import astype
from gradtape.ops.nn.known import known_values
from gradtape.ops.reduce import mean_over, reduction, sum_forward, sum_over
from gradtape.ops.select import mask, where
from gradtape.ops.shape import reshape
from gradtape.ops.softmax import (
    log_softmax,
    logsumexp,
    logsumexp_forward,
    softmax,
    softmax_forward,
)

# An `ignore_index` that no class has, so that none is ignored.
NOTHING = int(np.iinfo(np.int64).min)


_NUMBERED = Zero("a class is a number, and does not change by a little")


# ---- which class --------------------------------------------------------------------------------


def _out_of_range(given: Any, classes: int, name: str = "cross entropy") -> str:
    return f"{name}: got class {given}, expected one from 0 to {classes - 1}"


def check_classes(name: str, target: Any, classes: int, ignore_index: int) -> None:
    """Raise for an unknown class, if the values can be read yet."""
    raw = known_values(target)
    if raw is None or not raw.size:
        return
    # Mostly all is well, which takes two reductions to see.
    if raw.min() < 0 or raw.max() >= classes:
        bad = raw[((raw < 0) | (raw >= classes)) & (raw != ignore_index)]
        if bad.size:
            raise IndexingError(_out_of_range(bad.flat[0], classes, name))


def _checked(target: Reader, at: Sequence[Any], classes: int, ignore_index: int) -> Scalar:
    """The class that is named at a place, after a check that it is one, or ignored."""
    given = scalar.convert(target(*at), promotion.INT64)
    known = ((given >= 0) & (given < classes)) | (given == ignore_index)
    return target.check(given, known, _out_of_range("{}", classes), given)


# Along a new last axis, whether each class is the one that is named
class_hits = general(
    "class_hits",
    lambda xp, target, classes, ignore_index: target[..., None] == xp.arange(classes),
    infer=lambda target, classes, ignore_index: Aval((*target.shape, classes), np.dtype(np.bool_)),
    batch=batch_in_place,
    lower=Elements(
        lambda i, target, classes, ignore_index: (
            _checked(target, i[:-1], classes, ignore_index) == i[-1]
        )
    ),
)


# ---- numbers of classes -------------------------------------------------------------------------


def _ignored(target: Any, ignore_index: int) -> Any:
    """Which targets are ignored; None for none."""
    # Known without looking at each if all are from 0 on.
    if ignore_index < 0 and target.min(initial=0) >= 0:
        return None
    return target == ignore_index


def _named(xp: Any, target: Any, ignored: Any, classes: int) -> Any:
    """The classes, with 0 in place of those that are ignored."""
    if ignored is None:
        return target
    named = xp.where(ignored, 0, target)
    if named.min(initial=0) < 0:
        raise IndexingError(_out_of_range(named.min(), classes))
    return named


def _of_classes(xp: Any, x: Any, named: Any) -> tuple[Any, Any]:
    """`x` as rows of classes, and the index of the named ones in them."""
    rows = x.reshape((-1, x.shape[-1]))
    return rows, (xp.arange(len(rows)), named.reshape(-1))


def _pick_forward(xp: Any, x: Any, target: Any, ignore_index: int) -> Any:
    ignored = _ignored(target, ignore_index)
    named = _named(xp, target, ignored, x.shape[-1])
    if not named.size:
        return xp.zeros(target.shape, x.dtype)
    rows, places = _of_classes(xp, x, named)
    out = rows[places].reshape(target.shape)
    return out if ignored is None else xp.where(ignored, 0, out)


def _put_forward(xp: Any, values: Any, target: Any, classes: int, ignore_index: int) -> Any:
    ignored = _ignored(target, ignore_index)
    named = _named(xp, target, ignored, classes)
    out = xp.zeros((*target.shape[:-1], classes), values.dtype)
    if named.size:
        rows, places = _of_classes(xp, out, named)
        rows[places] = (values if ignored is None else xp.where(ignored, 0, values)).reshape(-1)
    return out


def _pick_element(i: Sequence[Scalar], x: Reader, target: Reader, ignore_index: int) -> Scalar:
    classes = x.aval.shape[-1]
    if 0 in x.aval.shape:
        raise UnsupportedError("cross entropy: no native code for arrays without elements")
    given = _checked(target, (*i[:-1], 0), classes, ignore_index)
    counts = given != ignore_index
    return scalar.where(counts, x(*i[:-1], scalar.where(counts, given, 0)), 0)


def _put_element(
    i: Sequence[Scalar], values: Reader, target: Reader, classes: int, ignore_index: int
) -> Scalar:
    given = _checked(target, (*i[:-1], 0), classes, ignore_index)
    hit = (given == i[-1]) & (given != ignore_index)
    return scalar.where(hit, values(*i[:-1], 0), 0)


# x[target] along the last axis, where the target has size 1; 0 where it is ignored. Transpose:
# values at these places of an array of zeros
pick_class: Any = multilinear(
    "pick_class",
    _pick_forward,
    lambda ct, _out, _x, target, ignore_index: put_class(
        ct, target, classes=_x.shape[-1], ignore_index=ignore_index
    ),
    _NUMBERED,
    infer=lambda x, target, ignore_index: Aval(target.shape, x.dtype),
    lower=Elements(_pick_element),
)
put_class: Any = multilinear(
    "put_class",
    _put_forward,
    lambda ct, _out, _values, target, classes, ignore_index: pick_class(
        ct, target, ignore_index=ignore_index
    ),
    _NUMBERED,
    infer=lambda values, target, classes, ignore_index: Aval(
        (*target.shape[:-1], classes), values.dtype
    ),
    lower=Elements(_put_element),
)


# ---- classes by number --------------------------------------------------------------------------


def _losses(xp: Any, x: Any, target: Any, axis: int, ignored: Any, smoothing: float) -> Any:
    named = _named(xp, target, ignored, x.shape[axis])
    total = logsumexp_forward(xp, x, (axis,), True)
    out = total
    if named.size:
        rows, places = _of_classes(xp, x, named)
        out = total - rows[places].reshape(total.shape)
    if smoothing:
        out = (1 - smoothing) * out + smoothing * (total - x.mean(axis, keepdims=True))
    return (out if ignored is None else xp.where(ignored, 0, out))[..., 0]


def _sparse_forward(
    xp: Any, x: Any, target: Any, axis: int, ignore_index: int, smoothing: float
) -> Any:
    return _losses(xp, x, target, axis, _ignored(target, ignore_index), smoothing)


def _sparse_composition(x: Any, target: Any, axis: int, ignore_index: int, smoothing: float) -> Any:
    total, target = logsumexp(x, axis), reshape(target, target.shape[:-1])
    hits = class_hits(target, classes=x.shape[axis], ignore_index=ignore_index)
    out = total - sum_over(mask(x, hits), axis=(axis,), keepdims=False)
    if smoothing:
        mean = mean_over(x, axis=(axis,), keepdims=False)
        out = (1 - smoothing) * out + smoothing * (total - mean)
    return where(target == ignore_index, 0, out)


def _slopes_of(xp: Any, x: Any, target: Any, axis: int, ignored: Any, smoothing: float) -> Any:
    named = _named(xp, target, ignored, x.shape[axis])
    out = softmax_forward(xp, x, (axis,), False)
    if named.size:
        rows, places = _of_classes(xp, out, named)
        rows[places] -= 1 - smoothing
        out = rows.reshape(out.shape)  # they are a copy if the classes are not last in memory
    if smoothing:
        out -= smoothing / x.shape[axis]
    if ignored is not None:
        out[ignored[..., 0]] = 0
    return out


def _slopes_forward(
    xp: Any, x: Any, target: Any, axis: int, ignore_index: int, smoothing: float
) -> Any:
    return _slopes_of(xp, x, target, axis, _ignored(target, ignore_index), smoothing)


def _slopes_composition(x: Any, target: Any, axis: int, ignore_index: int, smoothing: float) -> Any:
    classes, named = x.shape[axis], reshape(target, target.shape[:-1])
    hits = astype(class_hits(named, classes=classes, ignore_index=ignore_index), x.dtype)
    slope = softmax(x, axis) - (1 - smoothing) * hits if smoothing else softmax(x, axis) - hits
    slope = slope - smoothing / classes if smoothing else slope
    return mask(slope, target != ignore_index)


# p − (1 − ε)·hit − ε/n, with p = softmax(x); 0 where the target is ignored
_slopes = composite(
    "class_slopes",
    _slopes_composition,
    forward=_slopes_forward,
    infer=lambda x, target, **_params: Aval(x.shape, x.dtype),
    kind="axiswise",
)


# The target has the axis of classes as well, with size 1.
# −log p[target], with the share ε of the loss spread over all classes; 0 where it is ignored:
# d = (p − (1 − ε)·hit − ε/n)·dx
sparse_cross_entropy = reduction(
    "sparse_cross_entropy",
    _sparse_forward,
    lambda _out, x, target, **params: _slopes(x, target, **params),
    _NUMBERED,
    infer=lambda x, target, **_params: Aval(x.shape[:-1], x.dtype),
    lower=Composite(_sparse_composition),
    chosen=True,
)


# ---- their mean ---------------------------------------------------------------------------------


def _count(target: Any, ignore_index: int, lead: int, dtype: Any) -> Any:
    """How many targets count, after `lead` axes that stay, with the axes of the target."""
    counts = astype(target != ignore_index, dtype)
    return sum_over(counts, axis=tuple(range(lead, len(target.shape))), keepdims=True)


def _count_of(x: Any, target: Any, ignored: Any) -> Any:
    """How many targets count, in the dtype of the losses."""
    return x.dtype.type(target.size if ignored is None else (~ignored).sum())


def _mean_forward(xp: Any, x: Any, target: Any, ignore_index: int, smoothing: float) -> Any:
    ignored = _ignored(target, ignore_index)
    losses = _losses(xp, x, target, x.ndim - 1, ignored, smoothing)
    total = sum_forward(xp, losses, tuple(range(losses.ndim)), False)
    return total / _count_of(x, target, ignored)


def _mean_composition(
    x: Any, target: Any, ignore_index: int, smoothing: float, lead: int = 0
) -> Any:
    axis = len(x.shape) - 1
    losses = sparse_cross_entropy(
        x, target, axis=axis, ignore_index=ignore_index, smoothing=smoothing
    )
    total = sum_over(losses, axis=tuple(range(lead, axis)), keepdims=False)
    return total / reshape(_count(target, ignore_index, lead, x.dtype), total.shape)


def _mean_slopes_forward(xp: Any, x: Any, target: Any, ignore_index: int, smoothing: float) -> Any:
    ignored = _ignored(target, ignore_index)
    slopes = _slopes_of(xp, x, target, x.ndim - 1, ignored, smoothing)
    slopes /= _count_of(x, target, ignored)
    return slopes if ignored is None else xp.where(ignored, 0, slopes)


def _mean_slopes_composition(
    x: Any, target: Any, ignore_index: int, smoothing: float, lead: int = 0
) -> Any:
    slopes = _slopes(
        x, target, axis=len(x.shape) - 1, ignore_index=ignore_index, smoothing=smoothing
    )
    counts = _count(target, ignore_index, lead, x.dtype)
    return mask(slopes / counts, target != ignore_index)


def _batched(composition: Callable[..., Any]) -> Callable[..., Any]:
    """The batching rule of an op by its composition, which keeps leading axes apart."""

    def batch(_op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
        return composition(*in_front(args, axes), **params, lead=1), 0

    return batch


_mean_slopes = composite(
    "mean_class_slopes",
    _mean_slopes_composition,
    forward=_mean_slopes_forward,
    infer=lambda x, target, **_params: Aval(x.shape, x.dtype),
    batch=_batched(_mean_slopes_composition),
)


def _mean_pushed(tangents: Any, _out: Any, x: Any, target: Any, **params: Any) -> Any:
    moved = _mean_pulled(tangents[0], _out, x, target, **params)
    return sum_over(moved, axis=tuple(range(len(moved.shape))), keepdims=False)


def _mean_pulled(ct: Any, _out: Any, x: Any, target: Any, **params: Any) -> Any:
    slopes = _mean_slopes(x, target, **params)
    if isinstance(ct, np.ndarray | np.generic) and not ct.shape and np.isfinite(ct):
        return ct * slopes
    # Samples that are ignored take no part, also where the cotangent is infinite.
    return mask(ct * slopes, slopes != 0)


# The mean of the losses that count, of all axes; NaN if there are none
mean_cross_entropy = composite(
    "mean_cross_entropy",
    _mean_composition,
    _mean_pulled,
    _NUMBERED,
    forward=_mean_forward,
    jvp=_mean_pushed,
    infer=lambda x, target, **_params: Aval((), x.dtype),
    batch=_batched(_mean_composition),
)


# ---- classes by probabilities -------------------------------------------------------------------


def _dense_forward(xp: Any, x: Any, target: Any, axis: int) -> Any:
    apart = logsumexp_forward(xp, x, (axis,), True) - x
    return sum_forward(xp, target * apart, (axis,), False)


# −Σ t·log p: d = (p·Σt − t)·dx − log p·dt
dense_cross_entropy = reduction(
    "dense_cross_entropy",
    _dense_forward,
    lambda _out, x, target, axis: (
        softmax(x, axis) * sum_over(target, axis=(axis,), keepdims=True) - target
    ),
    lambda _out, x, _target, axis: -log_softmax(x, axis),
    infer=lambda x, target, axis: Aval(x.shape[:-1], np.result_type(x.dtype, target.dtype)),
    lower=array_functions,
)
