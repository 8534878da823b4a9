"""Convolutions, pooling and resizing, forward and backward, against PyTorch on all cores.

Each side runs in a process of its own; they take turns. Times are those on the wall.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.conv_worker import CASES, Case
from benchmarks.harness import Settings, Spread, assert_agree
from benchmarks.result import OURS, Row
from benchmarks.worker import Worker

WORKER, PEER = "benchmarks.conv_worker", "torch"
LEAST_BATCHES = 3
THREADS = 2
# Native kernels come with the compiler; until then a layer may cost three times PyTorch's.
BAR = 3.0


def run(settings: Settings) -> Iterator[Row]:
    """Time the operations; the first one is held to the bar."""
    threads = min(THREADS, len(os.sched_getaffinity(0)))
    with (
        tempfile.TemporaryDirectory() as folder,
        Worker(WORKER, OURS, threads, {}) as ours,
        Worker(WORKER, PEER, threads, {}) as peer,
    ):
        for number, case in enumerate(CASES):
            sides = {OURS: ours, PEER: peer}
            seconds = _times(number, case, sides, Path(folder), settings)
            yield Row(
                name="conv",
                what=f"`{case.text}`, x {'×'.join(map(str, case.image))}, float32",
                ours=Spread.of(seconds[OURS]).median,
                peer_name="PyTorch, channels last",
                peer=Spread.of(seconds[PEER]).median,
                ratio=Spread.of_ratio(seconds[OURS], seconds[PEER]),
                bar=BAR if number == 0 else None,
                threads=threads,
            )


def _times(
    number: int, case: Case, sides: dict[str, Worker], folder: Path, settings: Settings
) -> dict[str, list[float]]:
    for key, worker in sides.items():
        path = str(folder / f"{key}.npz")
        _ask(worker, key, {"do": "prepare", "case": number, "result": path})
    ours, theirs = (np.load(folder / f"{key}.npz") for key in (OURS, PEER))
    for name in case.arrays():
        assert_agree(f"{case.text}, {name}", ours[name], theirs[name], rtol=1e-3, floor=0.0)
    seconds: dict[str, list[float]] = {key: [] for key in sides}
    order = list(sides)
    turn = {"do": "turn", "seconds": settings.turn_seconds, "least": LEAST_BATCHES}
    for _ in range(settings.turns):
        order.reverse()
        for key in order:
            seconds[key].append(_ask(sides[key], key, turn)["seconds"])
    return seconds


def _ask(worker: Worker, key: str, request: dict[str, object]) -> dict[str, float]:
    answer = worker.ask(request)
    if failed := answer.get("failed"):
        raise RuntimeError(f"{key}, {request.get('case', 'turn')}: {failed}")
    return answer
