"""Pictures of graphs: DOT for Graphviz, and a page of HTML that needs nothing else.

Both have a box for each input, node and return, and draw graphs inside nodes as scopes. The page
also makes a scope of neighbouring nodes that come from one line of code.
"""

from __future__ import annotations

import html
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gradtape.errors import ArgumentError, a_type
from gradtape.graph.ir import Graph, Node, Operand, Value
from gradtape.graph.text import (
    labelled_graphs,
    short_line,
    show_aval,
    show_node,
    show_operand,
    value_names,
)
from gradtape.io.atomic import replacing

_TEMPLATE = Path(__file__).with_name("graph_view.html")
# Scopes of pages with more boxes than this are closed at first.
_OPEN_BELOW = 150


class Box(NamedTuple):
    """One box of a picture.

    Attributes:
        parent: The number of the box it is inside of; -1 for none.
        kind: "input", "constant", "op", "output"; or a scope: "graph", or "line" of code.
        title: The op, or the name of the scope.
        note: What stands below the title: shapes and dtypes.
        text: The call in full, as `print(graph)` has it.
        types: Shapes and dtypes of the results, one in each line.
        line: The line of the user's code, without folders.
        from_: The numbers of the boxes it reads from.
    """

    parent: int
    kind: str
    title: str
    note: str = ""
    text: str = ""
    types: str = ""
    line: str = ""
    from_: tuple[int, ...] = ()


def to_html(graph: Graph, path: str | os.PathLike[str] | None = None) -> str:
    """Draw a graph as a page of HTML, to be opened in a browser.

    The page can be moved, zoomed and searched; scopes can be opened and closed. A scope is a graph
    inside a node, such as the body of a loop, or neighbouring nodes from one line of code. The page
    is one file without references to others, and makes no connections.

    Args:
        graph: The graph.
        path: The file to write the page to, if any; it is replaced as a whole.

    Returns:
        The page.

    Raises:
        OSError: The file cannot be written.

    >>> graph = gt.graph.make_graph(lambda x: np.tanh(x) * 2.0)(np.ones(3))
    >>> page = gt.graph.to_html(graph)
    >>> page.startswith("<!DOCTYPE html>"), "tanh" in page
    (True, True)
    """
    boxes = _boxes(_graph(graph, "to_html"), by_line=True)
    scopes = {box.parent for box in boxes}
    count = len(boxes) - sum(box.kind in ("graph", "line") for box in boxes)
    data = {
        "name": graph.name,
        "summary": f"{len(graph.inputs)} inputs, {count} boxes, {len(scopes) - 1} scopes",
        "items": [
            {
                **{key.rstrip("_"): value for key, value in box._asdict().items()},
                "open": count <= _OPEN_BELOW,
            }
            for box in boxes
        ],
    }
    # Inside of a script, only these could end it or begin a comment.
    text = json.dumps(data, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    before, after = _TEMPLATE.read_text(encoding="utf-8").split("{{data}}")
    page = before.replace("{{title}}", html.escape(graph.name)) + text + after
    if path is not None:
        with replacing(path) as temporary:
            Path(temporary).write_bytes(page.encode("utf-8", "replace"))
    return page


def to_dot(graph: Graph) -> str:
    r"""Describe a graph in DOT, the language of Graphviz.

    Args:
        graph: The graph.

    Returns:
        The text, for `dot -Tsvg`. Graphs inside nodes are clusters.

    >>> print(gt.graph.to_dot(gt.graph.make_graph(np.sin)(np.ones(3))))
    digraph "sin" {
      node [shape=box, fontname=monospace];
      n0 [label="%0\nfloat64[3]", style=rounded];
      n1 [label="sin(%0)\n%1: float64[3]"];
      n2 [label="return %1\nfloat64[3]", style=bold];
      n0 -> n1;
      n1 -> n2;
    }
    """
    boxes = _boxes(_graph(graph, "to_dot"), by_line=False)
    inside: dict[int, list[int]] = {}
    for number, box in enumerate(boxes):
        inside.setdefault(box.parent, []).append(number)
    lines = [f"digraph {_quoted(graph.name)} {{", "  node [shape=box, fontname=monospace];"]
    lines += _dot_boxes(boxes, inside)
    for number, box in enumerate(boxes):
        lines += [f"  n{source} -> n{number};" for source in dict.fromkeys(box.from_)]
        if box.kind == "graph":
            first = inside[number][0]  # a graph has a return at least
            lines.append(f"  n{box.parent} -> n{first} [style=dashed, arrowhead=none];")
    return "\n".join([*lines, "}"])


def _dot_boxes(boxes: list[Box], inside: dict[int, list[int]]) -> Iterator[str]:
    """The lines of all boxes; clusters are closed after what is in them."""
    styles = {"input": ", style=rounded", "constant": ", style=rounded", "output": ", style=bold"}
    pending: list[int | None] = list(reversed(inside[-1]))
    indent = "  "
    while pending:
        number = pending.pop()
        if number is None:
            indent = indent[:-2]
            yield f"{indent}}}"
            continue
        box = boxes[number]
        if box.kind == "graph":
            yield f"{indent}subgraph cluster_{number} {{"
            indent += "  "
            yield f"{indent}label={_quoted(box.title)};"
            pending += [None, *reversed(inside[number])]
            continue
        call = box.text.partition(" = ")[2] if box.kind in ("op", "constant") else box.title
        shown = "\n".join(filter(None, [call, box.types]))
        yield f"{indent}n{number} [label={_quoted(shown)}{styles.get(box.kind, '')}];"
        pending += reversed(inside.get(number, []))


def _quoted(text: str) -> str:
    """A string of DOT: backslashes would begin an escape, and control characters end a line."""
    plain = "".join(
        character if character.isprintable() or character == "\n" else "�" for character in text
    )
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _graph(graph: Any, function: str) -> Graph:
    if not isinstance(graph, Graph):
        raise ArgumentError(
            f"{function}: got {a_type(graph)}, expected a graph; use gt.graph.make_graph"
        )
    return graph


# ---- boxes --------------------------------------------------------------------------------------


def _boxes(graph: Graph, *, by_line: bool) -> list[Box]:
    """The boxes of a picture, those of each scope in an order in which they can run.

    A graph that is in several nodes is drawn in the first of them.
    """
    boxes: list[Box] = []
    drawn = {graph}
    pending: list[tuple[Graph, int]] = [(graph, -1)]
    while pending:
        one, scope = pending.pop()
        for node, number in _add(boxes, one, scope, by_line=by_line):
            for label, inner in labelled_graphs(node):
                if inner not in drawn:
                    drawn.add(inner)
                    title = f"{label}: {inner.name}"
                    boxes.append(Box(number, "graph", title, f"{len(inner.nodes)} ops", title))
                    pending.append((inner, len(boxes) - 1))
    return boxes


def _add(boxes: list[Box], graph: Graph, scope: int, *, by_line: bool) -> list[tuple[Node, int]]:
    """Add the boxes of one graph; returns the nodes that have graphs inside, and their boxes."""
    names = value_names(graph)
    makers: dict[Value, int] = {}

    def add(box: Box, *values: Value) -> int:
        boxes.append(box)
        makers.update(dict.fromkeys(values, len(boxes) - 1))
        return len(boxes) - 1

    def read(operands: tuple[Operand, ...]) -> tuple[int, ...]:
        return tuple([makers[x] for x in operands if isinstance(x, Value) and x in makers])

    for value in graph.inputs:
        name, kind = names[value], show_aval(value.aval)
        add(Box(scope, "input", name, kind, f"{name}: {kind}", kind), value)
    found = []
    for line, run in itertools.groupby(graph.nodes, lambda node: node.line):
        nodes, inside = list(run), scope
        if by_line and line and len(nodes) > 1:
            title = short_line(line)
            inside = add(Box(scope, "line", title, f"{len(nodes)} ops", title, "", title))
        for node in nodes:
            number = add(_box_of(node, names, inside, read(node.operands)), *node.outputs)
            if node.graphs():
                found.append((node, number))
    text = f"return {', '.join(show_operand(output, names) for output in graph.outputs)}"
    types = "\n".join(show_aval(output.aval) for output in graph.outputs)
    add(Box(scope, "output", text, types.replace("\n", ", "), text, types, "", read(graph.outputs)))
    return found


def _box_of(node: Node, names: dict[Value, str], scope: int, from_: tuple[int, ...]) -> Box:
    types = [f"{names[value]}: {show_aval(value.aval)}" for value in node.outputs]
    return Box(
        scope,
        "op" if node.operands else "constant",
        node.op.name,
        ", ".join(types),
        show_node(node, names).partition("    # ")[0],
        "\n".join(types),
        short_line(node.line),
        from_,
    )
