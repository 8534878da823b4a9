"""Losses that an optimizer evaluates itself: closures of users, and functions of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.core.level import Leaf
from gradtape.core.state import enable_grad
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import ArgumentError, NonFiniteError, a_type
from gradtape.ops.arguments import as_number
from gradtape.optim.numbers import plain


class Closure:
    """A closure of a user: it computes the loss and its gradients for what the parameters hold.

    Gradients are dropped before each call, so that those of several calls are never added up.

    Args:
        name: The name of the optimizer.
        closure: The closure.
        params: The parameters.

    Raises:
        ArgumentError: It is not a function.
    """

    def __init__(self, name: str, closure: Any, params: Sequence[Tensor]) -> None:
        if not is_closure(closure):
            raise ArgumentError(
                f"{name}.step: got {a_type(closure)}, expected a function without arguments that "
                "clears the gradients, computes the loss, calls backward() and returns the loss"
            )
        self.name = name
        self.params = list(params)
        self._closure = closure
        self.loss: Any = None

    def __call__(self) -> float:
        """Return the loss; the gradients are in `.grad` of the parameters."""
        for param in self.params:
            if type(param.record) is Leaf:
                param.grad = None
        with enable_grad():
            self.loss = self._closure()
        if self.loss is None:
            raise ArgumentError(f"{self.name}.step: got None from the closure; return the loss")
        leaves = [param.record for param in self.params if type(param.record) is Leaf]
        if leaves and all(leaf.grad is None for leaf in leaves):
            raise ArgumentError(
                f"{self.name}.step: the closure left no gradient in any of {len(leaves)} "
                "parameters; call backward() on the loss in it"
            )
        return as_number(plain(self.loss), f"{self.name}.step", "the loss of the closure")

    def gradients(self) -> list[Any]:
        """The gradients as arrays; None for parameters that have none."""
        return gradients_of(self.params)


def gradients_of(params: Sequence[Tensor]) -> list[Any]:
    """The gradients of leaves as arrays; None where there is none."""
    found: list[Any] = []
    for param in params:
        record = param.record
        gradient = record.grad if type(record) is Leaf else None
        found.append(None if gradient is None else np.asarray(innermost(gradient)))
    return found


def is_closure(given: Any) -> bool:
    """Whether the argument of a step is a closure; modules are functions, but hold parameters."""
    return callable(given) and not isinstance(given, containers.Members)


@contextmanager
def undone_on_error(params: Sequence[Tensor]) -> Iterator[None]:
    """Give parameters back their values and gradients if an error is raised."""
    before = [(param, param.value, param.grad) for param in params]
    try:
        yield
    except BaseException:
        for param, value, gradient in before:
            param.value = value
            param.grad = gradient
        raise


def check_finite(name: str, loss: float, gradients: Sequence[Any]) -> None:
    """Raise for a loss or a gradient that is not finite."""
    what = "a loss" if not np.isfinite(loss) else "a gradient"
    if what == "a loss" or not all(g is None or np.all(np.isfinite(g)) for g in gradients):
        raise NonFiniteError(
            f"{name}: got {what} that is not finite; nothing was changed. Lower the learning rate, "
            "or look with gt.detect_anomaly()"
        )


def as_value_and_grad(name: str, function: Any) -> Callable[[Any], tuple[Any, Any]]:
    """The argument `value_and_grad` of `apply`, which is required."""
    if not callable(function):
        raise ArgumentError(
            f"{name}.apply: got {a_type(function)} as value_and_grad, expected a function of the "
            "parameters that returns the loss and its gradients: gt.value_and_grad(loss)"
        )
    return function  # type: ignore[no-any-return]
