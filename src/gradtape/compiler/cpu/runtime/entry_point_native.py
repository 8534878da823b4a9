"""The native entry point of all compiled functions: checks, call, objects for the results.

`gt_entry(self, args, nargs, kwnames)` is called by Python's fast calling convention. It does what
the program in `self` says (`entry_tables`).
"""

from __future__ import annotations

import dataclasses
import enum

from gradtape.compiler.cpu.llvm.link import Library
from gradtape.compiler.cpu.llvm.native_source import NativeSource
from gradtape.compiler.cpu.runtime import blocks
from gradtape.compiler.cpu.runtime.cache import compiled
from gradtape.compiler.cpu.runtime.entry_tables import (
    ARRAY_WORDS,
    BUILD_WORDS,
    CHECK_WORDS,
    FIRST_FIXED,
    FIXED,
    ON_ERROR,
    OTHERWISE,
    PROGRAM,
    SCALAR_WORDS,
    UNLESS,
    UNSETTLED_STATUS,
    Build,
    Check,
    Header,
    Into,
    Scalar,
)
from gradtape.compiler.cpu.runtime.object_layout import (
    ALIGNED,
    C_CONTIGUOUS,
    SWAPPED,
    ObjectLayout,
    c_functions,
)
from gradtape.locks import once

NAME = "gt_entry"
# The most words of a frame on the stack; frames grow with the arguments and results.
_SMALL_FRAME = 256
_PY_EQ = 2


@once
def entry_library(layout: ObjectLayout) -> Library:
    """The native entry point, made once per process."""
    source = entry_source(layout)
    functions = {**c_functions(), "gt_new_array": blocks.new_array_address()}
    return Library(compiled(source), {name: functions[name] for name in source.declared}, [NAME])


def entry_source(layout: ObjectLayout) -> NativeSource:
    """The entry point, and the functions it calls."""
    kinds: tuple[type[enum.IntEnum], ...] = (Header, Check, Scalar, Build, Into)
    constants = {
        **{f"{kind.__name__}.{field.name}": field.value for kind in kinds for field in kind},
        **{f"layout.{name}": offset for name, offset in dataclasses.asdict(layout).items()},
        **{name: FIRST_FIXED + place for place, name in enumerate(FIXED)},
        "PROGRAM": PROGRAM,
        "ON_ERROR": ON_ERROR,
        "OTHERWISE": OTHERWISE,
        "UNLESS": UNLESS,
        "CHECK_BYTES": 8 * CHECK_WORDS,
        "ARRAY_BYTES": 8 * ARRAY_WORDS,
        "SCALAR_BYTES": 8 * SCALAR_WORDS,
        "BUILD_BYTES": 8 * BUILD_WORDS,
        "SMALL_FRAME": _SMALL_FRAME,
        "SMALL_FRAME_BYTES": 8 * _SMALL_FRAME,
        "IN_ORDER": C_CONTIGUOUS | ALIGNED,
        "SWAPPED": SWAPPED,
        "EQUAL": _PY_EQ,
        "UNSETTLED": UNSETTLED_STATUS,
        "FAILED": -1,
    }
    return NativeSource(_PYTHON + _CHECKS + _RESULTS + _ENTRY, constants)


_PYTHON = """
def Py_IncRef(value: ptr): ...
def Py_DecRef(value: ptr): ...
def PyArray_NewFromDescr(
    type: ptr, descr: ptr, ndim: i32, dims: ptr, strides: ptr, data: ptr, flags: i32, like: ptr
) -> ptr: ...
def PyArray_Scalar(data: ptr, descr: ptr, base: ptr) -> ptr: ...
def PyBool_FromLong(number: i64) -> ptr: ...
def PyComplex_FromDoubles(real: double, imaginary: double) -> ptr: ...
def PyDict_New() -> ptr: ...
def PyDict_Next(dict: ptr, position: ptr, key: ptr, value: ptr) -> i32: ...
def PyDict_SetItem(dict: ptr, key: ptr, value: ptr) -> i32: ...
def PyErr_Clear(): ...
def PyErr_Occurred() -> ptr: ...
def PyEval_RestoreThread(thread: ptr): ...
def PyEval_SaveThread() -> ptr: ...
def PyFloat_FromDouble(number: double) -> ptr: ...
def PyList_New(length: i64) -> ptr: ...
def PyLong_AsLongLongAndOverflow(value: ptr, overflow: ptr) -> i64: ...
def PyLong_FromLong(number: i64) -> ptr: ...
def PyLong_FromLongLong(number: i64) -> ptr: ...
def PyMem_RawFree(memory: ptr): ...
def PyMem_RawMalloc(bytes: i64) -> ptr: ...
def PyObject_CallOneArg(function: ptr, argument: ptr) -> ptr: ...
def PyObject_RichCompareBool(first: ptr, second: ptr, how: i32) -> i32: ...
def PyObject_Vectorcall(function: ptr, args: ptr, nargs: i64, names: ptr) -> ptr: ...
def PyTuple_New(length: i64) -> ptr: ...
def gt_new_array(handler: ptr, type: ptr, descr: ptr, ndim: i32, dims: ptr) -> ptr: ...
"""

# Nothing is owned while arguments are checked, so there is nothing to undo for one that does not
# fit. Nor can Python code run meanwhile: only exact types, and keys that are strings, are accepted.
# So borrowed references stay valid until the checks are over.
_CHECKS = """
def copy(count: i64, objects: ptr, room: ptr):
    for i in range(count):
        ptr[room, i] = ptr[objects, i]

# Finds the values of a dict of `count` entries, if the wanted keys are in it in this order. Mostly
# they are the same objects; others are compared if they are plain strings: comparing anything else
# could run arbitrary code.
def look_up(dict: ptr, keys: ptr, count: i64, str: ptr, values: ptr) -> i1:
    position = stack(8)
    key = stack(8)
    i64[position] = 0
    for i in range(count):
        require(PyDict_Next(dict, position, key, values + 8 * i) != 0)
        if ptr[key] != ptr[keys, i]:
            require(ptr[ptr[key] + layout.type] == str)
            require(PyObject_RichCompareBool(ptr[key], ptr[keys, i], EQUAL) == 1)
    return True

# Takes the arguments apart and compares them with the program.
@inline
def arguments_fit(items: ptr, program: ptr, frame: ptr) -> i1:
    record = program + 8 * i64[program, Header.CHECKS_AT]
    for n in range(i64[program, Header.CHECKS]):
        value = ptr[frame, i64[record, 1]]
        type = ptr[value + layout.type]
        input = frame + 8 * i64[record, 2]
        room = frame + 8 * i64[record, 3]
        match i64[record]:
            case Check.ARRAY:
                require(type == ptr[items, NDARRAY])
                ndim = i64[record, 6]
                require(i32[value + layout.array_flags] & IN_ORDER == IN_ORDER)
                require(i64(i32[value + layout.array_ndim]) == ndim)
                # Mostly NumPy's own object for the dtype; unpickled arrays have another.
                descr = ptr[value + layout.array_descr]
                if descr != ptr[items, i64[record, 3]]:
                    number = i64(i32[descr + layout.descr_number])
                    require(i8[descr + layout.descr_byteorder] != SWAPPED)
                    require(number == i64[record, 4] or number == i64[record, 5])
                dims = ptr[value + layout.array_dims]
                shape = program + 8 * (i64[program, Header.SHAPES_AT] + i64[record, 7])
                for axis in range(ndim):
                    require(i64[dims, axis] == i64[shape, axis])
                ptr[input] = ptr[value + layout.array_data]
            case Check.SCALAR:
                require(type == ptr[items, i64[record, 3]])
                ptr[input] = value + i64[record, 4]
            case Check.FLOAT:
                require(type == ptr[items, FLOAT])
                i64[room] = i64[value + layout.float_value]
                ptr[input] = room
            case Check.INT:
                overflow = stack(4)
                require(type == ptr[items, INT])
                i64[room] = PyLong_AsLongLongAndOverflow(value, overflow)
                require(i32[overflow] == 0)
                ptr[input] = room
            case Check.BOOL:
                require(value == ptr[items, TRUE] or value == ptr[items, FALSE])
                i8[room] = i8(value == ptr[items, TRUE])
                ptr[input] = room
            case Check.SAME:
                require(value == ptr[items, i64[record, 2]])
            case Check.EQUAL:
                # Quick if it is the same object.
                require(type == ptr[items, i64[record, 3]])
                require(PyObject_RichCompareBool(value, ptr[items, i64[record, 2]], EQUAL) == 1)
            case Check.SAME_BITS:
                require(type == ptr[items, FLOAT])
                require(i64[value + layout.float_value] == i64[record, 2])
            case Check.TUPLE:
                require(type == ptr[items, TUPLE] and i64[value + layout.size] == i64[record, 2])
                copy(i64[record, 2], value + layout.tuple_items, room)
            case Check.LIST:
                require(type == ptr[items, LIST] and i64[value + layout.size] == i64[record, 2])
                copy(i64[record, 2], ptr[value + layout.list_items], room)
            case Check.DICT:
                require(type == ptr[items, DICT])
                require(i64[value + layout.dict_used] == i64[record, 2])
                keys = items + 8 * i64[record, 4]
                require(look_up(value, keys, i64[record, 2], ptr[items, STR], room))
        record += CHECK_BYTES
    return True
"""

_RESULTS = """
# Makes the arrays of the results and sets the addresses to write to.
@inline
def make_arrays(items: ptr, program: ptr, frame: ptr) -> i1:
    objects = frame + 8 * i64[program, Header.OBJECTS]
    outputs = frame + 8 * i64[program, Header.OUTPUTS]
    shapes = program + 8 * i64[program, Header.SHAPES_AT]
    record = program + 8 * i64[program, Header.ARRAYS_AT]
    for n in range(i64[program, Header.ARRAYS]):
        type = ptr[items, NDARRAY]
        descr = ptr[items, i64[record, 1]]
        ndim = i32(i64[record, 2])
        dims = shapes + 8 * i64[record, 3]
        # The functions below take over a reference to the descr.
        Py_IncRef(descr)
        if i64[record, 4] == 0:
            array = PyArray_NewFromDescr(type, descr, ndim, dims, null, null, 0, null)
        else:
            array = gt_new_array(ptr[items, i64[record, 4]], type, descr, ndim, dims)
        require(array)
        ptr[objects, i64[record]] = array
        ptr[outputs, i64[record]] = ptr[array + layout.array_data]
        record += ARRAY_BYTES
    scalar = program + 8 * i64[program, Header.SCALARS_AT]
    for n in range(i64[program, Header.SCALARS]):
        ptr[outputs, i64[scalar]] = frame + 8 * i64[scalar, 2]
        scalar += SCALAR_BYTES
    return True

# Lets on_error raise, unless code called by the compiled function did already.
def raise_error(on_error: ptr, status: i32):
    if PyErr_Occurred():
        return
    number = PyLong_FromLong(i64(status))
    if number:
        # It never returns an object.
        PyObject_CallOneArg(on_error, number)
        Py_DecRef(number)

@inline
def make_scalars(items: ptr, program: ptr, frame: ptr) -> i1:
    objects = frame + 8 * i64[program, Header.OBJECTS]
    record = program + 8 * i64[program, Header.SCALARS_AT]
    for n in range(i64[program, Header.SCALARS]):
        room = frame + 8 * i64[record, 2]
        match i64[record, 3]:
            case Scalar.NUMPY:
                value = PyArray_Scalar(room, ptr[items, i64[record, 1]], null)
            case Scalar.FLOAT:
                value = PyFloat_FromDouble(double[room])
            case Scalar.INT:
                value = PyLong_FromLongLong(i64[room])
            case Scalar.BOOL:
                value = PyBool_FromLong(i64(i8[room]))
            case Scalar.COMPLEX:
                value = PyComplex_FromDoubles(double[room], double[room, 1])
        require(value)
        ptr[objects, i64[record]] = value
        record += SCALAR_BYTES
    return True

# Makes the objects of the result and hands each, with its reference, to its container.
@inline
def build(items: ptr, program: ptr, frame: ptr) -> i1:
    record = program + 8 * i64[program, Header.BUILDS_AT]
    for n in range(i64[program, Header.BUILDS]):
        operand = i64[record, 2]
        match i64[record]:
            case Build.RESULT:
                value = ptr[frame, operand]
                Py_IncRef(value)
            case Build.OBJECT:
                value = ptr[items, operand]
                Py_IncRef(value)
            case Build.TUPLE:
                value = PyTuple_New(operand)
            case Build.LIST:
                value = PyList_New(operand)
            case Build.DICT:
                value = PyDict_New()
        require(value)
        ptr[frame, i64[record, 1]] = value
        owner = i64[record, 4]
        place = i64[record, 5]
        match i64[record, 3]:
            case Into.ROOT:
                ptr[frame, owner] = value
            case Into.TUPLE:
                ptr[ptr[frame, owner] + layout.tuple_items, place] = value
            case Into.LIST:
                ptr[ptr[ptr[frame, owner] + layout.list_items], place] = value
            case Into.DICT:
                status = PyDict_SetItem(ptr[frame, owner], ptr[items, place], value)
                # The dict has a reference of its own.
                Py_DecRef(value)
                require(status == 0)
        record += BUILD_BYTES
    return True
"""

# References are held to the leaves in lists and dicts, which other threads could drop during the
# call, and one to each result. The returned object has its own.
_ENTRY = """
# Makes the result; 0, FAILED with an error set, or UNSETTLED.
@inline
def compute(items: ptr, program: ptr, frame: ptr) -> i32:
    if not make_arrays(items, program, frame):
        return FAILED
    run = ptr[program, Header.RUN]
    inputs = frame + 8 * i64[program, Header.INPUTS]
    outputs = frame + 8 * i64[program, Header.OUTPUTS]
    # With or without holding the interpreter.
    if i64[program, Header.RELEASE]:
        thread = PyEval_SaveThread()
        status = call(i32, run, inputs, outputs)
        PyEval_RestoreThread(thread)
    else:
        status = call(i32, run, inputs, outputs)
    if status == UNSETTLED:
        return UNSETTLED
    if status != 0:
        raise_error(ptr[items, ON_ERROR], status)
        return FAILED
    if make_scalars(items, program, frame) and build(items, program, frame):
        return 0
    return FAILED

# The result, null with an error set, or the frame if another function has to take over.
@inline
def answer(items: ptr, program: ptr, frame: ptr) -> ptr:
    if not arguments_fit(items, program, frame):
        return frame
    root = frame + 8 * i64[program, Header.ROOT]
    objects = frame + 8 * i64[program, Header.OBJECTS]
    holds = program + 8 * i64[program, Header.HOLDS_AT]
    # From here on objects are owned; results not made yet are null.
    for n in range(i64[program, Header.HOLDS]):
        Py_IncRef(ptr[frame, i64[holds, n]])
    for n in range(i64[program, Header.RESULTS]):
        ptr[objects, n] = null
    ptr[root] = null
    status = compute(items, program, frame)
    if status == FAILED:
        # Dropping the root drops everything already in it.
        Py_DecRef(ptr[root])
        ptr[root] = null
    for n in range(i64[program, Header.HOLDS]):
        Py_DecRef(ptr[frame, i64[holds, n]])
    for n in range(i64[program, Header.RESULTS]):
        Py_DecRef(ptr[objects, n])
    return frame if status == UNSETTLED else ptr[root]

def gt_entry(self: ptr, args: ptr, nargs: i64, kwnames: ptr) -> ptr:
    items = self + layout.tuple_items
    program = ptr[items, PROGRAM] + layout.bytes_data
    waits = i64[ptr[items, UNLESS] + layout.size]
    if nargs == i64[program, Header.ARGUMENTS] and not kwnames and waits == 0:
        words = i64[program, Header.FRAME]
        frame = stack(SMALL_FRAME_BYTES)
        if words > SMALL_FRAME:
            frame = PyMem_RawMalloc(8 * words)
        if frame:
            for n in range(nargs):
                ptr[frame, n] = ptr[args, n]
            for n in range(i64[program, Header.BOUND]):
                ptr[frame, nargs + n] = ptr[items, i64[program, Header.FIRST_BOUND] + n]
            result = answer(items, program, frame)
            if words > SMALL_FRAME:
                PyMem_RawFree(frame)
            if result != frame:
                return result
    # Comparing strings may have run out of memory.
    PyErr_Clear()
    otherwise = ptr[items, OTHERWISE]
    if otherwise == ptr[items, NOT_IMPLEMENTED]:
        Py_IncRef(otherwise)
        return otherwise
    # A tail call: endless recursion then hits Python's limit, without extra frames of ours on the
    # stack.
    return tail(PyObject_Vectorcall(otherwise, args, nargs, kwnames))
"""
