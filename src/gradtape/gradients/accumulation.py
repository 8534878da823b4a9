"""Gradients of several parts of a batch, added up: an object, and a pure function of a state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.errors import ArgumentError, TapeError
from gradtape.gradients.leaves import Gradients, wide
from gradtape.ops.arguments import as_integer


@dataclass(frozen=True)
class Accumulation:
    """Gradients that were added up, and how many.

    It is a container of arrays, so compiled functions take and return it.

    Attributes:
        total: The sum of gradients, in their containers; in float32 for smaller floats.
        count: How many were added.
        dtypes: The dtypes of the gradients.
    """

    total: Any
    count: Any
    dtypes: tuple[np.dtype[Any], ...] = field(metadata={"static": True})

    def sum(self) -> Any:
        """Return the sum, in the dtypes of the gradients."""
        return self._rounded(lambda total: total)

    def mean(self) -> Any:
        """Return the mean, in the dtypes of the gradients."""
        return self._rounded(lambda total: total / self.count)

    def _rounded(self, function: Callable[[Any], Any]) -> Any:
        leaves, structure = containers.flatten(self.total)
        pairs = zip(leaves, self.dtypes, strict=True)
        return containers.unflatten(
            structure, [function(leaf).astype(dtype) for leaf, dtype in pairs]
        )


def accumulate(state: Accumulation | None, grads: Any) -> Accumulation:
    """Add gradients to those that were added before; a pure function, which can be compiled.

    Args:
        state: What it returned before; None for the first gradients.
        grads: Nested containers of gradients, the same each time. None for one adds nothing to it.

    Returns:
        The new state, with the methods `mean` and `sum`.

    Raises:
        ArgumentError: The containers differ from those before.
        ShapeError: A gradient has another shape than before.
        DTypeError: A leaf is neither an array nor a number, or not of floats.

    >>> state = None
    >>> for part in (np.array([1.0, 2.0]), np.array([3.0, 6.0])):
    ...     state = gt.gradients.accumulate(state, {"w": part})
    >>> state.mean()
    {'w': array([2., 4.])}
    """
    gradients = Gradients("accumulate", grads)
    if state is None:
        total = [_sum(None, x) for x in gradients.values]
        dtypes = tuple([x.dtype for x in gradients.values])
        return Accumulation(containers.unflatten(gradients.structure, total), 1, dtypes)
    pairs, structure = gradients.paired(state.total, "gradient before", "the gradients before")
    before = iter(state.dtypes)
    dtypes = tuple([new.dtype if old is None else next(before) for new, old in pairs])
    total = [_sum(old, new) for new, old in pairs]
    return Accumulation(containers.unflatten(structure, total), state.count + 1, dtypes)


def _sum(old: Any, new: Any) -> Any:
    """The sum of two arrays, of which one may be None; never one that the caller owns."""
    if new is None:
        return old
    return wide(new) * 1 if old is None else old + wide(new)


class GradientAccumulator:
    """Adds up the gradients of several small batches, in place of one that is too large.

    Gradients in float16 and bfloat16 are added up in float32.

    Args:
        steps: How many gradients make one step.
        mean: Whether their mean is wanted; else their sum.

    Attributes:
        state: The pure state, an `Accumulation`; None if nothing was added.

    Raises:
        ArgumentError: The number of steps is not positive.
        DTypeError: It is not an integer.

    >>> accumulator = gt.gradients.GradientAccumulator(2)
    >>> for part in (1.0, 3.0, 5.0):
    ...     if accumulator.add([np.array([part])]):
    ...         print(accumulator.result())
    [array([2.])]
    >>> accumulator.count, accumulator.ready
    (1, False)
    """

    def __init__(self, steps: int, *, mean: bool = True) -> None:
        self.steps = as_integer(steps, "GradientAccumulator", "steps")
        if self.steps < 1:
            raise ArgumentError(
                f"GradientAccumulator: got steps={steps}, expected a positive number"
            )
        self.mean = bool(mean)
        self.state: Accumulation | None = None

    @property
    def count(self) -> int:
        """How many gradients were added since the last result."""
        return 0 if self.state is None else int(self.state.count)

    @property
    def ready(self) -> bool:
        """Whether there are as many as make one step."""
        return self.count >= self.steps

    def add(self, grads: Any) -> bool:
        """Add gradients.

        Args:
            grads: Nested containers of gradients, the same each time. None for one adds nothing.

        Returns:
            Whether there are as many as make one step now.

        Raises:
            ArgumentError: The containers differ from those before.
            ShapeError: A gradient has another shape than before.
        """
        self.state = accumulate(self.state, grads)
        return self.ready

    def result(self) -> Any:
        """Return the mean or sum of what was added, also if it is less than a step, and begin anew.

        Raises:
            TapeError: Nothing was added.
        """
        if self.state is None:
            raise TapeError("GradientAccumulator: got no gradients; call add(grads) first")
        made = self.state.mean() if self.mean else self.state.sum()
        self.reset()
        return made

    def reset(self) -> None:
        """Forget what was added."""
        self.state = None
