"""The methods of NumPy's ufuncs: reduce, accumulate, reduceat, outer, at.

Where gradtape has a function for it (`np.add.reduce` is `sum`), that one answers. Other ufuncs are
called on parts of the array: for those that are associative, on halves, so that n elements take
log n calls; for the others one by one, in the order that NumPy states.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor, concrete
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axes, normalize_axis, real_only
from gradtape.ops.arithmetic import add, multiply
from gradtape.ops.arrays.known import without_history
from gradtape.ops.arrays.logcumsumexp import logcumsumexp
from gradtape.ops.arrays.running import cumulative_max, cumulative_min
from gradtape.ops.arrays.where_moments import truths
from gradtape.ops.assign import setitem
from gradtape.ops.cast import astype
from gradtape.ops.comparison import logical_and, logical_or
from gradtape.ops.cumulative import cumprod, cumsum
from gradtape.ops.gather import as_indices, scatter
from gradtape.ops.index import getitem
from gradtape.ops.join import concatenate, stack
from gradtape.ops.like import full_like
from gradtape.ops.norm import vector_norm
from gradtape.ops.product import prod
from gradtape.ops.reduce import max as max_of, min as min_of, reduced_shape, sum as sum_of
from gradtape.ops.select import maximum, minimum, where as where_of
from gradtape.ops.shape import broadcast_to, expand_dims, moveaxis, reshape
from gradtape.ops.softmax import logsumexp
from gradtape.ops.which import all as all_of, any as any_of
from gradtape.typing import Array, Axis

Function = Callable[..., Any]
_NOT_GIVEN = np._NoValue
_LOG2 = math.log(2.0)

# Associative, up to rounding.
_ASSOCIATIVE = frozenset(
    {
        np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp,
        np.logaddexp2, np.hypot, np.gcd, np.lcm, np.logical_and, np.logical_or, np.logical_xor,
        np.bitwise_and, np.bitwise_or, np.bitwise_xor,
    }
)  # fmt: skip
_COMPARISONS = frozenset(
    {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}
)


def _logsumexp2(x: Array, axis: Axis, keepdims: bool) -> Array:
    return logsumexp(x * _LOG2, axis=axis, keepdims=keepdims) / _LOG2


def _length(x: Array, axis: Axis, keepdims: bool) -> Array:
    return vector_norm(real_only("np.hypot.reduce", x), axis=axis, keepdims=keepdims)


# Reductions over one or several axes, `function(x, axis=, keepdims=)`.
_REDUCED: dict[Any, Function] = {
    np.add: sum_of,
    np.multiply: prod,
    np.maximum: max_of,
    np.minimum: min_of,
    np.logical_and: all_of,
    np.logical_or: any_of,
    np.logaddexp: logsumexp,
    np.logaddexp2: _logsumexp2,
    np.hypot: _length,
}
_ACCUMULATED: dict[Any, Function] = {
    np.add: cumsum,
    np.multiply: cumprod,
    np.maximum: cumulative_max,
    np.minimum: cumulative_min,
    np.logaddexp: logcumsumexp,
}


def ufunc_method(
    ufunc: np.ufunc, call: Function, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Answer `ufunc.method(*inputs, **options)`.

    Args:
        ufunc: The ufunc.
        call: The gradtape function that answers for a call of it.
        method: "reduce", "accumulate", "reduceat", "outer" or "at".
        inputs: Its arguments, tensors among them.
        options: Its options, without `out`.

    Raises:
        UnsupportedError: An option is not taken on a tensor.
        ShapeError: There is nothing to reduce, or the ufunc cannot be reduced.
    """
    if method in ("reduce", "accumulate", "reduceat"):
        if ufunc.nin != 2 or ufunc.nout != 1 or ufunc.signature is not None:
            raise ShapeError(
                f"np.{ufunc.__name__}.{method}: expected a ufunc of two arrays with one result"
            )
        inputs = (_prepared(ufunc, as_array(inputs[0])), *inputs[1:])
    return _METHODS[method](ufunc, call, *inputs, **options)


def _prepared(ufunc: np.ufunc, x: Array) -> Array:
    """The array to reduce; raises for a ufunc that cannot take its own results."""
    if ufunc.__name__.startswith("logical"):
        return x if x.dtype == np.bool_ else x != 0
    if ufunc in _COMPARISONS and x.dtype != np.bool_:
        raise DTypeError(
            f"np.{ufunc.__name__}: got {x.dtype}; its results are truth values, which cannot be "
            "compared with the next element; compare first, then use np.all or np.any"
        )
    return x


# ---- reduce -------------------------------------------------------------------------------------

# The ufunc of each reduction that takes `initial` and `where`, and its function.
_FOLDS: dict[str, tuple[np.ufunc, Function]] = {
    "sum": (np.add, add),
    "prod": (np.multiply, multiply),
    "max": (np.maximum, maximum),
    "min": (np.minimum, minimum),
    "all": (np.logical_and, logical_and),
    "any": (np.logical_or, logical_or),
}


def reduce_where(
    name: str, x: Any, axis: Axis, dtype: Any, keepdims: bool, initial: Any, where: Any
) -> Array:
    """Answer for `sum`, `prod`, `max`, `min`, `all` and `any` with `initial` or `where`."""
    ufunc, call = _FOLDS[name]
    x = _prepared(ufunc, as_array(x))
    return reduce(ufunc, call, x, axis, dtype, keepdims, initial, where is None or where, name)


def reduce(
    ufunc: np.ufunc,
    call: Function,
    x: Array,
    axis: Axis = 0,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = _NOT_GIVEN,
    where: Any = True,
    name: str = "",
) -> Array:
    """`ufunc.reduce` with all of its options but `out`."""
    name = name or f"np.{ufunc.__name__}.reduce"
    if dtype is not None:
        x = astype(x, dtype, copy=False)
    initial = None if initial is _NOT_GIVEN else initial
    given, start = initial is not None, as_array(0 if initial is None else initial)
    if given and (start.shape or (start.dtype.kind == "c" and x.dtype.kind != "c")):
        raise ArgumentError(
            f"{name}: got initial={initial!r} for {x.dtype}, expected one number that it can hold"
        )
    if where is not True and not given and ufunc.identity is None:
        raise ShapeError(
            f"{name}: got where=, expected initial= as well, for where nothing is left"
        )
    alone = not x.shape and axis in (0, -1)  # a number is taken for an array of one
    axes = () if alone else normalize_axes(axis, len(x.shape), name)
    neutral = None
    if where is not True:
        where = truths(name, where, x.shape)
        if (neutral := _neutral(ufunc, x.dtype)) is not None:
            x = where_of(where, x, neutral)
    if ufunc.identity is None and 0 in [x.shape[a] for a in axes]:
        if not given:
            raise ShapeError(f"{name}: got shape {x.shape}, expected at least one element")
        out = full_like(x, initial, shape=reduced_shape(x.shape, axes, False))
    elif where is not True and neutral is None:
        out = _folded_where(call, x, axes, initial, where)
    elif ufunc not in _REDUCED:
        out = _folded(ufunc, call, x, axes, initial, name)
    else:
        out = _REDUCED[ufunc](x, axis=axes, keepdims=bool(keepdims))
        if dtype is not None and ufunc in (np.add, np.multiply):
            out = astype(out, dtype, copy=False)  # small integers come back as int64
        # As in NumPy, what it starts from does not change the dtype.
        return call(out, astype(start, out.dtype, copy=False)) if given else out
    return expand_dims(out, axes) if keepdims else out


def _neutral(ufunc: np.ufunc, dtype: Any) -> Any:
    """A value without effect, to replace elements that take no part; None if there is none.

    For extremes it is the other end of the range, or NaN, which `fmax` and `fmin` ignore.
    """
    if ufunc.identity is not None:
        if dtype.kind == "b":
            return bool(ufunc.identity)
        # All bits of an unsigned number, where NumPy says -1.
        return np.iinfo(dtype).max if ufunc.identity < 0 and dtype.kind == "u" else ufunc.identity
    if ufunc in (np.fmax, np.fmin) and dtype.kind == "f":
        return math.nan
    if ufunc in (np.maximum, np.fmax, np.minimum, np.fmin) and dtype.kind in "iuf":
        least = ufunc in (np.maximum, np.fmax)
        if dtype.kind == "f":
            return -math.inf if least else math.inf
        return np.iinfo(dtype).min if least else np.iinfo(dtype).max
    return None


def _folded_where(
    call: Function, x: Array, axes: tuple[int, ...], initial: Any, where: Any
) -> Array:
    """A reduction one by one, which skips elements that take no part."""
    taken = moveaxis(broadcast_to(as_array(where), x.shape), axes, range(len(axes)))
    x = moveaxis(x, axes, range(len(axes)))
    out = full_like(x, initial, shape=x.shape[len(axes) :])
    for i in np.ndindex(x.shape[: len(axes)]):
        out = where_of(getitem(taken, i), call(out, getitem(x, i)), out)
    return out


def _folded(
    ufunc: np.ufunc, call: Function, x: Array, axes: tuple[int, ...], initial: Any, name: str
) -> Array:
    """A reduction by calls of the ufunc, with the reduced axes moved to the front."""
    associative = ufunc in _ASSOCIATIVE
    if len(axes) > 1 and not associative:
        raise ShapeError(f"{name}: got axes {axes}; the order matters; expected one axis")
    rest = reduced_shape(x.shape, axes, False)
    x = moveaxis(x, axes, range(len(axes)))
    x = reshape(x, (math.prod(x.shape[: len(axes)]), *rest))
    while associative and (size := x.shape[0]) > 1:
        half = size // 2
        met = call(getitem(x, slice(0, half)), getitem(x, slice(half, 2 * half)))
        x = concatenate([met, getitem(x, slice(2 * half, size))]) if size % 2 else met
    if not x.shape[0]:
        return full_like(x, ufunc.identity if initial is None else initial, shape=rest)
    rows = [getitem(x, i) for i in range(x.shape[0])]
    if initial is not None:
        first = astype(as_array(initial), x.dtype, copy=False) if associative else initial
        rows = [first, *rows]
    return functools.reduce(call, rows)


# ---- accumulate and reduceat --------------------------------------------------------------------


def _accumulate(
    ufunc: np.ufunc, call: Function, x: Array, axis: int = 0, dtype: Any = None
) -> Array:
    if dtype is not None:
        x = astype(x, dtype, copy=False)
    axis = normalize_axis(axis, len(x.shape), f"np.{ufunc.__name__}.accumulate")
    if ufunc in _ACCUMULATED:
        return _ACCUMULATED[ufunc](x, axis=axis)
    x = moveaxis(x, axis, 0)
    size, width = x.shape[0], 1
    if ufunc in _ASSOCIATIVE:
        # Each element is combined with the one `width` places before it; after 1, 2, 4, … with all.
        while width < size:
            met = call(getitem(x, slice(0, size - width)), getitem(x, slice(width, size)))
            x = concatenate([getitem(x, slice(0, width)), met])
            width *= 2
        return moveaxis(x, 0, axis)
    rows = list(itertools.accumulate((getitem(x, i) for i in range(size)), call))
    return moveaxis(stack(rows) if rows else x, 0, axis)


def _reduceat(
    ufunc: np.ufunc, call: Function, x: Array, indices: Any, axis: int = 0, dtype: Any = None
) -> Array:
    name = f"np.{ufunc.__name__}.reduceat"
    x = moveaxis(x, normalize_axis(axis, len(x.shape), name), 0)
    starts = as_indices(indices, name)
    starts = (concrete(starts, name) if isinstance(starts, Tensor) else starts).tolist()
    parts = []
    for start, stop in zip(starts, [*starts[1:], x.shape[0]], strict=bool(starts)):
        # As in NumPy, a part that would end before it begins is its first element.
        end = stop if start < stop else start + 1
        getitem(x, start)  # raises if it is out of bounds
        part = reduce(ufunc, call, getitem(x, slice(start, end)), 0, dtype)
        parts.append(part if end > start + 1 else astype(getitem(x, start), part.dtype, copy=False))
    if not parts:
        like = reduce(ufunc, call, getitem(x, slice(0, 1)), 0, dtype) if x.shape[0] else x
        return moveaxis(astype(getitem(x, slice(0, 0)), like.dtype, copy=False), 0, axis)
    return moveaxis(stack(parts), 0, axis)


# ---- outer and at -------------------------------------------------------------------------------


def _outer(ufunc: np.ufunc, call: Function, x: Array, y: Array) -> Any:
    x, y = as_array(x), as_array(y)
    return call(reshape(x, (*x.shape, *(1,) * len(y.shape))), y)


def _at(ufunc: np.ufunc, call: Function, target: Any, index: Any, *operand: Any) -> None:
    """Write `call(target[index], operand)` to the target, once for each time an index occurs."""
    name = f"{ufunc.__name__}.at"
    if not isinstance(target, Tensor):
        ufunc.at(target, *without_history(name, (index, *operand)))
        return
    numbers = np.arange(target.size).reshape(target.shape)
    places = getitem(numbers, index)
    values = [reshape(broadcast_to(_fitting(v, target.dtype), places.shape), -1) for v in operand]
    places = reshape(places, -1)
    flat = reshape(target, -1)
    if ufunc in (np.add, np.subtract):
        flat = call(flat, scatter(values[0], places, shape=flat.shape))
    else:
        # The first occurrence of each index, then the second of those that repeat, …
        for turn in turns(places, f"np.{name}"):
            part = getitem(flat, getitem(places, turn))
            new = call(part, *(getitem(v, turn) for v in values))
            flat = setitem(flat, new, getitem(places, turn))
    target[...] = reshape(flat, target.shape)


def _fitting(value: Any, dtype: Any) -> Any:
    """An operand as an array; a Python number does not decide the dtype."""
    weak = type(value) in (int, float, complex) and np.result_type(value, dtype) == dtype
    return np.asarray(value, dtype) if weak else as_array(value)


def turns(places: Any, name: str) -> list[Any]:
    """Which entries are first occurrences, which are second ones, and so on."""
    numbers = concrete(places, name) if isinstance(places, Tensor) else places
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    first = np.searchsorted(ordered, ordered, side="left")
    turn = np.empty(numbers.size, np.intp)
    turn[order] = np.arange(numbers.size) - first
    return [np.flatnonzero(turn == k) for k in range(int(turn.max(initial=-1)) + 1)]


_METHODS: dict[str, Function] = {
    "reduce": reduce,
    "accumulate": _accumulate,
    "reduceat": _reduceat,
    "outer": _outer,
    "at": _at,
}
