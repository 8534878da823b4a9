"""The Python entry point of a compiled function.

`f(*args)` looks whether the arguments are exactly as described, allocates the results, calls the
compiled function with the addresses of the data and returns the results as Python objects, all
within one native function that Python calls directly. Arguments that are not as described give
`NotImplemented`, and nothing else happens.

The native function is the same for all signatures; what it has to do, and the Python objects it
needs for that, are in a tuple that is the `self` of the callable, which keeps them alive.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradtape.compiler.llvm.link import Library
from gradtape.compiler.runtime.containers import (
    ArrayLeaf,
    DictSpec,
    ListSpec,
    NumberLeaf,
    Result,
    ResultLeaf,
    ScalarLeaf,
    Spec,
    StaticLeaf,
    TupleSpec,
    check_specs,
    pack,
    unpack,
)
from gradtape.compiler.runtime.entry_ir import NAME, entry_library
from gradtape.compiler.runtime.entry_program import FIXED, MOST_WORDS, Program
from gradtape.compiler.runtime.layout import Layout, native_layout
from gradtape.errors import GradtapeError

__all__ = [
    "ArrayLeaf",
    "DictSpec",
    "ListSpec",
    "NumberLeaf",
    "Result",
    "ResultLeaf",
    "ScalarLeaf",
    "Spec",
    "StaticLeaf",
    "TupleSpec",
    "make_callable",
]

_METH_FASTCALL = 0x80


def make_callable(
    library: Library,
    run: str,
    args: Sequence[Spec],
    result: Spec,
    results: Sequence[tuple[np.dtype[Any], tuple[int, ...]]],
    *,
    on_error: Callable[[int], object],
    release_gil: bool = False,
    name: str | None = None,
    native: bool = True,
) -> Callable[..., Any]:
    """Make a compiled function callable from Python.

    Args:
        library: Exports the compiled function; stays loaded as long as there is the callable.
        run: Its name; `i32 run(ptr inputs, ptr outputs)` gets an array of addresses for all leaves
            of the arguments but static ones, and one for the results. It returns 0, or a code.
        args: One spec per positional argument.
        result: What to return; its leaves are `ResultLeaf` and `StaticLeaf`.
        results: Dtype and shape of each output of `run`; shape () is returned as a NumPy scalar.
        on_error: Called with the code that `run` returned; has to raise.
        release_gil: Let other Python threads run during `run`.
        name: As what the callable shows itself; `run` if None.
        native: False to check arguments in Python, as is done anyway where the objects of the
            interpreter are not laid out as expected.

    Returns:
        A function of positional arguments, which returns `NotImplemented` for arguments that are
        not as described.

    Raises:
        ArgumentError: Specs that contradict each other.
        DTypeError: A dtype that compiled code does not have.

    Example:
        >>> from gradtape.compiler.llvm.link import Library, compile_module
        >>> code = compile_module("define i32 @run(ptr %in, ptr %out) { ret i32 0 }")
        >>> args = [ArrayLeaf(np.dtype(np.float64), (3,))]
        >>> library = Library(code, {}, ["run"])
        >>> f = make_callable(library, "run", args, StaticLeaf("done"), [], on_error=print)
        >>> f(np.ones(3)), f(np.ones(4))
        ('done', NotImplemented)
    """
    checked = [Result(np.dtype(dtype), tuple(shape)) for dtype, shape in results]
    check_specs(args, result, checked)
    address, title = library.address(run), name or run

    def fail(code: int) -> None:
        on_error(code)
        raise GradtapeError(
            f"{title}: the compiled function failed with code {code}; "
            "on_error had to raise an error and returned"
        )

    layout = native_layout() if native else None
    if layout is not None:
        program = Program(layout, args, result, checked, release_gil)
        if program.frame <= MOST_WORDS:
            return _native_callable(layout, program, address, library, fail, title.encode())
    call = (ctypes.CFUNCTYPE if release_gil else ctypes.PYFUNCTYPE)(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p
    )
    return _PythonEntry(title, call(address), library, fail, tuple(args), result, checked)


def _native_callable(
    layout: Layout,
    program: Program,
    address: int,
    library: Library,
    fail: Callable[[int], None],
    title: bytes,
) -> Callable[..., Any]:
    entry = entry_library(layout)
    method = struct.pack("PPiP", _address_of(title), entry.address(NAME), _METH_FASTCALL, 0)
    # Bytes and tuples: the garbage collector never empties them, so the definition is there until
    # the callable, which reads it last, is gone.
    alive = (title, method, library, entry)
    owned = (alive, program.pack(address), fail, *FIXED, *program.constants)
    return _new_function()(_address_of(method), owned, None)  # type: ignore[no-any-return]


@functools.cache
def _new_function() -> Any:
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    )
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi))


def _address_of(data: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


class _PythonEntry:
    """The same entry point with its checks in Python."""

    def __init__(
        self,
        title: str,
        run: Callable[[Any, Any], int],
        library: Library,
        fail: Callable[[int], None],
        args: tuple[Spec, ...],
        result: Spec,
        results: list[Result],
    ) -> None:
        self.__name__ = title
        self._run = run
        self._library = library
        self._fail = fail
        self._args = args
        self._result = result
        self._results = results

    def __call__(self, *args: Any) -> Any:
        inputs: list[NDArray[Any]] = []
        if len(args) != len(self._args) or not all(
            unpack(spec, arg, inputs) for spec, arg in zip(self._args, args, strict=True)
        ):
            return NotImplemented
        results = [np.empty(shape, dtype) for dtype, shape in self._results]
        status = self._run(_addresses(inputs), _addresses(results))
        if status:
            self._fail(status)
        return pack(self._result, [x if x.ndim else x[()] for x in results])


def _addresses(arrays: list[NDArray[Any]]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*[x.ctypes.data for x in arrays])
