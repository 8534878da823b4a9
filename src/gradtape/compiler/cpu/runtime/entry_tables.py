"""A signature as numbers, for the one native function that is the entry point of all signatures.

Native code is made once per process and reads what to do from tables, because separate code for
every signature would take as long to compile as the function it leads to. A program is an array of
64-bit words: a header, then tables of records of fixed length, then the shapes they refer to.

A call works in a frame of words on the stack. The program says where things are in it: first the
arguments, then the items of containers, the addresses for the compiled function, numbers and
scalars, the objects of the results. Objects the program knows are places in the tuple that is
`self` of the callable.
"""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.compiler.argument_specs import (
    COMPARED_BY_VALUE,
    ArrayLeaf,
    Container,
    DictSpec,
    ListSpec,
    NumberLeaf,
    Result,
    ResultLeaf,
    ScalarLeaf,
    Spec,
    StaticLeaf,
    TupleSpec,
    leaves,
    type_numbers,
)
from gradtape.compiler.cpu.runtime import blocks
from gradtape.compiler.cpu.runtime.object_layout import ObjectLayout

# The frame is on the stack, and a thread may have little stack.
MOST_WORDS = 16384


# Returned by a compiled function if a signal handler raised while it ran; and if another function
# has to take over after all. The smallest status of all is returned.
INTERRUPTED_STATUS = 1
UNSETTLED_STATUS = 3


class Header(enum.IntEnum):
    """Words at the start of a program.

    `CHECKS` … `BUILDS` are numbers of records; `…_AT` is where a table begins, in words from the
    start of the program; `INPUTS` … `ROOT` are places in the frame, `FIRST_BOUND` one in `self`.
    """

    RUN = 0  # address of the compiled function
    RELEASE = 1  # whether other Python threads may run meanwhile
    FRAME = 2  # words of the frame
    ARGUMENTS = 3  # number of arguments of a call
    CHECKS = 4
    HOLDS = 5
    ARRAYS = 6
    SCALARS = 7
    BUILDS = 8
    CHECKS_AT = 9
    HOLDS_AT = 10
    ARRAYS_AT = 11
    SCALARS_AT = 12
    BUILDS_AT = 13
    SHAPES_AT = 14
    RESULTS = 15  # number of results
    INPUTS = 16  # addresses for the compiled function
    OUTPUTS = 17
    OBJECTS = 18  # an object for each result
    ROOT = 19  # the object to return
    BOUND = 20  # number of objects that follow the arguments at every call
    FIRST_BOUND = 21


class Check(enum.IntEnum):
    """Kinds of checks of an argument's value; then its place in the frame, then what is listed."""

    ARRAY = 0  # input, descr, number, other number, ndim, shape
    SCALAR = 1  # input, type, offset of the value
    FLOAT = 2  # input, room
    INT = 3  # input, room
    BOOL = 4  # input, room
    SAME = 5  # object
    EQUAL = 6  # object, type
    SAME_BITS = 7  # bits of a float
    TUPLE = 8  # length, room for the items
    LIST = 9  # length, room
    DICT = 10  # length, room, first key; all in the order of the dict


class Scalar(enum.IntEnum):
    """Kinds of objects for a result without axes."""

    NUMPY = 0
    FLOAT = 1
    INT = 2
    BOOL = 3
    COMPLEX = 4


_PYTHON = {"f": Scalar.FLOAT, "i": Scalar.INT, "b": Scalar.BOOL, "c": Scalar.COMPLEX}


class Build(enum.IntEnum):
    """Kinds of parts of the result; then its place in the frame, an operand, where to put it."""

    RESULT = 0  # its place in the frame
    OBJECT = 1  # place in `self`
    TUPLE = 2  # length
    LIST = 3  # length
    DICT = 4


class Into(enum.IntEnum):
    """Where to put a new object; then the container's place in the frame, and index or key."""

    ROOT = 0
    TUPLE = 1
    LIST = 2
    DICT = 3


# Words of a record of each table. Arrays: result, descr, ndim, shape, NumPy's memory handler to
# use, or 0 for the current one. Scalars: result, descr, room, kind of object.
CHECK_WORDS, ARRAY_WORDS, SCALAR_WORDS, BUILD_WORDS = 8, 5, 4, 6

# `self` of a callable: objects to keep alive, the program, on_error, the function to call for
# arguments that do not fit (or NotImplemented), these objects, the constants.
PROGRAM, ON_ERROR, OTHERWISE, UNLESS, FIRST_FIXED = 1, 2, 3, 4, 5
FIXED = {
    "NOT_IMPLEMENTED": NotImplemented,
    "NDARRAY": np.ndarray,
    "FLOAT": float,
    "INT": int,
    "TRUE": True,
    "FALSE": False,
    "TUPLE": tuple,
    "LIST": list,
    "DICT": dict,
    "STR": str,
}
_FIRST_CONSTANT = FIRST_FIXED + len(FIXED)


class EntryTables:
    """The tables for a signature.

    Attributes:
        constants: The objects it knows, to follow the fixed ones in `self`.
        frame: Words that a call needs.
    """

    def __init__(
        self,
        layout: ObjectLayout,
        args: Sequence[Spec],
        result: Spec,
        results: Sequence[Result],
        release_gil: bool,
        bound: Sequence[Any],
    ) -> None:
        self.constants: list[Any] = list(bound)
        self.frame = 0
        self._layout = layout
        self._places: dict[int, int] = {}  # of the constants, by address
        self._checks: list[int] = []
        self._holds: list[int] = []
        self._arrays: list[int] = []
        self._scalars: list[int] = []
        self._builds: list[int] = []
        self._shapes: list[int] = []

        first = self._room(len(args))
        inputs = sum(not isinstance(leaf, StaticLeaf) for arg in args for leaf in leaves(arg))
        self._header = {
            Header.RELEASE: int(release_gil),
            Header.ARGUMENTS: len(args) - len(bound),
            Header.RESULTS: len(results),
            Header.INPUTS: self._room(inputs),
            Header.OUTPUTS: self._room(len(results)),
            Header.OBJECTS: self._room(len(results)),
            Header.ROOT: self._room(1),
            Header.BOUND: len(bound),
            Header.FIRST_BOUND: _FIRST_CONSTANT,
        }
        self._next_input = self._header[Header.INPUTS]
        for place, spec in enumerate(args):
            self._check(spec, first + place, in_reach=False)
        for number, made in enumerate(results):
            self._allocate(number, made)
        self._build(result, [Into.ROOT, self._header[Header.ROOT], 0])

    def pack(self, run: int) -> bytes:
        """The words, for a compiled function at this address."""
        header = self._header | {Header.RUN: run, Header.FRAME: self.frame}
        tables = {
            Header.CHECKS: (self._checks, CHECK_WORDS),
            Header.HOLDS: (self._holds, 1),
            Header.ARRAYS: (self._arrays, ARRAY_WORDS),
            Header.SCALARS: (self._scalars, SCALAR_WORDS),
            Header.BUILDS: (self._builds, BUILD_WORDS),
        }
        words: list[int] = []
        for field, (table, length) in tables.items():
            header[field] = len(table) // length
            header[Header[f"{field.name}_AT"]] = len(Header) + len(words)
            words += table
        header[Header.SHAPES_AT] = len(Header) + len(words)
        words = [header[field] for field in Header] + words + self._shapes
        return struct.pack(f"{len(words)}q", *words)

    def _room(self, words: int) -> int:
        """Reserve a place in the frame."""
        place = self.frame
        self.frame += words
        return place

    def _constant(self, value: object) -> int:
        """The place of an object in `self`; the same object has one place."""
        place = self._places.setdefault(id(value), len(self.constants))
        if place == len(self.constants):
            self.constants.append(value)
        return _FIRST_CONSTANT + place

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Number of axes, and where the sizes are."""
        self._shapes += shape
        return len(shape), len(self._shapes) - len(shape)

    def _input(self) -> int:
        self._next_input += 1
        return self._next_input - 1

    def _check(self, spec: Spec, value: int, in_reach: bool) -> None:
        """Records for an argument, or a part of it, at a place in the frame."""
        match spec:
            case ArrayLeaf(dtype, shape):
                # There are at most two types with the same bits.
                numbers = type_numbers(dtype)
                descr = self._constant(np.dtype(dtype.type))
                kinds = (descr, numbers[0], numbers[-1])
                self._add_check(Check.ARRAY, value, self._input(), *kinds, *self._shape(shape))
            case ScalarLeaf(dtype):
                offset = self._layout.scalar_value(dtype)
                kind = self._constant(dtype.type)
                self._add_check(Check.SCALAR, value, self._input(), kind, offset)
            case NumberLeaf(number):
                check = {float: Check.FLOAT, int: Check.INT, bool: Check.BOOL}[number]
                self._add_check(check, value, self._input(), self._room(1))
            case StaticLeaf():
                self._check_static(spec, value)
            case TupleSpec() | ListSpec() | DictSpec():
                self._check_container(spec, value, in_reach)
            case ResultLeaf():
                raise AssertionError("refused by check_specs")
        # Other threads may remove these from their lists and dicts during the call.
        if in_reach and isinstance(spec, ArrayLeaf | ScalarLeaf):
            self._holds.append(value)

    def _add_check(self, *words: int) -> None:
        self._checks += [*words, *[0] * (CHECK_WORDS - len(words))]

    def _check_static(self, spec: StaticLeaf, value: int) -> None:
        kind = type(spec.value)
        if kind is float:
            (bits,) = struct.unpack("q", struct.pack("d", spec.value))
            self._add_check(Check.SAME_BITS, value, bits)
        elif kind in COMPARED_BY_VALUE:
            wanted = self._constant(spec.value)
            self._add_check(Check.EQUAL, value, wanted, self._constant(kind))
        else:
            self._add_check(Check.SAME, value, self._constant(spec.value))

    def _check_container(self, spec: Container, value: int, in_reach: bool) -> None:
        items = self._room(len(spec.items))
        words = [value, len(spec.items), items]
        if isinstance(spec, DictSpec):
            # The keys are adjacent, so those that other dicts have too are repeated.
            self._add_check(Check.DICT, *words, _FIRST_CONSTANT + len(self.constants))
            self.constants += spec.order
            # Values are found in the order of the dict, and are inputs in the order of the leaves.
            found = {key: place for place, key in enumerate(spec.order)}
            places = [found[key] for key in spec.keys]
        else:
            kind = Check.TUPLE if isinstance(spec, TupleSpec) else Check.LIST
            self._add_check(kind, *words)
            places = list(range(len(spec.items)))
        in_reach = in_reach or not isinstance(spec, TupleSpec)
        for place, item in zip(places, spec.items, strict=True):
            self._check(item, items + place, in_reach)

    def _allocate(self, number: int, made: Result) -> None:
        dtype, shape = np.dtype(made.dtype.type), made.shape
        descr = self._constant(dtype)
        if shape:
            handler = blocks.for_array(math.prod(shape) * dtype.itemsize)
            place = 0 if handler is None else self._constant(handler)
            self._arrays += [number, descr, *self._shape(shape), place]
        else:
            what = _PYTHON[dtype.kind] if made.number else Scalar.NUMPY
            self._scalars += [number, descr, self._room(2), what]

    def _build(self, spec: Spec, into: list[int]) -> None:
        """Records that make a result; a container comes before its items, which it will own."""
        made = self._room(1)
        match spec:
            case ResultLeaf(index):
                self._builds += [Build.RESULT, made, self._header[Header.OBJECTS] + index, *into]
            case TupleSpec(items) | ListSpec(items):
                kind = "TUPLE" if isinstance(spec, TupleSpec) else "LIST"
                self._builds += [Build[kind], made, len(items), *into]
                for place, item in enumerate(items):
                    self._build(item, [Into[kind], made, place])
            case DictSpec(keys, items, order):
                self._builds += [Build.DICT, made, 0, *into]
                item_of = dict(zip(keys, items, strict=True))
                for key in order:
                    self._build(item_of[key], [Into.DICT, made, self._constant(key)])
            case StaticLeaf(value):
                self._builds += [Build.OBJECT, made, self._constant(value), *into]
            case _:
                raise AssertionError("refused by check_specs")
