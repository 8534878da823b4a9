"""The choice between forward, reverse and mixed mode for a Jacobian.

Targets and sources that depend on each other make a *part* of the Jacobian. There are three ways to
accumulate it, and the one with the least estimated time is taken:

- *forward*: a tangent for every element of the sources, all pushed in one sweep;
- *reverse*: a cotangent for every element of the targets, all pulled in one sweep;
- *mixed*: some sources are pushed and some targets pulled, so that every block is covered; or the
  tape is cut where few numbers pass. The Jacobian is then a product, J = J₃·J₂·J₁, of Jacobians
  between cuts, each of which is accumulated forward or in reverse. Where to cut, and which product
  comes first, is found by dynamic programming, as for the product of a chain of matrices; but a
  factor is not there yet: it costs a sweep along its records for every row or for every column
  (Naumann and others, "matrix-free Jacobian chaining").
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gradtape.autodiff.block_cover import cheapest_cover, components
from gradtape.autodiff.scheduler import SchedulerConfig, SchedulingStrategy
from gradtape.autodiff.tape_graph import (
    COMPILED,
    EAGER,
    Overhead,
    TapeGraph,
    product_time,
    real_parts,
    sweep_time,
)
from gradtape.core.aval import Aval
from gradtape.core.level import Node

# A node with the shape and dtype of its value.
Value = tuple[Node, Aval]
FORWARD, REVERSE, MIXED = "forward", "reverse", "mixed"
# A tape is cut at the narrowest places only, at most this many.
_MOST_CUTS = 16
# With so few rows or columns, weighing takes longer than it can save.
_FEW = 4


class Sweep(NamedTuple):
    """The Jacobian of the values at one cut by those at an earlier one, by a sweep."""

    begin: int
    end: int
    mode: str


class Product(NamedTuple):
    """A product of two Jacobians."""

    later: Sweep | Product
    earlier: Sweep | Product


class Cut(NamedTuple):
    """A place where a tape was cut.

    Attributes:
        ops: The ops whose results pass, and "source" for a source that is still needed.
        shapes: The shapes of these results.
        size: How many real numbers pass; a complex one is two.
    """

    ops: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    size: int

    def __str__(self) -> str:
        values = ", ".join(f"{op}{list(s)}" for op, s in zip(self.ops, self.shapes, strict=True))
        noun = "number passes" if self.size == 1 else "numbers pass"
        return f"cut where {self.size} {noun}: {values}"


class Part(NamedTuple):
    """A part of a Jacobian, and how it is accumulated.

    Attributes:
        mode: "forward", "reverse" or "mixed".
        targets: The positions of its targets.
        sources: The positions of its sources.
        rows: How many elements the targets have: so many cotangents take reverse mode.
        columns: How many elements the sources have: so many tangents take forward mode.
        costs: The estimated microseconds by mode, of those that were weighed.
        pushed: The positions of sources whose tangents are pushed forward.
        pulled: The positions of targets whose cotangents are pulled back.
        cuts: Where the tape was cut.
    """

    mode: str
    targets: tuple[int, ...]
    sources: tuple[int, ...]
    rows: int
    columns: int
    costs: Mapping[str, float]
    pushed: tuple[int, ...] = ()
    pulled: tuple[int, ...] = ()
    cuts: tuple[Cut, ...] = ()

    def __str__(self) -> str:
        known = [mode for mode in (FORWARD, REVERSE, MIXED) if mode in self.costs]
        costs = ", ".join(f"{mode} {_duration(self.costs[mode])}" for mode in known)
        why = (
            f"estimated: {costs}"
            if costs
            else (
                f"forward mode takes {self.columns} tangents, reverse mode {self.rows} cotangents"
            )
        )
        lines = [f"{self.rows} × {self.columns}: {self.mode}; {why}"]
        if self.mode == MIXED and not self.cuts:
            lines.append(f"  forward from sources {', '.join(map(str, self.pushed))}")
            lines.append(f"  reverse from targets {', '.join(map(str, self.pulled))}")
        lines += [f"  {cut}" for cut in self.cuts]
        return "\n".join(lines)


def _duration(microseconds: float) -> str:
    return f"{microseconds / 1e3:.3g} ms" if microseconds >= 1e3 else f"{microseconds:.3g} µs"


class Schedule(NamedTuple):
    """How a Jacobian was accumulated; print it to see why.

    Attributes:
        mode: "forward", "reverse", or "mixed" if both directions were used.
        parts: The parts of the Jacobian, which have no target or source in common.

    >>> tape = gt.GradientTape()
    >>> x = tape.watch(np.ones(1000))
    >>> waist = np.sum(x * x)
    >>> J = tape.jacobian(np.sin(waist * np.arange(1000.0)), x)
    >>> print(tape.schedule)
    mixed
      1000 × 1000: mixed; estimated: forward ..., reverse ..., mixed ...
        cut where 1 number passes: sum[]
    """

    mode: str
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        rows = [line for part in self.parts for line in str(part).splitlines()]
        return "\n  ".join([self.mode, *rows])


def schedule_of(planned: Sequence[Planned]) -> Schedule:
    """What users see of a plan."""
    modes = {each.part.mode for each in planned}
    mode = modes.pop() if len(modes) == 1 else MIXED if modes else REVERSE
    return Schedule(mode, tuple(each.part for each in planned))


class Planned(NamedTuple):
    """A part with what it takes to carry it out.

    Attributes:
        part: What users see of it.
        step: The product to compute; None if the tape is not cut.
        cuts: The values that pass at each cut, the sources first and the targets last.
    """

    part: Part
    step: Sweep | Product | None = None
    cuts: Sequence[Sequence[Value]] = ()


def plan(
    sources: Sequence[Value], targets: Sequence[Value], config: SchedulerConfig, *, traced: bool
) -> list[Planned]:
    """Choose how the Jacobian of some targets by some sources is accumulated.

    Args:
        sources: The values to differentiate by, with nodes that are all different.
        targets: The values to differentiate, likewise.
        config: What the user asked for.
        traced: Whether it is for compiled code.

    Returns:
        The parts; targets that depend on no source may be in none of them.
    """
    columns = [math.prod(aval.shape) for _, aval in sources]
    rows = [math.prod(aval.shape) for _, aval in targets]
    strategy = config.strategy
    if strategy is SchedulingStrategy.Auto and min(sum(rows), sum(columns)) <= _FEW:
        strategy = _by_count(sum(rows), sum(columns), config)
    if strategy in (SchedulingStrategy.Forward, SchedulingStrategy.Reverse):
        return [Planned(_swept_as_asked(strategy, columns, rows))]
    starts, ends = [node for node, _ in sources], [node for node, _ in targets]
    graph = TapeGraph(starts, ends)
    reached = graph.reached()
    found = []
    for of_targets, of_sources in components(reached, len(starts)):
        own = graph
        if len(of_targets) < len(ends) or len(of_sources) < len(starts):
            own = TapeGraph([starts[n] for n in of_sources], [ends[n] for n in of_targets])
        choice = _Choice(
            own, of_targets, of_sources, reached, config, COMPILED if traced else EAGER
        )
        found.append(choice.planned())
    return found


def _by_count(rows: int, columns: int, config: SchedulerConfig) -> SchedulingStrategy:
    """The mode that takes fewer tangents or cotangents, of those that are weighed."""
    if rows >= config.forward_mode_threshold * columns:
        return SchedulingStrategy.Forward
    if rows <= max(config.reverse_mode_threshold, 1.0) * columns:
        return SchedulingStrategy.Reverse
    return SchedulingStrategy.Forward


def _swept_as_asked(
    strategy: SchedulingStrategy, columns: Sequence[int], rows: Sequence[int]
) -> Part:
    sources, targets = tuple(range(len(columns))), tuple(range(len(rows)))
    forward = strategy is SchedulingStrategy.Forward
    return Part(
        FORWARD if forward else REVERSE,
        targets,
        sources,
        sum(rows),
        sum(columns),
        costs={},
        pushed=sources if forward else (),
        pulled=() if forward else targets,
    )


class _Way(NamedTuple):
    """One way to accumulate a part."""

    mode: str
    cost: float
    pushed: tuple[int, ...] = ()
    pulled: tuple[int, ...] = ()
    step: Sweep | Product | None = None
    cuts: Sequence[Sequence[Value]] = ()


class _Choice:
    """The choice for one part, by estimated time."""

    def __init__(
        self,
        graph: TapeGraph,
        targets: tuple[int, ...],
        sources: tuple[int, ...],
        reached: Sequence[int],
        config: SchedulerConfig,
        overhead: Overhead,
    ) -> None:
        self._graph, self._config, self._overhead = graph, config, overhead
        self._targets, self._sources = targets, sources
        self._rows = [int(graph.size(node)) for node in graph.targets]
        self._columns = [int(graph.size(node)) for node in graph.sources]
        self._blocks = [[bool(reached[t] >> s & 1) for s in sources] for t in targets]
        self._costs = graph.costs

    def planned(self) -> Planned:
        """The way with the least estimated time, of those that are allowed."""
        ways = self._fixed()
        if self._config.enable_mixed_mode:
            ways += [way for way in (self._covered(), self._chained()) if way is not None]
        costs: dict[str, float] = {}
        for way in ways:
            costs[way.mode] = min(way.cost, costs.get(way.mode, math.inf))
        if self._config.strategy is SchedulingStrategy.Mixed:
            ways = [way for way in ways if way.mode == MIXED] or ways
        best = min(ways, key=lambda way: way.cost)
        part = Part(
            best.mode, self._targets, self._sources, sum(self._rows), sum(self._columns), costs,
            best.pushed, best.pulled, tuple(map(self._cut, best.cuts[1:-1])),
        )  # fmt: skip
        return Planned(part, best.step, best.cuts)

    def _time(self, directions: float) -> float:
        return sweep_time(self._overhead, len(self._graph.records), self._costs[-1], directions)

    def _fixed(self) -> list[_Way]:
        """Everything in one direction; reverse mode first, which is taken if costs are equal."""
        rows, columns = sum(self._rows), sum(self._columns)
        found = []
        if rows < self._config.forward_mode_threshold * columns:
            found.append(_Way(REVERSE, self._time(rows), pulled=self._targets))
        if rows > self._config.reverse_mode_threshold * columns or not found:
            found.append(_Way(FORWARD, self._time(columns), pushed=self._sources))
        return found

    def _covered(self) -> _Way | None:
        """Some sources forward and some targets in reverse, where not all depend on all."""
        if all(map(all, self._blocks)):
            return None  # one direction covers everything at least as well
        of_targets, of_sources = cheapest_cover(self._rows, self._columns, self._blocks)
        if not of_targets or not of_sources:
            return None
        rows = sum(self._rows[n] for n in of_targets)
        columns = sum(self._columns[n] for n in of_sources)
        return _Way(
            MIXED,
            self._time(columns) + self._time(rows),
            tuple(self._sources[n] for n in of_sources),
            tuple(self._targets[n] for n in of_targets),
        )

    # ---- cuts ------------------------------------------------------------------------------

    def _chained(self) -> _Way | None:
        """A product of the Jacobians between cuts; None if nothing is to be gained by cutting."""
        graph = self._graph
        rows = sum(
            n * real_parts(graph.aval(node))
            for n, node in zip(self._rows, graph.targets, strict=True)
        )
        columns = sum(self._columns)
        narrower = min(rows, columns)
        lifetimes = graph.lifetimes()
        widths = graph.widths(lifetimes)
        # A cut that is as wide as the Jacobian is narrow would save no row and no column.
        places = [p for p in range(1, len(graph.records)) if widths[p] < narrower]
        if not places or not graph.sources_are_independent:
            return None
        places = _narrowest(places, widths)
        ends = [0, *places, len(graph.records)]
        across = [float(columns), *[widths[p] for p in places], float(rows)]
        costs = [self._costs[p] for p in ends]
        cost, step = _best_product(self._overhead, ends, across, costs)
        inner = [graph.crossing(lifetimes, p) for p in places]
        used = _used(step)
        every = [graph.sources, *inner, graph.targets]
        cuts = [[(node, graph.aval(node)) for node in every[n]] for n in used]
        return _Way(MIXED, cost, step=_renumbered(step, used), cuts=cuts)

    def _cut(self, values: Sequence[Value]) -> Cut:
        sources = set(self._graph.sources)
        ops = ["source" if node in sources else _op_name(node) for node, _ in values]
        shapes = [aval.shape for _, aval in values]
        sizes = [math.prod(aval.shape) * real_parts(aval) for _, aval in values]
        return Cut(tuple(ops), tuple(shapes), sum(sizes))


def _op_name(node: Any) -> str:
    return str(node.op.name)


def _narrowest(places: Sequence[int], widths: Sequence[float]) -> list[int]:
    """The narrowest of some places, in order: of neighbours that are equally wide, the first."""
    minima = [
        p
        for n, p in enumerate(places)
        if (n == 0 or places[n - 1] != p - 1 or widths[p - 1] > widths[p])
        and (n + 1 == len(places) or places[n + 1] != p + 1 or widths[p + 1] >= widths[p])
    ]
    return sorted(sorted(minima, key=widths.__getitem__)[:_MOST_CUTS])


def _best_product(
    overhead: Overhead, places: Sequence[int], widths: Sequence[float], costs: Sequence[float]
) -> tuple[float, Sweep | Product]:
    """The cheapest product that is the Jacobian of the values at the last place by the first ones.

    It cuts at least once; between cuts, a sweep along everything may be cheaper than a product.

    Args:
        overhead: What sweeps and products take in any case.
        places: Positions among the records where the tape may be cut, and its ends.
        widths: How many numbers pass at each.
        costs: The costs of all records up to each.
    """
    best: dict[tuple[int, int], tuple[float, Sweep | Product]] = {}
    count = len(places)
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            records, cost = places[j] - places[i], costs[j] - costs[i]
            mode = FORWARD if widths[i] < widths[j] else REVERSE
            found: tuple[float, Sweep | Product]
            narrower = min(widths[i], widths[j])
            found = sweep_time(overhead, records, cost, narrower), Sweep(i, j, mode)
            if length == count - 1:
                found = math.inf, found[1]
            for k in range(i + 1, j):
                (early, first), (late, second) = best[i, k], best[k, j]
                total = early + late + product_time(overhead, widths[j], widths[k], widths[i])
                if total < found[0]:
                    found = total, Product(second, first)
            best[i, j] = found
    return best[0, count - 1]


def _used(step: Sweep | Product) -> list[int]:
    """The places that a product cuts at, and its ends."""
    if isinstance(step, Sweep):
        return [step.begin, step.end]
    return sorted({*_used(step.later), *_used(step.earlier)})


def _renumbered(step: Sweep | Product, used: Sequence[int]) -> Sweep | Product:
    if isinstance(step, Sweep):
        return Sweep(used.index(step.begin), used.index(step.end), step.mode)
    return Product(_renumbered(step.later, used), _renumbered(step.earlier, used))
