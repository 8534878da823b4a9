"""Routines of LAPACK out of the library that NumPy itself computes with.

Wheels of NumPy and of SciPy each bring an OpenBLAS of their own. Its threads wait for work in a
busy loop, so that after a product by NumPy those of SciPy find the cores taken: on two cores a
factorisation by SciPy that takes 0.2 ms took 8 ms then, again and again in a derivative rule. The
routines that rules are full of are therefore called in NumPy's library. Where it does not have them
under the names of these wheels, both packages share a library, and SciPy's functions are used.

The functions have the arguments and results of SciPy's of the same name, as far as used here.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import config
from gradtape.locks import load

# OpenBLAS computes smaller matrices on one thread: SciPy's functions, which start faster, will do.
_ONE_THREAD = 1 << 13
_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_ONE = ctypes.c_size_t(1)  # the length of a letter, which Fortran passes after the arguments


@functools.cache
def lapack(name: str, dtype: Any) -> Callable[..., Any]:
    """A routine of LAPACK for a dtype, with the arguments of SciPy's."""
    of_scipy: Callable[..., Any] = scipy_linalg().get_lapack_funcs((name,), dtype=dtype)[0]
    of_numpy = numpy_routine(name, dtype)
    if of_numpy is None:
        return of_scipy

    def routine(*arrays: Any, **options: Any) -> Any:
        small = all(array.size < _ONE_THREAD for array in arrays)
        return (of_scipy if small else of_numpy)(*arrays, **options)

    return routine


@functools.cache
def scipy_linalg() -> Any:
    """SciPy's linear algebra, loaded when it is first needed."""
    return load("scipy.linalg")


def numpy_routine(name: str, dtype: Any) -> Callable[..., Any] | None:
    """A routine of LAPACK in NumPy's library; None if it is not found there, or switched off."""
    wrapper = _WRAPPERS.get(name)
    dtype = np.dtype(dtype).newbyteorder("=")  # into which the argument is copied
    letter = _LETTERS.get(dtype.name)
    library = numpy_library() if config.uses("lapack") else None
    if wrapper is None or letter is None or library is None:
        return None
    routine = getattr(library, f"scipy_{letter}{name}_64_", None)
    return None if routine is None else functools.partial(wrapper, routine, dtype)


@functools.cache
def numpy_library() -> Any:
    """The library that NumPy's linear algebra is linked with, found through its caller."""
    module = getattr(np.linalg, "_umath_linalg", None)
    try:
        return None if module is None else ctypes.CDLL(module.__file__)
    except OSError:
        return None


def _call(routine: Any, *args: Any) -> int:
    """Call a routine with letters, integers and arrays; returns its status."""
    info = ctypes.c_int64(0)
    lengths = [_ONE for arg in args if isinstance(arg, bytes)]
    routine(*map(_pointer, args), ctypes.byref(info), *lengths)
    return info.value


def _pointer(arg: Any) -> Any:
    if isinstance(arg, bytes):
        return ctypes.c_char_p(arg)
    if isinstance(arg, int):
        return ctypes.byref(ctypes.c_int64(arg))
    return ctypes.c_void_p(arg.ctypes.data)


def _columns(x: Any, dtype: Any, *, copy: bool) -> Any:
    """A matrix whose columns lie one after the other, as LAPACK reads them."""
    return np.array(x, dtype, order="F", copy=True if copy else None)


def _solved(routine: Any, dtype: Any, letters: Any, a: Any, b: Any, *pivots: Any) -> Any:
    """The solution of equations with a matrix or its factors, and the status."""
    a, out = _columns(a, dtype, copy=False), _columns(b, dtype, copy=True)
    n, count = out.shape
    rows = max(n, 1)
    return out, _call(routine, *letters, n, count, a, rows, *pivots, out, rows)


def _triangle(lower: bool) -> bytes:
    return b"L" if lower else b"U"


def _transposed(trans: int) -> bytes:
    return b"NTC"[trans : trans + 1]


def _potrf(routine: Any, dtype: Any, a: Any, lower: bool = False) -> tuple[Any, int]:
    """The Cholesky factor; the other triangle is 0."""
    out = _columns(a, dtype, copy=True)
    n = len(out)
    info = _call(routine, _triangle(lower), n, out, max(n, 1))
    return (np.tril(out) if lower else np.triu(out)), info


def _potrs(routine: Any, dtype: Any, factor: Any, b: Any, lower: bool = False) -> Any:
    """Equations by the Cholesky factor."""
    return _solved(routine, dtype, [_triangle(lower)], factor, b)


def _getrf(routine: Any, dtype: Any, a: Any) -> tuple[Any, Any, int]:
    """L and U in one matrix, and which row was exchanged with each, counted from 0."""
    out = _columns(a, dtype, copy=True)
    rows, columns = out.shape
    pivots = np.empty(min(rows, columns), np.int64)
    info = _call(routine, rows, columns, out, max(rows, 1), pivots)
    return out, (pivots - 1).astype(np.int32), info


def _getrs(routine: Any, dtype: Any, lu: Any, pivots: Any, b: Any, trans: int = 0) -> Any:
    """Equations by L and U."""
    exchanged = np.add(pivots, 1, dtype=np.int64)
    return _solved(routine, dtype, [_transposed(trans)], lu, b, exchanged)


def _getri(routine: Any, dtype: Any, lu: Any, pivots: Any, lwork: int = 1) -> tuple[Any, int]:
    """The inverse by L and U, with a workspace of a given size."""
    out = _columns(lu, dtype, copy=True)
    n = len(out)
    lwork = max(lwork, n, 1)
    exchanged = np.add(pivots, 1, dtype=np.int64)
    return out, _call(routine, n, out, max(n, 1), exchanged, np.empty(lwork, dtype), lwork)


def _trtrs(
    routine: Any, dtype: Any, a: Any, b: Any, *, lower: bool, trans: int, unitdiag: bool
) -> Any:
    """Equations by a triangular matrix."""
    letters = [_triangle(lower), _transposed(trans), b"U" if unitdiag else b"N"]
    return _solved(routine, dtype, letters, a, b)


_WRAPPERS: dict[str, Callable[..., Any]] = {
    wrapper.__name__[1:]: wrapper for wrapper in (_potrf, _potrs, _getrf, _getrs, _getri, _trtrs)
}
