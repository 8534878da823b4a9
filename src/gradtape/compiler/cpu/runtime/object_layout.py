"""The offsets of fields in Python's and NumPy's objects, and the addresses of C functions.

Compiled code reads types, shapes and data pointers straight out of the objects. The offsets follow
from the C structures, whose order has not changed for many releases; they are checked once in each
process against what Python says about a few objects. Where they do not hold (another interpreter, a
build without the interpreter lock, an unknown NumPy), and where this is switched off,
`native_layout` gives None and callers go through Python.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy._core import multiarray as _multiarray

from gradtape import config

C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x0001, 0x0100, 0x0400
# The mark of an array in the other byte order.
SWAPPED = ord(">" if sys.byteorder == "little" else "<")

# NumPy 2 publishes its functions as a table, whose places stay the same within this version.
_NUMPY_ABI = 0x02000000
_NUMPY_TABLE = {
    "PyArray_Scalar": 60,
    "PyArray_NewFromDescr": 94,
    "PyDataMem_SetHandler": 304,
    "PyDataMem_GetHandler": 305,
}
_ABI_VERSION, _ARRAY_TYPE = 0, 2

_PYTHON_FUNCTIONS = (
    "Py_IncRef",
    "Py_DecRef",
    "PyBool_FromLong",
    "PyComplex_FromDoubles",
    "PyDict_New",
    "PyDict_Next",
    "PyDict_SetItem",
    "PyErr_Clear",
    "PyErr_Fetch",
    "PyErr_Occurred",
    "PyErr_Restore",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyFloat_FromDouble",
    "PyList_New",
    "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLong",
    "PyLong_FromLongLong",
    "PyMem_RawFree",
    "PyMem_RawMalloc",
    "PyObject_CallOneArg",
    "PyObject_RichCompareBool",
    "PyObject_Vectorcall",
    "PyTuple_New",
)


@dataclass(frozen=True)
class ObjectLayout:
    """Offsets in bytes from the start of an object; everything that the native entry depends on."""

    type: int
    size: int
    float_value: int
    bytes_data: int
    tuple_items: int
    list_items: int
    dict_used: int
    array_data: int
    array_ndim: int
    array_dims: int
    array_base: int
    array_descr: int
    array_flags: int
    descr_byteorder: int
    descr_number: int
    scalar_header: int

    def scalar_value(self, dtype: np.dtype[Any]) -> int:
        """The offset of a NumPy scalar's value: the first aligned place after the header."""
        return -(-self.scalar_header // dtype.alignment) * dtype.alignment


def expected_layout() -> ObjectLayout:
    """The offsets that follow from the C structures, with the header this Python has."""
    header, pointer = object.__basicsize__, ctypes.sizeof(ctypes.c_void_p)
    return ObjectLayout(
        # Header: reference count, type; then in objects of variable length the length.
        type=header - pointer,
        size=header,
        float_value=header,
        bytes_data=bytes.__basicsize__ - 1,
        tuple_items=tuple.__basicsize__,
        list_items=header + pointer,
        dict_used=header,
        # Array: data, ndim (padded), dims, strides, base, descr, flags.
        array_data=header,
        array_ndim=header + pointer,
        array_dims=header + 2 * pointer,
        array_base=header + 4 * pointer,
        array_descr=header + 5 * pointer,
        array_flags=header + 6 * pointer,
        # Descr: type of the scalars, three letters (kind, name, byte order), number.
        descr_byteorder=header + pointer + 2,
        descr_number=header + pointer + 4,
        scalar_header=header,
    )


@functools.cache
def native_layout() -> ObjectLayout | None:
    """The offsets in this process; None where compiled code must not look into objects."""
    if not config.uses("entry"):
        return None
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    if ctypes.sizeof(ctypes.c_void_p) != 8 or not _numpy_table_is_known():
        return None
    layout = expected_layout()
    return None if first_mismatch(layout) else layout


@functools.cache
def c_functions() -> dict[str, int]:
    """Addresses of the C functions that the native entry calls; use only if there is a layout."""
    python = {
        name: ctypes.cast(getattr(ctypes.pythonapi, name, 0), ctypes.c_void_p).value or 0
        for name in _PYTHON_FUNCTIONS
    }
    table = _numpy_table()
    return python | {name: table[place] for name, place in _NUMPY_TABLE.items()}


@functools.cache
def new_function() -> Any:
    """Python's function that makes a function object from a definition, `self` and None."""
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    )
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi))


def address_of(data: bytes) -> int:
    """The address of bytes, valid as long as the object exists."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def _numpy_table() -> Any:
    """NumPy's C functions and types, as an array of addresses."""
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    pointer = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))
    return ctypes.cast(pointer(_multiarray._ARRAY_API, None), ctypes.POINTER(ctypes.c_size_t))


def _numpy_table_is_known() -> bool:
    if not hasattr(_multiarray, "_ARRAY_API"):
        return False
    table = _numpy_table()
    version = ctypes.PYFUNCTYPE(ctypes.c_uint)(table[_ABI_VERSION])()
    return bool(version == _NUMPY_ABI and table[_ARRAY_TYPE] == id(np.ndarray))


# ---- the check ---------------------------------------------------------------------------------


def first_mismatch(layout: ObjectLayout) -> str | None:
    """The first part of a layout that does not hold in this process, checked on known objects.

    Stops there: an address is followed only after the fields around it were found in place.
    """
    checks = (_python_objects(layout), _arrays(layout), _scalars(layout), _functions())
    return next((what for check in checks for what, right in check if not right), None)


def _read(type: Any, owner: object, offset: int) -> Any:
    return type.from_address(id(owner) + offset).value


def _read_pointer(owner: object, offset: int) -> int:
    return _read(ctypes.c_void_p, owner, offset) or 0


def _can_be_address(number: int) -> bool:
    """Whether a number is aligned for pointers and not small, as a count or a flag would be."""
    return number > 0xFFFF and number % 8 == 0


def _python_objects(layout: ObjectLayout) -> Iterator[tuple[str, bool]]:
    number, data = -1234.5678, b"gradtape"
    items, names = ("a", 1.5, None), {"a": 1, "b": 2, "c": 3}
    listed = list(items)
    for value in (number, data, items, listed, names, np.ones(2), np.float64(1)):
        yield f"type of {value!r}", _read_pointer(value, layout.type) == id(type(value))
    yield "value of a float", _read(ctypes.c_double, number, layout.float_value) == number
    yield "data of bytes", ctypes.string_at(id(data) + layout.bytes_data, len(data)) == data
    yield "length of a tuple", _read(ctypes.c_ssize_t, items, layout.size) == len(items)
    yield "length of a list", _read(ctypes.c_ssize_t, listed, layout.size) == len(items)
    yield "number of keys", _read(ctypes.c_ssize_t, names, layout.dict_used) == len(names)
    of_list = _read_pointer(listed, layout.list_items)
    yield "address of the items of a list", _can_be_address(of_list)
    for place, item in enumerate(items):
        in_tuple = _read_pointer(items, layout.tuple_items + 8 * place)
        in_list = ctypes.c_size_t.from_address(of_list + 8 * place).value
        yield "items of a tuple", in_tuple == id(item)
        yield "items of a list", in_list == id(item)


def _arrays(layout: ObjectLayout) -> Iterator[tuple[str, bool]]:
    whole = np.arange(24.0).reshape(2, 3, 4)
    packed = np.zeros(3, np.dtype([("byte", "i1"), ("number", "f8")]))
    views = (whole, whole[:, ::2], whole.T, packed["number"])
    others = (np.zeros((0, 5)), np.array(3), np.ones(2, np.float32), np.ones(3, np.bool_))
    for x in (*views, *others, whole.astype(whole.dtype.newbyteorder())):
        descr = x.dtype
        flags = _read(ctypes.c_int, x, layout.array_flags)
        yield "data of an array", _read_pointer(x, layout.array_data) == x.ctypes.data
        yield "ndim", _read(ctypes.c_int, x, layout.array_ndim) == x.ndim
        yield "descr", _read_pointer(x, layout.array_descr) == id(descr)
        yield "contiguous", bool(flags & C_CONTIGUOUS) == x.flags.c_contiguous
        yield "aligned", bool(flags & ALIGNED) == x.flags.aligned
        yield "writeable", bool(flags & WRITEABLE) == x.flags.writeable
        yield "base", _read_pointer(x, layout.array_base) == (0 if x.base is None else id(x.base))
        dims = _read_pointer(x, layout.array_dims)
        yield "address of dims", not x.ndim or _can_be_address(dims)
        yield "dims", not x.ndim or (ctypes.c_ssize_t * x.ndim).from_address(dims)[:] == [*x.shape]
        swapped = _read(ctypes.c_ubyte, descr, layout.descr_byteorder) == SWAPPED
        yield "byte order", swapped is not descr.isnative
        yield "number", _read(ctypes.c_int, descr, layout.descr_number) == descr.num


def _scalars(layout: ObjectLayout) -> Iterator[tuple[str, bool]]:
    for char in "?bBhHiIlLqQefdFD":
        scalar = np.dtype(char).type(77)
        address = id(scalar) + layout.scalar_value(scalar.dtype)
        held = ctypes.string_at(address, scalar.itemsize)
        yield f"value of {scalar!r}", held == scalar.tobytes()


def _functions() -> Iterator[tuple[str, bool]]:
    functions, descr, dims = c_functions(), np.dtype(np.float64), (ctypes.c_ssize_t * 2)(3, 5)
    for name, address in functions.items():
        yield name, address != 0
    object_, pointer, integer = ctypes.py_object, ctypes.c_void_p, ctypes.c_int
    new = ctypes.PYFUNCTYPE(
        object_, object_, object_, integer, pointer, pointer, pointer, integer, pointer
    )(functions["PyArray_NewFromDescr"])
    # The function takes over a reference to the descr, so it is given one.
    ctypes.PYFUNCTYPE(None, object_)(functions["Py_IncRef"])(descr)
    x = new(np.ndarray, descr, 2, ctypes.addressof(dims), None, None, 0, None)
    yield "PyArray_NewFromDescr", type(x) is np.ndarray and (x.shape, x.dtype) == ((3, 5), descr)
    yield "a new array", x.flags.c_contiguous and x.flags.aligned and x.flags.writeable
    scalar = ctypes.PYFUNCTYPE(object_, pointer, object_, pointer)(functions["PyArray_Scalar"])
    held = scalar(ctypes.addressof(ctypes.c_double(2.5)), descr, None)
    yield "PyArray_Scalar", type(held) is np.float64 and held == 2.5
