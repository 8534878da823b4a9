"""Running a graph: calls its ops again, on any kind of input.

On arrays it computes; on tensors it is recorded, differentiated, batched or traced like the code it
was traced from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.call import call_rewritten
from gradtape.core.evaluate import evaluate
from gradtape.core.state import current, keeping, run_inside
from gradtape.core.tensor import Tensor
from gradtape.graph.ir import Graph, Literal, Node, Value, value_of
from gradtape.ops.cast import astype

_NUMBERS = (bool, int, float, complex)
# Kinds of ops that call functions of users, or graphs, which say themselves what is a number.
_GIVEN_NUMBERS = ("control", "custom", "graph", "host")


def replay(graph: Graph, inputs: Sequence[Any], *, as_noted: bool = False) -> list[Any]:
    """The outputs of a graph for values of its inputs, in order.

    Args:
        graph: The graph.
        inputs: The values of its inputs.
        as_noted: Whether results are converted to the dtypes that the graph says they have, should
            inputs that are no Python numbers here lead to others.
    """
    # On arrays there is nothing to dispatch to.
    raw = not current().modes and not any(isinstance(value, Tensor) for value in inputs)
    run = evaluate if raw else call_rewritten
    values: dict[Value, Any] = {
        # An element of an array that stands for a Python number, such as a counter that was kept.
        value: given.item() if value.aval.weak and _is_number(given) else given
        for value, given in zip(graph.inputs, inputs, strict=True)
    }
    regions: dict[Any, Any] = {}
    for node in graph.nodes:
        operands = [x.value if isinstance(x, Literal) else values[x] for x in node.operands]
        if operands and type(operands[0]) in _NUMBERS and _takes_arrays(node, operands):
            operands = [
                np.asarray(x, dtype=given.aval.dtype)
                for x, given in zip(operands, node.operands, strict=True)
            ]
        if node.region is None or raw:
            out = run(node.op, operands, node.params)
        else:
            # Each run of a checkpointed function is a stretch of its own.
            scope = keeping(node.region.again(regions))
            out = run_inside(scope, run, node.op, operands, node.params)
        results = (out,) if node.op.outputs == 1 else out
        for value, result in zip(node.outputs, results, strict=True):
            # A result computed from Python numbers alone is a Python number.
            number = value.aval.weak and _is_number(result)
            if as_noted and getattr(result, "dtype", value.dtype) != value.dtype:
                result = astype(result, value.dtype)
            values[value] = result.item() if number else result
    return [value_of(output, values) for output in graph.outputs]


def _takes_arrays(node: Node, operands: Sequence[Any]) -> bool:
    """Whether an op was given Python numbers only, and makes none of them.

    Nothing decides by their being Python numbers then, and many ops ask an operand for its shape or
    dtype. Functions of users get what they are given.
    """
    return (
        node.op.kind not in _GIVEN_NUMBERS
        and not any(value.aval.weak for value in node.outputs)
        and all(type(x) in _NUMBERS for x in operands)
    )


def _is_number(value: Any) -> bool:
    """Whether a value is a number of NumPy's."""
    return isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)
