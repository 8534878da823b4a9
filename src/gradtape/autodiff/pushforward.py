"""Forward mode along records: the tangents of sources pushed on to a target."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.hooks import HOOKS
from gradtape.core.level import Leaf, Node
from gradtape.core.record import Record
from gradtape.errors import GradtapeError


def push(tangents: dict[Node, Any], target: Node, aval: Aval) -> Any:
    """The tangent of `target`, given those of some nodes it was computed from.

    Records between them are visited oldest first; those that do not depend on the given nodes are
    skipped.
    """
    tangents = dict(tangents)
    with np.errstate(all="ignore"):
        for record in _between(set(tangents), target):
            try:
                tangent = record.push(tangents)
            except GradtapeError as error:
                HOOKS.rule_failed(record.op, error)
                raise
            if tangent is not None:
                tangents[record] = tangent
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
