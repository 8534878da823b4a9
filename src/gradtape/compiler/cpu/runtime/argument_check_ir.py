"""Writes the part of the native entry point that checks the arguments.

Nothing is owned while arguments are checked, so one that does not fit leads to `miss`, where there
is nothing to undo. Nor can Python code run meanwhile: only exact types, and keys that are strings,
are accepted. So borrowed references stay valid until the checks are over.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from gradtape.compiler.cpu.llvm.builder import I64, PTR, Builder, Module, Type, Value
from gradtape.compiler.cpu.runtime.entry_tables import (
    CHECK_WORDS,
    FIRST_FIXED,
    FIXED,
    Check,
    Header,
)
from gradtape.compiler.cpu.runtime.object_layout import ALIGNED, C_CONTIGUOUS, SWAPPED, ObjectLayout

I1, I8, I32 = Type("i1"), Type("i8"), Type("i32")
NULL = Value(PTR, "null")
SELF = Value(PTR, "%self")
_PY_EQ = 2

# The values of a dict of `count` entries, at least one, if the wanted keys are in it in this order.
# Mostly they are the same objects; others are compared if they are plain strings: comparing
# anything else could run arbitrary code.
_LOOK_UP = """\
define internal i1 @look_up(ptr %dict, ptr %keys, i64 %count, ptr %str, ptr %values) nounwind {
entry:
  %position = alloca i64, align 8
  %key = alloca ptr, align 8
  store i64 0, ptr %position, align 8
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %after, %same ]
  %place = getelementptr ptr, ptr %values, i64 %i
  %found = call i32 @PyDict_Next(ptr %dict, ptr %position, ptr %key, ptr %place)
  %is_found = icmp ne i32 %found, 0
  br i1 %is_found, label %compare, label %no
compare:
  %one = load ptr, ptr %key, align 8
  %wanted_at = getelementptr ptr, ptr %keys, i64 %i
  %wanted = load ptr, ptr %wanted_at, align 8
  %is_same = icmp eq ptr %one, %wanted
  br i1 %is_same, label %same, label %other
other:
  %type_at = getelementptr i8, ptr %one, i64 $TYPE$
  %type = load ptr, ptr %type_at, align 8
  %is_plain = icmp eq ptr %type, %str
  br i1 %is_plain, label %by_value, label %no
by_value:
  %answer = call i32 @PyObject_RichCompareBool(ptr %one, ptr %wanted, i32 $EQUAL$)
  %is_equal = icmp eq i32 %answer, 1
  br i1 %is_equal, label %same, label %no
same:
  %after = add i64 %i, 1
  %more = icmp ult i64 %after, %count
  br i1 %more, label %next, label %yes
yes:
  ret i1 true
no:
  ret i1 false
}"""


class CheckWriter(Builder):
    """Writes the checks, from pieces that the rest of the entry point is also made of.

    Attributes:
        called: The C functions that are called.
        miss: The block for arguments that do not fit.
        program: The address of the program, once known.
        frame: The address of the frame, once known.
    """

    def __init__(self, module: Module, layout: ObjectLayout) -> None:
        super().__init__(module)
        self.called: set[str] = set()
        self.layout = layout
        self.miss = self.new_block("miss")
        self.program = self.frame = NULL

    # ---- pieces ----------------------------------------------------------------------------

    def stack(self, type: str) -> Value:
        """A variable of the function."""
        name = self.fresh("variable")
        self._entry.append(f"  {name} = alloca {type}, align 8")
        return Value(PTR, name)

    def at(self, owner: Value, offset: int) -> Value:
        """The address `offset` bytes further on."""
        return self.element(owner, self.const(I64, offset), "i8")

    def field(self, owner: Value, offset: int, type: Type = PTR) -> Value:
        """A field of an object."""
        return self.load(self.at(owner, offset), type)

    def word(self, table: Value, index: int) -> Value:
        """A word of a table."""
        return self.field(table, 8 * index, I64)

    def header(self, field: Header) -> Value:
        """A word of the header."""
        return self.word(self.program, field)

    def place(self, index: Value) -> Value:
        """The address of a place in the frame."""
        return self.element(self.frame, index, "i64")

    def framed(self, index: Value) -> Value:
        """The object at a place in the frame."""
        return self.load(self.place(index), PTR)

    def item_at(self, index: Value) -> Value:
        """The address of an object in `self`."""
        return self.element(self.at(SELF, self.layout.tuple_items), index, "ptr")

    def item(self, index: Value) -> Value:
        """An object in `self`."""
        return self.load(self.item_at(index), PTR)

    def fixed(self, value: object) -> Value:
        """One of the objects that every entry point knows."""
        place = next(place for place, known in enumerate(FIXED) if known is value)
        return self.item(self.const(I64, FIRST_FIXED + place))

    def c(self, name: str, result: Type, *args: Value) -> Value:
        """Call a C function that has a result."""
        self.use(name, result, *(arg.type for arg in args))
        return self.call(name, result, *args)

    def do(self, name: str, *args: Value) -> None:
        """Call a C function without a result."""
        self.use(name, "void", *(arg.type for arg in args))
        self.emit(f"call void @{name}({', '.join(map(str, args))})")

    def use(self, name: str, result: Type | str, *types: Type) -> None:
        """Note that a C function is called."""
        self.called.add(name)
        self.module.declare(name, result, types)

    def require(self, condition: Value, otherwise: str | None = None) -> None:
        """Go on only if the condition holds; else to the block `otherwise`, by default `miss`."""
        fine = self.new_block("fine")
        self.branch_if(condition, fine, otherwise or self.miss)
        self.start(fine)

    def each(self, count: Value, body: Callable[[Value], None]) -> None:
        """Write a loop that runs `count` times; the body gets the index."""
        index = self.stack("i64")
        self.store(self.const(I64, 0), index)
        head, inside, after = map(self.new_block, ("head", "inside", "after"))
        self.branch(head)
        self.start(head)
        now = self.load(index, I64)
        self.branch_if(self.icmp("ult", now, count), inside, after)
        self.start(inside)
        body(now)
        self.store(self.add(now, self.const(I64, 1)), index)
        self.branch(head)
        self.start(after)

    def records(
        self, table: Header, count: Header, words: int, body: Callable[[Value], None]
    ) -> None:
        """Write a loop over the records of a table; the body gets the address of each."""
        start = self.element(self.program, self.header(table), "i64")
        length = self.const(I64, words)
        self.each(
            self.header(count), lambda i: body(self.element(start, self.mul(i, length), "i64"))
        )

    def switch(self, choice: Value, cases: dict[int, Callable[[], None]]) -> None:
        """Write a switch between pieces of code, then go on; other numbers do not occur."""
        after, never = self.new_block("after"), self.new_block("never")
        labels = {number: self.new_block("case") for number in cases}
        listed = " ".join(f"i64 {number}, label %{label}" for number, label in labels.items())
        self.emit(f"switch {choice}, label %{never} [ {listed} ]")
        for number, case in cases.items():
            self.start(labels[number])
            case()
            self.branch(after)
        self.start(never)
        self.emit("unreachable")
        self.start(after)

    # ---- checks ----------------------------------------------------------------------------

    def check_arguments(self) -> None:
        """Take the arguments apart and compare them with the program."""
        self.use("PyDict_Next", I32, PTR, PTR, PTR, PTR)
        self.use("PyObject_RichCompareBool", I32, PTR, PTR, I32)
        look_up = _LOOK_UP.replace("$TYPE$", str(self.layout.type))
        self.module.define(look_up.replace("$EQUAL$", str(_PY_EQ)))
        self.records(Header.CHECKS_AT, Header.CHECKS, CHECK_WORDS, self._check)

    def _check(self, record: Value) -> None:
        value = self.framed(self.word(record, 1))
        cases: dict[int, Callable[[Value, Value], None]] = {
            Check.ARRAY: self._check_array,
            Check.SCALAR: self._check_scalar,
            Check.FLOAT: self._check_float,
            Check.INT: self._check_int,
            Check.BOOL: self._check_bool,
            Check.SAME: self._check_same,
            Check.EQUAL: self._check_equal,
            Check.SAME_BITS: self._check_bits,
            Check.TUPLE: self._check_tuple,
            Check.LIST: self._check_list,
            Check.DICT: self._check_dict,
        }
        self.switch(
            self.word(record, 0),
            {number: functools.partial(case, record, value) for number, case in cases.items()},
        )

    def _require_type(self, value: Value, type: Value) -> None:
        self.require(self.icmp("eq", self.field(value, self.layout.type), type))

    def _set_input(self, record: Value, address: Value) -> None:
        self.store(address, self.place(self.word(record, 2)))

    def _check_array(self, record: Value, value: Value) -> None:
        layout = self.layout
        self._require_type(value, self.fixed(np.ndarray))
        wanted = self.const(I32, C_CONTIGUOUS | ALIGNED)
        flags = self.and_(self.field(value, layout.array_flags, I32), wanted)
        ndim = self.convert("zext", self.field(value, layout.array_ndim, I32), "i64")
        same_ndim = self.icmp("eq", ndim, self.word(record, 6))
        self.require(self.and_(self.icmp("eq", flags, wanted), same_ndim))
        # Mostly NumPy's own object for the dtype; unpickled arrays have another.
        descr = self.field(value, layout.array_descr)
        other, fine = self.new_block("other"), self.new_block("fine")
        self.branch_if(self.icmp("eq", descr, self.item(self.word(record, 3))), fine, other)
        self.start(other)
        byteorder = self.field(descr, layout.descr_byteorder, I8)
        native = self.icmp("ne", byteorder, self.const(I8, SWAPPED))
        number = self.convert("zext", self.field(descr, layout.descr_number, I32), "i64")
        first = self.icmp("eq", number, self.word(record, 4))
        second = self.icmp("eq", number, self.word(record, 5))
        self.branch_if(self.and_(native, self.or_(first, second)), fine, self.miss)
        self.start(fine)
        dims = self.field(value, layout.array_dims)
        shapes = self.element(self.program, self.header(Header.SHAPES_AT), "i64")
        shape = self.element(shapes, self.word(record, 7), "i64")

        def check_size(axis: Value) -> None:
            found = self.load(self.element(dims, axis, "i64"), I64)
            self.require(self.icmp("eq", found, self.load(self.element(shape, axis, "i64"), I64)))

        self.each(ndim, check_size)
        self._set_input(record, self.field(value, layout.array_data))

    def _check_scalar(self, record: Value, value: Value) -> None:
        self._require_type(value, self.item(self.word(record, 3)))
        self._set_input(record, self.element(value, self.word(record, 4), "i8"))

    def _check_float(self, record: Value, value: Value) -> None:
        self._require_type(value, self.fixed(float))
        self._set_number(record, self.field(value, self.layout.float_value, I64))

    def _check_int(self, record: Value, value: Value) -> None:
        self._require_type(value, self.fixed(int))
        overflow = self.stack("i32")
        number = self.c("PyLong_AsLongLongAndOverflow", I64, value, overflow)
        self.require(self.icmp("eq", self.load(overflow, I32), self.const(I32, 0)))
        self._set_number(record, number)

    def _check_bool(self, record: Value, value: Value) -> None:
        yes = self.icmp("eq", value, self.fixed(True))
        self.require(self.or_(yes, self.icmp("eq", value, self.fixed(False))))
        self._set_number(record, self.convert("zext", yes, "i8"))

    def _set_number(self, record: Value, number: Value) -> None:
        room = self.place(self.word(record, 3))
        self.store(number, room)
        self._set_input(record, room)

    def _check_same(self, record: Value, value: Value) -> None:
        self.require(self.icmp("eq", value, self.item(self.word(record, 2))))

    def _check_equal(self, record: Value, value: Value) -> None:
        wanted = self.item(self.word(record, 2))
        self._require_type(value, self.item(self.word(record, 3)))
        # Quick if it is the same object.
        how = self.const(I32, _PY_EQ)
        answer = self.c("PyObject_RichCompareBool", I32, value, wanted, how)
        self.require(self.icmp("eq", answer, self.const(I32, 1)))

    def _check_bits(self, record: Value, value: Value) -> None:
        self._require_type(value, self.fixed(float))
        bits = self.field(value, self.layout.float_value, I64)
        self.require(self.icmp("eq", bits, self.word(record, 2)))

    def _check_tuple(self, record: Value, value: Value) -> None:
        self._require_type(value, self.fixed(tuple))
        self._require_length(record, value, self.layout.size)
        self._copy_items(record, self.at(value, self.layout.tuple_items))

    def _check_list(self, record: Value, value: Value) -> None:
        self._require_type(value, self.fixed(list))
        self._require_length(record, value, self.layout.size)
        self._copy_items(record, self.field(value, self.layout.list_items))

    def _check_dict(self, record: Value, value: Value) -> None:
        self._require_type(value, self.fixed(dict))
        count = self._require_length(record, value, self.layout.dict_used)
        some, after = self.new_block("some"), self.new_block("after")
        self.branch_if(self.icmp("eq", count, self.const(I64, 0)), after, some)
        self.start(some)
        keys, room = self.item_at(self.word(record, 4)), self.place(self.word(record, 3))
        found = self.call("look_up", I1, value, keys, count, self.fixed(str), room)
        self.branch_if(found, after, self.miss)
        self.start(after)

    def _require_length(self, record: Value, value: Value, offset: int) -> Value:
        length = self.field(value, offset, I64)
        self.require(self.icmp("eq", length, self.word(record, 2)))
        return length

    def _copy_items(self, record: Value, items: Value) -> None:
        room = self.place(self.word(record, 3))

        def copy(i: Value) -> None:
            self.store(self.load(self.element(items, i, "ptr"), PTR), self.element(room, i, "ptr"))

        self.each(self.word(record, 2), copy)
