"""How a loop nest is run: vector width, parts for threads, long reductions in two steps.

It depends on the sizes and the target only, never on the number of threads, and so results do not
depend on that either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from gradtape.compiler.array_loop import UNKNOWN_STEPS, ArrayLoop
from gradtape.compiler.build import substituted
from gradtape.compiler.classify import cost_of
from gradtape.compiler.element_program import ElementProgram
from gradtape.compiler.kernel import (
    Accumulate,
    Accumulator,
    Axis,
    Buffer,
    Kernel,
    Place,
    Stage,
    Store,
    identity,
    rewritten,
    walk,
)
from gradtape.compiler.library_call import LibraryCall
from gradtape.compiler.plan import Step
from gradtape.compiler.product import Product
from gradtape.core.promotion import BOOL
from gradtape.core.scalar import Scalar, constant, where

# Work below this is not worth another thread, in nanoseconds.
_PART = 8_000
_MOST_PARTS = 64
# A guess at the steps of a loop with a condition that is inside of others.
_FEW_STEPS = 10
# The rough cost of a byte of memory traffic and of an instruction on one lane, in nanoseconds.
_BYTE, _LANE = 0.04, 0.3
# Multiplications and additions of a matrix product in a nanosecond.
_FLOPS = 80
# The same of a routine of LAPACK, and the time of a call in nanoseconds.
_LIBRARY_FLOPS, _ROUTINE = 10, 300
# Bodies of at most this many instructions wait for each other unless several vectors are under way;
# where results are accumulated, longer ones do too.
_SHORT, _SHORT_CHAIN = 12, 120

# The number of floating-point numbers that are added up one after the other.
_CHAIN = 32

# The number of operands before the guard, for instructions that may have one.
_OPERANDS = {"load": 0, "gather": 1, "check": 3, "watch": 1}

# Lengths of rows of results that are worth it, and that fit into the first-level cache.
_SHORTEST_ROW, _LONGEST_ROW = 64, 4096
# Elements of all rows of results together: they should stay in a thread's cache.
_MOST_ACCUMULATED = 4 * _LONGEST_ROW


class Schedule(NamedTuple):
    """How to run a kernel.

    Attributes:
        vector: The axis that is done in vectors.
        lanes: The number of elements of it done at once.
        columns: Whether that axis is innermost although others are reduced: results are then
            accumulated in a row of memory, and everything is read in order.
        axis: The axis that is divided among parts; None for one part.
        block: Steps of it per part.
        parts: The number of parts.
        peeled: Whether the last vector of an accumulating loop, which begins earlier if the axis
            ends within it, has code of its own.
    """

    vector: Axis | None
    lanes: int
    columns: bool
    axis: Axis | None
    block: int
    parts: int
    peeled: bool


def nanoseconds(step: Step) -> float:
    """A rough time on one core."""
    if isinstance(step, Product):
        return step.flops / _FLOPS
    if isinstance(step, ArrayLoop):
        return step.steps * sum(nanoseconds(inner) for plan in step.plans for inner in plan.steps)
    if isinstance(step, LibraryCall):
        return step.flops / _LIBRARY_FLOPS + step.matrices * len(step.calls) * _ROUTINE
    instructions = cost_of(step.expressions)
    if isinstance(step, ElementProgram):
        steps = max(UNKNOWN_STEPS, _FEW_STEPS * step.longest) if step.endless else step.longest
        return instructions * _LANE * steps
    size = sum(buffer.nbytes for buffer in step.buffers if buffer.kind != "scratch")
    return step.points * (instructions + 1) * _LANE / 8 + size * _BYTE


def scheduled(kernel: Kernel, vector_bytes: int) -> Schedule:
    """Choose how to run a kernel."""
    vector, columns = _vector_axis(kernel), _in_columns(kernel)
    lanes = _lanes(kernel, vector_bytes, vector)
    # For long bodies a mask costs little, and a second copy of the code much.
    peeled = not kernel.serial and cost_of(kernel.expressions) <= _SHORT_CHAIN
    parts = min(_MOST_PARTS, int(nanoseconds(kernel) / _PART))
    outer = kernel.outer
    if columns and len(outer) > 1:
        outer = outer[:-1]
    axis = _divided_axis([a for a in outer if not a.serial], parts)
    # A row of results is not divided: the last vector of a part would overwrite another's results.
    if axis is None or parts < 2 or (columns and axis is vector):
        return Schedule(vector, lanes, columns, None, 0, 1, peeled)
    step = lanes if axis is vector else 1
    block = math.ceil(axis.size / step / parts) * step
    return Schedule(vector, lanes, columns, axis, block, math.ceil(axis.size / block), peeled)


def scheduled_loop(loop: ElementProgram | ArrayLoop) -> Schedule:
    """Choose how to run a loop of the user's: in parts if its steps do not depend on each other."""
    axis = loop.parallel
    parts = min(_MOST_PARTS, int(nanoseconds(loop) / _PART))
    if axis is None or parts < 2:
        return Schedule(None, 1, False, None, 0, 1, False)
    block = math.ceil(axis.size / parts)
    return Schedule(None, 1, False, axis, block, math.ceil(axis.size / block), False)


def _divided_axis(axes: Sequence[Axis], parts: int) -> Axis | None:
    """The axis to divide among parts: the first with enough steps, otherwise the longest.

    Parts of an outer axis are far apart in memory; those of an inner one would share cache lines.
    """
    most = max((axis.size for axis in axes), default=0)
    return next((axis for axis in axes if 2 * axis.size >= min(parts, most)), None)


def _vector_axis(kernel: Kernel) -> Axis | None:
    """The axis whose elements are adjacent in memory."""
    if not kernel.axes:
        return None
    last = kernel.axes[-1]
    if kernel.serial:
        return None if last.serial else last
    return last if last.reduced or not kernel.inner else kernel.outer[-1]


def _in_columns(kernel: Kernel) -> bool:
    """Whether results are accumulated in a row of memory."""
    targets = [s.target for s in kernel.statements() if isinstance(s, Accumulate)]
    return (
        len(kernel.stages) == 1
        and bool(kernel.inner)
        and not kernel.axes[-1].reduced
        and _SHORTEST_ROW <= kernel.axes[-1].size <= _LONGEST_ROW
        and len(targets) * kernel.axes[-1].size <= _MOST_ACCUMULATED
        and not any(target.dtype == BOOL for target in targets)
    )


def _lanes(kernel: Kernel, vector_bytes: int, vector: Axis | None) -> int:
    if vector is None:
        return 1
    widest = max(
        [part.dtype.itemsize for part in kernel.expressions if part.name not in ("axis",)],
        default=8,
    )
    lanes = vector_bytes // widest
    instructions = cost_of(kernel.expressions)
    if vector.reduced and instructions <= _SHORT_CHAIN:
        lanes *= 4
    elif instructions <= _SHORT:
        lanes *= 2
    while lanes > max(vector.size, 1):
        lanes //= 2
    return lanes


def blocks(kernel: Kernel, stage: Stage, schedule: Schedule) -> dict[Axis, tuple[int, ...]]:
    """The sizes, in steps, of the blocks along each reduced axis, the largest first.

    Floating-point numbers, elements or sums of blocks, are added up only a few at a time.
    """
    if kernel.serial or not any(target.sums_floats for target in stage.targets):
        return {}
    found, chain = {}, 1
    for axis in reversed(kernel.inner):
        sizes: list[int] = []
        count = math.ceil(axis.size / (schedule.lanes if axis is schedule.vector else 1))
        while chain * count > _CHAIN and count > 1:
            steps = max(1, _CHAIN // chain)
            sizes.append(steps * (sizes[-1] if sizes else 1))
            count, chain = math.ceil(count / steps), 1
        chain *= count
        found[axis] = tuple(reversed(sizes))
    return found


# ---- long reductions ----------------------------------------------------------------------------


def divided(kernel: Kernel) -> list[Kernel]:
    """A long reduction with few results as two kernels: parts of it, and their combination."""
    inner = kernel.inner
    if not inner or kernel.serial or len(kernel.stages) != 1:
        return [kernel]
    long = max(inner, key=lambda axis: axis.size)
    parts = min(_MOST_PARTS, int(nanoseconds(kernel) / _PART))
    results = math.prod(axis.size for axis in kernel.outer)
    if _in_columns(kernel) and len(kernel.outer) == 1:
        parts = min(parts, _MOST_PARTS // 4)
    elif results >= _MOST_PARTS:
        parts = 1
    if parts < 2:
        return [kernel]
    stores = any(isinstance(s, Store) for s in kernel.stages[0].inner)
    count = _part_count(long.size, parts, exact=stores)
    if count < 2:
        return [kernel]
    return _divided(kernel, long, count)


def _part_count(size: int, wanted: int, *, exact: bool) -> int:
    """The number of parts to divide an axis into: equal ones if possible, else about equal."""
    for count in range(wanted, max(wanted // 2, 1), -1):
        if size % count == 0:
            return count
    return 1 if exact else wanted


def _divided(kernel: Kernel, long: Axis, count: int) -> list[Kernel]:
    block = math.ceil(long.size / count)
    part, rest = Axis("part", count), Axis(long.name, block, reduced=True)
    axes = [part, *(rest if axis is long else axis for axis in kernel.axes)]
    first = substituted(kernel, {long: {part: block, rest: 1}}, axes)
    stage = first.stages[0]
    inner = list(stage.inner)
    if block * count != long.size:
        inside = part.index * block + rest.index < long.size
        inner = [_guarded(statement, inside) for statement in inner]  # type: ignore[arg-type]
    partials: dict[Accumulator, Accumulator] = {}
    stores, accumulates = [], []
    shape = (count, *(axis.size for axis in kernel.outer))
    for statement in inner:
        if isinstance(statement, Accumulate):
            old = statement.target
            buffer = Buffer(f"{kernel.name}_{old}", shape, old.dtype, "temporary")
            place = _dense(buffer, [part, *kernel.outer])
            stores.append(Store(place, old.value))
            combined = partials[old] = Accumulator(old.name, old.combine, old.dtype)
            load = Scalar("load", (), old.dtype, extra=place)
            accumulates.append(Accumulate(combined, load))
    first = Kernel(kernel.name, axes, [Stage(tuple(inner), tuple(stores))], kernel.ops)
    over = Axis("part", count, reduced=True)
    last = Kernel(
        f"{kernel.name}_end",
        [part, *kernel.outer],
        [Stage(tuple(accumulates), _with(kernel.stages[0].outer, partials))],
        ["combine"],
    )
    return [first, substituted(last, {part: {over: 1}}, [over, *kernel.outer])]


def _guarded(statement: Accumulate, inside: Scalar) -> Accumulate:
    """The statement with a guard: it reads nothing and adds nothing outside."""

    def change(part: Scalar, args: tuple[Scalar, ...]) -> Scalar | None:
        own = _OPERANDS.get(part.name)
        if own is None:
            return None
        guard = inside if len(args) == own else args[own] & inside
        args = (*args[:own], guard)
        return Scalar(part.name, args, part.dtype, weak=part.weak, extra=part.extra)

    known = rewritten(walk(statement.value, set()), change)
    target = statement.target
    nothing = constant(identity(target.combine, target.dtype), target.dtype)
    return Accumulate(target, where(inside, known[id(statement.value)], nothing))


def _dense(buffer: Buffer, axes: list[Axis]) -> Place:
    steps, stride = [], 1
    for axis in reversed(axes):
        if axis.size != 1:
            steps.append((axis, stride))
        stride *= axis.size
    return Place(buffer, tuple(reversed(steps)), 0)


def _with(stores: tuple[Store, ...], partials: dict[Accumulator, Accumulator]) -> tuple[Store, ...]:
    """Statements with accumulators replaced by others."""
    seen: set[int] = set()
    known = rewritten(
        (part for store in stores for part in walk(store.value, seen)),
        lambda part, _args: partials[part.extra].value if part.name == "reduced" else None,
    )
    return tuple(Store(store.place, known[id(store.value)]) for store in stores)
