"""The graph: building and rebuilding, verifying, printing, hashing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradtape as gt
from gradtape.core.aval import Aval, aval_of
from gradtape.core.op import registry
from gradtape.errors import GradtapeError
from gradtape.graph.ir import (
    Graph,
    Literal,
    Node,
    Rewriter,
    Value,
    aval_key,
    param_key,
    structural_hash,
)
from gradtape.graph.text import show
from gradtape.graph.verify import verify
from graphcall import assert_same_bits, graph_of, run_nodes

F64 = np.dtype(np.float64)
X = np.arange(6.0).reshape(2, 3)


def small() -> tuple[Graph, Value, Node, Node]:
    """sin(x) + 2 of a float64[3]."""
    x = Value(Aval((3,), F64))
    sine = Node(registry["sin"], [x], {}, [x.aval], "/home/user/model.py:7")
    added = Node(registry["add"], [sine.outputs[0], Literal(2.0)], {}, [x.aval], "model.py:8")
    return Graph("small", [x], [sine, added], added.outputs), x, sine, added


# ---- structure ----------------------------------------------------------------------------------


def test_users_counts_every_read() -> None:
    graph = graph_of(lambda x: np.sin(x) * np.sin(x) + x, X)
    product = next(node for node in graph.nodes if node.op.name == "multiply")
    users = graph.users()
    assert users[graph.inputs[0]].count(graph.nodes[-1]) == 1
    assert [users[value] for value in product.operands] == [[product], [product]]
    doubled = graph_of(lambda x: x + x, X)
    assert doubled.users()[doubled.inputs[0]] == [doubled.nodes[0]] * 2


def test_values_know_their_node_and_place() -> None:
    graph = graph_of(lambda x: np.split(x, 3, axis=1), X)
    (node,) = graph.nodes
    assert [value.index for value in node.outputs] == [0, 1, 2]
    assert all(value.node is node and value.shape == (2, 1) for value in node.outputs)
    assert graph.inputs[0].node is None


def test_rewriter_rebuilds_without_touching_the_old_graph() -> None:
    graph, _, sine, _ = small()
    before = show(graph)
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        if node is sine:
            (operand,) = rewriter.operands(node)
            cosine = rewriter.add(registry["cos"], [operand], {}, node.line)
            rewriter.replace(node.outputs[0], cosine)
        else:
            rewriter.copy(node)
    new = rewriter.finish()
    verify(new)
    assert show(graph) == before
    assert_same_bits(run_nodes(new, [X[0]]), [np.cos(X[0]) + 2])
    assert not {*graph.inputs, *graph.outputs} & {*new.inputs, *new.outputs}


def test_rewriter_can_give_other_outputs() -> None:
    graph, *_ = small()
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        rewriter.copy(node)
    new = rewriter.finish([rewriter[graph.inputs[0]]])
    assert [node.op.name for node in new.nodes] == ["sin", "add"]
    assert new.outputs == new.inputs


# ---- keys and hashes ----------------------------------------------------------------------------


def test_literal_keys_tell_numbers_apart() -> None:
    numbers: list[Any] = [0.0, -0.0, 0, False, 1, 1.0, True, np.float32(1), np.float64(1), 1j]
    numbers += [np.nan, np.inf, np.int64(1), ml_dtypes.bfloat16(1)]
    keys = [Literal(number).key for number in numbers]
    assert len(set(keys)) == len(keys)
    assert [Literal(number).key for number in numbers] == keys
    assert Literal(float("nan")).key == Literal(np.nan).key


def test_literals_are_weak_only_if_they_are_pythons() -> None:
    assert [Literal(n).aval.weak for n in (1, 1.0, 1j)] == [True] * 3
    assert [Literal(n).aval.weak for n in (True, np.float64(1), np.int8(1))] == [False] * 3


def test_param_keys_tell_parameters_apart() -> None:
    params: list[Any] = [0, 0.0, -0.0, False, None, "0", (0,), [0], ((0,),), {"a": 0}, {"a": 1}]
    params += [slice(0, None), slice(None, 0), slice(None), Ellipsis, np.float32(0), np.int64(0)]
    params += [np.zeros(1), np.zeros((1, 1)), np.zeros(1, np.float32), -np.zeros(1)]
    params += [np.dtype(np.float32), np.dtype(np.float64), graph_of(np.sin, X), graph_of(np.cos, X)]
    keys = [param_key(param) for param in params]
    assert len(set(keys)) == len(keys)
    assert param_key((slice(1, 2), {"b": [np.ones(2)]})) == param_key(
        (slice(1, 2), {"b": [np.ones(2)]})
    )


def test_aval_keys_tell_small_floats_apart() -> None:
    names = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "bfloat16", "float16")
    keys = {aval_key(Aval((2,), np.dtype(getattr(ml_dtypes, n, n)))) for n in names}
    assert len(keys) == len(names)
    assert aval_key(Aval((2,), np.dtype("<f8"))) != aval_key(Aval((2,), np.dtype(">f8")))
    assert aval_key(Aval((), F64)) != aval_key(Aval((), F64, weak=True))


def test_hash_is_the_same_for_the_same_computation() -> None:
    def once(x: Any) -> Any:
        return np.sum(np.tanh(x) * 2.0, axis=0)

    def again(x: Any) -> Any:
        y = np.tanh(x)

        return np.sum(y * 2.0, axis=0)

    one, other = graph_of(once, X), graph_of(again, X)
    assert [node.line for node in one.nodes] != [node.line for node in other.nodes]
    assert structural_hash(one) == structural_hash(other)


DIFFERENT: list[tuple[Callable[[Any], Any], Any]] = [
    (np.sin, X),
    (np.cos, X),
    (np.sin, X[0]),
    (np.sin, X.astype(np.float32)),
    (np.sin, 1.0),
    (np.sin, np.float64(1.0)),
    (lambda x: (np.sin(x), x), X),
    (lambda x: (x, np.sin(x)), X),
    (lambda x: (np.sin(x), np.sin(x)), X),
    (lambda x: x - 1.0, X),
    (lambda x: 1.0 - x, X),
    (lambda x: x - 1, X),
    (lambda x: x - 2.0, X),
    (lambda x: x - np.float64(1.0), X),
    (lambda x: x - 0.0, X),
    (lambda x: x - -0.0, X),
    (lambda x: np.sum(x, axis=0), X),
    (lambda x: np.sum(x, axis=1), X),
    (lambda x: np.sum(x, axis=0, keepdims=True), X),
    (lambda x: x[0:1], X),
    (lambda x: x[1:2], X),
    (lambda x: x, X),
    (lambda x: 1.0, X),
    (lambda x: (), X),
]


def test_hash_differs_for_different_computations() -> None:
    hashes = [structural_hash(graph_of(function, x)) for function, x in DIFFERENT]
    assert len(set(hashes)) == len(hashes)


def test_hash_does_not_depend_on_the_name() -> None:
    graph, *_ = small()
    renamed = Graph("another", graph.inputs, graph.nodes, graph.outputs)
    assert structural_hash(graph) == structural_hash(renamed)


# ---- verify -------------------------------------------------------------------------------------


def test_a_traced_graph_is_sound() -> None:
    verify(graph_of(gt.value_and_grad(lambda x: np.sum(np.sin(x) ** 2)), X))
    verify(graph_of(lambda x: np.split(x, 3, axis=1), X))
    verify(small()[0])


def broken_operand_order() -> Graph:
    graph, _, sine, added = small()
    return Graph("broken", graph.inputs, [added, sine], graph.outputs)


def broken_foreign_operand() -> Graph:
    graph, _, _, added = small()
    return Graph("broken", graph.inputs, [added], graph.outputs)


def broken_twice() -> Graph:
    graph, _, sine, added = small()
    return Graph("broken", graph.inputs, [sine, sine, added], graph.outputs)


def broken_output() -> Graph:
    graph, _, sine, added = small()
    return Graph("broken", graph.inputs, [sine], [sine.outputs[0], added.outputs[0]])


def broken_aval() -> Graph:
    graph, x, *_ = small()
    node = Node(registry["sin"], [x], {}, [Aval((4,), F64)], "model.py:9")
    return Graph("broken", graph.inputs, [node], node.outputs)


def broken_dtype() -> Graph:
    graph, x, *_ = small()
    node = Node(registry["sin"], [x], {}, [Aval((3,), np.dtype(np.float32))], "model.py:9")
    return Graph("broken", graph.inputs, [node], node.outputs)


def broken_weakness() -> Graph:
    graph, x, *_ = small()
    node = Node(registry["sin"], [x], {}, [Aval((3,), F64, weak=True)], "model.py:9")
    return Graph("broken", graph.inputs, [node], node.outputs)


def broken_rule() -> Graph:
    _, x, *_ = small()
    other = Value(Aval((4,), F64))
    node = Node(registry["add"], [x, other], {}, [x.aval], "model.py:9")
    return Graph("broken", [x, other], [node], node.outputs)


def broken_count() -> Graph:
    graph, x, *_ = small()
    node = Node(registry["sin"], [x], {}, [x.aval, x.aval], "model.py:9")
    return Graph("broken", graph.inputs, [node], node.outputs)


def broken_input_twice() -> Graph:
    _, x, *_ = small()
    return Graph("broken", [x, x], [], [x])


def broken_input_made() -> Graph:
    _, _, sine, _ = small()
    return Graph("broken", sine.outputs, [], sine.outputs)


def broken_owner() -> Graph:
    graph, _, sine, added = small()
    sine.outputs[0].node = added
    return graph


def broken_operand_kind() -> Graph:
    graph, x, *_ = small()
    node = Node(registry["sin"], [np.ones(3)], {}, [x.aval], "model.py:9")  # type: ignore[list-item]
    return Graph("broken", graph.inputs, [node], node.outputs)


def broken_literal() -> Graph:
    graph, _, _, added = small()
    added.operands[1].aval = Aval((), np.dtype(np.float32))
    return graph


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (broken_operand_order, r"operand 0 \(%2\) is not made before.*= add.*from model.py:8"),
        (broken_foreign_operand, r"operand 0 \(%\?\) is not made before.*from model.py:8"),
        (broken_twice, r"the node is there twice at `%\d: .*sin\(%0\)"),
        (broken_output, "output 1 is not made"),
        (broken_aval, r"the shape rule of the op gives float64\[3\].*from model.py:9"),
        (broken_dtype, r"the shape rule of the op gives float64\[3\] at .*float32\[3\] = sin"),
        (broken_weakness, r"gives float64\[3\] at `%1: float64\[3\] weak"),
        (broken_rule, r"the shape rule of the op raises.*do not broadcast.*from model.py:9"),
        (broken_count, r"the shape rule of the op gives float64\[3\] at"),
        (broken_input_twice, "input %1 is there twice"),
        (broken_input_made, "input %0 is the result of sin"),
        (broken_owner, "result 0 belongs to another node at .*from /home/user/model.py:7"),
        (broken_operand_kind, "operand 0 is an ndarray, expected a value or a literal"),
        (broken_literal, r"the literal 2.0 says it is float32\[\]"),
    ],
)
def test_verify_finds_what_is_broken(make: Callable[[], Graph], match: str) -> None:
    with pytest.raises(GradtapeError, match=match):
        verify(make())


# ---- show ---------------------------------------------------------------------------------------


def test_show_of_a_small_graph() -> None:
    assert show(small()[0]).splitlines() == [
        "graph small(%0: float64[3])",
        "  %1: float64[3] = sin(%0)    # model.py:7",
        "  %2: float64[3] = add(%1, 2.0)    # model.py:8",
        "  return %2",
    ]


def text_of(function: Callable[..., Any], *args: Any) -> str:
    return show(graph_of(function, *args))


def test_show_tells_what_matters() -> None:
    assert "multiply(%0, 2)" in text_of(lambda x: x * 2, X)
    assert "multiply(%0, float32(2.0))" in text_of(lambda x: x * np.float32(2), X)
    assert "%0: float64[] weak" in text_of(lambda x: x * 2, 1.0)
    assert "sum(%0, axis=(0,), keepdims=False)" in text_of(lambda x: np.sum(x, 0), X)
    assert "getitem(%0, index=(1, ::2))" in text_of(lambda x: x[1, ::2], X)
    assert "getitem(%0, index=(None, 1:, :-1))" in text_of(lambda x: x[None, 1:, :-1], X)
    assert "astype(%0, dtype=float32)" in text_of(lambda x: x.astype(np.float32), X)
    assert "return (%0, 3, True)".replace("(", "").replace(")", "") in text_of(
        lambda x: (x, 3, True), X
    )
    assert text_of(lambda x: None, X).endswith("return")
    assert "%1: float64[2, 1], %2: float64[2, 1], %3: float64[2, 1] = split(%0," in text_of(
        lambda x: np.split(x, 3, axis=1), X
    )


def test_show_cuts_long_parameters() -> None:
    x = Value(Aval((3,), F64))
    params = {"a": np.zeros((2, 2)), "b": tuple(range(100)), "c": {"k": [1]}, "d": np.sin, "e": ...}
    params["f"] = graph_of(np.sin, X)
    node = Node(registry["sin"], [x], params, [x.aval])
    line = show(Graph("g", [x], [node], node.outputs)).splitlines()[1]
    assert "a=float64[2, 2], b=(0, 1, 2, " in line
    assert line.endswith("…, c={k: [1]}, d=sin, e=..., f=<function>)")
    assert len(line) < 200


def test_show_is_stable() -> None:
    def function(x: Any) -> Any:
        return gt.grad(lambda x: np.sum(np.exp(x) * x))(x)

    assert text_of(function, X) == text_of(function, X)


def test_aval_of_a_graph_value() -> None:
    graph, x, *_ = small()
    assert (x.shape, x.dtype, Literal(2).shape) == ((3,), F64, ())
    assert repr(graph) == "<graph small: 1 inputs, 2 nodes>"
    assert aval_of(x.aval) is x.aval
