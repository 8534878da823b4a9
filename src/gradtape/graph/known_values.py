"""What is known of a value while Python runs: it may be traced, or stand for a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gradtape.autodiff.batch import Batched
from gradtape.core.aval import Abstract
from gradtape.core.call import is_differentiable
from gradtape.core.state import current
from gradtape.core.tensor import Tensor


def levels(value: Any) -> Iterator[Any]:
    """The values below a tensor, down to the array."""
    while isinstance(value, Tensor):
        value = value.fresh()
        yield value
        value = value.value
    yield value


def innermost_value(value: Any) -> Any:
    """The array that a tensor of any level holds."""
    for inner in levels(value):
        value = inner
    return value


def is_unknown(value: Any) -> bool:
    """Whether a number is not known while Python runs: it is traced, or stands for a batch."""
    return isinstance(value, Tensor) and (
        is_batched(value) or isinstance(innermost_value(value), Abstract) or in_trace()
    )


def is_differentiated(value: Any) -> bool:
    """Whether derivatives are taken by a number, or of it: it is on a tape, or has a tangent."""
    if not isinstance(value, Tensor) or not is_differentiable(value):
        return False
    return any(isinstance(v, Tensor) and v.record is not None for v in levels(value))


def is_batched(value: Any) -> bool:
    return any(isinstance(v, Tensor) and isinstance(v.record, Batched) for v in levels(value))


def in_trace() -> bool:
    """Whether a function is being traced."""
    return any(mode.kind == "tracing" for mode in current().modes)


def is_traced(leaves: Sequence[Any]) -> bool:
    """Whether a loop has to become an op: a function is being traced, or a value is symbolic."""
    return in_trace() or any(isinstance(innermost_value(leaf), Abstract) for leaf in leaves)
