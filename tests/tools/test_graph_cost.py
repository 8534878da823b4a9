"""Estimates of what graphs cost, against counts by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from every_case import call_of, each
from gradtape.core.aval import aval_of
from gradtape.errors import ArgumentError
from gradtape.graph.ir import Graph
from gradtape.graph.trace import trace
from gradtape.tools.graph_cost import GraphCost, cost
from nested_graphs import CHOICE, LOOP, around, deep, step
from opcases.case import OpCase

A, B = np.ones((6, 5)), np.ones((5, 4))


def cost_of(function: Callable[..., Any], *args: Any) -> GraphCost:
    return cost(gt.graph.make_graph(function)(*args))


@pytest.mark.parametrize(
    ("function", "flops", "read", "written"),
    [
        (lambda a, b: a + 1.0, 30, 240, 240),
        (lambda a, b: a * a, 30, 240, 240),  # the same array is read once
        (lambda a, b: a / (a + 1.0), 30 + 4 * 30, 240 + 480, 480),
        (lambda a, b: np.exp(a), 20 * 30, 240, 240),
        (lambda a, b: a @ b, 2 * 6 * 5 * 4, 240 + 160, 192),
        (lambda a, b: a @ b[:, 0], 2 * 6 * 5, 240 + 40, 48),
        (lambda a, b: np.sum(a, axis=0), 30, 240, 40),
        (lambda a, b: a.T, 0, 0, 0),
        (lambda a, b: a[1:3].reshape(-1), 0, 0, 0),
        (lambda a, b: a, 0, 0, 0),
        (lambda a, b: a.astype(np.float32) * np.float32(2), 30, 240 + 120, 120 + 120),
    ],
)
def test_counts(function: Callable[..., Any], flops: int, read: int, written: int) -> None:
    estimate = cost_of(function, A, B)
    assert (estimate.flops, estimate.bytes_read, estimate.bytes_written) == (flops, read, written)
    assert estimate.total.uncounted == 0


def test_composite_ops_count_as_their_parts() -> None:
    softmax = cost_of(lambda x: gt.softmax(x, axis=-1), A)
    # A maximum, a difference, an exponential, a sum and a quotient for each element, at least.
    assert softmax.flops >= 30 * (1 + 1 + 20 + 1)
    assert list(softmax.by_op) == ["softmax"]


def test_what_has_no_native_code_is_named() -> None:
    estimate = cost_of(lambda a: gt.host_call(np.sort, a, a) + 1.0, np.eye(3))
    assert estimate.by_op["host_call of sort"].uncounted == 1
    assert estimate.flops == 9
    assert "not counted, as they have no native code: host_call of sort" in str(estimate)
    assert "not counted" not in str(cost_of(np.sin, A))


def test_nodes_add_up_to_the_total() -> None:
    graph = gt.graph.make_graph(gt.grad(lambda a: np.sum(np.tanh(a @ B) ** 3)))(A)
    estimate = cost(graph)
    assert len(estimate.nodes) == len(graph.nodes)
    assert sum(node.flops for node in estimate.nodes) == estimate.flops
    assert sum(node.bytes_read for node in estimate.nodes) == estimate.bytes_read
    assert estimate.total.calls == len(graph.nodes)


# ---- graphs in nodes ----------------------------------------------------------------------------


def body_flops() -> int:
    return cost(step()).flops


def test_bodies_count_as_often_as_they_run() -> None:
    estimate = cost(around(LOOP, body=step(), length=7))
    assert estimate.flops == 7 * body_flops()
    assert estimate.by_op["sin"].calls == 7
    assert estimate.bytes_written == 7 * 2 * 24
    assert estimate.open_loops == ()
    twice = around(LOOP, body=around(LOOP, body=step(), length=3), length=5)
    assert cost(twice).flops == 15 * body_flops()


def test_loops_of_unknown_length_are_named() -> None:
    open_loop = around(LOOP, body=step())
    estimate = cost(around(LOOP, body=open_loop, length=5))
    assert estimate.flops == 5 * body_flops()
    assert estimate.open_loops == ("loop at model.py:5",)
    assert "counted as one step, as their number is not known: loop at model.py:5" in str(estimate)


def test_the_dearest_branch_counts() -> None:
    long = gt.graph.make_graph(lambda x: np.sin(np.cos(np.exp(x))))(np.ones(3))
    estimate = cost(around(CHOICE, branches=(step(), long, step())))
    assert estimate.flops == cost(long).flops > body_flops()
    assert estimate.open_loops == ()
    assert set(estimate.by_op) == {"sin", "cos", "exp"}


def test_deep_and_shared_graphs() -> None:
    assert cost(deep(3000)).flops == cost(deep(100, copies=3)).flops == body_flops()


# ---- text, errors, all ops ----------------------------------------------------------------------


def test_text() -> None:
    text = str(cost(around(LOOP, "model", body=step(), length=1000)))
    assert text.splitlines() == [
        "model: 63 kflop, reads 48 kB, writes 48 kB without fusion",
        "  sin        ×1000      60 kflop  reads    24 kB  writes    24 kB",
        "  multiply   ×1000       3 kflop  reads    24 kB  writes    24 kB",
    ]
    empty = Graph("nothing", [], [], [])
    assert str(cost(empty)) == "nothing: 0 flop, reads 0 B, writes 0 B without fusion"


def test_only_graphs_have_a_cost() -> None:
    with pytest.raises(ArgumentError, match="cost: got a function, expected a graph"):
        cost(gt.sum)  # type: ignore[arg-type]


@each()
def test_every_op_has_an_estimate(case: OpCase) -> None:
    call = call_of(case)
    with np.errstate(all="ignore"):
        graph = trace(call, [aval_of(array) for array in call.arrays]).graph
    estimate = cost(graph)
    assert estimate.total.calls == len(graph.nodes)
    assert min(estimate.total) >= 0
    assert str(estimate)
