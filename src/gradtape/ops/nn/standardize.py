"""The op below all normalizations: elements less their mean, divided by their deviation.

x̂ = (x − m)·r with the mean m over some axes and r = 1/√(variance + eps); without `center`, m is 0
and r = 1/√(mean square + eps). There are three forms, so that a layer is one op: plain, with
weights, and with weights and a bias. These have as many axes as x, some of size 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.call import call
from gradtape.core.define import added, broadcast_tangent, general, unbroadcast
from gradtape.core.lowering import Composite
from gradtape.ops import array_functions
from gradtape.ops.exponential import sqrt
from gradtape.ops.reduce import Axes, count_over, mean_over, sum_forward, sum_over
from gradtape.ops.shape import reshape

# One axis is given as a number: then rows along it are computed by themselves.
Over = int | Axes


def _axes(axis: Over) -> Axes:
    return (axis,) if isinstance(axis, int) else axis


# ---- the value ----------------------------------------------------------------------------------


def _standardized(xp: Any, x: Any, axis: Over, eps: float, center: bool) -> Any:
    axes = _axes(axis)
    n = count_over(x.shape, axes)
    around = x - sum_forward(xp, x, axes, True) / n if center else x
    return around * (1 / xp.sqrt(sum_forward(xp, around * around, axes, True) / n + eps))


def _affine(xp: Any, x: Any, weight: Any, *bias: Any, **params: Any) -> Any:
    out = _standardized(xp, x, **params) * weight
    return out + bias[0] if bias else out


# ---- how it changes -----------------------------------------------------------------------------


def _parts(x: Any, axis: Over, eps: float, center: bool) -> tuple[Any, Any]:
    """The elements around their mean, and the factor that scales them."""
    axes = _axes(axis)
    around = x - mean_over(x, axis=axes, keepdims=True) if center else x
    return around, 1 / sqrt(mean_over(around * around, axis=axes, keepdims=True) + eps)


# d x̂ = r·(dx − mean(dx) − x̂·mean(x̂·dx)), without the first mean if not centered; a symmetric map
def _change(change: Any, x: Any, axis: Over, eps: float, center: bool) -> Any:
    around, factor = _parts(x, axis, eps, center)
    axes = _axes(axis)
    # r·mean(x̂/r·dx): native code takes this mean in the pass that gives r.
    along = mean_over(change * around, axis=axes, keepdims=True) * factor
    rest = change - around * factor * along
    if center:
        rest = rest - mean_over(change, axis=axes, keepdims=True)
    return rest * factor


def _jvp(tangents: Any, _out: Any, x: Any, weight: Any, *_bias: Any, **params: Any) -> Any:
    dx, dw, db = (*tangents, None)[:3]
    by_x = None if dx is None else _change(dx, x, **params) * weight
    total = added(by_x, None if dw is None else dw * standardize(x, **params), db)
    return broadcast_tangent(total, _out)


def _scale_jvp(tangents: Any, _out: Any, x: Any, scale: Any, _shift: Any, axis: int) -> Any:
    dx, da, dc = tangents
    by_scale = None if da is None else x * da
    return broadcast_tangent(added(None if dx is None else dx * scale, by_scale, dc), _out)


def _infer(x: Aval, *others: Aval, **_params: Any) -> Aval:
    return Aval(x.shape, np.result_type(x.dtype, *(other.dtype for other in others)))


standardize = general(
    "standardize",
    _standardized,
    infer=_infer,
    vjps=(lambda ct, _out, x, **params: _change(ct, x, **params),),
    self_adjoint=True,
    kind="axiswise",
    lower=array_functions,
)


def _by_weight(ct: Any, x: Any, weight: Any, params: dict[str, Any]) -> Any:
    axes = _axes(params["axis"])
    if all(weight.shape[axis] == 1 for axis in axes):
        # The factor is the same for all elements summed over these axes.
        around, factor = _parts(x, **params)
        return unbroadcast(sum_over(ct * around, axis=axes, keepdims=True) * factor, weight.shape)
    # Through `call`, which leaves large arrays to native code.
    hat = call(standardize.op, (x,), params)  # type: ignore[attr-defined]
    return _summed_product(ct, hat, weight.shape)


def _summed_product(x: Any, y: Any, shape: tuple[int, ...]) -> Any:
    """x·y, summed over the axes along which an array of a shape was broadcast."""
    size = shape[-1] if shape else 0
    if type(x) is type(y) is np.ndarray and 0 < math.prod(shape) == size == x.shape[-1]:
        rows = (z.reshape(-1, size) for z in (x, y))
        return np.einsum("ri,ri->i", *rows).reshape(shape)  # in one pass
    return unbroadcast(x * y, shape)


def _op_with_weights(name: str, *by_bias: Any) -> Callable[..., Any]:
    # d(x̂·w + b) = w·dx̂ + x̂·dw + db
    return general(
        name,
        _affine,
        infer=_infer,
        vjps=(
            lambda ct, _out, x, weight, *_bias, **params: _change(ct * weight, x, **params),
            lambda ct, _out, x, _weight, *_bias, **params: _by_weight(ct, x, _weight, params),
            *by_bias,
        ),
        jvp=_jvp,
        kind="axiswise",
        lower=array_functions,
    )


standardize_scaled = _op_with_weights("standardize_scaled")
standardize_affine = _op_with_weights(
    "standardize_affine",
    lambda ct, _out, _x, _weight, _bias, **params: unbroadcast(ct, _bias.shape),
)


# x·a + c, where a and c are the same along an axis: d = a·dx + x·da + dc
scale_rows = general(
    "scale_rows",
    Composite(lambda x, scale, shift, axis: x * scale + shift),
    infer=_infer,
    vjps=(
        lambda ct, _out, _x, scale, _shift, axis: ct * scale,
        lambda ct, _out, x, _scale, _shift, axis: unbroadcast(ct * x, _scale.shape),
        lambda ct, _out, _x, _scale, _shift, axis: unbroadcast(ct, _shift.shape),
    ),
    jvp=_scale_jvp,
    kind="axiswise",
)


def _lined_up(parameter: Any, ndim: int) -> Any:
    if parameter is None or len(parameter.shape) == ndim:
        return parameter
    return reshape(parameter, (1,) * (ndim - len(parameter.shape)) + parameter.shape)


def standardized(
    x: Any, weight: Any, bias: Any, axis: Over, eps: float, center: bool = True
) -> Any:
    """Normalize, then scale and shift by whichever is not None, with as few ops as possible."""
    if not isinstance(axis, int) and len(axis) == 1:
        axis = axis[0]
    params = {"axis": axis, "eps": float(eps), "center": center}
    weight, bias = (_lined_up(p, len(x.shape)) for p in (weight, bias))
    if weight is None:
        out = standardize(x, **params)
        return out if bias is None else out + bias
    if bias is None:
        return standardize_scaled(x, weight, **params)
    return standardize_affine(x, weight, bias, **params)
