"""Run the benchmarks: `python -m benchmarks [--only NAME] [--quick] [--out DIR]`."""

import argparse
import gc
import sys
import traceback
from pathlib import Path

import torch

from benchmarks import THREADS, machine, report
from benchmarks.harness import Settings
from benchmarks.registry import BENCHMARKS
from benchmarks.result import NotRun, Row


def main() -> int:
    """Run what was asked for and write the report.

    Returns:
        0, or 1 if a benchmark failed (gradients that differ, an exception). Missing a bar is no
        failure: the table says so.
    """
    args = _arguments()
    settings = Settings.quick() if args.quick else Settings()
    torch.set_num_threads(THREADS)
    facts = machine.describe()
    gc.collect()
    gc.freeze()  # what the imports made is left out of every later collection, on every side
    rows: list[Row] = []
    not_run: list[NotRun] = []
    failures: dict[str, str] = {}
    for name in args.only or BENCHMARKS:
        try:
            for result in BENCHMARKS[name](settings):
                if isinstance(result, NotRun):
                    not_run.append(result)
                    print(f"{result.name}: {result.side} not run: {result.why}", flush=True)
                    continue
                rows.append(result)
                if not result.detail:
                    print(report.line(result), flush=True)
        except Exception as error:
            traceback.print_exc()
            failures[name] = f"{type(error).__name__}: {error}"
    report.write(args.out, rows, not_run, failures, facts, settings)
    judged = [row for row in rows if row.met is not None and not row.detail]
    print(f"{sum(row.met is True for row in judged)} of {len(judged)} bars met; see {args.out}")
    return 1 if failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS)
    )
    parser.add_argument("--quick", action="store_true", help="short and rough")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
