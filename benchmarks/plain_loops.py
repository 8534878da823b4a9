"""`scan`, `while_loop` and `map` as loops of Python: the reference, and PyTorch's eager side."""

from collections.abc import Callable
from typing import Any


class PlainLoops:
    """The loops of a library that has none of its own; it only has to stack results.

    Args:
        stack: Joins a list of arrays along a new first axis.
    """

    def __init__(self, stack: Callable[[list[Any]], Any]) -> None:
        self._stack = stack

    def scan(self, f: Callable[..., Any], init: Any, xs: Any, length: int | None = None) -> Any:
        """Carry a state through `f`, over the rows of `xs` or `length` times; stack the results."""
        carry, ys = init, []
        for i in range(xs.shape[0] if length is None else length):
            carry, y = f(carry, None if xs is None else xs[i])
            ys.append(y)
        return carry, self._stack(ys)

    def while_loop(self, going: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
        """Apply `body` while `going` says so."""
        state = init
        while going(state):
            state = body(state)
        return state

    def map(self, f: Callable[[Any], Any], xs: Any) -> Any:
        """Apply `f` to every row and stack the results."""
        return self._stack([f(xs[i]) for i in range(xs.shape[0])])
