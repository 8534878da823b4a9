"""gradtape against itself as it was: `python -m benchmarks.before COMMIT [--only TEXT] [--quick]`.

The sources of the commit are put into a folder of their own. Each side runs in processes of its
own, which take turns and are started afresh several times, since how fast a process is depends on
where its memory lies. The programs are those of this checkout; what a side cannot run is left out.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

from benchmarks.before_cases import PROGRAMS
from benchmarks.harness import Settings
from benchmarks.op_table import LEAST_BATCHES, THREADS
from benchmarks.report import quantity
from benchmarks.worker import ROOT, Worker
from gradtape.tools.statistics import Spread, geometric_mean, median

NOW, BEFORE = "now", "before"
WORKER = "benchmarks.before_worker"
SLOWER = 1.1
"""What is slower by this factor is told apart, if nearly all turns agree that it is slower."""

Seconds = dict[str, dict[str, list[float]]]


def main() -> int:
    """Compare and print a line per program, the slowest last; nothing is held to a bar."""
    args = _arguments()
    settings = Settings.quick() if args.quick else Settings()
    names = [name for name in PROGRAMS if any(text in name for text in args.only or ("",))]
    with tempfile.TemporaryDirectory() as folder:
        _export(args.commit, Path(folder))
        seconds = _measure(names, {NOW: ROOT, BEFORE: Path(folder)}, settings)
    _report(seconds)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.before", description=__doc__)
    parser.add_argument("commit", help="a commit of this repository")
    parser.add_argument("--only", action="append", metavar="TEXT", help="programs named like it")
    parser.add_argument("--quick", action="store_true", help="short and rough")
    return parser.parse_args()


def _export(commit: str, folder: Path) -> None:
    """Put the sources of a commit into a folder."""
    command = ["git", "archive", "--format=tar", commit, "src"]
    packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


def _measure(names: Sequence[str], trees: dict[str, Path], settings: Settings) -> Seconds:
    """Time programs of both sides in turns, again with fresh processes."""
    threads = min(THREADS, len(os.sched_getaffinity(0)))
    env = {side: {"PYTHONPATH": str(tree / "src")} for side, tree in trees.items()}
    seconds: Seconds = {name: {side: [] for side in trees} for name in names}
    turn = {"do": "turn", "seconds": settings.turn_seconds, "least": LEAST_BATCHES}
    rounds = max(settings.processes.values())
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}: {len(seconds)} programs", flush=True)
        with (
            Worker(WORKER, NOW, threads, env[NOW]) as now,
            Worker(WORKER, BEFORE, threads, env[BEFORE]) as before,
        ):
            workers = {NOW: now, BEFORE: before}
            for name in list(seconds):
                if failed := _prepare(name, workers):
                    print(f"left out: {name}: {failed}", flush=True)
                    del seconds[name]
                    continue
                order = list(workers)
                for _ in range(settings.turns):
                    order.reverse()
                    for side in order:
                        seconds[name][side].append(median(workers[side].ask(turn)["batches"]))
    return seconds


def _prepare(name: str, workers: dict[str, Worker]) -> str | None:
    """Make a program on both sides; say why if one cannot."""
    for side, worker in workers.items():
        if failed := worker.ask({"do": "prepare", "name": name}).get("failed"):
            return f"{side}: {failed}"
    return None


def _report(seconds: Seconds) -> None:
    ratios = {name: Spread.of_ratio(each[NOW], each[BEFORE]) for name, each in seconds.items()}
    for name in sorted(ratios, key=lambda name: ratios[name].median):
        now, before = (quantity(Spread.of(seconds[name][s]).median, "s") for s in (NOW, BEFORE))
        ratio = ratios[name]
        spread = f"({ratio.low:.2f}–{ratio.high:.2f})"
        print(f"{name:<76} {before:>8} → {now:>8}  {ratio.median:.2f} {spread}")
    for line in _summary(list(ratios.values())):
        print(line)


def _summary(ratios: Sequence[Spread]) -> Iterator[str]:
    mean = geometric_mean([ratio.median for ratio in ratios])
    slower = sum(ratio.median > SLOWER and ratio.low > 1 for ratio in ratios)
    faster = sum(ratio.median < 1 / SLOWER and ratio.high < 1 for ratio in ratios)
    yield f"{len(ratios)} programs, geometric mean {mean:.3f} of the time before"
    yield f"faster by more than {SLOWER - 1:.0%} in nearly all turns: {faster}; slower: {slower}"


if __name__ == "__main__":
    sys.exit(main())
