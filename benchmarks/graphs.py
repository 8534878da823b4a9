"""Lazy graphs: to build one, differentiate it and evaluate both for the first time, uncompiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.harness import Settings, time_once
from benchmarks.result import NotRun, Row
from gradtape.tools.statistics import Spread

NAME = "graph"
NODES, GOAL = 1_000, 0.050
MANY, TIMES = 10_000, 10
# Python's garbage collector looks at all objects again as they become more; without it, it is 1.07.
GROWTH_BAR = 1.5
MOST_ROUNDS = 3
SIZE = 10


def chain(x: Any, nodes: int) -> Any:
    """Apply that many elementwise functions of different kinds, one after the other."""
    y = x
    for i in range(nodes):
        match i % 5:
            case 0:
                y = np.sin(y)
            case 1:
                y = y * 1.5
            case 2:
                y = y + x
            case 3:
                y = np.tanh(y)
            case _:
                y = y - 0.25
    return y


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Time graphs of 1,000 nodes, and of ever more."""
    if not hasattr(gt, "run"):
        yield NotRun(NAME, gt.__name__, "this gradtape has no lazy graphs")
        return
    seconds(NODES)  # loads what the first graph of a process needs
    few = [seconds(NODES) for _ in range(settings.rounds)]
    yield Row(
        name=NAME,
        what=f"{NODES:,} nodes on {SIZE} numbers: build, differentiate, evaluate once",
        ours=Spread.of(few).median,
        peer_name="the goal",
        peer=GOAL,
        ratio=Spread.of([time / GOAL for time in few]),
        bar=1.0,
    )
    rounds = min(settings.rounds, MOST_ROUNDS)
    small = [seconds(MANY) for _ in range(rounds)]
    large = [seconds(TIMES * MANY) for _ in range(rounds)]
    yield Row(
        name=NAME,
        what=f"the same, {TIMES * MANY:,} nodes",
        ours=Spread.of(large).median,
        peer_name=f"{TIMES} times the time for {MANY:,}",
        peer=TIMES * Spread.of(small).median,
        ratio=Spread.of_ratio(large, [TIMES * time for time in small]),
        bar=GROWTH_BAR,
    )


def seconds(nodes: int) -> float:
    """Time a graph from nothing to its first results, and check them."""
    given = np.linspace(-1.0, 1.0, SIZE)
    found: list[Any] = []

    def program(ctx: Any) -> list[Any]:
        x = ctx.placeholder("x", (SIZE,))
        total = np.sum(chain(x, nodes))
        (slope,) = gt.graph.grad([total], [x])
        return list(ctx.evaluator().push(total).push(slope).feed(x, given).run())

    spent = time_once(lambda: found.extend(gt.run(program)))
    for result, exact in zip(found, expected(given, nodes), strict=True):
        assert_agree(f"graph of {nodes:,} nodes", result, exact)
    return spent


def expected(given: np.ndarray, nodes: int) -> tuple[Any, Any]:
    """Compute value and gradient eagerly."""
    return gt.value_and_grad(lambda x: np.sum(chain(x, nodes)))(given)
