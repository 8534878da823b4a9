"""How many ops checkpointing runs again on a chain, against what theory says.

Chains of equal steps are where theory has exact answers: segments of √n steps run each step again
once, but for those kept; bisection runs it again at most log₂ n times; and Revolve (Griewank and
Walther 2000) needs the fewest runs of all for a given number of kept results. That number is found
here by trying all places for the first one kept.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import gradtape as gt
from benchmarks.harness import Settings
from benchmarks.result import Row
from gradtape.autodiff.schedules.item import Item
from gradtape.autodiff.schedules.revolve import Revolve
from gradtape.autodiff.schedules.steps import simulate
from gradtape.tools.statistics import Spread

NAME = "recomputation"
STEPS = 1_024
REVOLVED = {(100, 3), (100, 10), (200, 5), (400, 8)}
"""Chains for Revolve: steps, and results that may be kept."""


def run(_settings: Settings) -> Iterator[Row]:
    """Count runs of tapes, then those of Revolve."""
    root = math.isqrt(STEPS)
    strategy = gt.CheckpointStrategy
    segments = gt.CheckpointConfig(strategy=strategy.Block, checkpoint_every_n=root)
    found = runs_of_a_tape(segments, STEPS)
    yield row_of(f"{STEPS:,} steps in segments of {root}", found, "n − √n", STEPS - root)
    found = runs_of_a_tape(gt.CheckpointConfig(strategy=strategy.Full), STEPS)
    most = STEPS * math.ceil(math.log2(STEPS))
    yield row_of(f"{STEPS:,} steps with `Full`", found, "n·log₂ n, at most", most, exact=False)
    for steps, slots in sorted(REVOLVED):
        found = runs_of_revolve(steps, slots)
        what = f"{steps} steps by Revolve with {slots} results kept"
        yield row_of(what, found, "the fewest possible", fewest_runs(steps, slots))


def row_of(what: str, runs: int, peer_name: str, theory: int, *, exact: bool = True) -> Row:
    """Make the row of a count.

    Raises:
        AssertionError: The count is to be exact, and is not.
    """
    if exact and runs != theory:
        raise AssertionError(f"{what}: {runs} ops were run again, theory says {theory}")
    ratio = runs / theory
    return Row(
        name=NAME,
        what=f"{what}: ops run again",
        ours=runs,
        peer_name=peer_name,
        peer=theory,
        ratio=Spread(ratio, ratio, ratio),
        bar=1.0,
        unit="runs",
    )


class Counting:
    """A mode that counts how often `tanh` runs."""

    kind = "observing"

    def __init__(self) -> None:
        self.runs = 0

    def run(self, op: Any, args: Any, params: Any, proceed: Any) -> Any:
        """Let an op run, and count it."""
        self.runs += op.name == "tanh"
        return proceed(op, args, params)


def runs_of_a_tape(config: Any, steps: int) -> int:
    """Count the runs of a chain of `tanh` in the backward pass, whose rule has no `tanh` itself."""
    with gt.GradientTape(checkpoint=config) as tape:
        x = tape.watch(np.linspace(-1.0, 1.0, 8))
        last = functools.reduce(lambda h, _: gt.tanh(h), range(steps), x)
        total = gt.sum(last)
    del last
    count = Counting()
    with gt.using_mode(count):
        tape.gradient(total, x)
    return count.runs


def runs_of_revolve(steps: int, slots: int) -> int:
    """Play Revolve's plans for a chain through and count what is run again."""
    chain = [Item(1.0, 8, (i - 1,) if i else (), (i,)) for i in range(steps)]
    # Besides what is kept there are the result of the running step, and the one it reads.
    room = 8 * (slots + 2)
    return round(simulate(chain, room, Revolve()).cost)


@functools.cache
def fewest_runs(steps: int, slots: int) -> int:
    """Find how many runs the backward pass over a chain needs at least, after its forward pass.

    Args:
        steps: The number of steps; each result is read when its step is visited.
        slots: How many results can be kept, besides those in use.
    """
    if steps <= 1:
        return 0
    if slots == 0:
        return steps * (steps - 1) // 2
    # The steps after the first result that is kept are done with; those before it are run anew.
    return min(
        fewest_runs(steps - kept, slots - 1) + kept - 1 + fewest_runs(kept - 1, slots)
        for kept in range(1, steps + 1)
    )
