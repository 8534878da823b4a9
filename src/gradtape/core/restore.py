"""Restoring values that records did not keep, while a walk visits them.

A walk asks for the values that the rule of a record reads. What is missing is computed again from
the nearest values that are there: the missing records that lead to it are replayed, oldest first,
each once. Which of their results are retained for the records that the walk visits next is up to
the policy; the others are dropped as soon as the replay no longer needs them. So a stretch is
replayed at most once per visit, however its values depend on each other, and as few times as its
policy finds room for.

Restored values are held here, not in the records: an error in the middle leaves the tape as it was.

In a trace nothing is computed yet, and a compiler would find out that a replay computes what is
there already. So its operands go through an op that says "not before this cotangent".
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval, aval_of, nbytes
from gradtape.core.call import call_rewritten
from gradtape.core.checkpoint_statistics import STATISTICS
from gradtape.core.finite import is_traced
from gradtape.core.lowering import Relabel
from gradtape.core.op import Facts, Op, Zero, infer_like
from gradtape.core.ownership import other_references
from gradtape.core.recomputable import Recomputable, RecomputableAssigning, Source
from gradtape.core.state import current, recording_from, run_inside, seen_by
from gradtape.core.tensor import Tensor


class Restorer:
    """The values restored in one walk.

    Args:
        cotangents: Returns the cotangents that wait for their records, each of them an array or a
            list of arrays and None.

    Attributes:
        held: The bytes of restored values.
        changed: Whether something was let go since the records to replay were found.
    """

    def __init__(self, cotangents: Callable[[], Iterable[Any]] = tuple) -> None:
        self._values: dict[Recomputable, Any] = {}
        self.held = 0
        self._cotangents = cotangents
        # The records whose results the visited one reads.
        self._wanted: set[Recomputable] = set()
        self.changed = False
        self._statistics = STATISTICS.get()

    def values(self, record: Recomputable, ct: Any = None) -> tuple[tuple[Any, ...], Any]:
        """The inputs and the result of a record as its rules read them: values, or avals.

        Args:
            record: The record that is visited.
            ct: Its cotangent; of an op with several results, one for each or None. None if it is
                visited for something else.
        """
        if self._statistics is not None:
            self._statistics.begin(record.segment)
            self._statistics = None
        record.policy.visited(record)
        read_out, *read = record.reads
        sources = record.sources
        wanted = [source for source, reads in zip(sources, read, strict=True) if source and reads]
        if read_out:
            wanted.append((record, None))
        self._wanted = {source[0] for source in wanted}
        found = self._find(wanted, _traced(ct))
        # What no rule reads must not be seen: where 0 meets infinity, all that is there counts.
        inputs = tuple(
            [
                aval_of(held) if not reads else held if source is None else found[source]
                for source, reads, held in zip(sources, read, record.inputs, strict=True)
            ]
        )
        return inputs, found[record, None] if read_out else record.avals

    def _find(self, wanted: Sequence[Source], after: Tensor | None) -> dict[Source, Any]:
        """Values that are there, or are computed again."""
        while True:
            # A policy short of room may let go what was there before, also for a walk in another
            # thread. So values are looked at once they are held here.
            found = {source: self._value(source) for source in wanted}
            missing = [source[0] for source, value in found.items() if not _is_there(value)]
            if not missing:
                return found
            self._replay(missing, after)

    def passed(self, record: Recomputable) -> None:
        """The walk has visited a record: nothing that is left to visit reads its result."""
        if self._values.pop(record, None) is not None:
            self.held -= record.size

    def cotangents(self) -> int:
        """The bytes of cotangents that wait for their records."""
        parts = (
            part for ct in self._cotangents() for part in (ct if isinstance(ct, list) else (ct,))
        )
        return sum(nbytes(part) for part in parts if hasattr(part, "dtype"))

    def let_go(self) -> int:
        """Drop the newest restored result that the visited record does not read."""
        found = [record for record in self._values if record.size and record not in self._wanted]
        if not found:
            return 0
        newest = max(found, key=lambda record: record.sequence)
        self.passed(newest)
        self.changed = True
        return newest.size

    def _has(self, source: Source) -> bool:
        record, index = source
        return record in self._values or record.is_there(index)

    def _value(self, source: Source) -> Any:
        record, index = source
        if record in self._values:
            out = self._values[record]
            return out if index is None else out[index]
        return record.result(index)

    # ---- replaying -------------------------------------------------------------------------

    def _replay(self, targets: Sequence[Recomputable], after: Tensor | None) -> None:
        """Compute the results of some records, and of those they depend on.

        In a trace, that is done once the value `after` has been computed.
        """
        later = _Later(after)
        self.changed = True
        while self.changed:
            self.changed = False
            stretch = self._missing(targets)
            retained = targets[0].policy.retained(stretch, self)
        uses = Counter(source for record in stretch for source in _records(record))
        if retained is None:
            retained = frozenset(record for record in stretch if record.read)
        passing = set(stretch).difference(retained, targets)
        for record in stretch:
            self._values[record] = self._computed(record, uses, passing, later)
            record.policy.replayed(record)
            self.held += record.size
            for source in _records(record):
                uses[source] -= 1
                if not uses[source] and source in passing:
                    self.passed(source)

    def _missing(self, targets: Iterable[Recomputable]) -> list[Recomputable]:
        """The records to replay for the results of some records, oldest first."""
        found: set[Recomputable] = set()
        pending = list(targets)
        while pending:
            record = pending.pop()
            if record not in found:
                found.add(record)
                pending += [
                    source[0]
                    for source in record.sources
                    if source is not None and not self._has(source)
                ]
        return sorted(found, key=lambda record: record.sequence)

    def _computed(
        self,
        record: Recomputable,
        uses: Counter[Recomputable],
        passing: set[Recomputable],
        later: _Later,
    ) -> Any:
        """The result of a record, computed again from its operands."""
        sources = record.sources
        if self._is_last_use(record, sources[0] if sources else None, uses, passing):
            (whole, _), part = sources[0], sources[1]  # type: ignore[misc]
            target = self._values[whole]
            target[record.params["index"]] = record.inputs[1] if part is None else self._value(part)
            return target
        found = self._find([source for source in sources if source is not None], later.after)
        operands = [
            later(held if source is None else found[source])
            for source, held in zip(sources, record.inputs, strict=True)
        ]
        state = current()
        again = functools.partial(call_rewritten, record.op, operands, record.params)
        if state.hidden:  # from modes that see the rules of a record as one, but not this
            again = functools.partial(run_inside, seen_by(state.hidden), again)
        if (state.floor, state.spared) != record.floor:
            again = functools.partial(run_inside, recording_from(record.floor), again)
        out = again()
        record.check(out)
        out = record.policy.labelled(record.linked(out))
        later.add(out)
        return out

    def _is_last_use(
        self,
        record: Recomputable,
        whole: Source | None,
        uses: Counter[Recomputable],
        passing: set[Recomputable],
    ) -> bool:
        """Whether an assignment may write into its operand, which only this replay knows."""
        if not (isinstance(record, RecomputableAssigning) and whole is not None):
            return False
        if not (isinstance(whole[0], RecomputableAssigning) and whole[0] in passing):
            return False
        if uses[whole[0]] != 1 or type(self._values[whole[0]]) is not np.ndarray:
            return False
        return other_references((self._values[whole[0]],)) == 0


# ---- replays in a trace -------------------------------------------------------------------------

# The value of the first operand, not before the second one is there.
AGAIN = Op(
    "again",
    lambda xp, x, after: x,
    infer_like,
    vjps=(lambda ct, _out, _x, _after: ct, Zero("only the time at which it is there matters")),
    jvp=lambda tangents, _out, _x, _after: tangents[0],
    batch=lambda op, axes, args, params: (call_rewritten(op, args, params), axes[0]),
    aliases=True,
    facts=Facts(layout="same", carries=(0,)),
    lower=Relabel(),
)


class _Later:
    """Makes the operands of a replay in a trace wait for a value; leaves others as they are."""

    def __init__(self, after: Tensor | None) -> None:
        self.after = after
        # By identity, with the values, which must live as long: results of the replay as they are.
        self._known: dict[int, tuple[Any, Any]] = {}

    def __call__(self, value: Any) -> Any:
        if self.after is None or not is_traced(value):
            return value
        known = self._known.get(id(value))
        if known is None:
            waiting = call_rewritten(AGAIN, (value, self.after), {})
            known = self._known[id(value)] = value, waiting
        return known[1]

    def add(self, out: Any) -> None:
        """Note results of the replay, which wait already."""
        if self.after is not None:
            for value in out if isinstance(out, tuple) else (out,):
                self._known[id(value)] = value, value


def _is_there(value: Any) -> bool:
    """Whether a result, or each of several, is a value and not an `Aval`."""
    return not any(isinstance(part, Aval) for part in (value if type(value) is tuple else (value,)))


def _traced(ct: Any) -> Tensor | None:
    """The traced tensor in a cotangent, or in one of several; None if there is none."""
    for part in ct if isinstance(ct, list | tuple) else (ct,):
        if is_traced(part):
            while isinstance(part.value, Tensor):
                part = part.value
            return part  # type: ignore[no-any-return]
    return None


def _records(record: Recomputable) -> list[Recomputable]:
    """The records whose results a record reads when it is computed."""
    return [source[0] for source in record.sources if source is not None]
