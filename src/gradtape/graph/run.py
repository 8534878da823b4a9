"""Running a graph: calls its ops again, on any kind of input.

On arrays it computes; on tensors it is recorded, differentiated, batched or traced like the code it
was traced from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.call import call_rewritten
from gradtape.graph.ir import Graph, Value, value_of
from gradtape.ops.cast import astype


def replay(graph: Graph, inputs: Sequence[Any], *, as_noted: bool = False) -> list[Any]:
    """The outputs of a graph for values of its inputs, in order.

    Args:
        graph: The graph.
        inputs: The values of its inputs.
        as_noted: Whether results are converted to the dtypes that the graph says they have, should
            inputs that are no Python numbers here lead to others.
    """
    values: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        operands = [value_of(operand, values) for operand in node.operands]
        out = call_rewritten(node.op, operands, node.params)
        for value, result in node.paired(out):
            # A result computed from Python numbers alone is a Python number.
            number = value.aval.weak and isinstance(result, np.generic)
            if as_noted and getattr(result, "dtype", value.dtype) != value.dtype:
                result = astype(result, value.dtype)
            values[value] = result.item() if number else result
    return [value_of(output, values) for output in graph.outputs]
