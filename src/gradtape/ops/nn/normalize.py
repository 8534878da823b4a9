"""Vectors divided by their length, and elements by the size of those in nearby channels."""

from __future__ import annotations

import functools
import operator
from typing import Any

from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import composite, general, linear
from gradtape.core.lowering import Composite
from gradtape.core.op import Op
from gradtape.ops import array_functions
from gradtape.ops.arguments import Batch, as_array, normalize_axis, real_only
from gradtape.ops.checks import check_axes, check_least
from gradtape.ops.exponential import sqrt
from gradtape.ops.index import getitem_basic
from gradtape.ops.norm import norm
from gradtape.ops.pad import pad_constant
from gradtape.ops.reduce import floats, sum_forward, sum_over
from gradtape.ops.select import clip, mask
from gradtape.typing import Array, ArrayLike

# ---- vectors of length 1 ------------------------------------------------------------------------


def _unit_forward(xp: Any, x: Any, axis: int, eps: float) -> Any:
    return x / xp.maximum(xp.sqrt(sum_forward(xp, x * x, (axis,), True)), eps)


def _length(x: Any, axis: int) -> Any:
    return sqrt(sum_over(x * x, axis=(axis,), keepdims=True))


def _unit_change(change: Any, out: Any, x: Any, axis: int, eps: float) -> Any:
    length = _length(x, axis)
    along = mask(sum_over(change * out, axis=(axis,), keepdims=True), length >= eps)
    return (change - out * along) / clip(length, eps)


# d(x/|x|) = (dx − u·(u·dx))/|x| with u = x/|x|, a symmetric map; dx/eps where |x| is below eps
_unit = general(
    "unit_vectors",
    _unit_forward,
    vjps=(_unit_change,),
    self_adjoint=True,
    kind="axiswise",
    lower=array_functions,
)


def normalize(x: ArrayLike, /, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Array:
    """Vectors divided by their norm.

    Args:
        x: The vectors.
        p: Which norm: a number or inf.
        dim: The axis along which the elements of a vector lie.
        eps: The least divisor: shorter vectors are divided by it.

    Raises:
        AxisError: There is no such axis.

    >>> gt.nn.normalize(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    x = floats(as_array(x))
    axis = normalize_axis(dim, len(x.shape), "normalize")
    if p == 2 and x.dtype.kind != "c":
        return _unit(x, axis=axis, eps=float(eps))
    return x / clip(norm(x, p, axis, keepdims=True), eps)


# ---- windows of channels ------------------------------------------------------------------------


def _window_of(x: Any, before: int, after: int) -> Any:
    n, none = x.shape[1], (0, 0)
    widths = (none, (before, after), *(none,) * (len(x.shape) - 2))
    padded = pad_constant(x, widths=widths, fill=0)
    shifted = (
        getitem_basic(padded, index=(slice(None), slice(k, k + n)))
        for k in range(before + after + 1)
    )
    return functools.reduce(operator.add, shifted)


def _batch_window(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    # Sums are over axis 1, so the batch goes last.
    last = len(args[0].shape) - 1
    return call(op, (move_batch_axis(args[0], axes[0], last),), params), last


# Sums over channels from k − before to k + after; transpose: the same the other way round
channel_sums: Any = linear(
    "channel_sums",
    Composite(_window_of),
    lambda ct, _out, _x, before, after: channel_sums(ct, before=after, after=before),
    batch=_batch_window,
)


def _levels(x: Any, alpha: float, k: float, **window: int) -> Any:
    """The sums k + α·Σx² over nearby channels; elements are divided by a power of them."""
    return k + alpha * channel_sums(x * x, **window)


def _response_vjp(
    ct: Any, _out: Any, x: Any, alpha: float, beta: float, k: float, before: int, after: int
) -> Any:
    levels = _levels(x, alpha, k, before=before, after=after)
    scaled = ct * levels**-beta
    back = channel_sums(scaled * x / levels, before=after, after=before)
    return scaled - 2 * alpha * beta * x * back


# With d = k + α·W(x²), W the sum over a window: d(x·d^−β) = d^−β·(dx − β·x/d·α·W(2·x·dx))
_response = composite(
    "local_response_norm",
    lambda x, alpha, beta, k, **window: x * _levels(x, alpha, k, **window) ** -beta,
    _response_vjp,
    batch=_batch_window,
)


def local_response_norm(
    x: ArrayLike, /, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Array:
    """Elements divided by a power of the mean square over neighbouring channels.

    Args:
        x: Of shape (samples, channels, …), with at least one further axis.
        size: How many channels are summed over, an element's own among them.
        alpha: What the mean square is multiplied with.
        beta: The power.
        k: What is added before taking the power.

    Raises:
        ShapeError: There are less than three axes.
        ArgumentError: There are no neighbours.
        DTypeError: The numbers are complex.

    >>> x = np.ones((1, 3, 1))
    >>> gt.nn.local_response_norm(x, 3, alpha=3.0, beta=1.0)[0, :, 0]
    array([0.33333333, 0.25      , 0.33333333])
    """
    name = "local_response_norm"
    x = real_only(name, floats(as_array(x)))
    check_axes(name, x, least=3, instead="give (samples, channels, …) with one further axis")
    check_least(name, 1, size=size)
    window = {"before": size // 2, "after": (size - 1) // 2}
    return _response(x, alpha=alpha / size, beta=float(beta), k=float(k), **window)
