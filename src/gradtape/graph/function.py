"""A graph as one op: it runs as a whole, and is differentiated and batched as a whole.

The graphs of its derivatives and of its batched form are traced from replaying it under the
transform, once for each form that is asked for, and run in the same way as the graph itself.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.reverse import record
from gradtape.autodiff.transforms import jvp, vmap
from gradtape.core.aval import Aval
from gradtape.core.call import call, is_differentiable
from gradtape.core.op import Op
from gradtape.graph.ir import Graph
from gradtape.graph.run import replay
from gradtape.graph.trace import trace

# How many derivatives and batched forms a graph keeps; the oldest goes first.
_MOST_DERIVED = 64

# Makes what computes the outputs of a graph from raw arrays.
Maker = Callable[[Graph], Callable[..., Sequence[Any]]]


class GraphFunction:
    """A graph with something that runs it on arrays."""

    def __init__(self, graph: Graph, make: Maker) -> None:
        self.graph = graph
        self._make = make
        self._derived: dict[Any, Callable[..., tuple[Any, ...]]] = {}
        self._lock = threading.Lock()

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """The outputs for inputs of any kind: arrays, or tensors of any level."""
        # The op refers to this object and not the other way round: no cycle for the collector.
        op = Op(
            name=self.graph.name,
            evaluate=self._evaluate,
            infer=self._infer,
            vjp_all=self._pull,
            jvp=self._push,
            batch=self._batch,
            kind="graph",
            outputs=None,
        )
        return call(op, inputs, {})  # type: ignore[no-any-return]

    @functools.cached_property
    def runner(self) -> Callable[..., Sequence[Any]]:
        """What computes the outputs from raw arrays."""
        return self._make(self.graph)

    def _evaluate(self, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        # A trace in progress takes over the nodes instead of running them.
        return tuple(replay(self.graph, inputs) if xp is None else self.runner(*inputs))

    def _infer(self, *_avals: Aval) -> tuple[Aval, ...]:
        return tuple(output.aval for output in self.graph.outputs)

    # ---- transforms ------------------------------------------------------------------------

    def _pull(self, wanted: Sequence[bool], ct: Any, _out: Any, *inputs: Any) -> list[Any]:
        chosen = tuple(
            n for n, value in enumerate(self.graph.inputs) if wanted[n] and is_differentiable(value)
        )
        moving = [n for n, o in enumerate(self.graph.outputs) if is_differentiable(o)]
        count = len(self.graph.inputs)

        def pulled(*values: Any) -> Any:
            recorded = record(self._replayed, values[:count], {}, chosen, self.graph.name)
            cotangents = [None] * len(self.graph.outputs)
            for n, value in zip(moving, values[count:], strict=True):
                cotangents[n] = value
            return recorded.pull(cotangents)

        avals = [value.aval for value in self.graph.inputs]
        avals += [_strong(self.graph.outputs[n].aval) for n in moving]
        derivative = self._derive(("vjp", chosen), "gradient", pulled, avals)
        results = iter(derivative(*inputs, *(ct[n] for n in moving)))
        return [next(results) if n in chosen else None for n in range(count)]

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
        self, key: Any, what: str, function: Callable[..., Any], avals: Sequence[Aval]
    ) -> Callable[..., tuple[Any, ...]]:
        """The graph of a transform as a function, traced when it is first asked for."""
        with self._lock:
            known = self._derived.get(key)
        if known is None:
            traced = trace(function, avals, f"{self.graph.name}, {what}")
            constants = [capture.current() for capture in traced.captures]
            derived = GraphFunction(traced.graph, self._make)
            known = functools.partial(_with_constants, derived, constants)
            with self._lock:
                known = self._derived.setdefault(key, known)
                while len(self._derived) > _MOST_DERIVED:
                    del self._derived[next(iter(self._derived))]
        return known


def _with_constants(
    function: GraphFunction, constants: Sequence[Any], *inputs: Any
) -> tuple[Any, ...]:
    """Call the graph of a transform with the arrays that its rules made when it was traced."""
    return function(*inputs, *constants)


def _strong(aval: Aval) -> Aval:
    return Aval(aval.shape, np.dtype(aval.dtype))


def _batched(aval: Aval, axis: int, size: int) -> Aval:
    return Aval((*aval.shape[:axis], size, *aval.shape[axis:]), aval.dtype)
