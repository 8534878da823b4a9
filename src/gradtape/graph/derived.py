"""Graphs derived from a graph: of its pullback, of its tangents, of its batched form.

Each is traced from replaying the graph under the transform. Rules may make arrays of their own
while they are traced; these are further inputs of the derived graph, and come with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.autodiff.batch import BatchLevel
from gradtape.autodiff.reverse import record
from gradtape.autodiff.transforms import jvp
from gradtape.core.aval import Aval
from gradtape.core.call import is_differentiable
from gradtape.core.state import current, values_read
from gradtape.graph.ir import Graph, Operand, Value, replaced
from gradtape.graph.passes.dead import dead
from gradtape.graph.regions import is_chosen, leaves_region
from gradtape.graph.run import replay
from gradtape.graph.trace import Trace, operand_of, trace


class Derived(NamedTuple):
    """A graph, and the arrays to pass for its last inputs.

    Attributes:
        graph: Its inputs are those of the derived function, then the constants.
        constants: Arrays that rules made, or used from outside, while they were traced.
        trace: The trace that the graph is from: the constants are the values of its hidden inputs.
            None for a graph that was made of others.
    """

    graph: Graph
    constants: tuple[Any, ...]
    trace: Trace | None = None


def traced(
    function: Callable[..., Any],
    avals: Sequence[Aval],
    name: str,
    finish: Callable[[Graph], Graph] = lambda graph: graph,
) -> Derived:
    """The graph of a function of flat arguments, under the modes in force."""
    made = trace(function, avals, name, rewriting=current().rewriting)
    for guard in made.guards:
        values_read(guard.array)  # a function that is being traced around it depends on it, too
    constants = tuple([capture.current() for capture in made.captures])
    return Derived(dead(finish(made.graph)), constants, made)


# ---- dependencies -------------------------------------------------------------------------------


def reached(graph: Graph) -> list[int]:
    """For each output, the inputs that its gradient reaches, as bits of a number."""
    return _spread(graph, lambda node: node.op.tracked, is_differentiable)


def depending(graph: Graph) -> list[int]:
    """For each output, the inputs that it depends on, as bits of a number."""
    return _spread(graph, lambda node: True, lambda value: True)


def _spread(
    graph: Graph, passes_on: Callable[[Any], bool], counts: Callable[[Value], bool]
) -> list[int]:
    found = {value: 1 << n for n, value in enumerate(graph.inputs)}
    for node in graph.nodes:
        bits = 0
        for operand in node.operands if passes_on(node) else ():
            if isinstance(operand, Value) and counts(operand):
                bits |= found[operand]
        found.update(dict.fromkeys(node.outputs, bits))
    return [found[o] if isinstance(o, Value) else 0 for o in graph.outputs]


def bits(positions: Iterable[int]) -> int:
    """A number with a bit for each position."""
    return sum(1 << n for n in positions)


def spread(flags: set[int], influence: Sequence[int], carried: range) -> set[int]:
    """Inputs of the body of a loop that are marked, and carried values that come to depend on them.

    Args:
        flags: The positions of inputs that are marked.
        influence: For each output, the inputs that it depends on, as bits. The first outputs are
            the next values of those that are carried.
        carried: The positions of carried values among the inputs.
    """
    flags = set(flags)
    while True:
        mask = bits(flags)
        new = {place for place, seen in zip(carried, influence, strict=False) if seen & mask}
        if new <= flags:
            return flags
        flags |= new


# ---- reverse mode -------------------------------------------------------------------------------


def dear(graph: Graph) -> list[Value]:
    """The values that are worth keeping for a backward pass: results of expensive ops.

    Of checkpointed functions, what their policy keeps, and what leaves them.
    """
    found: dict[Value, None] = {}
    for node in graph.nodes:
        if node.region is not None:
            keeps = is_chosen(node)
        else:
            keeps = node.op.kind not in ("elementwise", "linear")
        if keeps:
            found.update(dict.fromkeys(node.outputs))
        for operand in node.operands:
            if isinstance(operand, Value) and leaves_region(operand, node):
                found[operand] = None
    return list(found)


def pullback(
    graph: Graph, wanted: Sequence[int], moving: Sequence[int], kept: Sequence[int]
) -> Derived:
    """The graph that pulls cotangents of outputs back to inputs.

    Args:
        graph: The graph to differentiate.
        wanted: The inputs whose cotangents it returns, in order.
        moving: The outputs whose cotangents are given.
        kept: The outputs whose values are given; they are results of its nodes.

    Returns:
        A graph of the inputs, the kept values, the cotangents and the constants.
    """
    outputs, count = graph.outputs, len(graph.inputs)
    traced_as: list[Operand] = []

    def pulled(*values: Any) -> Any:
        cotangents: list[Any] = [None] * len(outputs)
        for n, value in zip(moving, values[count + len(kept) :], strict=True):
            cotangents[n] = value

        def replayed(*primals: Any) -> Any:
            results = tuple(replay(graph, primals))
            traced_as.extend(operand_of(results[n]) for n in kept)
            return results

        run = record(replayed, values[:count], {}, tuple(wanted), graph.name)
        return run.pull(cotangents)

    def with_kept(made: Graph) -> Graph:
        given = made.inputs[count : count + len(kept)]
        return replaced(made, dict(zip(traced_as, given, strict=True)))

    avals = [value.aval for value in graph.inputs]
    avals += [strong(outputs[n].aval) for n in (*kept, *moving)]
    return traced(pulled, avals, f"{graph.name}, gradient", with_kept)


# ---- forward mode -------------------------------------------------------------------------------


def pushforward(graph: Graph, moving: Sequence[int]) -> Derived:
    """The graph that pushes tangents of some inputs forward.

    Returns:
        A graph of the inputs, the tangents and the constants. Its outputs are those of the graph,
        and then a tangent for each of them.
    """
    count = len(graph.inputs)

    def pushed(*values: Any) -> Any:
        fixed = list(values[:count])

        def function(*some: Any) -> Any:
            for n, value in zip(moving, some, strict=True):
                fixed[n] = value
            return tuple(replay(graph, fixed))

        return jvp(function, tuple(values[n] for n in moving), values[count:])

    avals = [value.aval for value in graph.inputs]
    avals += [strong(graph.inputs[n].aval) for n in moving]
    return traced(pushed, avals, f"{graph.name}, tangent")


# ---- batches ------------------------------------------------------------------------------------


def batched(
    graph: Graph, axes: Sequence[int | None], size: int, out_batched: Sequence[bool]
) -> Derived:
    """The graph of a batch.

    Args:
        graph: The graph of one element.
        axes: The batch axis of each input; None for one that is the same for the whole batch.
        size: The number of elements.
        out_batched: Which outputs have a batch axis, the first one; all that depend on a batched
            input must.
    """

    def function(*values: Any) -> Any:
        level = BatchLevel(size)
        given = [
            value if axis is None else level.batched(value, axis)
            for value, axis in zip(values, axes, strict=True)
        ]
        try:
            # A Python number that differs within the batch is an array, and would change dtypes.
            outs = replay(graph, given, as_noted=True)
            return tuple(
                level.unbatch(out, 0) if has_axis else level.split(out)[0]
                for out, has_axis in zip(outs, out_batched, strict=True)
            )
        finally:
            level.active = False

    avals = [
        value.aval if axis is None else with_axis(value.aval, axis, size)
        for value, axis in zip(graph.inputs, axes, strict=True)
    ]
    return traced(function, avals, f"{graph.name}, batched")


def strong(aval: Aval) -> Aval:
    """The abstract value of an array of the same shape and dtype."""
    return Aval(aval.shape, np.dtype(aval.dtype))


def with_axis(aval: Aval, axis: int, size: int) -> Aval:
    """An abstract value with one more axis."""
    return Aval((*aval.shape[:axis], size, *aval.shape[axis:]), aval.dtype)
