"""What users do with graphs: print, compare, cut, run them, and get them from functions."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import (
    ArgumentError,
    ConversionError,
    DTypeError,
    GradtapeError,
    MissingNameError,
    ShapeError,
    UnsupportedError,
)
from gradtape.graph.ir import Graph, Node, Value, structural_hash
from gradtape.graph.verify import verify
from nested_graphs import CHOICE, LOOP, X, around, deep, step

ONES = np.ones(3)


def graph_of(function: Callable[..., Any], *args: Any) -> Graph:
    return gt.graph.make_graph(function)(*(args or (ONES,)))  # type: ignore[no-any-return]


# ---- text ---------------------------------------------------------------------------------------


def test_print_shows_nested_graphs_indented() -> None:
    body, other = step(), step(3.0)
    outer = around(LOOP, body=around(CHOICE, "inner", branches=(body, other)), length=4)
    lines = [line.partition("    #")[0] for line in str(outer).splitlines()]
    assert lines == [
        "graph outer(%0: float64[3])",
        "  %1: float64[3] = loop(%0, body=<inner>, length=4)",
        "    body: graph inner(%0: float64[3])",
        "      %1: float64[3] = choice(%0, branches=(<<lambda>>, <<lambda>>))",
        "        branches[0]: graph <lambda>(%0: float64[3])",
        "          %1: float64[3] = sin(%0)",
        "          %2: float64[3] = multiply(%1, 2.0)",
        "          return %2",
        "        branches[1]: graph <lambda>(%0: float64[3])",
        "          %1: float64[3] = sin(%0)",
        "          %2: float64[3] = multiply(%1, 3.0)",
        "          return %2",
        "      return %1",
        "  return %1",
    ]
    assert repr(outer) == "<graph outer: 1 inputs, 1 nodes>"


def test_a_shared_body_is_printed_once() -> None:
    assert str(around(CHOICE, branches=(step(),) * 3)).count("sin(") == 3 - 2
    assert str(deep(40, copies=2)).count("graph level") == 40


# ---- equality and hash --------------------------------------------------------------------------


def test_same_as_looks_into_nested_graphs() -> None:
    assert around(LOOP, body=step(), length=4).same_as(around(LOOP, body=step(), length=4))
    assert not around(LOOP, body=step(), length=4).same_as(around(LOOP, body=step(), length=5))
    assert not around(LOOP, body=step(), length=4).same_as(around(LOOP, body=step(3.0), length=4))
    pair = (step(), step(3.0))
    assert not around(CHOICE, branches=pair).same_as(around(CHOICE, branches=pair[::-1]))
    assert not around(CHOICE, branches=pair).same_as(around(CHOICE, branches=pair[:1]))


def test_graphs_are_equal_only_to_themselves() -> None:
    one, two = step(), step()
    assert one != two
    assert len({one, two}) == 2
    assert one.same_as(two)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x + 1.0, lambda x: x + 2.0),
        (lambda x: x + 1.0, lambda x: x + 1),
        (lambda x: x - 0.0, lambda x: x - -0.0),
        (lambda x: np.sin(x), lambda x: np.cos(x)),
        (lambda x: np.sin(x), lambda x: np.sin(np.sin(x))),
        (lambda x: (x, np.sin(x)), lambda x: (np.sin(x), x)),
        (lambda x: np.sin(x), lambda x: (np.sin(x), x)),
        (lambda x: x[1:], lambda x: x[:2]),
        (lambda x: x * ONES, lambda x: x * (2 * ONES)),
        (lambda x: (np.sin(x), np.cos(x), x)[0], lambda x: np.sin(x)),
    ],
)
def test_different_graphs_are_not_the_same(one: Any, other: Any) -> None:
    assert not graph_of(one).same_as(graph_of(other))
    assert structural_hash(graph_of(one)) != structural_hash(graph_of(other))
    assert graph_of(one).same_as(graph_of(one))
    assert structural_hash(graph_of(one)) == structural_hash(graph_of(one))


def test_settled_rules_of_different_arguments_have_different_hashes() -> None:
    # The two ops have one name; operands and parameters are made alike.
    settled = [n for n in graph_of(gt.grad(lambda x: np.sum(x**x))).nodes if "which" in n.params]
    (first, second), params = settled, settled[0].params
    assert first.op.name == second.op.name
    graphs = []
    for node in (first, second):
        inputs = [Value(X) for _ in first.operands]
        new = Node(node.op, inputs, params, [X])
        graphs.append(Graph("g", inputs, [new], new.outputs))
    assert structural_hash(graphs[0]) != structural_hash(graphs[1])
    assert not graphs[0].same_as(graphs[1])


def test_rules_of_users_are_the_same_only_if_they_are_one_object() -> None:
    def made(scale: float) -> Any:
        @gt.custom_vjp
        def scaled(x: Any) -> Any:
            return x * scale

        return scaled

    double, triple = made(2.0), made(3.0)
    one, again, other = (graph_of(lambda x, f=f: f(x)) for f in (double, double, triple))
    assert one.same_as(again)
    assert not one.same_as(other)
    assert structural_hash(one) == structural_hash(again) != structural_hash(other)


def test_only_graphs_are_compared() -> None:
    with pytest.raises(ArgumentError, match="same_as: got a list, expected a graph"):
        step().same_as([step()])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="structural_hash: got a function, expected a graph"):
        gt.graph.structural_hash(gt.sum)


def test_shared_and_deep_bodies_take_linear_time() -> None:
    # There are 2**200 paths to the innermost graph, and more levels than Python has frames.
    one, two = deep(200, copies=2), deep(200, copies=2)
    assert one.same_as(two)
    assert structural_hash(one) == structural_hash(two)
    assert not one.same_as(deep(200, 3.0, copies=2))
    assert structural_hash(one) != structural_hash(deep(200, 3.0, copies=2))
    assert structural_hash(deep(3000)) == structural_hash(deep(3000))
    assert deep(3000).same_as(deep(3000))
    assert str(deep(3000)).count("graph level") == 3000


def test_verify_looks_into_nested_graphs() -> None:
    good = step()
    bad = Graph("bad", good.inputs, good.nodes[::-1], good.outputs)
    verify(around(LOOP, body=good, length=2))
    with pytest.raises(GradtapeError, match=r"graph bad: operand 0 .* is not made before"):
        verify(around(LOOP, body=around(CHOICE, branches=(good, bad)), length=2))


# ---- subgraphs ----------------------------------------------------------------------------------


def two_inputs() -> Graph:
    """%2 = sin(%0), %3 = cos(%1), %4 = %2·%3, %5 = exp(%4)."""
    return graph_of(lambda x, y: np.exp(np.sin(x) * np.cos(y)), ONES, ONES)


def test_subgraph_from_the_inputs_that_are_needed() -> None:
    part = two_inputs().subgraph("%3")
    verify(part)
    assert (len(part.inputs), [node.op.name for node in part.nodes]) == (1, ["cos"])
    np.testing.assert_array_equal(part(2 * ONES)[0], np.cos(2 * ONES))


def test_subgraph_between_values() -> None:
    graph = two_inputs()
    product = graph.nodes[2].outputs[0]
    part = graph.subgraph([graph.outputs[0], product], [product])
    verify(part)
    assert [node.op.name for node in part.nodes] == ["exp"]
    assert part.outputs[1] is part.inputs[0]
    assert not {*graph.values()} & {*part.values()}
    np.testing.assert_array_equal(part(ONES)[0], np.exp(ONES))


def test_subgraph_takes_the_inputs_it_is_told_to_take() -> None:
    part = two_inputs().subgraph("%4", ["%1", "%2", "%0"])
    assert len(part.inputs) == 3
    assert [node.op.name for node in part.nodes] == ["cos", "multiply"]


def test_subgraph_from_one_of_several_results() -> None:
    graph = graph_of(lambda x: [part + 1.0 for part in np.split(x, 3)])
    part = graph.subgraph("%4", ["%1"])
    assert [node.op.name for node in part.nodes] == ["add"]
    both = graph.subgraph(["%1", "%2"], ["%0", "%1"])
    verify(both)
    assert both.outputs[0] is both.inputs[1]
    assert [node.op.name for node in both.nodes] == ["split"]


@pytest.mark.parametrize(
    ("outputs", "inputs", "match"),
    [
        ("%9", None, "got '%9' among outputs, expected values .* from '%0' to '%5'"),
        ("sin", None, "got 'sin' among outputs"),
        ([3], None, "got an int among outputs"),
        ("%5", "%7", "got '%7' among inputs"),
        ("%5", "%2", "do not suffice; the outputs also depend on %1,"),
        ("%5", [], "also depend on %0, %1,"),
        ("%5", ["%4", "%4"], "the same value twice"),
    ],
)
def test_subgraph_refuses(outputs: Any, inputs: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        two_inputs().subgraph(outputs, inputs)


def test_subgraph_refuses_values_of_another_graph() -> None:
    with pytest.raises(ArgumentError, match="got a Value among outputs"):
        two_inputs().subgraph(two_inputs().outputs[0])  # type: ignore[arg-type]


def test_subgraph_of_a_long_chain() -> None:
    def chain(x: Any) -> Any:
        for _ in range(5000):
            x = x + 1.0
        return x

    assert len(graph_of(chain).subgraph("%3000").nodes) == 3000


# ---- functions to graphs ------------------------------------------------------------------------


def test_make_graph_takes_shapes_in_place_of_arrays() -> None:
    like = SimpleNamespace(shape=(2, 3), dtype="float32")
    graph = graph_of(lambda x, y: x @ y, like, np.ones(3, np.float32))
    assert repr(graph.outputs[0].aval) == "float32[2]"


def test_make_graph_of_containers_keywords_and_options() -> None:
    def function(pair: Any, how: str, *, z: Any, a: Any) -> Any:
        return {"out": pair["x"] - pair["y"] if how == "minus" else None, "za": z - a}

    graph = gt.graph.make_graph(function)({"x": ONES, "y": ONES}, "minus", z=2.0, a=1.0)
    assert graph.name == "function"
    assert len(graph.inputs) == 4
    out, difference = graph(3 * ONES, ONES, 10.0, 4.0)  # a comes before z
    np.testing.assert_array_equal(out, 2 * ONES)
    assert difference == 4.0 - 10.0
    assert type(difference) is float


def test_captured_arrays_are_copied_into_the_graph() -> None:
    weights, shift = np.arange(3.0), gt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    graph = graph_of(lambda x: x * weights + shift)
    verify(graph)
    expected = graph(ONES)[0]
    np.testing.assert_array_equal(expected, [1.0, 3.0, 5.0])
    weights[:] = 100.0
    np.testing.assert_array_equal(graph(ONES)[0], expected)
    with pytest.raises(ValueError, match="read-only"):
        graph.nodes[0].params["value"][0] = 1.0


def test_make_graph_refuses() -> None:
    with pytest.raises(UnsupportedError, match="draws random numbers"):
        graph_of(lambda x: x + gt.random.normal(shape=3))
    with pytest.raises(ConversionError):
        graph_of(lambda x: x if x[0] > 0 else -x)
    with pytest.raises(ArgumentError, match="is no constant"):
        gt.jit(lambda y: graph_of(lambda x: x * y)(ONES))(ONES)
    with pytest.raises(ArgumentError, match="is no constant"):
        gt.vmap(lambda y: graph_of(lambda x: x * y)(ONES))(np.ones((2, 3)))
    with pytest.raises(DTypeError, match="expected sizes and a dtype"):
        graph_of(np.sin, SimpleNamespace(shape=("n",), dtype="float32"))
    with pytest.raises(DTypeError, match="expected sizes and a dtype"):
        graph_of(np.sin, SimpleNamespace(shape=(3,), dtype="floaty"))


# ---- running ------------------------------------------------------------------------------------


def test_a_graph_runs_like_its_function() -> None:
    def function(x: Any, n: Any) -> Any:
        return np.sum(np.tanh(x) * n), x * n

    graph, x = graph_of(function, ONES, 2), np.arange(3.0)
    for got, expected in zip(graph(x, 3), function(x, 3), strict=True):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(
        gt.grad(lambda x: graph(x, 3)[0])(x), gt.grad(lambda x: function(x, 3)[0])(x)
    )
    np.testing.assert_allclose(gt.jit(graph)(x, 3)[0], function(x, 3)[0])
    assert gt.vmap(lambda x: graph(x, 3)[1])(np.ones((5, 3))).shape == (5, 3)
    hessian = gt.hessian(lambda x: graph(x, 3)[0])(x)
    np.testing.assert_allclose(hessian, gt.hessian(lambda x: function(x, 3)[0])(x))
    assert isinstance(graph(gt.tensor(x), 3)[0], gt.Tensor)


@pytest.mark.parametrize(
    ("inputs", "error", "match"),
    [
        ((ONES,), ArgumentError, "got 1 values for the graph <lambda>, expected 2"),
        ((np.ones(4), 2), ShapeError, r"input %0 has shape \(4,\), expected \(3,\)"),
        ((np.ones(3, np.float32), 2), DTypeError, r"input %0 is float32, expected float64\[3\]"),
        ((ONES, 2.5), DTypeError, r"input %1 is a float, expected int64\[\] weak"),
        (([1.0, 2.0, 3.0], 2), DTypeError, "input %0 is a list"),
        ((ONES, None), DTypeError, "input %1 is a NoneType"),
    ],
)
def test_evaluate_checks_its_inputs(inputs: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        graph_of(lambda x, n: x * n, ONES, 2)(*inputs)


def test_numbers_are_converted_to_the_dtype_of_the_input() -> None:
    graph = graph_of(lambda x, y: x * y, np.ones(3, np.float32), np.float32(1.0))
    assert graph(np.ones(3, np.float32), 2)[0].dtype == np.float32


def test_missing_names_of_the_namespace() -> None:
    with pytest.raises(MissingNameError, match=r"gradtape\.graph' has no attribute 'nope'"):
        _ = gt.graph.nope
    with pytest.raises(MissingNameError, match=r"did you mean gt\.graph\.evaluate"):
        _ = gt.graph.evaluat
    assert {*gt.graph.__all__} <= {*dir(gt.graph)}
