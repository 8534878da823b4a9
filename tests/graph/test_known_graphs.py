"""Ops that come with their graph: compiled functions contain it, whatever is in it."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from builds import NATIVE
from gradtape.core.aval import Aval
from gradtape.core.call import call
from gradtape.core.lowering import Composite
from gradtape.core.op import Op
from gradtape.graph.inline import inlined
from gradtape.graph.run import replay
from gradtape.graph.trace import trace

VECTOR = Aval((3,), np.dtype(np.float64))


def op_of(function: Any, name: str) -> Op:
    """An op that is a traced function, and nothing else."""
    graph = trace(function, [VECTOR], name).graph

    def refuses(*_operands: Any) -> Any:
        raise AssertionError("the graph is known: nothing is to be traced again")

    return Op(
        name,
        lambda xp, x: tuple(replay(graph, [x])),
        lambda x: (x,),
        kind="custom",
        outputs=None,
        lower=Composite(refuses, graph),
    )


def halved(x: Any) -> Any:
    """A loop with a derivative and a composite op, `mean`, in its body."""

    def step(state: Any) -> Any:
        _, slope = gt.jvp(lambda x: x * np.sin(x) / 4, (state,), (state,))
        return slope - np.mean(state) / 8

    return gt.while_loop(lambda state: np.sum(state * state) > 1e-3, step, x)


def test_a_graph_with_loops_is_compiled() -> None:
    op = op_of(halved, "halved")
    compiled = gt.jit(lambda x: 2.0 * call(op, (x,), {})[0])
    x = np.array([1.0, 0.5, -0.2])
    np.testing.assert_allclose(compiled(x), 2.0 * halved(x), rtol=1e-12)
    assert compiled.explain(x).eager == [] or not NATIVE


def test_graphs_within_graphs() -> None:
    inner = op_of(np.tanh, "inner")
    outer = op_of(lambda x: call(inner, (x,), {})[0] + 1.0, "outer")
    graph = trace(lambda x: call(outer, (x,), {})[0] * x, [VECTOR]).graph
    assert [node.op.name for node in graph.nodes] == ["outer", "multiply"]
    assert [node.op.name for node in inlined(graph).nodes] == ["tanh", "add", "multiply"]
    assert inlined(inlined(graph)) is not graph
    x = np.array([1.0, 0.5, -0.2])
    np.testing.assert_allclose(replay(inlined(graph), [x])[0], (np.tanh(x) + 1) * x)
