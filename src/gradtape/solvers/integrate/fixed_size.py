"""Results whose sizes do not depend on the steps, by functions that can be traced and batched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.errors import ConvergenceError, UnsupportedError
from gradtape.graph.loops import scan, while_loop
from gradtape.ops.join import stack
from gradtape.ops.reduce import max as max_of, min as min_of
from gradtape.ops.select import where
from gradtape.ops.shape import reshape, transpose
from gradtape.solvers.integrate.error_norm import still
from gradtape.solvers.integrate.integrator import Integrator
from gradtape.solvers.integrate.outcome import (
    END,
    EVENT,
    FAILURE,
    Asked,
    result_of,
    unknown_size,
)
from gradtape.solvers.integrate.steps import State
from gradtape.solvers.require import Failure, require

_NO_EVENT = Failure(
    ConvergenceError,
    "solve_ivp: no event happened before the end of t_span, expected one to stop at; integrate for "
    "longer, or leave out events",
)


def of_fixed_size(integrator: Integrator, asked: Asked, state: State, values: Sequence[Any]) -> Any:
    """What `solve_ivp` returns in compiled and batched functions.

    Args:
        integrator: What takes the steps.
        asked: What is wanted of them.
        state: Where they begin.
        values: Those of the events there.
    """
    if asked.dense_output:
        raise UnsupportedError(
            "solve_ivp: dense_output needs to know the number of steps, which compiled and batched "
            "functions do not; use t_eval"
        )
    if asked.events:
        return _up_to_events(integrator, asked, state, values)
    if asked.t_eval is None:
        raise unknown_size()
    state, ys = integrator.values(state, asked.t_eval, asked.save)
    (ys,) = require([ys], state.failed * 1.0, 0.5, FAILURE)
    return result_of(asked.t_eval, transpose(ys), state.calls, state.tries, END)


class _Watched(NamedTuple):
    """An integration that stops at events.

    Attributes:
        state: Where it is.
        values: Those of the events there, without derivatives.
        happened: Which events happened in the last step.
    """

    state: State
    values: tuple[Any, ...]
    happened: tuple[Any, ...]


def _up_to_events(integrator: Integrator, asked: Asked, state: State, values: Sequence[Any]) -> Any:
    if any(event.limit != 1 for event in asked.events):
        raise UnsupportedError(
            "solve_ivp: how often an event happens is not known to compiled and batched functions; "
            "set event.terminal = True to stop at the first"
        )
    stopping = _Stopping(integrator, asked)
    watched = _Watched(state, tuple(map(still, values)), (np.bool_(False),) * len(values))
    times, ys = asked.t_eval, None
    if times is not None:
        watched, ys = scan(stopping.reach, watched, (times, still(times)))
    watched = stopping.advance(watched, integrator.interval.end)
    first, at, solutions = stopping.events(watched)
    result = result_of(times, None, watched.state.calls, watched.state.tries, EVENT)
    if ys is not None:
        reached = still(times) * integrator.interval.direction <= first
        result["y"] = transpose(where(reshape(reached, (-1, 1)), ys, np.nan))
    result["t_events"] = [reshape(t, (1,)) for t in at]
    result["y_events"] = [reshape(y, (1, -1)) for y in solutions]
    return result


class _Stopping:
    """Steps up to the first event.

    Args:
        integrator: What takes the steps.
        asked: What is wanted of them.
    """

    def __init__(self, integrator: Integrator, asked: Asked) -> None:
        self._integrator, self._events, self._save = integrator, asked.events, asked.save

    def _attempt(self, watched: _Watched) -> _Watched:
        state = self._integrator.attempt(watched.state)
        new = tuple(still(event(still(state.t), still(state.y))) for event in self._events)
        moved = state.t != watched.state.t
        happened = tuple(
            event.happened(before, after) & moved
            for event, before, after in zip(self._events, watched.values, new, strict=True)
        )
        return _Watched(state, new, happened)

    def advance(self, watched: _Watched, target: Any) -> _Watched:
        """Take steps until a time is reached, or an event happens."""

        def going(watched: _Watched) -> Any:
            state = watched.state
            goes_on = self._integrator.interval.is_before(state.t, target) & ~state.failed
            for happened in watched.happened:
                goes_on = goes_on & ~happened
            return goes_on

        reached: _Watched = while_loop(going, self._attempt, watched, save=self._save)
        return reached

    def reach(self, watched: _Watched, pair: Any) -> tuple[_Watched, Any]:
        """Go on to a time, given with and without its derivatives; the solution there."""
        t, target = pair
        watched = self.advance(watched, target)
        return watched, self._integrator.value(watched.state, t)

    def events(self, watched: _Watched) -> tuple[Any, list[Any], list[Any]]:
        """When the first event happened; for each event its time and solution, or NaN."""
        integrator, state, happened = self._integrator, watched.state, watched.happened
        (y,) = require([state.y], state.failed * 1.0, 0.5, FAILURE)
        found = [
            event.time(integrator, state, own)
            for event, own in zip(self._events, happened, strict=True)
        ]
        missing = 1.0 - max_of(stack([own * 1.0 for own in happened]))
        found = require(found, missing, 0.5, _NO_EVENT)
        # Of events in the same step, the first in time is the one that ends the solution.
        direction = integrator.interval.direction
        ahead = stack(
            [
                where(own, still(t) * direction, np.inf)
                for t, own in zip(found, happened, strict=True)
            ]
        )
        first = min_of(ahead)
        at, solutions = [], []
        for n, (t, own) in enumerate(zip(found, happened, strict=True)):
            is_first = own & (ahead[n] == first)
            at.append(where(is_first, t, np.nan))
            # The 0 of y takes the check along.
            solutions.append(where(is_first, integrator.value(state, t) + 0.0 * y, np.nan))
        return first, at, solutions
