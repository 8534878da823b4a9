"""By composition: ops that state how they are made of other ops with kernels."""

from __future__ import annotations

from typing import Any

from gradtape.core.kernels import Task


class Composed:
    """Calls `op.composed`, which computes with other ops, or declines."""

    name = "composed"
    for_elements = False

    def run(self, task: Task) -> Any:
        if task.op.composed is None or task.wanted is not None:
            return NotImplemented
        return task.op.composed(*task.values, **task.params)
