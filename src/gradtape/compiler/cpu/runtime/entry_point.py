"""The Python entry point of a compiled function.

`f(*args)` checks that the arguments are exactly as described, allocates the results, calls the
compiled function with the addresses of the data and returns the results as Python objects, all
within one native function that Python calls directly. Arguments that are not as described, and
those passed by keyword, are handed on unchanged to another function; without one the answer is
`NotImplemented`, and nothing else happens.

The native function is the same for all signatures; its instructions, and the Python objects it
needs, are in a tuple that is the `self` of the callable, which keeps them alive.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradtape.compiler import free_memory
from gradtape.compiler.argument_specs import (
    Result,
    Spec,
    check_specs,
    pack,
    unpack,
)
from gradtape.compiler.cpu.llvm.link import Library
from gradtape.compiler.cpu.runtime import blocks
from gradtape.compiler.cpu.runtime.entry_point_native import NAME, entry_library
from gradtape.compiler.cpu.runtime.entry_tables import (
    FIXED,
    MOST_WORDS,
    UNSETTLED_STATUS,
    EntryTables,
)
from gradtape.compiler.cpu.runtime.object_layout import (
    ObjectLayout,
    address_of,
    native_layout,
    new_function,
)
from gradtape.errors import ArgumentError, GradtapeError

_METH_FASTCALL, _METH_KEYWORDS = 0x80, 0x02


def make_callable(
    library: Library,
    run: str,
    args: Sequence[Spec],
    result: Spec,
    results: Sequence[tuple[np.dtype[Any], tuple[int, ...]] | Result],
    *,
    on_error: Callable[[int], object],
    otherwise: Callable[..., Any] | None = None,
    unless: list[Any] | None = None,
    bound: Sequence[Any] = (),
    release_gil: bool = False,
    name: str | None = None,
    native: bool = True,
    scratch: int = 0,
) -> Callable[..., Any]:
    """Make a compiled function callable from Python.

    Args:
        library: Exports the compiled function; stays loaded as long as the callable exists.
        run: Its name; `i32 run(ptr inputs, ptr outputs)` gets an array of addresses for all leaves
            of the arguments except static ones, and one for the results. It returns 0, or a code.
        args: One spec per positional argument, then one for each object in `bound`.
        result: The value to return; its leaves are `ResultLeaf` and `StaticLeaf`.
        results: Dtype and shape of each output of `run`; shape () is returned as a NumPy scalar,
            or as a Python number if a `Result` says so.
        on_error: Called with the code that `run` returned; has to raise.
        otherwise: Called with the arguments if they are not as described, or some are passed by
            keyword, or `run` returns `UNSETTLED_STATUS`; the call returns or raises what it does.
        unless: A list: `otherwise`, if there is one, is called whenever something is in it.
        bound: Objects that follow the arguments at every call, and are checked like them: arrays
            can be resized in place. They stay alive as long as the callable exists.
        release_gil: Let other Python threads run during `run`.
        name: The name that the callable shows; `run` if None.
        native: False to check arguments in Python, as is done anyway where the objects of the
            interpreter are not laid out as expected, and for so much memory that the system is
            asked for it first.
        scratch: Bytes that `run` allocates besides the results, and keeps.

    Returns:
        A function of positional arguments. Without `otherwise` it returns `NotImplemented` for
        arguments that are not as described, and for keyword arguments.

    Raises:
        ArgumentError: Specs that contradict each other.
        DTypeError: A dtype that compiled code does not have.

    Example:
        >>> from gradtape.compiler.argument_specs import ArrayLeaf, StaticLeaf
        >>> from gradtape.compiler.cpu.llvm.link import Library, compile_module
        >>> code = compile_module("define i32 @run(ptr %in, ptr %out) { ret i32 0 }")
        >>> args = [ArrayLeaf(np.dtype(np.float64), (3,))]
        >>> library = Library(code, {}, ["run"])
        >>> f = make_callable(library, "run", args, StaticLeaf("done"), [], on_error=print)
        >>> f(np.ones(3)), f(np.ones(4))
        ('done', NotImplemented)
        >>> options = {"on_error": print, "otherwise": lambda x: f"of {x.size}"}
        >>> f = make_callable(library, "run", args, StaticLeaf("done"), [], **options)
        >>> f(np.ones(3)), f(np.ones(4)), f(x=np.ones(3))
        ('done', 'of 4', 'of 3')
    """
    checked = [Result(np.dtype(dtype), tuple(shape), *number) for dtype, shape, *number in results]
    check_specs(args, result, checked)
    if len(bound) > len(args):
        raise ArgumentError(
            f"entry: got {len(bound)} bound objects and {len(args)} specs, expected a spec for each"
        )
    address, title = library.address(run), name or run

    def fail(code: int) -> None:
        on_error(code)
        raise GradtapeError(
            f"{title}: the compiled function failed with code {code}; "
            "on_error should have raised an error, and returned"
        )

    needed = sum(math.prod(shape) * dtype.itemsize for dtype, shape, _ in checked)
    layout = native_layout() if native and not free_memory.is_noticed(needed + scratch) else None
    idle: list[Any] = [] if unless is None or otherwise is None else unless
    if layout is not None:
        tables = EntryTables(layout, args, result, checked, release_gil, bound)
        if tables.frame <= MOST_WORDS:
            functions = (fail, NotImplemented if otherwise is None else otherwise, idle)
            return _native_callable(layout, tables, address, library, functions, title.encode())
    kind = ctypes.CFUNCTYPE if release_gil else ctypes.PYFUNCTYPE
    native_run = library.function(run, kind(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p))
    specs = (tuple(args), result, checked)
    others = (fail, otherwise or _refused, idle)
    entry = _python_callable(native_run, others, tuple(bound), specs, needed, scratch)
    entry.__name__ = title
    return entry


def _native_callable(
    layout: ObjectLayout,
    tables: EntryTables,
    address: int,
    library: Library,
    functions: tuple[Any, Any, list[Any]],
    title: bytes,
) -> Callable[..., Any]:
    entry = entry_library(layout)
    how = _METH_FASTCALL | _METH_KEYWORDS
    method = struct.pack("PPiP", address_of(title), entry.address(NAME), how, 0)
    # Bytes and tuples: the garbage collector never clears them, so the definition exists until
    # the callable, which reads it last, is gone.
    alive = (title, method, library, entry)
    owned = (alive, tables.pack(address), *functions, *FIXED.values(), *tables.constants)
    return new_function()(address_of(method), owned, None)  # type: ignore[no-any-return]


def _python_callable(
    run: Callable[[Any, Any], int],
    functions: tuple[Callable[[int], None], Callable[..., Any], list[Any]],
    bound: tuple[Any, ...],
    specs: tuple[tuple[Spec, ...], Spec, list[Result]],
    of_results: int,
    scratch: int,
) -> Callable[..., Any]:
    """The same entry point with its checks in Python."""
    (fail, otherwise, unless), (expected, result, results) = functions, specs
    needed = of_results + scratch

    def entry(*args: Any, **kwargs: Any) -> Any:
        nonlocal needed
        inputs: list[NDArray[Any]] = []
        given = (*args, *bound)
        fits = not kwargs and len(given) == len(expected) and not unless
        if not fits or not all(map(unpack, expected, given, itertools.repeat(inputs))):
            return otherwise(*args, **kwargs)
        free_memory.require(needed, "results and intermediate values")
        arrays = [blocks.empty(shape, dtype) for dtype, shape, _ in results]
        status = run(_addresses(inputs), _addresses(arrays))
        if status == UNSETTLED_STATUS:
            return otherwise(*args, **kwargs)
        if status:
            fail(status)
        # Its other memory is allocated from now on, and no longer counts as free.
        needed = of_results
        made = [
            x if x.ndim else x.item() if number else x[()]
            for x, (_, _, number) in zip(arrays, results, strict=True)
        ]
        return pack(result, made)

    return entry


def _refused(*_args: Any, **_kwargs: Any) -> Any:
    return NotImplemented


def _addresses(arrays: list[NDArray[Any]]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*[x.ctypes.data for x in arrays])
