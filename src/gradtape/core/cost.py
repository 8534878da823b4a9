"""About how long an op takes, from the shapes of its operands alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradtape.core.op import Op

# Operations for an element of a result, by the kind of op; an elementary function takes some more.
_PER_ELEMENT = {"elementwise": 4, "reduction": 1, "axiswise": 8, "linear": 1, "planewise": 9}


def estimated_cost(op: Op, inputs: Sequence[Any], outs: Sequence[Any]) -> float:
    """The number of operations on elements that a call takes, roughly.

    Args:
        op: The op.
        inputs: Its operands, or their abstract values.
        outs: Its results, likewise.
    """
    if op.aliases:
        return 1.0
    sizes: list[int] = [math.prod(getattr(value, "shape", ())) for value in inputs]
    result: int = sum([math.prod(out.shape) for out in outs])
    if op.kind == "contraction" and len(sizes) > 1:
        # (m·k)(k·n)(m·n) = (m·k·n)²
        return 2.0 * math.sqrt(float(sizes[0]) * sizes[1] * result)
    if op.graph is not None:
        return float(len(op.graph.nodes) * max([result, *sizes]))
    elements = max([result, *sizes])
    if op.kind in _PER_ELEMENT or op.facts.rearranges:
        return float(_PER_ELEMENT.get(op.kind, 1) * elements)
    # Of what works on matrices as a whole: factorisations, convolutions, solvers.
    return math.sqrt(elements) * elements
