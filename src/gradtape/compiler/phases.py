"""When the nodes of a graph run: phase p is the native nodes that run before the p-th eager ones.

Nodes are in the phase that needs them, unless holding their operands until then takes more memory
than holding their results: a backward pass needs much that could be computed in the forward pass.
What is computed from 16-bit floats in few steps is computed in each phase that reads it, rather
than passed on in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gradtape.compiler.classify import cost, is_inlinable
from gradtape.core.aval import nbytes
from gradtape.core.promotion import is_half
from gradtape.graph.ir import Graph, Node, Operand, Rewriter, Value

Obstacle = Callable[[Node], str | None]
Reasons = Mapping[Node, str | None]
Phases = dict[Node, int]

# The most instructions to compute a value again, and how much smaller other operands have to be.
_AGAIN, _SMALLER = 80, 8


class _Made(NamedTuple):
    """How a value is made from 16-bit floats: the instructions, and the values it comes from."""

    instructions: int
    bases: frozenset[Value]


def phases_of(graph: Graph, reasons: Reasons) -> Phases:
    """The phase of each node, given the reasons why some are eager."""
    phases = _earliest(graph, reasons)
    if any(reasons.values()):
        _move_back(graph, phases, reasons, _light_values(graph, reasons))
    return phases


def with_own_copies(graph: Graph, obstacle: Obstacle) -> Graph:
    """The graph with what is made from 16-bit floats computed in every phase that reads it."""
    if not any(is_half(value.dtype) for node in graph.nodes for value in node.operands):
        return graph
    reasons = {node: obstacle(node) for node in graph.nodes}
    light = _light_values(graph, reasons)
    if not light or not any(reasons.values()):
        return graph
    phases = _earliest(graph, reasons)
    _move_back(graph, phases, reasons, light)
    rewriter = Rewriter(graph)
    copies: dict[tuple[Operand, int], Operand] = {}

    def own(operand: Operand, phase: int) -> Operand:
        """An operand as a phase reads it."""
        if operand not in light:
            return rewriter[operand]
        key = operand, phase
        if key not in copies:
            assert isinstance(operand, Value)
            assert operand.node is not None
            operands = [own(x, phase) for x in operand.node.operands]
            copies[key] = rewriter.copy(operand.node, operands).outputs[0]
        return copies[key]

    for node in graph.nodes:
        if light.keys().isdisjoint(node.outputs):
            rewriter.copy(node, [own(operand, phases[node]) for operand in node.operands])
    return rewriter.finish()


def _light_values(graph: Graph, reasons: Reasons) -> dict[Operand, _Made]:
    """The values that are computed from 16-bit floats in few steps."""
    found: dict[Operand, _Made] = {}
    for node in graph.nodes:
        made = None if reasons[node] or node.op.effect is not None else _made(node, found)
        if made is not None and node.outputs[0] not in graph.outputs:
            found[node.outputs[0]] = made
    return found


def _made(node: Node, light: Mapping[Operand, _Made]) -> _Made | None:
    if len(node.outputs) != 1 or not is_inlinable(node) or is_half(node.outputs[0].dtype):
        return None
    size = math.prod(node.outputs[0].shape)
    instructions, bases = cost(node).instructions, set[Value]()
    for x in node.operands:
        if x in light:
            instructions += light[x].instructions
            bases |= light[x].bases
        elif isinstance(x, Value):
            if not is_half(x.dtype) and _SMALLER * math.prod(x.shape) > size:
                return None
            bases.add(x)
    if instructions > _AGAIN or not any(is_half(base.dtype) for base in bases):
        return None
    return _Made(instructions, frozenset(bases))


def _earliest(graph: Graph, reasons: Reasons) -> Phases:
    """The first phase in which the operands of each node are there."""
    there: dict[Value, int] = dict.fromkeys(graph.inputs, 0)
    phases: Phases = {}
    for node in graph.nodes:
        operands = [operand for operand in node.operands if isinstance(operand, Value)]
        phases[node] = max((there[operand] for operand in operands), default=0)
        for value in node.outputs:
            there[value] = phases[node] + (reasons[node] is not None)
    return phases


def _move_back(
    graph: Graph, phases: Phases, reasons: Reasons, light: Mapping[Operand, _Made]
) -> None:
    """Move native nodes to the phase that needs them, unless that takes more memory."""
    users, kept = graph.users(), {*graph.inputs, *graph.outputs}
    for node in reversed(graph.nodes):
        if reasons[node] is not None or node.has_effect() or not kept.isdisjoint(node.outputs):
            continue
        readers = [phases[user] for value in node.outputs for user in users.get(value, ())]
        latest = min(readers, default=phases[node])
        if light.keys().isdisjoint(node.outputs):
            # What would have to be held for longer, and until when it is needed in any case.
            ends = {
                base: _last_read(base, node, users, phases, light)
                for base in _bases(node, light)
                if base not in kept
            }
            held = [base for base, end in ends.items() if end < latest]
            if sum(map(nbytes, held)) > sum(map(nbytes, node.outputs)):
                latest = min(ends[base] for base in held)
        phases[node] = max(phases[node], latest)


def _bases(node: Node, light: Mapping[Operand, _Made]) -> dict[Value, None]:
    """The values that a node needs, other than those computed again."""
    found: dict[Value, None] = {}
    for x in node.operands:
        if x in light:
            found.update(dict.fromkeys(light[x].bases))
        elif isinstance(x, Value):
            found[x] = None
    return found


def _last_read(
    value: Value,
    besides: Node,
    users: Mapping[Value, list[Node]],
    phases: Phases,
    light: Mapping[Operand, _Made],
) -> int:
    """The last phase in which a value is read by another node than one."""
    last, pending, seen = 0, [value], {value}
    while pending:
        for user in users.get(pending.pop(), ()):
            if user is besides:
                continue
            if light.keys().isdisjoint(user.outputs):
                last = max(last, phases[user])
            elif user.outputs[0] not in seen:
                seen.add(user.outputs[0])
                pending.append(user.outputs[0])
    return last
