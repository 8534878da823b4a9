"""Gradients of initial value problems by further ones: what the steps were does not matter.

y′ = f(t, y, θ): backwards in time, λ′ = −(∂f/∂y)ᵀ·λ carries the cotangent of y, and that of θ is
∫(∂f/∂θ)ᵀ·λ dt. Forwards, ẏ′ = ∂f/∂y·ẏ + ∂f/∂θ·θ̇ carries a tangent. Both are solved together with
y by the same method and tolerances, so that memory does not grow with the number of steps. The
results are as accurate as these solutions, and can be differentiated again in the same way. Where
errors of y grow too much backwards, its known value at the other end tells.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.forward import zeros_like
from gradtape.autodiff.reverse import vjp
from gradtape.autodiff.transforms import jvp, vmap
from gradtape.core.aval import Aval, aval_of
from gradtape.core.call import is_differentiable
from gradtape.core.lowering import Whole
from gradtape.errors import ConvergenceError
from gradtape.graph.loops import scan
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.join import concatenate
from gradtape.ops.reduce import max as max_of, sum as sum_of
from gradtape.ops.select import maximum
from gradtape.ops.shape import reshape
from gradtape.solvers.integrate.error_norm import Tolerances, magnitude, still
from gradtape.solvers.integrate.integrator import Integrator, Interval
from gradtape.solvers.integrate.steps import Method, RightHandSide
from gradtape.solvers.require import Failure, require
from gradtape.solvers.solver_run import solved
from gradtape.solvers.vectors import Vectors

_ADVICE = "use gradient='discrete', more times in t_eval, or smaller tolerances"
_NO_STEP = Failure(
    ConvergenceError,
    "solve_ivp: no step backwards in time, as gradient='adjoint' takes them, is short enough for "
    f"the error that is allowed; {_ADVICE}",
)
_DEPARTED = Failure(
    ConvergenceError,
    "solve_ivp: the solution that gradient='adjoint' computes again, backwards in time, departs by "
    f"{{}} from what it was: errors grow too much in that direction; {_ADVICE}",
    "solve_ivp: the solution that gradient='adjoint' computes again, backwards in time, is not "
    f"finite; {_ADVICE}",
)
# How many tolerances it may depart by, and how far at most relative to the largest component. Where
# nothing grows backwards in time, it departs by up to ten.
_TOLERANCES, _FAR = 100.0, 0.1

# dy/dt as a function of t, y and operands.
OfOperands = Callable[[Any, Any, Sequence[Any]], Any]


@dataclasses.dataclass(frozen=True)
class Way:
    """How initial value problems are solved.

    Attributes:
        method: Makes the method for a right-hand side and its operands.
        tolerances: What errors are allowed.
        first_step: The length of the first step; None to estimate it.
        max_step: The longest step.
        failure: What is raised if no step is short enough.
    """

    method: Callable[[OfOperands, Sequence[Any]], Method]
    tolerances: Tolerances
    first_step: float | None
    max_step: float
    failure: Failure

    def integrator(
        self, f: OfOperands, operands: Sequence[Any], interval: Interval
    ) -> tuple[RightHandSide, Integrator]:
        """The right-hand side with its operands, and what takes the steps."""

        def of_time(t: Any, y: Any) -> Any:
            return f(t, y, operands)

        made = Integrator(
            of_time,
            self.method(f, operands),
            interval,
            self.tolerances,
            self.first_step,
            self.max_step,
        )
        return of_time, made

    def of_more(self, failure: Failure) -> Way:
        """The same for a problem that has more components, and what is raised if it fails."""
        tolerances = Tolerances(self.tolerances.rtol, self.least())
        return dataclasses.replace(self, tolerances=tolerances, first_step=None, failure=failure)

    def least(self) -> float:
        """The smallest absolute tolerance."""
        return float(np.min(self.tolerances.atol))


class Flow:
    """The solution of y′ = f(t, y, θ) at some times, as an op whose rules solve further problems.

    Args:
        f: The right-hand side.
        way: How it is solved.
    """

    def __init__(self, f: OfOperands, way: Way) -> None:
        self._f, self._way = f, way

    def __call__(self, t0: Any, times: Any, y0: Any, operands: Sequence[Any]) -> tuple[Any, Any]:
        """The solution at each time, in rows, and how often f was called.

        Args:
            t0: Where it begins.
            times: The times, in order.
            y0: The solution at t0.
            operands: θ.
        """
        floating, count = np.dtype(np.float64), np.dtype(np.int64)
        avals = [Aval((times.shape[0], *y0.shape), floating), Aval((), count)]
        ys, calls = solved("solve_ivp", self._run, self, [t0, times, y0, *operands], avals)
        return ys, calls

    def _run(self, t0: Any, times: Any, y0: Any, *operands: Any) -> tuple[Any, Any]:
        f, integrator = self._way.integrator(self._f, operands, Interval(t0, times[-1]))
        state, ys = integrator.values(integrator.start(y0, f(t0, y0)), times)
        (ys,) = require([ys], state.failed * 1.0, 0.5, self._way.failure)
        return ys, state.calls

    @property
    def reads(self) -> Whole:
        return Whole("a solution is taken to depend on all times, first values and operands", 1)

    # ---- rules -----------------------------------------------------------------------------

    def pull(self, wanted: Any, cts: Any, outs: Any, inputs: Any) -> list[Any]:
        ct, ys = cts[0], outs[0]
        t0, times, y0, *operands = inputs
        if ct is None:
            return [None] * len(inputs)
        scale = magnitude([ct])
        ct = ct / scale
        chosen = [n for n, x in enumerate(operands) if wanted[3 + n] and is_differentiable(x)]
        size = y0.shape[0]
        vectors = Vectors([aval_of(operands[n]) for n in chosen]) if chosen else None

        # (y, λ, q)′ = (f, −(∂f/∂y)ᵀ·λ, −(∂f/∂θ)ᵀ·λ)
        def backward(t: Any, z: Any, operands: Sequence[Any]) -> Any:
            def of_some(y: Any, *some: Any) -> Any:
                return self._f(t, y, _replaced(operands, chosen, some))

            value, pullback = vjp(of_some, z[:size], *(operands[n] for n in chosen))
            of_y, *of_operands = pullback(z[size : 2 * size])
            parts = [value, -of_y]
            if vectors is not None:
                parts.append(-vectors.flat(of_operands))
            return concatenate(parts)

        flow = Flow(backward, self._way.of_more(_NO_STEP))

        def stretch(carry: Any, xs: Any) -> tuple[Any, Any]:
            adjoint, sums = carry
            t, before, y, y_before, ct = xs
            adjoint = adjoint + ct
            start = concatenate([y, adjoint, sums])
            end = flow(t, reshape(before, (1,)), start, operands)[0][0]
            found = self._checked(end[size:], end[:size], y_before, y)
            return (found[:size], found[size:]), sum_of(ct * self._f(t, y, operands))

        befores = concatenate([reshape(t0, (1,)), times[:-1]])
        ys_before = concatenate([reshape(y0, (1, -1)), ys[:-1]])
        first = (zeros_like(y0), np.zeros(0 if vectors is None else vectors.size))
        stretches = (times, befores, ys, ys_before, ct)
        (adjoint, sums), of_times = scan(stretch, first, stretches, reverse=True)
        found: list[Any] = [None] * len(operands)
        if vectors is not None:
            for n, part in zip(chosen, vectors.leaves(sums), strict=True):
                found[n] = scale * part
        of_t0 = -sum_of(adjoint * self._f(t0, y0, operands))
        return [scale * of_t0, scale * of_times, scale * adjoint, *found]

    def _checked(self, found: Any, again: Any, before: Any, after: Any) -> Any:
        """What was found backwards in time, if the solution came to where it had begun."""
        again, before, after = still(again), still(before), still(after)
        size = max_of(maximum(abs_of(before), abs_of(after)))
        part = min(_TOLERANCES * self._way.tolerances.rtol, _FAR)
        allowed = part * size + _TOLERANCES * self._way.least()
        return require([found], max_of(abs_of(again - before)), allowed, _DEPARTED)[0]

    def push(self, tangents: Any, outs: Any, inputs: Any) -> Any:
        ys = outs[0]
        t0, times, y0, *operands = inputs
        of_t0, of_times, of_y0, *of_operands = tangents
        moving = [n for n, tangent in enumerate(of_operands) if tangent is not None]
        size, count = y0.shape[0], len(operands)

        # (y, ẏ)′ = (f, ∂f/∂y·ẏ + ∂f/∂θ·θ̇)
        def forward(t: Any, z: Any, inputs: Sequence[Any]) -> Any:
            operands, changes = inputs[:count], inputs[count:]

            def of_some(y: Any, *some: Any) -> Any:
                return self._f(t, y, _replaced(operands, moving, some))

            primals = (z[:size], *(operands[n] for n in moving))
            return concatenate(jvp(of_some, primals, (z[size:], *changes)))

        change = zeros_like(y0) if of_y0 is None else of_y0
        if of_t0 is not None:
            change = change - self._f(t0, y0, operands) * of_t0
        flow = Flow(forward, self._way.of_more(self._way.failure))
        scale = magnitude([change, *(of_operands[n] for n in moving)])
        given = [*operands, *(of_operands[n] / scale for n in moving)]
        moved = scale * flow(t0, times, concatenate([y0, change / scale]), given)[0][:, size:]
        if of_times is not None:
            slopes = vmap(lambda t, y: self._f(t, y, operands))(times, ys)
            moved = moved + slopes * reshape(of_times, (-1, 1))
        return moved, None


def _replaced(values: Sequence[Any], places: Sequence[int], new: Sequence[Any]) -> list[Any]:
    full = list(values)
    for n, value in zip(places, new, strict=True):
        full[n] = value
    return full
