"""A plan in words: what is kept, what is run again, and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradtape.autodiff.schedules.auto import WholeOrRevolve
from gradtape.autodiff.schedules.fixed import Given
from gradtape.autodiff.schedules.item import Item, needed
from gradtape.autodiff.schedules.room import least_peak
from gradtape.autodiff.schedules.steps import simulate

_MOST_NAMES = 6


def describe(
    items: Sequence[Item],
    plan: frozenset[int],
    names: Sequence[str],
    *,
    room: int | None = None,
) -> list[str]:
    r"""Say what a plan keeps, what is run again because of it, and the peak to expect.

    Args:
        items: The list.
        plan: What its run retains.
        names: A name for each item, such as that of its op.
        room: Bytes for all results; the least that the plan takes by default.

    Returns:
        Lines of text.

    >>> chain = [Item(1.0, 1_000_000, (i - 1,) if i else (), (i,)) for i in range(6)]
    >>> names = ["exp", "sin"] * 3
    >>> print("\n".join(describe(chain, frozenset({1, 3}), names, room=4_000_000)))
    keeps 2 of 6 results that are read: 2.0 MB of 6.0 MB
      sin 2 (2.0 MB)
    runs 3 of 6 items again: 50.0 % of the forward cost
      exp 3 (50.0 %)
    expected peak: 4.0 MB of 4.0 MB
    """
    available = least_peak(items, plan) if room is None else room
    again, cost, peak = simulate(items, available, Given(plan, WholeOrRevolve()))
    read = needed(items)
    total = sum(item.cost for item in items)
    kept: dict[str, list[float]] = {}
    repeated: dict[str, list[float]] = {}
    for p, item in enumerate(items):
        if p in plan:
            kept.setdefault(names[p], []).append(item.bytes)
        if again[p]:
            repeated.setdefault(names[p], []).append(again[p] * item.cost)
    run_again = sum(map(bool, again))
    most = f", at most {max(again)} times" if max(again, default=0) > 1 else ""
    lines = [
        f"keeps {len(plan & read)} of {len(read)} results that are read: "
        f"{_in_bytes(sum(items[p].bytes for p in plan))} of "
        f"{_in_bytes(sum(items[p].bytes for p in read))}",
        *_by_name({name: (len(all_), sum(all_)) for name, all_ in kept.items()}, None),
        f"runs {run_again} of {len(items)} items again{most}: "
        f"{_share(cost, total)} of the forward cost",
        *_by_name({name: (len(all_), sum(all_)) for name, all_ in repeated.items()}, total),
        f"expected peak: {_in_bytes(peak)}" + (f" of {_in_bytes(room)}" if room else ""),
    ]
    return lines


def _by_name(groups: Mapping[str, tuple[int, float]], total: float | None) -> list[str]:
    """One line with the largest groups, amounts as shares of a total or in bytes."""
    order = sorted(groups, key=lambda name: groups[name][1], reverse=True)
    parts = []
    for name in order[:_MOST_NAMES]:
        count, amount = groups[name]
        shown = _in_bytes(amount) if total is None else _share(amount, total)
        parts.append(f"{name} {count} ({shown})")
    if len(order) > _MOST_NAMES:
        parts.append(f"and {sum(groups[name][0] for name in order[_MOST_NAMES:])} others")
    return [f"  {', '.join(parts)}"] if parts else []


def _share(part: float, total: float) -> str:
    return f"{100 * part / total if total else 0:.1f} %"


def _in_bytes(amount: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
