"""Routines of LAPACK as native code calls them: by address.

They are those of the library that NumPy computes with, as in `ops.linalg.lapack`; where it does not
have them under the names of NumPy's wheels, those that SciPy offers to code in Cython.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

import numpy as np

from gradtape import config
from gradtape.locks import load
from gradtape.ops.linalg.lapack import numpy_library

_LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
# All routines that native code calls.
_NAMES = (
    *("getrf", "getrs", "getri", "potrf", "potrs", "trtrs"),
    *("geqrf", "orgqr", "syevd", "gesdd"),
)


class NativeRoutine(NamedTuple):
    """A routine for one dtype.

    Attributes:
        symbol: Its name in generated code, which tells integers of both sizes apart.
        address: Its address in this process.
    """

    symbol: str
    address: int


class _Library(NamedTuple):
    """A library of LAPACK: the dtype of its integers, and its routines by their names."""

    integers: np.dtype[Any]
    addresses: dict[str, int]


@functools.cache
def _library() -> _Library | None:
    """The library to call; None if there is none."""
    names = [letter + name for letter in _LETTERS.values() for name in _NAMES]
    of_numpy = numpy_library() if config.uses("lapack") else None
    found = {name: getattr(of_numpy, f"scipy_{name}_64_", None) for name in names}
    if all(found.values()):
        addresses = {name: _address(function) for name, function in found.items()}
        return _Library(np.dtype(np.int64), addresses)
    try:
        capsules = load("scipy.linalg.cython_lapack").__pyx_capi__
        return _Library(np.dtype(np.intc), {name: _of_capsule(capsules[name]) for name in names})
    except (ImportError, AttributeError, KeyError):
        return None


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _of_capsule(capsule: Any) -> int:
    """The pointer that a capsule holds."""
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name(capsule)))


def available() -> bool:
    """Whether native code can call LAPACK."""
    return _library() is not None


def integers() -> np.dtype[Any]:
    """The dtype of LAPACK's integers, as in arrays of pivots."""
    library = _library()
    assert library is not None
    return library.integers


def native_routine(name: str, dtype: Any) -> NativeRoutine:
    """A routine for a dtype."""
    library = _library()
    assert library is not None
    full = _LETTERS[np.dtype(dtype)] + name
    bits = 8 * library.integers.itemsize
    return NativeRoutine(f"lapack{bits}_{full}", library.addresses[full])


@functools.lru_cache(maxsize=256)
def workspace(name: str, dtype: Any, *args: str | int | None, indices: bool = False) -> list[int]:
    """The best sizes of the working memory of a routine: of numbers, and of integers if it has any.

    Args:
        name: The routine.
        dtype: The dtype of its matrices.
        *args: Its arguments before the working memory; None for arrays.
        indices: Whether it asks for the length of an array of integers as well.
    """
    kind = np.ctypeslib.as_ctypes_type(integers())
    best, best_count, query = np.zeros(1, dtype), kind(1), kind(-1)
    unused = np.zeros(64, dtype)
    pointers: list[Any] = [
        ctypes.c_void_p(unused.ctypes.data) if arg is None
        else ctypes.c_char_p(arg.encode()) if isinstance(arg, str)
        else ctypes.byref(kind(arg))
        for arg in args
    ]  # fmt: skip
    pointers += [ctypes.c_void_p(best.ctypes.data), ctypes.byref(query)]
    if indices:
        pointers += [ctypes.byref(best_count), ctypes.byref(query)]
    lengths = [ctypes.c_size_t(1) for arg in args if isinstance(arg, str)]
    routine = ctypes.CFUNCTYPE(None)(native_routine(name, dtype).address)
    # `gesdd` has an array of integers without a length before the status, which is not touched.
    given = [ctypes.byref(best_count)] if name == "gesdd" else []
    routine(*pointers, *given, ctypes.byref(kind(0)), *lengths)
    return [max(int(best[0]), 1), *([max(best_count.value, 1)] if indices else [])]
