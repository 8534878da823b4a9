"""`gt.graph.make_graph`: the graph of a function, at example arguments."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.arguments import as_function
from gradtape.backends import is_raw
from gradtape.core.aval import Aval, aval_of
from gradtape.core.op import Op
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import ArgumentError, DTypeError, UnsupportedError, a_type
from gradtape.graph.capture import Capture, DrawCapture
from gradtape.graph.ir import Graph, Node, Value
from gradtape.graph.trace import Trace, is_truth, trace

# An array in a graph: `value` is its only parameter, and it has no operands.
CONSTANT = Op(
    "constant",
    lambda _xp, value: value,
    lambda value: Aval(value.shape, value.dtype),
)


def make_graph(function: Callable[..., Any]) -> Callable[..., Graph]:
    """Trace a function: a function of example arguments that gives its graph.

    The graph holds all that is needed to run it. Arrays and tensors that the function uses without
    being given them are copied into it, as calls of the op `constant`; `gt.jit` reads them anew at
    each call instead.

    Args:
        function: A function of arrays and containers of arrays. Arguments that are neither, such as
            strings, are passed to it as they are.

    Returns:
        `graph(*args, **kwargs)`, whose arguments are like those of the function. Only shapes and
        dtypes count: anything that has both will do in place of an array. The inputs of the graph
        are the arrays among the arguments in order, keywords sorted by name, and its outputs are
        the arrays among the results.

    Raises:
        ConversionError: The function asks for the value of an argument.
        UnsupportedError: It draws random numbers.

    >>> print(gt.graph.make_graph(lambda x, y: x @ y)(np.ones((2, 3)), np.ones(3)))
    graph <lambda>(%0: float64[2, 3], %1: float64[3])
      %2: float64[2] = matmul(%0, %1)    # ...
      return %2
    """
    function = as_function(function, "make_graph")
    name = getattr(function, "__name__", type(function).__name__)

    @functools.wraps(function, updated=())
    def graph(*args: Any, **kwargs: Any) -> Graph:
        leaves, structure = containers.flatten(
            (args, dict(sorted(kwargs.items()))), view=containers.ALL_ARRAYS
        )
        places = [n for n, leaf in enumerate(leaves) if _is_input(leaf)]

        def flat(*values: Any) -> Any:
            full = list(leaves)
            for place, value in zip(places, values, strict=True):
                full[place] = value
            positional, keywords = containers.unflatten(structure, full)
            return function(*positional, **keywords)

        avals = [_example_aval(leaves[place]) for place in places]
        truths = [n for n, place in enumerate(places) if is_truth(leaves[place])]
        return _with_constants(trace(flat, avals, name, truths))

    return graph


def _is_input(leaf: Any) -> bool:
    """Whether an argument is an input of the graph: an array, a number, or like an array."""
    if leaf is None or isinstance(leaf, str | bytes):
        return False
    return isinstance(leaf, Tensor) or is_raw(leaf) or _is_like_array(leaf)


def _is_like_array(leaf: Any) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def _example_aval(leaf: Any) -> Aval:
    if isinstance(leaf, Tensor):
        weak = getattr(innermost(leaf, show=True), "weak", False)
        return Aval(leaf.shape, leaf.dtype, weak=weak)
    if is_raw(leaf):
        return aval_of(leaf)
    try:
        return Aval(tuple(map(operator.index, leaf.shape)), np.dtype(leaf.dtype))
    except TypeError:
        raise DTypeError(
            f"make_graph: got {a_type(leaf)} with shape {leaf.shape!r} and dtype {leaf.dtype!r}, "
            "expected sizes and a dtype of NumPy"
        ) from None


def _with_constants(traced: Trace) -> Graph:
    """The graph of a trace, with copies of captured arrays in it in place of hidden inputs."""
    graph, captures = traced.graph, traced.captures
    if not captures:
        return graph
    count = len(graph.inputs) - len(captures)
    constants = [_constant(capture) for capture in captures]
    made: dict[Value, Value] = {
        value: node.outputs[0] for value, node in zip(graph.inputs[count:], constants, strict=True)
    }
    nodes = []
    for node in graph.nodes:
        operands = [made.get(x, x) if isinstance(x, Value) else x for x in node.operands]
        avals = [value.aval for value in node.outputs]
        new = Node(node.op, operands, node.params, avals, node.line, node.region)
        made.update(zip(node.outputs, new.outputs, strict=True))
        nodes.append(new)
    outputs = [made.get(x, x) if isinstance(x, Value) else x for x in graph.outputs]
    return Graph(graph.name, graph.inputs[:count], [*constants, *nodes], outputs)


def _constant(capture: Capture) -> Node:
    if isinstance(capture, DrawCapture):
        raise UnsupportedError(
            "make_graph: the function draws random numbers, and a graph that holds all it needs "
            "would give the same ones each time; pass them as an argument, or use "
            "gt.jit(f).graph(*args), whose last inputs are the states of the generator"
        )
    current = capture.current()
    value = innermost(current, show=True) if isinstance(current, Tensor) else current
    if isinstance(value, Aval) or value.shape != current.shape:
        raise ArgumentError(
            "make_graph: the function uses a value of a function that is being traced or batched, "
            "which is no constant, expected an array; pass it as an argument"
        )
    array = np.array(value, order="C")
    array.flags.writeable = False
    return Node(CONSTANT, (), {"value": array}, [aval_of(array)])
