"""What a record gives to its parents: the rules of its op, applied to its cotangent."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.broadcasting import fit
from gradtape.core.finite import is_finite
from gradtape.core.large import is_large, is_tiled, pull_large
from gradtape.core.narrow import computes_wide, widened
from gradtape.core.nested import wrap
from gradtape.core.record import (
    Binary,
    Constant,
    General,
    Indexing,
    LargeBinary,
    LargeUnary,
    Node,
    Output,
    Record,
    Unary,
)


class UnsettledError(Exception):
    """The walk has to be careful."""


def pull(
    record: Record, ct: Any, *, rebuild: bool, careful: bool = False
) -> list[tuple[Node, Any]]:
    """The cotangents any record gives to its parents.

    Those of large arrays are careful in any case, unless tensors are rebuilt: the native kernels of
    rules notice what has to be settled, and looking at what NumPy computed is little beside that.
    """
    if isinstance(record, General):
        return pull_general(record, ct, rebuild=rebuild, careful=careful)
    if isinstance(record, Constant):
        return []
    large = isinstance(record, LargeUnary | LargeBinary) and not rebuild
    rules = record.op.flat_vjps
    if (careful or large) and record.op.careful_flat is not None:
        rules = record.op.careful_flat
    inputs: list[Any]
    parents: list[Node | None]
    params: dict[str, Any] = {}
    if isinstance(record, Binary):
        inputs, parents = [record.x, record.y], [record.parent, record.parent2]
    elif isinstance(record, Indexing):
        inputs, parents, params = [record.x], [record.parent], {"index": record.index}
    else:
        assert isinstance(record, Unary)
        inputs, parents, params = [record.x], [record.parent], record.params or {}
    out = record.out
    if rebuild:
        inputs = [_rebuilt(value, parent) for value, parent in zip(inputs, parents, strict=True)]
        out = _rebuilt(out, record)
    given: Any = NotImplemented
    if large:
        wanted = tuple(parent is not None for parent in parents)
        given = pull_large(record.op, wanted, ct, out, inputs, params)
    if given is NotImplemented:
        given = [
            None if parent is None else rule(ct, out, *inputs, **params)
            for rule, parent in zip(rules, parents, strict=True)
        ]
    return [
        (parent, result)
        for parent, result in zip(parents, given, strict=True)
        if parent is not None and result is not None
    ]


def pull_general(
    record: General, ct: Any, *, rebuild: bool = False, careful: bool = False
) -> list[tuple[Node, Any]]:
    """The cotangents a general record gives to its parents."""
    op = record.op
    if op.kind == "custom" and not careful:
        parts = ct if isinstance(ct, list) else [ct]
        if not all(part is None or is_finite(part) for part in parts):
            raise UnsettledError  # a rule of a user's might not pass on that it is not finite
    out, inputs = record.out, record.inputs
    if rebuild:
        inputs = tuple(
            _rebuilt(value, parent) for value, parent in zip(inputs, record.parents, strict=True)
        )
        if op.outputs == 1:
            out = _rebuilt(out, record)
        else:
            out = tuple(_rebuilt(value, Output(record, i)) for i, value in enumerate(out))
    if op.outputs != 1 and not getattr(op.vjp_all, "takes_none", False):
        ct = tuple(
            np.zeros(aval.shape, aval.dtype) if part is None else part
            for part, aval in zip(ct, record.avals, strict=True)
        )
    primals = inputs
    if computes_wide(op, ct):
        ct, out, inputs = widened(ct), widened(out), widened(inputs)
    results: list[tuple[Node, Any]] = []
    given: Any = NotImplemented
    wanted = tuple(parent is not None for parent in record.parents)
    large = not rebuild and is_large((ct, *inputs))
    rules = op.careful if careful or large else op.vjps
    if large and op.vjps and is_tiled(op):
        given = pull_large(op, wanted, ct, out, inputs, record.params)
    if given is NotImplemented:
        given = None
    if given is None and op.vjp_all is not None:
        given = op.vjp_all(wanted, ct, out, *inputs, **record.params)
    for i, parent in enumerate(record.parents):
        if parent is None:
            continue
        if given is not None:
            result = given[i]
        elif op.vjp_each is not None:
            result = op.vjp_each(i, ct, out, *inputs, **record.params)
        else:
            result = rules[i](ct, out, *inputs, **record.params)
        if result is not None:
            results.append((parent, fit(result, primals[i])))
    return results


def _rebuilt(value: Any, node: Node | None) -> Any:
    """The tensor a kept value was: a tensor is a value with a record."""
    return value if node is None or not hasattr(value, "size") else wrap(value, node)
