"""Loop nests that go through elements in order: cumulative sums, and writes to computed places.

They have no loop that other ops could join, but their operands are computed in their loops.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

from gradtape.compiler.build import collapsed
from gradtape.compiler.element_expressions import Puller, flat_place, load, loaded, place
from gradtape.compiler.kernel import (
    Accumulate,
    Accumulator,
    Axis,
    Buffer,
    Kernel,
    Stage,
    Statement,
    Store,
    walk,
)
from gradtape.core.lowering import Scan, Scatter
from gradtape.core.promotion import INT64
from gradtape.core.scalar import Scalar, add, constant, convert, multiply, scalar, where
from gradtape.graph.ir import Node, Value

_COMBINE = {"add": add, "multiply": multiply}


def serial_kernels(node: Node, buffers: dict[Value, Buffer], name: str) -> list[Kernel]:
    """The loop nests of a node that is lowered by `Scan` or `Scatter`.

    Args:
        node: The node.
        buffers: The buffers of the values that are in memory.
        name: The name of the first; the names of others begin with it.
    """
    out, puller = buffers[node.outputs[0]], Puller(functools.partial(loaded, buffers))
    if isinstance(node.op.lower, Scan):
        return [_scan(node, node.op.lower, puller, out, name)]
    assert isinstance(node.op.lower, Scatter)
    return [
        _start(node, node.op.lower, puller, out, name),
        _put(node, node.op.lower, puller, out, f"{name}_put"),
    ]


def _kernel(name: str, axes: Sequence[Axis], statements: Sequence[Statement], node: Node) -> Kernel:
    return collapsed(Kernel(name, axes, [Stage(tuple(statements), ())], [node.op.name]))


def _scan(node: Node, lowering: Scan, puller: Puller, out: Buffer, name: str) -> Kernel:
    """out[k] = out[k − 1], times a factor if there are any, combined with x[k]; out[0] = x[0]."""
    along = node.params["axis"]
    # Along the last axis the result so far is kept in a register, otherwise in the result itself,
    # so that the last axis can be done in vectors.
    last = out.shape[along] > 1 and all(size == 1 for size in out.shape[along + 1 :])
    axes = [
        Axis(f"i{n}", size, reduced=last and n == along, serial=n == along)
        for n, size in enumerate(out.shape)
    ]
    step = axes[along].index
    index, before = ([axis.index for axis in axes] for _ in range(2))
    before[along] = step - 1
    if node.params.get("reverse", False):
        end = out.shape[along] - 1
        index[along], before[along] = end - step, end + 1 - step
    element, *factors = (
        convert(puller.element(operand, tuple(index)), out.dtype) for operand in node.operands
    )
    at, later = place(out, out.shape, tuple(index)), step > 0
    if last and not factors:
        so_far = _accumulator(lowering.combine, out)
        return _kernel(name, axes, [Accumulate(so_far, element), Store(at, so_far.running)], node)
    combine = _COMBINE[lowering.combine]
    if last:
        so_far = _accumulator("replace", out)
        factor = where(later, factors[0], constant(0, out.dtype))
        value = combine(so_far.running * factor, element)
        return _kernel(name, axes, [Accumulate(so_far, value), Store(at, value)], node)
    value = element
    if out.shape[along] > 1:
        known = load(out, out.shape, tuple(before), later, weak=False)
        value = where(later, combine(math.prod(factors, start=known), element), element)
    return _kernel(name, axes, [Store(at, value)], node)


def _accumulator(combine: str, out: Buffer) -> Accumulator:
    """The accumulator for the running result along the last axis."""
    so_far = Accumulator("acc0", combine, out.dtype)
    if combine in ("add", "replace") and out.dtype.kind == "f":
        so_far.start = -0.0  # 0 would lose the sign of a first element that is -0
    return so_far


def _start(node: Node, lowering: Scatter, puller: Puller, out: Buffer, name: str) -> Kernel:
    """The kernel that fills the result before anything is written to it."""
    axes = [Axis(f"i{n}", size) for n, size in enumerate(out.shape)]
    index = tuple(axis.index for axis in axes)
    value: Any = constant(0, out.dtype)
    if lowering.start is not None:
        value = lowering.start(index, *puller.readers(node), **node.params)
    store = Store(place(out, out.shape, index), convert(value, out.dtype))
    return _kernel(name, axes, [store], node)


def _put(node: Node, lowering: Scatter, puller: Puller, out: Buffer, name: str) -> Kernel:
    """The kernel that writes elements to their places."""
    serial, free = lowering.sizes(*(operand.aval for operand in node.operands), **node.params)
    axes = [Axis(f"i{n}", size, serial=n < len(serial)) for n, size in enumerate((*serial, *free))]
    point = tuple(axis.index for axis in axes)
    index, value = lowering.put(point, *puller.readers(node), **node.params)
    # Free axes that lead the result are outermost, so it is done part by part.
    free_ones = {id(axis.index): axis for axis in axes if not axis.serial}
    leading = [*itertools.takewhile(bool, (free_ones.get(id(i)) for i in index))]
    axes = [*filter(None, leading), *(axis for axis in axes if axis not in leading)]
    at = tuple(convert(scalar(i), INT64) for i in index)
    fixed, computed = flat_place(out, out.shape, at)
    store = Store(fixed, convert(value, out.dtype), computed, lowering.adds)
    loops = [axis for axis in axes if axis.size > 1]
    if loops:
        last = loops[-1]
        # Vectors need adjacent elements; and where nothing is done in order, the last vector
        # may do elements again, which must not be added twice.
        beside = fixed.step(last) == 1 and not (
            computed is not None and _moves_along(computed, last)
        )
        to_others = lowering.adds and lowering.start is not None
        in_order = any(axis.serial for axis in loops)
        last.serial |= not beside or (to_others and not in_order)
    return _kernel(name, axes, [store], node)


def _moves_along(expression: Scalar, axis: Axis) -> bool:
    """Whether an expression may change from one step of an axis to the next."""
    return any(
        part.extra is axis
        if part.name == "axis"
        else part.name in ("load", "gather") and part.extra.step(axis) != 0
        for part in walk(expression, set())
    )
