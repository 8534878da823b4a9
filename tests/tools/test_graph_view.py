"""Pictures of graphs: what is in them, and that names from outside stay text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError
from gradtape.graph.ir import Graph, Node
from nested_graphs import CHOICE, LOOP, around, deep, step

ONES = np.ones(3)
HOSTILE = "</script><script>alert(1)</script><!-- {{data}} {{title}} & \" ' \\ \u2028 \n"


def graph_of(function: Callable[..., Any], *args: Any) -> Graph:
    return gt.graph.make_graph(function)(*(args or (ONES,)))  # type: ignore[no-any-return]


class Page(HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.tags[-1][0] if self.tags else "", []).append(data)


def items_of(page: str) -> list[dict[str, Any]]:
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    return json.loads(data[1])["items"]  # type: ignore[no-any-return]


def by_title(items: list[dict[str, Any]], title: str) -> dict[str, Any]:
    (found,) = [item for item in items if item["title"] == title]
    return found


# ---- pages --------------------------------------------------------------------------------------


def test_boxes_have_what_the_text_has() -> None:
    weights = np.arange(3.0)
    graph = graph_of(lambda x: np.sum(np.tanh(x) * weights))
    items = items_of(gt.graph.to_html(graph))
    assert {item["kind"] for item in items} == {"input", "constant", "op", "output", "line"}
    tanh = by_title(items, "tanh")
    assert tanh["text"] == "%2: float64[3] = tanh(%0)"
    assert tanh["types"] == "%2: float64[3]"
    assert re.fullmatch(r"test_graph_view\.py:\d+", tanh["line"])
    product = by_title(items, "multiply")
    assert [items[n]["title"] for n in product["from"]] == ["tanh", "constant"]
    assert [items[n]["title"] for n in by_title(items, "return %4")["from"]] == ["sum"]
    texts = {item["text"] for item in items}
    assert all(line.strip().partition("    # ")[0] in texts for line in str(graph).split("\n")[1:])


def test_nodes_of_one_line_are_a_scope() -> None:
    def function(x: Any) -> Any:
        y = np.sin(x) * 2.0
        return np.cos(y)

    items = items_of(gt.graph.to_html(graph_of(function)))
    (scope,) = [n for n, item in enumerate(items) if item["kind"] == "line"]
    assert {item["title"] for item in items if item["parent"] == scope} == {"sin", "multiply"}
    assert by_title(items, "cos")["parent"] == -1
    assert items[scope]["note"] == "2 ops"


def test_nested_graphs_are_scopes_in_their_node() -> None:
    body = around(CHOICE, "inner", branches=(step(), step(3.0)))
    items = items_of(gt.graph.to_html(around(LOOP, body=body, length=4)))
    loop = items.index(by_title(items, "loop"))
    scope = by_title(items, "body: inner")
    assert (scope["parent"], scope["kind"]) == (loop, "graph")
    choice = by_title(items, "choice")
    assert items[choice["parent"]] is scope
    branches = [item for item in items if item["title"].startswith("branches[")]
    assert [items[item["parent"]] for item in branches] == [choice, choice]
    # Every box reads only boxes of its own graph.
    for item in items:
        assert all(
            graph_around(items, n) == graph_around(items, items.index(item)) for n in item["from"]
        )


def graph_around(items: list[dict[str, Any]], number: int) -> int:
    while number >= 0 and (items[number]["parent"] < 0 or items[number]["kind"] != "graph"):
        number = items[number]["parent"]
        if number >= 0 and items[number]["kind"] == "graph":
            return number
    return -1


def test_shared_graphs_are_drawn_once() -> None:
    items = items_of(gt.graph.to_html(deep(50, copies=2)))
    assert sum(item["title"] == "choice" for item in items) == 50
    assert gt.graph.to_dot(deep(3000)).count("subgraph cluster_") == 3000


def test_a_large_graph_begins_with_closed_scopes() -> None:
    def function(x: Any) -> Any:
        for _ in range(250):
            y = np.sin(x) * x + np.cos(x) / (1.0 + x)
            x = (y + x) * 0.5
        return x

    graph = graph_of(function)
    assert len(graph.nodes) >= 2000
    page = gt.graph.to_html(graph)
    items = items_of(page)
    assert not any(item["open"] for item in items)
    # What is seen at first are the scopes of lines: each turn of the loop has two.
    assert sum(item["parent"] < 0 for item in items) == 250 * 2 + 2
    assert len(page) < 1_000_000
    assert all(item["open"] for item in items_of(gt.graph.to_html(step())))


def test_the_page_needs_nothing_else() -> None:
    page = Page(gt.graph.to_html(step()))
    for _, attributes in page.tags:
        assert not {"src", "href", "srcset", "action"} & set(attributes)
    policy = next(a for tag, a in page.tags if "http-equiv" in a)["content"]
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    text = gt.graph.to_html(step())
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"innerHTML|outerHTML|document\.write|eval\(|@import|url\(", text)


def test_names_from_outside_stay_text() -> None:
    inner = step()
    body = Graph(HOSTILE, inner.inputs, inner.nodes, inner.outputs)
    graph = around(LOOP, HOSTILE, body=body, length=HOSTILE)
    graph.nodes[0].line = f"/home/{HOSTILE}/x.py:3"
    text = gt.graph.to_html(graph)
    page, plain = Page(text), Page(gt.graph.to_html(step()))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert "".join(page.texts["title"]).strip().startswith("</script><script>alert(1)")
    items = items_of(text)
    assert by_title(items, f"body: {HOSTILE}")["kind"] == "graph"
    assert "alert(1)</script>" in by_title(items, "loop")["text"]


def test_the_page_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "graph.html"
    page = gt.graph.to_html(step(), path)
    assert path.read_text(encoding="utf-8") == page
    assert [one.name for one in tmp_path.iterdir()] == ["graph.html"]
    lonely = around(LOOP, "\ud800", body=step(), length=1)  # no character at all
    gt.graph.to_html(lonely, path)
    assert "<title>?</title>" in path.read_text(encoding="utf-8")


def test_only_graphs_are_drawn() -> None:
    with pytest.raises(ArgumentError, match="to_html: got a function, expected a graph"):
        gt.graph.to_html(gt.sum)
    with pytest.raises(ArgumentError, match="to_dot: got a float, expected a graph"):
        gt.graph.to_dot(1.0)


# ---- DOT ----------------------------------------------------------------------------------------


def test_dot_of_nested_graphs() -> None:
    text = gt.graph.to_dot(around(LOOP, body=step(), length=4))
    assert text.splitlines() == [
        'digraph "outer" {',
        "  node [shape=box, fontname=monospace];",
        r'  n0 [label="%0\nfloat64[3]", style=rounded];',
        r'  n1 [label="loop(%0, body=<<lambda>>, length=4)\n%1: float64[3]"];',
        "  subgraph cluster_3 {",
        '    label="body: <lambda>";',
        r'    n4 [label="%0\nfloat64[3]", style=rounded];',
        r'    n5 [label="sin(%0)\n%1: float64[3]"];',
        r'    n6 [label="multiply(%1, 2.0)\n%2: float64[3]"];',
        r'    n7 [label="return %2\nfloat64[3]", style=bold];',
        "  }",
        r'  n2 [label="return %1\nfloat64[3]", style=bold];',
        "  n0 -> n1;",
        "  n1 -> n2;",
        "  n1 -> n4 [style=dashed, arrowhead=none];",
        "  n4 -> n5;",
        "  n5 -> n6;",
        "  n6 -> n7;",
        "}",
    ]


def test_dot_quotes_names() -> None:
    graph = around(LOOP, 'a"] b [\\" \\', body=step(), length='x"; } evil {')
    for line in gt.graph.to_dot(graph).splitlines():
        # Without its strings, a line is made of what we write.
        rest = re.sub(r'"(?:[^"\\]|\\.)*"', "S", line)
        assert re.fullmatch(r"[\w {}\[\]=,;>-]*", rest), line
        assert "evil" not in rest


def test_edges_are_those_of_the_graph() -> None:
    graph = graph_of(lambda x, y: (x + x * y, np.split(x, 3)), ONES, ONES)
    edges = set(re.findall(r"n(\d+) -> n(\d+);", gt.graph.to_dot(graph)))
    boxes: dict[Any, int] = {value: n for n, value in enumerate(graph.inputs)}
    for n, node in enumerate(graph.nodes, len(boxes)):
        boxes.update(dict.fromkeys(node.outputs, n))
    expected = {(boxes[x], boxes[node.outputs[0]]) for node in graph.nodes for x in values(node)}
    last = len(graph.inputs) + len(graph.nodes)
    expected |= {(boxes[x], last) for x in graph.outputs}
    assert edges == {(str(a), str(b)) for a, b in expected}


def values(node: Node) -> list[Any]:
    return [x for x in node.operands if not hasattr(x, "value")]
