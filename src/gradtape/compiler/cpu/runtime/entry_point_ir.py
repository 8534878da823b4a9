"""Writes the native entry point of all compiled functions: checks, call, objects for the results.

`PyObject *entry(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)` does
what the program in `self` says. Once the arguments have been found to fit there is one way out,
`done`, which drops all references that are held: to the leaves in lists and dicts, which other
threads could drop during the call, and one to each result. The returned object has its own.
"""

from __future__ import annotations

import numpy as np

from gradtape.compiler.cpu.llvm.builder import I64, PTR, Module, Type, Value
from gradtape.compiler.cpu.llvm.link import Library
from gradtape.compiler.cpu.runtime import blocks
from gradtape.compiler.cpu.runtime.argument_check_ir import I8, I32, NULL, CheckWriter
from gradtape.compiler.cpu.runtime.cache import compiled
from gradtape.compiler.cpu.runtime.entry_tables import (
    ARRAY_WORDS,
    BUILD_WORDS,
    ON_ERROR,
    OTHERWISE,
    PROGRAM,
    SCALAR_WORDS,
    UNLESS,
    UNSETTLED_STATUS,
    Build,
    Header,
    Into,
    Scalar,
)
from gradtape.compiler.cpu.runtime.object_layout import ObjectLayout, c_functions
from gradtape.locks import once

NAME = "gt_entry"
_HEAD = f"define ptr @{NAME}(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) nounwind"
DOUBLE = Type("double")
# The most words of a frame on the stack; frames grow with the arguments and results.
_SMALL_FRAME = 256
_ARGS, _NARGS, _KWNAMES = Value(PTR, "%args"), Value(I64, "%nargs"), Value(PTR, "%kwnames")


@once
def entry_library(layout: ObjectLayout) -> Library:
    """The native entry point, made once per process."""
    text, called = entry_text(layout)
    functions = {**c_functions(), "gt_new_array": blocks.new_array_address()}
    return Library(compiled(text), {name: functions[name] for name in called}, [NAME])


def entry_text(layout: ObjectLayout) -> tuple[str, list[str]]:
    """The module with the entry point, and the C functions it has to be linked with."""
    module = Module()
    writer = EntryWriter(module, layout)
    writer.write()
    return str(module), sorted(writer.called)


class EntryWriter(CheckWriter):
    """Writes the function, stage by stage."""

    def __init__(self, module: Module, layout: ObjectLayout) -> None:
        super().__init__(module, layout)
        self._failed, self._done = self.new_block("failed"), self.new_block("done")
        self._own_frame = self.stack("ptr")  # the frame to free
        self._leave = self.new_block("leave")

    def write(self) -> None:
        """Add the function, and those it calls, to the module."""
        self.store(NULL, self._own_frame)
        program = self.item(self.const(I64, PROGRAM))
        self.program = self.at(program, self.layout.bytes_data)
        as_many = self.icmp("eq", _NARGS, self.header(Header.ARGUMENTS))
        self.require(self.and_(as_many, self.icmp("eq", _KWNAMES, NULL)))
        waits = self.load(self.at(self.item(self.const(I64, UNLESS)), self.layout.size), I64)
        self.require(self.icmp("eq", waits, self.const(I64, 0)))
        self.frame = self._new_frame(self.header(Header.FRAME))
        self._copy(_NARGS, _ARGS, self.frame)
        bound = self.item_at(self.header(Header.FIRST_BOUND))
        self._copy(self.header(Header.BOUND), bound, self.place(_NARGS))
        self.check_arguments()
        self._hold()
        self._allocate()
        self._run()
        self._make_scalars()
        self.records(Header.BUILDS_AT, Header.BUILDS, BUILD_WORDS, self._build)
        self.branch(self._done)
        self._finish()
        self._refuse()
        self.module.define(self.function(_HEAD))

    def _new_frame(self, words: Value) -> Value:
        """Memory for this many words, on the stack if they are few."""
        small = self.icmp("ule", words, self.const(I64, _SMALL_FRAME))
        near = self.alloca(I64, _SMALL_FRAME)
        before, large, go = self.block, self.new_block("large"), self.new_block("go")
        self.branch_if(small, go, large)
        self.start(large)
        far = self.c("PyMem_RawMalloc", PTR, self.mul(words, self.const(I64, 8)))
        self.require(self.icmp("ne", far, NULL))
        self.store(far, self._own_frame)
        made = self.block
        self.branch(go)
        self.start(go)
        return self.phi(PTR, (near, before), (far, made))

    def _free_frame(self) -> None:
        free, after = self.new_block("free"), self.new_block("after")
        own = self.load(self._own_frame, PTR)
        self.branch_if(self.icmp("eq", own, NULL), after, free)
        self.start(free)
        self.do("PyMem_RawFree", own)
        self.branch(after)
        self.start(after)

    def _copy(self, count: Value, objects: Value, room: Value) -> None:
        def copy(i: Value) -> None:
            value = self.load(self.element(objects, i, "ptr"), PTR)
            self.store(value, self.element(room, i, "ptr"))

        self.each(count, copy)

    def _require_made(self, value: Value) -> None:
        """Go on only if a new object could be made; otherwise an error is set."""
        self.require(self.icmp("ne", value, NULL), self._failed)

    # ---- the call --------------------------------------------------------------------------

    def _hold(self) -> None:
        """Take references: from here on objects are owned; results not made yet are null."""
        self.records(
            Header.HOLDS_AT,
            Header.HOLDS,
            1,
            lambda record: self.do("Py_IncRef", self.framed(self.word(record, 0))),
        )
        objects = self.place(self.header(Header.OBJECTS))
        self.each(
            self.header(Header.RESULTS),
            lambda i: self.store(NULL, self.element(objects, i, "ptr")),
        )
        self.store(NULL, self.place(self.header(Header.ROOT)))

    def _allocate(self) -> None:
        """Make the arrays of the results and set the addresses to write to."""
        self.records(Header.ARRAYS_AT, Header.ARRAYS, ARRAY_WORDS, self._allocate_array)

        def set_output(record: Value) -> None:
            room = self.place(self.word(record, 2))
            self.store(room, self._result(Header.OUTPUTS, record))

        self.records(Header.SCALARS_AT, Header.SCALARS, SCALAR_WORDS, set_output)

    def _result(self, table: Header, record: Value) -> Value:
        """The place, in a table of the frame, for the result that a record is about."""
        return self.element(self.place(self.header(table)), self.word(record, 0), "ptr")

    def _allocate_array(self, record: Value) -> None:
        descr = self.item(self.word(record, 1))
        # The function below takes over a reference to the descr.
        self.do("Py_IncRef", descr)
        shapes = self.element(self.program, self.header(Header.SHAPES_AT), "i64")
        what = (
            self.fixed(np.ndarray),
            descr,
            self.convert("trunc", self.word(record, 2), "i32"),
            self.element(shapes, self.word(record, 3), "i64"),
        )
        # No strides, no data; in C order, without a prototype object.
        rest = (NULL, NULL, self.const(I32, 0), NULL)
        handler = self.word(record, 4)
        plain, pooled, made = map(self.new_block, ("plain", "pooled", "made"))
        self.branch_if(self.icmp("eq", handler, self.const(I64, 0)), plain, pooled)
        self.start(plain)
        first = self.c("PyArray_NewFromDescr", PTR, *what, *rest)
        self.branch(made)
        self.start(pooled)
        second = self.c("gt_new_array", PTR, self.item(handler), *what)
        self.branch(made)
        self.start(made)
        array = self.phi(PTR, (first, plain), (second, pooled))
        self._require_made(array)
        self.store(array, self._result(Header.OBJECTS, record))
        self.store(self.field(array, self.layout.array_data), self._result(Header.OUTPUTS, record))

    def _run(self) -> None:
        """Call the compiled function, with or without holding the interpreter."""
        run = self.load(self.at(self.program, 8 * Header.RUN), PTR)
        inputs = self.place(self.header(Header.INPUTS))
        outputs = self.place(self.header(Header.OUTPUTS))
        call = f"call i32 {run.text}({inputs}, {outputs})"
        alone, together, after = map(self.new_block, ("alone", "together", "after"))
        release = self.icmp("ne", self.header(Header.RELEASE), self.const(I64, 0))
        self.branch_if(release, together, alone)
        self.start(together)
        thread = self.c("PyEval_SaveThread", PTR)
        first = self.instruction(I32, call)
        self.do("PyEval_RestoreThread", thread)
        self.branch(after)
        self.start(alone)
        second = self.instruction(I32, call)
        self.branch(after)
        self.start(after)
        status = self.phi(I32, (first, together), (second, alone))
        bad, wrong, fine = map(self.new_block, ("bad", "wrong", "fine"))
        self.branch_if(self.icmp("eq", status, self.const(I32, 0)), fine, bad)
        self.start(bad)
        unsettled = self.icmp("eq", status, self.const(I32, UNSETTLED_STATUS))
        self.branch_if(unsettled, self._leave, wrong)
        self.start(wrong)
        self._raise(status)
        self.start(fine)

    def _raise(self, status: Value) -> None:
        """Let on_error raise, unless code called by the compiled function did already."""
        raised = self.c("PyErr_Occurred", PTR)
        self.require(self.icmp("eq", raised, NULL), self._failed)
        number = self.c("PyLong_FromLong", PTR, self.convert("sext", status, "i64"))
        self._require_made(number)
        # It never returns an object.
        self.c("PyObject_CallOneArg", PTR, self.item(self.const(I64, ON_ERROR)), number)
        self.do("Py_DecRef", number)
        self.branch(self._failed)

    # ---- the result ------------------------------------------------------------------------

    def _make_scalars(self) -> None:
        def make(record: Value) -> None:
            room, descr = self.place(self.word(record, 2)), self.item(self.word(record, 1))

            def put(scalar: Value) -> None:
                self._require_made(scalar)
                self.store(scalar, self._result(Header.OBJECTS, record))

            def double(offset: int = 0) -> Value:
                return self.field(room, offset, DOUBLE)

            def truth() -> Value:
                return self.convert("zext", self.field(room, 0, I8), "i64")

            self.switch(
                self.word(record, 3),
                {
                    Scalar.NUMPY: lambda: put(self.c("PyArray_Scalar", PTR, room, descr, NULL)),
                    Scalar.FLOAT: lambda: put(self.c("PyFloat_FromDouble", PTR, double())),
                    Scalar.INT: lambda: put(
                        self.c("PyLong_FromLongLong", PTR, self.field(room, 0, I64))
                    ),
                    Scalar.BOOL: lambda: put(self.c("PyBool_FromLong", PTR, truth())),
                    Scalar.COMPLEX: lambda: put(
                        self.c("PyComplex_FromDoubles", PTR, double(), double(8))
                    ),
                },
            )

        self.records(Header.SCALARS_AT, Header.SCALARS, SCALAR_WORDS, make)

    def _build(self, record: Value) -> None:
        """Make an object and hand it, with its reference, to its container."""
        operand, made = self.word(record, 2), self.place(self.word(record, 1))

        def known(value: Value) -> None:
            self.do("Py_IncRef", value)
            self.store(value, made)

        def new(value: Value) -> None:
            self._require_made(value)
            self.store(value, made)

        self.switch(
            self.word(record, 0),
            {
                Build.RESULT: lambda: known(self.framed(operand)),
                Build.OBJECT: lambda: known(self.item(operand)),
                Build.TUPLE: lambda: new(self.c("PyTuple_New", PTR, operand)),
                Build.LIST: lambda: new(self.c("PyList_New", PTR, operand)),
                Build.DICT: lambda: new(self.c("PyDict_New", PTR)),
            },
        )
        value = self.load(made, PTR)
        owner, place = self.word(record, 4), self.word(record, 5)

        def put(items: Value) -> None:
            self.store(value, self.element(items, place, "ptr"))

        layout = self.layout
        self.switch(
            self.word(record, 3),
            {
                Into.ROOT: lambda: self.store(value, self.place(owner)),
                Into.TUPLE: lambda: put(self.at(self.framed(owner), layout.tuple_items)),
                Into.LIST: lambda: put(self.field(self.framed(owner), layout.list_items)),
                Into.DICT: lambda: self._set_item(self.framed(owner), self.item(place), value),
            },
        )

    def _set_item(self, owner: Value, key: Value, value: Value) -> None:
        status = self.c("PyDict_SetItem", I32, owner, key, value)
        # The dict has a reference of its own.
        self.do("Py_DecRef", value)
        self.require(self.icmp("eq", status, self.const(I32, 0)), self._failed)

    # ---- the end ---------------------------------------------------------------------------

    def _finish(self) -> None:
        self.start(self._failed)
        # Dropping the root drops everything already in it.
        root = self.place(self.header(Header.ROOT))
        self.do("Py_DecRef", self.load(root, PTR))
        self.store(NULL, root)
        self.branch(self._done)

        self.start(self._done)
        self._let_go()
        result = self.framed(self.header(Header.ROOT))
        self._free_frame()
        self.emit(f"ret {result}")

        self.start(self._leave)
        self._let_go()
        self.branch(self.miss)

    def _let_go(self) -> None:
        """Drop all references except to the returned object."""
        self.records(
            Header.HOLDS_AT,
            Header.HOLDS,
            1,
            lambda record: self.do("Py_DecRef", self.framed(self.word(record, 0))),
        )
        objects = self.place(self.header(Header.OBJECTS))
        self.each(
            self.header(Header.RESULTS),
            lambda i: self.do("Py_DecRef", self.load(self.element(objects, i, "ptr"), PTR)),
        )

    def _refuse(self) -> None:
        """Pass the arguments on to `otherwise`, or say that they do not fit."""
        self.start(self.miss)
        self._free_frame()
        # Comparing strings may have run out of memory.
        self.do("PyErr_Clear")
        otherwise, refused = self.item(self.const(I64, OTHERWISE)), self.fixed(NotImplemented)
        alone, other = self.new_block("alone"), self.new_block("other")
        self.branch_if(self.icmp("eq", otherwise, refused), alone, other)
        self.start(alone)
        self.do("Py_IncRef", refused)
        self.emit(f"ret {refused}")
        self.start(other)
        # A tail call: endless recursion then hits Python's limit, without extra frames of ours on
        # the stack.
        self.use("PyObject_Vectorcall", PTR, PTR, PTR, I64, PTR)
        given = f"{otherwise}, {_ARGS}, {_NARGS}, {_KWNAMES}"
        result = self.instruction(PTR, f"musttail call ptr @PyObject_Vectorcall({given})")
        self.emit(f"ret {result}")
