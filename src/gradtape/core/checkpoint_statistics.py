"""What checkpointing saved, measured while backward passes run.

Whether a result that a record let go of is really gone is seen from a weak reference to its array:
a variable of the program may still hold it. So records are noted as they are made, and looked at
when a backward pass first needs the values of their segment.

The statistics are in a context variable of their own, not in the state: a state lasts as long as a
`with` block, and `CheckpointProfiler.start_tracking` begins none. Threads and tasks have their own.
"""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gradtape.core.level import Segment
    from gradtape.core.recomputable import Recomputable


_Arrays = list[tuple[weakref.ref[Any], int]]


class CheckpointStatistics:
    """Counts what records dropped.

    Attributes:
        saved: The most bytes that were saved in one backward pass, or one run of a graph.
        checkpoints: The number of checkpoints in all.
    """

    def __init__(self) -> None:
        self.saved = 0
        self.checkpoints = 0
        # References to the arrays that each living record computed, with their bytes.
        self._noted: weakref.WeakKeyDictionary[Recomputable, _Arrays] = weakref.WeakKeyDictionary()

    def note(self, record: Recomputable, out: Any) -> None:
        """Note a new record and what it computed."""
        if record.size:
            parts = (out,) if record.op.outputs == 1 else out
            arrays = [part for part in parts if type(part) is np.ndarray]
            self._noted[record] = [(weakref.ref(array), array.nbytes) for array in arrays]

    def begin(self, segment: Segment) -> None:
        """A backward pass over a segment begins: count the arrays that are gone."""
        saved, dropped = 0, set[Any]()
        for record in [record for record in self._noted if record.segment is segment]:
            arrays = self._noted.pop(record)
            gone = sum(nbytes for array, nbytes in arrays if array() is None)
            if gone and record.read:  # nobody would have kept a result that no rule reads
                saved += gone
                dropped.add(record.policy if record.policy.is_one_checkpoint else record)
        self.add(saved, len(dropped))

    def add(self, saved: int, checkpoints: int = 0) -> None:
        """Count what one backward pass, or one run of a graph, saved."""
        self.saved = max(self.saved, saved)
        self.checkpoints += checkpoints


STATISTICS: ContextVar[CheckpointStatistics | None] = ContextVar(
    "gradtape_checkpoints", default=None
)
