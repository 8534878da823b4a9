"""The straight lines: ops on tensors that hold raw real arrays, with no mode on.

Each function built here checks that it is in the common case, computes, wraps and records, and
leaves everything else to `call`. They are written flat, since they are the cost of an eager op. The
conditions of a `Unary` or `Binary` record made here: every input is a raw float32 or float64 array
of the shape and dtype of the result, or a Python number; then the bare rules `op.flat_vjps` hold in
the walk. Handles are read here; with a mode on they are passed on as they are, since a trace has to
know which tensor it reads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.call import call, call_operator, record, recording_segment
from gradtape.core.evaluate import USUAL, evaluate, explain
from gradtape.core.kernels import LARGE, compute as compute_large
from gradtape.core.level import LEAVES, joint_segment
from gradtape.core.nested import Handle
from gradtape.core.op import Op
from gradtape.core.record import Binary, General, Record, Unary
from gradtape.core.state import CONTEXT_LEVEL, STATE
from gradtape.core.tensor import OBJECTS, Tensor

F64, F32, F16 = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.float16)
_REAL = frozenset((F32, F64))
ndarray, generic = np.ndarray, np.generic
Function = Callable[..., Any]
# On two arrays, ufuncs and Python's operators (which are ufuncs then) keep a dtype that NumPy does
# not know, such as bfloat16; what is composed of them may not (see `core.small_floats`).
_CLOSED = (np.ufunc, BuiltinFunctionType)


def _is_small(dtype: np.dtype[Any]) -> bool:
    """Whether what is composed of ufuncs would be rounded at each of them, or change the dtype."""
    return dtype.kind == "V" or dtype is F16


def fast_unary(op: Op) -> Function:
    """`function(x)` for an elementwise op of one input."""
    compute = op.fast
    assert compute is not None
    keep_out, keep_x = op.keeps((True,))
    closed = isinstance(compute, _CLOSED)

    def function(x: Any, /) -> Any:
        if type(x) is Tensor:
            value = x.value
            state = STATE.get()
            dtype = value.dtype
            if (dtype is F64 or dtype is F32) and state.plain:
                small = value.size < LARGE
                try:
                    out = compute(value) if small else compute_large(op, (value,), {})
                except Exception as error:
                    raise explain(op, error, (value,)) from None
                parent = x.record
                if parent is None:
                    return Tensor(out)
                segment = parent.segment
                if segment is not state.recorder.segment:
                    segment = recording_segment(segment, op)
                    if segment is None:
                        return Tensor(out)
                    if segment.policy is not None:
                        return record(segment, op, (parent,), (value,), out, {})
                if small:
                    kept, kept_out = value if keep_x else None, out if keep_out else None
                    return Tensor(out, Unary(op, segment, parent, kept, kept_out))
                kept = value if keep_x else Aval(value.shape, dtype)
                kept_out = out if keep_out else Aval(out.shape, dtype)
                return Tensor(out, General(op, segment, (parent,), (kept,), kept_out, {}, None))
        elif type(x) is ndarray and (closed or not _is_small(x.dtype)) and x.dtype is not OBJECTS:
            try:
                return compute(x) if x.size < LARGE else compute_large(op, (x,), {})
            except Exception as error:
                raise explain(op, error, (x,)) from None
        elif isinstance(x, Handle) and STATE.get().plain:
            return function(x.fresh())
        return call(op, (x,), {})

    return function


def fast_binary(op: Op, otherwise: Function = call) -> Function:
    """`function(x, y)` for an elementwise op of two inputs."""
    compute = op.fast
    assert compute is not None
    both, left, right = op.keeps((True, True)), op.keeps((True, False)), op.keeps((False, True))
    with_number = _with_number(op, otherwise, reflected=False)
    closed = isinstance(compute, _CLOSED)

    def function(x: Any, y: Any, /) -> Any:
        kind = type(x)
        if kind is Tensor:
            value, parent = x.value, x.record
        elif kind is ndarray:
            value, parent = x, None
        elif issubclass(kind, Handle) and STATE.get().plain:
            return function(x.fresh(), y)
        else:
            return otherwise(op, (x, y), {})
        kind2 = type(y)
        if kind2 is Tensor:
            value2, parent2 = y.value, y.record
        elif kind2 is ndarray:
            value2, parent2 = y, None
        elif (kind2 is float or kind2 is int) and kind is Tensor:
            return with_number(x, y)
        elif issubclass(kind2, Handle) and STATE.get().plain:
            return function(x, y.fresh())
        else:
            return otherwise(op, (x, y), {})
        state = STATE.get()
        if (parent is None and parent2 is None and state.plain) and (
            value.dtype is not OBJECTS is not value2.dtype
            and (closed or not (_is_small(value.dtype) or _is_small(value2.dtype)))
        ):
            small = value.size < LARGE > value2.size
            try:
                out = compute(value, value2) if small else compute_large(op, (value, value2), {})
            except Exception as error:
                raise explain(op, error, (value, value2)) from None
            return Tensor(out) if kind is Tensor or kind2 is Tensor else out
        dtype = value.dtype
        if not (dtype is value2.dtype and (dtype is F64 or dtype is F32) and state.plain):
            return otherwise(op, (x, y), {})
        small = value.size < LARGE > value2.size
        try:
            out = compute(value, value2) if small else compute_large(op, (value, value2), {})
        except Exception as error:
            raise explain(op, error, (value, value2)) from None
        if parent is None:
            segment = parent2.segment
            keep_out, keep, keep2 = right
        elif parent2 is None:
            segment = parent.segment
            keep_out, keep, keep2 = left
        else:
            segment = parent.segment
            keep_out, keep, keep2 = both
            segment2 = parent2.segment
            if segment is not segment2:
                # A leaf goes with any record of the active context; otherwise levels differ.
                if segment is LEAVES:
                    segment, segment2 = segment2, segment
                if segment2 is not LEAVES or segment.number != CONTEXT_LEVEL:
                    return otherwise(op, (x, y), {})
        if segment is not state.recorder.segment:
            segment = recording_segment(segment, op)
            if segment is None:
                return Tensor(out)
            if segment.policy is not None:
                return record(segment, op, (parent, parent2), (value, value2), out, {})
        if not small or value.shape != value2.shape:
            kept = value if keep else Aval(value.shape, dtype)
            kept2 = value2 if keep2 else Aval(value2.shape, dtype)
            kept_out = out if keep_out else Aval(out.shape, dtype)
            return Tensor(
                out, General(op, segment, (parent, parent2), (kept, kept2), kept_out, {}, None)
            )
        return Tensor(
            out,
            Binary(
                op,
                segment,
                parent,
                parent2,
                value if keep else None,
                value2 if keep2 else None,
                out if keep_out else None,
            ),
        )

    return function


def fast_reflected(op: Op) -> Function:
    """`tensor.__rop__(number)`: the same op with the tensor on the right."""
    with_number = _with_number(op, reflected=True)

    def reflected(x: Any, y: Any, /) -> Any:
        if type(x) is Tensor and (type(y) is float or type(y) is int):
            return with_number(x, y)
        if isinstance(x, Handle) and STATE.get().plain:
            return reflected(x.fresh(), y)
        return call_operator(op, (y, x), {})

    return reflected


def _with_number(op: Op, otherwise: Function = call, *, reflected: bool) -> Function:
    """`function(tensor, number)` for a binary op; the number stands on the left if reflected."""
    compute = op.fast
    assert compute is not None
    keep_out, keep_left, keep_right = op.keeps((not reflected, reflected))
    keep = keep_right if reflected else keep_left

    def function(x: Tensor, number: Any) -> Any:
        value = x.value
        state = STATE.get()
        dtype = value.dtype
        if not ((dtype is F64 or dtype is F32) and state.plain):
            return otherwise(op, (number, x) if reflected else (x, number), {})
        small = value.size < LARGE
        try:
            if small:
                out = compute(number, value) if reflected else compute(value, number)
            else:
                out = compute_large(op, (number, value) if reflected else (value, number), {})
        except Exception as error:
            raise explain(op, error, (value,)) from None
        parent = x.record
        if parent is None:
            return Tensor(out)
        segment = parent.segment
        if segment is not state.recorder.segment:
            segment = recording_segment(segment, op)
            if segment is None:
                return Tensor(out)
            if segment.policy is not None:
                above: tuple[Any, Any] = (None, parent) if reflected else (parent, None)
                values = (number, value) if reflected else (value, number)
                return record(segment, op, above, values, out, {})
        if not small:
            aval = Aval(value.shape, dtype)
            kept, kept_out = value if keep else aval, out if keep_out else aval
            parents: tuple[Any, Any] = (None, parent) if reflected else (parent, None)
            inputs = (number, kept) if reflected else (kept, number)
            return Tensor(out, General(op, segment, parents, inputs, kept_out, {}, None))
        kept, kept_out = value if keep else None, out if keep_out else None
        if reflected:
            return Tensor(out, Binary(op, segment, None, parent, number, kept, kept_out))
        return Tensor(out, Binary(op, segment, parent, None, kept, number, kept_out))

    return function


def fast_params(op: Op) -> Function:
    """`function(x, **params)` for an op of one input whose rule takes parameters."""
    compute = op.evaluate
    flat = op.outputs == 1 and op.tracked
    keep_out, keep_x = op.keeps((True,)) if flat else (False, False)
    # A result that shares memory takes no longer to make for large arrays.
    large = sys.maxsize if op.aliases else LARGE

    def function(x: Any, /, **params: Any) -> Any:
        if type(x) is Tensor:
            value = x.value
            dtype = value.dtype
            state = STATE.get()
            if flat and (dtype is F64 or dtype is F32) and type(value) is ndarray and state.plain:
                small = value.size < large
                try:
                    if small:
                        out = compute(np, value, **params)
                    else:
                        out = compute_large(op, (value,), params)
                except Exception as error:
                    raise explain(op, error, (value,)) from None
                parent = x.record
                if parent is None:
                    return Tensor(out)
                segment = parent.segment
                if segment is not state.recorder.segment:
                    segment = recording_segment(segment, op)
                    if segment is None:
                        return Tensor(out)
                if out.dtype is not dtype or segment.policy is not None:
                    out = record(segment, op, (parent,), (value,), out, params)
                    return out if type(out) is Tensor else Tensor(out)  # integers are not recorded
                kept = value if keep_x else Aval(value.shape, dtype)
                made: Record
                if small:
                    made = Unary(op, segment, parent, kept, out if keep_out else None, params)
                else:
                    kept_out = out if keep_out else Aval(out.shape, dtype)
                    made = General(op, segment, (parent,), (kept,), kept_out, params, None)
                if not out.shape and not segment.strict:
                    segment.remember(made)
                return Tensor(out, made)
        elif (type(x) is ndarray or isinstance(x, generic)) and (
            x.dtype.kind not in "VO" and x.dtype is not F16
        ):
            try:
                return compute(np, x, **params) if x.size < large else evaluate(op, (x,), params)
            except Exception as error:
                raise explain(op, error, (x,)) from None
        elif isinstance(x, Handle) and STATE.get().plain:
            return function(x.fresh(), **params)
        return call(op, (x,), params)

    return function


def fast_several(op: Op) -> Function:
    """`function(*arrays, **params)` for an op of any number of inputs with one result."""
    if op.outputs != 1 or op.effect is not None or op.recorded is not None or not op.tracked:
        return lambda *args, **params: call(op, args, params)
    compute, heavy = op.evaluate, op.heavy

    def function(*args: Any, **params: Any) -> Any:
        state = STATE.get()
        if not state.plain:
            return call(op, args, params)
        values: list[Any] = []
        parents: list[Any] = []
        segment, raw = None, True
        for arg in args:
            value, node = arg, None
            if type(arg) is not ndarray:
                tensor = arg.fresh() if isinstance(arg, Handle) else arg
                if type(tensor) is not Tensor:
                    return call(op, args, params)
                value, node, raw = tensor.value, tensor.record, False
            if type(value) is not ndarray or value.dtype not in USUAL or value.size >= LARGE:
                return call(op, args, params)
            if node is not None and segment is not node.segment:
                own = node.segment
                segment = own if segment is None else joint_segment(segment, own)
                if segment is None:  # levels differ
                    return call(op, args, params)
            values.append(value)
            parents.append(node)
        worth = heavy is not None and heavy(*values, **params)
        try:
            out = compute_large(op, values, params) if worth else compute(np, *values, **params)
        except Exception as error:
            raise explain(op, error, values) from None
        if segment is None:
            return out if raw else Tensor(out)
        if segment is not state.recorder.segment:
            segment = recording_segment(segment, op)
            if segment is None:
                return Tensor(out)
        if segment.policy is not None or type(out) is not ndarray or out.dtype not in _REAL:
            made = record(segment, op, parents, values, out, params)
            return made if isinstance(made, Tensor) else Tensor(made)
        keep_out, *keep = op.keeps(tuple([node is not None for node in parents]))
        kept = [
            value if own else Aval(value.shape, value.dtype)
            for value, own in zip(values, keep, strict=True)
        ]
        kept_out = out if keep_out else Aval(out.shape, out.dtype)
        node = General(op, segment, tuple(parents), tuple(kept), kept_out, params, None)
        if not out.shape and not segment.strict:
            segment.remember(node)
        return Tensor(out, node)

    return function
