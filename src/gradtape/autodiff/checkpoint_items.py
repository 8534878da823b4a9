"""Records as the planners of `schedules` see them."""

from __future__ import annotations

from collections.abc import Sequence

from gradtape.autodiff.schedules.item import Item, Planner
from gradtape.core.recomputable import Recomputable


def planned(
    planner: Planner, records: Sequence[Recomputable], room: int = 0
) -> frozenset[Recomputable]:
    """The records whose results a planner retains if they are replayed now."""
    return frozenset([records[place] for place in planner.retained(items_of(records), room)])


def items_of(records: Sequence[Recomputable]) -> list[Item]:
    """Records as the planner sees them."""
    places = {record: place for place, record in enumerate(records)}
    items = [item_of(record, places) for record in records]
    read = {place for item in items for place in item.reads}
    # What only records outside of the list read counts as read by its own.
    return [
        item._replace(reads=(*item.reads, place)) if record.read and place not in read else item
        for place, (record, item) in enumerate(zip(records, items, strict=True))
    ]


def item_of(record: Recomputable, places: dict[Recomputable, int]) -> Item:
    """A record as the planner sees it, given the numbers of those it reads."""
    own, *reads = record.reads
    sources = record.sources
    inputs = [places[s[0]] for s in sources if s is not None and s[0] in places]
    read = [
        places[source[0]]
        for source, is_read in zip(sources, reads, strict=True)
        if source is not None and is_read and source[0] in places
    ]
    if own:
        read.append(places.get(record, record.place))
    return Item(record.cost, record.size, tuple(inputs), tuple(read), free=record.op.aliases)
