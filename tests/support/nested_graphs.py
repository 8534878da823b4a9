"""Graphs with graphs in their parameters, as control flow has them."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.core.aval import Aval
from gradtape.core.op import Op
from gradtape.graph.ir import Graph, Node, Value

X = Aval((3,), np.dtype(np.float64))


def step(scale: float = 2.0) -> Graph:
    """A body: sin(x) times a number."""
    return gt.graph.make_graph(lambda x: np.sin(x) * scale)(np.ones(3))


# Runs its body a number of times.
LOOP = Op("loop", lambda _xp, x, body, length: x, lambda x, **_params: x)
# Runs one of its branches.
CHOICE = Op("choice", lambda _xp, x, branches: x, lambda x, **_params: x)


def around(op: Op, name: str = "outer", **params: Any) -> Graph:
    """A graph whose only node has graphs in its parameters."""
    x = Value(X)
    node = Node(op, [x], params, [X], "/home/user/model.py:5")
    return Graph(name, [x], [node], node.outputs)


def deep(levels: int, scale: float = 2.0, copies: int = 1) -> Graph:
    """Loops inside of loops; with several copies of each, there are exponentially many paths."""
    graph = step(scale)
    for _ in range(levels):
        graph = around(CHOICE, "level", branches=(graph,) * copies)
    return graph
