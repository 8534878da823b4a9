"""Constant folding: nodes that depend on numbers only are computed once, by the op's forward.

Arrays that hold one number everywhere are written `broadcast_to(number)`, whatever ops they came
from. An elementwise op on such arrays is evaluated on arrays of one element, and gives another such
array.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.op import Op, op_of
from gradtape.graph.ir import Literal, Operand, Rewriter, Value
from gradtape.graph.python_numbers import computed_exactly, is_of_integers
from gradtape.ops.reduce import mean_over, sum_over
from gradtape.ops.shape import broadcast_op

sum_op, mean_op = op_of(sum_over), op_of(mean_over)


def number_of(operand: Operand) -> Any:
    """The number of a literal, or the one an array holds everywhere; None for others."""
    if isinstance(operand, Literal):
        return operand.value
    node = operand.node
    if node is None or node.op is not broadcast_op:
        return None
    source = node.operands[0]
    return source.value if isinstance(source, Literal) else None


def uniform(rewriter: Rewriter, number: Any, aval: Aval, line: str) -> Operand:
    """The number itself, or an array that holds it everywhere, as an operand of the new graph."""
    literal = Literal(number)
    if not aval.shape:
        return literal
    return rewriter.add(broadcast_op, (literal,), {"shape": aval.shape}, line, aval)


# ---- evaluation ---------------------------------------------------------------------------------


def folded(op: Op, operands: Sequence[Operand], params: Mapping[str, Any], aval: Aval) -> Any:
    """The number that all elements of a call's result equal; None if that is not known.

    Args:
        op: The op that is called.
        operands: Its operands.
        params: Its parameters.
        aval: The abstract result; the number is of its dtype.
    """
    if op.effect is not None or op.kind in ("custom", "graph", "control") or not operands:
        return None
    numbers = [number_of(operand) for operand in operands]
    if any(number is None for number in numbers):
        return None
    if op.facts.rearranges:
        number = _common(numbers, aval)
    elif op in (sum_op, mean_op):
        number = _summed(op, numbers[0], operands[0].aval, params["axis"], aval)
    elif op.kind == "elementwise" or not (
        aval.shape or any(isinstance(x, Value) for x in operands)
    ):
        number = _evaluated(op, operands, numbers, params)
    else:
        return None
    if number is None or Literal(number).aval != Aval((), aval.dtype, weak=aval.weak):
        return None
    return number


def _evaluated(
    op: Op, operands: Sequence[Operand], numbers: Sequence[Any], params: Mapping[str, Any]
) -> Any:
    """The result of the op's forward; None if it raises: errors are raised when the graph runs."""
    try:
        if is_of_integers(op, operands):
            return computed_exactly(op, numbers)
        args = [
            np.full((1,) * len(x.shape), number, x.dtype) if isinstance(x, Value) else number
            for x, number in zip(operands, numbers, strict=True)
        ]
        with np.errstate(all="ignore"):
            return np.asarray(op.evaluate(np, *args, **params)).reshape(())[()]
    except Exception:
        return None


def as_dtype(number: Any, dtype: np.dtype[Any]) -> Any:
    """A number as a NumPy scalar of another dtype; None if it does not fit."""
    try:
        with np.errstate(all="ignore"):
            return dtype.type(number)
    except (OverflowError, TypeError, ValueError):
        return None


def _common(numbers: Sequence[Any], aval: Aval) -> Any:
    """The number, if they are all the same in the dtype of the result."""
    if aval.weak:
        return numbers[0] if len(numbers) == 1 else None
    converted = [as_dtype(number, aval.dtype) for number in numbers]
    if any(number is None for number in converted):
        return None
    return converted[0] if len({number.tobytes() for number in converted}) == 1 else None


def _summed(op: Op, number: Any, x: Aval, axis: tuple[int, ...], aval: Aval) -> Any:
    """Sum or mean of copies of one number, if no partial sum needs rounding.

    Then the order of summation does not matter. Partial sums are multiples of the number:
    with m·2ᵉ = number and odd m, they are exact as long as m·count has no more bits than the dtype.
    """
    count = math.prod(x.shape[a] for a in axis)
    term = as_dtype(number, aval.dtype)
    if term is None:
        return None
    if aval.dtype.kind in "iu":
        with np.errstate(all="ignore"):
            return term * aval.dtype.type(count)
    if aval.dtype not in (np.float32, np.float64) or not np.isfinite(term):
        return None
    limits = np.finfo(aval.dtype)
    odd = abs(int(math.frexp(term)[0] * 2.0**53))
    while odd and not odd & 1:
        odd >>= 1
    exact = odd * count < 2 ** (limits.nmant + 1) and abs(float(term)) * count <= limits.max
    if not exact or (term == 0 and np.signbit(term)) or (op is mean_op and not count):
        return None
    return term if op is mean_op else aval.dtype.type(float(term) * count)
