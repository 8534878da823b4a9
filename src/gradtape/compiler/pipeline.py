"""The passes of the compiler, in order."""

from __future__ import annotations

from collections.abc import Callable

from gradtape.graph.inline import expand
from gradtape.graph.ir import Graph
from gradtape.graph.passes.dead import dead
from gradtape.graph.passes.hopeful import hopeful
from gradtape.graph.passes.share import share
from gradtape.graph.passes.simplify import simplify
from gradtape.graph.verify import verify

Pass = Callable[[Graph], Graph]

PASSES: tuple[Pass, ...] = (dead, expand, share, simplify, share, dead)


def optimized(graph: Graph, *, debug: bool = False, settling: bool = True) -> Graph:
    """The graph after all passes, verified after each of them in debug mode.

    With `settling=False` it has no ops that settle 0·∞, but watches on values that depend on them.
    """
    if debug:
        verify(graph)
    for run in PASSES if settling else (hopeful, *PASSES):
        graph = run(graph)
        if debug:
            verify(graph)
    return graph
