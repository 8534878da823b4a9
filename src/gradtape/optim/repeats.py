"""Steps that are like the one before: the same parameters, with other values and gradients.

What a native step needs besides the arrays is kept from the last step. All that is left to do for a
parameter is to look at its value and its gradient, which takes a fraction of a microsecond.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradtape.core.level import Leaf
from gradtape.core.ownership import are_alone
from gradtape.core.tensor import Tensor
from gradtape.optim.numbers import Numbers, at_step
from gradtape.optim.pure import PureOptimizer
from gradtape.optim.stepping import native


class Repeat(NamedTuple):
    """A native step of parameters with the same numbers, to be repeated.

    Attributes:
        numbers: Their numbers.
        version: How often these had been changed.
        read: The numbers as they were.
        is_scheduled: Whether there are schedules among them, which are evaluated at each step.
        params: Weak references to the parameters.
        clock: Their clock, which all of them share.
        call: The native step.
    """

    numbers: Numbers
    version: int
    read: dict[str, Any]
    is_scheduled: bool
    params: list[weakref.ref[Tensor]]
    clock: dict[str, Any]
    call: Any


class Asked(NamedTuple):
    """Which parameters a step was asked for.

    Attributes:
        given: The identities of those that were given; None for the optimizer's own.
        idle: Weak references to those that had no gradient.
    """

    given: set[int] | None
    idle: list[weakref.ref[Tensor]]

    def again(self, given: Any) -> bool:
        """Whether this step is asked for the same ones, as long as all of them live."""
        if (given is None) is not (self.given is None):
            return False
        if given is not None and not isinstance(given, list | tuple):
            return False
        if given is not None and set(map(id, given)) != self.given:
            return False
        return all(gradient_of(reference()) is None for reference in self.idle)


def gradient_of(param: Tensor | None) -> Any:
    """The gradient of a leaf; None of one that is frozen or has none, and True of one that died."""
    if param is None:
        return True
    record = param.record
    return record.grad if type(record) is Leaf else None


def repeat(optimizer: PureOptimizer, repeats: Sequence[Repeat]) -> bool:
    """Make a step like the last one; False, with nothing changed, if this one is another."""
    kernels = native(1 << 62)
    if kernels is None:
        return False
    todo = []
    for last in repeats:
        params: Any = [reference() for reference in last.params]
        try:
            gradients = [param.record.grad.value for param in params]
        except AttributeError:  # gone, frozen, or without a gradient
            return False
        values = [param.value for param in params]
        # Arrays that a record or somebody else refers to are not written into.
        fresh = None if are_alone(values) else list(map(kernels.empty_like, values))
        if last.numbers.version != last.version:
            return False
        if not last.call.renew(values, gradients, values if fresh is None else fresh):
            return False
        if not last.call.is_finite():
            return False
        numbers = last.read
        if last.is_scheduled:
            numbers = at_step(numbers, optimizer.name, last.clock["step"])
        todo.append((params, values, gradients, fresh, numbers))
    for last, (params, _, _, fresh, numbers) in zip(repeats, todo, strict=True):
        clock, call = last.clock, last.call
        if clock or last.is_scheduled:  # otherwise they are those of the last step
            clock.update(optimizer.tick(numbers, clock))
            call.count(optimizer.factors(numbers, clock))
        call.run()
        if fresh is not None:
            for param, value in zip(params, fresh, strict=True):
                param.value = value
    return True
