"""Estimates of the work that steps of a plan do, from their loops and buffers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gradtape.compiler.array_loop import ArrayLoop
from gradtape.compiler.classify import cost_of
from gradtape.compiler.element_program import ElementProgram
from gradtape.compiler.kernel import Accumulate, Buffer, Kernel, Statement, parts_of
from gradtape.compiler.library_call import LibraryCall
from gradtape.compiler.plan import Step
from gradtape.compiler.product import Product


def flops_of(step: Step) -> int:
    """Arithmetic instructions on elements; an elementary function counts as about 20."""
    if isinstance(step, Product | LibraryCall):
        return step.flops
    if isinstance(step, ElementProgram):
        return cost_of(step.expressions) * step.longest
    if isinstance(step, ArrayLoop):
        return step.steps * sum(flops_of(inner) for plan in step.plans for inner in plan.steps)
    return _flops_of_kernel(step)


def _flops_of_kernel(kernel: Kernel) -> int:
    outer_points = math.prod(axis.size for axis in kernel.outer)
    total = 0
    for stage in kernel.stages:
        combined = sum(isinstance(statement, Accumulate) for statement in stage.inner)
        total += kernel.points * (_cost(stage.inner) + combined)
        total += outer_points * _cost(stage.outer)
    return total


def _cost(statements: Iterable[Statement]) -> int:
    """Instructions for one point, common parts counted once."""
    return cost_of(parts_of(statements))


def traffic_of(step: Step) -> tuple[int, int]:
    """The bytes that a step reads and writes, each array once."""
    if isinstance(step, LibraryCall):
        return _size(step.buffers), _size(step.buffers)
    if isinstance(step, Product):
        return sum(b.nbytes for b in step.buffers if b is not step.c), step.c.nbytes
    if isinstance(step, ElementProgram | ArrayLoop):
        written = {b for b in step.buffers if b.kind != "input"}
        return _size(set(step.buffers) - written), _size(written)
    read, written = ({place.buffer for place in places} for places in (step.reads, step.writes))
    return _size(read), _size(written)


def _size(buffers: Iterable[Buffer]) -> int:
    # Scratch memory stays in the cache.
    return sum(buffer.nbytes for buffer in buffers if buffer.kind != "scratch")


# ---- numbers as text ----------------------------------------------------------------------------


def scaled(number: float, units: Sequence[str]) -> str:
    """Three digits and a unit; each unit is a thousand of the one before it."""
    left = list(units)
    while number >= 999.5 and len(left) > 1:
        number /= 1000
        del left[0]
    return f"{number:.3g} {left[0]}"


def in_bytes(number: int) -> str:
    """A number of bytes as text."""
    return scaled(number, ("B", "kB", "MB", "GB", "TB"))


def in_flops(number: int) -> str:
    """A number of operations as text."""
    return scaled(number, ("flop", "kflop", "Mflop", "Gflop", "Tflop"))
