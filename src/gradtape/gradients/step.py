"""Steps that gradients go through, with a state: pure functions, and an object that keeps it."""

from __future__ import annotations

from typing import Any, Self

from gradtape.errors import ArgumentError

# Nested containers of arrays and numbers.
State = Any


class Step:
    """Base class of what is done to gradients and remembers something; a subclass has `apply`.

    `init` makes the state of a step and `apply` maps gradients and state to new gradients and a new
    state. Both are pure, so that they can be compiled with the rest of a training step. Called as a
    function, a step keeps its state itself.

    Attributes:
        state: The state after the last call; None before the first.

    >>> class Momentum(gt.gradients.Step):
    ...     def init(self, grads):
    ...         return {"sum": {name: np.zeros_like(g) for name, g in grads.items()}}
    ...
    ...     def apply(self, grads, state, params=None):
    ...         total = {name: 0.5 * state["sum"][name] + g for name, g in grads.items()}
    ...         return total, {"sum": total}
    >>> momentum = Momentum()
    >>> momentum({"w": np.array([1.0])}), momentum({"w": np.array([1.0])})
    ({'w': array([1.])}, {'w': array([1.5])})
    """

    state: State = None

    def init(self, grads: Any) -> State:
        """Return the state before the first step.

        Args:
            grads: Gradients, or anything of the same containers, shapes and dtypes.
        """
        raise NotImplementedError

    def apply(self, grads: Any, state: State, params: Any = None) -> tuple[Any, State]:
        """Return new gradients and the new state.

        Args:
            grads: Nested containers of gradients.
            state: What `init` or the last `apply` returned.
            params: The parameters, for steps that need them.
        """
        raise NotImplementedError

    def check_state(self, state: State) -> None:
        """Raise an error for a state that is not one of this step; anything fits unless overridden.

        A `Pipeline` calls it when it is given the states of its steps.

        Args:
            state: What `init` or `apply` returned, or what was read from a file.
        """

    def __call__(self, grads: Any, params: Any = None) -> Any:
        """Return new gradients, and remember the new state."""
        if self.state is None:
            self.state = self.init(grads)
        made, self.state = self.apply(grads, self.state, params)
        return made

    def reset(self) -> Self:
        """Forget the state."""
        self.state = None
        return self


def check_entries(name: str, state: Any, entries: set[str]) -> None:
    """Raise for a state that is not a dict with these entries."""
    if not isinstance(state, dict) or set(state) != entries:
        got = sorted(state) if isinstance(state, dict) else type(state).__name__
        raise ArgumentError(
            f"{name}: got a state of {got}, expected {sorted(entries)}; make it by init(grads)"
        )
