"""A graph as one op: it runs as a whole, and is differentiated and batched as a whole.

The graphs of its derivatives and of its batched form are traced from replaying it under the
transform, once for each form that is needed, and run in the same way as the graph itself.

Where a gradient may be needed, the graph also returns the results of its expensive ops (reductions,
products, solvers, random numbers), so that the backward pass does not compute them again; it does
recompute elementwise ops, which costs less than keeping their results.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.call import call, is_differentiable
from gradtape.core.evaluate import explain
from gradtape.core.lazy import lazy
from gradtape.core.level import Segment
from gradtape.core.lowering import Composite
from gradtape.core.op import Op
from gradtape.core.recent import Recent
from gradtape.core.state import current, mode_keys
from gradtape.core.tensor import Tensor
from gradtape.graph.derived import Derived, batched, dear, pullback, pushforward, reached
from gradtape.graph.ir import Graph
from gradtape.graph.passes.dead import dead
from gradtape.graph.run import replay
from gradtape.graph.trace import UNRECORDED

# The number of derivatives and batched forms a graph keeps; the least recently used goes first.
_MOST_DERIVED = 64

# Makes a function that computes the outputs of a graph from raw arrays.
Maker = Callable[[Graph], Callable[..., Sequence[Any]]]

# Types that belong to no level; values of others are checked one by one.
_RAW = frozenset({np.ndarray, np.float64, np.float32, float, int, bool, complex})


# Pulls cotangents back: `pull(ct, out, inputs)` gives a cotangent or None for each input.
Pull = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], list[Any]]


class GraphFunction:
    """A graph with a function that runs it on arrays.

    Args:
        graph: The graph.
        make: Makes the function that runs a graph.
        results: The number of outputs that are results; the rest are kept for the backward pass.
    """

    def __init__(self, graph: Graph, make: Maker, results: int | None = None) -> None:
        self.graph = graph
        self._make = make
        self._results = len(graph.outputs) if results is None else results
        self._derived: Recent[Callable[..., tuple[Any, ...]]] = Recent()
        self._pulls: dict[Any, Pull] = {}

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """The outputs for inputs of any kind: arrays, or tensors of any level."""
        if _RAW.issuperset(map(type, inputs)) and not current().modes:
            try:
                return tuple(self.runner(*inputs))
            except Exception as error:
                raise explain(self.op(), error, inputs) from None
        recorded = sum(1 << n for n, value in enumerate(inputs) if _is_recorded(value))
        if not recorded:
            return self._call(inputs)
        out = self.keeping._call(inputs)[: self._results]
        # Results that depend on nothing recorded are not recorded, as in eager code.
        return tuple(
            result if reached & recorded or not is_differentiable(result) else _unrecorded(result)
            for result, reached in zip(out, self.reached, strict=False)
        )

    @property
    def keeping(self) -> GraphFunction:
        """The function to call if an input is recorded; also returns values for backward passes."""
        known = self._recording if self._results == len(self.graph.outputs) else None
        return known or self

    def _call(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        return call(self.op(), inputs, {})  # type: ignore[no-any-return]

    def op(self) -> Op:
        """The graph as an op.

        It refers to this object, not the other way round, so there is no reference cycle.
        """
        return Op(
            name=self.graph.name,
            evaluate=self._evaluate,
            infer=self._infer,
            vjp_all=self._pull,
            jvp=self._push,
            batch=self._batch,
            kind="graph",
            graph=self.graph,
            outputs=None,
            lower=Composite(self._replayed),
        )

    @lazy
    def runner(self) -> Callable[..., Sequence[Any]]:
        """The function that computes the outputs from raw arrays."""
        return self._make(self.graph)

    def _evaluate(self, _xp: Any, *inputs: Any) -> tuple[Any, ...]:
        return tuple(self.runner(*inputs))

    def _infer(self, *_avals: Aval) -> tuple[Aval, ...]:
        return tuple(output.aval for output in self.graph.outputs)

    @lazy
    def reached(self) -> list[int]:
        """For each output, the inputs that its gradient reaches, as bits of a number."""
        return reached(self.graph)

    @lazy
    def _recording(self) -> GraphFunction | None:
        """The graph that also outputs the values a backward pass needs; None if there are none."""
        known = set(self.graph.outputs)
        kept = [value for value in dear(self.graph) if value not in known]
        if not kept:
            return None
        outputs = (*self.graph.outputs, *kept)
        graph = Graph(self.graph.name, self.graph.inputs, self.graph.nodes, outputs)
        return GraphFunction(graph, self._make, self._results)

    # ---- transforms ------------------------------------------------------------------------

    def _pull(self, wanted: Sequence[bool], ct: Any, out: Any, *inputs: Any) -> list[Any]:
        asked = (tuple(wanted), tuple([part is not None for part in ct]))
        key = (asked, mode_keys(current().rewriting))
        try:
            known = self._pulls[key]
        except KeyError:
            if len(self._pulls) >= _MOST_DERIVED:
                self._pulls = {}
            known = self._pulls[key] = self._find_pull(*asked)
        return known(ct, out, inputs)

    # Values that were only kept have no cotangents: nothing else depends on them.
    _pull.takes_none = True  # type: ignore[attr-defined]

    def _find_pull(self, wanted: Sequence[bool], present: Sequence[bool]) -> Pull:
        """The function that pulls the present cotangents back to the wanted inputs."""
        outputs = self.graph.outputs
        moving = tuple(n for n, o in enumerate(outputs) if present[n] and is_differentiable(o))
        reached = functools.reduce(operator.or_, (self.reached[n] for n in moving), 0)
        chosen = tuple(
            n
            for n, value in enumerate(self.graph.inputs)
            if wanted[n] and reached >> n & 1 and is_differentiable(value)
        )
        if not chosen:
            return lambda _ct, _out, inputs: [None] * len(inputs)
        worth = set(dear(self.graph))
        kept = [n for n, output in enumerate(outputs) if output in worth]
        derivative = self._derive(
            ("vjp", chosen, moving), lambda: pullback(self.graph, chosen, moving, kept)
        )

        def pull(ct: Sequence[Any], out: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
            given = (*inputs, *[out[n] for n in kept], *[ct[n] for n in moving])
            found: list[Any] = [None] * len(inputs)
            for n, result in zip(chosen, derivative(*given), strict=True):
                found[n] = result
            return found

        return pull

    def _push(self, tangents: Sequence[Any], _out: Any, *inputs: Any) -> tuple[Any, ...]:
        moving = tuple(n for n, tangent in enumerate(tangents) if tangent is not None)
        derivative = self._derive(("jvp", moving), lambda: self._tangents(moving))
        return derivative(*inputs, *(tangents[n] for n in moving))

    def _tangents(self, moving: Sequence[int]) -> Derived:
        """The graph that pushes tangents forward, without the values themselves."""
        graph, constants, _ = pushforward(self.graph, moving)
        tangents = graph.outputs[len(self.graph.outputs) :]
        return Derived(dead(Graph(graph.name, graph.inputs, graph.nodes, tangents)), constants)

    def _batch(self, _op: Op, axes: Any, args: Any, _params: Any) -> tuple[Any, Any]:
        sizes = {arg.shape[axis] for arg, axis in zip(args, axes, strict=True) if axis is not None}
        (size,) = sizes
        every = (True,) * len(self.graph.outputs)
        derived = self._derive(
            ("vmap", tuple(axes), size), lambda: batched(self.graph, axes, size, every)
        )
        return derived(*args), (0,) * len(self.graph.outputs)

    def _replayed(self, *values: Any) -> tuple[Any, ...]:
        return tuple(replay(self.graph, values))

    def _derive(self, key: Any, derive: Callable[[], Derived]) -> Callable[..., tuple[Any, ...]]:
        """The graph of a transform as a function, traced when it is first needed."""
        key = (key, mode_keys(current().rewriting))
        known = self._derived.get(key)
        if known is None:
            graph, constants, _ = derive()
            derived = GraphFunction(graph, self._make)
            known = self._derived.put(
                key, lambda *inputs: derived(*inputs, *constants), most=_MOST_DERIVED
            )
        return known


def _is_recorded(value: Any) -> bool:
    """Whether a value is recorded in reverse mode, at any level."""
    while isinstance(value, Tensor):
        value = value.fresh()
        if value.record is not None and isinstance(value.record.segment, Segment):
            return True
        value = value.value
    return False


def _unrecorded(value: Any) -> Any:
    """A value that reverse mode does not record; tangents stay with it."""
    return call(UNRECORDED, (value,), {})
