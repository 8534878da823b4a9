"""The table of rules that `simplify` applies: arithmetic, logic, choices and casts.

A rule must keep every bit of the result: of infinities, subnormal numbers and both zeros; NaN stays
NaN (its sign and payload mean nothing). Shape and dtype stay as well. What is only true of real
numbers is not here: x·0 is NaN for x = ∞, x + 0.0 is 0.0 for x = -0.0, (x + y) + z rounds
differently from x + (y + z).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.graph.ir import Literal, Operand
from gradtape.graph.passes.fold import as_dtype, number_of
from gradtape.graph.passes.match import Call, is_zero, made_by, same
from gradtape.graph.passes.rules_shape import SHAPE_RULES, Entry


class Rule(NamedTuple):
    """One line of the table.

    Attributes:
        name: What it is called in tests and reports.
        ops: The names of the ops it looks at.
        apply: Gives what to put in place of a call, or None if the rule does not apply.
        why: Why nothing changes.
    """

    name: str
    ops: Sequence[str]
    apply: Callable[[Call], Operand | None]
    why: str


# ---- arithmetic ---------------------------------------------------------------------------------

_REAL = "biuf"  # kinds of dtypes; a product of complex numbers mixes their parts


def _plus_zero(call: Call) -> Operand | None:
    if call.kind in _REAL:
        for x, number in call.with_number():
            if number == 0 and (call.kind != "f" or np.signbit(number)):
                return call.fit(x)
    return None


def _minus_zero(call: Call) -> Operand | None:
    number = call.number(call.y)
    fits = number is not None and call.kind in _REAL and is_zero(number)
    return call.fit(call.x) if fits else None


def _times_one(call: Call) -> Operand | None:
    if call.kind in _REAL:
        for x, number in call.with_number():
            if number == 1:
                return call.fit(x)
    return None


def _times_minus_one(call: Call) -> Operand | None:
    if call.kind in "if":
        for x, number in call.with_number():
            if number == -1:
                x_cast = call.cast(x)
                return None if x_cast is None else call.spread(call.call("negative", x_cast))
    return None


def _integer_times_zero(call: Call) -> Operand | None:
    if call.kind in "biu" and any(number == 0 for _, number in call.with_number()):
        return call.everywhere(0)
    return None


def _over_one(call: Call) -> Operand | None:
    number = call.number(call.y)
    return call.fit(call.x) if call.kind == "f" and number == 1 else None


def _over_power_of_two(call: Call) -> Operand | None:
    number = call.number(call.y)
    if number is None or call.kind != "f":
        return None
    half, exponent = np.frexp(number)  # number = ±0.5·2^exponent, if it is a power of two
    limits = np.finfo(call.aval.dtype)
    if abs(half) != 0.5 or not limits.minexp <= 1 - exponent < limits.maxexp:
        return None
    inverse = np.ldexp(half * 2, 1 - exponent)
    return call.spread(call.call("multiply", call.x, Literal(inverse)))


def _raised_to(call: Call, exponent: int) -> bool:
    """Whether an operand is raised to a number; to an array of them NumPy raises otherwise."""
    y = call.y
    plain = call.kind in "iuf" and call.x.aval == call.aval
    return plain and isinstance(y, Literal) and bool(y.value == exponent)


def _first_power(call: Call) -> Operand | None:
    return call.x if _raised_to(call, 1) else None


def _square(call: Call) -> Operand | None:
    return call.call("square", call.x) if _raised_to(call, 2) else None


def _cube(call: Call) -> Operand | None:
    x = call.x
    fits = call.y.aval.weak and _raised_to(call, 3)
    return call.call("multiply", call.call("multiply", x, x), x) if fits else None


def _negated(call: Call, operand: Operand) -> Operand | None:
    """The x of an operand -x, if negating it after promotion to the result's dtype is the same.

    It is not for integers that are promoted (the smallest one is its own negative), nor for a real
    number that becomes complex (-0.0 would be added to the imaginary part, not 0.0).
    """
    node = made_by(operand, "negative")
    if node is None:
        return None
    x = node.operands[0]
    same_dtype = x.dtype == call.aval.dtype
    return x if same_dtype or (x.dtype.kind == "f" and call.kind == "f") else None


def _plus_negative(call: Call) -> Operand | None:
    for a, b in ((call.x, call.y), (call.y, call.x)):
        negated = _negated(call, b)
        if negated is not None:
            return call.call("subtract", a, negated)
    return None


def _minus_negative(call: Call) -> Operand | None:
    negated = _negated(call, call.y)
    return None if negated is None else call.call("add", call.x, negated)


def _twice(name: str) -> Callable[[Call], Operand | None]:
    """The rule of an op that undoes itself."""

    def apply(call: Call) -> Operand | None:
        node = made_by(call.x, name)
        return None if node is None else node.operands[0]

    return apply


def _of_real(call: Call) -> Operand | None:
    return call.x if call.kind in "iuf" else None


def _unchanged(call: Call) -> Operand | None:
    return call.x


def _the_same_twice(call: Call) -> Operand | None:
    return call.fit(call.x) if same(call.x, call.y) else None


def _number_for_array(call: Call) -> Operand | None:
    """An array that holds one number everywhere, where another operand has the shape already."""
    operands = list(call.operands)
    for place, operand in enumerate(operands):
        others = [other.shape for other in operands[:place] + operands[place + 1 :]]
        number = number_of(operand)
        if operand.shape and number is not None and call.aval.shape in others:
            operands[place] = Literal(as_dtype(number, operand.dtype))
            return call.call(call.op.name, *operands, **call.params)
    return None


# ---- logic --------------------------------------------------------------------------------------

_INVERSIONS = ("logical_not", "bitwise_invert", "bitwise_xor", "logical_xor")


def _inverted(name: str, operands: Sequence[Operand], shape: tuple[int, ...]) -> Operand | None:
    """The y of a call that means "not y", for booleans y of the same shape."""
    x = operands[0]
    if name in ("bitwise_xor", "logical_xor"):
        truths = [number_of(operand) for operand in operands]
        places = [
            i for i, truth in enumerate(truths) if isinstance(truth, bool | np.bool) and truth
        ]
        if not places:
            return None
        x = operands[1 - places[0]]
    elif name not in _INVERSIONS:
        return None
    return x if x.dtype == np.bool and x.shape == shape else None


def _opposite(operand: Operand) -> Operand | None:
    """The y of an operand that is "not y"."""
    node = made_by(operand, *_INVERSIONS)
    return None if node is None else _inverted(node.op.name, node.operands, operand.shape)


def _not_not(call: Call) -> Operand | None:
    y = _inverted(call.op.name, call.operands, call.aval.shape)
    return None if y is None else _opposite(y)


def _not_equal(call: Call) -> Operand | None:
    y = _inverted(call.op.name, call.operands, call.aval.shape)
    node = None if y is None else made_by(y, "equal", "not_equal")
    if node is None:
        return None
    return call.call("not_equal" if node.op.name == "equal" else "equal", *node.operands)


def _absorbed(absorbs: str, all_bits: bool) -> Callable[[Call], Operand | None]:
    """The rule for a number with all bits set (True), or none (False).

    It decides the result of the operation `absorbs` ("and", "or"), and leaves the other operand of
    another one as it is. Logical ops ask whether numbers are 0, so there that has to be a boolean.
    """

    def apply(call: Call) -> Operand | None:
        logical, operation = call.op.name.split("_")
        for x, number in call.with_number():
            if not bool(~number == 0 if all_bits else number == 0):
                continue
            if operation == absorbs:
                return call.everywhere(number)
            return call.fit(x) if logical != "logical" or x.dtype == np.bool else None
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
    opposite = _opposite(condition)
    return None if opposite is None else call.call("where", opposite, y, x)


def _mask_known(call: Call) -> Operand | None:
    condition = number_of(call.y)
    if condition is None:
        return None
    return call.fit(call.x) if condition else call.everywhere(0)


def _mask_zero(call: Call) -> Operand | None:
    number = call.number(call.x)
    known = number is not None and call.kind != "c" and is_zero(number)
    return call.everywhere(0) if known else None


def _mask_mask(call: Call) -> Operand | None:
    node = made_by(call.x, "mask")
    return call.fit(call.x) if node is not None and same(node.operands[1], call.y) else None


# ---- casts --------------------------------------------------------------------------------------


def _cast_to_same(call: Call) -> Operand | None:
    return call.x if call.x.aval == call.aval else None


def _lossless(dtype: np.dtype[Any], to: np.dtype[Any]) -> bool:
    """Whether every number of a real dtype is one of the other."""
    if dtype.kind in "iu" and to.kind == "f":
        return 8 * dtype.itemsize <= np.finfo(to).nmant + 1
    return dtype.kind in _REAL and to.kind in _REAL and np.can_cast(dtype, to, "safe")


def _cast_cast(call: Call) -> Operand | None:
    node = made_by(call.x, "astype")
    if node is None:
        return None
    x, between = node.operands[0], call.x.dtype
    if x.aval.weak or call.kind not in _REAL or not _lossless(x.dtype, between):
        return None
    if x.dtype != call.aval.dtype and between.kind == "f" and call.kind in "iu":
        return None  # what a float out of the range of an integer becomes depends on both dtypes
    return call.call("astype", x, dtype=call.aval.dtype)


# ---- the table ----------------------------------------------------------------------------------

# Not power, of which NumPy has other forms for numbers than for arrays; nor maximum and minimum,
# which may take the other one of 0.0 and -0.0.
_ANY_FORM = (
    "add", "subtract", "multiply", "divide", "where", "mask",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor",
)  # fmt: skip
_AND_OR = ("bitwise_and", "bitwise_or", "logical_and", "logical_or")
_XOR = ("bitwise_xor", "logical_xor")

_RULES: tuple[Entry, ...] = (
    ("x + 0", ("add",), _plus_zero, "0 of integers, -0.0 of floats: 0.0 would turn -0.0 to 0.0"),
    ("x - 0", ("subtract",), _minus_zero, "-0.0 - 0.0 is -0.0; not so for x - (-0.0)"),
    ("x * 1", ("multiply",), _times_one, "exact"),
    ("x * -1", ("multiply",), _times_minus_one, "only the sign changes, that of 0 too"),
    ("n * 0", ("multiply",), _integer_times_zero, "integers have no infinity and no NaN"),
    ("x / 1", ("divide",), _over_one, "exact; integers are cast as division does"),
    ("x / 2^k", ("divide",), _over_power_of_two, "x/2ᵏ = x·2⁻ᵏ, both rounded once"),
    ("x ** 1", ("power",), _first_power, "exact"),
    ("x ** 2", ("power",), _square, "rounded once, as NumPy does for arrays"),
    ("x ** 3", ("power",), _cube, "what the op itself computes"),
    ("-(-x)", ("negative",), _twice("negative"), "the sign bit flips twice"),
    ("a + (-b)", ("add",), _plus_negative, "that is what a - b means"),
    ("a - (-b)", ("subtract",), _minus_negative, "that is what a + b means"),
    ("identity", ("copy", "positive", "stop_gradient"), _unchanged, "values are never written to"),
    ("conj of real", ("conj",), _of_real, "no imaginary part"),
    ("conj of conj", ("conj",), _twice("conj"), "the sign bit flips twice"),
    ("max(x, x)", ("fmax", "fmin", "maximum", "minimum"), _the_same_twice, "also NaN and -0.0"),
    ("not not x", _INVERSIONS, _not_not, "of booleans"),
    ("not x == y", _INVERSIONS, _not_equal, "NaN is unequal to all; < and >= do not exclude it"),
    ("all bits", _AND_OR, _absorbed("or", True), "x|1 = 1, x&1 = x"),
    ("no bits", _AND_OR + _XOR, _absorbed("and", False), "x&0 = 0, x|0 = x^0 = x"),
    ("x & x", _AND_OR, _both_the_same, "x|x = x&x = x"),
    ("where(c, x, x)", ("where",), _where_same, "the condition does not matter"),
    ("where(known, x, y)", ("where",), _where_known, "one of them, in the dtype of both"),
    ("where(not c, x, y)", ("where",), _where_not, "where(c, y, x)"),
    ("mask(x, known)", ("mask",), _mask_known, "all of it or nothing"),
    ("mask(0, c)", ("mask",), _mask_zero, "0 either way; -0.0 would become 0.0"),
    ("mask(mask(x, c), c)", ("mask",), _mask_mask, "zeros already where c is false"),
    ("number for array", _ANY_FORM, _number_for_array, "broadcasting repeats it as well"),
    ("astype of the same", ("astype",), _cast_to_same, "nothing to convert"),
    ("astype of astype", ("astype",), _cast_cast, "if the first one loses nothing"),
)

RULES: tuple[Rule, ...] = tuple(Rule(*entry) for entry in _RULES + SHAPE_RULES)
