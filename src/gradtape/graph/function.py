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

from gradtape.autodiff.reverse import record
from gradtape.autodiff.transforms import jvp, vmap
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
from gradtape.graph.ir import Graph, Operand, Value, replaced
from gradtape.graph.passes.dead import dead
from gradtape.graph.run import replay
from gradtape.graph.trace import UNRECORDED, operand_of, trace

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
        found = {value: 1 << n for n, value in enumerate(self.graph.inputs)}
        for node in self.graph.nodes:
            bits = 0
            for operand in node.operands if node.op.tracked else ():
                if isinstance(operand, Value) and is_differentiable(operand):
                    bits |= found[operand]
            found.update(dict.fromkeys(node.outputs, bits))
        return [found[o] if isinstance(o, Value) else 0 for o in self.graph.outputs]

    @lazy
    def _recording(self) -> GraphFunction | None:
        """The graph that also outputs the values a backward pass needs; None if there are none."""
        known = set(self.graph.outputs)
        kept = [value for value in _dear(self.graph) if value not in known]
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
        dear = set(_dear(self.graph))
        kept = [n for n, output in enumerate(outputs) if output in dear]
        count = len(self.graph.inputs)
        traced_as: list[Operand] = []

        def pulled(*values: Any) -> Any:
            primals, cotangents = values[:count], [None] * len(outputs)
            for n, value in zip(moving, values[count + len(kept) :], strict=True):
                cotangents[n] = value

            def replayed(*primals: Any) -> Any:
                results = self._replayed(*primals)
                traced_as.extend(operand_of(results[n]) for n in kept)
                return results

            return record(replayed, primals, {}, chosen, self.graph.name).pull(cotangents)

        def without_kept(graph: Graph) -> Graph:
            given = graph.inputs[count : count + len(kept)]
            return dead(replaced(graph, dict(zip(traced_as, given, strict=True))))

        avals = [value.aval for value in self.graph.inputs]
        avals += [_strong(outputs[n].aval) for n in (*kept, *moving)]
        key = ("vjp", chosen, moving)
        derivative = self._derive(key, "gradient", pulled, avals, without_kept)

        def pull(ct: Sequence[Any], out: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
            given = (*inputs, *[out[n] for n in kept], *[ct[n] for n in moving])
            found: list[Any] = [None] * len(inputs)
            for n, result in zip(chosen, derivative(*given), strict=True):
                found[n] = result
            return found

        return pull

    def _push(self, tangents: Sequence[Any], _out: Any, *inputs: Any) -> tuple[Any, ...]:
        moving = tuple(n for n, tangent in enumerate(tangents) if tangent is not None)
        count = len(inputs)

        def pushed(*values: Any) -> Any:
            fixed = list(values[:count])

            def function(*some: Any) -> Any:
                for n, value in zip(moving, some, strict=True):
                    fixed[n] = value
                return self._replayed(*fixed)

            return jvp(function, tuple(values[n] for n in moving), values[count:])[1]

        avals = [value.aval for value in self.graph.inputs]
        avals += [_strong(self.graph.inputs[n].aval) for n in moving]
        derivative = self._derive(("jvp", moving), "tangent", pushed, avals)
        return derivative(*inputs, *(tangents[n] for n in moving))

    def _batch(self, _op: Op, axes: Any, args: Any, _params: Any) -> tuple[Any, Any]:
        sizes = {arg.shape[axis] for arg, axis in zip(args, axes, strict=True) if axis is not None}
        (size,) = sizes
        avals = [
            value.aval if axis is None else _batched(value.aval, axis, size)
            for value, axis in zip(self.graph.inputs, axes, strict=True)
        ]
        batched = vmap(self._replayed, in_axes=tuple(axes))
        derived = self._derive(("vmap", tuple(axes), size), "batched", batched, avals)
        return derived(*args), (0,) * len(self.graph.outputs)

    def _replayed(self, *values: Any) -> tuple[Any, ...]:
        return tuple(replay(self.graph, values))

    def _derive(
        self,
        key: Any,
        what: str,
        function: Callable[..., Any],
        avals: Sequence[Aval],
        finish: Callable[[Graph], Graph] = lambda graph: graph,
    ) -> Callable[..., tuple[Any, ...]]:
        """The graph of a transform as a function, traced when it is first needed."""
        rewriting = current().rewriting
        key = (key, mode_keys(rewriting))
        known = self._derived.get(key)
        if known is None:
            name = f"{self.graph.name}, {what}"
            traced = trace(function, avals, name, rewriting=rewriting)
            constants = [capture.current() for capture in traced.captures]
            derived = GraphFunction(finish(traced.graph), self._make)
            # The constants are arrays that rules made when they were traced.
            known = self._derived.put(
                key, lambda *inputs: derived(*inputs, *constants), most=_MOST_DERIVED
            )
        return known


def _dear(graph: Graph) -> list[Value]:
    """The values that are kept for a backward pass."""
    dear = (node for node in graph.nodes if node.op.kind not in ("elementwise", "linear"))
    return [value for node in dear for value in node.outputs]


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


def _strong(aval: Aval) -> Aval:
    return Aval(aval.shape, np.dtype(aval.dtype))


def _batched(aval: Aval, axis: int, size: int) -> Aval:
    return Aval((*aval.shape[:axis], size, *aval.shape[axis:]), aval.dtype)
