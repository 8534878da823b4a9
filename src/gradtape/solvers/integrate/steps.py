"""What steps of all methods have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from gradtape.solvers.integrate.error_norm import Tolerances

# dy/dt as a function of t and y.
RightHandSide = Callable[[Any, Any], Any]


class Step(NamedTuple):
    """A step that was tried.

    Attributes:
        y: The solution at its end.
        f: Its derivative there.
        rows: What `between` needs besides the ends.
        error: The estimated error relative to what is allowed; the step is good below 1. It has no
            derivatives.
        safety: How much of the next step that the error allows is taken.
        calls: How often the right-hand side was called.
        tangent: The derivative of the solution at its end, if the method has it; else None.
    """

    y: Any
    f: Any
    rows: tuple[Any, ...]
    error: Any
    safety: Any
    calls: Any
    tangent: Any = None


class Ends(NamedTuple):
    """What is known at both ends of a step.

    Attributes:
        h: Its length.
        y_old: The solution at its beginning.
        f_old: Its derivative there.
        y: The solution at its end.
        f: Its derivative there.
    """

    h: Any
    y_old: Any
    f_old: Any
    y: Any
    f: Any


class Piece(NamedTuple):
    """The solution in a step.

    Attributes:
        start: When it begins.
        ends: What is known at its ends.
        rows: What the method needs to know besides.
    """

    start: Any
    ends: Ends
    rows: tuple[Any, ...]


class Mode(NamedTuple):
    """How errors change along the solution.

    Attributes:
        direction: A direction in which they change fastest.
        rate: How fast they changed along the direction before; 0 if that is not known.
        before: How fast along the one before that.
        drift: How fast the tangent of the state changes, relative to its size.
    """

    direction: Any
    rate: Any
    before: Any
    drift: Any


class State(NamedTuple):
    """Where an integration is.

    Attributes:
        t: The time, without derivatives.
        y: The solution.
        f: Its derivative.
        h: The length of the next step, at least 0.
        t_old: The time before the last step.
        y_old: The solution there.
        f_old: Its derivative there.
        rows: What the method needs to know besides for values in the last step.
        rejected: Whether the last step that was tried was too long.
        failed: Whether no step is short enough.
        calls: How often the right-hand side has been called.
        tries: How many steps have been tried.
        tangent: A derivative of the solution, which began as one by all of y0; of any length, and
            without derivatives of its own.
        mode: How errors change; None if the method does not need it.
    """

    t: Any
    y: Any
    f: Any
    h: Any
    t_old: Any
    y_old: Any
    f_old: Any
    rows: tuple[Any, ...]
    rejected: Any
    failed: Any
    calls: Any
    tries: Any
    tangent: Any
    mode: Mode | None


class Limits(NamedTuple):
    """How long steps may be for errors that change at a rate λ.

    Attributes:
        reach: The largest |h·λ| with which no error grows that the equations damp.
        order: The order of the method.
        miss: A step multiplies an error by exp(h·λ), but for this times |h·λ| to the power of the
            order and one.
    """

    reach: float
    order: int
    miss: float


class Method(Protocol):
    """A way to take a step.

    Attributes:
        error_order: The order of the error estimate.
        row_count: How many rows a step has.
        limits: What bounds the lengths of its steps besides the error of y; None for a method whose
            steps have tangents, and are stable.
    """

    error_order: int
    row_count: int
    limits: Limits | None

    def step(self, f: RightHandSide, t: Any, h: Any, state: State, tolerances: Tolerances) -> Step:
        """Try a step of length h from t."""
        ...

    def between(self, x: Any, ends: Ends, rows: Sequence[Any]) -> Any:
        """The solution in a step, for x from 0 at the beginning to 1 at the end."""
        ...
