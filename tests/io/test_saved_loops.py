"""Loops and branches: saved, loaded, estimated; files in which they do not fit are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.aval import Aval
from gradtape.errors import FileFormatError, GradtapeError
from gradtape.graph.ir import Graph, Node, Value, structural_hash
from gradtape.graph.verify import verify
from gradtape.io.graph_files import from_bytes, to_bytes

ONES = np.ones(3)
TABLE = np.arange(12.0).reshape(4, 3)


def scanned(x: Any) -> Any:
    last, ys = gt.scan(lambda c, row: (np.sin(c) * row + c, c * 2.0), x, TABLE)
    return np.sum(last) + np.sum(ys)


def counted(x: Any) -> Any:
    return np.sum(gt.fori_loop(0, 5, lambda i, c: c + i * np.tanh(c), x))


def whiled(x: Any) -> Any:
    return np.sum(gt.while_loop(lambda c: np.sum(c) < 50.0, lambda c: c * TABLE[1] + x, x))


def switched(x: Any) -> Any:
    index = np.sum(x).astype(int) % 3
    return np.sum(gt.switch(index, [np.sin, lambda x: x * TABLE[0], lambda x: x + 1.0], x))


def nested(x: Any) -> Any:
    return gt.cond(np.sum(x) > 0.0, scanned, whiled, x) + gt.fori_loop(0, 2, lambda _, c: c, 0.5)


PROGRAMS = [scanned, counted, whiled, switched, nested]
TRANSFORMS: list[Callable[..., Any]] = [
    lambda f: f,
    gt.grad,
    lambda f: lambda x: gt.jvp(f, (x,), (x,)),
    lambda f: lambda x: gt.vmap(f)(np.stack([x, 2 * x])),
    lambda f: gt.grad(lambda x: np.sum(gt.grad(f)(x) ** 2)),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("transform", TRANSFORMS, ids=["value", "grad", "jvp", "vmap", "second"])
def test_saved_and_loaded(program: Callable[..., Any], transform: Callable[..., Any]) -> None:
    graph = gt.graph.make_graph(transform(program))(ONES)
    verify(graph)
    loaded = from_bytes(to_bytes(graph))
    assert loaded.same_as(graph)
    assert structural_hash(loaded) == structural_hash(graph)
    assert str(loaded) == str(graph)
    for one, other in zip(loaded(ONES), graph(ONES), strict=True):
        np.testing.assert_array_equal(one, other)
    assert str(gt.graph.cost(graph))
    assert gt.graph.to_dot(graph).count("subgraph") == len(graph.nested()) - 1


def test_a_loaded_loop_is_compiled() -> None:
    loaded = from_bytes(to_bytes(gt.graph.make_graph(gt.grad(scanned))(ONES)))
    np.testing.assert_allclose(gt.jit(loaded)(ONES)[0], gt.grad(scanned)(ONES))


def test_costs_of_loops() -> None:
    def body(x: Any) -> Any:
        return x + np.tanh(x)

    one = gt.graph.cost(gt.graph.make_graph(body)(ONES)).flops
    loop = gt.graph.make_graph(lambda x: gt.fori_loop(0, 9, lambda _, c: body(c), x))(ONES)
    assert gt.graph.cost(loop).flops == 9 * one
    (open_loop,) = gt.graph.cost(gt.graph.make_graph(whiled)(ONES)).open_loops
    assert open_loop.startswith("while at test_saved_loops.py:")


# ---- loops that do not fit ----------------------------------------------------------------------


def changed(function: Callable[..., Any], change: Callable[[Node], tuple[Any, Any]]) -> Graph:
    """The graph of a function, with other operands and parameters of its loop or branch."""
    graph = gt.graph.make_graph(function)(ONES)
    nodes, new = [], {}
    for node in graph.nodes:
        operands: Any = [new.get(x, x) for x in node.operands]
        params: Any = node.params
        if node.op.kind == "control":
            operands, params = change(Node(node.op, operands, params, [], node.line))
        made = Node(node.op, operands, params, [v.aval for v in node.outputs], node.line)
        new.update(zip(node.outputs, made.outputs, strict=True))
        nodes.append(made)
    outputs = [new.get(output, output) for output in graph.outputs]  # type: ignore[arg-type]
    return Graph("changed", graph.inputs, nodes, outputs)


def with_params(**params: Any) -> Callable[[Node], tuple[Any, Any]]:
    return lambda node: (node.operands, node.params | params)


def summed(x: Any) -> Any:
    """A scan whose results have the same shape for any length."""
    return gt.scan(lambda c, row: (c + row, None), x, TABLE)[0]


def wider(graph: Graph) -> Graph:
    """The graph with inputs of 1000 elements: native code would read past what it is given."""
    inputs = [Value(Aval((1000,), np.dtype(float))) for _ in graph.inputs]
    return Graph(graph.name, inputs, [], inputs[: len(graph.outputs)])


WRONG: list[tuple[Any, Any, str]] = [
    (summed, with_params(length=100), "goes through float64.4, 3., expected 100 elements"),
    (scanned, with_params(length=-1), "negative|shape rule"),
    (scanned, with_params(carries=2), "shape rule|the inputs of the body are"),
    (scanned, with_params(consts=1), "shape rule|the inputs of the body are"),
    (scanned, with_params(counted=True), "shape rule|the inputs of the body are"),
    (scanned, with_params(body=3), "shape rule|its parameters are not those of a scan"),
    (scanned, lambda n: (n.operands, n.params | {"body": wider(n.params["body"])}), "shape rule"),
    (scanned, lambda n: (n.operands[:1], n.params), "the inputs of the body are"),
    (scanned, lambda n: (n.operands[::-1], n.params), "expected 4 elements|carry"),
    (whiled, lambda n: (n.operands, n.params | {"cond": wider(n.params["cond"])}), "condition"),
    (whiled, lambda n: (n.operands, n.params | {"body": n.params["cond"]}), "the carry are"),
    (whiled, with_params(consts=-1), "constants is wrong|shape rule"),
    (whiled, lambda n: (n.operands[:-1], n.params), "the inputs of the body are"),
    (switched, lambda n: (n.operands, {"branches": ()}), "shape rule|parameters are not"),
    (
        switched,
        lambda n: (
            n.operands,
            {"branches": (n.params["branches"][0], wider(n.params["branches"][1]))},
        ),
        "the inputs of a branch are float64.1000.",
    ),
    (switched, lambda n: ((n.operands[1], *n.operands[1:]), n.params), "expected an integer"),
]


@pytest.mark.parametrize(("function", "change", "match"), WRONG)
def test_loops_that_do_not_fit_are_refused(function: Any, change: Any, match: str) -> None:
    graph = changed(function, change)
    with pytest.raises(GradtapeError, match=match):
        verify(graph)
    with pytest.raises(FileFormatError, match=match):
        from_bytes(to_bytes(graph))


def test_steps_back_that_do_not_fit_are_refused() -> None:
    back = gt.grad(whiled)
    verify(changed(back, lambda node: (node.operands, node.params)))
    for bad in ({"active": (5,)}, {"chosen": (50,)}, {"save": "all", "consts": 0}):
        graph = changed(
            back,
            lambda n, bad=bad: (n.operands, n.params | bad if "pull" in n.params else n.params),
        )
        with pytest.raises(FileFormatError):
            from_bytes(to_bytes(graph))
