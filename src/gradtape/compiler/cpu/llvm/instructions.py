"""Writes each instruction of `core.scalar` in LLVM IR, for any number of lanes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from gradtape.compiler.cpu.llvm.builder import Builder, Type, Value, number_text
from gradtape.compiler.cpu.llvm.far_remainders import with_far_remainders
from gradtape.compiler.cpu.llvm.halves import from_half, to_half
from gradtape.compiler.elementary import ELEMENTARY
from gradtape.core.promotion import BOOL, is_half
from gradtape.core.scalar import Scalar
from gradtape.errors import UnsupportedError

DType = np.dtype[Any]


def register_type(dtype: DType, lanes: int = 1) -> Type:
    """The type of a value of a dtype in registers: truth values are bits, 16-bit floats i16."""
    if dtype == BOOL:
        return Type("i1", lanes)
    if dtype.kind == "f" and dtype.itemsize > 2:
        return Type("float" if dtype.itemsize == 4 else "double", lanes)
    return Type(f"i{8 * dtype.itemsize}", lanes)


def memory_type(dtype: DType, lanes: int = 1) -> Type:
    """The type of a value of a dtype in memory: NumPy keeps truth values in bytes."""
    return Type("i8", lanes) if dtype == BOOL else register_type(dtype, lanes)


def number_of(constant: Scalar) -> Any:
    """The number that a constant is in registers: the bits of a 16-bit float."""
    if not is_half(constant.dtype):
        return constant.extra
    return int(np.asarray(constant.extra).astype(constant.dtype).view(np.uint16))


# (builder, *values of the arguments) -> value
Writer = Callable[..., Value]


def instruction(b: Builder, part: Scalar, args: list[Value]) -> Value:
    """Write one instruction on the values of its arguments, all with the same number of lanes."""
    return _writer(part)(b, *args)


def _writer(part: Scalar) -> Writer:
    """The function that writes an instruction."""
    name, dtype = part.name, part.dtype
    kind = part.args[0].dtype.kind if name == "signbit" else dtype.kind
    table = _FLOAT if kind == "f" else _INTEGER
    if name in _COMPARISONS:
        return functools.partial(compare, name, part.args[0].dtype)
    if name in table:
        return table[name]
    if name in ELEMENTARY:
        return functools.partial(elementary, name)
    if name == "convert":
        return functools.partial(convert, part.args[0].dtype, dtype)
    if name == "right_shift":
        return Builder.ashr if kind == "i" else Builder.lshr
    if name in ("floor_divide", "remainder"):
        return functools.partial(_divided, name, kind == "i")
    if name in ("maximum", "minimum"):
        return functools.partial(_extreme, name, dtype)
    raise UnsupportedError(f"no LLVM IR for {name} of {dtype}")


def combine(b: Builder, name: str, x: Value, y: Value, dtype: DType) -> Value:
    """Combine two values of a reduction: add, multiply, maximum, minimum, and, or, replace."""
    if name == "replace":
        return y
    table = _FLOAT if dtype.kind == "f" else _INTEGER
    if name in ("maximum", "minimum"):
        return _extreme(name, dtype, b, x, y)
    return table[name](b, x, y)


# ---- elementary functions -----------------------------------------------------------------------


class _Line(NamedTuple):
    """An instruction of a function.

    Attributes:
        part: The expression.
        args: The ids of its arguments, by which their values are known; for a constant, the
            scalar type and the text.
        write: The function that writes it; None if it is not a plain instruction.
        rare: The lines that compute the rare values it chooses from.
    """

    part: Scalar
    args: tuple[Any, ...]
    write: Writer | None
    rare: tuple[_Line, ...] = ()


class _Function(NamedTuple):
    """An elementary function for operands of one dtype."""

    arguments: tuple[int, ...]
    lines: tuple[_Line, ...]
    result: int


def elementary(name: str, b: Builder, *args: Value) -> Value:
    """Write an elementary function; it may end in a different block from the one it begins in."""
    function = _function(name, len(args), 4 if args[0].type.scalar == "float" else 8)
    known: dict[Any, Any] = dict(zip(function.arguments, args, strict=True))
    _write_lines(b, function.lines, known, args[0].type.lanes)
    return known[function.result]  # type: ignore[no-any-return]


# Made once: the lines keep the parts alive, whose ids identify values.
@functools.cache
def _function(name: str, count: int, itemsize: int) -> _Function:
    dtype = np.dtype(f"f{itemsize}")
    arguments = [Scalar("argument", (), dtype, extra=n) for n in range(count)]
    result = ELEMENTARY[name](*arguments)
    known = tuple(map(id, arguments))
    return _Function(known, _lines([result], set(known)), id(result))


def _lines(wholes: Iterable[Scalar], known: set[int]) -> tuple[_Line, ...]:
    """The parts of expressions in order, without those known already."""
    lines: list[_Line] = []
    stack = [(whole, False) for whole in wholes]
    while stack:
        part, ready = stack.pop()
        together = part.extra if part.name == "rarely" else ()
        if ready:
            # Parts they share with later ones are computed in both places.
            rare = _lines([each.args[1] for each in together], set(known)) if together else ()
            special = part.name in ("constant", "rarely", "far_remainder", "far_multiple")
            write = None if special else _writer(part)
            args: tuple[Any, ...] = tuple(map(id, part.args))
            if part.name == "constant":
                scalar = register_type(part.dtype).scalar
                args = scalar, number_text(scalar, part.extra)
            lines.append(_Line(part, args, write, rare))
        elif id(part) not in known:
            known.update(map(id, together or [part]))
            needed = [part.args[0], *(each.args[2] for each in together)] if together else part.args
            stack.append((part, True))
            stack += [(arg, False) for arg in reversed(needed)]
    return tuple(lines)


def _write_lines(b: Builder, lines: Iterable[_Line], known: dict[Any, Any], lanes: int) -> None:
    """Write lines; `known` has the values of parts by id."""
    for part, args, write, rare in lines:
        if write is not None:
            known[id(part)] = write(b, *[known[arg] for arg in args])
        elif part.name == "constant":
            known[id(part)] = b.written_const(Type(args[0], lanes), args[1])
        elif part.name == "rarely":
            _write_rarely(b, part, rare, known, lanes)
        else:
            # The remainder and the multiple of a far argument are computed together.
            pair = known.get(args)
            if pair is None:
                values = [known[arg] for arg in args]
                pair = known[args] = with_far_remainders(b, *values, *part.extra)
            known[id(part)] = pair[part.name == "far_multiple"]


def _write_rarely(
    b: Builder, part: Scalar, rare: Iterable[_Line], known: dict[Any, Any], lanes: int
) -> None:
    """Choose between values; the rare ones are computed only if some lane needs them."""
    condition, together = known[id(part.args[0])], part.extra
    before, inside, after = b.block, b.new_block("rare"), b.new_block("common")
    b.branch_if(b.any(condition), inside, after)
    b.start(inside)
    found = dict(known)
    _write_lines(b, rare, found, lanes)
    pairs = [(found[id(each.args[1])], known[id(each.args[2])]) for each in together]
    chosen = [b.select(condition, *pair) for pair in pairs]
    inside = b.block
    b.branch(after)
    b.start(after)
    for each, value, (_, usual) in zip(together, chosen, pairs, strict=True):
        known[id(each)] = b.phi(value.type, (usual, before), (value, inside))


# ---- arithmetic ---------------------------------------------------------------------------------


def _rounding(name: str) -> Callable[..., Value]:
    return lambda b, x: b.intrinsic(name, x.type, x)


_FLOAT: dict[str, Callable[..., Value]] = {
    # A product and a sum are not fused: a value that is computed in two places must have the same
    # bits in both, and the same as in eager code.
    "add": Builder.exact_fadd,
    "subtract": Builder.exact_fsub,
    "multiply": Builder.exact_fmul,
    "divide": Builder.fdiv,
    "negative": Builder.fneg,
    "absolute": Builder.fabs,
    "copysign": Builder.copysign,
    "fma": Builder.fma,
    # Exact for any quotient, which no short sequence of instructions is.
    "fmod": Builder.frem,
    "select": Builder.select,
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "trunc": _rounding("trunc"),
    "rint": _rounding("roundeven"),
    "sqrt": Builder.sqrt,
    "from_bits": Builder.from_bits,
    "signbit": lambda b, x: b.icmp("slt", b.bits(x), 0),
}

_INTEGER: dict[str, Callable[..., Value]] = {
    "add": Builder.add,
    "subtract": Builder.sub,
    "multiply": Builder.mul,
    "and": Builder.and_,
    "or": Builder.or_,
    "xor": Builder.xor,
    "left_shift": Builder.shl,
    "bits": Builder.bits,
    "select": Builder.select,
    "negative": lambda b, x: b.sub(b.const(x.type, 0), x),
    "absolute": lambda b, x: b.select(b.icmp("slt", x, 0), b.sub(b.const(x.type, 0), x), x),
}


def _extreme(name: str, dtype: DType, b: Builder, x: Value, y: Value) -> Value:
    larger = name == "maximum"
    if dtype.kind != "f":
        sign = "s" if dtype.kind == "i" else "u"
        return b.select(b.icmp(sign + ("gt" if larger else "lt"), x, y), x, y)
    # A comparison with NaN is false and takes y, so only x has to be checked.
    chosen = b.select(b.fcmp("ogt" if larger else "olt", x, y), x, y)
    return b.select(b.fcmp("uno", x, x), x, chosen)


def _divided(name: str, signed: bool, b: Builder, x: Value, y: Value) -> Value:
    """Quotient rounded down and its remainder; 0 where the divisor is 0, as in NumPy."""
    zero, one = b.const(x.type, 0), b.const(x.type, 1)
    by_zero = b.icmp("eq", y, zero)
    if not signed:
        safe = b.select(by_zero, one, y)
        result = b.udiv(x, safe) if name == "floor_divide" else b.urem(x, safe)
        return b.select(by_zero, zero, result)
    # Dividing the most negative number by -1 would trap; by 1 it gives the wrapped-around result.
    wraps = b.and_(
        b.icmp("eq", x, -(1 << (x.type.bits - 1))),
        b.icmp("eq", y, -1),
    )
    safe = b.select(b.or_(by_zero, wraps), one, y)
    quotient = b.sdiv(x, safe)
    rest = b.sub(x, b.mul(quotient, safe))
    # Division truncates towards 0: one less where there is a remainder and the signs differ.
    differs = b.icmp("slt", b.xor(rest, safe), zero)
    low = b.and_(differs, b.icmp("ne", rest, zero))
    if name == "floor_divide":
        result = b.select(low, b.sub(quotient, one), quotient)
    else:
        result = b.select(low, b.add(rest, safe), rest)
    return b.select(by_zero, zero, result)


# ---- comparisons and conversions ----------------------------------------------------------------

_COMPARISONS = {
    "equal": ("oeq", "eq", "eq"),
    "not_equal": ("une", "ne", "ne"),
    "less": ("olt", "slt", "ult"),
    "less_equal": ("ole", "sle", "ule"),
    "greater": ("ogt", "sgt", "ugt"),
    "greater_equal": ("oge", "sge", "uge"),
}


def compare(name: str, dtype: DType, b: Builder, x: Value, y: Value) -> Value:
    """Compare two values of a dtype."""
    floating, signed, unsigned = _COMPARISONS[name]
    if dtype.kind == "f":
        return b.fcmp(floating, x, y)
    return b.icmp(signed if dtype.kind == "i" else unsigned, x, y)


def convert(source: DType, target: DType, b: Builder, x: Value) -> Value:
    """Convert a value as `astype` does."""
    if is_half(source):
        return from_half(b, x, source.name)
    if is_half(target):
        return to_half(b, x, target.name)
    to = register_type(target).scalar
    if target == BOOL:
        zero = b.const(x.type, 0)
        return b.fcmp("une", x, zero) if source.kind == "f" else b.icmp("ne", x, zero)
    if source.kind == "f":
        if target.kind == "f":
            how = "fpext" if target.itemsize > source.itemsize else "fptrunc"
            return b.convert(how, x, to)
        return _to_integer(b, x, target)
    if target.kind == "f":
        return b.convert("sitofp" if source.kind == "i" else "uitofp", x, to)
    if target.itemsize == source.itemsize and source != BOOL:
        return x
    if target.itemsize < source.itemsize:
        return b.convert("trunc", x, to)
    return b.convert("sext" if source.kind == "i" else "zext", x, to)


def _to_integer(b: Builder, x: Value, target: DType) -> Value:
    """Truncate towards 0; numbers that do not fit give what NumPy's loops give on x86.

    There that is the smallest integer of the instruction's 32 or 64 bits, of which small dtypes
    keep the lowest ones. Unsigned dtypes of 32 and 64 bits convert numbers below half of their
    range in the same way, so that negative ones wrap around; others with that half subtracted.
    """
    bits = 64 if target.itemsize == 8 else 32
    if target.kind == "i" or target.itemsize < 4:
        value = _cut_off(b, x, bits)
        small = target.itemsize < 4
        return b.convert("trunc", value, f"i{8 * target.itemsize}") if small else value
    half = b.const(x.type, 2.0 ** (bits - 1))
    low, high = _cut_off(b, x, bits), _cut_off(b, b.exact_fsub(x, half), bits)
    flipped = b.xor(high, -(2 ** (bits - 1)))
    return b.select(b.fcmp("oge", x, half), flipped, low)


def _cut_off(b: Builder, x: Value, bits: int) -> Value:
    """A signed integer; the smallest one for numbers that do not fit, NaN included."""
    end = b.const(x.type, 2.0 ** (bits - 1))
    fits = b.fcmp("olt", b.fabs(x), end)
    # LLVM leaves numbers that do not fit undefined; the smallest integer itself need not fit.
    value = b.convert("fptosi", b.select(fits, x, b.const(x.type, 0.0)), f"i{bits}")
    return b.select(fits, value, b.const(value.type, -(2 ** (bits - 1))))
