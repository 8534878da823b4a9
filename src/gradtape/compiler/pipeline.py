"""The passes of the compiler, in order."""

from __future__ import annotations

from collections.abc import Callable

from gradtape.graph.inline import expand, inlined
from gradtape.graph.ir import Graph, Rewriter, with_graphs
from gradtape.graph.passes.dead import dead
from gradtape.graph.passes.halves import halved, halves
from gradtape.graph.passes.hopeful import hopeful
from gradtape.graph.passes.loops import loops
from gradtape.graph.passes.share import share
from gradtape.graph.passes.simplify import simplify
from gradtape.graph.verify import verify

Pass = Callable[[Graph], Graph]

PASSES: tuple[Pass, ...] = (dead, halves, expand, halved, share, simplify, share, loops, dead)


def optimized(graph: Graph, *, debug: bool = False, settling: bool = True) -> Graph:
    """The graph after all passes, verified after each of them in debug mode.

    With `settling=False` it has no ops that settle 0·∞, but watches on values that depend on them.
    """
    if debug:
        verify(graph)
    graph = _with_optimized_bodies(inlined(graph), debug, settling)
    for run in PASSES if settling else (hopeful, *PASSES):
        graph = run(graph)
        if debug:
            verify(graph)
    return graph


def _with_optimized_bodies(graph: Graph, debug: bool, settling: bool) -> Graph:
    """The graph with the passes run over the graphs of its loops and branches."""
    if not any(node.op.kind == "control" for node in graph.nodes):
        return graph
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        new = rewriter.copy(node)
        if node.op.kind == "control":
            new.params = with_graphs(
                node.params, lambda body: optimized(body, debug=debug, settling=settling)
            )
    return rewriter.finish()
