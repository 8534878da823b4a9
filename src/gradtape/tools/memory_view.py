"""Timelines of memory in files: Chrome's trace format, and a page of HTML that needs nothing else.

Both show memory over time, stacked by the op whose results hold it. Of ops that hold little, and of
points that are too close to tell apart, only the sum or the highest is shown.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gradtape.graph.text import short_line
from gradtape.io.atomic import replacing
from gradtape.tools.memory_figures import MemoryCheckpoint, MemoryUse
from gradtape.tools.memory_journal import Journal, Place, Sample

_TEMPLATE = Path(__file__).with_name("memory_view.html")
# Ops with a colour of their own, and points of the plot.
_MOST_SERIES, _MOST_POINTS = 8, 2000
_OTHERS, _OUTSIDE = "other ops", "outside of ops"


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write a file, which is replaced as a whole."""
    with replacing(path) as temporary:
        Path(temporary).write_bytes(text.encode("utf-8", "replace"))


# ---- what is shown ------------------------------------------------------------------------------


def _name(place: Place) -> str:
    return place.op if place.phase == "forward" else f"{place.op} backward"


def _held(samples: Sequence[Sample]) -> Iterator[dict[str, int]]:
    """At each sample, the bytes that results hold, by op; the dict is changed for the next one."""
    places: dict[Place, int] = {}
    names: dict[str, int] = {}
    for sample in samples:
        for place, held in sample.held.items():
            name = _name(place)
            names[name] = names.get(name, 0) + held - places.get(place, 0)
            places[place] = held
        yield names


def _series(samples: Sequence[Sample]) -> list[str]:
    """The ops that hold the most at some time, the largest first."""
    most: dict[str, int] = {}
    for names in _held(samples):
        for name, held in names.items():
            most[name] = max(most.get(name, 0), held)
    return sorted((name for name in most if most[name]), key=lambda name: -most[name])


def _layers(samples: Sequence[Sample]) -> tuple[list[str], list[list[int]]]:
    """The names of the layers of the plot, and the bytes of each of them at each sample."""
    every = _series(samples)
    shown = every[:_MOST_SERIES]
    layers = []
    for sample, names in zip(samples, _held(samples), strict=True):
        of_ops = [names.get(name, 0) for name in shown]
        others = sum(names.values()) - sum(of_ops)
        layers.append([*of_ops, others, max(0, sample.bytes - others - sum(of_ops))])
    return [*shown, _OTHERS, _OUTSIDE], layers


# ---- Chrome's trace format ----------------------------------------------------------------------


def chrome_trace(journal: Journal, checkpoints: Sequence[MemoryCheckpoint]) -> str:
    """The timeline as JSON: ops as events with a duration, memory as counters; times in µs."""
    common = {"pid": 1, "tid": 1}
    events: list[dict[str, Any]] = [
        {"name": "process_name", "ph": "M", **common, "args": {"name": "gradtape"}}
    ]
    samples = list(journal.samples)
    names, layers = _layers(samples)
    for sample, layer in zip(samples, layers, strict=True):
        begin, end = sample.begin * 1e6, sample.end * 1e6
        told = {"line": sample.place.line, "bytes": sample.bytes, "peak": sample.peak}
        what = {"name": sample.place.op, "cat": sample.place.phase, "args": told}
        events.append({"ph": "X", "ts": begin, "dur": end - begin, **common, **what})
        in_use = {"in use": sample.bytes}
        events.append({"name": "memory", "ph": "C", "ts": end, **common, "args": in_use})
        by_op = dict(zip(names, layer, strict=True))
        events.append({"name": "memory by op", "ph": "C", "ts": end, **common, "args": by_op})
    for checkpoint in checkpoints:
        told = {"bytes": checkpoint.bytes, "peak": checkpoint.peak}
        mark = {"name": checkpoint.name, "ph": "i", "s": "g", "ts": checkpoint.time * 1e6}
        events.append({**mark, **common, "args": told})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, separators=(",", ":"))


# ---- the page -----------------------------------------------------------------------------------


def page(
    journal: Journal,
    checkpoints: Sequence[MemoryCheckpoint],
    totals: Mapping[str, int],
    by_op: Sequence[MemoryUse],
    by_line: Sequence[MemoryUse],
) -> str:
    """A page of HTML: a plot with the op, the line and the layers at each point; tables."""
    samples = list(journal.samples)
    names, layers = _layers(samples)
    data = {
        "totals": totals,
        "layers": names,
        "points": [
            {
                "time": sample.end,
                "bytes": sample.bytes,
                "peak": sample.peak,
                "op": sample.place.op,
                "phase": sample.place.phase,
                "line": short_line(sample.place.line),
                "layers": layer,
            }
            for sample, layer in _thinned(list(zip(samples, layers, strict=True)))
        ],
        "checkpoints": [{"name": c.name, "time": c.time, "bytes": c.bytes} for c in checkpoints],
        "ops": [_use(use) for use in by_op],
        "lines": [_use(use) for use in by_line],
    }
    # Inside of a script, only these could end it or begin a comment.
    text = json.dumps(data, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    before, after = _TEMPLATE.read_text(encoding="utf-8").split("{{data}}")
    return before + text + after


def _use(use: MemoryUse) -> dict[str, Any]:
    return {**use._asdict(), "line": short_line(use.line)}


def _thinned(points: list[tuple[Sample, list[int]]]) -> list[tuple[Sample, list[int]]]:
    """At most so many points: of neighbours, the one with the highest peak."""
    together = -(-len(points) // _MOST_POINTS)
    if together <= 1:
        return points
    groups = (points[n : n + together] for n in range(0, len(points), together))
    return [max(group, key=lambda point: point[0].peak) for group in groups]
