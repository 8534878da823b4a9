"""Programs of very many steps: their memory, their table of addresses, the hint about loops."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler import unrolled
from gradtape.compiler.cpu.routine import _MOST_ON_STACK
from gradtape.compiler.kernel import Buffer
from gradtape.compiler.memory import Arena
from gradtape.compiler.reachability import Reachability
from gradtape.errors import UnrolledLoopWarning

# ---- memory -------------------------------------------------------------------------------------


def lifetimes(count: int, rng: np.random.Generator) -> list[list[Buffer]]:
    """Steps and the buffers they touch: most for a short time, of many sizes, some empty."""
    steps: list[list[Buffer]] = [[] for _ in range(count)]
    for n in range(count):
        size = int(rng.choice([0, 1, 3, 8, 100, 1000]) * rng.integers(1, 4))
        buffer = Buffer(f"t{n}", (size,), np.dtype(np.float64), "temporary")
        first, length = int(rng.integers(count)), int(rng.geometric(0.2))
        last = min(first + length, count - 1)
        steps[first].append(buffer)
        steps[last].append(buffer)
    return steps


@pytest.mark.parametrize("count", [30, 600])
def test_buffers_that_are_needed_at_once_do_not_overlap(
    count: int, rng: np.random.Generator
) -> None:
    steps = lifetimes(count, rng)
    arena = Arena(steps)
    when: dict[Buffer, list[int]] = {}
    for number, buffers in enumerate(steps):
        for buffer in buffers:
            when.setdefault(buffer, []).append(number)
    assert arena.offsets.keys() == when.keys()
    most = 0
    for number in range(count):
        alive = sorted(
            (arena.offsets[buffer], buffer.nbytes)
            for buffer, at in when.items()
            if at[0] <= number <= at[-1] and buffer.nbytes
        )
        ends = [start + size for start, size in alive]
        assert all(end <= start for end, (start, _) in zip(ends, alive[1:], strict=False))
        assert max(ends, default=0) <= arena.size
        most = max(most, sum(-(-size // 64) * 64 for _, size in alive))
    assert all(offset % 64 == 0 for offset in arena.offsets.values())
    assert arena.size <= 2 * most


def test_a_loop_uses_the_memory_of_one_step() -> None:
    buffers = [Buffer(f"t{n}", (10,), np.dtype(np.float64), "temporary") for n in range(1000)]
    arena = Arena([list(pair) for pair in itertools.pairwise(buffers)])
    assert arena.size == 2 * 128


def test_needs_of_things_far_apart_are_answered_without_a_search() -> None:
    groups = Reachability()
    for n in range(2000):
        groups.add()
        groups.depend(n, {n - 1} if n else set())
    assert groups.depends(1999, 1990)
    assert not groups.depends(1990, 1999)
    # There may be a way: who asks leaves it.
    assert groups.depends(1999, 0)
    lonely = groups.add()
    assert not groups.depends(lonely, 1999)
    # What comes to need something later is put behind it.
    groups.depend(5, {lonely})
    assert groups.depends(5, lonely)
    assert groups.depends(100, lonely)
    assert not groups.depends(4, lonely)


# ---- tables -------------------------------------------------------------------------------------


def test_a_table_of_addresses_that_is_too_large_for_the_stack() -> None:
    def function(x: Any, matrix: Any) -> Any:
        for _ in range(n):
            x = matrix @ x + x
        return x

    n = _MOST_ON_STACK // 2 + 50
    x, matrix = np.arange(3.0), 0.001 * np.eye(3)
    compiled = gt.jit(function)
    expected = function(x, matrix)
    for _ in range(2):
        np.testing.assert_allclose(compiled(x, matrix), expected, 1e-12)
    assert len(compiled.explain(x, matrix).kernels) > _MOST_ON_STACK


def test_products_in_parts_share_their_code() -> None:
    """Each has memory of its own for partial sums; the code that is called is one."""

    def function(x: Any) -> Any:
        for _ in range(40):
            x = 1e-5 * (x @ (x.T @ x))
        return x

    x = np.full((30_000, 3), 0.5)
    report = gt.jit(function).explain(x)
    assert sum("matmul 3×30000" in kernel.name for kernel in report.kernels) == 40
    calls = re.findall(r"call void @gt_gemm_double_3_3_30000_tn\(", report.ir)
    assert len(calls) == 1
    np.testing.assert_allclose(gt.jit(function)(x), function(x), 1e-10)


# ---- the hint -----------------------------------------------------------------------------------


def doubled(n: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        for _ in range(n):
            x = np.sin(x) * 2.0
        return np.sum(x)

    return function


def test_an_unrolled_loop_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unrolled, "_MANY_NODES", 300)
    function = doubled(200)
    compiled = gt.jit(gt.grad(function))
    line = function.__code__.co_firstlineno + 2
    with pytest.warns(UnrolledLoopWarning) as caught:
        compiled.graph(np.ones(2))
    compiled.graph(np.ones(3))  # warnings are errors
    (warning,) = caught
    assert warning.filename == __file__
    message = str(warning.message)
    assert f"of them by {__file__}:{line}: the Python loop there is unrolled" in message
    with pytest.warns(UnrolledLoopWarning):
        gt.jit(gt.grad(function)).graph(np.ones(2))


@pytest.mark.parametrize("n", [10, 99])
def test_short_loops_are_fine(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    # Of 99 steps each line has made fewer operations than count as a loop, however few there are.
    monkeypatch.setattr(unrolled, "_MANY_NODES", 5 if n == 99 else 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gt.jit(doubled(n // 2)).graph(np.ones(2))


def test_the_hint_does_not_come_below_thousands_of_operations() -> None:
    assert unrolled._MANY_NODES >= 2000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gt.jit(doubled(400)).graph(np.ones(2))
