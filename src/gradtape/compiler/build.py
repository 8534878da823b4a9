"""From a group of ops to a loop nest: its stages, with the expressions pulled for each."""

from __future__ import annotations

import math
from collections.abc import Callable

from gradtape.compiler.element_expressions import (
    Index,
    Puller,
    combined,
    loaded,
    place,
    reduced_element,
    reduction_of,
)
from gradtape.compiler.fuse import Group, Member, index_of
from gradtape.compiler.kernel import (
    Accumulate,
    Accumulator,
    Axis,
    Buffer,
    Kernel,
    Place,
    Stage,
    Statement,
    Store,
    rewritten,
)
from gradtape.core.scalar import Scalar
from gradtape.graph.ir import Value

# Rows that wait for a later stage are kept in the thread's memory, up to this many bytes.
_MOST_SCRATCH = 1 << 18
# The most bytes that an element of a row takes if there is one row per lane.
_VECTOR_BYTES = 256


class _Build:
    """Builds the kernel of one group."""

    def __init__(self, group: Group, buffers: dict[Value, Buffer], name: str) -> None:
        self._group = group
        self._buffers = buffers
        self._name = name
        self._inner = [axis for axis in group.axes if axis.reduced]
        self._accumulators = {
            value: Accumulator(f"acc{n}", reduction_of(value.node).combine, value.dtype)
            for n, (value, member) in enumerate(group.members.items())
            if member.kind == "reduction"
        }
        self._scratch: dict[Value, Buffer] = {}
        self._scratch_bytes = 0
        self._levels = range(1 + max(member.level for member in group.members.values()))
        # The pullers of each stage: of its inner loop, and of what follows.
        self._pullers = {
            (level, outer): Puller(self._reads(level, outer))
            for level in self._levels
            for outer in (False, True)
        }

    def stages(self) -> list[Stage]:
        """All stages; scratch buffers are found on the way, so later ones come first."""
        return [self._stage(level) for level in reversed(self._levels)][::-1]

    def _stage(self, level: int) -> Stage:
        own = [item for item in self._group.members.items() if item[1].level == level]
        after = self._pullers[level, True]
        outer = [
            self._store(value, member, after.element(value, member.place))
            for value, member in own
            if member.kind in ("outer", "reduction") and value in self._buffers
        ]
        inner: list[Statement] = []
        puller = self._pullers[level, False]
        for value, member in own:
            if member.kind == "outer":
                continue
            if member.kind == "reduction":
                node = value.node
                assert node is not None
                source = node.operands[0]
                element = puller.element(source, index_of(self._group.axes, source.shape))
                inner.append(Accumulate(self._accumulators[value], reduced_element(node, element)))
                continue
            # In order, including values that are not stored: otherwise expressions get deep.
            element = puller.element(value, member.place)
            if value in self._buffers:
                inner.append(self._store(value, member, element))
            if value in self._scratch:
                inner.append(Store(self._scratch_place(value), element))
        return Stage(tuple(inner), tuple(outer))

    def _store(self, value: Value, member: Member, element: Scalar) -> Store:
        return Store(place(self._buffers[value], value.shape, member.place), element)

    def _scratch_place(self, value: Value) -> Place:
        """The place where a value waits for a later stage: in a row of the thread, or an array."""
        buffer = self._scratch.get(value)
        if buffer is None:
            buffer = self._scratch[value] = self._new_scratch(value)
        axes = self._inner if buffer.kind == "scratch" else self._group.axes
        return place(buffer, buffer.shape, tuple(axis.index for axis in axes))

    def _new_scratch(self, value: Value) -> Buffer:
        number = len(self._scratch)
        row = tuple(axis.size for axis in self._inner)
        # If each lane of a vector is a separate row, each has its own element.
        in_lanes = not self._group.axes[-1].reduced
        size = math.prod(row) * (_VECTOR_BYTES if in_lanes else value.dtype.itemsize)
        if self._scratch_bytes + size <= _MOST_SCRATCH:
            self._scratch_bytes += size
            return Buffer(f"row{number}", row, value.dtype, "scratch")
        whole = tuple(axis.size for axis in self._group.axes)
        return Buffer(f"{self._name}_row{number}", whole, value.dtype, "temporary")

    def _reads(self, level: int, outer: bool) -> Callable[..., Scalar | None]:
        def stored(
            value: Value, shape: tuple[int, ...], index: Index, inside: Scalar | None
        ) -> Scalar | None:
            member = self._group.members.get(value)
            if member is None:
                return loaded(self._buffers, value, shape, index, inside)
            if member.kind == "reduction":
                return self._accumulators[value].value
            if member.kind == "outer" or member.level == level:
                if index is member.place and inside is None and shape == value.shape:
                    return None
                # Whatever the shape and guard, it is computed once, at its place. Computing it
                # again for each guard would double the code with every step of a chain of
                # assignments to parts.
                return self._pullers[level, outer].element(value, member.place)
            if value in self._buffers:
                return loaded(self._buffers, value, shape, index, inside)
            return Scalar("load", (), value.dtype, extra=self._scratch_place(value))

        return stored


def build(group: Group, buffers: dict[Value, Buffer], name: str) -> Kernel:
    """The loop nest of a group.

    Args:
        group: The group.
        buffers: The buffers of the values that are in memory.
        name: The name of the kernel.
    """
    stages = _Build(group, buffers, name).stages()
    ops = [value.node.op.name for value in group.members if value.node is not None]
    return collapsed(Kernel(name, group.axes, stages, ops))


# ---- fewer axes ---------------------------------------------------------------------------------


def collapsed(kernel: Kernel) -> Kernel:
    """The kernel with neighbouring axes joined wherever they sweep through memory as one."""
    axes = [axis for axis in kernel.axes if axis.size != 1]
    kernel, k = Kernel(kernel.name, axes, kernel.stages, kernel.ops), 0
    while k + 1 < len(kernel.axes):
        first, second = kernel.axes[k], kernel.axes[k + 1]
        if _joinable(kernel, first, second):
            size = first.size * second.size
            axis = Axis(first.name, size, reduced=first.reduced, serial=first.serial)
            axes = [*kernel.axes[:k], axis, *kernel.axes[k + 2 :]]
            kernel = substituted(kernel, {first: {}, second: {axis: 1}}, axes)
        else:
            k += 1
    return kernel


def _joinable(kernel: Kernel, first: Axis, second: Axis) -> bool:
    if (first.reduced, first.serial) != (second.reduced, second.serial):
        return False
    if any(part.name == "axis" and part.extra in (first, second) for part in kernel.expressions):
        return False
    places = (*kernel.reads, *kernel.writes)
    return all(place.step(first) == place.step(second) * second.size for place in places)


def substituted(kernel: Kernel, steps: dict[Axis, dict[Axis, int]], axes: list[Axis]) -> Kernel:
    """The kernel with axes replaced by sums of others: `steps` gives the terms of each."""

    def moved(old: Place) -> Place:
        total: dict[Axis, int] = {}
        for axis, step in old.steps:
            for new, factor in steps.get(axis, {axis: 1}).items():
                total[new] = total.get(new, 0) + step * factor
        return old._replace(steps=tuple(total.items()))

    def change(part: Scalar, args: tuple[Scalar, ...]) -> Scalar | None:
        if part.name == "axis" and part.extra in steps:
            return combined(steps[part.extra], 0)
        if part.name not in ("load", "gather"):
            return None
        return Scalar(part.name, args, part.dtype, weak=part.weak, extra=moved(part.extra))

    known = rewritten(kernel.expressions, change)

    def statement(old: Statement) -> Statement:
        if isinstance(old, Store):
            further = None if old.further is None else known[id(old.further)]
            return old._replace(place=moved(old.place), value=known[id(old.value)], further=further)
        return Accumulate(old.target, known[id(old.value)])

    stages = [
        Stage(tuple(map(statement, stage.inner)), tuple(map(statement, stage.outer)))  # type: ignore[arg-type]
        for stage in kernel.stages
    ]
    return Kernel(kernel.name, axes, stages, kernel.ops)
