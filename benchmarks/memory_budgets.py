"""Tapes that may keep only a part of what they would: whether they do, and what it costs.

The budget is a part of what a plain tape has allocated at its peak. Peaks are those of fresh
processes; times are taken in turns in one process.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping

from benchmarks.agreement import assert_agree
from benchmarks.harness import Settings
from benchmarks.memory_cases import Cases
from benchmarks.memory_request import PLAIN, Memory, Way, is_quick, memory, seconds
from benchmarks.memory_rows import bytes_row, time_rows
from benchmarks.result import Row

NAMES = {
    "chain": "memory of a chain",
    "long_chain": "memory of a chain",
    "stack": "memory of blocks",
}
CHAIN_BARS = {50: 1.3, 10: 2.2}
STACK_BARS = {50: 1.25}
"""For each budget in percent, how many times longer than a plain tape it may take."""
TOLERANCE = 1e-3
WARM_UP = 1


def run(settings: Settings) -> Iterator[Row]:
    """Measure the chains and the transformer blocks, then PyTorch's checkpoints of blocks."""
    yield from _within_budgets("chain", CHAIN_BARS, settings)
    yield from _within_budgets("long_chain", CHAIN_BARS, settings)
    plain = yield from _within_budgets("stack", STACK_BARS, settings)
    yield from _pytorch(plain, settings)


def _within_budgets(
    name: str, bars: Mapping[int, float], settings: Settings
) -> Generator[Row, None, Memory]:
    shown, what = NAMES[name], str(getattr(Cases.of(quick=is_quick(settings)), name))
    plain = memory("gradtape", name, PLAIN["gradtape"], settings, warm_up=WARM_UP)
    yield bytes_row(
        shown, f"{what}: plain tape, resident", plain.resident, "allocated", plain.allocated
    )
    budgets = {percent: plain.allocated * percent // 100 for percent in bars}
    for percent, budget in budgets.items():
        found = memory("gradtape", name, ("tape", budget), settings, warm_up=WARM_UP)
        if found.digest != plain.digest:
            raise AssertionError(f"{what}: at {percent} % the gradients have other bits")
        label, peer = f"{what}: `Auto` at {percent} %", f"{percent} % of a plain tape's"
        yield bytes_row(shown, f"{label}, allocated", found.allocated, peer, budget, 1.0)
        part = plain.resident * percent // 100
        yield bytes_row(shown, f"{label}, resident", found.resident, peer, part, 1.0)
    ways: list[Way] = [PLAIN["gradtape"], *(("tape", budget) for budget in budgets.values())]
    unbounded, *bounded = seconds("gradtape", name, ways, settings)
    for (percent, bar), times in zip(bars.items(), bounded, strict=True):
        yield from time_rows(
            shown,
            f"{what}: `Auto` at {percent} %, gradients bit-equal",
            times,
            "a plain tape",
            unbounded,
            bar,
        )
    return plain


def _pytorch(ours: Memory, settings: Settings) -> Iterator[Row]:
    shown, what = NAMES["stack"], str(Cases.of(quick=is_quick(settings)).stack)
    plain = memory("torch", "stack", PLAIN["torch"], settings)
    for one, other in zip(ours.sums, plain.sums, strict=True):
        assert_agree("stack: a gradient", one, other, rtol=TOLERANCE, floor=0.0)
    yield bytes_row(shown, f"{what}: plain, resident", ours.resident, "PyTorch", plain.resident)
    yield bytes_row(shown, f"{what}: plain, allocated", ours.allocated, "PyTorch", plain.allocated)
    found = memory("torch", "stack", ("checkpoint", None), settings)
    label, peer = f"{what}: PyTorch's `checkpoint` of each block", "PyTorch, plain"
    yield bytes_row(shown, f"{label}, allocated", found.allocated, peer, plain.allocated)
    yield bytes_row(shown, f"{label}, resident", found.resident, peer, plain.resident)
    ways: list[Way] = [PLAIN["torch"], ("checkpoint", None)]
    unbounded, bounded = seconds("torch", "stack", ways, settings)
    yield from time_rows(shown, label, bounded, peer, unbounded)
