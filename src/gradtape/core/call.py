"""Dispatch: the highest level among the operands handles an op, calling it again one level down.

`call` is the door for every op that is not on a fast path: modes see the call first, then levels,
and at the bottom the op's forward runs on raw arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.backends import is_raw
from gradtape.core.aval import aval_of
from gradtape.core.checkpoint_statistics import STATISTICS
from gradtape.core.evaluate import evaluate
from gradtape.core.hooks import HOOKS
from gradtape.core.kernels import LARGE, is_large, numpy_is_quiet
from gradtape.core.level import LEAVES, WITH_MODES, Level, Node, Segment
from gradtape.core.needed_ops import needed
from gradtape.core.nested import unshell, wrap
from gradtape.core.op import Op
from gradtape.core.recomputable import Recomputable, RecordPolicy, source_of
from gradtape.core.record import Constant, General, Output
from gradtape.core.state import (
    CONTEXT_LEVEL,
    Mode,
    current,
    current_context,
    run_inside,
    seen_by,
)
from gradtape.core.tape_modes import modes_for
from gradtape.core.tensor import OBJECTS, Tensor, as_value, is_extended_float
from gradtape.errors import ContextError, GradtapeError, LeakedTensorError

Modes = tuple[Mode, ...]
_PYTHON_NUMBERS = (int, float, complex)
_RAW = (np.ndarray, np.generic)


def call(op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run an op on any mix of tensors, arrays and numbers."""
    modes = modes_for(args) if WITH_MODES else current().modes
    return _through(modes, modes, op, args, params) if modes else dispatch(op, args, params)


def call_rewritten(op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """`call` for an op of a graph: modes that rewrite were applied when it was traced."""
    every = current().modes
    modes = tuple([mode for mode in every if mode.kind != "rewriting"])
    return _through(every, modes, op, args, params)


def call_operator(op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """`call` for Python's operators: leaves operands it does not know to their own classes."""
    for arg in args:
        if not (isinstance(arg, Tensor | list | tuple) or is_raw(arg)):
            return needed.with_sparse(op, args) if hasattr(arg, "tocsr") else NotImplemented
    return call(op, args, params)


def _through(
    every: Modes, modes: Modes, op: Op, args: Sequence[Any], params: dict[str, Any]
) -> Any:
    """Run an op with the first of `modes` wrapped around the rest of them.

    Ops that a mode itself calls are seen by the rest only; those that the op runs, by `every` mode.
    """
    if not modes:
        return dispatch(op, args, params)
    mode, rest = modes[0], modes[1:]
    if mode.kind == "tracing":
        return mode.run(op, tuple(args), params, lambda *call: _through(every, rest, *call))
    if mode.kind == "rewriting" and op.graph is not None:
        return _through(every, rest, op, args, params)  # it was applied when the graph was traced
    passes = getattr(mode, "passes", None)
    if passes is not None and passes(op, args):
        return _through(every, rest, op, args, params)

    inner = current().inner

    def proceed(op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return run_inside(seen_by(every, inner=inner), _through, every, rest, op, args, params)

    return run_inside(seen_by(rest), mode.run, op, tuple(args), params, proceed)


def dispatch(op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Hand an op to the highest level among its operands, or evaluate it if there is none."""
    operands = []
    top: Level | None = None
    any_tensor = False
    for arg in args:
        if type(arg) is np.ndarray and arg.dtype is not OBJECTS:
            operands.append(arg)
            continue
        operand = arg
        if not isinstance(arg, Tensor):
            try:
                operand = as_value(arg)
            except GradtapeError as error:
                HOOKS.operand_refused(error, op.name)
                raise
        if isinstance(operand, Tensor):
            any_tensor = True
            operand = unshell(operand)
            if isinstance(operand, Tensor) and operand.record is not None:
                level = operand.record.segment
                if top is None or level.number > top.number:
                    top = level
        operands.append(operand)
    if top is None:
        out = evaluate(op, operands, params)
    elif isinstance(top, Segment):
        out = _reverse(top, op, operands, params)
    else:
        if not top.active:
            raise leaked(op, top)
        out = top.process(op, operands, params)
    if not any_tensor:
        return out
    if op.outputs != 1:
        # A loop may carry Python numbers along.
        return tuple(
            o if isinstance(o, Tensor) or type(o) in _PYTHON_NUMBERS else Tensor(o) for o in out
        )
    return out if isinstance(out, Tensor) else Tensor(out)


def leaked(op: Op, level: Level) -> LeakedTensorError:
    """The error for a tensor of a transform that has returned."""
    return LeakedTensorError(
        f"{op.name}: got a tensor of a {level.label} that has already returned; "
        "return the value from the function instead of storing the tensor outside"
    )


# ---- reverse mode -----------------------------------------------------------------------------


def _reverse(segment: Segment, op: Op, operands: list[Any], params: dict[str, Any]) -> Any:
    """Run an op one level down and record it in `segment`."""
    if op.tracked:
        recording = recording_segment(segment, op)
    elif segment.strict and not segment.active:
        raise leaked(op, segment)
    else:
        recording = None
    below: list[Any] = []
    parents: list[Node | None] = []
    raw = True
    for operand in operands:
        node = operand.record if isinstance(operand, Tensor) else None
        if node is None or _lower(node.segment, segment):
            below.append(operand)
            parents.append(None)
            raw = raw and node is None
            continue
        if recording is not None and node.segment not in (segment, LEAVES):
            raise _foreign(op, node.segment)
        value = operand.value
        raw = raw and type(value) is np.ndarray
        below.append(value)
        parents.append(node)
    count = None
    if op.recorded is not None and recording is not None:
        params, count = op.recorded(params)
    out = evaluate(op, below, params) if raw else dispatch(op, below, params)
    if recording is None:
        return out
    made = record(recording, op, parents, below, out, params)
    return made if count is None else made[:count]


def _lower(level: Level, than: Level) -> bool:
    """Whether a level is below another; leaves count as being on the level of contexts."""
    return max(level.number, CONTEXT_LEVEL) < max(than.number, CONTEXT_LEVEL)


def recording_segment(segment: Segment, op: Op) -> Segment | None:
    """The segment to record an op on a tensor of `segment` in; None if recording is off.

    Raises:
        ContextError: The tensor was recorded in a context that is not the active one.
        LeakedTensorError: The tensor belongs to a transform that has returned.
    """
    state = current()
    if segment.number <= state.floor and state.stops(segment.number):
        return None
    if segment.number <= CONTEXT_LEVEL:
        active = current_context().tape.segment
        if segment is not LEAVES and segment is not active:
            raise _foreign(op, segment)
        return active
    if segment.active:
        return segment
    if segment.strict:
        raise leaked(op, segment)
    return None


def _foreign(op: Op, level: Level) -> ContextError:
    return ContextError(
        f"{op.name}: got a tensor recorded by {level.label}, while context "
        f"{current_context().id} is active; gradients could not flow back to where it came from; "
        "use detach(), or compute it in this context"
    )


def record(
    segment: Segment,
    op: Op,
    parents: Sequence[Any],
    inputs: Sequence[Any],
    out: Any,
    params: dict[str, Any],
) -> Any:
    """Wrap the result(s) of an op in tensors with a record that keeps what the rules read.

    Where a policy decides what is kept, the record can compute the rest again.
    """
    policy = current().policy or segment.policy
    if policy is not None:
        return record_recomputable(policy, segment, op, parents, inputs, out, params)
    keep_out, *keep = op.keeps(tuple([parent is not None for parent in parents]))
    kept = tuple(
        [value if own else aval_of(value) for value, own in zip(inputs, keep, strict=True)]
    )
    if op.outputs == 1:
        if not is_differentiable(out):
            return out
        kept_out = out if keep_out else aval_of(out)
        made = General(op, segment, tuple(parents), kept, kept_out, params, None)
        if not kept_out.shape and not segment.strict:
            segment.remember(made)
        return wrap(out, made)
    avals = tuple(aval_of(o) for o in out)
    node = General(op, segment, tuple(parents), kept, out if keep_out else avals, params, avals)
    return tuple(wrap(o, Output(node, i)) if is_differentiable(o) else o for i, o in enumerate(out))


def record_recomputable(
    policy: RecordPolicy,
    segment: Segment,
    op: Op,
    parents: Sequence[Any],
    inputs: Sequence[Any],
    out: Any,
    params: dict[str, Any],
    kind: type[Recomputable] = Recomputable,
) -> Any:
    """`record` for a stretch whose policy decides which results are kept."""
    if op.outputs == 1 and not is_differentiable(out):
        return out
    state = current()
    made = kind(
        op,
        segment,
        tuple(parents),
        tuple([_held(*pair, policy.block) for pair in zip(parents, inputs, strict=True)]),
        aval_of(out) if op.outputs == 1 else tuple(map(aval_of, out)),
        params,
        policy,
        flat=_is_flat(op, parents, inputs, out),
        floor=(state.floor, state.spared),
    )
    # Who a function is of knows its effects: what the host was asked, it is not asked again. And
    # NumPy computes large arrays itself where it is to report errors, which the walk turns off.
    must = op.effect in ("host", "hook") or (is_large(inputs) and not numpy_is_quiet())
    if must or policy.keeps(made, out):
        made.keep(out)
    else:
        made.note(out)
    statistics = STATISTICS.get()
    if statistics is not None:
        statistics.note(made, out)
    if op.outputs == 1:
        if not made.avals.shape and not segment.strict:
            segment.remember(made)
        return wrap(out, made)
    return tuple(wrap(o, Output(made, i)) if is_differentiable(o) else o for i, o in enumerate(out))


def _held(parent: Node | None, value: Any, block: int) -> Any:
    """What a recomputable record holds of an operand: an `Aval` if its parent can restore it."""
    source = source_of(parent)
    if source is None:
        return value
    if source[0].block != block:
        source[0].pin(source[1], value)
    return aval_of(value)


def _is_flat(op: Op, parents: Sequence[Any], inputs: Sequence[Any], out: Any) -> bool:
    """Whether the fast paths would have made the record: the bare rules hold, to the last bit."""
    if op.fast is None or len(op.flat_vjps) != len(inputs) or not isinstance(out, _RAW):
        return False
    if out.size >= LARGE or out.dtype not in (np.float64, np.float32):
        return False
    return all(
        type(x) in (float, int)
        if parent is None and not hasattr(x, "dtype")
        else isinstance(x, _RAW) and x.shape == out.shape and x.dtype == out.dtype
        for parent, x in zip(parents, inputs, strict=True)
    )


def is_differentiable(value: Any) -> bool:
    """Whether a value is of a dtype that has derivatives."""
    dtype = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    return dtype.kind in "fc" or is_extended_float(dtype)


def lift(value: Any, like: Any) -> Any:
    """Make `value` a constant of every level where `like` is recorded and `value` is not.

    The derivative of a linear function does not depend on its argument, yet its own derivative is
    0 and not an error: it has to be on the tapes its primal is on.
    """
    value = value.fresh() if isinstance(value, Tensor) else value
    like = unshell(like)
    if not isinstance(like, Tensor) or like.record is None:
        return value
    level = like.record.segment
    own = value.record if isinstance(value, Tensor) else None
    if own is not None and not _lower(own.segment, level):
        return wrap(lift(value.value, like if _lower(level, own.segment) else like.value), own)
    value = lift(value, like.value)
    if not (level.active and isinstance(level, Segment)) or current().stops(level.number):
        return value
    segment = current_context().tape.segment if level is LEAVES else level
    return wrap(value, Constant(segment, aval_of(value)))
