"""How much memory the results of a graph take at once, if it runs op by op."""

from __future__ import annotations

from gradtape.autodiff.checkpoint import MARK
from gradtape.core.aval import nbytes
from gradtape.core.restore import AGAIN
from gradtape.graph.ir import Graph, Operand, Rewriter, Value
from gradtape.graph.passes.dead import dead
from gradtape.graph.passes.share import share
from gradtape.graph.regions import memory_owners
from gradtape.graph.run import last_uses


def peak_bytes(graph: Graph) -> int:
    """The most bytes that results take at once, each from its node to the last one that reads it.

    Inputs do not count; a result that shares memory with an operand only makes that live longer.
    """
    owners = memory_owners(graph.nodes)
    # How many names each array that is there goes by.
    names: dict[Operand, int] = {}
    ending = last_uses(graph)
    live = peak = 0
    for node in graph.nodes:
        for value in node.outputs:
            owner = owners.get(value, value)
            names[owner] = names.get(owner, 0) + 1
            live += nbytes(value) if owner is value else 0
        peak = max(peak, live)
        for value in ending[node]:
            owner = owners.get(value, value)
            names[owner] = names.get(owner, 1) - 1
            if not names[owner] and isinstance(owner, Value) and owner.node is not None:
                live -= nbytes(owner)
    return peak


def without_replays(graph: Graph) -> Graph | None:
    """The graph with what is computed again taken from the first time; None if nothing is."""
    if not any(node.op is AGAIN for node in graph.nodes):
        return None
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        if node.op is AGAIN or node.op is MARK:
            rewriter.replace(node.outputs[0], rewriter[node.operands[0]])
        else:
            rewriter.copy(node)
    return dead(share(rewriter.finish()))
