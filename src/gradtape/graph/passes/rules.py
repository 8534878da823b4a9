"""The table of rules that `simplify` applies: arithmetic, logic, choices and casts.

A rule must keep every bit of the result, also for infinities, subnormal numbers and both zeros; NaN
stays NaN (its sign and payload mean nothing). Shape and dtype stay as well. Identities that hold
only for real numbers are not here: x·0 is NaN for x = ∞, x + 0.0 is 0.0 for x = -0.0, (x + y) + z
rounds differently from x + (y + z).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.op import Op, op_of
from gradtape.graph.ir import Literal, Operand
from gradtape.graph.passes.fold import as_dtype, number_of
from gradtape.graph.passes.match import Call, is_zero, made_by, same, source
from gradtape.graph.passes.rules_shape import SHAPE_RULES, Entry, unchanged_form
from gradtape.ops.arithmetic import (
    add,
    divide,
    multiply,
    negative,
    positive,
    power,
    square,
    subtract,
)
from gradtape.ops.cast import astype_op, conj, copy_op, stop_gradient_op
from gradtape.ops.comparison import (
    bitwise_and,
    bitwise_invert,
    bitwise_or,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from gradtape.ops.select import fmax, fmin, mask, maximum, minimum, where_op


class Rule(NamedTuple):
    """One line of the table.

    Attributes:
        name: Its name in tests and reports.
        ops: The ops it looks at.
        apply: Returns the replacement of a call, or None if the rule does not apply.
        why: The reason why nothing changes.
    """

    name: str
    ops: Sequence[Op]
    apply: Callable[[Call], Operand | None]
    why: str


# ---- the ops it is about ------------------------------------------------------------------------

add_op, subtract_op, multiply_op, divide_op, power_op = map(
    op_of, (add, subtract, multiply, divide, power)
)
negative_op, positive_op, square_op, conj_op, mask_op = map(
    op_of, (negative, positive, square, conj, mask)
)
equal_op, not_equal_op, less_op, less_equal_op = map(op_of, (equal, not_equal, less, less_equal))
greater_op, greater_equal_op = map(op_of, (greater, greater_equal))
fmax_op, fmin_op, maximum_op, minimum_op = map(op_of, (fmax, fmin, maximum, minimum))
bitwise_and_op, bitwise_or_op = map(op_of, (bitwise_and, bitwise_or))
bitwise_xor_op, bitwise_invert_op = map(op_of, (bitwise_xor, bitwise_invert))
logical_and_op, logical_or_op = map(op_of, (logical_and, logical_or))
logical_xor_op, logical_not_op = map(op_of, (logical_xor, logical_not))

# ---- arithmetic ---------------------------------------------------------------------------------

_REAL = "biuf"  # kinds of dtypes; a product of complex numbers mixes their parts


def _plus_zero(call: Call) -> Operand | None:
    zeros = (x for x, n in call.with_number() if n == 0 and (call.kind != "f" or np.signbit(n)))
    return call.fit(next(zeros, None)) if call.kind in _REAL else None


def _minus_zero(call: Call) -> Operand | None:
    return call.fit(call.x) if call.kind in _REAL and is_zero(call.number(call.y)) else None


def _times_one(call: Call) -> Operand | None:
    return call.fit(call.beside(1)) if call.kind in _REAL else None


def _times_minus_one(call: Call) -> Operand | None:
    x = call.cast(call.beside(-1)) if call.kind in "if" else None
    return call.spread(call.call(negative_op, x))


def _integer_times_zero(call: Call) -> Operand | None:
    return call.everywhere(0) if call.kind in "biu" and call.beside(0) is not None else None


def _over_one(call: Call) -> Operand | None:
    return call.fit(call.x) if call.kind == "f" and call.number(call.y) == 1 else None


def _over_power_of_two(call: Call) -> Operand | None:
    number = call.number(call.y)
    if number is None or call.kind != "f":
        return None
    half, exponent = np.frexp(number)  # number = ±0.5·2^exponent, if it is a power of two
    limits = np.finfo(call.aval.dtype)
    if abs(half) != 0.5 or not limits.minexp <= 1 - exponent < limits.maxexp:
        return None
    inverse = np.ldexp(half * 2, 1 - exponent)
    return call.spread(call.call(multiply_op, call.x, Literal(inverse)))


def _raised_to(call: Call, exponent: int) -> bool:
    """Whether an operand is raised to this number; NumPy treats an array of them differently."""
    y = call.y
    plain = call.kind in "iuf" and call.x.aval == call.aval
    return plain and isinstance(y, Literal) and bool(y.value == exponent)


def _first_power(call: Call) -> Operand | None:
    return call.x if _raised_to(call, 1) else None


def _square(call: Call) -> Operand | None:
    return call.call(square_op, call.x) if _raised_to(call, 2) else None


def _cube(call: Call) -> Operand | None:
    x = call.x
    fits = call.y.aval.weak and _raised_to(call, 3)
    return call.call(multiply_op, call.call(multiply_op, x, x), x) if fits else None


def _negated(call: Call, operand: Operand) -> Operand | None:
    """The x of an operand -x, if it can equally be negated after promotion to the result's dtype.

    It cannot for integers that are promoted (the smallest one is its own negative), nor for a real
    number that becomes complex (-0.0 would be added to the imaginary part, not 0.0).
    """
    x = source(operand, negative_op)
    if x is None:
        return None
    same_dtype = x.dtype == call.aval.dtype
    return x if same_dtype or (x.dtype.kind == "f" and call.kind == "f") else None


def _plus_negative(call: Call) -> Operand | None:
    x, y = call.operands
    first = call.call(subtract_op, x, _negated(call, y))
    return first or call.call(subtract_op, y, _negated(call, x))


def _minus_negative(call: Call) -> Operand | None:
    return call.call(add_op, call.x, _negated(call, call.y))


def _twice(call: Call) -> Operand | None:
    return source(call.x, call.op)


def _of_real(call: Call) -> Operand | None:
    return call.x if call.kind in "iuf" else None


def _unchanged(call: Call) -> Operand | None:
    return call.x


def _the_same_twice(call: Call) -> Operand | None:
    return call.fit(call.x) if same(call.x, call.y) else None


def _number_for_array(call: Call) -> Operand | None:
    """Replace an array of one repeated number by the number, if another operand has the shape."""
    operands = list(call.operands)
    for place, operand in enumerate(operands):
        others = [other.shape for other in operands[:place] + operands[place + 1 :]]
        number = number_of(operand)
        if operand.shape and number is not None and call.aval.shape in others:
            operands[place] = Literal(as_dtype(number, operand.dtype))
            return call.call(call.op, *operands, **call.params)
    return None


# ---- logic --------------------------------------------------------------------------------------

_XOR = (bitwise_xor_op, logical_xor_op)
_INVERSIONS = (logical_not_op, bitwise_invert_op, *_XOR)


def _inverted(op: Op, operands: Sequence[Operand], shape: tuple[int, ...]) -> Operand | None:
    """The y of a call that means "not y", for booleans y of the same shape."""
    x = operands[0]
    if op in _XOR:
        truths = [number_of(operand) for operand in operands]
        places = [i for i, is_true in enumerate(truths) if is_true is True or is_true is np.True_]
        if not places:
            return None
        x = operands[1 - places[0]]
    elif op not in _INVERSIONS:
        return None
    return x if x.dtype == np.bool and x.shape == shape else None


def _opposite(operand: Operand | None) -> Operand | None:
    """The y of an operand that is "not y"."""
    node = made_by(operand, *_INVERSIONS)
    return None if node is None else _inverted(node.op, node.operands, node.outputs[0].shape)


def _not_not(call: Call) -> Operand | None:
    return _opposite(_inverted(call.op, call.operands, call.aval.shape))


def _not_equal(call: Call) -> Operand | None:
    y = _inverted(call.op, call.operands, call.aval.shape)
    node = made_by(y, equal_op, not_equal_op)
    if node is None:
        return None
    return call.call(not_equal_op if node.op is equal_op else equal_op, *node.operands)


_AND, _OR = (bitwise_and_op, logical_and_op), (bitwise_or_op, logical_or_op)
_LOGICAL = (logical_and_op, logical_or_op, logical_xor_op)


def _absorbed(absorbing: tuple[Op, ...], all_bits: bool) -> Callable[[Call], Operand | None]:
    """The rule for a number with all bits set (True), or none (False).

    It decides the result of `absorbing` ops, and leaves the other operand of other ops as it is.
    Logical ops ask whether numbers are 0, so that operand has to be a boolean there.
    """

    def apply(call: Call) -> Operand | None:
        for x, number in call.with_number():
            if not bool(~number == 0 if all_bits else number == 0):
                continue
            if call.op in absorbing:
                return call.everywhere(number)
            return call.fit(x) if call.op not in _LOGICAL or x.dtype == np.bool else None
        return None

    return apply


def _both_the_same(call: Call) -> Operand | None:
    fits = same(call.x, call.y) and call.x.dtype == call.aval.dtype
    return call.fit(call.x) if fits else None


# ---- choices ------------------------------------------------------------------------------------


def _where_same(call: Call) -> Operand | None:
    _, x, y = call.operands
    return call.fit(x) if same(x, y) else None


def _where_known(call: Call) -> Operand | None:
    condition = number_of(call.x)
    return None if condition is None else call.fit(call.operands[1 if condition else 2])


def _where_not(call: Call) -> Operand | None:
    condition, x, y = call.operands
    return call.call(where_op, _opposite(condition), y, x)


def _mask_known(call: Call) -> Operand | None:
    condition = number_of(call.y)
    if condition is None:
        return None
    return call.fit(call.x) if condition else call.everywhere(0)


def _mask_zero(call: Call) -> Operand | None:
    return call.everywhere(0) if call.kind != "c" and is_zero(call.number(call.x)) else None


def _mask_mask(call: Call) -> Operand | None:
    node = made_by(call.x, mask_op)
    return call.fit(call.x) if node is not None and same(node.operands[1], call.y) else None


# ---- casts --------------------------------------------------------------------------------------


def _lossless(dtype: np.dtype[Any], to: np.dtype[Any]) -> bool:
    """Whether every number of a real dtype can be represented in the other."""
    if dtype.kind in "iu" and to.kind == "f":
        return 8 * dtype.itemsize <= np.finfo(to).nmant + 1
    return dtype.kind in _REAL and to.kind in _REAL and np.can_cast(dtype, to, "safe")


def _cast_cast(call: Call) -> Operand | None:
    x, between = source(call.x, astype_op), call.x.dtype
    if x is None or x.aval.weak or call.kind not in _REAL or not _lossless(x.dtype, between):
        return None
    if x.dtype != call.aval.dtype and between.kind == "f" and call.kind in "iu":
        return None  # the result for a float outside the range of an integer depends on both dtypes
    return call.call(astype_op, x, dtype=call.aval.dtype)


# ---- the table ----------------------------------------------------------------------------------

# Not power, which NumPy computes differently for numbers and arrays; nor maximum and minimum, which
# may choose the other one of 0.0 and -0.0.
_ANY_FORM = (
    *(add_op, subtract_op, multiply_op, divide_op, where_op, mask_op),
    *(equal_op, not_equal_op, less_op, less_equal_op, greater_op, greater_equal_op),
    *(*_AND, *_OR, *_XOR),
)

_RULES: tuple[Entry, ...] = (
    ("x + 0", (add_op,), _plus_zero, "0 of integers, -0.0 of floats: 0.0 would turn -0.0 to 0.0"),
    ("x - 0", (subtract_op,), _minus_zero, "-0.0 - 0.0 is -0.0; not so for x - (-0.0)"),
    ("x * 1", (multiply_op,), _times_one, "exact"),
    ("x * -1", (multiply_op,), _times_minus_one, "only the sign changes, that of 0 too"),
    ("n * 0", (multiply_op,), _integer_times_zero, "integers have no infinity and no NaN"),
    ("x / 1", (divide_op,), _over_one, "exact; integers are cast as division does"),
    ("x / 2^k", (divide_op,), _over_power_of_two, "x/2ᵏ = x·2⁻ᵏ, both rounded once"),
    ("x ** 1", (power_op,), _first_power, "exact"),
    ("x ** 2", (power_op,), _square, "rounded once, as NumPy does for arrays"),
    ("x ** 3", (power_op,), _cube, "what the op itself computes"),
    ("-(-x)", (negative_op,), _twice, "the sign bit flips twice"),
    ("a + (-b)", (add_op,), _plus_negative, "that is what a - b means"),
    ("a - (-b)", (subtract_op,), _minus_negative, "that is what a + b means"),
    ("identity", (copy_op, positive_op, stop_gradient_op), _unchanged, "values stay as they are"),
    ("conj of real", (conj_op,), _of_real, "no imaginary part"),
    ("conj of conj", (conj_op,), _twice, "the sign bit flips twice"),
    ("max(x, x)", (fmax_op, fmin_op, maximum_op, minimum_op), _the_same_twice, "also NaN and -0.0"),
    ("not not x", _INVERSIONS, _not_not, "of booleans"),
    ("not x == y", _INVERSIONS, _not_equal, "NaN is unequal to all; < and >= do not exclude it"),
    ("all bits", _AND + _OR, _absorbed(_OR, True), "x|1 = 1, x&1 = x"),
    ("no bits", _AND + _OR + _XOR, _absorbed(_AND, False), "x&0 = 0, x|0 = x^0 = x"),
    ("x & x", _AND + _OR, _both_the_same, "x|x = x&x = x"),
    ("where(c, x, x)", (where_op,), _where_same, "the condition does not matter"),
    ("where(known, x, y)", (where_op,), _where_known, "one of them, in the dtype of both"),
    ("where(not c, x, y)", (where_op,), _where_not, "where(c, y, x)"),
    ("mask(x, known)", (mask_op,), _mask_known, "all of it or nothing"),
    ("mask(0, c)", (mask_op,), _mask_zero, "0 either way; -0.0 would become 0.0"),
    ("mask(mask(x, c), c)", (mask_op,), _mask_mask, "zeros already where c is false"),
    ("number for array", _ANY_FORM, _number_for_array, "broadcasting repeats it as well"),
    ("astype of the same", (astype_op,), unchanged_form, "nothing to convert"),
    ("astype of astype", (astype_op,), _cast_cast, "if the first one loses nothing"),
)

RULES: tuple[Rule, ...] = tuple(Rule(*entry) for entry in _RULES + SHAPE_RULES)
