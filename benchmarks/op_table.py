"""Every operation, forward and backward, against PyTorch at three sizes, on all cores.

Each side runs in a process of its own; they take turns. Times are those on the wall.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.agreement import assert_agree
from benchmarks.harness import Settings
from benchmarks.op_cases import CONVOLUTIONS, OPS, OpCase
from benchmarks.result import OURS, Row
from benchmarks.worker import Worker
from gradtape.tools.statistics import Spread, median

WORKER, PEER = "benchmarks.op_worker", "torch"
LEAST_BATCHES = 3
THREADS = 2


def run(settings: Settings) -> Iterator[Row]:
    """Time all operations; those that are known to miss the bar have none."""
    return _run(OPS, "PyTorch eager", settings)


def run_convolutions(settings: Settings) -> Iterator[Row]:
    """Time convolutions, normalizations, pooling and resizing; the first one has a bar."""
    return _run(CONVOLUTIONS, "PyTorch, channels last", settings)


def _run(cases: Sequence[OpCase], peer_name: str, settings: Settings) -> Iterator[Row]:
    threads = min(THREADS, len(os.sched_getaffinity(0)))
    with (
        tempfile.TemporaryDirectory() as folder,
        Worker(WORKER, OURS, threads, {}) as ours,
        Worker(WORKER, PEER, threads, {}) as peer,
    ):
        failed = []
        for case in cases:
            try:
                seconds = _seconds(case, {OURS: ours, PEER: peer}, Path(folder), settings)
            except (RuntimeError, AssertionError) as error:
                failed.append(str(error))
                continue
            yield Row(
                name=case.ours.replace("gt.", ""),
                what=f"`{case.ours}`, {case.dtype}, {case.size:,}",
                ours=Spread.of(seconds[OURS]).median,
                peer_name=peer_name,
                peer=Spread.of(seconds[PEER]).median,
                ratio=Spread.of_ratio(seconds[OURS], seconds[PEER]),
                bar=case.bar,
                threads=threads,
            )
    if failed:
        raise RuntimeError("; ".join(failed))


def _seconds(
    case: OpCase, sides: dict[str, Worker], folder: Path, settings: Settings
) -> dict[str, list[float]]:
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
            seconds[key].append(median(_ask(sides[key], key, turn)["batches"]))
    return seconds


def _ask(worker: Worker, key: str, request: dict[str, object]) -> dict[str, list[float]]:
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
