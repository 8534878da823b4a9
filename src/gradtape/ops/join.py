"""Joining arrays: concatenate, stack and their relatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.copies import joined
from gradtape.core.define import general
from gradtape.core.lowering import Elements, Reader
from gradtape.core.op import EVERY, Facts
from gradtape.core.scalar import Scalar
from gradtape.errors import ShapeError, UnsupportedError
from gradtape.ops import lowered
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.cast import astype
from gradtape.ops.pad import crop_axis
from gradtape.ops.shape import atleast_1d, atleast_2d, atleast_3d, ravel, reshape
from gradtape.typing import Array, ArrayLike


def _sequence(arrays: Any, name: str) -> list[Array]:
    """The arrays to join; an array stands for the sequence along its first axis."""
    inputs = [as_array(x) for x in arrays]
    if not inputs:
        raise ShapeError(f"{name}: got no arrays, expected at least one")
    return inputs


# Every input's rule is called with all inputs: only this many are joined at a time, to keep the
# backward pass of a long list linear.
_AT_ONCE = 128


def _groups(inputs: list[Array]) -> list[list[Array]]:
    return [inputs[i : i + _AT_ONCE] for i in range(0, len(inputs), _AT_ONCE)]


def _raw(xp: Any, arrays: Sequence[Any]) -> Sequence[Any]:
    """Arrays of one module: constants of rules are NumPy's."""
    return arrays if xp is np else [xp.asarray(x) for x in arrays]


def _zeros_for(tangents: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    return [
        np.zeros(x.shape, x.dtype) if tangent is None else tangent
        for tangent, x in zip(tangents, inputs, strict=True)
    ]


# In compiled code an element is chosen among all inputs; beyond this, copying each is faster.
_CHOICES = 32


def _common(inputs: Sequence[Reader]) -> Any:
    if len(inputs) > _CHOICES:
        raise UnsupportedError(f"no native code to join {len(inputs)} arrays")
    return np.result_type(*(x.aval.dtype for x in inputs))


# ---- concatenate --------------------------------------------------------------------------------


def _infer_concatenate(*inputs: Aval, axis: int, bounds: tuple[int, ...]) -> Aval:
    first = inputs[0].shape
    for x in inputs:
        if x.shape[:axis] != first[:axis] or x.shape[axis + 1 :] != first[axis + 1 :]:
            raise ShapeError(
                f"concatenate: got {', '.join(map(str, inputs))}, expected the same sizes along "
                f"all axes but {axis}"
            )
    dtype = np.result_type(*(x.dtype for x in inputs))
    return Aval((*first[:axis], bounds[-1], *first[axis + 1 :]), dtype)


def _part(i: int, ct: Any, _out: Any, *_inputs: Any, axis: int, bounds: tuple[int, ...]) -> Any:
    return crop_axis(ct, axis, bounds[i], bounds[i + 1])


def _concatenate_element(
    i: Sequence[Scalar], *inputs: Reader, axis: int, bounds: tuple[int, ...]
) -> Scalar:
    dtype, k = _common(inputs), i[axis]
    element = scalar.constant(0, dtype)
    for x, start, stop in zip(inputs, bounds[:-1], bounds[1:], strict=True):
        if start == stop:
            continue
        inside = lowered.between(k, start, stop, bounds[-1])
        part = x(*i[:axis], k - start, *i[axis + 1 :], inside=inside)
        part = scalar.convert(part, dtype)
        element = part if start == 0 else scalar.where(k < start, element, part)
    return element


# Linear in all inputs together; transpose: each takes its part of ct. `bounds` are the places
# along `axis` where inputs begin and end, so that a rule need not add up the sizes before it.
concatenate_at: Callable[..., Any] = general(
    "concatenate",
    lambda xp, *arrays, axis, bounds: joined(xp, _raw(xp, arrays), axis),
    infer=_infer_concatenate,
    vjp_each=_part,
    jvp=lambda tangents, _out, *_inputs, axis, bounds: concatenate_at(
        *_zeros_for(tangents, _inputs), axis=axis, bounds=bounds
    ),
    facts=Facts(rearranges=True, layout="kept", carries=EVERY),
    lower=Elements(_concatenate_element),
)


def concatenate(
    arrays: Sequence[ArrayLike], /, axis: int | None = 0, *, dtype: Any = None
) -> Array:
    """The arrays one after the other along an axis they have.

    Args:
        arrays: What to join; of the same shape but for `axis`.
        axis: Along which to join; None flattens the arrays first.
        dtype: The dtype of the result, if not the one the arrays promote to.

    Raises:
        ShapeError: The shapes differ elsewhere, or there is nothing to join.
        AxisError: The arrays have no such axis.

    >>> gt.concatenate([np.ones(2), np.zeros(1)])
    array([1., 1., 0.])
    """
    inputs = _sequence(arrays, "concatenate")
    if axis is None:
        inputs, axis = [ravel(x) for x in inputs], 0
    if len(inputs) > _AT_ONCE:
        inputs = [concatenate(group, axis) for group in _groups(inputs)]
        return concatenate(inputs, axis, dtype=dtype)
    ndim = len(inputs[0].shape)
    axis = normalize_axis(axis, ndim, "concatenate")
    bounds = [0]
    for x in inputs:
        shape = x.shape
        if len(shape) != ndim:
            raise ShapeError(
                f"concatenate: got shapes {', '.join(str(x.shape) for x in inputs)}, expected the "
                "same number of axes; use reshape, or stack for arrays without the axis"
            )
        bounds.append(bounds[-1] + shape[axis])
    out = concatenate_at(*inputs, axis=axis, bounds=tuple(bounds))
    return out if dtype is None else astype(out, dtype, copy=False)


concat = concatenate


# ---- stack --------------------------------------------------------------------------------------


def _infer_stack(*inputs: Aval, axis: int) -> Aval:
    shape = inputs[0].shape
    if any(x.shape != shape for x in inputs):
        raise ShapeError(f"stack: got {', '.join(map(str, inputs))}, expected equal shapes")
    dtype = np.result_type(*(x.dtype for x in inputs))
    return Aval((*shape[:axis], len(inputs), *shape[axis:]), dtype)


def _stack_forward(xp: Any, *arrays: Any, axis: int) -> Any:
    grown = (*(slice(None),) * axis, None)
    # Graphs that are replayed have Python numbers among their operands.
    given = [xp.asarray(x) if isinstance(x, int | float | complex) else x for x in arrays]
    return joined(xp, [x[grown] for x in _raw(xp, given)], axis)


def _stack_element(i: Sequence[Scalar], *inputs: Reader, axis: int) -> Scalar:
    dtype = _common(inputs)
    entries = [scalar.convert(x(*i[:axis], *i[axis + 1 :]), dtype) for x in inputs]
    element = entries.pop()
    for number, entry in enumerate(entries):
        element = scalar.where(i[axis] == number, entry, element)
    return element


def _entry(i: int, ct: Any, _out: Any, *_inputs: Any, axis: int) -> Any:
    return reshape(crop_axis(ct, axis, i, i + 1), _inputs[i].shape)


# Linear in all inputs together; transpose: each takes its entry of ct
_stack: Callable[..., Any] = general(
    "stack",
    _stack_forward,
    infer=_infer_stack,
    vjp_each=_entry,
    jvp=lambda tangents, _out, *_inputs, axis: _stack(*_zeros_for(tangents, _inputs), axis=axis),
    facts=Facts(rearranges=True, layout="kept", carries=EVERY),
    lower=Elements(_stack_element),
)


def stack(arrays: Sequence[ArrayLike], /, axis: int = 0, *, dtype: Any = None) -> Array:
    """The arrays one after the other along a new axis.

    Args:
        arrays: What to join; all of one shape.
        axis: Where the new axis is in the result.
        dtype: The dtype of the result, if not the one the arrays promote to.

    Raises:
        ShapeError: The shapes differ, or there is nothing to join.
        AxisError: The result has no such axis.

    >>> gt.stack([np.ones(2), np.zeros(2)], axis=1)
    array([[1., 0.],
           [1., 0.]])
    """
    inputs = _sequence(arrays, "stack")
    axis = normalize_axis(axis, len(inputs[0].shape) + 1, "stack")
    if len(inputs) > _AT_ONCE:
        return concatenate([stack(group, axis) for group in _groups(inputs)], axis, dtype=dtype)
    out = _stack(*inputs, axis=axis)
    return out if dtype is None else astype(out, dtype, copy=False)


def vstack(arrays: Sequence[ArrayLike], /, *, dtype: Any = None) -> Array:
    """The arrays below one another: along the first axis, vectors as rows.

    Args:
        arrays: What to join; of the same shape but for the first axis.
        dtype: The dtype of the result, if not the one the arrays promote to.

    Raises:
        ShapeError: The shapes do not fit, or there is nothing to join.

    >>> gt.vstack([np.ones(2), np.zeros((2, 2))]).shape
    (3, 2)
    """
    rows = [atleast_2d(x) for x in _sequence(arrays, "vstack")]
    return concatenate(rows, 0, dtype=dtype)


def hstack(arrays: Sequence[ArrayLike], /, *, dtype: Any = None) -> Array:
    """The arrays beside one another: along the second axis, vectors along their only one.

    Args:
        arrays: What to join; of the same shape but for the axis they are joined along.
        dtype: The dtype of the result, if not the one the arrays promote to.

    Raises:
        ShapeError: The shapes do not fit, or there is nothing to join.

    >>> gt.hstack([np.ones(2), 0.0])
    array([1., 1., 0.])
    """
    inputs = [atleast_1d(x) for x in _sequence(arrays, "hstack")]
    axis = 0 if len(inputs[0].shape) == 1 else 1
    return concatenate(inputs, axis, dtype=dtype)


def dstack(arrays: Sequence[ArrayLike], /) -> Array:
    """The arrays behind one another: along the third axis.

    Raises:
        ShapeError: The shapes do not fit, or there is nothing to join.

    >>> gt.dstack([np.ones(2), np.zeros(2)]).shape
    (1, 2, 2)
    """
    return concatenate([atleast_3d(x) for x in _sequence(arrays, "dstack")], 2)


def column_stack(arrays: Sequence[ArrayLike], /) -> Array:
    """Vectors and matrices beside one another, vectors as columns.

    Raises:
        ShapeError: The shapes do not fit, or there is nothing to join.

    >>> gt.column_stack([np.ones(2), np.zeros((2, 2))]).shape
    (2, 3)
    """
    inputs = _sequence(arrays, "column_stack")
    columns = [reshape(x, (math.prod(x.shape), 1)) if len(x.shape) < 2 else x for x in inputs]
    return concatenate(columns, 1)
