"""Parameters of ops and numbers as JSON, each with its type; docs/graph-format.md has the table."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from gradtape.core.lazy import found_at
from gradtape.errors import FileFormatError, UnsupportedError, a_type
from gradtape.graph.ir import Graph
from gradtape.locks import load

# Containers inside of containers; none of our ops has more than a few.
_MOST_LEVELS = 32
# Python writes and reads longer integers only if it is told to.
_MOST_BITS = 4096
_MOST_AXES = 64

# ---- dtypes -------------------------------------------------------------------------------------

_NATIVE = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip
# Those of ml_dtypes.
_SMALL = (
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip


def name_of_dtype(dtype: np.dtype[Any]) -> str:
    """`float64`, or `>float64` if the bytes are not in the order of this machine."""
    if dtype.name not in _NATIVE and dtype.name not in _SMALL:
        raise UnsupportedError(f"got the dtype {dtype}, expected numbers of a fixed size")
    return dtype.name if dtype.isnative else dtype.byteorder + dtype.name


def dtype_of_name(name: Any) -> np.dtype[Any]:
    """The dtype of a name."""
    own = name.lstrip("<>") if isinstance(name, str) and len(name) < 32 else ""
    if own in _NATIVE and name in (own, f"<{own}", f">{own}"):
        plain: np.dtype[Any] = np.dtype(own)
        return plain if name == own else plain.newbyteorder(name[0])
    kind = getattr(load("ml_dtypes"), own, None) if own in _SMALL and name == own else None
    if kind is None:
        raise FileFormatError(f"got the dtype {_short(name)}, expected one that gradtape has")
    small: np.dtype[Any] = np.dtype(kind)
    return small


def stored(array: np.ndarray[Any, Any]) -> bytes:
    """The elements of an array, in order, with the least significant byte first."""
    return array.astype(_little(array.dtype), copy=False).tobytes()


def restored(data: bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """The array, which cannot be written to."""
    array = np.frombuffer(data, _little(dtype)).reshape(shape).astype(dtype)
    array.flags.writeable = False
    return array


def _little(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.kind == "V" else dtype.newbyteorder("<")


def sizes(item: Any) -> tuple[int, ...]:
    """A shape, checked."""
    good = isinstance(item, list) and all(type(n) is int and 0 <= n < 2**63 for n in item)
    if not good or len(item) > _MOST_AXES:
        raise FileFormatError(f"got the shape {_short(item)}, expected a list of sizes")
    return tuple(item)


# ---- classes and functions in parameters --------------------------------------------------------

# Named tuples that are parameters: their names in files, and where they are.
_RECORDS = {
    "Map": "gradtape.ops.nn.resample:Map",
    "Shares": "gradtape.ops.nn.windows:Shares",
    "Windows": "gradtape.ops.nn.windows:Windows",
}
# Functions of this package that are parameters: tests of values.
_FUNCTIONS = {
    "companion": "gradtape.ops.linalg.companions:_COMPANION",
    "fiedler_companion": "gradtape.ops.linalg.companions:_FIEDLER_COMPANION",
    "full_rank": "gradtape.ops.linalg.subspaces:_has_full_rank",
    "independent_eigenvectors": "gradtape.ops.linalg.eig:_independent",
    "independent_for_funm": "gradtape.ops.linalg.funm:_independent",
    "not_singular": "gradtape.ops.linalg.toeplitz:_not_singular",
}


def _place_of(value: Any, table: dict[str, str]) -> str | None:
    """The name in a table of what is at one of its places."""
    for name, place in table.items():
        module, _, own = place.partition(":")
        # What is in a graph is of a module that has been loaded.
        if module in sys.modules and getattr(sys.modules[module], own, None) is value:
            return name
    return None


# ---- writing ------------------------------------------------------------------------------------


class Encoder:
    """Makes JSON of parameters, and collects the arrays in them.

    Args:
        graphs: The numbers of graphs that parameters may refer to.
    """

    def __init__(self, graphs: dict[Graph, int]) -> None:
        self.arrays: list[np.ndarray[Any, Any]] = []
        self._graphs = graphs

    def __call__(self, value: Any, level: int = 0) -> Any:
        """A value as JSON.

        Raises:
            UnsupportedError: It is of a type that the format does not have.
        """
        if level > _MOST_LEVELS:
            raise UnsupportedError(f"got containers more than {_MOST_LEVELS} levels deep")
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int and value.bit_length() <= _MOST_BITS:
            return value
        if kind is tuple:
            return self._all(value, level)
        if isinstance(value, np.generic):
            return {"scalar": [name_of_dtype(value.dtype), stored(np.asarray(value)).hex()]}
        if kind is np.ndarray:
            name_of_dtype(value.dtype)  # refused here, where the error names the parameter
            self.arrays.append(value)
            return {"array": len(self.arrays) - 1}
        tagged = self._tagged(value, level)
        if tagged is None:
            raise UnsupportedError(
                f"got {a_type(value)}, expected numbers, strings, arrays, dtypes, slices, graphs, "
                "or containers of them"
            )
        return tagged

    def _tagged(self, value: Any, level: int) -> dict[str, Any] | None:
        match value:
            case float():
                return _of_float(value)
            case complex():
                return {"complex": [_of_float(value.real), _of_float(value.imag)]}
            case Graph():
                return {"graph": self._graphs[value]}
            case np.dtype():
                return {"dtype": name_of_dtype(value)}
            case slice():
                return {"slice": self._all((value.start, value.stop, value.step), level)}
            case EllipsisType():
                return {"ellipsis": True}
        if type(value) is list:
            return {"list": self._all(value, level)}
        if type(value) is dict:
            return {"dict": [self._all(pair, level) for pair in value.items()]}
        record = _place_of(type(value), _RECORDS)
        if record is not None:
            return {"record": [record, self._all(value, level)]}
        function = _place_of(value, _FUNCTIONS)
        return None if function is None else {"function": function}

    def _all(self, values: Sequence[Any], level: int) -> list[Any]:
        return [self(value, level + 1) for value in values]


def _of_float(value: float) -> dict[str, Any]:
    """Exactly: in hexadecimal digits, or all bits of a NaN."""
    if value != value:
        return {"nan": struct.pack(">d", value).hex()}
    return {"float": value.hex()}


# ---- reading ------------------------------------------------------------------------------------


class Decoder:
    """Makes parameters of JSON.

    Args:
        arrays: The arrays that they may refer to.
        graphs: The graphs that they may refer to; more are added while a file is read.
    """

    def __init__(self, arrays: Sequence[Any], graphs: Sequence[Graph]) -> None:
        self._arrays = arrays
        self._graphs = graphs
        self._readers: dict[str, Callable[[Any, int], Any]] = {
            "array": lambda item, _level: self._arrays[index(item, self._arrays, "array")],
            "complex": self._complex,
            "dict": self._dict,
            "dtype": lambda item, _level: dtype_of_name(item),
            "ellipsis": lambda item, _level: ... if item is True else _refuse(item),
            "float": lambda item, _level: _float(item),
            "function": lambda item, _level: found_at(_FUNCTIONS[_known(item, _FUNCTIONS)]),
            "graph": lambda item, _level: self._graphs[index(item, self._graphs, "graph")],
            "list": lambda item, level: list(self._all(item, level)),
            "nan": lambda item, _level: _nan(item),
            "record": self._record,
            "scalar": lambda item, _level: _scalar(item),
            "slice": lambda item, level: slice(*self._all(item, level, 3)),
        }

    def __call__(self, item: Any, level: int = 0) -> Any:
        """The value that a piece of JSON stands for.

        Raises:
            FileFormatError: It stands for none.
        """
        if level > _MOST_LEVELS:
            raise FileFormatError(f"got containers more than {_MOST_LEVELS} levels deep")
        if item is None or type(item) in (bool, int, str):
            return item
        if isinstance(item, list):
            return self._all(item, level)
        if isinstance(item, dict) and len(item) == 1:
            ((tag, inner),) = item.items()
            if tag in self._readers:
                return self._readers[tag](inner, level)
        return _refuse(item)

    def _all(self, item: Any, level: int, count: int | None = None) -> tuple[Any, ...]:
        if not isinstance(item, list) or count not in (None, len(item)):
            _refuse(item)
        return tuple([self(one, level + 1) for one in item])

    def _complex(self, item: Any, level: int) -> complex:
        real, imag = self._all(item, level, 2)
        return complex(real, imag) if type(real) is type(imag) is float else _refuse(item)

    def _dict(self, item: Any, level: int) -> dict[Any, Any]:
        pairs = [self._all(pair, level, 2) for pair in item] if isinstance(item, list) else [()]
        if not all(len(pair) == 2 and isinstance(pair[0], str | int) for pair in pairs):
            _refuse(item)
        return {key: value for key, value in pairs}  # noqa: C416 - pairs of any length to mypy

    def _record(self, item: Any, level: int) -> Any:
        if not isinstance(item, list) or len(item) != 2:
            _refuse(item)
        kind = found_at(_RECORDS[_known(item[0], _RECORDS)])
        return kind(*self._all(item[1], level, len(kind._fields)))


def index(item: Any, among: Sequence[Any], what: str) -> int:
    """A number that refers to one of several things, checked."""
    if type(item) is not int or not 0 <= item < len(among):
        raise FileFormatError(f"got the number {_short(item)} of {what}, which there is not")
    return item


def _float(item: Any) -> float:
    value = float.fromhex(item) if isinstance(item, str) and len(item) < 64 else np.nan
    return _refuse(item) if value != value else value


def _nan(item: Any) -> float:
    data = _from_hex(item)
    value: float = struct.unpack(">d", data)[0] if len(data) == 8 else 0.0
    return value if value != value else _refuse(item)


def _scalar(item: Any) -> Any:
    if not isinstance(item, list) or len(item) != 2:
        _refuse(item)
    dtype, data = dtype_of_name(item[0]), _from_hex(item[1])
    return restored(data, dtype, ())[()] if len(data) == dtype.itemsize else _refuse(item)


def _from_hex(item: Any) -> bytes:
    return bytes.fromhex(item) if isinstance(item, str) and len(item) <= 64 else b""


def _known(item: Any, table: dict[str, str]) -> str:
    if not isinstance(item, str) or item not in table:
        _refuse(item)
    return item  # type: ignore[no-any-return]


def _refuse(item: Any) -> Any:
    raise FileFormatError(f"got {_short(item)}, which stands for no value")


def _short(item: Any) -> str:
    """A piece of JSON in a message: hostile ones may be long, or deep."""
    text = repr(item) if not isinstance(item, list | dict) else f"a {type(item).__name__}"
    if isinstance(item, dict) and len(item) == 1:
        text = f"a value of type {str(next(iter(item)))!r}"
    return text if len(text) <= 80 else f"{text[:79]}…"
