"""Reductions: sums, means, extremes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import batch_first
from gradtape.core.define import general, linear
from gradtape.core.lazy import Deferred
from gradtape.core.lowering import Composite, Elements, Lowering, Reader, Reduction
from gradtape.core.op import EVERY, Facts, Zero, rule_reads
from gradtape.core.scalar import Scalar
from gradtape.core.tensor import Tensor
from gradtape.errors import ShapeError
from gradtape.ops.arguments import ARRAYS, EVERY_AXIS, as_array, normalize_axes
from gradtape.ops.cast import astype, conj_if_complex, over_count
from gradtape.ops.select import mask
from gradtape.ops.shape import reshape
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis

Axes = tuple[int, ...]
# The options that reductions share.
REDUCTIONS = {
    "x": "The array.",
    "axis": "One or several axes; None takes all of them.",
    "dtype": "The dtype to compute in.",
    "keepdims": "Whether the reduced axes stay, with size 1.",
    "initial": "What the result starts from.",
    "where": "Which elements take part, as truth values that broadcast to `x`.",
    "ddof": "What is subtracted from the number of elements to divide by.",
    "correction": "The same, by the name of the Array API.",
    "mean": "The mean, if it is known: as computed with `keepdims=True`.",
}
NO_AXIS = {"AxisError": "There is no such axis."}

# Reductions with `initial` or `where`.
masked = Deferred("gradtape.ops.arrays.ufunc_methods:reduce_where")

# A repeated value is written out up to this many elements; above, a view without memory of its own
# is cheaper.
_WRITE_OUT = 4096


def keep_axes(shape: tuple[int, ...], axis: Axes) -> tuple[int, ...]:
    """A shape with the reduced axes kept at size 1."""
    return tuple(1 if i in axis else n for i, n in enumerate(shape))


def reduced_shape(shape: tuple[int, ...], axis: Axes, keepdims: bool) -> tuple[int, ...]:
    """A shape after reducing over `axis`."""
    if keepdims:
        return keep_axes(shape, axis)
    return tuple(n for i, n in enumerate(shape) if i not in axis)


def count_over(shape: tuple[int, ...], axis: Axes) -> int:
    """How many elements are reduced to one."""
    return math.prod(shape[a] for a in axis)


def reducer(ufunc: np.ufunc, name: str) -> Callable[..., Any]:
    """`evaluate` of a reduction; NumPy's `reduce` costs less than half of its function `name`."""
    reduce = ufunc.reduce

    def evaluate(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
        if xp is np:
            return reduce(x, axis=axis, keepdims=keepdims)
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)

    return evaluate


def infer_reduction(evaluate: Callable[..., Any]) -> Callable[..., Aval]:
    """Shape rule of a reduction, with the dtype `evaluate` gives."""

    @functools.cache
    def result_dtype(dtype: Any) -> Any:
        return evaluate(np, np.ones(1, dtype), axis=(0,), keepdims=False).dtype

    def infer(x: Aval, axis: Axes, keepdims: bool) -> Aval:
        return Aval(reduced_shape(x.shape, axis, keepdims), result_dtype(x.dtype))

    return infer


def accumulated(x: Scalar) -> Scalar:
    """An element in the dtype sums and products are computed in: 64 bits for integers."""
    return scalar.convert(x, np.add.reduce(np.empty(0, x.dtype)).dtype)


def beside(reduced: Any, shape: tuple[int, ...], axis: Axes, keepdims: bool) -> Any:
    """A reduced value in a shape that broadcasts against the array it was reduced from."""
    if keepdims or len(axis) == len(shape):
        return reduced
    return reshape(reduced, keep_axes(shape, axis))


# ---- sum ----------------------------------------------------------------------------------------


def _spread_forward(xp: Any, x: Any, shape: tuple[int, ...], axis: Axes, keepdims: bool) -> Any:
    if x.shape and not keepdims:
        x = x.reshape(keep_axes(shape, axis))
    if math.prod(shape) > _WRITE_OUT:
        return xp.broadcast_to(x, shape)
    out = xp.empty(shape, x.dtype)
    out[...] = x
    return out


def _batch_spread(size: int, shape: tuple[int, ...], axis: Axes, **_params: Any) -> dict[str, Any]:
    return {"shape": (size, *shape), "axis": tuple(a + 1 for a in axis)}


# Batching of an op whose result has the sizes `shape`, along its parameter `axis`.
batch_spread = batch_first(_batch_spread)


def _spread_element(
    i: Sequence[Scalar], x: Reader, shape: tuple[int, ...], axis: Axes, keepdims: bool
) -> Scalar:
    if not x.aval.shape:
        return x()
    kept = [k for a, k in enumerate(i) if a not in axis]
    return x(*((0 if a in axis else k for a, k in enumerate(i)) if keepdims else kept))


# Repeats a reduced value along the axes of `shape` it was reduced over; transpose: sum
spread = linear(
    "spread",
    _spread_forward,
    lambda ct, _out, _x, shape, axis, keepdims: sum_over(ct, axis=axis, keepdims=keepdims),
    infer=lambda x, shape, axis, keepdims: Aval(shape, x.dtype),
    batch=batch_spread,
    aliases=True,
    facts=Facts(rearranges=True),
    lower=Elements(_spread_element, repeats=True),
)

sum_forward = reducer(np.add, "sum")

# d sum(x) = sum(dx); transpose: repeat
sum_over: Callable[..., Any] = linear(
    "sum",
    sum_forward,
    lambda ct, _out, _x, axis, keepdims: spread(ct, shape=_x.shape, axis=axis, keepdims=keepdims),
    infer=infer_reduction(sum_forward),
    kind="reduction",
    facts=Facts(carries=EVERY),
    lower=Reduction("add", accumulated),
)


@options(REDUCTIONS, raises=NO_AXIS)
def sum(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Array:
    """Sum of the elements, over all or the given axes.

    >>> gt.sum(np.ones((2, 3)), axis=0)
    array([2., 2., 2.])
    """
    if initial is not None or (where is not True and where is not None):
        return masked("sum", x, axis, dtype, keepdims, initial, where)
    x, axes = prepared("sum", x, axis, dtype)
    out = sum_over(x, axis=axes, keepdims=bool(keepdims))
    # Small integers are summed in int64: modulo their size it is the same.
    return out if dtype is None else astype(out, dtype, copy=False)


def prepared(name: str, x: ArrayLike, axis: Axis, dtype: Any = None) -> tuple[Array, Axes]:
    """The array a reduction is to run on, and its axes as a tuple."""
    if type(x) is not Tensor and not isinstance(x, ARRAYS):
        x = as_array(x)
    if dtype is not None:
        x = astype(x, dtype, copy=False)
    ndim = len(x.shape)
    return x, EVERY_AXIS[ndim] if axis is None else normalize_axes(axis, ndim, name)


def reduction(
    name: str,
    evaluate: Callable[..., Any] | Composite,
    *slopes: Callable[..., Any],
    infer: Callable[..., Any],
    lower: Lowering | ModuleType | None = None,
    chosen: bool = False,
) -> Callable[..., Any]:
    """Define a reduction over its parameter `axis` by its slopes: d out = Σ slope·dx.

    Args:
        name: The name of the op.
        evaluate: `evaluate(xp, *arrays, **params)`, or the composition it is.
        *slopes: Per input `slope(out, *inputs, **params)`, of the shape of the input, which is that
            of the first one. `Zero` for an input without derivative.
        infer: As of `general`, like everything below.
        lower: Likewise.
        chosen: Whether elements with slope 0 do not take part, so that their derivative is 0 even
            where the cotangent is infinite.
    """

    def times(change: Any, slope: Any) -> Any:
        return mask(change * slope, slope != 0) if chosen else change * slope

    def rule(slope: Callable[..., Any]) -> Callable[..., Any]:
        def vjp(ct: Any, out: Any, *inputs: Any, **params: Any) -> Any:
            ct = beside(ct, inputs[0].shape, *_over(params))
            return times(ct, conj_if_complex(slope(out, *inputs, **params)))

        vjp.reads = rule_reads(slope, skip=0)  # type: ignore[attr-defined]
        return slope if isinstance(slope, Zero) else vjp

    def jvp(tangents: Sequence[Any], out: Any, *inputs: Any, **params: Any) -> Any:
        total = None
        for tangent, slope in zip(tangents, slopes, strict=True):
            if tangent is not None and not isinstance(slope, Zero):
                term = times(tangent, slope(out, *inputs, **params))
                total = term if total is None else total + term
        axis, keepdims = _over(params)
        return sum_over(total, axis=axis, keepdims=keepdims)

    reads = (rule_reads(slope, skip=0) for slope in slopes)
    jvp.reads = frozenset().union(*reads)  # type: ignore[attr-defined]
    return general(
        name,
        evaluate,
        infer=infer,
        vjps=tuple(map(rule, slopes)),
        jvp=jvp,
        kind="reduction",
        lower=lower,
    )


def _over(params: dict[str, Any]) -> tuple[Axes, bool]:
    """The axes that a reduction is over, and whether they stay."""
    axis = params["axis"]
    return (axis,) if isinstance(axis, int) else axis, params.get("keepdims", False)


# ---- mean ---------------------------------------------------------------------------------------


def _mean_forward(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    if xp is np and x.dtype.char in "fdFD":
        return sum_forward(np, x, axis, keepdims) / count_over(x.shape, axis)
    return xp.mean(x, axis=axis, keepdims=keepdims)


def floats(x: Any) -> Any:
    """Integers and truth values as float64, in which NumPy computes their means."""
    return astype(x, np.float64) if x.dtype.kind in "biu" else x


def _mean_composition(x: Any, axis: Axes, keepdims: bool) -> Any:
    return sum_over(floats(x), axis=axis, keepdims=keepdims) / count_over(x.shape, axis)


# d mean(x) = mean(dx); transpose: repeat ct/n
mean_over = linear(
    "mean",
    _mean_forward,
    lambda ct, _out, _x, axis, keepdims: spread(
        over_count(ct, count_over(_x.shape, axis)), shape=_x.shape, axis=axis, keepdims=keepdims
    ),
    infer=infer_reduction(_mean_forward),
    kind="reduction",
    lower=Composite(_mean_composition),
)


_mean_where = Deferred("gradtape.ops.arrays.where_moments:mean_where")


@options(REDUCTIONS, raises=NO_AXIS)
def mean(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    where: Any = True,
) -> Array:
    """Arithmetic mean of the elements, over all or the given axes.

    >>> gt.mean(np.array([1.0, 2.0, 6.0]))
    np.float64(3.0)
    """
    if where is not True and where is not None:
        return _mean_where(x, axis, dtype, keepdims, where)
    x, axes = prepared("mean", x, axis, dtype)
    return mean_over(x, axis=axes, keepdims=bool(keepdims))


# ---- extremes -----------------------------------------------------------------------------------

_max_forward, _min_forward = reducer(np.maximum, "max"), reducer(np.minimum, "min")


def hits_of(x: Any, extreme: Any) -> Any:
    """1 where an element is the extreme, in a dtype that can count them: float16 ends at 65504."""
    return (x == extreme).astype(np.float32 if x.dtype == np.float16 else x.dtype)


def _shares_of(x: Any, axis: Axes, largest: bool) -> Any:
    hits = hits_of(x, (max_over if largest else min_over)(x, axis=axis, keepdims=True))
    return (hits / sum_over(hits, axis=axis, keepdims=True)).astype(x.dtype, copy=False)


# How much each element takes part in the extreme: equal shares if there are several. Piecewise
# constant, so its derivative is zero.
_shares = general(
    "extreme_shares",
    Composite(_shares_of),
    vjps=(Zero("extreme_shares: piecewise constant"),),
    self_adjoint=True,
)


def _extreme(name: str, evaluate: Callable[..., Any], largest: bool) -> Callable[..., Any]:
    """The op of an extreme; one that several elements reach is shared among them."""

    # d max(x) = Σ share·dx; as a `reduction` it would take up to a fifth longer
    def vjp(ct: Any, _out: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
        shares = _shares(x, axis=axis, largest=largest)
        return mask(beside(ct, x.shape, axis, keepdims) * shares, shares != 0)

    def jvp(tangents: Any, _out: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
        shares = _shares(x, axis=axis, largest=largest)
        return sum_over(tangents[0] * shares, axis=axis, keepdims=keepdims)

    def infer(x: Aval, axis: Axes, keepdims: bool) -> Aval:
        if count_over(x.shape, axis) == 0:
            raise ShapeError(f"{name}: got {x}, expected at least one element along axes {axis}")
        return of_any(x, axis, keepdims)

    of_any = infer_reduction(evaluate)
    return general(
        name,
        evaluate,
        infer=infer,
        vjps=(vjp,),
        jvp=jvp,
        kind="reduction",
        lower=Reduction("maximum" if largest else "minimum"),
    )


max_over = _extreme("max", _max_forward, largest=True)
min_over = _extreme("min", _min_forward, largest=False)


@options(REDUCTIONS, raises=NO_AXIS)
def max(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Array:
    """The largest element, over all or the given axes; several largest share the gradient.

    Args:
        where: Which elements take part, as truth values for which `initial` is needed.

    Raises:
        ShapeError: There are no elements.

    >>> gt.max(np.array([[1.0, 4.0], [3.0, 2.0]]), axis=0)
    array([3., 4.])
    """
    if initial is not None or (where is not True and where is not None):
        return masked("max", x, axis, None, keepdims, initial, where)
    x, axes = prepared("max", x, axis)
    return max_over(x, axis=axes, keepdims=bool(keepdims))


@options(REDUCTIONS, raises=NO_AXIS)
def min(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Array:
    """The smallest element, over all or the given axes.

    Args:
        where: Which elements take part, as truth values for which `initial` is needed.

    Raises:
        ShapeError: There are no elements.

    >>> gt.min(np.array([[1.0, 4.0], [3.0, 2.0]]), axis=0)
    array([1., 2.])
    """
    if initial is not None or (where is not True and where is not None):
        return masked("min", x, axis, None, keepdims, initial, where)
    x, axes = prepared("min", x, axis)
    return min_over(x, axis=axes, keepdims=bool(keepdims))


amax, amin = max, min
