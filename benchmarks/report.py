"""Rows as JSON and as Markdown."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.harness import Settings
from benchmarks.result import Row

HEADER = (
    "| benchmark | what | ours | peer | peer's | ratio | spread | bar | met |",
    "|---|---|--:|---|--:|--:|:-:|--:|:-:|",
)
NOTE = (
    "Ratio is ours / peer's, so smaller is better: the median over interleaved blocks of one "
    "process; spread is the 10th to 90th percentile. Times are processor time, each side in one "
    "thread, the garbage collector on (imports: time on the wall, fresh interpreters). Each "
    "benchmark checks that both sides compute the same gradients."
)


def write(
    folder: Path,
    rows: Sequence[Row],
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
        "failures": dict(failures),
    }
    (folder / "results.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    (folder / "results.md").write_text(markdown(rows, failures, machine))


def markdown(rows: Sequence[Row], failures: Mapping[str, str], machine: Mapping[str, str]) -> str:
    """Lay out the whole report."""
    lines = ["# Benchmarks", "", NOTE, "", *_table([r for r in rows if not r.detail])]
    details = [row for row in rows if row.detail]
    if details:
        lines += ["", "## In detail", "", *_table(details)]
    if failures:
        lines += ["", "## Failed", "", *(f"- {name}: {why}" for name, why in failures.items())]
    lines += ["", "## Machine", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in machine.items()]
    return "\n".join(lines) + "\n"


def line(row: Row) -> str:
    """Write a row as one line for the terminal."""
    mark = {None: "", True: "met", False: "MISSED"}[row.met]
    return (
        f"{row.name:<22} {quantity(row.ours, row.unit):>10}   "
        f"{quantity(row.peer, row.unit):>10} {row.peer_name:<24} "
        f"ratio {row.ratio.median:6.2f} ({row.ratio.low:.2f}–{row.ratio.high:.2f})  "
        f"{_bar(row):>7} {mark}"
    )


def quantity(value: float, unit: str) -> str:
    """Write a time or a number of bytes in a unit that suits it, a count with its unit."""
    if unit == "bytes":
        return f"{value / 1e3:,.1f} kB"
    if unit != "s":
        return f"{value:,.0f} {unit}"
    for factor, name in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1.0:
            return f"{value * factor:.3g} {name}"
    return f"{value * 1e9:.0f} ns"


def _table(rows: Sequence[Row]) -> list[str]:
    return [*HEADER, *map(_cells, rows)]


def _cells(row: Row) -> str:
    cells = (
        row.name,
        row.what,
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
    return "" if row.bar is None else f"≤ {row.bar:g}"
