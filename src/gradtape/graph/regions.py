"""What a backward pass keeps of the checkpointed functions in a graph, and whose memory values see.

A node knows the policy of the checkpointed function that it was called in, its `region`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradtape.graph.ir import Node, Operand, Value


def region_of(operand: Operand) -> Any:
    """The checkpointed function that a value was computed in; None if there is none."""
    node = operand.node if isinstance(operand, Value) else None
    return None if node is None else node.region


def leaves_region(operand: Operand, reader: Node) -> bool:
    """Whether a value of a checkpointed function is used in another one, or in none."""
    own = region_of(operand)
    return own is not None and (reader.region is None or own.block != reader.region.block)


def is_chosen(node: Node) -> bool:
    """Whether the policy of a node's checkpointed function keeps its results all the same."""
    avals = tuple([value.aval for value in node.outputs])
    result = avals[0] if node.op.outputs == 1 else avals
    return bool(node.region.chooses(node.op.name, result))


def memory_owners(nodes: Iterable[Node]) -> dict[Operand, Operand]:
    """For values that share memory with another one, the value that the memory was made for."""
    owners: dict[Operand, Operand] = {}
    for node in nodes:
        if node.op.aliases:
            whole = node.operands[0]
            owners.update(dict.fromkeys(node.outputs, owners.get(whole, whole)))
    return owners
