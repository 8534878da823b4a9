"""Jacobians from records: sweeps of many tangents or cotangents at once, as a plan says.

A sweep is batched: its tangents, or cotangents, are all unit vectors of a space, stacked along a
batch axis. Between two cuts of a tape it gives a real matrix, whose rows are the elements of the
values at the later cut, and whose columns are those at the earlier one. Complex elements are two
there, the real part and the imaginary one: what maps them on need not be holomorphic.
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
from gradtape.autodiff.tape_graph import is_complex, real_parts
from gradtape.core.aval import Aval
from gradtape.core.finite import is_finite
from gradtape.core.level import Node, Segment
from gradtape.core.walk import walk
from gradtape.errors import NotDifferentiableError
from gradtape.ops.cast import astype, conj_if_complex, imag, real, stop_gradient
from gradtape.ops.comparison import isfinite
from gradtape.ops.join import concatenate
from gradtape.ops.matmul import matmul
from gradtape.ops.select import where
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
        if config.strategy is SchedulingStrategy.Forward:
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
        sizes = [_size(value) * real_parts(value[1]) for value in of_targets]
        rows = _split(sweeps.product(planned.step, planned.cuts), 0, sizes)
        return {
            (t, s): block
            for t, row, target in zip(part.targets, rows, of_targets, strict=True)
            for s, block in zip(
                part.sources, _split(_joined(row, target), 1, _sizes(of_sources)), strict=True
            )
        }
    blocks: Blocks = {}
    if part.pulled:
        roots = [targets[t] for t in part.pulled]
        for s, matrix in zip(part.sources, sweeps.reverse(of_sources, roots), strict=True):
            parts = () if matrix is None else _split(matrix, 0, _sizes(roots))
            blocks |= {(t, s): block for t, block in zip(part.pulled, parts, strict=False)}
    if part.pushed:
        starts = [sources[s] for s in part.pushed]
        for t, matrix in zip(part.targets, sweeps.forward(starts, of_targets), strict=True):
            parts = () if matrix is None else _split(matrix, 1, _sizes(starts))
            blocks |= {(t, s): block for s, block in zip(part.pushed, parts, strict=False)}
    return blocks


def _size(value: Value) -> int:
    return math.prod(value[1].shape)


def _sizes(values: Sequence[Value]) -> list[int]:
    return list(map(_size, values))


def _split(matrix: Any, axis: int, sizes: Sequence[int]) -> list[Any]:
    """The rows, or columns, of a matrix in groups of some sizes."""
    if len(sizes) == 1:
        return [matrix]
    ends = list(itertools.accumulate(sizes, initial=0))
    pieces = [slice(*pair) for pair in itertools.pairwise(ends)]
    return [matrix[(slice(None),) * axis + (piece,)] for piece in pieces]


def _joined(rows: Any, value: Value) -> Any:
    """The rows of a value: those of the real parts of its elements come before the imaginary."""
    if not is_complex(value[1]):
        return rows
    size = _size(value)
    return rows[:size] + 1j * rows[size:]


class _Sweeps:
    """Sweeps along the records of a segment."""

    def __init__(self, segment: Segment, traced: bool, unit: complex) -> None:
        self._segment, self._traced, self._unit = segment, traced, unit

    def product(self, step: Sweep | Product, cuts: Sequence[Sequence[Value]]) -> Any:
        """The real matrix that a step stands for."""
        if isinstance(step, Product):
            return _product(self.product(step.later, cuts), self.product(step.earlier, cuts))
        begin, end = cuts[step.begin], cuts[step.end]
        # Of the sources themselves, derivatives in the given direction are wanted alone.
        units = (self._unit,) if step.begin == 0 else _PARTS
        if step.mode == FORWARD:
            tangents = self.forward(begin, end, units, cut=True)
            count, dtype = _count(begin, units), _real_dtype(end)
            rows = [_rows(x, value, count, dtype) for x, value in zip(tangents, end, strict=True)]
            return concatenate(rows, axis=0) if len(rows) > 1 else rows[0]
        cts = self.reverse(begin, end, _PARTS, cut=True)
        count, dtype = _count(end, _PARTS), _real_dtype(begin)
        columns = [
            _columns(ct, value, count, dtype, units) for ct, value in zip(cts, begin, strict=True)
        ]
        return concatenate(columns, axis=1) if len(columns) > 1 else columns[0]

    def forward(
        self,
        begin: Sequence[Value],
        end: Sequence[Value],
        units: Sequence[complex] = (),
        *,
        cut: bool = False,
    ) -> list[Any]:
        """The rows of each value at the end, by tangents of all elements at the beginning.

        None stands for rows of zeros.
        """

        def pushed(level: BatchLevel, vectors: Sequence[Any]) -> list[Any]:
            tangents = {node: vector for (node, _), vector in zip(begin, vectors, strict=True)}
            targets = [node for node, _ in end]
            nodes = frozenset(tangents) if cut else frozenset()
            found = push(tangents, targets, cut=nodes, traced=self._traced)
            return [None if tangent is None else level.unbatch(tangent, 0) for tangent in found]

        found = _batched(begin, pushed, units or (self._unit,))
        return [_as_columns(tangents, value) for tangents, value in zip(found, end, strict=True)]

    def reverse(
        self,
        begin: Sequence[Value],
        end: Sequence[Value],
        units: Sequence[complex] = (),
        *,
        cut: bool = False,
    ) -> list[Any]:
        """The columns of each value at the beginning, by cotangents of all elements at the end.

        None stands for columns of zeros. Cotangents of complex numbers are those of the conjugate.
        """

        def pulled(level: BatchLevel, vectors: Sequence[Any]) -> list[Any]:
            roots = [(node, vector) for (node, _), vector in zip(end, vectors, strict=True)]
            found = walk(self._segment, roots, sources=[node for node, _ in begin], cut=cut)
            cts = [found.get(node) for node, _ in begin]
            return [None if ct is None else conj_if_complex(level.unbatch(ct, 0)) for ct in cts]

        found = _batched(end, pulled, units or (np.conj(self._unit),))
        return [
            None if cts is None else reshape(cts, (cts.shape[0], _size(value)))
            for cts, value in zip(found, begin, strict=True)
        ]


def _batched(
    values: Sequence[Value],
    sweep: Callable[[BatchLevel, Sequence[Any]], list[Any]],
    units: Sequence[complex],
) -> list[Any]:
    """Run a sweep with the unit vectors of the space of some values as a batch."""
    vectors = unit_vectors([aval for _, aval in values], units)
    level = BatchLevel(len(vectors[0]))
    try:
        return sweep(level, [level.batched(each, 0) for each in vectors])
    finally:
        level.active = False


def unit_vectors(avals: Sequence[Aval], units: Sequence[complex] = (1,)) -> list[Any]:
    """All unit vectors of a space, stacked along a first axis, in the parts it is made of.

    Args:
        avals: The parts.
        units: The elements that are not 0: complex parts have all their vectors for each of them.
    """
    sizes = [math.prod(aval.shape) for aval in avals]
    chosen = [units if is_complex(aval) else units[:1] for aval in avals]
    whole, first = sum(n * len(some) for n, some in zip(sizes, chosen, strict=True)), 0
    found = []
    for aval, size, some in zip(avals, sizes, chosen, strict=True):
        vectors = np.zeros((whole, size), aval.dtype)
        for unit in some:
            np.fill_diagonal(vectors[first:], unit)
            first += size
        found.append(vectors.reshape(whole, *aval.shape))
    return found


def _as_columns(tangents: Any, value: Value) -> Any:
    """A batch of tangents as the columns of a matrix."""
    if tangents is None:
        return None
    return matrix_transpose(reshape(tangents, (tangents.shape[0], _size(value))))


# ---- cuts ---------------------------------------------------------------------------------------

# A complex number as two real ones: dz = 1·dx + i·dy
_PARTS = (1, 1j)


def _count(values: Sequence[Value], units: Sequence[complex]) -> int:
    """How many unit vectors the space of some values has."""
    return sum(_size(value) * (len(units) if is_complex(value[1]) else 1) for value in values)


def _real_dtype(values: Sequence[Value]) -> Any:
    dtype = np.result_type(*[aval.dtype for _, aval in values])
    return np.empty(0, dtype).real.dtype


def _rows(tangents: Any, value: Value, columns: int, dtype: Any) -> Any:
    """The rows of a value in a real matrix, by a sweep that gave its columns."""
    if tangents is None:
        return np.zeros((_size(value) * real_parts(value[1]), columns), dtype)
    if not is_complex(value[1]):
        return tangents
    return concatenate([real(tangents), imag(tangents)], axis=0)


def _columns(cts: Any, value: Value, rows: int, dtype: Any, units: Sequence[complex]) -> Any:
    """The columns of a value in a real matrix, by a sweep that gave its rows.

    With the conjugate c of a cotangent, the change along a unit u is Re(c·u).
    """
    units = units if is_complex(value[1]) else (1,)
    if cts is None:
        return np.zeros((rows, _size(value) * len(units)), dtype)
    if not is_complex(value[1]):
        return cts
    parts = [real(cts * unit) for unit in units]
    return concatenate(parts, axis=1) if len(parts) > 1 else parts[0]


def _product(later: Any, earlier: Any) -> Any:
    """The product of two Jacobians, in which 0·∞ counts as 0: nothing passes there."""
    product = matmul(later, earlier)
    if is_finite(product):
        return product
    there = [x != 0 for x in (later, earlier)]
    wild = [isfinite(x) ^ True for x in (later, earlier)]
    dtype = product.dtype
    passes = matmul(
        astype(concatenate([there[0], wild[0]], axis=1), dtype),
        astype(concatenate([wild[1], there[1]], axis=0), dtype),
    )
    finite = [where(some, 0, x) for some, x in zip(wild, (later, earlier), strict=True)]
    return where(passes > 0, stop_gradient(product), matmul(*finite))
