"""Normalization layers with running statistics, as `torch.nn.functional` has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.evaluate import evaluate
from gradtape.core.lowering import Composite
from gradtape.core.op import Op
from gradtape.core.state import STATE
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, ConversionError, ShapeError
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.exponential import sqrt
from gradtape.ops.join import stack
from gradtape.ops.moments import var
from gradtape.ops.nn.normalization import (
    beside,
    channels_of,
    lies_with_channels_last,
    over_groups,
    real,
    widely,
)
from gradtape.ops.nn.parameters import parameters
from gradtape.ops.nn.standardize import scale_rows, standardized
from gradtape.ops.reduce import Axes, count_over, mean, mean_over
from gradtape.ops.shape import moveaxis, reshape
from gradtape.typing import ArrayLike

# ---- running statistics -------------------------------------------------------------------------


def _both_moments(x: Any, axis: Axes) -> Any:
    """Mean and variance, one after the other."""
    return stack([mean_over(x, axis=axis, keepdims=False), var(x, axis, correction=1)], 0)


def _infer_moments(x: Aval, axis: Axes) -> Aval:
    return Aval((2, *(n for i, n in enumerate(x.shape) if i not in axis)), x.dtype)


# Only raw arrays get here: native code computes both together.
_MOMENTS = Op(
    "batch_moments",
    lambda _xp, x, axis: _both_moments(x, axis),
    _infer_moments,
    kind="axiswise",
    lower=Composite(_both_moments),
)


def _observed(x: Any) -> Any:
    """The array without history, for statistics; half precision and bfloat16 as float32."""
    fixed = stop_gradient(x)
    return fixed if fixed.dtype.itemsize > 2 else astype(fixed, np.float32)


def _moments(x: Any, axes: Axes) -> tuple[Any, Any]:
    """Mean and variance of each channel over a batch; not recorded."""
    array = x.value if type(x) is Tensor else x
    # Modes, such as the trace of a compiled function, have to see these reads.
    plain = type(array) is np.ndarray and array.dtype.char in "fd" and STATE.get().plain
    if not plain:
        fixed = _observed(x)
        return mean(fixed, axes), var(fixed, axes, correction=1)
    if lies_with_channels_last(array):
        array, axes = np.moveaxis(array, 1, -1).reshape(-1, array.shape[1]), (0,)
    m, v = evaluate(_MOMENTS, (array,), {"axis": axes})
    return (Tensor(m), Tensor(v)) if type(x) is Tensor else (m, v)


def _prepared(
    name: str, x: ArrayLike, least: int, weight: Any, bias: Any, running_mean: Any, running_var: Any
) -> tuple[Any, list[Any], list[Any]]:
    """The array, weight and bias, and running mean and variance, checked."""
    x = real(name, x)
    shape = (channels_of(name, x, least),)
    running = parameters(name, shape, running_mean=running_mean, running_var=running_var)
    return x, parameters(name, shape, weight=weight, bias=bias), running


def _moved(running: Any, now: Any, momentum: float) -> Any:
    """A running statistic moved towards that of the batch; not recorded."""
    if running is None:
        return None
    if STATE.get().plain and isinstance(momentum, float):
        raw = [x.value if type(x) is Tensor else x for x in (running, now)]
        if type(raw[0]) is np.ndarray and type(raw[1]) is np.ndarray:
            moved = raw[0] * (1 - momentum) + raw[1] * momentum
            moved = moved.astype(running.dtype, copy=False)
            return moved if running is raw[0] and now is raw[1] else Tensor(moved)
    old = stop_gradient(running) if isinstance(running, Tensor) else running
    return astype(old * (1 - momentum) + stop_gradient(now) * momentum, running.dtype)


def _write(name: str, running: list[Any], moved: list[Any]) -> None:
    try:
        for old, new in zip(running, moved, strict=True):
            if old is not None:
                old[...] = new
    except ConversionError as error:
        raise ConversionError(
            f"{name}: got running statistics to be written to, in a function that is compiled; "
            "what it computes is only known when it runs. Use return_statistics=True, return the "
            "new ones from the function, and assign them outside"
        ) from error


def _by_running(
    name: str, x: Any, running: list[Any], weight: Any, bias: Any, eps: float, option: str
) -> Any:
    """Normalize by running statistics; `option` is what a user can set to do without them."""
    if any(statistic is None for statistic in running):
        raise ArgumentError(f"{name}: got no running statistics; give them, or {option}=True")
    return widely(x, lambda x: _by_statistics(x, running, weight, bias, eps))


def _by_statistics(x: Any, running: list[Any], weight: Any, bias: Any, eps: float) -> Any:
    """(x − mean)/√(variance + eps), scaled and shifted, as one product and one sum."""
    # In the precision of the array, as in training.
    m, v = (astype(z, x.dtype, copy=False) for z in running)
    factor = 1 / sqrt(v + eps)
    factor = factor if weight is None else factor * weight
    shift = -m * factor if bias is None else bias - m * factor
    if lies_with_channels_last(x):
        by_column = (reshape(z, (1, -1)) for z in (factor, shift))
        return _on_columns(x, lambda columns: scale_rows(columns, *by_column, axis=1))
    rows = reshape(x, (*x.shape[:2], math.prod(x.shape[2:])))
    by_row = (reshape(z, (1, -1, 1)) for z in (factor, shift))
    return reshape(scale_rows(rows, *by_row, axis=2), x.shape)


def _on_columns(x: Any, compute: Callable[[Any], Any]) -> Any:
    """Apply `compute` to a matrix with one column per channel, for channels last in memory."""
    turned = moveaxis(x, 1, -1)
    out = compute(reshape(turned, (-1, x.shape[1])))
    return moveaxis(reshape(out, turned.shape), -1, 1)


# ---- layers -------------------------------------------------------------------------------------


def batch_norm(
    x: ArrayLike,
    /,
    running_mean: Any = None,
    running_var: Any = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    return_statistics: bool = False,
) -> Any:
    """Each channel brought to mean 0 and variance 1 over samples and places.

    Args:
        x: Of shape (samples, channels, …).
        running_mean: A mean for each channel. In training, this tensor or array is written to.
        running_var: A variance for each channel, likewise.
        weight: What to multiply each channel with.
        bias: What to add to each channel.
        training: Whether to take mean and variance of the batch, not the running ones.
        momentum: How much of the statistics of the batch goes into the running ones.
        eps: Added to the variance, so that it can be divided by.
        return_statistics: Whether to return `(result, mean, variance)` with the new running
            statistics, and to write to nothing: for functions that are compiled or transformed.

    Raises:
        ShapeError: There are no channels, or not a number for each of them; or, in training, there
            is only one element for each channel.
        ArgumentError: Not in training, and there are no running statistics.
        DTypeError: The numbers are complex.

    >>> x = np.array([[1.0, 5.0], [3.0, 5.0]])
    >>> mean, var = np.zeros(2), np.ones(2)
    >>> gt.nn.batch_norm(x, mean, var, training=True)
    array([[-0.999995,  0.      ],
           [ 0.999995,  0.      ]])
    >>> mean
    array([0.2, 0.5])
    >>> step = gt.jit(gt.nn.batch_norm, static_argnames=("training", "return_statistics"))
    >>> _, mean, var = step(x, mean, var, training=True, return_statistics=True)
    >>> mean
    array([0.38, 0.95])
    """
    given = (weight, bias, running_mean, running_var)
    x, (weight, bias), running = _prepared("batch_norm", x, 2, *given)
    if not training:
        out = _by_running("batch_norm", x, running, weight, bias, eps, "training")
        return (out, *running) if return_statistics else out
    axes = (0, *range(2, len(x.shape)))
    if count_over(x.shape, axes) < 2:
        raise ShapeError(
            f"batch_norm: got shape {x.shape}; in training more than one element for each channel "
            "is needed"
        )
    out = widely(x, lambda x: _over_batch(x, weight, bias, axes, eps))
    if all(statistic is None for statistic in running) and not return_statistics:
        return out
    pairs = zip(running, _moments(x, axes), strict=True)
    moved = [_moved(*pair, momentum) for pair in pairs]
    if return_statistics:
        return (out, *moved)
    _write("batch_norm", running, moved)
    return out


def _over_batch(x: Any, weight: Any, bias: Any, axes: Axes, eps: float) -> Any:
    if not lies_with_channels_last(x):
        ndim = len(x.shape)
        return standardized(x, beside(weight, ndim), beside(bias, ndim), axes, eps)
    return _on_columns(x, lambda columns: standardized(columns, weight, bias, 0, eps))


def instance_norm(
    x: ArrayLike,
    /,
    running_mean: Any = None,
    running_var: Any = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    return_statistics: bool = False,
) -> Any:
    """Each channel of each sample brought to mean 0 and variance 1 over its places.

    Args:
        x: Of shape (samples, channels, …) with at least one axis of places.
        running_mean: A mean for each channel. With `use_input_stats` this tensor or array is
            written to.
        running_var: A variance for each channel, likewise.
        weight: What to multiply each channel with.
        bias: What to add to each channel.
        use_input_stats: Whether to take mean and variance of the samples, not the running ones.
        momentum: How much of the statistics of the samples goes into the running ones.
        eps: Added to the variance, so that it can be divided by.
        return_statistics: Whether to return `(result, mean, variance)` with the new running
            statistics, and to write to nothing.

    Raises:
        ShapeError: There are no channels or places, or not a number for each channel; or there is
            only one place.
        ArgumentError: The running statistics are to be used, and are missing.
        DTypeError: The numbers are complex.

    >>> gt.nn.instance_norm(np.array([[[1.0, 3.0], [5.0, 5.0]]]))
    array([[[-0.999995,  0.999995],
            [ 0.      ,  0.      ]]])
    """
    given = (weight, bias, running_mean, running_var)
    x, (weight, bias), running = _prepared("instance_norm", x, 3, *given)
    if not use_input_stats:
        out = _by_running("instance_norm", x, running, weight, bias, eps, "use_input_stats")
        return (out, *running) if return_statistics else out
    places = tuple(range(2, len(x.shape)))
    if count_over(x.shape, places) == 1:
        raise ShapeError(f"instance_norm: got shape {x.shape}, expected more than one place")
    out = over_groups(x, x.shape[1], weight, bias, eps)
    if all(statistic is None for statistic in running) and not return_statistics:
        return out
    fixed = _observed(x)
    now = mean(fixed, (0, *places)), mean(var(fixed, places, correction=1), 0)
    moved = [_moved(*pair, momentum) for pair in zip(running, now, strict=True)]
    if return_statistics:
        return (out, *moved)
    _write("instance_norm", running, moved)
    return out
