"""What the tests of graphs are made of: tracing functions, running graphs node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.core.aval import aval_of
from gradtape.core.evaluate import evaluate
from gradtape.core.tensor import Tensor
from gradtape.graph.ir import Graph, Literal, Value
from gradtape.graph.run import replay
from gradtape.graph.trace import Trace, trace
from gradtape.graph.verify import verify


def traced(function: Callable[..., Any], *args: Any) -> Trace:
    """A function traced at the shapes and dtypes of arguments; the graph is verified."""
    result = trace(function, [aval_of(arg) for arg in args])
    verify(result.graph)
    return result


def graph_of(function: Callable[..., Any], *args: Any) -> Graph:
    """The graph of a function that captures nothing."""
    result = traced(function, *args)
    assert not result.captures
    return result.graph


def run_trace(result: Trace, *args: Any) -> Any:
    """What a traced function returns for arguments, in its containers."""
    hidden = [capture.current() for capture in result.captures]
    return containers.unflatten(result.structure, replay(result.graph, [*args, *hidden]))


def traced_and_run(function: Callable[..., Any], *args: Any) -> Any:
    """A function by way of its graph."""
    return run_trace(traced(function, *args), *args)


def check_traced(function: Callable[..., Any], *args: Any) -> None:
    """The graph of a function gives the bits that the function gives on tensors."""
    expected = function(*(Tensor(np.array(arg)) for arg in args))
    assert_same_bits(traced_and_run(function, *args), expected)


def run_nodes(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of a graph, by the forward of each node on raw arrays.

    Results are stored in order before they are used, so that it does not matter to sums how the
    views lay that they are taken of.
    """
    values: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))

    def value_of(operand: Any) -> Any:
        return operand.value if isinstance(operand, Literal) else values[operand]

    for node in graph.nodes:
        with np.errstate(all="ignore"):
            out = evaluate(node.op, [value_of(operand) for operand in node.operands], node.params)
        for value, result in zip(node.outputs, [out] if node.op.outputs == 1 else out, strict=True):
            assert (result.shape, result.dtype) == (value.shape, value.dtype), node.op
            values[value] = result.item() if value.aval.weak else np.array(result, order="C")[()]
    return [value_of(output) for output in graph.outputs]


def assert_same_bits(got: Any, expected: Any) -> None:
    """The same number, shapes, dtypes and bits of results; all NaN count as the same."""
    got, expected = containers.flatten(got)[0], containers.flatten(expected)[0]
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        one, other = canonical(one), canonical(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        if one.tobytes() != other.tobytes():
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(np.signbit(one), np.signbit(other))
            raise AssertionError(f"{one} and {other} differ in their bits")


def canonical(value: Any) -> Any:
    """A value as an array of its own, with the same NaN for every NaN."""
    array = np.array(value)
    parts = (array.real, array.imag) if array.dtype.kind == "c" else (array,)
    for part in parts if array.dtype.kind in "fc" else ():
        part[np.isnan(part)] = np.nan
    return array


def specials(dtype: str) -> Any:
    """Numbers that tell rules apart."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        limits = np.iinfo(dtype)
        return np.array([0, 1, 2, 3, 7, limits.min, limits.max, limits.max - 1], dtype)
    real = "float64" if kind == "c" else dtype
    limits = np.finfo(real)
    tiny, least, large = limits.tiny, limits.smallest_subnormal, limits.max
    numbers = [np.nan, np.inf, 0.0, 1.0, 1 / 3, 3.0, 0.75, tiny, 7 * least, least, large]
    both = np.array([*numbers, *(-n for n in numbers)], real)
    if kind != "c":
        return both
    pairs = np.empty((both.size, both.size), dtype)
    pairs.real, pairs.imag = both[:, None], both[None, :]
    return pairs.reshape(-1)[::5]
