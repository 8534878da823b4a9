"""How much memory the reverse of a long `while_loop` takes, for each way to say what it keeps.

Native memory is seen by the system alone, so every figure is that of a fresh process: by how much
the peak of its resident memory during the call exceeds what was resident before. The peer is the
memory of the states that the loop has to keep: all of them, or one of 100 and those of one stretch.
"""

from collections.abc import Iterator

import gradtape as gt
from benchmarks.harness import Settings
from benchmarks.loop_memory_worker import ITERATIONS, SIZE
from benchmarks.result import NotRun, Row
from benchmarks.worker import answer_of
from gradtape.tools.peak_memory import PEAK_RESET
from gradtape.tools.statistics import Spread

NAME = "loop memory"
BYTES = 8 * SIZE
STRETCH = 100
"""Iterations between two states that are kept: the square root of all of them."""
KEPT = {"all": ITERATIONS, "sqrt": 2 * STRETCH, str(STRETCH): 2 * STRETCH}
"""How many states are held at once for each value of `save`."""
BAR = 3.0
"""Intermediate values of the body and buffers that grow have to fit, too."""
PROCESSES = 3


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Measure the peak for every value of `save`."""
    if why := _obstacle():
        yield NotRun(NAME, gt.__name__, why)
        return
    for save, states in KEPT.items():
        yield row_of(save, states, [_peak(save) for _ in range(min(settings.rounds, PROCESSES))])


def row_of(save: str, states: int, peaks: list[int]) -> Row:
    """Make the row of a value of `save`."""
    expected = states * BYTES
    shown = save if save.isdigit() else f'"{save}"'
    return Row(
        name=NAME,
        what=f"gradient of a `while_loop` of {ITERATIONS:,} iterations, {SIZE:,} numbers, "
        f"`save={shown}`: memory at the peak",
        ours=Spread.of(peaks).median,
        peer_name=f"{states:,} states",
        peer=expected,
        ratio=Spread.of([peak / expected for peak in peaks]),
        bar=BAR,
        unit="bytes",
    )


def _obstacle() -> str:
    if not hasattr(gt, "while_loop"):
        return "this gradtape has no while_loop"
    if not PEAK_RESET.exists():
        return f"{PEAK_RESET} is needed, which is Linux's"
    return ""


def _peak(save: str) -> int:
    return int(answer_of("benchmarks.loop_memory_worker", save)["bytes"])
