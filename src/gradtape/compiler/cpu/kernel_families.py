"""Kernels that differ only in their arrays and numbers: one function does them all.

An unrolled loop makes the same loop nest again and again, on other arrays, at another element, with
another step number. LLVM's time for a function is most of the time to compile, so it is written
once, and called with the parts that differ.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.compiler.cpu.parameters import Parameters
from gradtape.compiler.cpu.schedule import Schedule
from gradtape.compiler.kernel import (
    Accumulate,
    Accumulator,
    Axis,
    Buffer,
    Failure,
    Kernel,
    Place,
    Stage,
    Statement,
    Store,
    rewritten,
)
from gradtape.core.promotion import INT64
from gradtape.core.scalar import Scalar

# Division by a known number is a multiplication.
_BY_NUMBERS = ("floor_divide", "remainder")


class Pattern:
    """A kernel taken apart: its structure, and its arrays and numbers.

    Attributes:
        kernel: The kernel.
        key: Equal for kernels that are the same except for arrays and numbers.
        buffers: Its arrays, without those on the stack, in the order of first use.
        words: Its numbers as 64 bits each, in the order in which the key has a place for them:
            constants, offsets of elements from the first one, codes of conditions.
    """

    def __init__(self, kernel: Kernel, schedule: Schedule, codes: Mapping[Failure, int]) -> None:
        self.kernel = kernel
        self.words: list[int] = []
        self._codes = codes
        self._axes: dict[Axis, int] = {axis: n for n, axis in enumerate(kernel.axes)}
        self._buffers: dict[Buffer, int] = {}
        self._accumulators: dict[Accumulator, int] = {}
        self._failures: dict[Failure, int] = {}
        self._numbers: dict[int, int] = {}  # of the parts, by identity
        # By the place of a word: the object it is part of.
        self._sites: list[Scalar | Store | Failure] = []
        self.key = self._key(schedule)
        self.buffers = tuple(buffer for buffer in self._buffers if buffer.kind != "scratch")

    # ---- its structure ---------------------------------------------------------------------

    def _key(self, schedule: Schedule) -> tuple[Any, ...]:
        kernel = self.kernel
        fixed = {
            id(part.args[1])
            for part in kernel.expressions
            if part.name in _BY_NUMBERS and part.args[1].name == "constant"
        }
        parts = []
        for number, part in enumerate(kernel.expressions):
            self._numbers[id(part)] = number
            parts.append(self._part(part, id(part) in fixed))
        stages = [
            (tuple(map(self._statement, stage.inner)), tuple(map(self._statement, stage.outer)))
            for stage in kernel.stages
        ]
        run = schedule._replace(vector=None, axis=None)
        places = [self._axes.get(axis) for axis in (schedule.vector, schedule.axis)]  # type: ignore[arg-type]
        axes = tuple((axis.size, axis.reduced, axis.serial) for axis in kernel.axes)
        return axes, run, *places, tuple(parts), tuple(stages), tuple(map(_memory, self._buffers))

    def _part(self, part: Scalar, fixed: bool) -> tuple[Any, ...]:
        args = tuple([self._numbers[id(arg)] for arg in part.args])
        extra: Any = None
        if part.name == "constant":
            if fixed:
                extra = part.extra
            else:
                self._word(_bits(part), part)
        elif part.name == "axis":
            extra = self._axes[part.extra]
        elif part.name in ("load", "gather"):
            extra = self._place(part.extra)
            self._word(part.extra.offset, part)
        elif part.name in ("reduced", "running"):
            extra = self._accumulator(part.extra)
        elif part.name == "check":
            extra = self._failures.setdefault(part.extra, len(self._failures))
            if extra == len(self._failures) - 1:
                self._word(self._codes[part.extra], part.extra)
        else:
            extra = part.extra
        return part.name, part.dtype.str, args, extra

    def _statement(self, statement: Statement) -> tuple[Any, ...]:
        value = self._numbers[id(statement.value)]
        if isinstance(statement, Accumulate):
            return self._accumulator(statement.target), value
        further = statement.further
        self._word(statement.place.offset, statement)
        return (
            self._place(statement.place),
            value,
            None if further is None else self._numbers[id(further)],
            statement.adds,
        )

    def _word(self, word: int, site: Scalar | Store | Failure) -> None:
        self.words.append(word)
        self._sites.append(site)

    def _place(self, place: Place) -> tuple[Any, ...]:
        buffer = self._buffers.setdefault(place.buffer, len(self._buffers))
        return buffer, tuple([(self._axes[axis], step) for axis, step in place.steps])

    def _accumulator(self, target: Accumulator) -> tuple[Any, ...]:
        number = self._accumulators.setdefault(target, len(self._accumulators))
        # As floats, 0 and -0 are different.
        return number, target.combine, target.dtype.str, repr(target.start)

    # ---- as a function of the numbers that differ ------------------------------------------

    def with_parameters(
        self, schedule: Schedule, places: Sequence[int]
    ) -> tuple[Kernel, Schedule, Parameters]:
        """The kernel as a function of a table: status, buffers, the numbers at these places."""
        slots = {buffer: n for n, buffer in enumerate(self.buffers, 1)}
        first = len(slots) + 1
        lifted = {id(self._sites[place]): first + n for n, place in enumerate(places)}
        codes: dict[Failure, int | Scalar] = {
            failure: _parameter(lifted[id(failure)]) if id(failure) in lifted else code
            for failure in self._failures
            for code in [self._codes[failure]]
        }
        return _lifted(self.kernel, lifted), schedule, Parameters(slots, 0, codes)


def _memory(buffer: Buffer) -> tuple[Any, ...]:
    """The properties of a buffer that code depends on."""
    on_stack = buffer.kind == "scratch"
    return buffer.dtype.str, on_stack, buffer.size if on_stack else 0


def _bits(part: Scalar) -> int:
    """The bits of a constant, in the first bytes of a word."""
    dtype = np.dtype(np.uint8) if part.dtype.kind == "b" else part.dtype
    number = np.asarray(part.extra).astype(dtype).tobytes()
    return int(struct.unpack("<q", number.ljust(8, b"\0"))[0])


def _parameter(place: int, dtype: np.dtype[Any] = INT64) -> Scalar:
    return Scalar("parameter", (), dtype, extra=place)


def _lifted(kernel: Kernel, places: Mapping[int, int]) -> Kernel:
    """The kernel with numbers replaced by parameters; `places` is keyed by their owners' ids."""

    def change(part: Scalar, args: tuple[Scalar, ...]) -> Scalar | None:
        place = places.get(id(part))
        if place is None or part.name == "check":
            return None
        if part.name == "constant":
            return _parameter(place, part.dtype)
        further = _parameter(place)
        if part.name == "gather":
            further, args = args[0] + further, args[1:]
        extra = part.extra._replace(offset=0)
        return Scalar("gather", (further, *args), part.dtype, weak=part.weak, extra=extra)

    known = rewritten(kernel.expressions, change)

    def statement(old: Statement) -> Statement:
        value = known[id(old.value)]
        if isinstance(old, Accumulate):
            return old._replace(value=value)
        further = None if old.further is None else known[id(old.further)]
        place = places.get(id(old))
        if place is None:
            return old._replace(value=value, further=further)
        more = _parameter(place)
        further = more if further is None else further + more
        return old._replace(place=old.place._replace(offset=0), value=value, further=further)

    stages = [
        Stage(tuple(map(statement, stage.inner)), tuple(map(statement, stage.outer)))  # type: ignore[arg-type]
        for stage in kernel.stages
    ]
    return Kernel(kernel.name, kernel.axes, stages, kernel.ops)


class Family(NamedTuple):
    """Kernels that share one function.

    Attributes:
        patterns: Their patterns.
        places: The places of the words in which they differ.
    """

    patterns: list[Pattern]
    places: list[int]


def families(patterns: Sequence[Pattern]) -> list[Family]:
    """Patterns grouped by key, in the order of the first of each group."""
    found: dict[Any, list[Pattern]] = {}
    for pattern in patterns:
        found.setdefault(pattern.key, []).append(pattern)
    return [Family(alike, _varying(alike)) for alike in found.values()]


def _varying(alike: Sequence[Pattern]) -> list[int]:
    if len(alike) == 1:
        return []
    columns = zip(*(pattern.words for pattern in alike), strict=True)
    return [place for place, words in enumerate(columns) if len(set(words)) > 1]
