"""The ops below the losses of classes, which are along the last axis.

Cross entropy from logits is one op: with p = softmax(x) its slope is p − target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core import promotion, scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import batch_in_place
from gradtape.core.define import general, multilinear
from gradtape.core.lowering import Composite, Elements, Reader
from gradtape.core.op import Zero
from gradtape.core.scalar import Scalar
from gradtape.errors import IndexingError, UnsupportedError
from gradtape.ops import array_functions
from gradtape.ops.cast import astype
from gradtape.ops.nn.known import known_values
from gradtape.ops.reduce import mean_over, reduction, sum_forward, sum_over
from gradtape.ops.select import mask, where
from gradtape.ops.shape import reshape
from gradtape.ops.softmax import log_softmax, logsumexp, logsumexp_forward, softmax

# An `ignore_index` that no class has, so that none is ignored.
NOTHING = int(np.iinfo(np.int64).min)


_NUMBERED = Zero("a class is a number, and does not change by a little")


# ---- which class --------------------------------------------------------------------------------


def _out_of_range(given: Any, classes: int, name: str = "cross entropy") -> str:
    return f"{name}: got class {given}, expected one from 0 to {classes - 1}"


def check_classes(name: str, target: Any, classes: int, ignore_index: int) -> None:
    """Raise for an unknown class, if the values can be read yet."""
    raw = known_values(target)
    if raw is not None:
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


def _named(xp: Any, target: Any, classes: int, ignore_index: int) -> tuple[Any, Any]:
    """Which targets are ignored, and classes with 0 in place of these."""
    ignored = target == ignore_index
    named = xp.where(ignored, 0, target)
    if named.min(initial=0) < 0:
        raise IndexingError(_out_of_range(named.min(), classes))
    return ignored, named


def _pick_forward(xp: Any, x: Any, target: Any, ignore_index: int) -> Any:
    ignored, named = _named(xp, target, x.shape[-1], ignore_index)
    out = xp.take_along_axis(x, named, -1) if named.size else xp.zeros(target.shape, x.dtype)
    out[ignored] = 0
    return out


def _put_forward(xp: Any, values: Any, target: Any, classes: int, ignore_index: int) -> Any:
    ignored, named = _named(xp, target, classes, ignore_index)
    out = xp.zeros((*target.shape[:-1], classes), values.dtype)
    if named.size:
        xp.put_along_axis(out, named, xp.where(ignored, 0, values), -1)
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


def _sparse_forward(
    xp: Any, x: Any, target: Any, axis: int, ignore_index: int, smoothing: float
) -> Any:
    ignored, named = _named(xp, target, x.shape[axis], ignore_index)
    total = logsumexp_forward(xp, x, (axis,), True)
    out = total - (xp.take_along_axis(x, named, axis) if named.size else total)
    if smoothing:
        out = (1 - smoothing) * out + smoothing * (total - x.mean(axis, keepdims=True))
    return xp.where(ignored, 0, out)[..., 0]


def _sparse_composition(x: Any, target: Any, axis: int, ignore_index: int, smoothing: float) -> Any:
    total, target = logsumexp(x, axis), reshape(target, target.shape[:-1])
    hits = class_hits(target, classes=x.shape[axis], ignore_index=ignore_index)
    out = total - sum_over(mask(x, hits), axis=(axis,), keepdims=False)
    if smoothing:
        mean = mean_over(x, axis=(axis,), keepdims=False)
        out = (1 - smoothing) * out + smoothing * (total - mean)
    return where(target == ignore_index, 0, out)


def _sparse_slope(
    _out: Any, x: Any, target: Any, axis: int, ignore_index: int, smoothing: float
) -> Any:
    classes, named = x.shape[axis], reshape(target, target.shape[:-1])
    hits = astype(class_hits(named, classes=classes, ignore_index=ignore_index), x.dtype)
    slope = softmax(x, axis) - (1 - smoothing) * hits if smoothing else softmax(x, axis) - hits
    slope = slope - smoothing / classes if smoothing else slope
    return mask(slope, target != ignore_index)


# The target has the axis of classes as well, with size 1.
# −log p[target], with the share ε of the loss spread over all classes; 0 where it is ignored:
# d = (p − (1 − ε)·hit − ε/n)·dx
sparse_cross_entropy = reduction(
    "sparse_cross_entropy",
    _sparse_forward,
    _sparse_slope,
    _NUMBERED,
    infer=lambda x, target, **_params: Aval(x.shape[:-1], x.dtype),
    lower=Composite(_sparse_composition),
    chosen=True,
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
