"""How much memory a gradient takes at its peak, if it is the last use of what was recorded.

The backward pass makes a gradient per layer, and frees what the layer has saved. So the peak is
held against what was saved; the memory of the gradients must not come on top of it. Every figure is
that of a fresh process, as in `benchmarks.loop_memory`.
"""

from collections.abc import Iterator

import gradtape as gt
from benchmarks.backward_peak_worker import LAYERS, SIZE, WAYS
from benchmarks.harness import Settings
from benchmarks.result import NotRun, Row
from benchmarks.worker import answer_of
from gradtape.tools.peak_memory import PEAK_RESET
from gradtape.tools.statistics import Spread

NAME = "backward peak"
SAVED = (2 * LAYERS - 1) * 8 * SIZE
"""Bytes: each product keeps its input and each sine its own; the first input is the user's."""
BAR = 1.05
"""A few cotangents are alive at a time, and a hundred arrays were saved."""
PROCESSES = 3


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Measure the peak of every way to differentiate once."""
    if not PEAK_RESET.exists():
        yield NotRun(NAME, gt.__name__, f"{PEAK_RESET} is needed, which is Linux's")
        return
    for way in WAYS:
        yield row_of(way, [_peak(way) for _ in range(min(settings.rounds, PROCESSES))])


def row_of(way: str, peaks: list[int]) -> Row:
    """Make the row of a way."""
    return Row(
        name=NAME,
        what=f"gradient of {LAYERS} layers of {SIZE:,} numbers, with as many weights, by `{way}`: "
        "memory at the peak",
        ours=Spread.of(peaks).median,
        peer_name="what was saved",
        peer=SAVED,
        ratio=Spread.of([peak / SAVED for peak in peaks]),
        bar=BAR,
        unit="bytes",
    )


def _peak(way: str) -> int:
    return int(answer_of("benchmarks.backward_peak_worker", way)["bytes"])
