"""One line of the table of results."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harness import Contender, Samples, Settings, measure
from gradtape.tools.statistics import Spread

OURS = "gradtape"


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of ours, the same of a peer, their ratio, and the bar the ratio is held against.

    The ratio is ours / peer and must not exceed the bar; a `speedup` is peer / ours and must reach
    it.
    """

    name: str
    what: str
    ours: float
    peer_name: str
    peer: float
    ratio: Spread
    bar: float | None = None
    """The worst ratio that meets the goal; None where the peer is shown for information."""
    unit: str = "s"
    detail: bool = False
    """Whether the row only explains another one; it then goes to a table of its own."""
    speedup: bool = False
    threads: int = 1

    @property
    def met(self) -> bool | None:
        """Whether the median ratio is on the right side of the bar."""
        if self.bar is None:
            return None
        return self.ratio.median >= self.bar if self.speedup else self.ratio.median <= self.bar


@dataclass(frozen=True, slots=True)
class NotRun:
    """A comparison that could not be made on this machine, and why."""

    name: str
    side: str
    why: str


def compare(
    name: str,
    what: str,
    ours: Contender,
    peers: Sequence[tuple[Contender, float | None]],
    settings: Settings,
    *,
    per: int = 1,
) -> list[Row]:
    """Time ours against peers, all interleaved, and make one row per peer.

    Args:
        name: Name of the benchmark.
        what: What one call does, for the reader.
        ours: Our side.
        peers: Each peer with the bar for ours / peer, or None.
        settings: How long to measure.
        per: Operations per call; times are given per operation.

    Returns:
        One row per peer.
    """
    samples = measure([ours, *(peer for peer, _ in peers)], settings)
    return [row_of(name, what, samples, ours.name, p.name, bar, per=per) for p, bar in peers]


def row_of(
    name: str,
    what: str,
    samples: Samples,
    ours: str,
    peer: str,
    bar: float | None,
    *,
    per: int = 1,
) -> Row:
    """Make the row of two interleaved samples."""
    return Row(
        name=name,
        what=what,
        ours=Spread.of(samples[ours]).median / per,
        peer_name=peer,
        peer=Spread.of(samples[peer]).median / per,
        ratio=Spread.of_ratio(samples[ours], samples[peer]),
        bar=bar,
    )
