"""What a side has to offer for the memory of a program to be measured."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Program:
    """A training step in two parts.

    Attributes:
        forward: Computes the loss; what it returns holds everything that the second part needs.
        backward: Takes that and computes the gradients, as NumPy arrays in a fixed order. No one
            else holds them, so dropping the list frees them.
        tidy: Gives memory that the side keeps for its next call back to the system.
        allocated: Calls a function and returns the bytes it had allocated at the peak and holds
            at its end, as the allocator of the side counts them.
    """

    forward: Callable[[], Any]
    backward: Callable[[Any], list[Any]]
    tidy: Callable[[], None]
    allocated: Callable[[Callable[[], object]], tuple[int, int]]

    def step(self) -> list[Any]:
        """Do both; nothing but the gradients stays."""
        return self.backward(self.forward())
