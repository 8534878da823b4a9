"""A hint for users who call a compiled training step without `no_grad`: its history grows."""

from __future__ import annotations

from typing import Any

from gradtape import containers
from gradtape.core.level import CONTEXT_LEVEL
from gradtape.core.lines import warn_user
from gradtape.core.tensor import Tensor
from gradtape.errors import GrowingHistoryWarning


def warn_of_growing_history(name: str, arguments: Any) -> None:
    """Warn if a module that the function returned goes into it again, and is recorded.

    Args:
        name: The name of the function.
        arguments: Its arguments.
    """
    params = containers.flatten(containers.members_in(arguments))[0]
    if any(_made_by(name, param) for param in params):
        warn_user(
            f"jit: {name} got the module that it returned before with its history, to which each "
            "call adds; memory grows. Call it in a block `with gt.no_grad():`, in which gt.grad "
            "works all the same",
            GrowingHistoryWarning,
        )


def _made_by(name: str, value: Any) -> bool:
    """Whether a value is recorded in a context as a result of a compiled function."""
    record = value.record if isinstance(value, Tensor) else None
    if record is None or record.segment.number > CONTEXT_LEVEL:
        return False
    # A leaf has no op, and the op of a compiled function has its graph.
    graph = getattr(getattr(record, "op", None), "graph", None)
    return graph is not None and bool(graph.name == name)
