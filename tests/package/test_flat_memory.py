"""Loops leave nothing behind: as many records, tensors and arrays live after many iterations."""

import gc
import os
import tracemalloc
from collections.abc import Iterator
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.level import Node

# The package sets the number of BLAS threads for its own process; not for that of the tests.
with patch.dict(os.environ):
    pytest.importorskip("benchmarks", reason="only in the repository, not in the distribution")
    from benchmarks.memory_flat import FIRST, LAST, allowed
    from benchmarks.memory_flat_worker import measured
    from benchmarks.memory_loops import LOOPS, SIZE, GoOn, loss

FEW, MORE = 20, 60


class Live(NamedTuple):
    """What is alive: nodes of levels, tensors, and the memory of arrays."""

    nodes: int
    tensors: int
    arrays: int
    array_bytes: int


def live() -> Live:
    objects = gc.get_objects()
    arrays = tracemalloc.take_snapshot().filter_traces(
        [tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)]
    )
    return Live(
        sum(issubclass(type(each), Node) for each in objects),
        sum(issubclass(type(each), gt.Tensor) for each in objects),
        len(arrays.traces),
        sum(trace.size for trace in arrays.traces),
    )


@pytest.fixture
def _memory_traced() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("_memory_traced")
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_leaves_nothing_behind(name: str) -> None:
    loop = LOOPS[name]
    few, more = measured(loop.run, (FEW, MORE), live)
    # What a loop keeps on purpose is a loss: a tensor, its node and an array of one number.
    kept = MORE - FEW if loop.kept >= 100 else 0
    for before, after, size in zip(few, more, (1, 1, 1, 8), strict=True):
        assert after <= before + kept * size, (few, more)


@pytest.mark.slow
@pytest.mark.usefixtures("_memory_traced")
@pytest.mark.parametrize("name", LOOPS)
def test_a_long_loop_leaves_nothing_behind(name: str) -> None:
    loop = LOOPS[name]
    early, late = measured(loop.run, (FIRST, LAST), lambda: tracemalloc.get_traced_memory()[0])
    assert late - early < allowed(loop, "allocated", LAST - FIRST)


@pytest.mark.usefixtures("_memory_traced")
def test_a_history_that_is_held_is_counted() -> None:
    def leaking(go_on: GoOn) -> None:
        x, losses = gt.tensor(np.ones(SIZE), requires_grad=True), []
        while go_on():
            losses.append(loss(x))

    few, more = measured(leaking, (FEW, MORE), live)
    assert more.nodes - few.nodes > 3 * (MORE - FEW)
    assert more.tensors - few.tensors == MORE - FEW
    assert more.array_bytes - few.array_bytes > 8 * SIZE * (MORE - FEW)
