"""By composition: an op that is made of other ops which have kernels, where it states how."""

from __future__ import annotations

from typing import Any

from gradtape.core.kernels import Task


class Composed:
    """Calls `op.composed`, which computes with other ops or passes."""

    name = "composed"

    def run(self, task: Task) -> Any:
        if task.op.composed is None or task.wanted is not None:
            return NotImplemented
        return task.op.composed(*task.values, **task.params)
