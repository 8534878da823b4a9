"""A hint for users who compile a long Python loop: each step is traced and compiled separately."""

from __future__ import annotations

import warnings
from collections import Counter

from gradtape.errors import UnrolledLoopWarning
from gradtape.graph.ir import Graph

# Graphs of fewer nodes compile in a second or two.
_MANY_NODES = 5000
# A line that made this many nodes, and this large a part of them, is in a loop; large functions
# without a loop cannot be helped.
_MANY_OF_A_LINE, _PART_OF_A_LINE = 100, 0.05


def warn_of_unrolled_loop(graph: Graph, caller: str) -> bool:
    """Warn if a graph is large because of a loop; returns whether it is.

    Args:
        graph: The traced graph.
        caller: The line that called the function.
    """
    if len(graph.nodes) < _MANY_NODES:
        return False
    lines = Counter(node.line for node in graph.nodes)
    most = max(_MANY_OF_A_LINE, _PART_OF_A_LINE * len(graph.nodes))
    # The first of them: all ops of a backward pass come from the line that starts it.
    line = next((line for line, count in lines.items() if line and count >= most), None)
    if line is None:
        return False
    filename, _, number = (caller or line).rpartition(":")
    warnings.warn_explicit(
        f"jit: {graph.name} became {len(graph.nodes)} operations, {lines[line]} of them by {line}: "
        "the Python loop there is unrolled, so that the time to compile it grows with the number "
        "of its steps. Use gt.scan, gt.fori_loop or gt.while_loop, which become native loops; or "
        "do all steps at once by operations on whole arrays, such as np.cumsum or a matrix product",
        UnrolledLoopWarning,
        filename,
        int(number),
    )
    return True
