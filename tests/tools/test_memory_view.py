"""Timelines in files: valid traces, and a page that nothing in it can break out of."""

from __future__ import annotations

import json
import os
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.tools import memory_view

N = 1 << 14
EVIL = '</script><img src=x onerror="alert(1)"> & "quoted" \u2028 é'


@pytest.fixture
def profiler() -> Any:
    x = gt.tensor(np.linspace(0.0, 1.0, N), requires_grad=True)
    with gt.GradientMemoryProfiler() as made:
        made.record_checkpoint("begin")
        y = gt.tanh(x) * x
        gt.sum(y).backward()
        made.record_checkpoint(EVIL)
    return made


class Page(HTMLParser):
    """The tags of a page, and the text of the element that has the data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.data = ""
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._inside = ("id", "data") in attrs

    def handle_data(self, data: str) -> None:
        self.data += data if self._inside else ""


def test_page_is_one_file_that_shows_what_was_measured(profiler, tmp_path):
    path = tmp_path / "memory.html"
    profiler.export_html(path)
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    data = json.loads(page.data)
    assert [point["op"] for point in data["points"]] == [
        sample.op for sample in profiler.timeline()
    ]
    assert data["totals"]["peak"] == profiler.peak_bytes()
    assert [row["name"] for row in data["checkpoints"]] == ["begin", EVIL]
    assert len(data["ops"]) == len(profiler.by_op())
    assert {row["op"] for row in data["ops"]} == {"tanh", "multiply", "sum"}
    assert all(row["line"].startswith("test_memory_view.py:") for row in data["lines"])
    assert not {"link", "img", "iframe"} & set(page.tags)
    assert not {"src", "href"} & {name for name, _ in page.attributes}
    assert "http" not in text.replace("http-equiv", "")
    assert EVIL not in text


def test_layers_add_up_to_what_is_in_use(profiler, tmp_path):
    path = tmp_path / "memory.html"
    profiler.export_html(path)
    data = json.loads(Page(path.read_text(encoding="utf-8")).data)
    assert data["layers"][-2:] == ["other ops", "outside of ops"]
    for point in data["points"]:
        assert min(point["layers"]) >= 0
        assert sum(point["layers"]) >= point["bytes"]
    first = dict(zip(data["layers"], data["points"][0]["layers"], strict=True))
    assert first["tanh"] == 8 * N


def test_many_points_and_many_ops_are_summed_up(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_view, "_MOST_POINTS", 20)
    monkeypatch.setattr(memory_view, "_MOST_SERIES", 2)
    x = gt.tensor(np.linspace(0.1, 1.0, N))
    functions = (gt.exp, gt.sin, gt.cos, gt.sqrt)
    with gt.GradientMemoryProfiler() as profiler:
        kept = [function(x) for _ in range(30) for function in functions]
    path = tmp_path / "memory.html"
    profiler.export_html(path)
    data = json.loads(Page(path.read_text(encoding="utf-8")).data)
    assert len(data["points"]) == 20
    assert len(data["layers"]) == 4
    assert data["points"][-1]["layers"][2] == 2 * 30 * 8 * N
    assert len(kept) == 120


def test_trace_is_what_chrome_reads(profiler, tmp_path):
    path = tmp_path / "trace.json"
    profiler.export_chrome_trace(path)
    trace = json.loads(path.read_text(encoding="utf-8"))
    events = trace["traceEvents"]
    assert all({"name", "ph", "pid", "tid"} <= event.keys() for event in events)
    complete = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in complete] == [sample.op for sample in profiler.timeline()]
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in complete)
    assert {event["cat"] for event in complete} == {"forward", "backward"}
    counters = [event for event in events if event["name"] == "memory"]
    assert [event["args"]["in use"] for event in counters] == [
        sample.bytes for sample in profiler.timeline()
    ]
    marks = [event["name"] for event in events if event["ph"] == "i"]
    assert marks == ["begin", EVIL]


@pytest.mark.parametrize("export", ["export_html", "export_chrome_trace"])
def test_file_is_replaced_as_a_whole(profiler, tmp_path, export):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(OSError, match="missing"):
        getattr(profiler, export)(tmp_path / "missing" / "file")
    getattr(profiler, export)(path)
    assert len(path.read_text(encoding="utf-8")) > 100
    assert os.listdir(tmp_path) == ["file"]


def test_nothing_measured_is_an_empty_plot(tmp_path):
    with gt.GradientMemoryProfiler() as profiler:
        pass
    profiler.export_html(tmp_path / "page.html")
    profiler.export_chrome_trace(tmp_path / "trace.json")
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert json.loads(page.data)["points"] == []
