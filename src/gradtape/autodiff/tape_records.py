"""The records of a tape, to read: what was computed from what, and by which line of code."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from gradtape.autodiff.tape_graph import ancestors
from gradtape.core.aval import Aval, aval_of
from gradtape.core.level import Leaf, Node
from gradtape.core.record import Constant, Output, Record, find_aval

# Longer parameters are cut in a listing, which is read line by line.
_LONGEST = 40


@dataclass(frozen=True)
class TapeRecord:
    """One op that a tape has recorded, or a tensor that it watches.

    Attributes:
        number: Its number in the listing.
        op: The name of the op; "watch" for a tensor that the tape watches.
        results: The shapes and dtypes of the results.
        operands: For each operand the `Source` that it comes from, or what is known of one that is
            not recorded: a number, a shape and dtype, or None.
        params: The parameters of the op.
        line: The line of the user's code, "file.py:12"; "" if the tape does not note lines.
    """

    number: int
    op: str
    results: tuple[Aval, ...]
    operands: tuple[Source | Aval | complex | None, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    line: str = ""

    def __str__(self) -> str:
        return "  ".join(cell for cell in self.cells() if cell)

    def cells(self) -> tuple[str, str, str, str, str]:
        """Its row of the listing: number, op, results, operands, line."""
        given = [_operand(operand) for operand in self.operands]
        given += [f"{name}={_short(value)}" for name, value in self.params.items()]
        results = ", ".join(map(str, self.results))
        folder, _, name = self.line.rpartition(os.sep)
        return f"#{self.number}", self.op, results, ", ".join(given), name or folder


@dataclass(frozen=True)
class Source:
    """An operand that another record made: its number, and which of its results it is."""

    record: int
    result: int = 0

    def __str__(self) -> str:
        return f"#{self.record}" + (f"[{self.result}]" if self.result else "")


def _operand(operand: Any) -> str:
    return "?" if operand is None else str(operand)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


class TapeRecords(Sequence[TapeRecord]):
    """The records that some results depend on, in the order in which they were made.

    It is a sequence of `TapeRecord`; print it for a listing.
    """

    def __init__(self, rows: Sequence[TapeRecord]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, index: int) -> TapeRecord: ...
    @overload
    def __getitem__(self, index: slice) -> TapeRecords: ...
    def __getitem__(self, index: int | slice) -> TapeRecord | TapeRecords:
        return TapeRecords(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[TapeRecord]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"<{len(self)} records of a tape>"

    def __str__(self) -> str:
        rows = [row.cells() for row in self._rows]
        widths = [max(map(len, column), default=0) for column in zip(*rows, strict=True)]
        lines = []
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)


def records_of(targets: Sequence[Node], lines: Mapping[int, str]) -> TapeRecords:
    """The records that some nodes depend on.

    Args:
        targets: The nodes.
        lines: The lines of the user's code, by the sequence numbers of records.
    """
    records = ancestors(targets)
    leaves = _leaves(records, targets)
    numbers: dict[Node, int] = {}
    for node in (*leaves, *(r for r in records if type(r) is not Output)):
        numbers[node] = len(numbers)
    avals: dict[Node, Any] = {}
    rows = [TapeRecord(numbers[leaf], "watch", (leaf.aval,)) for leaf in leaves]
    for record in records:
        found = find_aval(record, avals)
        if type(record) is Output:
            continue
        results = found if isinstance(found, tuple) else (found,)
        line = lines.get(record.sequence, "")
        if isinstance(record, Constant):
            rows.append(TapeRecord(numbers[record], "constant", results, line=line))
            continue
        operands = [
            _known(value) if node is None else _source(node, numbers)
            for node, value in zip(record.parents, record.inputs, strict=True)
        ]
        params = dict(record.params or {})
        name = record.op.name
        rows.append(TapeRecord(numbers[record], name, results, tuple(operands), params, line))
    return TapeRecords(rows)


def _leaves(records: Sequence[Record], targets: Sequence[Node]) -> list[Leaf]:
    """The leaves that records use, or that are among the targets, each once."""
    found: dict[Leaf, None] = {}
    for node in (*(parent for record in records for parent in record.parents), *targets):
        if isinstance(node, Leaf):
            found[node] = None
    return list(found)


def _source(node: Node, numbers: Mapping[Node, int]) -> Source:
    if isinstance(node, Output):
        return Source(numbers[node.parent], node.index)
    return Source(numbers[node])


def _known(value: Any) -> Any:
    """What a record knows of an operand that is not recorded."""
    if value is None or isinstance(value, int | float | complex):
        return value
    return aval_of(value)
