"""Steps that are taken one by one: their number, and that of events, is known when they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape.errors import ConvergenceError
from gradtape.graph.known_values import innermost_value
from gradtape.ops.join import stack
from gradtape.solvers.integrate.error_norm import still
from gradtape.solvers.integrate.integrator import Integrator
from gradtape.solvers.integrate.outcome import (
    END,
    EVENT,
    FAILURE,
    Asked,
    in_columns,
    never,
    result_of,
    stacked,
)
from gradtape.solvers.integrate.steps import State
from gradtape.solvers.integrate.trajectory import Trajectory


class Walk:
    """Steps that are taken one by one, and kept.

    Args:
        integrator: What takes them.
        asked: What is wanted of them.
    """

    def __init__(self, integrator: Integrator, asked: Asked) -> None:
        self._integrator, self._asked = integrator, asked
        self._states: list[State] = []
        # Times and solutions that are returned.
        self._ts: list[Any] = []
        self._ys: list[Any] = []
        self._reached = 0
        count = len(asked.events)
        self._event_ts: list[list[Any]] = [[] for _ in range(count)]
        self._event_ys: list[list[Any]] = [[] for _ in range(count)]

    def result(self, state: State, values: Sequence[Any] = ()) -> Any:
        """Take all steps; what `solve_ivp` returns."""
        asked, interval = self._asked, self._integrator.interval
        status, end, values = END, None, list(values)
        if asked.t_eval is None:
            self._add(interval.at(state.t), state.y)
        while number(interval.is_before(state.t, interval.end)) and not self._is_complete():
            before = state.t
            state = self._integrator.attempt(state)
            if number(state.failed):
                raise ConvergenceError(FAILURE.text)
            if number(state.t) == number(before):
                continue
            self._states.append(state)
            new = [event(interval.at(state.t), state.y) for event in asked.events]
            end = self._end_by_event(state, values, new)
            values = new
            if end is not None:
                status = EVENT
            self._keep(state, end)
            if end is not None:
                break
        if not self._states:
            self._keep(state, None)
        return self._made(state, status, end)

    def _is_complete(self) -> bool:
        """Whether all that is asked for is known before the end, as in compiled functions."""
        asked = self._asked
        if asked.t_eval is None or asked.events or asked.dense_output or not self._states:
            return False
        return self._reached == int(asked.t_eval.shape[0])

    def _end_by_event(self, state: State, before: Any, after: Any) -> Any:
        """Note the events in a step; the time of one that ends the solution, or None."""
        asked, interval = self._asked, self._integrator.interval
        happened = [
            (n, event.time(self._integrator, state))
            for n, event in enumerate(asked.events)
            if number(event.happened(before[n], after[n]))
        ]
        happened.sort(key=lambda pair: number(pair[1] * interval.direction))
        for n, t in happened:
            self._event_ts[n].append(t)
            self._event_ys[n].append(self._integrator.value(state, t))
            if len(self._event_ts[n]) >= asked.events[n].limit:
                return t
        return None

    def _keep(self, state: State, end: Any) -> None:
        """Keep what is returned of the last step, up to an event that ends the solution."""
        asked, interval = self._asked, self._integrator.interval
        if asked.t_eval is None:
            if end is not None:
                self._add(end, self._integrator.value(state, end))
            elif self._states:
                self._add(interval.at(state.t), state.y)
            else:
                # An interval of length 0, whose ends may move all the same.
                self._add(asked.t1, self._integrator.value(state, asked.t1))
            return
        limit = still(state.t) if end is None else still(end)
        while self._reached < asked.t_eval.shape[0]:
            t = asked.t_eval[self._reached]
            if number(interval.is_before(limit, still(t))):
                return
            self._add(t, self._integrator.value(state, t))
            self._reached += 1

    def _add(self, t: Any, y: Any) -> None:
        self._ts.append(t)
        self._ys.append(y)

    def _made(self, state: State, status: int, end: Any) -> Any:
        asked, interval = self._asked, self._integrator.interval
        result = result_of(
            stacked(self._ts), in_columns(self._ys, state.y), state.calls, state.tries, status
        )
        if asked.dense_output:
            ts = [interval.at(interval.start), *(interval.at(s.t) for s in self._states)]
            if end is not None:
                ts[-1] = end
            states = self._states or [state]
            result["sol"] = Trajectory(self._integrator, states, stacked(ts))
        if asked.events:
            pairs = [
                (stacked(ts), stack(ys)) if ts else never(n, interval, state.y.shape[0])
                for n, (ts, ys) in enumerate(zip(self._event_ts, self._event_ys, strict=True))
            ]
            result["t_events"] = [t for t, _ in pairs]
            result["y_events"] = [y for _, y in pairs]
        return result


def number(value: Any) -> Any:
    """The plain number that a tensor of any level has."""
    return innermost_value(value)
