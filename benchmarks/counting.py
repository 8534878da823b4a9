"""Counting of NumPy work, in array operations and in bytes: `count(fn, *arrays)`.

Arrays are handed to the function as `CountedArray`, a subclass of ndarray that computes as ndarray
does, hands out its own kind and reports every operation to a meter. An operation is one call that
makes or fills an array; a call that only makes a view (reshape, transpose, a slice) is free. Its
bytes are those of the arrays it reads plus those it writes; repeated elements of a broadcast array
count once.

While counting, the functions of NumPy's namespace that make an array from nothing or strip a
subclass (`np.zeros`, `np.asarray`) are replaced by ones that give CountedArrays, so that work on
buffers made on the way is seen too. Modules of gradtape that hold one of them, or ndarray, under a
name of their own have that name replaced as well: a test `type(x) is ndarray` chooses the same path
as for a plain array. Work outside NumPy is not seen.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np


class Cost(NamedTuple):
    """Work that was counted."""

    ops: int
    bytes: int


class Meter:
    """Adds up the operations reported while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.ops = 0
        self.bytes = 0

    def add(self, read: Any, written: Any) -> None:
        """Report one operation by what it read and wrote (containers of arrays, or arrays)."""
        if self.on:
            self.ops += 1
            self.bytes += _size(read) + _size(written)


_meter = Meter()


def count(fn: Callable[..., Any], *arrays: np.ndarray) -> tuple[Any, Cost]:
    """Run `fn(*arrays)` and count the NumPy work it does.

    Args:
        fn: A function of arrays.
        arrays: Its arguments; they are handed over as CountedArrays.

    Returns:
        The result, in plain arrays, and its cost.
    """
    args = _counted(list(arrays))
    with _counting() as meter:
        result = fn(*args)
    return _plain(result), Cost(meter.ops, meter.bytes)


class CountedArray(np.ndarray):
    """An ndarray whose operations are counted and give CountedArrays."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Run a ufunc, or a method of it, on plain arrays and count it."""
        if any(_is_foreign(v) for v in inputs):
            return NotImplemented
        out = kwargs.pop("out", None)
        args, options = _plain(inputs), _plain(kwargs)
        if out is not None:
            options["out"] = _plain(out)
        result = getattr(ufunc, method)(*args, **options)
        if method == "at":  # touches only the elements that the index names
            touched = args[-1] if len(args) > 2 else result
            _meter.add((args[1:], touched), touched)
            return None
        _meter.add(args, result)
        if out is not None:
            return out[0] if len(out) == 1 else out
        return _counted(result)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        """Run a function of NumPy's namespace on plain arrays and count it as one operation."""
        if not all(issubclass(kind, np.ndarray) for kind in types):
            return NotImplemented
        return _call(func, *args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        """Index; a view is free, a copy reads and writes the elements it takes."""
        base = _plain(self)
        taken = base[_plain(index)]
        if not np.may_share_memory(taken, base):
            _meter.add(taken, taken)
        return _counted(taken)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Assign; the value is read, the elements assigned to are written."""
        base, index, value = _plain((self, index, value))
        base[index] = value
        _meter.add(value, base[index])


def _is_foreign(value: Any) -> bool:
    """Whether a value (a tensor) handles ufuncs itself and has to be asked instead of us."""
    return hasattr(value, "__array_ufunc__") and not isinstance(value, np.ndarray | np.generic)


def _method(name: str) -> Callable[..., Any]:
    """Return a counted form of a method that NumPy runs without asking the subclass."""
    method = getattr(np.ndarray, name)
    return lambda self, *args, **kwargs: _call(method, self, *args, **kwargs)


for _name in (
    *("copy", "astype", "reshape", "flatten", "ravel", "take", "repeat", "dot", "trace", "fill"),
    *("argmax", "argmin", "sort", "argsort", "nonzero", "compress", "choose", "searchsorted"),
):
    setattr(CountedArray, _name, _method(_name))


def _call(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function on plain arrays; count it unless all it made are views of its arguments."""
    plain_args, options = _plain(args), _plain(kwargs)
    result = func(*plain_args, **options)
    for given, plain in zip(_arrays(args), _arrays(plain_args), strict=True):
        if result is plain:
            return given
    inputs = list(_arrays((plain_args, tuple(v for k, v in options.items() if k != "out"))))
    made = [a for a in _arrays(result) if not any(np.may_share_memory(a, b) for b in inputs)]
    if (made or result is None) and func not in _FREE:
        _meter.add(inputs, made)
    return _counted(result)


def _maker(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a form of a function of NumPy's namespace that makes CountedArrays of anything."""

    def make(*args: Any, **kwargs: Any) -> Any:
        if next(_arrays((args, tuple(kwargs.values()))), None) is None:
            result = func(*args, **kwargs)
            if result.ndim and func not in _FREE:  # a bare number is no work on arrays
                _meter.add((), result)
            return _counted(result)
        return _call(func, *args, **kwargs)

    return make


_MAKERS = ("zeros", "ones", "full", "empty", "eye", "identity", "arange", "linspace")
_CONVERTERS = ("array", "asarray", "ascontiguousarray", "asfortranarray", "asanyarray")
_FREE = (np.empty, np.empty_like)  # these reserve memory and touch none of it


@contextmanager
def _counting() -> Iterator[Meter]:
    """Switch a fresh count on for the length of a block."""
    originals = [getattr(np, name) for name in (*_MAKERS, *_CONVERTERS)]
    replacements: dict[int, Any] = {id(f): _maker(f) for f in originals}
    _meter.ops = _meter.bytes = 0
    with ExitStack() as stack:
        for original in originals:
            replacement = replacements[id(original)]
            stack.enter_context(patch.object(np, original.__name__, replacement))
        replacements[id(np.ndarray)] = CountedArray
        for module, name, value in _globals_of("gradtape"):
            if id(value) in replacements:
                stack.enter_context(patch.object(module, name, replacements[id(value)]))
        _meter.on = True
        try:
            yield _meter
        finally:
            _meter.on = False


def _globals_of(package: str) -> list[tuple[ModuleType, str, Any]]:
    """List the global names of the modules of a package that are loaded."""
    loaded = [m for name, m in sys.modules.items() if name.partition(".")[0] == package]
    return [(module, name, value) for module in loaded for name, value in vars(module).items()]


def _map(fn: Callable[[Any], Any], value: Any) -> Any:
    """Apply `fn` to what stands in (nested) tuples, lists and dicts."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind(_map(fn, v) for v in value)
    if kind is dict:
        return {key: _map(fn, v) for key, v in value.items()}
    return fn(value)


def _plain(value: Any) -> Any:
    return _map(lambda v: v.view(np.ndarray) if isinstance(v, CountedArray) else v, value)


def _counted(value: Any) -> Any:
    """Make arrays CountedArrays, and NumPy's numbers 0-d ones."""
    return _map(_counted_array, value)


def _counted_array(value: Any) -> Any:
    if not isinstance(value, np.ndarray | np.generic) or isinstance(value, CountedArray):
        return value
    if value.base is not None:
        return value.view(CountedArray)
    # An array that owns its memory must do so still: code that hands out arrays asks for it.
    owner = np.ndarray.__new__(
        CountedArray, value.shape, value.dtype, order="F" if value.flags.fnc else "C"
    )
    np.copyto(owner.view(np.ndarray), value)
    return owner


def _arrays(value: Any) -> Iterator[Any]:
    """Iterate over the arrays and NumPy's numbers of a (nested) container."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from _arrays(item)
    elif isinstance(value, np.ndarray | np.generic):
        yield value


def _size(value: Any) -> int:
    """Return the bytes of all arrays of a container, repeated elements counted once."""
    total = 0
    for array in _arrays(value):
        elements = 1
        for length, stride in zip(array.shape, array.strides, strict=True):
            elements *= length if stride else min(length, 1)
        total += elements * array.dtype.itemsize
    return total
