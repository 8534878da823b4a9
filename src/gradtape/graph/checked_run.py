"""`gt.graph.evaluate`: run a graph on inputs that are checked first."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.backends import is_raw
from gradtape.core.aval import Aval, aval_of
from gradtape.core.tensor import Tensor, as_value
from gradtape.errors import ArgumentError, DTypeError, ShapeError, a_type
from gradtape.graph.ir import Graph
from gradtape.graph.run import replay
from gradtape.graph.text import show_aval


def evaluate(graph: Graph, *inputs: Any) -> tuple[Any, ...]:
    """Run a graph op by op, on arrays or tensors.

    On tensors it is recorded, differentiated and batched like the function it was traced from, and
    a function that calls it can be compiled: `gt.jit(graph)`.

    Args:
        graph: The graph.
        *inputs: A value for each input, of its shape and dtype. A Python number is converted.

    Returns:
        The outputs: arrays, or tensors if tensors were given.

    Raises:
        ArgumentError: There are more or fewer values than inputs.
        ShapeError: A value has another shape than its input.
        DTypeError: It has another dtype, or is not an array.

    >>> graph = gt.graph.make_graph(lambda x: (np.sin(x), np.sum(x)))(np.ones(3))
    >>> gt.graph.evaluate(graph, np.zeros(3))
    (array([0., 0., 0.]), np.float64(0.0))
    >>> gt.grad(lambda x: graph(x)[1])(np.ones(3))
    array([1., 1., 1.])
    """
    if len(inputs) != len(graph.inputs):
        raise ArgumentError(
            f"evaluate: got {len(inputs)} values for the graph {graph.name}, expected "
            f"{len(graph.inputs)}, one for each input"
        )
    given = [
        _fitting(place, value.aval, one)
        for place, (value, one) in enumerate(zip(graph.inputs, inputs, strict=True))
    ]
    return tuple(replay(graph, given))


def _fitting(place: int, aval: Aval, value: Any) -> Any:
    """A value for an input, checked."""
    if not isinstance(value, Tensor) and not is_raw(value):
        raise DTypeError(
            f"evaluate: input %{place} is {a_type(value)}, expected an array, a tensor or a number"
        )
    value = as_value(value)
    got = aval_of(value)
    if got.shape != aval.shape:
        raise ShapeError(
            f"evaluate: input %{place} has shape {got.shape}, expected {aval.shape}; trace the "
            "function again for other shapes"
        )
    if not hasattr(value, "dtype"):
        if not np.can_cast(got.dtype, aval.dtype, "same_kind"):
            raise DTypeError(
                f"evaluate: input %{place} is {a_type(value)}, expected {show_aval(aval)}"
            )
        number = np.asarray(value, aval.dtype)[()]
        return number.item() if aval.weak else number
    if got.dtype != aval.dtype:
        raise DTypeError(
            f"evaluate: input %{place} is {got.dtype}, expected {show_aval(aval)}; use "
            f"x.astype({str(aval.dtype)!r})"
        )
    # An input that is a Python number takes the dtype of other operands, which arrays do not.
    return value.item() if aval.weak and not isinstance(value, Tensor) else value
