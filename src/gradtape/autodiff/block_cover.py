"""Which sources to push and which targets to pull, so that every block of a Jacobian is covered.

A block is there once its source has been pushed forward or its target pulled back. The cheapest
choice is a vertex cover of the graph whose edges are the blocks, of least weight. That graph is
bipartite, so the cover is where a maximal flow from targets to sources is held up (König).
"""

from __future__ import annotations

from collections.abc import Sequence


def components(
    reached: Sequence[int], sources: int
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Groups of targets and sources that no block connects.

    Args:
        reached: For each target, the sources that it depends on, as bits of a number.
        sources: How many sources there are.

    Returns:
        For each group the positions of its targets, and those of its sources.
    """
    groups: list[tuple[list[int], int]] = []
    for target, bits in enumerate(reached):
        if not bits:
            continue
        joined, apart = [target], []
        for targets, own in groups:
            if own & bits:
                joined, bits = [*targets, *joined], own | bits
            else:
                apart.append((targets, own))
        groups = [*apart, (joined, bits)]
    return [
        (tuple(sorted(targets)), tuple(n for n in range(sources) if bits >> n & 1))
        for targets, bits in groups
    ]


def cheapest_cover(
    rows: Sequence[float], columns: Sequence[float], blocks: Sequence[Sequence[bool]]
) -> tuple[list[int], list[int]]:
    """The targets to pull and the sources to push, of the least total weight.

    Args:
        rows: The weight of each target.
        columns: The weight of each source.
        blocks: For each target, which sources it depends on.
    """
    flow = _Flow(rows, columns, blocks)
    while flow.increase():
        pass
    # Targets that water still reaches are not where it is held up; sources that it reaches are.
    wet_targets, wet_sources = flow.reachable()
    pulled = [t for t in range(len(rows)) if t not in wet_targets and any(blocks[t])]
    return pulled, sorted(wet_sources)


class _Flow:
    """A flow from each target, up to its weight, along blocks, into sources, up to theirs."""

    def __init__(
        self, rows: Sequence[float], columns: Sequence[float], blocks: Sequence[Sequence[bool]]
    ) -> None:
        self._out, self._into = list(map(float, rows)), list(map(float, columns))  # what is left
        self._edges = [[s for s, there in enumerate(row) if there] for row in blocks]
        self._along: dict[tuple[int, int], float] = {}

    def _search(self) -> tuple[dict[int, int | None], dict[int, int]]:
        """The targets and sources that more can flow to, and where it comes from.

        Flow along a block can be taken back, so it also reaches targets through sources.
        """
        from_source: dict[int, int | None] = {t: None for t, left in enumerate(self._out) if left}
        from_target: dict[int, int] = {}
        pending = list(from_source)
        while pending:
            t = pending.pop()
            for s in self._edges[t]:
                if s in from_target:
                    continue
                from_target[s] = t
                for (other, source), amount in self._along.items():
                    if source == s and amount and other not in from_source:
                        from_source[other] = s
                        pending.append(other)
        return from_source, from_target

    def reachable(self) -> tuple[set[int], set[int]]:
        from_source, from_target = self._search()
        return set(from_source), set(from_target)

    def increase(self) -> bool:
        """Let more flow along one path; False if there is none."""
        from_source, from_target = self._search()
        end = next((s for s in from_target if self._into[s]), None)
        if end is None:
            return False
        path, s = [], end
        amount = self._into[end]
        while True:
            t = from_target[s]
            back = from_source[t]
            path.append((t, s, back))
            if back is None:
                amount = min(amount, self._out[t])
                break
            amount = min(amount, self._along[t, back])
            s = back
        for t, s, back in path:
            self._along[t, s] = self._along.get((t, s), 0.0) + amount
            if back is None:
                self._out[t] -= amount
            else:
                self._along[t, back] -= amount
        self._into[end] -= amount
        return True
