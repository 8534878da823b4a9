"""Rows as JSON and as Markdown."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.harness import Settings
from benchmarks.result import NotRun, Row
from gradtape.tools.timing import duration

HEADER = (
    "| benchmark | what | ours | peer | peer's | ratio | spread | bar | met |",
    "|---|---|--:|---|--:|--:|:-:|--:|:-:|",
)
COMPILED_HEADER = (
    "| benchmark | what | threads | ours | peer | peer's | ratio | spread | bar | met |",
    "|---|---|--:|--:|---|--:|--:|:-:|--:|:-:|",
)
NOTE = (
    "Ratio is ours / peer's, so smaller is better: the median over interleaved blocks of one "
    "process; spread is the 10th to 90th percentile. Times are processor time, each side in one "
    "thread, the garbage collector on (imports: time on the wall, fresh interpreters). Each "
    "benchmark checks that both sides compute the same gradients."
)
COMPILED_NOTE = (
    "Ratio is peer's / ours, so larger is better. Every side runs in processes of its own, bound "
    "to as many cores as it has threads; they take turns, and everything is done again with fresh "
    "processes. Ratio and spread are the median and the 10th to 90th percentile over all turns. "
    "Times are those on the wall. All results are checked against NumPy's in float64. JAX and "
    "PyTorch have their arrays on the device; JAX's training steps donate their buffers and are "
    "waited for after 20 steps, its other results after every call."
)


def write(
    folder: Path,
    rows: Sequence[Row],
    not_run: Sequence[NotRun],
    failures: Mapping[str, str],
    machine: Mapping[str, str],
    settings: Settings,
) -> None:
    """Write `results.json` and `results.md` into a folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "machine": dict(machine),
        "settings": asdict(settings),
        "rows": [asdict(row) | {"met": row.met} for row in rows],
        "not run": [asdict(missing) for missing in not_run],
        "failures": dict(failures),
    }
    (folder / "results.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    (folder / "results.md").write_text(markdown(rows, not_run, failures, machine))


def markdown(
    rows: Sequence[Row],
    not_run: Sequence[NotRun],
    failures: Mapping[str, str],
    machine: Mapping[str, str],
) -> str:
    """Lay out the whole report."""
    eager = [row for row in rows if not row.detail and not row.speedup]
    lines = ["# Benchmarks", "", NOTE, "", *HEADER, *map(_cells, eager)]
    compiled = [row for row in rows if row.speedup]
    if compiled:
        lines += ["", "## Compiled", "", COMPILED_NOTE, "", *COMPILED_HEADER]
        lines += map(_cells, compiled)
    details = [row for row in rows if row.detail]
    if details:
        lines += ["", "## In detail", "", *HEADER, *map(_cells, details)]
    if not_run:
        lines += ["", "## Not run", ""]
        lines += [f"- {missing.name}, {missing.side}: {missing.why}" for missing in not_run]
    if failures:
        lines += ["", "## Failed", "", *(f"- {name}: {why}" for name, why in failures.items())]
    lines += ["", "## Machine", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in machine.items()]
    return "\n".join(lines) + "\n"


def line(row: Row) -> str:
    """Write a row as one line for the terminal."""
    mark = {None: "", True: "met", False: "MISSED"}[row.met]
    name = f"{row.name}, {row.threads}t" if row.speedup else row.name
    return (
        f"{name:<26} {quantity(row.ours, row.unit):>10}   "
        f"{quantity(row.peer, row.unit):>10} {row.peer_name:<32} "
        f"ratio {row.ratio.median:6.2f} ({row.ratio.low:.2f}–{row.ratio.high:.2f})  "
        f"{_bar(row):>7} {mark}"
    )


def quantity(value: float, unit: str) -> str:
    """Write a time or a number of bytes in a unit that suits it, a count with its unit."""
    if unit == "bytes":
        return f"{value / 1e3:,.1f} kB" if value < 1e7 else f"{value / 1e6:,.1f} MB"
    if unit != "s":
        return f"{value:,.0f} {unit}"
    return duration(value)


def _cells(row: Row) -> str:
    cells = (
        row.name,
        row.what,
        *((str(row.threads),) if row.speedup else ()),
        quantity(row.ours, row.unit),
        row.peer_name,
        quantity(row.peer, row.unit),
        f"**{row.ratio.median:.2f}**",
        f"{row.ratio.low:.2f}–{row.ratio.high:.2f}",
        _bar(row),
        {None: "", True: "yes", False: "**no**"}[row.met],
    )
    return f"| {' | '.join(cells)} |"


def _bar(row: Row) -> str:
    if row.bar is None:
        return ""
    return f"{'≥' if row.speedup else '≤'} {row.bar:g}"
