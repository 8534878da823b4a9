"""The door to raw arrays: runs the forward of an op, and its derivative rules.

`evaluate` runs the forward of an op, `pull` and `push` apply its rules. They choose who does the
work: a native kernel for large arrays, wider floats for dtypes that NumPy does not know, or the
op's own function on NumPy or CuPy. The fast paths (`core.fast`) come here with large arrays only.

Rules are written with operators. On raw arrays these are NumPy's, which bypass kernels
and modes; to involve those, a rule is applied to tensors that hold the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gradtape.backends import array_module
from gradtape.core.aval import aval_of
from gradtape.core.broadcasting import broadcast_sizes
from gradtape.core.copies import converted
from gradtape.core.finite import is_finite, is_traced
from gradtape.core.kernels import (
    LARGE,
    Task,
    by_kernels,
    compute,
    is_large,
    pull as pull_by_kernels,
)
from gradtape.core.level import WITH_MODES
from gradtape.core.needed_ops import needed
from gradtape.core.op import Op, Rule
from gradtape.core.small_floats import (
    FLOAT16,
    computes_wide,
    evaluate_narrow,
    evaluates_wide,
    widened,
)
from gradtape.core.state import STATE, WATCHING, rules_apart, run_inside, seen_by, unseen
from gradtape.core.tensor import Tensor
from gradtape.errors import (
    AxisError,
    DTypeError,
    GradtapeError,
    IndexingError,
    LinAlgError,
    ShapeError,
)

# Ops that run other ops, or users' functions, which own their arrays.
_OF_USERS = ("custom", "host", "graph", "control")
# Ops whose rules users wrote.
_RULES_OF_USERS = ("custom", "host")
# Set on an error that a user's function raised: it stays as it is, also in compiled functions.
_OF_USER = "_gradtape_of_user"


class NotFiniteError(Exception):
    """A user's rule was about to get a cotangent that is not finite; only careful walks do that."""


# ---- forward ----------------------------------------------------------------------------------


# Dtypes of which every op has NumPy's own arithmetic.
USUAL = frozenset(map(np.dtype, ("float32", "float64", "int64", "bool")))


def evaluate(op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run the forward of an op on raw values."""
    if WATCHING and op.kind not in _OF_USERS and (scope := unseen(STATE.get())) is not None:
        return run_inside(scope, evaluate, op, operands, params)
    try:
        if _are_small(operands) and not _is_heavy(op, operands, params):
            return op.evaluate(np, *operands, **params)
        if evaluates_wide(op, operands):
            out = by_kernels(op, operands, params) if is_large(operands) else NotImplemented
            if out is not NotImplemented:
                return out
            return evaluate_narrow(op, array_module(*operands), operands, params, converted)
        if _is_heavy(op, operands, params) or (
            is_large(operands) and not op.aliases and op.kind not in _OF_USERS
        ):
            return compute(op, operands, params)
        return op.evaluate(array_module(*operands), *operands, **params)
    except Exception as error:
        if op.kind in _RULES_OF_USERS:
            with suppress(AttributeError):
                setattr(error, _OF_USER, True)
            raise
        raise explain(op, error, operands) from None


def _are_small(operands: Sequence[Any]) -> bool:
    """Whether all are small arrays of the usual dtypes, which need no further questions."""
    for x in operands:
        if type(x) is not np.ndarray or x.dtype not in USUAL or x.size >= LARGE:
            return False
    return True


def _is_heavy(op: Op, operands: Sequence[Any], params: dict[str, Any]) -> bool:
    """Whether native code pays for an op on small arrays as well."""
    return op.heavy is not None and op.heavy(*operands, **params)


def add(x: Any, y: Any) -> Any:
    """`x + y` for values of any kind; large arrays are added as by the op."""
    if type(x) is type(y) is np.ndarray and is_large((y,)):
        return compute(needed.add_op, (x, y), {})
    return x + y


def add_watched(x: Any, y: Any) -> Any:
    """`add`, seen by modes."""
    return lowered(lifted(x) + lifted(y))


# ---- rules ------------------------------------------------------------------------------------


def pull(
    op: Op,
    wanted: tuple[bool, ...],
    ct: Any,
    out: Any,
    inputs: Sequence[Any],
    params: dict[str, Any],
    careful: bool,
    raw: bool = True,
    watched: bool = False,
) -> tuple[Sequence[Any], bool]:
    """Apply the reverse rules of an op to the cotangent of its result.

    Args:
        op: The op.
        wanted: For each input, whether its cotangent is wanted.
        ct: The cotangent; a tuple of them for an op with several results.
        out: The result, or its `Aval` if no rule reads it.
        inputs: Likewise.
        params: The parameters of the call.
        careful: Whether rules have to look for 0·∞ at values that are not finite.
        raw: Whether values are arrays; if not, they are tensors, on which rules are recorded.
        watched: Whether modes see what rules do with arrays.

    Returns:
        A cotangent for each input, None where there is none; and whether careful rules might have
        given different ones. Large arrays get careful rules in any case: native kernels notice
        when they are needed, and checking what NumPy computed costs little in comparison.

    Raises:
        NotFiniteError: The rule is a user's, the cotangent is not finite, and `careful` is not set.
    """
    if op.kind in _RULES_OF_USERS and not careful:
        parts = ct if isinstance(ct, tuple) else (ct,)
        if not all(part is None or is_finite(part) for part in parts):
            raise NotFiniteError  # its result might hide that it was not finite
    plain = type(ct) is np.ndarray and ct.dtype.kind != "V" and ct.dtype is not FLOAT16
    if not plain and computes_wide(op, ct):
        ct, out, inputs = widened(ct), widened(out), widened(inputs)
    # The rules of products are products by themselves.
    heavy = op.kind == "planewise" and _is_heavy(op, inputs, params)
    large = raw and (heavy or is_large((ct, *inputs)))
    if large and not watched:
        given = pull_by_kernels(Task(op, (ct, out, *inputs), params, wanted))
        if given is not NotImplemented:
            return given, False
    if (large or watched) and op.kind not in _OF_USERS:
        ct, out, inputs = lifted(ct), lifted(out), lifted(inputs)
        given, unsure = pull(op, wanted, ct, out, inputs, params, careful or large, raw=False)
        return [lowered(value) for value in given], unsure
    if op.vjp_all is not None:
        return op.vjp_all(wanted, ct, out, *inputs, **params), False
    if op.vjp_each is not None:
        each = op.vjp_each
        given = [
            each(i, ct, out, *inputs, **params) if want else None for i, want in enumerate(wanted)
        ]
        return given, False
    careful = careful or large
    given = [None] * len(wanted)
    # Later operands are smaller as a rule, such as weights and biases: what their rules need on the
    # way is gone before the large cotangents are there.
    rules = op.careful if careful else op.vjps
    for place in reversed(range(len(wanted))):
        if wanted[place]:
            given[place] = rules[place](ct, out, *inputs, **params)
    return given, not careful and op.careful is not op.vjps


def push(
    op: Op,
    tangents: Sequence[Any],
    out: Any,
    inputs: Sequence[Any],
    params: dict[str, Any],
    careful: bool = True,
) -> Any:
    """Apply the forward rule of an op to the tangents of its inputs, None for those without.

    Args:
        op: The op.
        tangents: One per input, None for an input that has none.
        out: The result, or its `Aval` if the rule does not read it.
        inputs: Likewise.
        params: The parameters of the call.
        careful: Whether to look for 0·∞ at values that are not finite; if not, the caller does.

    Returns:
        The tangent of the result, or a tuple for several results; None if there is none. It is
        float32 where the op computes in wider floats than it is given.
    """
    if WATCHING or WITH_MODES:
        state = STATE.get()
        scope = seen_by(state.hidden) if state.hidden else rules_apart(state)
        if scope is not None:
            return run_inside(scope, push, op, tangents, out, inputs, params, careful)
        if state.watched and op.kind not in _OF_USERS:
            tangents, out, inputs = lifted(tuple(tangents)), lifted(out), lifted(tuple(inputs))
            return lowered(_push(op, tangents, out, inputs, params, careful))
    return _push(op, tangents, out, inputs, params, careful)


def _push(
    op: Op,
    tangents: Sequence[Any],
    out: Any,
    inputs: Sequence[Any],
    params: dict[str, Any],
    careful: bool,
) -> Any:
    assert op.jvp is not None
    if computes_wide(op, tangents):
        tangents, out, inputs = widened(tangents), widened(out), widened(inputs)
    if op.careful_jvp is None or not careful:
        return op.jvp(tangents, out, *inputs, **params)
    if not is_traced(out):
        tangent = op.jvp(tangents, out, *inputs, **params)
        if tangent is None or is_finite(tangent):
            return tangent
    return op.careful_jvp(tangents, out, *inputs, **params)


def lifted(value: Any) -> Any:
    """Raw arrays wrapped in tensors, so that kernels and modes see what is done with them."""
    if type(value) is np.ndarray or isinstance(value, np.generic):
        return Tensor(value)
    return tuple(map(lifted, value)) if isinstance(value, tuple | list) else value


def lowered(value: Any) -> Any:
    """The array that a tensor holds."""
    if isinstance(value, Tensor):
        value = value.fresh()  # a rule may end with a view, such as reshape gives
        return value.value if type(value) is Tensor and value.record is None else value
    return tuple(map(lowered, value)) if isinstance(value, tuple) else value


def sum_of_terms(
    partials: Sequence[Rule],
    tangents: Sequence[Any],
    out: Any,
    inputs: Sequence[Any],
    **params: Any,
) -> Any:
    """The partials of an elementwise op applied to the tangents, summed; None if all are None."""
    total = None
    for partial, tangent in zip(partials, tangents, strict=True):
        term = None if tangent is None else partial(tangent, out, *inputs, **params)
        if term is not None:
            total = term if total is None else total + term
    return total


# ---- errors -----------------------------------------------------------------------------------

Kinds = tuple[tuple[type[Exception], type[GradtapeError]], ...]
# The errors to raise instead of NumPy's; for a ValueError it depends on what was called.
KINDS: Kinds = (
    (np.linalg.LinAlgError, LinAlgError),
    (np.exceptions.AxisError, AxisError),
    (IndexError, IndexingError),
    (TypeError, DTypeError),
    (AttributeError, DTypeError),  # raised by NumPy for elements that are objects
)
_KINDS_OF_OPS: Kinds = (*KINDS, (ValueError, ShapeError))


def explain(op: Op, error: Exception, operands: Sequence[Any]) -> Exception:
    """The error to raise instead of one of the array module: names the op and its operands."""
    if isinstance(error, GradtapeError) or hasattr(error, _OF_USER):
        return error
    for kind, replacement in _KINDS_OF_OPS:
        if isinstance(error, kind):
            avals = [aval_of(operand) for operand in operands]
            if kind is ValueError and op.kind == "elementwise":
                try:
                    broadcast_sizes(*(aval.shape for aval in avals))
                except ShapeError as better:
                    error = better
            return replacement(f"{op.name}: got {', '.join(map(str, avals))}; {error}")
    return error
