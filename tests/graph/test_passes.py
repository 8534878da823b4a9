"""The passes over graphs: folding, sharing, dead code, and all of them on random graphs.

The rules of `simplify` have tests of their own, by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.call import call
from gradtape.core.op import registry
from gradtape.graph.ir import Graph, Literal, structural_hash
from gradtape.graph.passes.dead import dead
from gradtape.graph.passes.share import share
from gradtape.graph.passes.simplify import simplify
from gradtape.graph.text import show
from gradtape.graph.verify import verify
from gradtape.ops.select import mask
from graphcall import (
    assert_same_bits,
    graph_of,
    run_nodes,
    specials,
    traced,
)

Function = Callable[..., Any]
F = ("float64", "float32")


# ---- fold ---------------------------------------------------------------------------------------


def fold(graph: Graph) -> Graph:
    """The graph after folding alone, without any rules."""
    return simplify(graph, ())


def folded(function: Function, *args: Any) -> Graph:
    """A graph after folding, with the same results."""
    graph = graph_of(function, *args)
    result = fold(graph)
    verify(result)
    assert_same_bits(run_nodes(result, args), run_nodes(graph, args))
    assert structural_hash(fold(result)) == structural_hash(result)
    return dead(result)


@pytest.mark.parametrize("dtype", F)
@pytest.mark.parametrize(
    ("function", "number"),
    [
        (lambda x: np.ones_like(x) * 3 - 1, 2.0),
        (lambda x: np.exp(np.ones_like(x) * 0.5), None),
        (lambda x: np.zeros_like(x) / np.zeros_like(x), np.nan),
        (lambda x: -np.zeros_like(x), -0.0),
        (lambda x: 1 / -np.zeros_like(x), -np.inf),
        (lambda x: np.zeros_like(x).reshape(-1)[2:].reshape(2, 2).T + 1, 1.0),
        (lambda x: np.flip(np.roll(np.tile(np.ones_like(x), 2), 1)), 1.0),
        (lambda x: np.stack([np.ones_like(x), np.ones_like(x)]), 1.0),
        (lambda x: np.concatenate([np.zeros_like(x), np.zeros_like(x)]), 0.0),
        (lambda x: np.clip(np.ones_like(x) * 9, 0.0, 2.5), 2.5),
        (lambda x: np.where(np.ones_like(x) > 0, np.ones_like(x), 7.0), 1.0),
        (lambda x: gt.stop_gradient(np.diagonal(np.ones_like(x, shape=(3, 3)))), 1.0),
        (lambda x: np.sum(np.ones_like(x), axis=0) * 0.5, 1.0),
        (lambda x: np.sum(np.ones_like(x, shape=(3, 1000))), 3000.0),
        (lambda x: np.sum(np.ones_like(x, shape=(0, 3)), axis=0), 0.0),
        (lambda x: np.mean(np.ones_like(x) * 1.5), 1.5),
        (lambda x: gt.grad(lambda x: np.sum(x))(x), 1.0),
    ],
)
def test_what_depends_on_numbers_only_is_one_number(
    function: Function, number: Any, dtype: str
) -> None:
    graph = folded(function, np.ones((2, 3), dtype))
    assert [node.op.name for node in graph.nodes] in ([], ["broadcast_to"])
    output = graph.outputs[0]
    literal = graph.nodes[0].operands[0] if graph.nodes else output
    assert isinstance(literal, Literal)
    assert (literal.dtype, literal.aval.weak) == (np.dtype(dtype), False)
    if number is not None:
        assert_same_bits(literal.value, np.dtype(dtype).type(number))


@pytest.mark.parametrize(
    ("function", "left"),
    [
        (lambda x: np.sum(np.ones_like(x) * 0.1), "sum"),  # rounds
        (lambda x: np.sum(np.ones_like(x) * 1e308), "sum"),  # overflows
        (lambda x: np.sum(-np.zeros_like(x)), "sum"),  # starts from 0.0
        (lambda x: np.sum(np.ones_like(x) * np.inf), "sum"),
        (lambda x: np.mean(np.ones_like(x, shape=(0,))), "mean"),
        (lambda x: np.stack([np.ones_like(x), np.zeros_like(x)]), "stack"),
        (lambda x: np.stack([np.zeros_like(x), -np.zeros_like(x)]), "stack"),
        (lambda x: np.cumsum(np.ones_like(x)), "cumsum"),
        (lambda x: np.linalg.inv(np.ones_like(x, shape=(2, 2))), "inv"),
        (lambda x: x * 1.0, "multiply"),
    ],
)
def test_fold_leaves_what_it_cannot_know(function: Function, left: str) -> None:
    assert fold(graph_of(function, np.ones((3, 3)))).nodes[-1].op.name == left


def test_fold_leaves_errors_to_the_run() -> None:
    graph = graph_of(
        lambda x: np.ones_like(x, dtype=int) ** -np.ones_like(x, dtype=int), np.ones(2)
    )
    assert fold(graph).nodes[-1].op.name == "power"
    with pytest.raises(ValueError, match="negative integer powers"):
        run_nodes(fold(graph), [np.ones(2)])


def test_fold_of_integer_sums_wraps_as_sums_do() -> None:
    graph = folded(lambda x: np.sum(np.ones_like(x) * (2**62)), np.ones(5, int))
    assert isinstance(graph.outputs[0], Literal)
    assert graph.outputs[0].value == np.sum(np.full(5, 2**62))


def test_fold_keeps_random_numbers() -> None:
    graph = traced(lambda x: gt.uniform(0.0, 1.0, (3,)) * x, np.ones(3)).graph
    assert fold(graph).nodes[0].op.name == "random_uniform"


# ---- share --------------------------------------------------------------------------------------


def shared_count(function: Function, *args: Any) -> int:
    graph = graph_of(function, *args)
    result = share(graph)
    verify(result)
    assert_same_bits(run_nodes(result, args), run_nodes(graph, args))
    assert structural_hash(share(result)) == structural_hash(result)
    return len(graph.nodes) - len(result.nodes)


X, Y = np.array([0.0, -0.0, np.nan, 2.5]), np.array([-0.0, 0.0, 1.0, np.inf])
M, N = np.array([1, -2, 3]), np.array([4, 5, -6])


@pytest.mark.parametrize(
    ("function", "args", "saved"),
    [
        (lambda x, y: (np.sin(x), np.sin(x)), (X, Y), 1),
        (lambda x, y: (np.sin(x), np.sin(y)), (X, Y), 0),
        (lambda x, y: (np.exp(np.sin(x) + y), np.exp(y + np.sin(x))), (X, Y), 3),
        (lambda x, y: (x * y, y * x), (X, Y), 1),
        (lambda x, y: (x - y, y - x), (X, Y), 0),
        (lambda x, y: (x == y, y == x, x != y, y != x), (X, Y), 2),
        (lambda x, y: (x < y, y < x), (X, Y), 0),
        (lambda x, y: (np.logical_and(x, y), np.logical_and(y, x)), (X, Y), 1),
        # 0.0 or -0.0, whichever comes first
        (lambda x, y: (np.maximum(x, y), np.maximum(y, x)), (X, Y), 0),
        (lambda x, y: (np.maximum(x, y), np.maximum(y, x)), (M, N), 1),
        (lambda x, y: (x & y, y & x, x ^ y, y ^ x), (M, N), 2),
        # A product of complex numbers may round differently.
        (lambda x, y: (x * y, y * x), (X + 1j, Y + 2j), 0),
        (lambda x, y: (x * 2.0, 2.0 * x), (X, Y), 1),
        (lambda x, y: (x * 2, x * 2.0), (X, Y), 0),
        (lambda x, y: (x + 0.0, x + -0.0), (X, Y), 0),
        (lambda x, y: (x * np.float32(2), x * np.float64(2)), (X, Y), 0),
        (lambda x, y: (x.reshape(2, 2), x.reshape(2, 2), x.reshape(4, 1)), (X, Y), 1),
        (lambda x, y: (x[1:], x[1:], x[:-1]), (X, Y), 1),
        (lambda x, y: (np.split(x, 2), np.split(x, 2)), (X, Y), 1),
        (lambda x, y: (np.clip(x, 0, 1), np.clip(x, 0.0, 1.0)), (X, Y), 0),
    ],
)
def test_share(function: Function, args: Any, saved: int) -> None:
    assert shared_count(function, *args) == saved


def test_draws_are_not_shared() -> None:
    def function(x: Any) -> Any:
        draw = {"shape": (3,), "dtype": np.dtype(float), "key": (1, 2), "offset": 3}
        op = registry["random_uniform"]
        return call(op, (), draw) + call(op, (), draw) * x

    drawn = graph_of(function, np.ones(3))
    assert len(share(drawn).nodes) == len(drawn.nodes)


# ---- dead ---------------------------------------------------------------------------------------


def test_dead_code_goes() -> None:
    def function(x: Any) -> Any:
        np.exp(np.sin(x))
        parts = np.split(x, 2)
        return parts[1] + 1

    graph = graph_of(function, np.ones(4))
    result = dead(graph)
    verify(result)
    assert [node.op.name for node in result.nodes] == ["split", "add"]
    assert_same_bits(run_nodes(result, [X]), run_nodes(graph, [X]))
    assert dead(result).nodes == result.nodes
    assert [node.op.name for node in graph.nodes] == ["sin", "exp", "split", "add"]


def test_dead_keeps_inputs_and_effects() -> None:
    def function(x: Any, unused: Any) -> Any:
        gt.uniform(0.0, 1.0, (2,))
        np.sin(x)
        return 1.0

    result = dead(traced(function, X, Y).graph)
    assert len(result.inputs) == 3  # and the state of the generator
    assert [node.op.name for node in result.nodes if node.op.effect] == ["random_uniform"]
    assert "sin" not in [node.op.name for node in result.nodes]


# ---- random graphs ------------------------------------------------------------------------------

PASSES: tuple[Callable[[Graph], Graph], ...] = (fold, simplify, share, dead)
CONSTANTS = (0, 1, -1, 2, 0.0, -0.0, 1.0, 0.5, -2.0, np.inf, np.nan, 3)


def random_program(rng: np.random.Generator, length: int) -> Function:
    """A function of two arrays of one shape: exact ops, in an order drawn beforehand."""
    plan = [
        (int(rng.integers(24)), *map(int, rng.integers(1 << 30, size=3))) for _ in range(length)
    ]

    def function(x: Any, y: Any) -> Any:
        pool, truths = [x, y, np.ones_like(x), np.zeros_like(x)], [x < y, x == x]
        for step in plan:
            extend(pool, truths, *step)
        return pool[-1], pool[-2], truths[-1]

    return function


def extend(pool: list[Any], truths: list[Any], kind: int, i: int, j: int, k: int) -> None:
    """Add one value that is computed from some of those that are there."""
    a, b, c = pool[i % len(pool)], pool[j % len(pool)], truths[k % len(truths)]
    d, n = truths[i % len(truths)], CONSTANTS[k % len(CONSTANTS)]
    if kind < 6:
        b = (b, n)[j % 2]
        pool.append((a + b, a - b, a * b, a / b, b - a, b / a)[kind])
    elif kind < 12:
        pool.append((-a, abs(a), a**2, a**1, np.sqrt(a), +a)[kind - 6])
    elif kind < 16:
        shaped = (a.T.T, a.reshape(-1).reshape(a.shape), np.flip(a, 0), np.flip(np.flip(a, 1), 1))
        pool.append(shaped[kind - 12])
    elif kind < 20:
        chosen = (np.where(c, a, b), mask(a, c), np.where(c ^ True, a, n), mask(mask(a, c), d))
        pool.append(chosen[kind - 16].astype(a.dtype))
    elif kind == 20:
        pool.append(np.broadcast_to(a[:1], a.shape) + a.sum(0, keepdims=True))
    elif kind == 21:
        truths.append((a < b, a != b, a == n, a >= n)[k % 4])
    elif kind == 22:
        truths.append((c & d, c | d, c ^ True, np.logical_not(c), c | True, c & True)[j % 6])
    else:
        pool.append(
            a.astype(np.float64).astype(a.dtype) if j % 2 else gt.setitem(a, b[1:], slice(1, None))
        )


@pytest.mark.parametrize("dtype", F)
@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(n, marks=pytest.mark.slow) for n in range(8, 40))]
)
def test_passes_keep_every_bit_of_random_graphs(seed: int, dtype: str) -> None:
    rng = np.random.default_rng((seed, np.dtype(dtype).itemsize))
    numbers = specials(dtype)
    args = (rng.choice(numbers, (3, 4)), rng.choice(numbers, (3, 4)))
    graph = graph_of(random_program(rng, 30), *args)
    before, expected = show(graph), run_nodes(graph, args)
    for one in PASSES:
        result = one(graph)
        verify(result)
        assert structural_hash(one(result)) == structural_hash(result)
        assert_same_bits(run_nodes(result, args), expected)
    for i in rng.permutation(len(PASSES)):
        graph = PASSES[i](graph)
        verify(graph)
        assert_same_bits(run_nodes(graph, args), expected)
    assert len(graph.nodes) <= len(before.splitlines()) - 2


def test_passes_leave_the_graph_they_got_alone() -> None:
    graph = graph_of(random_program(np.random.default_rng(0), 40), np.ones((3, 4)), np.ones((3, 4)))
    before = show(graph)
    for one in PASSES:
        one(graph)
        assert show(graph) == before
    verify(graph)
