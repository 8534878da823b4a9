"""Rows of the table of memory."""

from collections.abc import Iterator

from benchmarks.memory_request import Seconds
from benchmarks.result import Row
from gradtape.tools.statistics import Spread


def bytes_row(
    name: str,
    what: str,
    ours: float,
    peer_name: str,
    peer: float,
    bar: float | None = None,
    *,
    detail: bool = False,
) -> Row:
    """Make a row of two numbers of bytes."""
    ratio = ours / peer
    return Row(
        name=name,
        what=what,
        ours=ours,
        peer_name=peer_name,
        peer=peer,
        ratio=Spread(ratio, ratio, ratio),
        bar=bar,
        unit="bytes",
        detail=detail,
    )


def time_rows(
    name: str,
    what: str,
    ours: Seconds,
    peer_name: str,
    peer: Seconds,
    bar: float | None = None,
) -> Iterator[Row]:
    """Make the rows of times that were measured in turns.

    The side that needs less memory must not profit from a system that is slow to give some. So the
    time that the bar is for leaves out what the system took; the other row has the fastest rounds.
    """
    yield Row(
        name=name,
        what=f"{what}: time outside of the system",
        ours=Spread.of(ours.own).median,
        peer_name=peer_name,
        peer=Spread.of(peer.own).median,
        ratio=Spread.of_ratio(ours.own, peer.own),
        bar=bar,
    )
    one, other = min(ours.all), min(peer.all)
    rounds = Spread.of_ratio(ours.all, peer.all)
    yield Row(
        name=name,
        what=f"{what}: the fastest of {len(ours.all)} rounds, with fresh pages",
        ours=one,
        peer_name=peer_name,
        peer=other,
        ratio=Spread(one / other, min(rounds.low, one / other), max(rounds.high, one / other)),
        bar=bar,
    )
