"""Rows of the table of memory."""

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


def time_row(
    name: str,
    what: str,
    ours: list[float],
    peer_name: str,
    peer: list[float],
    bar: float | None = None,
) -> Row:
    """Make a row of times that were measured in turns."""
    return Row(
        name=name,
        what=what,
        ours=Spread.of(ours).median,
        peer_name=peer_name,
        peer=Spread.of(peer).median,
        ratio=Spread.of_ratio(ours, peer),
        bar=bar,
    )
