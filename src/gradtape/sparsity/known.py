"""Values of a trace that do not depend on the argument, such as arrays of indices.

They are computed when they are asked for. What a pattern relied on is noted, so that a later call
can find out whether it still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.evaluate import evaluate
from gradtape.graph.capture import Capture, DrawCapture
from gradtape.graph.ir import Literal, Node, Operand
from gradtape.graph.known_values import (
    innermost_value,
    is_batched,
    is_differentiated,
    is_unknown,
)

# Kinds of ops that run code of users, which may be slow, or do something besides.
_OF_USERS = ("custom", "host", "control", "graph")
# Where a value comes from: the number of an input of the graph, or a hidden input of a graph that
# was derived from it, such as an array that a derivative rule uses from outside.
Source = int | Capture


class Known:
    """An array that does not depend on the argument.

    Args:
        compute: Computes it; gives None if it cannot.
        sources: The hidden inputs and further arguments that it comes from.
        moved: Whether its elements are elements of these, only at other places.
    """

    def __init__(self, compute: Callable[[], Any], sources: frozenset[Source], moved: bool) -> None:
        self._compute: Callable[[], Any] | None = compute
        self._array: Any = None
        self.sources = sources
        self.moved = moved

    @property
    def array(self) -> Any:
        """Its elements; None if they cannot be computed."""
        if self._compute is not None:
            self._array = self._compute()
            self._compute = None
        return self._array


class Reliance:
    """Which inputs a pattern depends on by value, or by the places of their zeros."""

    def __init__(self) -> None:
        self.values: dict[Source, None] = {}
        self.zeros: dict[Source, None] = {}

    def on(self, known: Known | None, *, zeros: bool = False) -> None:
        """Note that the pattern depends on an array, or only on where it has zeros."""
        if known is not None:
            noted = self.zeros if zeros and known.moved else self.values
            noted.update(dict.fromkeys(known.sources))


def of_operand(operand: Operand) -> Known | None:
    """A number in the graph; None for other operands."""
    if not isinstance(operand, Literal):
        return None
    return Known(lambda: np.asarray(operand.value), frozenset(), True)


def of_number(number: int) -> Known:
    """A number that is always the same, such as that of a step."""
    return Known(lambda: np.asarray(number), frozenset(), True)


def of_source(source: Source, value: Any) -> Known | None:
    """An input, or what a rule uses from outside; None if a pattern cannot depend on its value."""
    if is_open(value) or (array := concrete(value)) is None:
        return None
    return Known(lambda: array, frozenset({source}), True)


def of_capture(capture: Capture) -> Known | None:
    """What a rule uses from outside; None if a pattern cannot depend on its value."""
    return None if isinstance(capture, DrawCapture) else of_source(capture, capture.current())


def is_open(value: Any) -> bool:
    """Whether a pattern cannot depend on a value: what is 0 may have a derivative that is not."""
    return is_unknown(value) or is_differentiated(value)


def of_result(node: Node, number: int, operands: Sequence[Known | None]) -> Known | None:
    """A result of a node; None if it depends on the argument."""
    if node.has_effect() or node.op.kind in _OF_USERS:
        return None
    given = [known for known in operands if known is not None]
    if len(given) < len(operands):
        return None

    def compute() -> Any:
        arrays = [known.array for known in given]
        if any(array is None for array in arrays):
            return None
        values = [
            operand.value if isinstance(operand, Literal) else array
            for operand, array in zip(node.operands, arrays, strict=True)
        ]
        try:
            with np.errstate(all="ignore"):
                out = evaluate(node.op, values, node.params)
        except Exception:  # the function itself raises when it runs
            return None
        return np.asarray(out if node.op.outputs == 1 else out[number])

    sources = frozenset().union(*(known.sources for known in given))
    moved = node.op.facts.rearranges and all(known.moved for known in given)
    return Known(compute, sources, moved)


def concrete(value: Any) -> Any:
    """The array that an argument or a captured value holds; None while it stands for others."""
    found = innermost_value(value)
    if is_batched(value) or not isinstance(found, np.ndarray | np.generic | int | float | complex):
        return None
    return np.asarray(found)
