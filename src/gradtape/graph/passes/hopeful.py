"""Leaving out the ops that settle 0·∞ (`core.settle`), in the hope that there is none.

Where a settling op would have something to do, its operand is NaN, and without it the NaN spreads
to everything that depends on it: a sum or a product with NaN or infinity is not finite, and where a
choice drops the NaN, it would drop the 0 as well. So it is enough to check whether the results are
finite. Ops that do not pass NaN on, such as a comparison or the divisor of a quotient, only get
values that have been checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.batching import batch_in_place
from gradtape.core.lowering import Elements, Pointwise, Relabel
from gradtape.core.op import EVERY, Op, infer_like
from gradtape.core.settle import Settling
from gradtape.graph.ir import Graph, Node, Operand, Rewriter, Value
from gradtape.ops.cast import astype_op
from gradtape.ops.shape import broadcast_op


class UnsettledError(Exception):
    """A program without settling ops gave a result that is not finite."""


def _evaluate(xp: Any, x: Any) -> Any:
    if not xp.isfinite(x).all():
        raise UnsettledError
    return x


def _element(index: Any, x: Any) -> Any:
    return x.watch(x(*index))


_WATCHED = Op(
    "watched",
    _evaluate,
    infer_like,
    batch=batch_in_place,
    kind="elementwise",
    lower=Elements(_element),
)


def hopeful(graph: Graph) -> Graph:
    """The graph without settling ops; running it raises, or reports, if one was needed.

    It is the graph itself if there are none.
    """
    if not any(isinstance(node.op, Settling) for node in graph.nodes):
        return graph
    rewriter = Rewriter(graph)
    # Values of the new graph that would have been settled, or depend on such values.
    unsettled: set[Operand] = set()
    watched: dict[Operand, Value] = {}

    def settled(value: Operand) -> Operand:
        """A value that is known to be settled: the value itself, or a watch on it."""
        if value not in unsettled:
            return value
        if value not in watched:
            watched[value] = rewriter.add(_WATCHED, [value], {})
        return watched[value]

    for node in graph.nodes:
        operands = rewriter.operands(node)
        if isinstance(node.op, Settling):
            value = _unsettled(node, rewriter)
            rewriter.replace(node.outputs[0], value)
            unsettled.add(value)
        elif unsettled.isdisjoint(operands):
            rewriter.copy(node, operands)
        else:
            places = _places(node)
            given = [x if i in places else settled(x) for i, x in enumerate(operands)]
            new = rewriter.copy(node, given)
            if not unsettled.isdisjoint(given):
                unsettled.update(new.outputs)
    return rewriter.finish([settled(rewriter[output]) for output in graph.outputs])


def _unsettled(node: Node, rewriter: Rewriter) -> Operand:
    """The value a settling op would settle, in the shape and dtype of its result."""
    value, aval = rewriter[node.operands[0]], node.outputs[0].aval
    if value.aval.dtype != aval.dtype or value.aval.weak:
        value = rewriter.add(astype_op, [value], {"dtype": aval.dtype}, node.line)
    if value.shape != aval.shape:
        value = rewriter.add(broadcast_op, [value], {"shape": aval.shape}, node.line)
    return value


def _places(node: Node) -> range | tuple[int, ...]:
    """The positions of operands that are not finite only if the result is not."""
    if any(np.dtype(value.dtype).kind not in "fc" for value in node.outputs):
        return ()
    if node.op.kind == "linear" and isinstance(node.op.lower, Relabel | Elements | Pointwise):
        return EVERY
    return node.op.facts.carries
