"""The language ops are lowered in: expressions for one element of an array.

An op that computes elements from elements states its expression once, with Python's operators and
the functions below; the printers of the compiler turn it into vector instructions. Numbers follow
NumPy: dtypes are promoted as NumPy promotes them, Python's numbers are weak, integers wrap around,
division by zero and NaN give what NumPy's ufuncs give.

>>> x = gt.core.scalar.Scalar("argument", (), np.dtype("float32"), extra="x")
>>> gt.core.scalar.where(x > 0, x, 0.5 * x)
select(greater(x, 0.0), x, multiply(0.5, x))
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.promotion import (
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT64,
    UINT64,
    DType,
    common_dtype,
    is_half,
    loop_dtype,
    stored,
)
from gradtape.errors import UnsupportedError


class Scalar:
    """An expression for one element.

    Attributes:
        name: Its kind: an instruction ("add", "select", "convert"), an elementary function
            ("exp"), or a source of values ("constant", "axis", "load", "argument").
        args: The expressions it is made of.
        dtype: The dtype of its value.
        weak: Whether it is a Python number that takes the dtype of the other operand.
        extra: The detail of a source of values: the number, the axis, the buffer.
    """

    __slots__ = ("args", "dtype", "extra", "name", "weak")

    def __init__(
        self,
        name: str,
        args: tuple[Scalar, ...],
        dtype: DType,
        *,
        weak: bool = False,
        extra: Any = None,
    ) -> None:
        self.name = name
        self.args = args
        self.dtype = dtype
        self.weak = weak
        self.extra = extra

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value while code is generated; use where()")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        if self.name == "convert":
            return f"{self.dtype}({self.args[0]})"
        if not self.args:
            return str(self.extra)
        return f"{self.name}({', '.join(map(repr, self.args))})"

    def __add__(self, other: Any) -> Scalar:
        return add(self, other)

    def __radd__(self, other: Any) -> Scalar:
        return add(other, self)

    def __sub__(self, other: Any) -> Scalar:
        return subtract(self, other)

    def __rsub__(self, other: Any) -> Scalar:
        return subtract(other, self)

    def __mul__(self, other: Any) -> Scalar:
        return multiply(self, other)

    def __rmul__(self, other: Any) -> Scalar:
        return multiply(other, self)

    def __truediv__(self, other: Any) -> Scalar:
        return divide(self, other)

    def __rtruediv__(self, other: Any) -> Scalar:
        return divide(other, self)

    def __floordiv__(self, other: Any) -> Scalar:
        return floor_divide(self, other)

    def __mod__(self, other: Any) -> Scalar:
        return remainder(self, other)

    def __neg__(self) -> Scalar:
        return negative(self)

    def __and__(self, other: Any) -> Scalar:
        return bitwise_and(self, other)

    def __or__(self, other: Any) -> Scalar:
        return bitwise_or(self, other)

    def __xor__(self, other: Any) -> Scalar:
        return bitwise_xor(self, other)

    def __invert__(self) -> Scalar:
        return bitwise_invert(self)

    def __eq__(self, other: object) -> Scalar:  # type: ignore[override]
        return equal(self, other)

    def __ne__(self, other: object) -> Scalar:  # type: ignore[override]
        return not_equal(self, other)

    def __lt__(self, other: Any) -> Scalar:
        return less(self, other)

    def __le__(self, other: Any) -> Scalar:
        return less_equal(self, other)

    def __gt__(self, other: Any) -> Scalar:
        return greater(self, other)

    def __ge__(self, other: Any) -> Scalar:
        return greater_equal(self, other)


# ---- sources and conversions --------------------------------------------------------------------


def constant(value: Any, dtype: DType | None = None) -> Scalar:
    """A number; weak if it is a Python number and no dtype is given."""
    if dtype is not None:
        return Scalar("constant", (), stored(dtype), extra=dtype.type(value).item())
    if type(value) is int:  # it may be too large for any dtype
        return Scalar("constant", (), INT64, weak=True, extra=value)
    array = np.asarray(value)
    weak = type(value) is float
    return Scalar("constant", (), stored(array.dtype), weak=weak, extra=array.item())


def scalar(value: Any) -> Scalar:
    """An operand: an expression as it is, a number as a constant."""
    return value if isinstance(value, Scalar) else constant(value)


def convert(x: Any, dtype: Any) -> Scalar:
    """The value in another dtype, as `astype` converts."""
    x, dtype = scalar(x), stored(np.dtype(dtype))
    if x.dtype == dtype:
        return Scalar(x.name, x.args, dtype, extra=x.extra) if x.weak else x
    if x.name == "constant":
        with np.errstate(all="ignore"):
            number = np.asarray(x.extra, None if x.weak else x.dtype)
            return constant(number.astype(dtype).item(), dtype)
    if is_half(dtype):
        return _halved(x, dtype)
    if is_half(x.dtype) and dtype != FLOAT32:
        return convert(convert(x, FLOAT32), dtype)
    return truth(x) if dtype == BOOL else Scalar("convert", (x,), dtype)


def _halved(x: Scalar, dtype: DType) -> Scalar:
    """A value in 16 bits: rounded once, and not at all where it came from 16 bits."""
    known = known_half(x, dtype)
    if known is not None:
        return known
    if x.dtype == FLOAT64 and dtype == FLOAT16:
        x = _rounded_to_odd(x)  # ml_dtypes rounds to bfloat16 by way of float32
    return Scalar("convert", (convert(x, FLOAT32),), dtype)


def known_half(x: Scalar, dtype: DType) -> Scalar | None:
    """A value in 16 bits that is made of such values without rounding; None for any other."""
    if x.name == "convert" and x.args[0].dtype == dtype:
        return x.args[0]
    if x.name == "constant":
        with np.errstate(over="ignore"):
            half = constant(x.extra, dtype)
        return half if half.extra == x.extra else None
    if x.name not in ("select", "maximum", "minimum"):
        return None
    halves = [known_half(arg, dtype) for arg in x.args[-2:]]
    if any(half is None for half in halves):
        return None
    if x.name == "select":
        condition = x.args[0]
    else:
        left, right = x.args
        first = left > right if x.name == "maximum" else left < right
        condition = bitwise_or(first, isnan(left))
    return Scalar("select", (condition, *halves), dtype)  # type: ignore[arg-type]


def _rounded_to_odd(x: Scalar) -> Scalar:
    """A float64 as one of its two neighbours in float32, the odd one unless it is exact.

    Rounding that to fewer bits gives the same as rounding the float64 does.
    """
    near = convert(x, FLOAT32)
    wide, number = convert(near, FLOAT64), bits(near)
    odd = where(absolute(wide) > absolute(x), number - 1, number + 1)
    even = equal(bitwise_and(number, 1), 0)
    return from_bits(where(bitwise_and(even, not_equal(wide, x)), odd, number))


def positive(x: Any) -> Scalar:
    """The number itself; a Python number is no longer weak."""
    x = scalar(x)
    return convert(x, x.dtype)


def common(*values: Scalar) -> DType:
    """The dtype NumPy promotes operands to."""
    if all(value.weak for value in values):
        return common_dtype(tuple((value.dtype, False) for value in values))
    return common_dtype(tuple((value.dtype, value.weak) for value in values))


def fit(x: Any, dtype: DType) -> Scalar:
    """An operand in the dtype it is promoted to; a Python integer must fit, as in NumPy."""
    x = scalar(x)
    if not _fits(x, dtype):
        raise UnsupportedError(f"the integer {x} may be out of bounds for {dtype}")
    return convert(x, dtype)


def _fits(value: Scalar, dtype: DType) -> bool:
    if not value.weak or dtype.kind not in "iu" or value.dtype.kind != "i":
        return True
    if value.name != "constant":
        return dtype == INT64
    bounds = np.iinfo(dtype)
    return bool(bounds.min <= value.extra <= bounds.max)


def is_float(x: Scalar) -> bool:
    """Whether it is a floating-point number."""
    return x.dtype.kind == "f"


# ---- instructions -------------------------------------------------------------------------------


def promoted(*operands: Any, like: str = "exp") -> tuple[Scalar, ...]:
    """Operands in the dtype that NumPy's function `like` computes in."""
    values = [scalar(operand) for operand in operands]
    dtype = loop_dtype(like, tuple((value.dtype, value.weak) for value in values))
    return tuple(fit(value, dtype) for value in values)


def _uniform(name: str, *operands: Any) -> Scalar:
    """An instruction whose operands and result have one dtype."""
    values = promoted(*operands, like=name)
    return Scalar(name, values, values[0].dtype)


def _compared(name: str, x: Any, y: Any) -> Scalar:
    x, y = scalar(x), scalar(y)
    for value, other in ((x, y), (y, x)):
        if not _fits(value, other.dtype):
            if value.name != "constant":
                return _compared(name, positive(x), positive(y))
            # An integer outside the range of a dtype compares with all its values as with 0.
            pair = (0, value.extra) if other is x else (value.extra, 0)
            return constant(getattr(np, name)(*pair), BOOL)
    if {x.dtype, y.dtype} == {INT64, UINT64} and not (x.weak or y.weak):
        return _compared_by_sign(name, x, y)
    dtype = common(x, y)
    return Scalar(name, (fit(x, dtype), fit(y, dtype)), BOOL)


def _compared_by_sign(name: str, x: Scalar, y: Scalar) -> Scalar:
    """Compare int64 with uint64 exactly, as NumPy does: negative numbers are below all others."""
    signed = x if x.dtype == INT64 else y
    below = constant(getattr(np, name)(*((-1, 0) if signed is x else (0, -1))), BOOL)
    bits = Scalar(name, (convert(x, UINT64), convert(y, UINT64)), BOOL)
    return where(signed < 0, below, bits)


def _floating(name: str, *operands: Any) -> Scalar:
    """A function whose result is floating, also for integers."""
    values = promoted(*operands, like=name)
    if not is_float(values[0]):
        raise UnsupportedError(f"no native code for {name} of {values[0].dtype}")
    return Scalar(name, values, values[0].dtype)


def add(x: Any, y: Any) -> Scalar:
    """Sum; of truth values their disjunction."""
    result = _uniform("add", x, y)
    return bitwise_or(x, y) if result.dtype == BOOL else result


def multiply(x: Any, y: Any) -> Scalar:
    """Product; of truth values their conjunction."""
    result = _uniform("multiply", x, y)
    return bitwise_and(x, y) if result.dtype == BOOL else result


def subtract(x: Any, y: Any) -> Scalar:
    """Difference."""
    return _uniform("subtract", x, y)


def divide(x: Any, y: Any) -> Scalar:
    """Quotient, floating for integers too."""
    return _floating("divide", x, y)


def negative(x: Any) -> Scalar:
    """The negative."""
    return _uniform("negative", x)


def floor_divide(x: Any, y: Any) -> Scalar:
    """Integer quotient rounded down, 0 where the divisor is 0."""
    return _integral("floor_divide", x, y)


def remainder(x: Any, y: Any) -> Scalar:
    """Integer remainder with the sign of the divisor, 0 where that is 0."""
    return _integral("remainder", x, y)


def _integral(name: str, x: Any, y: Any) -> Scalar:
    result = _uniform(name, x, y)
    if result.dtype.kind == "f":
        raise UnsupportedError(f"no native code for {name} of {result.dtype}")
    return result


def fmod(x: Any, y: Any) -> Scalar:
    """Exact remainder of floats with the sign of x, like fmod in C."""
    return _floating("fmod", x, y)


def equal(x: Any, y: Any) -> Scalar:
    """Whether x = y."""
    return _compared("equal", x, y)


def not_equal(x: Any, y: Any) -> Scalar:
    """Whether x ≠ y; true for NaN."""
    return _compared("not_equal", x, y)


def less(x: Any, y: Any) -> Scalar:
    """Whether x < y."""
    return _compared("less", x, y)


def less_equal(x: Any, y: Any) -> Scalar:
    """Whether x ≤ y."""
    return _compared("less_equal", x, y)


def greater(x: Any, y: Any) -> Scalar:
    """Whether x > y."""
    return _compared("greater", x, y)


def greater_equal(x: Any, y: Any) -> Scalar:
    """Whether x ≥ y."""
    return _compared("greater_equal", x, y)


def truth(x: Any) -> Scalar:
    """Whether it counts as true: it is not 0."""
    x = scalar(x)
    return x if x.dtype == BOOL else not_equal(x, 0)


def bitwise_and(x: Any, y: Any) -> Scalar:
    """Conjunction, bit by bit."""
    return _bitwise("and", x, y)


def bitwise_or(x: Any, y: Any) -> Scalar:
    """Disjunction, bit by bit."""
    return _bitwise("or", x, y)


def bitwise_xor(x: Any, y: Any) -> Scalar:
    """Exclusive or, bit by bit."""
    return _bitwise("xor", x, y)


def bitwise_invert(x: Any) -> Scalar:
    """Every bit inverted."""
    x = scalar(x)
    return _bitwise("xor", x, constant(-1 if x.dtype.kind == "i" else _ones(x.dtype), x.dtype))


def _ones(dtype: DType) -> int:
    return 1 if dtype == BOOL else int(np.iinfo(dtype).max)


def _bitwise(name: str, x: Any, y: Any) -> Scalar:
    result = _uniform(f"bitwise_{name}", x, y)
    return Scalar(name, result.args, result.dtype)


def where(condition: Any, x: Any, y: Any) -> Scalar:
    """One value where the condition holds, another elsewhere; both are computed."""
    chosen, other = scalar(x), scalar(y)
    dtype = common(chosen, other)
    return Scalar("select", (truth(condition), fit(chosen, dtype), fit(other, dtype)), dtype)


def check(value: Any, holds: Any, failure: Any, given: Any, *guard: Scalar) -> Scalar:
    """The value where a condition holds; elsewhere 0, which is noted as a failure.

    The integer `given` is noted with it. With a guard, failures where it does not hold are not
    noted. Lowerings call the method `check` of a reader, which knows the guard.
    """
    value, args = scalar(value), (truth(holds), convert(given, INT64), *guard)
    return Scalar("check", (value, *args), value.dtype, extra=failure)


def watch(value: Any, *guard: Scalar) -> Scalar:
    """The value. If any element is not finite, another program takes over the call.

    With a guard, elements where it does not hold do not matter. Lowerings call the method `watch`
    of a reader, which knows the guard.
    """
    value = scalar(value)
    return Scalar("watch", (value, *guard), value.dtype)


def absolute(x: Any) -> Scalar:
    """Absolute value."""
    x = scalar(x)
    return x if x.dtype.kind in "bu" else _uniform("absolute", x)


abs = absolute  # NumPy's name, so that code written for an array module runs with this one


def copysign(x: Any, y: Any) -> Scalar:
    """The absolute value of x with the sign of y."""
    return _floating("copysign", x, y)


def signbit(x: Any) -> Scalar:
    """Whether the sign bit of a float is set, also of −0 and NaN."""
    return Scalar("signbit", promoted(x, like="signbit"), BOOL)


def isnan(x: Any) -> Scalar:
    """Whether it is not a number."""
    x = scalar(x)
    return not_equal(x, x)


def isfinite(x: Any) -> Scalar:
    """Whether it is neither infinite nor NaN."""
    x = scalar(x)
    return less(absolute(x), np.inf) if is_float(x) else equal(x, x)


def maximum(x: Any, y: Any) -> Scalar:
    """The larger one; NaN if either is NaN."""
    result = _uniform("maximum", x, y)
    return bitwise_or(x, y) if result.dtype == BOOL else result


def minimum(x: Any, y: Any) -> Scalar:
    """The smaller one; NaN if either is NaN."""
    result = _uniform("minimum", x, y)
    return bitwise_and(x, y) if result.dtype == BOOL else result


def _rounded(name: str, x: Any) -> Scalar:
    # NumPy rounds integers by leaving them as they are (before 2.1 it made them floating).
    result = _uniform(name, x)
    return result if is_float(result) else result.args[0]


def floor(x: Any) -> Scalar:
    """The largest integer not above it."""
    return _rounded("floor", x)


def ceil(x: Any) -> Scalar:
    """The smallest integer not below it."""
    return _rounded("ceil", x)


def trunc(x: Any) -> Scalar:
    """The nearest integer towards 0."""
    return _rounded("trunc", x)


def rint(x: Any) -> Scalar:
    """The nearest integer; the even one in a tie."""
    return _floating("rint", x)


def bits(x: Scalar) -> Scalar:
    """The bits of a float as a signed integer of the same width."""
    return Scalar("bits", (x,), np.dtype(f"i{x.dtype.itemsize}"))


def from_bits(x: Scalar) -> Scalar:
    """The float that has these bits."""
    return Scalar("from_bits", (x,), np.dtype(f"f{x.dtype.itemsize}"))


def left_shift(x: Any, count: int) -> Scalar:
    """An integer shifted up, by fewer bits than it has."""
    return _uniform("left_shift", x, count)


def right_shift(x: Any, count: int) -> Scalar:
    """An integer shifted down, by fewer bits than it has; a signed one keeps its sign."""
    return _uniform("right_shift", x, count)


def rarely(condition: Scalar, rare: Scalar, usual: Scalar) -> Scalar:
    """Like `where`, but the first value is computed only if some element needs it."""
    return rarely_together(condition, (rare,), (usual,))[0]


def rarely_together(
    condition: Scalar, rare: Sequence[Scalar], usual: Sequence[Scalar]
) -> list[Scalar]:
    """`rarely` for each pair of values; the rare ones are computed together."""
    together: list[Scalar] = []
    for pair in zip(rare, usual, strict=True):
        together.append(Scalar("rarely", (condition, *pair), pair[1].dtype, extra=together))
    return together


def fma(x: Any, y: Any, z: Any) -> Scalar:
    """x·y + z, rounded once where the machine can."""
    values = [scalar(value) for value in (x, y, z)]
    dtype = common(*values)
    return Scalar("fma", tuple(fit(value, dtype) for value in values), dtype)


# ---- elementary functions -----------------------------------------------------------------------


def elementary(name: str, *operands: Any) -> Scalar:
    """An elementary function by its name in NumPy: exp, log1p, arctan2, power, erf and so on."""
    return _floating(name, *operands)


def _named(*names: str) -> tuple[functools.partial[Scalar], ...]:
    return tuple(functools.partial(elementary, name) for name in names)


exp, exp2, expm1 = _named("exp", "exp2", "expm1")
log, log2, log10, log1p = _named("log", "log2", "log10", "log1p")
sqrt, cbrt, power, hypot = _named("sqrt", "cbrt", "power", "hypot")
sin, cos, tan = _named("sin", "cos", "tan")
arcsin, arccos, arctan, arctan2 = _named("arcsin", "arccos", "arctan", "arctan2")
sinh, cosh, tanh = _named("sinh", "cosh", "tanh")
arcsinh, arccosh, arctanh = _named("arcsinh", "arccosh", "arctanh")
sigmoid, erf, erfc = _named("sigmoid", "erf", "erfc")
erfcx, erfinv, erfcinv = _named("erfcx", "erfinv", "erfcinv")
ndtr, log_ndtr, ndtri = _named("ndtr", "log_ndtr", "ndtri")
lgamma, digamma, trigamma, tetragamma = _named("lgamma", "digamma", "trigamma", "tetragamma")
bessel_i0, bessel_i1, bessel_i2 = _named("bessel_i0", "bessel_i1", "bessel_i2")
bessel_i0e, bessel_i1e, bessel_i2e = _named("bessel_i0e", "bessel_i1e", "bessel_i2e")
