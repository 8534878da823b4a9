"""The peak of a training step with `backward(release=True)`, against PyTorch's.

PyTorch frees what an op kept as soon as the backward pass has used it, so both sides do the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.agreement import assert_agree
from benchmarks.harness import Settings
from benchmarks.memory_cases import Cases
from benchmarks.memory_request import PLAIN, Memory, Side, Way, is_quick, memory
from benchmarks.memory_rows import bytes_row
from benchmarks.result import Row

PROCESSES = 3
"""How much of its memory `malloc` gives back differs from process to process."""
NAMES = {"mlp": "memory of an MLP", "conv": "memory of a conv net"}
# float32, and sums that PyTorch forms in another order.
TOLERANCE = 1e-3
# tracemalloc counts the objects of Python, PyTorch's profiler not those of C++: some kilobytes.
BARS = {"resident": 1.0, "allocated": 1.001}


def run(settings: Settings) -> Iterator[Row]:
    """Measure both networks on both sides."""
    cases = Cases.of(quick=is_quick(settings))
    for name, shown in NAMES.items():
        ours = _middle("gradtape", name, ("release", None), settings)
        theirs = _middle("torch", name, PLAIN["torch"], settings)
        for one, other in zip(ours.sums, theirs.sums, strict=True):
            assert_agree(f"{name}: a gradient", one, other, rtol=TOLERANCE, floor=0.0)
        what = f"{getattr(cases, name)}: step with `release=True`"
        for kind, bar in BARS.items():
            one, other = getattr(ours, kind), getattr(theirs, kind)
            yield bytes_row(shown, f"{what}, {kind}", one, "PyTorch", other, bar)
        yield bytes_row(
            shown,
            f"{what}: held between forward and backward pass",
            ours.saved,
            "PyTorch",
            theirs.saved,
            detail=True,
        )


def _middle(side: Side, case: str, way: Way, settings: Settings) -> Memory:
    """Measure in several processes and take the one in the middle, by resident memory."""
    found = [memory(side, case, way, settings) for _ in range(min(settings.rounds, PROCESSES))]
    return sorted(found, key=lambda one: one.resident)[len(found) // 2]
