"""Loops and branches whose graphs are plans of their own, run step by step on arrays in memory.

Loops that are small are element programs instead (`compiler.element_program`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradtape.compiler.kernel import Axis, Buffer, Failure
from gradtape.core.op import op_of
from gradtape.graph.ir import Graph, Literal, Node, Rewriter, Value
from gradtape.graph.passes.halves import halves
from gradtape.graph.scan_op import Scan, scan_op
from gradtape.graph.switch_op import switch_op
from gradtape.graph.while_op import While, WhilePull, while_op
from gradtape.ops.arithmetic import add

if TYPE_CHECKING:
    from gradtape.compiler.plan import Plan

# A guess at the number of steps of a loop that ends when a condition says so.
UNKNOWN_STEPS = 1000


class ArrayLoop:
    """A loop or branch as plans, each of which is a function that is called at every step.

    Attributes:
        name: The prefix of the names of its functions.
        node: The loop or branch.
        plans: The plans of its graphs, in the order of its parameters.
        operands: The buffers of its operands; numbers as they are.
        outputs: The buffers of its results.
        work: For each value that is carried, two buffers that take turns.
        length: The number of steps; None if it is not known.
        parallel: Its steps, if they do not depend on each other; None otherwise.
    """

    def __init__(
        self,
        name: str,
        node: Node,
        plans: Sequence[Plan],
        operands: Sequence[Buffer | Literal],
        outputs: Sequence[Buffer],
        work: Sequence[tuple[Buffer, Buffer]],
        length: int | None,
    ) -> None:
        self.name = name
        self.node = node
        self.plans = tuple(plans)
        self.operands = tuple(operands)
        self.outputs = tuple(outputs)
        self.work = tuple(work)
        self.length = length
        carries = node.op is not scan_op or node.params["carries"] > 0
        self.parallel = None if carries or not length else Axis("t", length)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The arrays it uses."""
        given = (x for x in self.operands if isinstance(x, Buffer))
        own = (buffer for pair in self.work for buffer in pair)
        return tuple(dict.fromkeys((*given, *self.outputs, *own)))

    @property
    def steps(self) -> int:
        """The number of steps, or a guess at it."""
        return UNKNOWN_STEPS if self.length is None else self.length

    @property
    def endless(self) -> bool:
        """Whether it, or a loop in it, ends only when a condition says so."""
        return self.length is None or any(plan.endless for plan in self.plans)

    @property
    def failures(self) -> list[Failure]:
        """The conditions that its plans check."""
        return [failure for plan in self.plans for failure in plan.failures]

    @property
    def ops(self) -> tuple[str, ...]:
        """The names of the ops it computes."""
        inner = (node.op.name for plan in self.plans for node in plan.graph.nodes)
        return (self.node.op.name, *inner)


def array_loop(
    node: Node,
    buffers: dict[Value, Buffer],
    name: str,
    plan_of: Callable[[Graph, str], Plan],
) -> ArrayLoop:
    """A loop or branch of a graph, step by step.

    Args:
        node: The loop or branch.
        buffers: The buffers of the values that are in memory.
        name: The prefix of the names of its functions.
        plan_of: Makes the plan of a graph with a name.
    """
    graphs: list[Graph]
    carried: Sequence[Value] = ()
    length: int | None = 1
    if node.op is scan_op:
        scan = Scan(**node.params)
        graphs = [scan.body]
        carried = [scan.body.inputs[n] for n in scan.carry_places]
        length = scan.length
    elif node.op is switch_op:
        graphs = list(node.params["branches"])
    elif node.op is while_op:
        loop = While(**node.params)
        graphs, carried, length = [loop.cond, loop.body], loop.body.inputs[loop.consts :], None
    else:
        back = WhilePull(**node.params)
        pull = summing(back)
        first = back.consts + back.loop.carries
        graphs = [back.cond, back.body, pull]
        carried, length = [*back.body.inputs[back.consts :], *pull.inputs[first:]], None
    work = [
        tuple(
            Buffer(f"{name}_{side}{n}", value.shape, np.dtype(value.dtype), "temporary")
            for side in ("now", "next")
        )
        for n, value in enumerate(carried)
    ]
    return ArrayLoop(
        name,
        node,
        [plan_of(graph, f"{name}_g{n}") for n, graph in enumerate(graphs)],
        [x if isinstance(x, Literal) else buffers[x] for x in node.operands],
        [buffers[value] for value in node.outputs],
        work,  # type: ignore[arg-type]
        length,
    )


def summing(back: WhilePull) -> Graph:
    """The graph of a step back that also adds the cotangents of constants up."""
    graph, active = back.pull, len(back.active)
    sums = [Value(output.aval) for output in graph.outputs[active:]]
    whole = Graph(graph.name, (*graph.inputs, *sums), graph.nodes, graph.outputs)
    rewriter = Rewriter(whole)
    for node in whole.nodes:
        rewriter.copy(node)
    outputs: list[Any] = [rewriter[output] for output in graph.outputs]
    for n, total in enumerate(sums):
        outputs[active + n] = rewriter.add(
            op_of(add), [rewriter[total], outputs[active + n]], {}, aval=total.aval
        )
    return halves(rewriter.finish(outputs))  # the sums, too, are computed in float32
