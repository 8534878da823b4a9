"""Forward mode along records: the tangents of sources pushed on to a target."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.hooks import HOOKS
from gradtape.core.level import Leaf, Node
from gradtape.core.recomputable import Recomputable
from gradtape.core.record import Record
from gradtape.core.restore import Restorer
from gradtape.errors import GradtapeError


def push(tangents: dict[Node, Any], target: Node, aval: Aval) -> Any:
    """The tangent of `target`, given those of some nodes it was computed from.

    Records between them are visited oldest first; those that do not depend on the given nodes are
    skipped.
    """
    tangents = dict(tangents)
    records = _between(set(tangents), target)
    restorer, last_reads = Restorer(), _last_reads(records)
    with np.errstate(all="ignore"):
        for record in records:
            try:
                tangent = record.push(tangents, restorer)
            except GradtapeError as error:
                HOOKS.rule_failed(record.op, error)
                raise
            if tangent is not None:
                tangents[record] = tangent
            for source in last_reads.get(record, ()):
                restorer.passed(source)
    result = tangents.get(target)
    return np.zeros(aval.shape, aval.dtype) if result is None else result


def _between(starts: set[Node], target: Node) -> list[Record]:
    """The records `target` was computed from, oldest first."""
    seen: set[Node] = set(starts)
    stack = [target]
    found: list[Record] = []
    while stack:
        node = stack.pop()
        if node in seen or isinstance(node, Leaf):
            continue
        seen.add(node)
        assert isinstance(node, Record)
        found.append(node)
        stack.extend(parent for parent in node.parents if parent is not None)
    return sorted(found, key=lambda record: record.sequence)


def _last_reads(records: list[Record]) -> dict[Record, list[Recomputable]]:
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
