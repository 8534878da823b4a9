"""Memory that gradtape keeps: of temporaries of compiled code, and of large results once freed.

Fresh memory comes page by page, and taking it from the system can cost more than computing the
values written to it. So blocks that are given back wait for the next call, in native code
(`blocks_native`), up to a limit for all of them together, `GRADTAPE_KEEP_MB`. Compiled functions
borrow memory for their temporaries for the duration of a call. Results are NumPy arrays that own
their memory, made while our handler replaces NumPy's own (NEP 49): NumPy gives the memory back to
the handler it came from. Users' own arrays, and `malloc`, are not affected.
"""

from __future__ import annotations

import ctypes
import functools
import math
import mmap
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy._core import multiarray as _multiarray

from gradtape import config
from gradtape.compiler.cpu.llvm.link import Library, host_as_it_is
from gradtape.compiler.cpu.llvm.native_source import NativeSource
from gradtape.compiler.cpu.runtime import blocks_native, cache
from gradtape.compiler.cpu.runtime.object_layout import (
    address_of,
    c_functions,
    native_layout,
    new_function,
)
from gradtape.core.lazy import lazy

_METH_FASTCALL, _METH_KEYWORDS = 0x80, 0x02

# `pooled(function, *args, **kwargs)`, and NumPy's `PyArray_NewFromDescr` with the handler set. An
# error raised meanwhile is put aside while the old handler is restored.
_DOORS = NativeSource("""
def PyDataMem_SetHandler(handler: ptr) -> ptr: ...
def PyObject_Vectorcall(function: ptr, args: ptr, count: i64, names: ptr) -> ptr: ...
def PyArray_NewFromDescr(
    type: ptr, descr: ptr, ndim: i32, dims: ptr, strides: ptr, data: ptr, flags: i32, like: ptr
) -> ptr: ...
def PyErr_Fetch(type: ptr, value: ptr, trace: ptr): ...
def PyErr_Restore(type: ptr, value: ptr, trace: ptr): ...
def PyErr_Clear(): ...
def Py_DecRef(value: ptr): ...

def back_to(old: ptr):
    error = stack(24)
    PyErr_Fetch(error, error + 8, error + 16)
    ours = PyDataMem_SetHandler(old)
    PyErr_Clear()
    Py_DecRef(ours)
    Py_DecRef(old)
    PyErr_Restore(ptr[error], ptr[error, 1], ptr[error, 2])

def gt_pooled(handler: ptr, args: ptr, count: i64, names: ptr) -> ptr:
    old = PyDataMem_SetHandler(handler)
    if not old:
        return null
    result = PyObject_Vectorcall(ptr[args], args + 8, count - 1, names)
    back_to(old)
    return result

def gt_new_array(handler: ptr, type: ptr, descr: ptr, ndim: i32, dims: ptr) -> ptr:
    old = PyDataMem_SetHandler(handler)
    if not old:
        Py_DecRef(descr)
        return null
    array = PyArray_NewFromDescr(type, descr, ndim, dims, null, null, 0, null)
    back_to(old)
    return array
""")


class _Blocks:
    """The kept memory of this process; its code is linked when it is first needed.

    Threads that need it at the same time may make it twice: the first stays, the other is unused.
    """

    @lazy
    def library(self) -> Library:
        """The native code, which is never unloaded: it frees arrays that anyone may hold."""
        huge = getattr(mmap, "MADV_HUGEPAGE", None) if config.huge_pages() else None
        anonymous = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        source = blocks_native.source(mmap.PAGESIZE, anonymous, huge)
        library = Library(cache.compiled(source, host_as_it_is()), {}, blocks_native.EXPORTS)
        table = ctypes.create_string_buffer(blocks_native.TABLE_BYTES)
        keep = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(library.address("gt_keep"))
        keep(config.kept_bytes(), ctypes.addressof(table))
        immortal((library, table))
        return library

    @lazy
    def handler(self) -> Any:
        """The handler NumPy is to take memory from; None if it is to use its own."""
        if native_layout() is None or not config.kept_bytes():
            return None
        prototype = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
        )
        name = b"mem_handler"  # the name NumPy expects
        get = ctypes.CFUNCTYPE(ctypes.c_void_p)(self.library.address("gt_handler"))
        capsule = prototype(("PyCapsule_New", ctypes.pythonapi))(get(), name, None)
        immortal((capsule, name))
        return capsule if _is_used(capsule) else None

    @lazy
    def doors(self) -> Library:
        """The functions that set the handler; use only if there is one."""
        functions = {name: c_functions()[name] for name in _DOORS.declared}
        code = cache.compiled(_DOORS, host_as_it_is())
        library = Library(code, functions, ("gt_pooled", "gt_new_array"))
        immortal(library)
        return library

    @lazy
    def pooled(self) -> Callable[..., Any]:
        """`pooled(function, *args, **kwargs)`."""
        if self.handler is None:
            return _called
        name, how = b"pooled", _METH_FASTCALL | _METH_KEYWORDS
        method = struct.pack("PPiP", address_of(name), self.doors.address("gt_pooled"), how, 0)
        immortal((name, method))
        return new_function()(address_of(method), self.handler, None)  # type: ignore[no-any-return]


_blocks = _Blocks()


def _is_used(handler: Any) -> bool:
    """Whether NumPy makes arrays with a handler while it is set, and stops when it is not."""
    name_of = getattr(_multiarray, "get_handler_name", None)
    if name_of is None:  # not public: a later NumPy may not have it
        return False
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)
    set_handler = prototype(c_functions()["PyDataMem_SetHandler"])
    old = set_handler(handler)
    inside = np.empty(1)
    set_handler(old)
    return bool(name_of(inside) == "gradtape" != name_of(np.empty(1)))


def immortal(objects: object) -> None:
    """Keep objects until the process ends, even while the interpreter shuts down."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(objects))


def _called(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def pooled() -> Callable[..., Any]:
    """A function that calls another one whose arrays get kept memory: `(function, *args)`.

    Example:
        >>> from gradtape.compiler.cpu.runtime.blocks import pooled
        >>> pooled()(np.empty, (512, 1024)).flags.owndata
        True
    """
    return _blocks.pooled


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """`np.empty`, in kept memory if the array is large."""
    return maker(shape, dtype)()


def maker(shape: tuple[int, ...], dtype: Any) -> Callable[[], Any]:
    """A function that makes empty arrays of a shape and dtype, in kept memory if they are large."""
    dtype = np.dtype(dtype)
    if dtype.kind in "biufc" and dtype.isnative:
        # Arrays that were unpickled have dtypes of their own, and fast paths compare by identity.
        dtype = np.dtype(dtype.type)
    if for_array(math.prod(shape) * dtype.itemsize) is None:
        return functools.partial(np.empty, shape, dtype)
    return functools.partial(pooled(), np.empty, shape, dtype)


def for_array(nbytes: int) -> Any:
    """The handler with which to make an array of this many bytes; None for NumPy's own."""
    return _blocks.handler if nbytes >= blocks_native.FROM else None


def new_array_address() -> int:
    """The address of `gt_new_array`, which makes an array with a handler."""
    return _blocks.doors.address("gt_new_array")


def imports() -> dict[str, int]:
    """The symbols that generated code may refer to, for `Library(imports=…)`."""
    names = ("gt_take", "gt_give", "gt_take_small", "gt_give_small")
    return {name: _blocks.library.address(name) for name in names}


def counters() -> dict[str, int]:
    """The addresses of the counters of memory in use, and of the functions that change them."""
    names = ("gt_counters", "gt_count", "gt_restart_peak")
    return {name: _blocks.library.address(name) for name in names}


def kept() -> int:
    """The number of bytes that wait for the next call."""
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(_blocks.library.address("gt_kept"))())


def release() -> None:
    """Give waiting memory back to the system."""
    ctypes.CFUNCTYPE(None)(_blocks.library.address("gt_release"))()
