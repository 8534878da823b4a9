"""Running the graph of an evaluation: interpreted at first, compiled when it comes again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.compiler.program import Program, temporary_bytes
from gradtape.core.checkpoint_statistics import STATISTICS
from gradtape.core.lazy import lazy
from gradtape.core.recent import Recent
from gradtape.core.tensor import Tensor
from gradtape.graph.function import GraphFunction
from gradtape.graph.ir import Graph, Value, structural_hash
from gradtape.graph.live_memory import peak_bytes, without_replays
from gradtape.graph.passes.dead import dead
from gradtape.graph.passes.hopeful import UnsettledError, hopeful
from gradtape.graph.run import replay
from gradtape.lazy.sources import Feeds, Source

# The number of graphs that are kept for the next evaluation; the least recently used goes first.
MOST_GRAPHS = 64


class Runner:
    """Runs a graph: op by op the first time, compiled from the second on.

    Attributes:
        graph: The graph.
        runs: How often it has been run.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.runs = 0

    @lazy
    def compiled(self) -> GraphFunction:
        """The graph as a compiled function."""
        return GraphFunction(self.graph, Program)

    def __call__(self, values: Sequence[Any]) -> Sequence[Any]:
        """The outputs for values of the inputs.

        Raises:
            UnsettledError: The graph leaves out the ops that settle 0·∞, and needed one.
        """
        self.runs += 1
        compiled = self.runs > 1
        statistics = STATISTICS.get()
        if statistics is not None:
            statistics.add(self.planned_saving if compiled else self.live_saving)
        if compiled:
            return self.compiled(*values)
        with np.errstate(all="ignore"):
            return replay(self.graph, values)

    # ---- what checkpoints save -------------------------------------------------------------

    @lazy
    def _keeping(self) -> Graph | None:
        """The same graph with nothing computed again; None if nothing is."""
        return without_replays(self.graph)

    @lazy
    def live_saving(self) -> int:
        """By how many bytes less is there at once, if it runs op by op."""
        if self._keeping is None:
            return 0
        return max(0, peak_bytes(self._keeping) - peak_bytes(self.graph))

    @lazy
    def planned_saving(self) -> int:
        """By how many bytes less the compiled graph takes for results on the way."""
        if self._keeping is None:
            return 0
        return max(0, temporary_bytes(self._keeping) - temporary_bytes(self.graph))


# Runners by their graphs.
Programs = Recent[Runner]


def runner_of(graph: Graph, programs: Programs | None) -> Runner:
    """What runs a graph: the same for equal graphs, as long as the cache keeps it."""
    if programs is None:
        return Runner(graph)
    # Ops of users may have the same name and do different things.
    key = structural_hash(graph), tuple([node.op for node in graph.nodes])
    known = programs.get(key)
    return programs.put(key, Runner(graph), most=MOST_GRAPHS) if known is None else known


class Evaluation:
    """The graph of some targets, ready to run.

    Derivatives in it settle 0·∞ where values are not finite (`core.settle`), which is seldom
    needed and reads values that are not needed otherwise. So the graph first runs without, and
    whole only if that gave a result that is not finite (`graph.passes.hopeful`).

    Args:
        graph: The graph; its inputs may be more than the outputs depend on.
        sources: Where each input comes from.
        programs: The cache of runners, if they outlive the evaluation.
    """

    def __init__(self, graph: Graph, sources: Sequence[Source], programs: Programs | None) -> None:
        self._whole, self._sources = graph, tuple(sources)
        self._programs = programs
        light = hopeful(graph)
        self._settling = light is graph
        self._light = None if self._settling else self._prepared(dead(light))

    def __call__(self, feeds: Feeds) -> list[Any]:
        """The outputs: arrays, or tensors if something outside the graph is recorded."""
        if self._light is not None and not self._settling:
            runner, sources = self._light
            values = [source.value(feeds) for source in sources]
            # Derivatives of the results need all of the graph.
            if not any(isinstance(value, Tensor) for value in values):
                try:
                    return owned(runner(values), values)
                except UnsettledError:
                    self._settling = True
        runner, sources = self._complete
        values = [source.value(feeds) for source in sources]
        return owned(runner(values), values)

    @lazy
    def _complete(self) -> tuple[Runner, list[Source]]:
        return self._prepared(self._whole)

    def _prepared(self, graph: Graph) -> tuple[Runner, list[Source]]:
        """What runs a graph without the inputs it does not read, and the sources of the others."""
        read = {operand for node in graph.nodes for operand in node.operands}
        read.update(graph.outputs)
        used = [n for n, value in enumerate(graph.inputs) if value in read]
        inputs = [graph.inputs[n] for n in used]
        smaller = Graph(graph.name, inputs, graph.nodes, graph.outputs)
        return runner_of(smaller, self._programs), [self._sources[n] for n in used]


def owned(outputs: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Results that share memory neither with inputs nor with each other; numbers for 0-d arrays."""
    taken = set(map(id, inputs))
    results: list[Any] = []
    for output in outputs:
        if isinstance(output, Tensor):
            results.append(output)
            continue
        array = np.asarray(output)
        if id(array) in taken or array.base is not None or not array.flags.writeable:
            array = array.copy()
        taken.add(id(array))
        results.append(array[()] if array.ndim == 0 else array)
    return results


def subgraph(level_nodes: Sequence[Any], outputs: Sequence[Any]) -> tuple[list[Value], list[Any]]:
    """The inputs and the nodes, in order, that some operands depend on."""
    inputs: dict[Value, None] = {}
    needed: set[Any] = set()
    pending = [output for output in outputs if isinstance(output, Value)]
    while pending:
        value = pending.pop()
        if value.node is None:
            inputs[value] = None
        elif value.node not in needed:
            needed.add(value.node)
            pending += [x for x in value.node.operands if isinstance(x, Value)]
    return list(inputs), [node for node in level_nodes if node in needed]
