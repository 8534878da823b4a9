"""Loop nests: the form of a fused group of ops before it is printed for a machine.

A kernel runs over a box of axes, some of which may be reduced. For each point of the axes that are
not reduced it goes through its stages in order; a stage loops over the reduced axes, and then runs
the statements that need its results:

    for i in outer axes:                   # in parallel, but for serial ones
        for stage in stages:
            for r in reduced axes:         # absent if there are none
                stage.inner                # store elements, accumulate
            stage.outer                    # store what was accumulated, or is computed from it

Statements hold expressions of `core.scalar`; loads say which buffer and where, by integer steps
along the axes; a *gather* adds a computed index to that. Nothing here depends on the machine:
printers choose vectors, threads and blocks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.lazy import lazy
from gradtape.core.promotion import BOOL, INT64
from gradtape.core.scalar import Scalar, constant
from gradtape.errors import GradtapeError, IndexingError
from gradtape.graph.ir import Node


class Axis:
    """One loop: the number of its steps, and how they run.

    Attributes:
        reduced: Whether its results are combined into one.
        serial: Whether its steps have to be done one after the other, in order.
    """

    __slots__ = ("index", "name", "reduced", "serial", "size")

    def __init__(
        self, name: str, size: int, *, reduced: bool = False, serial: bool = False
    ) -> None:
        self.name = name
        self.size = size
        self.reduced = reduced
        self.serial = serial
        # An axis of one step needs no loop.
        self.index = constant(0, INT64) if size == 1 else Scalar("axis", (), INT64, extra=self)

    def __repr__(self) -> str:
        return self.name


class Buffer:
    """An array in memory, its elements in order.

    Attributes:
        name: For listings.
        shape: Its sizes; for a scratch buffer the sizes of the reduced axes.
        dtype: Its elements.
        kind: "input", "output", "temporary", or "scratch" (one per thread, lives in a kernel only).
    """

    __slots__ = ("dtype", "kind", "name", "shape")

    def __init__(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], kind: str) -> None:
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.kind = kind

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        return self.name


class Place(NamedTuple):
    """An element of a buffer: `offset` plus a number of elements per step of each axis."""

    buffer: Buffer
    steps: tuple[tuple[Axis, int], ...]
    offset: int

    def __repr__(self) -> str:
        terms = [f"{step}*{axis}" if step != 1 else str(axis) for axis, step in self.steps]
        if self.offset or not terms:
            terms.append(str(self.offset))
        return f"{self.buffer}[{' + '.join(terms)}]"

    def step(self, axis: Axis) -> int:
        """The number of elements that one step of an axis advances by."""
        return next((step for own, step in self.steps if own is axis), 0)


class Failure(NamedTuple):
    """A condition that does not hold: the node it belongs to, and the message.

    In the message `{}` stands for the number in question.
    """

    node: Node
    message: str
    error: type[GradtapeError] = IndexingError

    def __str__(self) -> str:
        got, joint, rest = re.split("(, expected |; )", self.message, maxsplit=1)
        at = f" at {self.node.line}" if self.node.line else ""
        return f"{got}{at}{joint}{rest}"


class Accumulator:
    """A result being combined over the reduced axes."""

    __slots__ = ("combine", "dtype", "name", "running", "start", "value")

    def __init__(self, name: str, combine: str, dtype: np.dtype[Any]) -> None:
        self.name = name
        self.combine = combine
        self.dtype = dtype
        self.start = identity(combine, dtype)
        # Reads the result, once the loop over the reduced axes is done.
        self.value = Scalar("reduced", (), dtype, extra=self)
        # Reads the result so far, in a statement after the one that combines.
        self.running = Scalar("running", (), dtype, extra=self)

    @property
    def sums_floats(self) -> bool:
        """Whether rounding errors add up in it."""
        return self.combine == "add" and self.dtype.kind == "f"

    def __repr__(self) -> str:
        return self.name


class Store(NamedTuple):
    """Write an element.

    Attributes:
        place: The place to write to.
        value: The value to write.
        further: A computed number of elements to add to the place, if any.
        adds: Whether to add the value to the element there.
    """

    place: Place
    value: Scalar
    further: Scalar | None = None
    adds: bool = False

    @property
    def expressions(self) -> tuple[Scalar, ...]:
        """The expressions it computes."""
        return (self.value,) if self.further is None else (self.further, self.value)


class Accumulate(NamedTuple):
    """Combine an element with the result accumulated so far."""

    target: Accumulator
    value: Scalar

    @property
    def expressions(self) -> tuple[Scalar, ...]:
        """The expressions it computes."""
        return (self.value,)


Statement = Store | Accumulate


class Stage(NamedTuple):
    """One loop over the reduced axes, and what follows it."""

    inner: tuple[Statement, ...]
    outer: tuple[Store, ...]

    @property
    def targets(self) -> list[Accumulator]:
        """The accumulators it combines into."""
        return [s.target for s in self.inner if isinstance(s, Accumulate)]


class Kernel:
    """A loop nest.

    Attributes:
        name: For listings and symbols.
        axes: Its axes, in memory order of elements.
        stages: See the module's docstring.
        ops: The names of the ops it computes, in order.
    """

    def __init__(
        self, name: str, axes: Sequence[Axis], stages: Sequence[Stage], ops: Sequence[str]
    ) -> None:
        self.name = name
        self.axes = tuple(axes)
        self.stages = tuple(stages)
        self.ops = tuple(ops)

    @property
    def serial(self) -> bool:
        """Whether some of it has to be done in order."""
        return any(axis.serial for axis in self.axes)

    @property
    def outer(self) -> tuple[Axis, ...]:
        """The axes that are not reduced."""
        return tuple(axis for axis in self.axes if not axis.reduced)

    @property
    def inner(self) -> tuple[Axis, ...]:
        """The reduced axes."""
        return tuple(axis for axis in self.axes if axis.reduced)

    @property
    def points(self) -> int:
        """The number of times the innermost statements run."""
        return math.prod(axis.size for axis in self.axes)

    def statements(self) -> Iterator[Statement]:
        """All statements, in order."""
        for stage in self.stages:
            yield from stage.inner
            yield from stage.outer

    @lazy
    def expressions(self) -> tuple[Scalar, ...]:
        """All expressions and their parts, each once, parts before wholes."""
        return tuple(parts_of(self.statements()))

    @lazy
    def reads(self) -> list[Place]:
        """The places it reads."""
        return [part.extra for part in self.expressions if part.name in ("load", "gather")]

    @lazy
    def writes(self) -> list[Place]:
        """The places it writes to."""
        return [each.place for each in self.statements() if isinstance(each, Store)]

    @lazy
    def buffers(self) -> tuple[Buffer, ...]:
        """The buffers it touches, in order of first use."""
        return tuple(dict.fromkeys(place.buffer for place in (*self.reads, *self.writes)))


def parts_of(statements: Iterable[Statement]) -> Iterator[Scalar]:
    """The expressions of statements and their parts, each once, parts before wholes."""
    seen: set[int] = set()
    for statement in statements:
        for whole in statement.expressions:
            yield from walk(whole, seen)


def walk(expression: Scalar, seen: set[int]) -> Iterator[Scalar]:
    """The parts of an expression, parts before wholes, without those seen already."""
    stack: list[tuple[Scalar, bool]] = [(expression, False)]
    while stack:
        part, ready = stack.pop()
        if ready:
            yield part
        elif id(part) not in seen:
            seen.add(id(part))
            stack.append((part, True))
            stack.extend((arg, False) for arg in reversed(part.args))


def rewritten(
    parts: Iterable[Scalar], change: Callable[[Scalar, tuple[Scalar, ...]], Scalar | None]
) -> dict[int, Scalar]:
    """Expressions rebuilt with changes, by the id of the old ones.

    Args:
        parts: All parts, parts before wholes.
        change: `change(part, args)` with the new arguments of a part returns its replacement;
            None for the same instruction on those.
    """
    known: dict[int, Scalar] = {}
    for part in parts:
        args = tuple(known[id(arg)] for arg in part.args)
        new = change(part, args)
        if new is None:
            new = Scalar(part.name, args, part.dtype, weak=part.weak, extra=part.extra)
        known[id(part)] = new
    return known


def identity(name: str, dtype: np.dtype[Any]) -> int | float:
    """The identity element of a reduction, from which it starts."""
    starts = {"add": 0, "or": 0, "replace": 0, "multiply": 1, "and": 1 if dtype == BOOL else -1}
    if name in starts:
        return starts[name]
    largest = name == "minimum"
    if dtype.kind == "f":
        return np.inf if largest else -np.inf
    if dtype == BOOL:
        return int(largest)
    info = np.iinfo(dtype)
    return int(info.max if largest else info.min)


# ---- indices ------------------------------------------------------------------------------------

Affine = tuple[dict[Axis, int], int]


def affine(index: Scalar | int) -> Affine | None:
    """An index as steps per axis and an offset; None if it is not of that form."""
    if isinstance(index, int | np.integer):
        return {}, int(index)
    if index.dtype != INT64:
        return None  # it may wrap around, or round
    if index.name == "constant":
        return {}, int(index.extra)
    if index.name == "axis":
        return {index.extra: 1}, 0
    if index.name not in ("add", "subtract", "multiply", "negative"):
        return None
    parts = [affine(arg) for arg in index.args]
    if index.name == "negative":
        parts.append(({}, -1))
    if None in parts:
        return None
    (steps, offset), (steps2, offset2) = parts  # type: ignore[misc]
    if index.name in ("add", "subtract"):
        sign = 1 if index.name == "add" else -1
        total = {a: steps.get(a, 0) + sign * steps2.get(a, 0) for a in steps | steps2}
        return {axis: step for axis, step in total.items() if step}, offset + sign * offset2
    if steps and steps2:
        return None
    if steps2:
        steps, offset, offset2 = steps2, offset2, offset
    return {axis: step * offset2 for axis, step in steps.items()}, offset * offset2


def bounds(index: Scalar | int) -> tuple[int, int] | None:
    """The smallest and largest value of an affine index."""
    form = affine(index)
    if form is None:
        return None
    steps, low = form
    high = low
    for axis, step in steps.items():
        reach = step * (axis.size - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high
