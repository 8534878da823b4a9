"""Events: the times at which a function of the solution is zero, with their derivatives.

In the step in which g(t, y(t)) changes sign, the time solves g = 0; its derivatives follow from
that equation, by the implicit function theorem, with the solution in between as the method has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.errors import ArgumentError, ShapeError
from gradtape.graph.loops import while_loop
from gradtape.ops.arguments import as_array
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.cast import astype
from gradtape.ops.select import where
from gradtape.ops.shape import reshape
from gradtape.solvers.implicit import ImplicitFunction
from gradtape.solvers.integrate.error_norm import still
from gradtape.solvers.integrate.integrator import Integrator
from gradtape.solvers.integrate.steps import State
from gradtape.solvers.linear import linear_solver
from gradtape.solvers.problem import Problem, Unknowns

_EPSILON = float(np.finfo(np.float64).eps)
_MOST_STEPS = 200


class Event:
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
        linear = linear_solver("solve_ivp", "the slope of an event along the solution", "dense")
        leaves = [*state[:7], *state.rows]
        rows = len(state.rows)
        real = np.bool_(True) if happened is None else happened

        def value(t: Any, inputs: Sequence[Any]) -> Any:
            own = state._replace(
                **dict(zip(State._fields[:7], inputs[:7], strict=True)),
                rows=tuple(inputs[7 : 7 + rows]),
            )
            is_real, operands = inputs[7 + rows], inputs[8 + rows :]
            g = self(t, integrator.value(own, t), operands)
            return where(is_real, g, t - integrator.interval.at(own.t))

        def solver(low: Any, high: Any, *inputs: Any) -> tuple[Any, ...]:
            return (_bracketed(lambda t: value(t, inputs), low, high),)

        def residual(x: Sequence[Any], _constants: Any, inputs: Sequence[Any]) -> Any:
            return value(x[0], inputs[2:])

        function = ImplicitFunction(
            "solve_ivp", residual, [Aval((), np.dtype(np.float64))], (), linear
        )
        inputs = [still(state.t_old), still(state.t), *leaves, real, *self.problem.operands]
        return function(solver, inputs, guesses=2)[0]


def _bracketed(f: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """A zero of a function between two points at which its signs differ.

    The secant through the ends, with the value at an end that stays twice halved (the Illinois
    method); every third step halves the interval.
    """

    def going(state: Any) -> Any:
        a, b, fa, fb, count = state
        wide = abs_of(b - a) > 4 * _EPSILON * (1 + abs_of(b))
        return wide & (fa != 0) & (fb != 0) & (count < _MOST_STEPS)

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
    a, b, fa, fb, _ = while_loop(going, narrow, start)
    return where(abs_of(fb) <= abs_of(fa), b, where(fa == 0, a, b))
