"""Graphs as text: one line per node, values numbered in the order in which they are made.

graph loss(%0: float64[3], %1: float64[])
  %2: float64[3] = multiply(%0, 2.0)    # model.py:12
  %3: float64[] = sum(%2, axis=(0,), keepdims=False)    # model.py:12
  return %3

Graphs in the parameters of a node follow it, indented, with numbers of their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from types import EllipsisType
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.graph.ir import Graph, Literal, Node, Operand, Value

# Longer parameters are cut: a graph is read line by line.
_LONGEST = 60


def show(graph: Graph) -> str:
    """A graph as text.

    Args:
        graph: The graph to show.

    Returns:
        A line with the inputs, a line for each node, a line with the outputs. A graph in a
        parameter is written out below the first node that has it. The text depends only on the
        graph: equal graphs made from the same lines of code give equal text.

    >>> from gradtape.core.aval import aval_of
    >>> from gradtape.graph.trace import trace
    >>> x = np.ones(3, np.float32)
    >>> traced = trace(lambda x: np.tanh(x) * 2.0, [aval_of(x)])
    >>> print(show(traced.graph))
    graph function(%0: float32[3])
      %1: float32[3] = tanh(%0)    # ...
      %2: float32[3] = multiply(%1, 2.0)    # ...
      return %2
    """
    return "\n".join(_lines(graph))


def _lines(graph: Graph) -> Iterator[str]:
    """The lines of a graph; graphs that are inside others are on a stack, not on Python's."""
    shown = {graph}
    stack = [_lines_here(graph, "")]
    while stack:
        for part in stack[-1]:
            if isinstance(part, str):
                yield "  " * (2 * len(stack) - 2) + part
            elif part[1] not in shown:
                shown.add(part[1])
                stack.append(_lines_here(part[1], f"{part[0]}: "))
                break
        else:
            stack.pop()


def _lines_here(graph: Graph, label: str) -> Iterator[str | tuple[str, Graph]]:
    """The lines of a graph, with those graphs in between that its nodes have in parameters."""
    names = value_names(graph)
    inputs = ", ".join(f"{names[value]}: {show_aval(value.aval)}" for value in graph.inputs)
    yield f"{label}graph {graph.name}({inputs})"
    for node in graph.nodes:
        yield f"  {show_node(node, names)}"
        yield from labelled_graphs(node)
    outputs = ", ".join(show_operand(output, names) for output in graph.outputs)
    yield f"  return {outputs}".rstrip()


def labelled_graphs(node: Node) -> Iterator[tuple[str, Graph]]:
    """The graphs in a node with the parameters they are in: `body`, or `branches[1]`."""
    if node.op.graph is not None:
        yield node.op.name, node.op.graph
    pending = list(node.params.items())[::-1]
    while pending:
        label, value = pending.pop()
        if isinstance(value, Graph):
            yield label, value
        elif isinstance(value, list | tuple):
            pending += [(f"{label}[{n}]", item) for n, item in enumerate(value)][::-1]
        elif isinstance(value, dict):
            pending += [(f"{label}[{key!r}]", item) for key, item in value.items()][::-1]


def value_names(graph: Graph) -> dict[Value, str]:
    """`%0`, `%1`, … for the inputs and for the results of the nodes, in order."""
    return {value: f"%{number}" for number, value in enumerate(graph.values())}


def show_node(node: Node, names: dict[Value, str]) -> str:
    """The line of one node."""
    results = ", ".join(
        f"{names.get(value, '%?')}: {show_aval(value.aval)}" for value in node.outputs
    )
    parts = [show_operand(operand, names) for operand in node.operands]
    parts += [f"{name}={_short(value)}" for name, value in node.params.items()]
    line = f"    # {short_line(node.line)}" if node.line else ""
    return f"{results} = {node.op.name}({', '.join(parts)}){line}"


def show_aval(aval: Aval) -> str:
    """`float64[2, 3]`; a value that takes the dtype of other operands is marked as weak."""
    return f"{aval!r} weak" if aval.weak else repr(aval)


def show_operand(operand: Operand, names: dict[Value, str]) -> str:
    """The name of a value (`%?` if the graph does not make it), or a number with its type."""
    if isinstance(operand, Literal):
        return _number(operand.value)
    return names.get(operand, "%?") if isinstance(operand, Value) else "?"


def short_line(line: str) -> str:
    """`model.py:12` for a line with its whole path, which differs from machine to machine."""
    return os.path.basename(line)


# ---- parameters ---------------------------------------------------------------------------------


def _short(value: Any) -> str:
    text = _parameter(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _parameter(value: Any) -> str:
    """A parameter in short form: arrays by shape and dtype, slices as in brackets."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, np.generic):
        return _number(value)
    if isinstance(value, np.dtype):
        return str(value)
    if isinstance(value, Graph):
        return f"<{value.name}>"
    if isinstance(value, slice):
        bounds = ["" if bound is None else str(bound) for bound in (value.start, value.stop)]
        return ":".join(bounds if value.step is None else [*bounds, str(value.step)])
    if isinstance(value, EllipsisType):
        return "..."
    if isinstance(value, tuple):
        return f"({_listed(value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{_listed(value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_parameter(item)}' for key, item in value.items())}}}"
    if callable(value):
        # NumPy's ufuncs have the longer name since 2.2.
        name = getattr(value, "__name__", type(value).__name__)
        return getattr(value, "__qualname__", name)
    return repr(value)


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(_parameter(value) for value in values)


def _number(value: Any) -> str:
    """A Python number as it is written; a NumPy one with its type, which decides dtypes."""
    if isinstance(value, np.generic):
        return f"{value.dtype}({value!s})"
    return repr(value)
