"""What is asked of `solve_ivp`, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ConvergenceError, IndexingError, UnknownSizeError
from gradtape.graph.known_values import innermost_value, is_unknown
from gradtape.graph.while_op import Save
from gradtape.ops.join import stack
from gradtape.ops.shape import transpose
from gradtape.solvers.integrate.events import EventFunction
from gradtape.solvers.integrate.integrator import Interval
from gradtape.solvers.require import Failure

# SciPy's values of `status`, and what they mean.
END, EVENT = 0, 1
_MESSAGES = {
    END: "The solver successfully reached the end of the integration interval.",
    EVENT: "A termination event occurred.",
}
FAILURE = Failure(
    ConvergenceError,
    "solve_ivp: no step is short enough for the error that is allowed; the solution may end or "
    "jump there, the right-hand side may be NaN, or the equations may be stiff: use "
    "method='Radau', or larger tolerances",
)


class Asked(NamedTuple):
    """What is to be solved, and returned.

    Attributes:
        t0: Where it begins.
        t1: Where it ends.
        y0: The solution where it begins.
        t_eval: The times at which it is returned; None for those of the steps.
        dense_output: Whether it is returned as a function of time.
        events: Functions whose zeros are found.
        save: The states that a backward pass keeps.
    """

    t0: Any
    t1: Any
    y0: Any
    t_eval: Any
    dense_output: bool
    events: list[EventFunction]
    save: Save


def result_of(t: Any, y: Any, calls: Any, tries: Any, status: Any) -> Any:
    """SciPy's result without dense output and events."""
    import scipy.optimize

    known = isinstance(status, int)
    return scipy.optimize.OptimizeResult(
        t=t,
        y=y,
        sol=None,
        t_events=None,
        y_events=None,
        nfev=_count(calls),
        tries=_count(tries),
        status=status,
        message=_MESSAGES[status] if known else None,
        success=status >= 0,
    )


def _count(number: Any) -> Any:
    """A plain number, unless it is only known in a trace, or one for each element of a batch."""
    if not is_unknown(number):
        number = innermost_value(number)
    return number if isinstance(number, Tensor) else int(number)


def stacked(values: Sequence[Any]) -> Any:
    """Numbers as a vector."""
    return stack(values) if values else np.zeros(0)


def in_columns(values: Sequence[Any], like: Any) -> Any:
    """Vectors as the columns of a matrix."""
    return transpose(stack(values)) if values else np.zeros((*like.shape, 0))


def unknown_size() -> UnknownSizeError:
    """The error for a result that has one column for each step."""
    return UnknownSizeError(
        "solve_ivp: got no t_eval in a compiled or batched function, which cannot know the number "
        "of steps; give the times at which the solution is wanted"
    )


class _NoEvents(np.ndarray):
    """An empty array which says, when an element is read, that an event did not happen."""

    said = ""

    def __array_finalize__(self, other: Any) -> None:
        self.said = getattr(other, "said", "")

    def __getitem__(self, index: Any) -> Any:
        try:
            return super().__getitem__(index)
        except IndexError as error:
            raise IndexingError(self.said) from error


def never(number: int, interval: Interval, size: int) -> tuple[Any, Any]:
    """The times of an event that did not happen, and the solution there: none."""
    found = []
    for shape in ((0,), (0, size)):
        array = np.zeros(shape).view(_NoEvents)
        array.said = (
            f"solve_ivp: event {number} did not happen between t = {float(interval.start):g} and "
            f"{float(interval.end):g}; check t_events[{number}].size, or integrate for longer"
        )
        found.append(array)
    return found[0], found[1]
