"""Events: the times at which a function of the solution is zero, with their derivatives.

In the step in which g(t, y(t)) changes sign, the time solves g = 0; its derivatives follow from
that equation, by the implicit function theorem, with the solution in between as the method has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.forward import ones_like
from gradtape.core.aval import Aval
from gradtape.errors import ArgumentError, LinAlgError, ShapeError
from gradtape.graph.loops import while_loop
from gradtape.ops.arguments import as_array
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.cast import astype
from gradtape.ops.reduce import max as max_of
from gradtape.ops.select import maximum, where
from gradtape.ops.shape import reshape
from gradtape.solvers.implicit import ImplicitFunction
from gradtape.solvers.integrate.error_norm import still
from gradtape.solvers.integrate.integrator import Integrator
from gradtape.solvers.integrate.steps import Piece, State
from gradtape.solvers.problem import Problem, Unknowns
from gradtape.solvers.require import Failure, require

_EPSILON = float(np.finfo(np.float64).eps)
_MOST_STEPS = 200
# Relative to that of a straight line; at a zero of higher order it is a rounding error.
_LEAST_SLOPE = 1e-8
_TOUCHES = Failure(
    LinAlgError,
    "solve_ivp: got an event whose slope along the solution is 0 where it happens, expected the "
    "solution to cross it; the derivative of its time does not exist there",
)


class EventFunction:
    """A function whose zeros are events, with the attributes that SciPy reads.

    Args:
        function: `function(t, y, *args)` returns one number.
        unknowns: t and y.
        args: Its further arguments.

    Attributes:
        problem: The function.
        direction: The sign of the slope at an event; 0 for any.
        limit: After how many events to stop; infinite for none.
    """

    def __init__(
        self, function: Callable[..., Any], unknowns: Unknowns, args: tuple[Any, ...]
    ) -> None:
        self.problem = Problem(
            "solve_ivp", lambda point, *args: function(*point, *args), unknowns, args
        )
        self.direction = float(getattr(function, "direction", 0))
        terminal = getattr(function, "terminal", False)
        is_number = isinstance(terminal, int | float | np.integer | np.floating | np.bool_)
        if not is_number or terminal < 0 or terminal % 1:
            raise ArgumentError(
                f"solve_ivp: got an event with terminal={terminal!r}, expected True, False, or "
                "after how many events to stop"
            )
        self.limit = float(terminal) or np.inf

    def __call__(self, t: Any, y: Any, operands: Sequence[Any] | None = None) -> Any:
        """The value of the function."""
        known = self.problem.operands if operands is None else operands
        value = as_array(self.problem((t, y), known))
        if value.shape not in ((), (1,)):
            raise ShapeError(
                f"solve_ivp: got an array of shape {value.shape} from an event, expected a number"
            )
        return astype(reshape(value, ()), np.float64)

    def happened(self, before: Any, after: Any) -> Any:
        """Whether the function passed zero in its direction, given its values at both ends."""
        up, down = (before <= 0) & (after >= 0), (before >= 0) & (after <= 0)
        if self.direction:
            return up if self.direction > 0 else down
        return up | down

    def time(self, integrator: Integrator, state: State, happened: Any = None) -> Any:
        """When it happened in the last step.

        Args:
            integrator: What took the step.
            state: The state after it.
            happened: Whether it did; without, it is known to have. If not, any time is returned.
        """
        piece = integrator.piece(state)
        leaves, structure = containers.flatten(piece)
        count = len(leaves)
        real = np.bool_(True) if happened is None else happened

        def value(t: Any, inputs: Sequence[Any]) -> Any:
            own: Piece = containers.unflatten(structure, list(inputs[:count]))
            is_real, operands = inputs[count], inputs[count + 1 :]
            g = self(t, integrator.within(own, t), operands)
            return where(is_real, g, t - (own.start + own.ends.h))

        def solver(low: Any, high: Any, *inputs: Any) -> tuple[Any, ...]:
            return _bracketed(lambda t: value(t, inputs), low, high)

        # With this unit the slope is 1 if the event is a straight line.
        def residual(x: Sequence[Any], constants: Any, inputs: Sequence[Any]) -> Any:
            return value(x[0], inputs[2:]) * constants[0]

        number = Aval((), np.dtype(np.float64))
        function = ImplicitFunction("solve_ivp", residual, [number], [number], _by_slope)
        inputs = [still(state.t_old), still(state.t), *leaves, real, *self.problem.operands]
        return function(solver, inputs, guesses=2)[0]


def _by_slope(matvec: Callable[[Any], Any], b: Any) -> Any:
    """The solution of an equation with one unknown, which is a time."""
    slope = matvec(ones_like(b))
    flat = abs_of(slope) < _LEAST_SLOPE
    x = b / where(flat, 1.0, slope)
    return require([x], max_of(where(flat, 1.0, 0.0)), 0.5, _TOUCHES)[0]


def _bracketed(f: Callable[[Any], Any], low: Any, high: Any) -> tuple[Any, Any]:
    """A zero of a function between two points at which its signs differ.

    The secant through the ends, with the value at an end that stays twice halved (the Illinois
    method); every third step halves the interval.

    Returns:
        The zero, and the length of the interval over the larger of the values at its ends.
    """
    near = _EPSILON * maximum(abs_of(low), abs_of(high))

    def going(state: Any) -> Any:
        a, b, fa, fb, count = state
        return (abs_of(b - a) > 4 * near) & (fa != 0) & (fb != 0) & (count < _MOST_STEPS)

    def narrow(state: Any) -> Any:
        a, b, fa, fb, count = state
        slope = fb - fa
        secant = b - fb * (b - a) / where(slope == 0, 1.0, slope)
        middle = 0.5 * (a + b)
        inside = (secant - a) * (secant - b) < 0
        c = where(inside & (count % 3 != 2), secant, middle)
        fc = f(c)
        # b is the newest point; a is on the other side of the zero.
        crossed = fc * fb <= 0
        return (where(crossed, b, a), c, where(crossed, fb, 0.5 * fa), fc, count + 1)

    start = (low, high, f(low), f(high), np.int64(0))
    size = maximum(abs_of(start[2]), abs_of(start[3]))
    unit = (high - low) / where(size == 0, 1.0, size)
    a, b, fa, fb, _ = while_loop(going, narrow, start)
    return where(abs_of(fb) <= abs_of(fa), b, where(fa == 0, a, b)), unit
