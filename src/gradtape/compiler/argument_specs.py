"""Specs of a compiled function's arguments and results: leaves in nested tuples, lists and dicts.

A spec describes one argument, or the whole result. Specs are plain values: hashable, equal when
they describe the same. The functions at the end walk them in Python; the tables of native entry
points (`cpu/runtime/entry_tables.py`) say the same walks in numbers.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gradtape.core.promotion import is_half
from gradtape.errors import ArgumentError, DTypeError

# The numbers compiled code knows, by NumPy's one-letter names.
_NUMBER_TYPES = tuple(np.dtype(char) for char in "?bBhHiIlLqQefdFD")
# The dtypes of Python numbers in compiled code, where they are results.
NUMBERS = tuple(np.dtype(kind) for kind in (float, np.int64, bool, complex))
# Immutable, and compared without running any user code.
COMPARED_BY_VALUE = (str, int, bytes)


@dataclass(frozen=True, slots=True)
class ArrayLeaf:
    """An `np.ndarray`, no subclass: in native byte order, C-contiguous, aligned; only read."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        type_numbers(self.dtype)


@dataclass(frozen=True, slots=True)
class ScalarLeaf:
    """A NumPy scalar of exactly this type."""

    dtype: np.dtype[Any]

    def __post_init__(self) -> None:
        type_numbers(self.dtype)


@dataclass(frozen=True, slots=True)
class NumberLeaf:
    """A Python `float`, `int` (that fits into 64 bits) or `bool`, no subclass."""

    kind: type[float] | type[int] | type[bool]

    def __post_init__(self) -> None:
        if self.kind not in (float, int, bool):
            raise ArgumentError(
                f"entry: got a number of type {self.kind!r}, expected float, int or bool; "
                "describe other objects by StaticLeaf"
            )

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which the compiled function gets it."""
        return np.dtype({float: np.float64, int: np.int64, bool: np.bool_}[self.kind])


@dataclass(frozen=True, slots=True, eq=False)
class StaticLeaf:
    """An object that is part of the signature, or a constant of the result: None, a flag, a name.

    It matches itself; strings, bytes, ints and floats match others of the same type and value
    (floats of the same bits, since the code may differ for -0.0).
    """

    value: Any

    @property
    def _identity(self) -> tuple[Any, ...]:
        kind = type(self.value)
        if kind is float:
            return kind, struct.pack("d", self.value)
        if kind in COMPARED_BY_VALUE:
            return kind, self.value
        # By address: the leaf keeps the object alive, so no other object can have its address.
        return None, id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticLeaf) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)


@dataclass(frozen=True, slots=True)
class ResultLeaf:
    """One of the results of the compiled function, by number; may appear several times."""

    index: int


@dataclass(frozen=True, slots=True)
class TupleSpec:
    """A `tuple`, no subclass, of this length."""

    items: tuple[Spec, ...]


@dataclass(frozen=True, slots=True)
class ListSpec:
    """A `list`, no subclass, of this length."""

    items: tuple[Spec, ...]


@dataclass(frozen=True, slots=True)
class DictSpec:
    """A `dict`, no subclass, with exactly these keys, in insertion order.

    Attributes:
        keys: In the order of the leaves.
        items: One for each of them.
        order: The keys in the order of the dict; the same order if not given.
    """

    keys: tuple[str, ...]
    items: tuple[Spec, ...]
    order: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.order:
            object.__setattr__(self, "order", self.keys)
        counts = {len(set(self.keys)), len(self.keys), len(self.order), len(self.items)}
        strings = all(type(key) is str for key in self.keys)
        if not strings or len(counts) > 1 or set(self.order) != set(self.keys):
            raise ArgumentError(
                f"entry: got a dict with keys {self.keys!r} in the order {self.order!r} and "
                f"{len(self.items)} items, expected strings, each once, and an item for each"
            )


Container: TypeAlias = TupleSpec | ListSpec | DictSpec
Spec: TypeAlias = ArrayLeaf | ScalarLeaf | NumberLeaf | StaticLeaf | ResultLeaf | Container


class Result(NamedTuple):
    """A result of the compiled function; one without axes is returned as a NumPy scalar.

    Attributes:
        dtype: Its dtype.
        shape: Its shape.
        number: Whether it is returned as a Python number; then it has no axes.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    number: bool = False


@functools.cache
def type_numbers(dtype: np.dtype[Any]) -> tuple[int, ...]:
    """NumPy's numbers of the types with the same bits (int64 may be `long` and `long long`).

    Raises:
        DTypeError: Not a type of numbers, or not in the byte order of the machine.
    """
    if is_half(dtype) and dtype.isnative:
        return (dtype.num,)
    same = (d for d in _NUMBER_TYPES if (d.kind, d.itemsize) == (dtype.kind, dtype.itemsize))
    numbers = tuple(d.num for d in same)
    if not dtype.isnative or dtype.num not in numbers:
        raise DTypeError(
            f"entry: got dtype {dtype!r}, expected a NumPy type of numbers in native byte order; "
            "convert the array before the call"
        )
    return numbers


def leaves(spec: Spec) -> Iterator[Spec]:
    """The leaves of a spec from left to right."""
    if isinstance(spec, Container):
        for item in spec.items:
            yield from leaves(item)
    else:
        yield spec


def check_specs(args: Sequence[Spec], result: Spec, results: Sequence[Result]) -> None:
    """Check that leaves are only where they have a meaning.

    Raises:
        ArgumentError: A leaf that does not belong there, or a result that does not exist.
        DTypeError: A result of a dtype that compiled code does not have.
    """
    for leaf in leaves(TupleSpec(tuple(args))):
        if isinstance(leaf, ResultLeaf):
            raise ArgumentError(f"entry: got {leaf} as an argument, expected it in a result")
    known = set(map(ResultLeaf, range(len(results))))
    for leaf in leaves(result):
        if not isinstance(leaf, StaticLeaf) and leaf not in known:
            raise ArgumentError(
                f"entry: got {leaf} in a result, expected a StaticLeaf, or the ResultLeaf of one "
                f"of {len(results)} results"
            )
    for dtype, shape, number in results:
        type_numbers(dtype)
        if any(size < 0 for size in shape):
            raise ArgumentError(f"entry: got a result of shape {shape}, expected sizes from 0")
        if number and (shape or dtype not in NUMBERS):
            raise ArgumentError(
                f"entry: got a result of {dtype} and shape {shape} as a Python number, expected "
                "one without axes, of " + ", ".join(map(str, NUMBERS))
            )


def unpack(spec: Spec, value: Any, inputs: list[NDArray[Any]]) -> bool:
    """Whether an argument is as described; adds its leaves, as arrays, to `inputs`."""
    match spec:
        case ArrayLeaf(dtype, shape):
            if not _is_plain(value, dtype, shape):
                return False
            inputs.append(value)
        case ScalarLeaf(dtype):
            if type(value) is not dtype.type:
                return False
            inputs.append(np.array(value))
        case NumberLeaf(kind):
            if type(value) is not kind or (kind is int and not -(2**63) <= value < 2**63):
                return False
            inputs.append(np.array(value, spec.dtype))
        case StaticLeaf():
            return spec == StaticLeaf(value)
        case TupleSpec(items) | ListSpec(items):
            kind_of_container = tuple if isinstance(spec, TupleSpec) else list
            if type(value) is not kind_of_container or len(value) != len(items):
                return False
            return all(unpack(item, each, inputs) for item, each in zip(items, value, strict=True))
        case DictSpec(keys, items, order):
            if type(value) is not dict or len(value) != len(keys):
                return False
            # Only strings are compared: other keys could run user code.
            if any(type(key) is not str for key in value) or tuple(value) != order:
                return False
            return all(
                unpack(item, value[key], inputs) for key, item in zip(keys, items, strict=True)
            )
        case ResultLeaf():
            return False
    return True


def _is_plain(value: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    return (
        type(value) is np.ndarray
        and value.shape == shape
        and value.dtype.num in type_numbers(dtype)
        and value.dtype.isnative
        and value.flags.c_contiguous
        and value.flags.aligned
    )


def pack(spec: Spec, results: Sequence[Any]) -> Any:
    """The result of a call, as described, from the results of the compiled function."""
    match spec:
        case ResultLeaf(index):
            return results[index]
        case StaticLeaf(value):
            return value
        case TupleSpec(items):
            return tuple([pack(item, results) for item in items])
        case ListSpec(items):
            return [pack(item, results) for item in items]
        case DictSpec(keys, items, order):
            made = {key: pack(item, results) for key, item in zip(keys, items, strict=True)}
            return {key: made[key] for key in order}
    raise ArgumentError(f"entry: got {spec} in a result, expected a ResultLeaf or StaticLeaf")
