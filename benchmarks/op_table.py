"""Every operation, forward and backward, against PyTorch at three sizes, on all cores.

Each side runs in a process of its own; they take turns. Times are those on the wall.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness import Settings, Spread, assert_agree
from benchmarks.op_cases import BAR, CASES, SIZES, OpCase
from benchmarks.op_exceptions import SLOWER
from benchmarks.result import OURS, Row
from benchmarks.worker import Worker

WORKER, PEER = "benchmarks.op_worker", "torch"
LEAST_BATCHES = 3
THREADS = 2


def run(settings: Settings) -> Iterator[Row]:
    """Time all operations; those that miss the bar and are expected to have none."""
    threads = min(THREADS, len(os.sched_getaffinity(0)))
    with (
        tempfile.TemporaryDirectory() as folder,
        Worker(WORKER, OURS, threads, {}) as ours,
        Worker(WORKER, PEER, threads, {}) as peer,
    ):
        for case in CASES.values():
            yield _row(case, {OURS: ours, PEER: peer}, Path(folder), settings, threads)


def _row(
    case: OpCase, sides: dict[str, Worker], folder: Path, settings: Settings, threads: int
) -> Row:
    for key, worker in sides.items():
        path = str(folder / f"{key}.npz")
        _ask(worker, key, {"do": "prepare", "case": case.name, "result": path})
    _compare(case, folder)
    seconds: dict[str, list[float]] = {key: [] for key in sides}
    order = list(sides)
    turn = {"do": "turn", "seconds": settings.turn_seconds, "least": LEAST_BATCHES}
    for _ in range(settings.turns):
        order.reverse()
        for key in order:
            seconds[key].append(_ask(sides[key], key, turn)["seconds"])
    large = case.size == SIZES[-1]
    return Row(
        name="op",
        what=f"`{case.ours}`, {case.dtype}, {case.size:,}",
        ours=Spread.of(seconds[OURS]).median,
        peer_name="PyTorch eager",
        peer=Spread.of(seconds[PEER]).median,
        ratio=Spread.of_ratio(seconds[OURS], seconds[PEER]),
        bar=BAR if large and case.ours not in SLOWER else None,
        threads=threads,
    )


def _ask(worker: Worker, key: str, request: dict[str, object]) -> dict[str, float]:
    answer = worker.ask(request)
    if failed := answer.get("failed"):
        raise RuntimeError(f"{key}, {request.get('case', 'turn')}: {failed}")
    return answer


def _compare(case: OpCase, folder: Path) -> None:
    """Both sides have the same gradients, up to what the order of long sums makes of rounding."""
    rtol = 1e-3 if case.dtype == "float32" else 1e-8
    ours, theirs = (np.load(folder / f"{key}.npz") for key in (OURS, PEER))
    for name in case.arrays():
        assert_agree(f"{case.name}, {name}", ours[name], theirs[name], rtol=rtol, floor=0.0)
