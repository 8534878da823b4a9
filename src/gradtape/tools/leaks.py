"""Results that are kept alive longer than they are of use, and what keeps them alive."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gradtape.core.aval import Aval, aval_of
from gradtape.core.level import Leaf, Node
from gradtape.core.nested import Handle
from gradtape.core.record import Output, Record
from gradtape.core.tensor import Tensor
from gradtape.graph.text import short_line
from gradtape.tools.memory_journal import Journal, Made, Place, kept_values, owner
from gradtape.tools.referrers import chains

# A history that reaches back over so many backward passes is no longer of one step.
_MANY_PASSES = 3
# The search for what holds an object takes long: it is done for the largest ones only.
_MOST_CHAINS = 32


@dataclass(frozen=True)
class Leak:
    """Something that is alive for no apparent reason.

    Attributes:
        aval: Shape and dtype.
        bytes: What would be freed with it: arrays that nothing else in the report, and no
            current result, needs. What several share is counted for the first.
        op: The op that made it.
        line: The line of the user's code that called the op.
        records: How many records its history has.
        origin: Where the history begins, `"tanh at train.py:12"`.
        why: Why it is suspicious.
        chain: What keeps it alive, from a variable down to it; "" if that was not found.
    """

    aval: Aval
    bytes: int
    op: str
    line: str
    records: int
    origin: str
    why: str
    chain: str

    def __str__(self) -> str:
        where = f" at {short_line(self.line)}" if self.line else ""
        back = f" back to {self.origin}" if self.origin else ""
        history = f" → its history: {self.records} records{back}" if self.records else ""
        what = "Tensor" if self.records else "array"
        return (
            f"{self.bytes / 1e6:.2f} MB: {self.chain or 'held by something unknown'} → {what} "
            f"{self.aval} made by {self.op}{where}{history}\n    {self.why}"
        )


@dataclass(frozen=True)
class LeakReport:
    """What `detect_leaks` found, the largest first.

    Attributes:
        leaks: What is suspicious.
    """

    leaks: tuple[Leak, ...]

    @property
    def num_suspicious(self) -> int:
        """How many suspicious tensors and arrays there are."""
        return len(self.leaks)

    @property
    def bytes(self) -> int:
        """What they hold, all together."""
        return sum(leak.bytes for leak in self.leaks)

    def __str__(self) -> str:
        if not self.leaks:
            return "no leaks found"
        shown = "\n".join(map(str, self.leaks[:_MOST_CHAINS]))
        more = len(self.leaks) - _MOST_CHAINS
        tail = f"\n… and {more} more" if more > 0 else ""
        return f"{len(self.leaks)} suspicious, {self.bytes / 1e6:.2f} MB\n{shown}{tail}"


def find_leaks(journal: Journal, growing: set[Place]) -> LeakReport:
    """Look for leaks; see `GradientMemoryProfiler.detect_leaks`.

    Args:
        journal: What was made where and when.
        growing: The places that held more at each checkpoint than at the one before.
    """
    gc.collect()  # what only refers to itself is no leak
    suspects, claimed = _with_history(journal)
    suspects += _without_history(journal, growing, claimed)
    suspects.sort(key=lambda suspect: suspect.bytes, reverse=True)
    objects = [suspect.value for suspect in suspects[:_MOST_CHAINS]]
    ways = [*chains(objects), *[""] * max(0, len(suspects) - _MOST_CHAINS)]
    leaks = [
        Leak(
            aval_of(suspect.value),
            suspect.bytes,
            suspect.made.place.op,
            suspect.made.place.line,
            suspect.records,
            suspect.origin,
            suspect.why,
            way,
        )
        for suspect, way in zip(suspects, ways, strict=True)
    ]
    return LeakReport(tuple(leaks))


@dataclass(slots=True)
class Suspect:
    """A tensor or an array, with what is known of it."""

    value: Any
    made: Made
    why: str
    bytes: int = 0
    records: int = 0
    origin: str = ""


# ---- tensors with history -----------------------------------------------------------------------


def _with_history(journal: Journal) -> tuple[list[Suspect], set[int]]:
    """Suspicious tensors; and the ids of all arrays that some history needs."""
    current: list[Tensor] = []
    old: list[Suspect] = []
    for tensor in _live_tensors():
        made = journal.records.get(_node(tensor))
        if made is None:
            current.append(tensor)  # of before, or made where nobody looked
        elif made.iteration < journal.tallies[made.place].iteration:
            why = "its line has run again since, and nothing current was computed from it"
            old.append(Suspect(tensor, made, why))
        else:
            current.append(tensor)
    needed = set(_history(map(_node, current)))
    suspects = [suspect for suspect in old if _node(suspect.value) not in needed]
    long = _long_histories(journal, current)
    spoken_for = {id(suspect.value) for suspect in long}
    rest = [tensor for tensor in current if id(tensor) not in spoken_for]
    claimed = _arrays(rest, _history(map(_node, rest)))
    for suspect in sorted(suspects, key=lambda suspect: suspect.made.iteration) + long:
        nodes = set(_history([_node(suspect.value)]))
        records = [node for node in nodes if isinstance(node, Record)]
        suspect.records = len(records)
        suspect.origin = _origin(journal, min(records, key=lambda record: record.sequence))
        arrays = _arrays([suspect.value], nodes)
        suspect.bytes = sum(size for key, size in arrays.items() if key not in claimed)
        claimed |= arrays
    return suspects + long, set(claimed)


def _origin(journal: Journal, record: Record) -> str:
    made = journal.records.get(record)
    return "" if made is None else f"{made.place.op} at {short_line(made.place.line)}"


def _long_histories(journal: Journal, current: list[Tensor]) -> list[Suspect]:
    """Tensors whose history reaches back over several backward passes.

    Of those that were computed from each other, the last one.
    """
    found: list[Suspect] = []
    inside: set[Node] = set()
    for tensor in sorted(current, key=lambda tensor: _node(tensor).sequence, reverse=True):
        node = _node(tensor)
        made = journal.records.get(node)
        if made is None or node in inside:
            continue
        nodes = set(_history([node]))
        passes = {known.passes for each in nodes if (known := journal.records.get(each))}
        if len(passes) >= _MANY_PASSES:
            inside |= nodes
            between = max(passes) - min(passes)
            why = (
                f"its history reaches back over {between} backward passes; update values "
                "inside of gt.no_grad(), or detach() them"
            )
            found.append(Suspect(tensor, made, why))
    return found


def _live_tensors() -> Iterator[Tensor]:
    """All tensors that have a history. A view has none of its own: it has its target's."""
    for value in gc.get_objects():
        own = issubclass(type(value), Tensor) and not issubclass(type(value), Handle)
        if own and _has_history(getattr(value, "record", None)):
            yield value


def _has_history(node: Any) -> bool:
    """Whether a record has not been freed: a freed one holds nothing."""
    if isinstance(node, Output):
        node = node.parent
    return isinstance(node, Record) and any(parent is not None for parent in node.parents)


def _node(tensor: Tensor) -> Any:
    return tensor.record


def _history(nodes: Iterable[Node]) -> Iterator[Node]:
    """Some nodes and all they were computed from, each once."""
    seen: set[Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        if not isinstance(node, Leaf):
            parents = getattr(node, "parents", ())
            waiting += [parent for parent in parents if parent is not None]


def _arrays(tensors: Iterable[Tensor], nodes: Iterable[Node]) -> dict[int, int]:
    """The bytes of arrays that tensors and records keep, by their ids."""
    values = [*tensors, *(value for node in nodes for value in kept_values(node))]
    found = [array for value in values if (array := owner(value)) is not None]
    return {id(array): array.nbytes for array in found}


# ---- arrays without history ---------------------------------------------------------------------


def _without_history(journal: Journal, growing: set[Place], claimed: set[int]) -> list[Suspect]:
    """Arrays of the places that grow, but for the last ones they made."""
    suspects = []
    why = "its line held more at each of the last three checkpoints"
    for key, (reference, made) in list(journal.arrays.items()):
        array = reference()
        if array is None or key in claimed or made.place not in growing:
            continue
        if made.iteration < journal.tallies[made.place].iteration:
            suspects.append(Suspect(array, made, why, bytes=array.nbytes))
    return suspects
