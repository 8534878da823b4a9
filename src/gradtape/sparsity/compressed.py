"""Programs that compute the numbers of a sparse Jacobian or Hessian, to be compiled.

All sweeps of a direction are one batched pass: column j has a one in the seed of its colour, and
zeros in the others. The numbers are then gathered from the results of the sweeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.autodiff.reverse import grad, vjp
from gradtape.autodiff.transforms import jvp, vmap
from gradtape.core.aval import Aval
from gradtape.graph.ir import Graph
from gradtape.graph.loops import map as map_in_turn
from gradtape.graph.run import replay
from gradtape.ops.cast import astype
from gradtape.ops.comparison import equal
from gradtape.ops.gather import gather_leading
from gradtape.ops.inspection import finfo
from gradtape.ops.join import concatenate
from gradtape.ops.shape import reshape
from gradtape.sparsity.pattern_check import Probes, checked
from gradtape.sparsity.plan import SparsePlan

# The results of one operation for all sweeps take about so many bytes at most; there are then
# several passes, one after the other.
_MOST_BYTES = 1 << 28


class Traced(NamedTuple):
    """A function of arrays as a graph.

    Attributes:
        graph: Its first output is what is differentiated; others are passed on.
        chosen: The inputs to differentiate by: their elements are the columns, one after the other.
    """

    graph: Graph
    chosen: tuple[int, ...]

    @property
    def like(self) -> list[Aval]:
        """The inputs to differentiate by."""
        return [self.graph.inputs[n].aval for n in self.chosen]

    def split(self, vector: Any) -> list[Any]:
        """A vector with an element for each column, as arrays of the shapes of these inputs."""
        ends = np.cumsum([math.prod(aval.shape) for aval in self.like])
        parts = zip(self.like, [0, *ends], ends, strict=False)
        return [reshape(vector[begin:end], aval.shape) for aval, begin, end in parts]

    def at(self, values: Sequence[Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The function of these inputs alone, the others given, and the values of these."""

        def function(*some: Any) -> Any:
            every = list(values)
            for n, value in zip(self.chosen, some, strict=True):
                every[n] = value
            return reshape(replay(self.graph, every)[0], -1)

        return function, tuple(values[n] for n in self.chosen)


def program(traced: Traced, plan: SparsePlan, probes: Probes | None = None) -> Callable[..., Any]:
    """A function that gives the numbers of all places, and the other outputs of the graph.

    Args:
        traced: The function to differentiate.
        plan: The plan.
        probes: How to check a pattern that was given and not found. None for no check.

    Returns:
        A function of the colours of columns and rows, and of the inputs of the graph.
    """
    rows = [Aval((plan.pattern.shape[0],), traced.graph.outputs[0].dtype)]
    dtype = np.result_type(*[aval.dtype for aval in (*rows, *traced.like)])

    def numbers(column_colours: Any, row_colours: Any, *values: Any) -> tuple[Any, ...]:
        function, primals = traced.at(values)
        function = _gradient(function) if plan.name == "sparse_hessian" else function
        found = []

        def push(*tangents: Any) -> Any:
            return jvp(function, primals, tangents)[1]

        if plan.forward:
            colours = traced.split(column_colours)
            found.append(_swept(traced, push, colours, traced.like, plan.forward))
        if plan.reverse:
            pull = _joining(vjp(function, *primals)[1])
            found.append(_swept(traced, pull, [row_colours], rows, plan.reverse))
        data = np.zeros(0, dtype)
        if found:
            every = _joined([astype(reshape(part, -1), dtype) for part in found])
            data = gather_leading(every, plan.places)
        if probes is not None:

            def product(probe: Any, at: tuple[Any, ...]) -> Any:
                if plan.only_reverse:
                    return _joining(vjp(function, *at)[1])(astype(probe, rows[0].dtype))
                pairs = zip(traced.split(probe), traced.like, strict=True)
                return jvp(function, at, [astype(part, aval.dtype) for part, aval in pairs])[1]

            def beside(probe: Any, change: Any) -> Any:
                parts = zip(primals, traced.split(change), strict=True)
                return product(probe, tuple([_near(x, by) for x, by in parts]))

            # The first is computed apart: it shares what the sweeps compute of the argument.
            first = reshape(product(probes.vectors[0], primals), (1, -1))
            others = vmap(beside)(probes.vectors[1:], probes.changes)
            products = concatenate([first, others])
            data = checked(plan, traced.graph, data, products, probes.vectors[0])
        return data, *replay(traced.graph, values)[1:]

    return numbers


def _near(x: Any, by: Any) -> Any:
    """Numbers changed by so many units in the last digit."""
    eps = float(finfo(x.dtype).eps)
    return x * astype(1.0 + eps * by, x.dtype)


def _gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of a function with one result, as a vector."""

    def gradient(*primals: Any) -> Any:
        found = grad(lambda *some: function(*some)[0], tuple(range(len(primals))))(*primals)
        return _joined([reshape(part, -1) for part in found])

    return gradient


def _joining(pullback: Callable[..., Any]) -> Callable[..., Any]:
    """A pullback that gives one vector, in place of an array for each input."""
    return lambda cotangent: _joined([reshape(part, -1) for part in pullback(cotangent)])


def _joined(vectors: Sequence[Any]) -> Any:
    return vectors[0] if len(vectors) == 1 else concatenate(vectors)


def _swept(
    traced: Traced,
    sweep: Callable[..., Any],
    colours: Sequence[Any],
    like: Sequence[Aval],
    count: int,
) -> Any:
    """The results of all sweeps of a direction, one row each.

    Args:
        traced: The function that is differentiated.
        sweep: Gives a vector for seeds of the given abstract values.
        colours: For each of these, the sweep in which an element is seeded.
        like: The abstract values of the seeds.
        count: The number of sweeps.
    """
    largest = max(math.prod(v.shape) * v.dtype.itemsize for v in traced.graph.values())
    together = min(count, max(1, _MOST_BYTES // max(largest, 1)))

    def some(first: Any) -> Any:
        numbers = first + np.arange(together, dtype=np.int32)
        seeds = [
            astype(equal(part, reshape(numbers, (-1, *(1,) * aval.ndim))), aval.dtype)
            for part, aval in zip(colours, like, strict=True)
        ]
        return vmap(sweep)(*seeds)

    if together == count:
        return some(0)
    found = map_in_turn(some, np.arange(0, count, together, dtype=np.int32))
    return reshape(found, (-1, found.shape[-1]))[:count]
