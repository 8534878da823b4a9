"""Several steps that gradients go through, one after the other."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gradtape.errors import ArgumentError, a_type
from gradtape.gradients.clipping import global_norm
from gradtape.gradients.leaves import number_of
from gradtape.gradients.step import State, Step, check_entries


class StepReport(NamedTuple):
    """What a step of a pipeline did in its last call.

    Attributes:
        name: The step.
        before: The norm of all gradients before it.
        after: The norm after it.
    """

    name: str
    before: float
    after: float


class Pipeline(Step):
    """Steps that gradients go through, one after the other.

    `print(pipeline)` tells what each step did to the norm of the gradients in the last call.

    Args:
        steps: Functions from gradients to gradients, and objects with a state (`Step`), such as
            `gt.gradients.AutoClip`. A function with a parameter `params` gets the parameters by it.

    Attributes:
        report: A `StepReport` for each step, of the last call; empty in compiled functions.
        state: The states of the steps that have one, by their numbers, as strings: what `init` and
            `apply` return, to be saved and set again. None before the first call.

    Raises:
        ArgumentError: They are no list, or a step is not a function.

    >>> from functools import partial
    >>> clean = gt.gradients.Pipeline(
    ...     [
    ...         partial(gt.gradients.clip_by_value, clip_value=3.0),
    ...         partial(gt.gradients.clip_by_global_norm, max_norm=1.0),
    ...         partial(gt.gradients.adaptive_clip, clipping=0.5),
    ...     ]
    ... )
    >>> clean({"w": np.array([30.0, 4.0])}, params={"w": np.array([0.6, 0.8])})
    {'w': array([0.35355339, 0.35355339])}
    >>> print(clean)
    clip_by_value(clip_value=3.0)       30.27 -> 4.243
    clip_by_global_norm(max_norm=1.0)   4.243 -> 1
    adaptive_clip(clipping=0.5)         1 -> 0.5
    """

    def __init__(self, steps: Sequence[Callable[..., Any] | Step]) -> None:
        if not isinstance(steps, Sequence) or isinstance(steps, str):
            raise ArgumentError(f"Pipeline: got {a_type(steps)}, expected a list of steps")
        for step in steps:
            if not callable(step):
                raise ArgumentError(
                    f"Pipeline: got {a_type(step)} as a step, expected a function of gradients, or "
                    "an object with init and apply"
                )
        self.steps = tuple(steps)
        self._with_params = tuple([_takes_params(step) for step in self.steps])
        self.report: tuple[StepReport, ...] = ()
        self._called_before = False

    @property
    def state(self) -> State:
        states = {n: step.state for n, step in self._stateful().items()}
        # Steps may have been called, or given a state, one by one.
        known = self._called_before or any(state is not None for state in states.values())
        return states if known else None

    @state.setter
    def state(self, state: State) -> None:
        if state is not None:
            self.check_state(state)
        self._called_before = state is not None
        for n, step in self._stateful().items():
            step.state = None if state is None else state[n]

    def check_state(self, state: State) -> None:
        """Raise an error for states that are not those of the steps.

        Args:
            state: What may be the states; None for that of a step without one so far.

        Raises:
            ArgumentError: They are not; the error names the step.
        """
        stateful = self._stateful()
        check_entries("Pipeline", state, set(stateful))
        for n, step in stateful.items():
            if state[n] is not None:
                step.check_state(state[n])

    def _stateful(self) -> dict[str, Step]:
        """The steps that have a state, by number."""
        return {str(n): step for n, step in enumerate(self.steps) if isinstance(step, Step)}

    def init(self, grads: Any) -> State:
        """Return the states of all steps before the first call, by number.

        Args:
            grads: Gradients, or anything of the same containers, shapes and dtypes.
        """
        return {n: step.init(grads) for n, step in self._stateful().items()}

    def apply(self, grads: Any, state: State, params: Any = None) -> tuple[Any, State]:
        """Return new gradients and the new states; a pure function.

        Args:
            grads: Nested containers of gradients.
            state: What `init` or the last `apply` returned.
            params: The parameters, for steps that need them.

        Raises:
            ArgumentError: A step needs the parameters, and there are none.
        """
        self.check_state(state)
        states = {}
        for n, step in enumerate(self.steps):
            if isinstance(step, Step):
                grads, states[str(n)] = step.apply(grads, state[str(n)], params)
            else:
                grads = self._called(n, grads, params)
        return grads, states

    def __call__(self, grads: Any, params: Any = None) -> Any:
        """Return new gradients; the states of steps and the report are remembered.

        Args:
            grads: Nested containers of gradients.
            params: The parameters, for steps that need them.

        Raises:
            ArgumentError: A step needs the parameters, and there are none.
        """
        report = []
        before = number_of(global_norm(grads))
        for n, step in enumerate(self.steps):
            stateful = isinstance(step, Step)
            grads = step(grads, params) if stateful else self._called(n, grads, params)
            after = number_of(global_norm(grads))
            if before is not None and after is not None:
                report.append(StepReport(_name(step), before, after))
            before = after
        self.report = tuple(report)
        self._called_before = True
        return grads

    def _called(self, n: int, grads: Any, params: Any) -> Any:
        if not self._with_params[n]:
            return self.steps[n](grads)
        if params is None:
            raise ArgumentError(
                f"Pipeline: {_name(self.steps[n])} needs the parameters; call the pipeline with "
                "params="
            )
        return self.steps[n](grads, params=params)

    def reset(self) -> Pipeline:
        """Forget the states of all steps, and the report."""
        for step in self._stateful().values():
            step.reset()
        self._called_before = False
        self.report = ()
        return self

    def __str__(self) -> str:
        names = [_name(step) for step in self.steps]
        if not self.report:
            return "\n".join(names)
        width = max(map(len, names))
        return "\n".join(
            [f"{r.name:{width}}   {r.before:.4g} -> {r.after:.4g}" for r in self.report]
        )

    def __repr__(self) -> str:
        return f"Pipeline([{', '.join([_name(step) for step in self.steps])}])"


def _takes_params(step: Any) -> bool:
    try:
        parameters = inspect.signature(step).parameters
    except (TypeError, ValueError):  # built-in functions need not have one
        return False
    given = set(step.keywords) if isinstance(step, functools.partial) else set()
    return "params" in parameters and "params" not in given


def _name(step: Any) -> str:
    """A step in messages: the name of a function, with what was bound to it."""
    if not isinstance(step, functools.partial):
        return getattr(step, "__name__", None) or repr(step)
    bound = [repr(x) for x in step.args] + [f"{k}={v!r}" for k, v in step.keywords.items()]
    return f"{_name(step.func)}({', '.join(bound)})"
