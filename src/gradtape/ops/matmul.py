"""Products of vectors and matrices: matmul (`@`), dot, inner, outer and their relatives."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call, call_operator, record, recording_segment
from gradtape.core.define import broadcast_sizes, multilinear, unbroadcast
from gradtape.core.fast import F32, F64
from gradtape.core.kernels import LARGE
from gradtape.core.lazy import Deferred
from gradtape.core.level import Leaf, joint_segment
from gradtape.core.lowering import Contraction
from gradtape.core.nested import Handle
from gradtape.core.op import Op
from gradtape.core.record import Binary, LargeBinary
from gradtape.core.state import STATE
from gradtape.core.tensor import Tensor
from gradtape.errors import ShapeError
from gradtape.ops.arguments import ARRAYS, as_array
from gradtape.ops.cast import conj_if_complex
from gradtape.ops.contract import tensordot
from gradtape.ops.shape import ravel, reshape
from gradtape.typing import Array, ArrayLike

ndarray = np.ndarray
F = TypeVar("F", bound=Callable[..., Any])


# ---- the forward and its shape ------------------------------------------------------------------


def _shape(x: tuple[Any, ...], y: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape of a product of arrays of shapes `x` and `y`, checked."""
    if not x or not y:
        raise ShapeError(
            f"matmul: got shapes {x} and {y}, expected at least one axis of both; use * for numbers"
        )
    inner = y[-2] if len(y) > 1 else y[0]
    if x[-1] != inner:
        raise ShapeError(
            f"matmul: got shapes {x} and {y}, expected the last axis of the first ({x[-1]}) as "
            f"long as the {'second to last' if len(y) > 1 else 'only'} axis of the second "
            f"({inner}); transpose or reshape one of them"
        )
    try:
        batch = broadcast_sizes(x[:-2], y[:-2])
    except ShapeError as error:
        raise ShapeError(
            f"matmul: got shapes {x} and {y}, expected axes before the last two that broadcast"
        ) from error
    return batch + x[-2:-1] + (y[-1:] if len(y) > 1 else ())


def _evaluate(xp: Any, x: Any, y: Any) -> Any:
    ndim, ndim2 = np.ndim(x), np.ndim(y)
    try:
        if 0 < ndim < 3 and 0 < ndim2 < 3:
            return x.dot(y)  # as the fast path does, to the last bit
        if ndim > 2 and ndim2 == 2 and x.flags.c_contiguous:
            # One large product rather than many small ones; reshaping copies nothing here.
            flat = x.reshape((math.prod(x.shape[:-1]), x.shape[-1])).dot(y)
            return flat.reshape((*x.shape[:-1], y.shape[-1]))
        return xp.matmul(x, y)
    except ValueError:
        _shape(np.shape(x), np.shape(y))
        raise


# ---- rules --------------------------------------------------------------------------------------


def _by_flat_left(ct: Any, _out: Any, _x: Any, y: Any) -> Any:
    """ct·yᵀ for real arrays of one or two axes; `ct` and `y` tell how many x has."""
    if y.ndim == 2:
        return _product(ct, y.mT)
    return _outer(ct, y) if ct.ndim else y * ct


def _by_flat_right(ct: Any, _out: Any, x: Any, _y: Any) -> Any:
    """xᵀ·ct for real arrays of one or two axes; `ct` and `x` tell how many y has."""
    if x.ndim == 2:
        return _product(x.mT, ct)
    return _outer(x, ct) if ct.ndim else x * ct


def _product(x: Any, y: Any) -> Any:
    """`x @ y` of at most two axes; of raw arrays by `dot`, which starts faster."""
    if type(x) is ndarray and type(y) is ndarray:
        return x.dot(y)
    return x @ y


def _outer(x: Any, y: Any) -> Any:
    if type(x) is ndarray and type(y) is ndarray:
        return np.multiply.outer(x, y)
    return reshape(x, (x.shape[0], 1)) * y


def by_left(ct: Any, _out: Any, _x: Any, y: Any) -> Any:
    """ct·yᴴ, summed where `_x` was broadcast: the cotangent of the left factor."""
    y, shape = conj_if_complex(y), _x.shape
    ndim, ndim2 = len(shape), y.ndim
    if ndim <= 2 and ndim2 <= 2:
        return _by_flat_left(ct, _out, _x, y)
    if ndim2 == 1:
        return reshape(ct, (*ct.shape, 1)) * y
    if ndim <= 2:
        # Summed over the batch of y in one product.
        others = (*range(ndim2 - 2), ndim2 - 1)
        return tensordot(ct, y, (others if ndim == 2 else tuple(range(ct.ndim)), others))
    return unbroadcast(matmul(ct, y.mT), shape)


def _by_right(ct: Any, _out: Any, x: Any, _y: Any) -> Any:
    """xᴴ·ct, summed where `_y` was broadcast: the cotangent of the right factor."""
    x, shape = conj_if_complex(x), _y.shape
    ndim, ndim2 = x.ndim, len(shape)
    if ndim <= 2 and ndim2 <= 2:
        return _by_flat_right(ct, _out, x, _y)
    if ndim == 1:
        return reshape(x, (x.shape[0], 1)) * reshape(ct, (*ct.shape[:-1], 1, ct.shape[-1]))
    if ndim2 <= 2:
        # Summed over the batch of x in one product.
        others = tuple(range(ndim - 1))
        return tensordot(x, ct, (others, others))
    return unbroadcast(x.mT @ ct, shape)


def _batch(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> tuple[Any, int]:
    (x, y), (axis, axis2) = args, axes
    ndim, ndim2 = len(x.shape) - (axis is not None), len(y.shape) - (axis2 is not None)
    x = x if axis is None else move_batch_axis(x, axis)
    y = y if axis2 is None else move_batch_axis(y, axis2)

    def product(x: Any, y: Any) -> Any:
        # NumPy's own operator would give float32 for bfloat16.
        return call(op, (x, y), params)

    # Where only one array is batched, the batch can be rows of it, or broadcast.
    if axis2 is None and ndim2 <= 2:
        return product(x, y), 0
    if axis is None and ndim <= 2:
        if ndim2 > 1:
            return product(x, y), 0
        return product(y, x.mT if ndim == 2 else x), 0
    matrix = max(ndim, ndim2, 2)
    x = _matrices(x, ndim, matrix, axis is not None, 1)
    y = _matrices(y, ndim2, matrix, axis2 is not None, 0)
    out = product(x, y)
    if ndim > 1 and ndim2 > 1:
        return out, 0  # a reshaped result would be a view, and copied to be owned by the caller
    shape = out.shape[:-2] + (out.shape[-2:-1] if ndim > 1 else ())
    return reshape(out, shape + (out.shape[-1:] if ndim2 > 1 else ())), 0


def _matrices(x: Any, ndim: int, matrix: int, batched: bool, place: int) -> Any:
    """`x` with a vector made a row or column, and axes of size 1 between batch and its own."""
    shape = x.shape[batched:]
    if ndim == 1:
        shape = (1, *shape) if place else (*shape, 1)
    return reshape(x, x.shape[:batched] + (1,) * (matrix - len(shape)) + shape)


# d(x·y) = dx·y + x·dy
_general = multilinear(
    "matmul",
    _evaluate,
    by_left,
    _by_right,
    again=operator.matmul,
    infer=lambda x, y: Aval(_shape(x.shape, y.shape), np.result_type(x.dtype, y.dtype)),
    batch=_batch,
    kind="contraction",
    lower=Contraction(),
)
matmul_op: Op = _general.op  # type: ignore[attr-defined]
matmul_op.flat_vjps = (_by_flat_left, _by_flat_right)


# ---- the fast path ------------------------------------------------------------------------------


def _fast(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """`function(x, y)` with a straight line for raw vectors and matrices, as `core.fast` has."""
    op = matmul_op
    keeps = {
        wanted: op.keeps(wanted)[1:] for wanted in ((True, True), (True, False), (False, True))
    }

    def function(x: Any, y: Any, /) -> Any:
        parent: Any
        parent2: Any
        kind, kind2 = type(x), type(y)
        value, parent = (x.value, x.record) if kind is Tensor else (x, None)
        value2, parent2 = (y.value, y.record) if kind2 is Tensor else (y, None)
        if not (type(value) is ndarray and type(value2) is ndarray):
            if (isinstance(x, Handle) or isinstance(y, Handle)) and STATE.get().plain:
                return function(*(v.fresh() if isinstance(v, Handle) else v for v in (x, y)))
            return otherwise(op, (x, y), {})
        state = STATE.get()
        dtype = value.dtype
        if not (
            dtype is value2.dtype
            and (dtype is F64 or dtype is F32)
            and 0 < value.ndim < 3
            and 0 < value2.ndim < 3
            and state.plain
        ):
            return otherwise(op, (x, y), {})
        try:
            out = value.dot(value2)
        except ValueError:
            _shape(value.shape, value2.shape)
            raise
        if parent is None and parent2 is None:
            return Tensor(out) if kind is Tensor or kind2 is Tensor else out
        segment = parent2.segment if parent is None else parent.segment
        if parent2 is not None and parent2.segment is not segment:
            segment = joint_segment(segment, parent2.segment)
            if segment is None:
                return otherwise(op, (x, y), {})
        if segment is not state.recorder.segment:
            segment = recording_segment(segment, op)
            if segment is None:
                return Tensor(out)
            if segment.policy is not None:
                return record(segment, op, (parent, parent2), (value, value2), out, {})
        keep, keep2 = keeps[parent is not None, parent2 is not None]
        kept, kept2 = value if keep else None, value2 if keep2 else None
        if (keep and value.size >= LARGE and type(parent) is not Leaf) or (
            keep2 and value2.size >= LARGE and type(parent2) is not Leaf
        ):
            return Tensor(out, LargeBinary(op, segment, parent, parent2, kept, kept2, None))
        return Tensor(out, Binary(op, segment, parent, parent2, kept, kept2, None))

    return function


def _reflected(y: Tensor, x: Any) -> Any:
    return call_operator(matmul_op, (x, y), {})


def _augmented(x: Tensor, y: Any) -> Tensor:
    return x.augment(matmul, y)


_sparse_matmul = Deferred("gradtape.ops.sparse.functions:matmul")


def _with_sparse(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """A product off the fast path: sparse matrices of SciPy go to `gt.scipy.sparse.matmul`."""

    def product(op: Op, args: tuple[Any, Any], params: dict[str, Any]) -> Any:
        for arg in args:
            if not isinstance(arg, ARRAYS) and hasattr(arg, "tocsr"):
                return _sparse_matmul(*args)
        return otherwise(op, args, params)

    return product


Tensor.__matmul__ = _fast(_with_sparse(call_operator))  # type: ignore[method-assign]
Tensor.__rmatmul__ = _reflected  # type: ignore[method-assign]
Tensor.__imatmul__ = _augmented  # type: ignore[attr-defined]


# ---- public functions ---------------------------------------------------------------------------


def _declared(declaration: F) -> F:
    """The function of the fast path under the signature and docstring of a declaration."""
    return functools.update_wrapper(_fast(_with_sparse(call)), declaration)  # type: ignore[return-value]


@_declared
def matmul(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Matrix product; also of vectors, and of stacks of matrices whose first axes broadcast.

    One of the two may be a sparse matrix of SciPy.

    Raises:
        ShapeError: An array has no axes, or the axes that meet differ in size.

    >>> gt.matmul(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0]))
    array([3., 7.])
    """


def dot(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Sum of products over the last axis of `x` and the second to last of `y`.

    Numbers are multiplied, vectors and matrices as by `matmul`.

    Raises:
        ShapeError: The axes that meet differ in size.

    >>> gt.dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    np.float64(11.0)
    """
    x, y = as_array(x), as_array(y)
    if not x.shape or not y.shape:
        return x * y
    if len(y.shape) == 1 or (len(x.shape) <= 2 and len(y.shape) == 2):
        return matmul(x, y)
    _meet("dot", x, y, -2)
    return tensordot(x, y, (-1, -2))


def _meet(name: str, x: Any, y: Any, axis: int) -> None:
    if x.shape[-1] != y.shape[axis]:
        raise ShapeError(
            f"{name}: got shapes {x.shape} and {y.shape}, expected axis -1 of the first as long as "
            f"axis {axis} of the second; transpose or reshape one of them"
        )


def vdot(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Sum of products of all elements, the first conjugated.

    Raises:
        ShapeError: The numbers of elements differ.

    >>> gt.vdot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    np.float64(11.0)
    """
    x, y = ravel(x), ravel(y)
    _meet("vdot", x, y, -1)
    return matmul(conj_if_complex(x), y)


def inner(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Sum of products over the last axes of both; numbers are multiplied.

    Raises:
        ShapeError: The last axes differ in size.

    >>> gt.inner(np.ones((2, 3)), np.ones((4, 3))).shape
    (2, 4)
    """
    x, y = as_array(x), as_array(y)
    if not x.shape or not y.shape:
        return x * y
    _meet("inner", x, y, -1)
    return matmul(x, y) if len(y.shape) == 1 else tensordot(x, y, (-1, -1))


def outer(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Products of each element of `x` with each of `y`, both taken as vectors.

    >>> gt.outer(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([[3., 4.],
           [6., 8.]])
    """
    return _outer(ravel(x), ravel(y))


def kron(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Kronecker product: blocks of `y`, each times an element of `x`.

    >>> gt.kron(np.eye(2), np.array([[1.0, 2.0]]))
    array([[1., 2., 0., 0.],
           [0., 0., 1., 2.]])
    """
    x, y = as_array(x), as_array(y)
    ndim = max(len(x.shape), len(y.shape))
    sizes = (1,) * (ndim - len(x.shape)) + x.shape
    sizes2 = (1,) * (ndim - len(y.shape)) + y.shape
    blocks = reshape(x, tuple(m for n in sizes for m in (n, 1))) * reshape(
        y, tuple(m for n in sizes2 for m in (1, n))
    )
    return reshape(blocks, tuple(n * m for n, m in zip(sizes, sizes2, strict=True)))
