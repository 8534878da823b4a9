"""The solution of an initial value problem as a function of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.search import searchsorted
from gradtape.ops.gather import take
from gradtape.ops.join import stack
from gradtape.ops.select import clip
from gradtape.ops.shape import reshape, transpose
from gradtape.solvers.integrate.error_norm import still
from gradtape.solvers.integrate.integrator import Integrator
from gradtape.solvers.integrate.steps import State


class Trajectory:
    """The solution at any time, from the steps that were taken.

    It is called as `scipy.integrate.OdeSolution` is, and is differentiable by the time and by
    whatever the solution depends on.

    Args:
        integrator: What took the steps.
        states: The state after each step; the first one, if there was no step.
        ts: The times between the steps.

    Attributes:
        ts: The times between the steps.
        t_min: The first time,
        t_max: and the last.
    """

    def __init__(self, integrator: Integrator, states: Sequence[State], ts: Any) -> None:
        self._integrator, self.ts = integrator, ts
        rows = [containers.flatten(state) for state in states]
        columns = zip(*(leaves for leaves, _ in rows), strict=True)
        # Numbers become columns, which go with the rows of vectors.
        stacks = [_column(stack([as_array(x) for x in column])) for column in columns]
        self._states: State = containers.unflatten(rows[0][1], stacks)
        ends = [np.asarray(still(ts[n])) for n in (0, -1)]
        self.t_min, self.t_max = min(ends), max(ends)

    def __call__(self, t: Any) -> Any:
        """The solution at a time, of shape (n,), or at several, of shape (n, number of times)."""
        t = as_array(t)
        times = reshape(t, (-1,))
        interval = self._integrator.interval
        ahead = still(self._states.t[:, 0]) * interval.direction
        place = searchsorted(ahead, still(times) * interval.direction)
        place = clip(place, 0, ahead.shape[0] - 1)
        leaves, structure = containers.flatten(self._states)
        chosen = containers.unflatten(structure, [take(leaf, place, axis=0) for leaf in leaves])
        found = self._integrator.value(chosen, reshape(times, (-1, 1)))
        return found[0] if t.shape == () else transpose(found)


def _column(x: Any) -> Any:
    return reshape(x, (-1, 1)) if len(x.shape) == 1 else x
