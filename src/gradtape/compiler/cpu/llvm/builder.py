"""A small writer of LLVM IR: each method appends one instruction and returns its result.

It writes text rather than using llvmlite's object builder: that is several times faster, and it is
what `explain` shows. Values are vectors of any number of lanes; one lane is a plain scalar, so that
the same code writes the body of a vector loop and of a scalar one.

Floating-point arithmetic carries the flag `contract` (a product and a sum may become one fused
instruction) and no other: everything else keeps the meaning NumPy gives it, for NaN, infinities and
signed zeros. Where a computation depends on its own rounding errors, the `exact_` methods leave out
that flag too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

_FLOAT_BITS = {"half": 16, "float": 32, "double": 64}
_BITS = {**_FLOAT_BITS, "i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "ptr": 64}
_INTRINSIC_SUFFIX = {"float": "f32", "double": "f64"}
# Instructions that give the same result anywhere; others read or allocate memory.
_PURE = frozenset(
    (
        *("add", "sub", "mul", "udiv", "sdiv", "urem", "srem"),
        *("and", "or", "xor", "shl", "lshr", "ashr"),
        *("fadd", "fsub", "fmul", "fdiv", "fneg", "frem"),
        *("icmp", "fcmp", "select", "getelementptr"),
        *("insertelement", "extractelement", "shufflevector"),
        *("sext", "zext", "trunc", "bitcast", "fpext", "fptrunc"),
        *("sitofp", "uitofp", "fptosi", "fptoui"),
    )
)


class Type(NamedTuple):
    """A scalar type of LLVM (float, double, i1 … i64, ptr) in a number of lanes."""

    scalar: str
    lanes: int = 1

    def __str__(self) -> str:
        return self.scalar if self.lanes == 1 else f"<{self.lanes} x {self.scalar}>"

    @property
    def is_float(self) -> bool:
        """Whether it is float or double."""
        return self.scalar in _INTRINSIC_SUFFIX

    @property
    def bits(self) -> int:
        """Bits of one lane."""
        return _BITS[self.scalar]

    @property
    def suffix(self) -> str:
        """Its name in intrinsics: v16f32, i64."""
        scalar = _INTRINSIC_SUFFIX.get(self.scalar, self.scalar)
        return scalar if self.lanes == 1 else f"v{self.lanes}{scalar}"

    @property
    def as_int(self) -> Type:
        """The integers of the same width."""
        return Type(f"i{self.bits}", self.lanes)

    def of(self, scalar: str) -> Type:
        """Another scalar type in as many lanes."""
        return Type(scalar, self.lanes)


class Value(NamedTuple):
    """The result of an instruction, a parameter or a constant."""

    type: Type
    text: str

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


I64 = Type("i64")
PTR = Type("ptr")
VOID = Type("void")
NULL = Value(PTR, "null")


class Module:
    """Text of a module: declarations and functions, each once.

    Attributes:
        has_half: Whether the CPU it is for converts between float16 and float32.
    """

    def __init__(self, *, has_half: bool = False) -> None:
        self.has_half = has_half
        self._declarations: dict[str, str] = {}
        self._functions: list[str] = []
        self._names: set[str] = set()

    def declare(self, name: str, result: Type | str, parameters: Iterable[Type | str]) -> None:
        """Declare a function that is defined elsewhere."""
        listed = ", ".join(str(parameter) for parameter in parameters)
        self._declarations[name] = f"declare {result} @{name}({listed})"

    def define(self, text: str) -> None:
        """Add the text of a function or a global."""
        self._functions.append(text)
        self._names.add(text.partition("@")[2].partition("(")[0])

    def defines(self, name: str) -> bool:
        """Whether a function of this name was added."""
        return name in self._names

    def __str__(self) -> str:
        return "\n".join([*self._declarations.values(), "", *self._functions, ""])


# The second operand of an instruction; a number is a constant of the type of the first.
Operand = Value | int | float


def _binary(how: str) -> Callable[[Builder, Value, Operand], Value]:
    """A method that writes an instruction on two values of the type that its result has."""

    def write(self: Builder, x: Value, y: Operand) -> Value:
        return self.instruction(x.type, f"{how} {x}, {self._second(x, y)}")

    return write


class Builder:
    """Writes the body of one function.

    Attributes:
        module: The module in which intrinsics are declared.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self._lines: list[str] = []
        # Constants are in the entry block once; LLVM folds them into the instructions.
        self._constants: dict[tuple[Type, int | float | str], Value] = {}
        self._entry: list[str] = []
        self._spare: dict[tuple[Type, int], Value] = {}
        self._names = 0
        self.block = "entry"
        # The instructions of the block so far, by their text: nothing is computed twice.
        self._computed: dict[str, Value] = {}

    # ---- text ------------------------------------------------------------------------------

    def fresh(self, hint: str = "") -> str:
        """A name not used yet in this function."""
        self._names += 1
        return f"%{hint}{self._names}" if hint else f"%v{self._names}"

    def emit(self, line: str) -> None:
        """Append a line as it is."""
        self._lines.append("  " + line)

    def instruction(self, type: Type, text: str) -> Value:
        """Append an instruction with a result, unless the block has it already."""
        known = self._computed.get(text)
        if known is not None:
            return known
        name = self.fresh()
        self._lines.append(f"  {name} = {text}")
        value = Value(type, name)
        if text[: text.find(" ")] in _PURE:
            self._computed[text] = value
        return value

    def function(self, head: str) -> str:
        """The text of the function with the given head (`define … @name(…) …`)."""
        return "\n".join([f"{head} {{", "entry:", *self._entry, *self._lines, "}"])

    # ---- blocks ----------------------------------------------------------------------------

    def new_block(self, hint: str) -> str:
        """A label to branch to."""
        return self.fresh(hint)[1:]

    def start(self, label: str) -> None:
        """Begin the block of a label."""
        self._lines.append(f"{label}:")
        self.block = label
        self._computed.clear()

    def branch(self, label: str) -> None:
        """End the block by going to another."""
        self.emit(f"br label %{label}")

    def branch_if(
        self, condition: Value, label: str, otherwise: str, *, likely: bool = False
    ) -> None:
        """End the block by going to one of two others, nearly always the first if it is likely."""
        weights = ", !prof !0" if likely else ""
        self.emit(f"br i1 {condition.text}, label %{label}, label %{otherwise}{weights}")

    def phi(self, type: Type, *incoming: tuple[Value | str, str]) -> Value:
        """A value that depends on the block control came from."""
        pairs = ", ".join(
            f"[ {value.text if isinstance(value, Value) else value}, %{label} ]"
            for value, label in incoming
        )
        return self.instruction(type, f"phi {type} {pairs}")

    @contextmanager
    def only_if(self, condition: Value, *, returns: bool = False) -> Iterator[None]:
        """Run a body if a condition holds; values computed in it cannot be used afterwards.

        Args:
            condition: The condition.
            returns: Whether the body ends with a return.
        """
        body, end = self.new_block("body"), self.new_block("end")
        self.branch_if(condition, body, end)
        self.start(body)
        yield
        if not returns:
            self.branch(end)
        self.start(end)

    @contextmanager
    def loop(
        self,
        stop: int | Value,
        state: list[Value] | None = None,
        *,
        start: int | Value = 0,
        step: int = 1,
    ) -> Iterator[Value]:
        """Run a body with a counter that is below `stop`, at least once.

        The entries of `state` carry over from one turn to the next.
        """
        state = [] if state is None else state
        first, end = (self.const(I64, x) if isinstance(x, int) else x for x in (start, stop))
        before, (head, latch, after) = self.block, map(self.new_block, ("loop", "latch", "end"))
        self.branch(head)
        self.start(head)
        counter, following = self.fresh("n"), self.fresh("n")
        self.emit(f"{counter} = phi i64 [ {first.text}, %{before} ], [ {following}, %{latch} ]")
        names = [(self.fresh("s"), self.fresh("s")) for _ in state]
        for (name, later), value in zip(names, state, strict=True):
            came = f"[ {value.text}, %{before} ], [ {later}, %{latch} ]"
            self.emit(f"{name} = phi {value.type} {came}")
        state[:] = [Value(value.type, name) for (name, _), value in zip(names, state, strict=True)]
        yield Value(I64, counter)
        self.branch(latch)
        self.start(latch)
        # A phi names a value that is not computed yet; a cast to the same type gives it that name.
        for (_, later), value in zip(names, state, strict=True):
            self.emit(f"{later} = bitcast {value} to {value.type}")
        self.emit(f"{following} = add i64 {counter}, {step}")
        self.branch_if(self.icmp("ult", Value(I64, following), end), head, after)
        self.start(after)

    # ---- constants -------------------------------------------------------------------------

    def const(self, type: Type, value: int | float) -> Value:
        """A constant in every lane; it is rounded to single precision if the type is `float`."""
        return self.written_const(type, number_text(type.scalar, value))

    def written_const(self, type: Type, text: str) -> Value:
        """The same for a constant that is text already."""
        if type.lanes == 1:
            return Value(type, text)
        known = self._constants.get((type, text))
        if known is None:
            name = self.fresh("c")
            one = f"insertelement {type} poison, {type.scalar} {text}, i64 0"
            self._entry.append(f"  {name}s = {one}")
            self._entry.append(
                f"  {name} = shufflevector {type} {name}s, {type} poison, "
                f"<{type.lanes} x i32> zeroinitializer"
            )
            known = self._constants[type, text] = Value(type, name)
        return known

    def lanes_const(self, type: Type, values: Sequence[int | float]) -> Value:
        """A constant with its own value in each lane."""
        listed = ", ".join(f"{type.scalar} {number_text(type.scalar, value)}" for value in values)
        return Value(type, f"<{listed}>" if type.lanes > 1 else number_text(type.scalar, values[0]))

    def splat(self, x: Value, lanes: int) -> Value:
        """A scalar in every lane."""
        if lanes == 1:
            return x
        type = Type(x.type.scalar, lanes)
        one = self.instruction(type, f"insertelement {type} poison, {x}, i64 0")
        return self.instruction(
            type,
            f"shufflevector {one}, {type} poison, <{lanes} x i32> zeroinitializer",
        )

    def lanes_of(self, x: Value, y: Value, numbers: Sequence[int]) -> Value:
        """Lanes of x followed by y, picked by number; a single one, of x, as a scalar."""
        type, count = Type(x.type.scalar, len(numbers)), len(numbers)
        if count == 1:
            return self.instruction(type, f"extractelement {x}, i64 {numbers[0]}")
        picked = ", ".join(f"i32 {number}" for number in numbers)
        return self.instruction(type, f"shufflevector {x}, {y}, <{count} x i32> <{picked}>")

    def transposed(self, lines: Sequence[Value]) -> list[Value]:
        """Transpose a square: quarters off the diagonal change places, in ever smaller squares."""
        lines, side = list(lines), len(lines)
        half = side // 2
        while half:
            low = [lane if not lane & half else side + lane - half for lane in range(side)]
            high = [lane + half if not lane & half else side + lane for lane in range(side)]
            for first in (line for line in range(side) if not line & half):
                pair = lines[first], lines[first + half]
                lines[first] = self.lanes_of(*pair, low)
                lines[first + half] = self.lanes_of(*pair, high)
            half //= 2
        return lines

    def _second(self, x: Value, y: Operand) -> str:
        return (y if isinstance(y, Value) else self.const(x.type, y)).text

    # ---- floating point --------------------------------------------------------------------

    fadd = _binary("fadd contract")
    fsub = _binary("fsub contract")
    fmul = _binary("fmul contract")
    fdiv = _binary("fdiv")
    exact_fadd = _binary("fadd")
    exact_fsub = _binary("fsub")
    exact_fmul = _binary("fmul")
    frem = _binary("frem")

    def fneg(self, x: Value) -> Value:
        return self.instruction(x.type, f"fneg {x}")

    def fma(self, x: Value, y: Value, z: Value) -> Value:
        """x·y + z, fused where the CPU has such an instruction."""
        return self.intrinsic("fmuladd", x.type, x, y, z)

    def fabs(self, x: Value) -> Value:
        return self.intrinsic("fabs", x.type, x)

    def sqrt(self, x: Value) -> Value:
        return self.intrinsic("sqrt", x.type, x)

    def copysign(self, x: Value, y: Value) -> Value:
        """The absolute value of x with the sign of y."""
        return self.intrinsic("copysign", x.type, x, y)

    def fcmp(self, predicate: str, x: Value, y: Operand) -> Value:
        """Compare; `predicate` is LLVM's (oeq, olt, une, uno, …)."""
        return self.instruction(x.type.of("i1"), f"fcmp {predicate} {x}, {self._second(x, y)}")

    # ---- integers --------------------------------------------------------------------------

    add = _binary("add")
    sub = _binary("sub")
    mul = _binary("mul")
    and_ = _binary("and")
    or_ = _binary("or")
    xor = _binary("xor")
    shl = _binary("shl")
    lshr = _binary("lshr")
    ashr = _binary("ashr")
    sdiv = _binary("sdiv")
    udiv = _binary("udiv")
    urem = _binary("urem")

    def icmp(self, predicate: str, x: Value, y: Operand) -> Value:
        """Compare; `predicate` is LLVM's (eq, ne, slt, ult, …)."""
        return self.instruction(x.type.of("i1"), f"icmp {predicate} {x}, {self._second(x, y)}")

    # ---- both ------------------------------------------------------------------------------

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        """X where the condition holds, y elsewhere."""
        return self.instruction(x.type, f"select {condition}, {x}, {y}")

    def any(self, condition: Value) -> Value:
        """Whether a condition holds in any lane."""
        lanes = condition.type.lanes
        if lanes == 1:
            return condition
        return self.call(f"llvm.vector.reduce.or.v{lanes}i1", Type("i1"), condition)

    def convert(self, how: str, x: Value, scalar: str) -> Value:
        """Convert every lane; `how` is LLVM's (sitofp, fptosi, fpext, trunc, zext, bitcast, …)."""
        to = x.type.of(scalar)
        return self.instruction(to, f"{how} {x} to {to}")

    def bits(self, x: Value) -> Value:
        """The bits of a float as an integer of the same width."""
        return self.convert("bitcast", x, x.type.as_int.scalar)

    def from_bits(self, x: Value) -> Value:
        """The float of these bits."""
        return self.convert("bitcast", x, "float" if x.type.bits == 32 else "double")

    def intrinsic(self, name: str, type: Type, *args: Value) -> Value:
        """Call `llvm.<name>` of a type; its result has that type."""
        full = f"llvm.{name}.{type.suffix}"
        self.module.declare(full, type, [arg.type for arg in args])
        listed = ", ".join(str(arg) for arg in args)
        flag = "contract " if name == "fmuladd" else ""
        return self.instruction(type, f"call {flag}{type} @{full}({listed})")

    def call(self, name: str, result: Type, *args: Value) -> Value:
        """Call a function that is defined elsewhere."""
        self.module.declare(name, result, [arg.type for arg in args])
        text = f"call {result} @{name}({', '.join(map(str, args))})"
        if result != VOID:
            return self.instruction(result, text)
        self.emit(text)
        return Value(VOID, "")

    # ---- memory ----------------------------------------------------------------------------

    def alloca(self, type: Type, count: int = 1, *, align: int = 64) -> Value:
        """Stack memory for values, for the whole function; LLVM keeps a single one in registers."""
        name = self.fresh("a")
        self._entry.append(f"  {name} = alloca {type}, i64 {count}, align {align}")
        return Value(PTR, name)

    def spare(self, type: Type, number: int = 0) -> Value:
        """Memory for a short-lived value: shared by all who ask for the same type and number."""
        known = self._spare.get((type, number))
        if known is None:
            known = self._spare[type, number] = self.alloca(type)
        return known

    def element(self, pointer: Value, index: Value | int, scalar: str | Type) -> Value:
        """The address of an element of an array; one per lane if the index has lanes."""
        if isinstance(index, int):
            index = self.const(I64, index)
        type = Type("ptr", index.type.lanes)
        return self.instruction(type, f"getelementptr {scalar}, {pointer}, {index}")

    def load(self, pointer: Value, type: Type, order: str = "") -> Value:
        """Load from an address aligned for its scalar type; with an order, atomically."""
        how, place = ("load atomic", f"{pointer} {order}") if order else ("load", pointer)
        return self.instruction(type, f"{how} {type}, {place}, align {max(type.bits // 8, 1)}")

    def store(self, value: Value, pointer: Value, order: str = "") -> None:
        """Store to an address aligned for its scalar type; with an order, atomically."""
        how, place = ("store atomic", f"{pointer} {order}") if order else ("store", pointer)
        self.emit(f"{how} {value}, {place}, align {max(value.type.bits // 8, 1)}")

    def lower(self, pointer: Value, value: Value) -> None:
        """Store an unsigned integer if it is below the one that is there, atomically."""
        self.emit(f"{self.fresh()} = atomicrmw umin {pointer}, {value} monotonic")

    def masked_load(self, pointer: Value, type: Type, mask: Value) -> Value:
        """Load some lanes, others are 0: in a row from one address, or each from its own."""
        name = self._masked("load", "gather", pointer, type)
        # Every LLVM reads the form with an alignment operand.
        self.module.declare(name, type, [pointer.type, "i32 immarg", mask.type, type])
        given = f"{pointer}, i32 {max(type.bits // 8, 1)}, {mask}, {type} zeroinitializer"
        return self.instruction(type, f"call {type} @{name}({given})")

    def masked_store(self, value: Value, pointer: Value, mask: Value) -> None:
        """Store some lanes, in a row or each to its own address; other memory is not touched."""
        type = value.type
        name = self._masked("store", "scatter", pointer, type)
        self.module.declare(name, "void", [type, pointer.type, "i32 immarg", mask.type])
        given = f"{value}, {pointer}, i32 {max(type.bits // 8, 1)}, {mask}"
        self.emit(f"call void @{name}({given})")

    def _masked(self, in_row: str, apart: str, pointer: Value, type: Type) -> str:
        """The name of an intrinsic for one address, or for several."""
        lanes = pointer.type.lanes
        how, place = (in_row, "p0") if lanes == 1 else (apart, f"v{lanes}p0")
        return f"llvm.masked.{how}.{type.suffix}.{place}"


def number_text(scalar: str, value: int | float) -> str:
    """The text of a constant; floats as bits, which read back exactly."""
    if scalar == "i1":
        return "true" if value else "false"
    if scalar not in _INTRINSIC_SUFFIX:
        return str(int(value))
    number = float(value)
    if scalar == "float":
        # Rounds to the nearest float, or to infinity if it is too large.
        try:
            number = struct.unpack("<f", struct.pack("<f", number))[0]
        except OverflowError:
            number = float("inf") if number > 0 else float("-inf")
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
