"""Forward mode along records: the tangents of sources pushed on to a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.forward import pushed
from gradtape.core.aval import Aval
from gradtape.core.blame import blame
from gradtape.core.broadcasting import fit
from gradtape.core.finite import is_finite
from gradtape.core.narrow import computes_wide, widened
from gradtape.core.op import Rule
from gradtape.core.record import (
    Binary,
    Constant,
    General,
    Indexing,
    Leaf,
    Node,
    Output,
    Record,
    Unary,
    parents_of,
)
from gradtape.errors import GradtapeError, NotDifferentiableError


def push(tangents: dict[Node, Any], target: Node, aval: Aval) -> Any:
    """The tangent of `target`, given those of some nodes it was computed from.

    Records between them are visited oldest first; what does not depend on the given nodes is
    passed by.
    """
    tangents = dict(tangents)
    with np.errstate(all="ignore"):
        for record in _between(set(tangents), target):
            try:
                tangent = _push_one(record, tangents)
            except GradtapeError as error:
                blame(record, error)
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
        stack.extend(parent for parent in parents_of(node) if parent is not None)
    return sorted(found, key=lambda record: record.sequence)


def _push_one(record: Record, tangents: dict[Node, Any]) -> Any:
    """The tangent(s) of a record's result, or None if no parent has one."""
    if isinstance(record, Output):
        parts = tangents.get(record.parent)
        return None if parts is None else parts[record.index]
    if isinstance(record, Constant):
        return None
    parents = parents_of(record)
    given = tuple(None if parent is None else tangents.get(parent) for parent in parents)
    if all(tangent is None for tangent in given):
        return None
    op = record.op
    if op.jvp is None:
        raise NotDifferentiableError(f"{op.name}: has no forward-mode derivative")
    if isinstance(record, General):
        if computes_wide(op, given):
            return _push_wide(record, given)
        return pushed(op, given, record.out, record.inputs, record.params)
    if isinstance(record, Indexing):
        return op.jvp(given, None, record.x, index=record.index)
    assert isinstance(record, Unary | Binary)
    inputs = (record.x, record.y) if isinstance(record, Binary) else (record.x,)
    if not op.partials:
        params = record.params or {} if isinstance(record, Unary) else {}
        return pushed(op, given, record.out, inputs, params)
    # The op's own rule would ask for shapes the fast path did not keep; here they are all the same.
    total = _sum_of_terms(op.partials, given, record.out, inputs)
    if total is None or op.careful_flat is None or is_finite(total):
        return total
    return _sum_of_terms(op.careful_flat, given, record.out, inputs)


def _sum_of_terms(
    partials: Sequence[Rule], tangents: Sequence[Any], out: Any, inputs: Sequence[Any]
) -> Any:
    total = None
    for partial, tangent in zip(partials, tangents, strict=True):
        term = None if tangent is None else partial(tangent, out, *inputs)
        if term is not None:
            total = term if total is None else total + term
    return total


def _push_wide(record: General, given: tuple[Any, ...]) -> Any:
    """The tangent(s) of a result narrower than float32, in which its rule computes."""
    op, out = record.op, record.out
    tangent = pushed(op, widened(given), widened(out), widened(record.inputs), record.params)
    if tangent is None or op.outputs == 1:
        return None if tangent is None else fit(tangent, out)
    return tuple(
        None if part is None else fit(part, aval)
        for part, aval in zip(tangent, record.avals, strict=True)
    )
