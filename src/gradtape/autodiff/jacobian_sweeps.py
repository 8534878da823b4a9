"""Jacobians from records: sweeps of many tangents or cotangents at once, as a plan says.

A sweep is batched: its tangents, or cotangents, are all unit vectors of a space, stacked along a
batch axis. Between two cuts of a tape it gives a matrix, whose rows are the elements of the values
at the later cut, and whose columns are those at the earlier one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.batch import BatchLevel
from gradtape.autodiff.jacobian_plan import (
    FORWARD,
    Planned,
    Product,
    Schedule,
    Sweep,
    Value,
    plan,
    schedule_of,
)
from gradtape.autodiff.pushforward import push
from gradtape.autodiff.scheduler import SchedulerConfig, SchedulingStrategy
from gradtape.core.aval import Aval
from gradtape.core.level import Node, Segment
from gradtape.core.walk import walk
from gradtape.errors import NotDifferentiableError
from gradtape.ops.cast import astype, conj_if_complex
from gradtape.ops.join import concatenate
from gradtape.ops.matmul import matmul
from gradtape.ops.shape import matrix_transpose, reshape

# The blocks of a Jacobian, by the positions of target and source; those that are 0 are missing.
Blocks = dict[tuple[int, int], Any]
_REVERSE = SchedulerConfig(strategy=SchedulingStrategy.Reverse)


def jacobian_blocks(
    segment: Segment,
    sources: Sequence[tuple[Node | None, Aval]],
    targets: Sequence[tuple[Node | None, Aval]],
    config: SchedulerConfig,
    *,
    traced: bool,
    unit: complex = 1,
) -> tuple[Blocks, Schedule]:
    """The Jacobian of some targets by some sources, block by block.

    Args:
        segment: The segment that recorded them.
        sources: What to differentiate by: nodes, or None for what is not recorded.
        targets: What to differentiate, likewise.
        config: How to choose between the modes.
        traced: Whether values are those of a trace.
        unit: The element of tangents and cotangents that is not 0.

    Returns:
        The blocks, each of the shape of the target followed by that of the source, and how they
        were computed.
    """
    if segment.hooked and config.strategy is not SchedulingStrategy.Forward:
        # Forward mode calls no hooks, and sizes are not to decide whether they are called.
        return _blocks(segment, sources, targets, _REVERSE, traced, unit)
    try:
        return _blocks(segment, sources, targets, config, traced, unit)
    except NotDifferentiableError:
        # A function with only a custom_vjp in it has no forward mode.
        if config.strategy is not SchedulingStrategy.Auto:
            raise
    return _blocks(segment, sources, targets, _REVERSE, traced, unit)


def _blocks(
    segment: Segment,
    sources: Sequence[tuple[Node | None, Aval]],
    targets: Sequence[tuple[Node | None, Aval]],
    config: SchedulerConfig,
    traced: bool,
    unit: complex,
) -> tuple[Blocks, Schedule]:
    froms, tos = _distinct(sources), _distinct(targets)
    starts = [(node, sources[places[0]][1]) for node, places in froms.items()]
    ends = [(node, targets[places[0]][1]) for node, places in tos.items()]
    planned = plan(starts, ends, config, traced=traced) if starts and ends else []
    sweeps = _Sweeps(segment, traced, unit)
    blocks: Blocks = {}
    for each in planned:
        for (t, s), matrix in _part(sweeps, each, starts, ends).items():
            to, of = ends[t][1], starts[s][1]
            block = reshape(matrix, to.shape + of.shape)
            # Tangents have the dtype of results: the mode is not to be seen in a Jacobian.
            block = block if block.dtype == of.dtype else astype(block, of.dtype)
            # The same value may be there several times.
            for places in itertools.product(tos[ends[t][0]], froms[starts[s][0]]):
                blocks[places] = block
    return blocks, schedule_of(planned)


def _distinct(ends: Sequence[tuple[Node | None, Aval]]) -> dict[Node, list[int]]:
    """The nodes among sources or targets, with the positions that each has."""
    found: dict[Node, list[int]] = {}
    for place, (node, _) in enumerate(ends):
        if node is not None:
            found.setdefault(node, []).append(place)
    return found


def _part(
    sweeps: _Sweeps, planned: Planned, sources: Sequence[Value], targets: Sequence[Value]
) -> Blocks:
    """The blocks of a part, as matrices."""
    part = planned.part
    of_targets, of_sources = [targets[t] for t in part.targets], [sources[s] for s in part.sources]
    if planned.step is not None:
        rows = _split(sweeps.product(planned.step, planned.cuts), 0, of_targets)
        return {
            (t, s): block
            for t, row in zip(part.targets, rows, strict=True)
            for s, block in zip(part.sources, _split(row, 1, of_sources), strict=True)
        }
    blocks: Blocks = {}
    if part.pulled:
        roots = [targets[t] for t in part.pulled]
        for s, matrix in zip(part.sources, sweeps.reverse(of_sources, roots), strict=True):
            parts = () if matrix is None else _split(matrix, 0, roots)
            blocks |= {(t, s): block for t, block in zip(part.pulled, parts, strict=False)}
    if part.pushed:
        starts = [sources[s] for s in part.pushed]
        for t, matrix in zip(part.targets, sweeps.forward(starts, of_targets), strict=True):
            parts = () if matrix is None else _split(matrix, 1, starts)
            blocks |= {(t, s): block for s, block in zip(part.pushed, parts, strict=False)}
    return blocks


def _size(value: Value) -> int:
    return math.prod(value[1].shape)


def _split(matrix: Any, axis: int, values: Sequence[Value]) -> list[Any]:
    """The rows, or columns, of a matrix that belong to each of some values."""
    if len(values) == 1:
        return [matrix]
    ends = list(itertools.accumulate(map(_size, values), initial=0))
    pieces = [slice(*pair) for pair in itertools.pairwise(ends)]
    return [matrix[(slice(None),) * axis + (piece,)] for piece in pieces]


class _Sweeps:
    """Sweeps along the records of a segment."""

    def __init__(self, segment: Segment, traced: bool, unit: complex) -> None:
        self._segment, self._traced, self._unit = segment, traced, unit

    def product(self, step: Sweep | Product, cuts: Sequence[Sequence[Value]]) -> Any:
        """The matrix that a step stands for."""
        if isinstance(step, Product):
            return matmul(self.product(step.later, cuts), self.product(step.earlier, cuts))
        begin, end = cuts[step.begin], cuts[step.end]
        rows, columns = sum(map(_size, end)), sum(map(_size, begin))
        if step.mode == FORWARD:
            found = self.forward(begin, end, cut=True)
            sizes = [(_size(value), columns) for value in end]
        else:
            found = self.reverse(begin, end, cut=True)
            sizes = [(rows, _size(value)) for value in begin]
        dtype = np.result_type(*(aval.dtype for _, aval in (*begin, *end)))
        full = [
            np.zeros(size, dtype) if matrix is None else matrix
            for matrix, size in zip(found, sizes, strict=True)
        ]
        return (
            concatenate(full, axis=0 if step.mode == FORWARD else 1) if len(full) > 1 else full[0]
        )

    def forward(
        self, begin: Sequence[Value], end: Sequence[Value], *, cut: bool = False
    ) -> list[Any]:
        """The rows of each value at the end, by tangents of all elements at the beginning.

        None stands for rows of zeros.
        """

        def pushed(level: BatchLevel, units: Sequence[Any]) -> list[Any]:
            tangents = {node: unit for (node, _), unit in zip(begin, units, strict=True)}
            targets = [node for node, _ in end]
            nodes = frozenset(tangents) if cut else frozenset()
            found = push(tangents, targets, cut=nodes, traced=self._traced)
            return [None if tangent is None else level.unbatch(tangent, 0) for tangent in found]

        found = self._batched(begin, pushed, self._unit)
        return [_as_columns(tangents, value) for tangents, value in zip(found, end, strict=True)]

    def reverse(
        self, begin: Sequence[Value], end: Sequence[Value], *, cut: bool = False
    ) -> list[Any]:
        """The columns of each value at the beginning, by cotangents of all elements at the end.

        None stands for columns of zeros. Cotangents of complex numbers are those of the conjugate.
        """

        def pulled(level: BatchLevel, units: Sequence[Any]) -> list[Any]:
            roots = [(node, unit) for (node, _), unit in zip(end, units, strict=True)]
            found = walk(self._segment, roots, sources=[node for node, _ in begin], cut=cut)
            cts = [found.get(node) for node, _ in begin]
            return [None if ct is None else conj_if_complex(level.unbatch(ct, 0)) for ct in cts]

        found = self._batched(end, pulled, np.conj(self._unit))
        return [
            None if cts is None else reshape(cts, (cts.shape[0], _size(value)))
            for cts, value in zip(found, begin, strict=True)
        ]

    def _batched(
        self,
        values: Sequence[Value],
        sweep: Callable[[BatchLevel, Sequence[Any]], list[Any]],
        unit: complex,
    ) -> list[Any]:
        """Run a sweep with the unit vectors of the space of some values as a batch."""
        level = BatchLevel(sum(map(_size, values)))
        vectors = unit_vectors([aval for _, aval in values], unit)
        try:
            return sweep(level, [level.batched(each, 0) for each in vectors])
        finally:
            level.active = False


def unit_vectors(avals: Sequence[Aval], unit: complex = 1) -> list[Any]:
    """All unit vectors of a space, stacked along a first axis, in the parts it is made of."""
    sizes = [math.prod(aval.shape) for aval in avals]
    whole, first = sum(sizes), 0
    found = []
    for aval, size in zip(avals, sizes, strict=True):
        vectors = np.zeros((whole, size), aval.dtype)
        np.fill_diagonal(vectors[first:], unit)
        found.append(vectors.reshape(whole, *aval.shape))
        first += size
    return found


def _as_columns(tangents: Any, value: Value) -> Any:
    """A batch of tangents as the columns of a matrix."""
    if tangents is None:
        return None
    return matrix_transpose(reshape(tangents, (tangents.shape[0], _size(value))))
