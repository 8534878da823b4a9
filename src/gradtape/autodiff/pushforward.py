"""Forward mode along records: tangents of some nodes pushed on to others."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from gradtape.core.evaluate import add
from gradtape.core.finite import is_finite
from gradtape.core.hooks import HOOKS
from gradtape.core.level import WITH_MODES, Leaf, Node
from gradtape.core.recomputable import Recomputable
from gradtape.core.record import Pusher, Record
from gradtape.core.restore import Restorer
from gradtape.core.state import (
    STATE,
    WATCHING,
    Proceeding,
    current,
    rules_apart,
    run_inside,
    seen_by,
)
from gradtape.errors import GradtapeError

Tangents = Mapping[Node, Any]


def push(
    tangents: Tangents,
    targets: Sequence[Node],
    *,
    cut: Collection[Node] = frozenset(),
    traced: bool = False,
) -> list[Any]:
    """The tangents of targets, given those of some nodes that they were computed from.

    As in a backward walk, finite results are right; if they are not finite, tangents are pushed
    again with rules that settle 0·∞ where values are not finite (`core.settle`).

    Args:
        tangents: The tangents of some nodes. If one of these depends on another, its own tangent is
            added to what is pushed on to it.
        targets: The nodes whose tangents are wanted.
        cut: Nodes to treat as independent variables: nothing is pushed on to them.
        traced: Whether values are those of a trace, which cannot be checked afterwards.

    Returns:
        A tangent for each target; None if it does not depend on the given nodes.
    """
    if (WATCHING or WITH_MODES) and (scope := rules_apart(current())) is not None:
        again = functools.partial(push, tangents, targets, cut=cut, traced=traced)
        return run_inside(scope, again)
    records = _between(cut, targets)
    # Modes are not to see a second push.
    pusher = Pusher(Restorer(), careful=traced or bool(_watching()))
    found = _pushed(tangents, records, targets, cut, pusher)
    if pusher.unsure and not all(tangent is None or is_finite(tangent) for tangent in found):
        found = _pushed(tangents, records, targets, cut, Pusher(Restorer(), careful=True))
    return found


def _pushed(
    given: Tangents,
    records: Sequence[Record],
    targets: Sequence[Node],
    cut: Collection[Node],
    pusher: Pusher,
) -> list[Any]:
    tangents = dict(given)
    watching = _watching()
    ending, passed = _last_reads(records, targets), _last_restored(records)
    with np.errstate(all="ignore"):
        for record in records:
            if record in cut:
                continue
            try:
                if watching:
                    tangent = _push_seen(watching, record, tangents, pusher)
                else:
                    tangent = record.push(tangents, pusher)
            except GradtapeError as error:
                HOOKS.rule_failed(record.op, error)
                raise
            if tangent is not None:
                own = given.get(record)
                tangents[record] = tangent if own is None else add(own, tangent)
            for node in ending.get(record, ()):
                tangents.pop(node, None)
            for source in passed.get(record, ()):
                pusher.restorer.passed(source)
    return [tangents.get(target) for target in targets]


def _watching() -> Sequence[Any]:
    """The modes that see what is pushed along each record."""
    if not WATCHING:
        return ()
    return [mode for mode in STATE.get().pullers if hasattr(mode, "push")]


def _push_seen(modes: Sequence[Any], record: Record, tangents: Tangents, pusher: Pusher) -> Any:
    """Let modes see the rule of a record as one step; others see the ops of the rule."""
    state = STATE.get()
    given = [tangents.get(parent) for parent in record.parents if parent is not None]
    rest = tuple([mode for mode in state.modes if mode not in modes])

    def pushed() -> Any:
        return run_inside(seen_by(rest), record.push, tangents, pusher)

    proceed = Proceeding(pushed, lambda: record.read_values(lambda: pusher.restorer))
    for mode in reversed(modes):
        proceed = proceed.seen(functools.partial(mode.push, record, given))
    return proceed()


def _between(cut: Collection[Node], targets: Sequence[Node]) -> list[Record]:
    """The records that the targets were computed from, up to those of a cut, oldest first."""
    seen: set[Node] = set()
    stack = list(targets)
    found: list[Record] = []
    while stack:
        node = stack.pop()
        if node in seen or isinstance(node, Leaf):
            continue
        seen.add(node)
        assert isinstance(node, Record)
        found.append(node)
        if node not in cut:
            stack.extend([parent for parent in node.parents if parent is not None])
    return sorted(found, key=lambda record: record.sequence)


def _last_reads(records: Sequence[Record], targets: Sequence[Node]) -> dict[Record, list[Node]]:
    """For each record, the nodes whose tangents nothing after it reads, targets excepted."""
    found: dict[Record, list[Node]] = {}
    seen: set[Node] = set(targets)
    for record in reversed(records):
        for node in record.parents:
            if node is not None and node not in seen:
                seen.add(node)
                found.setdefault(record, []).append(node)
    return found


def _last_restored(records: Sequence[Record]) -> dict[Record, list[Recomputable]]:
    """For each record, those whose results it is the last to read; all can be recomputed."""
    last: dict[Recomputable, Record] = {}
    for record in records:
        if isinstance(record, Recomputable):
            last[record] = record
            last.update((source[0], record) for source in record.sources if source is not None)
    found: dict[Record, list[Recomputable]] = {}
    for source, reader in last.items():
        found.setdefault(reader, []).append(source)
    return found
