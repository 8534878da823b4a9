"""Integration in steps of adapted length, written so that it can be traced.

The grid of steps is a constant of the derivatives. It is stretched if the ends of the interval
move: step n is at the same fraction of the interval.

The estimate of errors does not see that steps are too long for a component at rest: it is
multiplied by R(h·λ) in place of exp(h·λ) at each step, and stays 0. Its derivatives are multiplied
likewise, and are not 0. So explicit methods also keep steps so short that no error grows which the
equations damp, and that a derivative of the solution is as accurate as the solution. Two things are
estimated for that with one call of f for each step, in turn: how fast errors change at most, by the
power method, and how fast a derivative does, by following one roughly. Fast parts of it count as
long as the equations have not damped them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.autodiff.forward import zeros_like
from gradtape.core.tensor import Tensor
from gradtape.graph.loops import scan, while_loop
from gradtape.graph.while_op import Save
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.cast import astype
from gradtape.ops.comparison import isfinite
from gradtape.ops.exponential import sqrt
from gradtape.ops.select import maximum, minimum, where
from gradtape.solvers.integrate.error_norm import Tolerances, rms, still
from gradtape.solvers.integrate.steps import (
    Ends,
    Limits,
    Method,
    Mode,
    Piece,
    RightHandSide,
    State,
)

# A step is at most so many times longer, and at least so many times shorter, than the last.
_LONGER, _SHORTER = 10.0, 0.2
# Calls for a first estimate of how fast errors change; and the most steps that are taken because of
# it. More of them mean that the equations are too stiff for the method.
_FIRST_ESTIMATES, _MOST_STEPS = 3, 1e5
# The error of a tangent that is allowed in a step, relative to it, in units of rtol: with less,
# steps would be shorter than SciPy's also where all moves.
_TANGENT_ERROR = 3.0


class Interval:
    """The times from one end to another, forwards or backwards.

    Attributes:
        start: Where it begins, without derivatives.
        end: Where it ends, without derivatives.
        direction: 1 or −1.
    """

    def __init__(self, t0: Any, t1: Any) -> None:
        self.start, self.end = still(t0), still(t1)
        self.direction = where(self.end >= self.start, 1.0, -1.0)
        # The ends less their values: 0, with the derivatives of the ends.
        self._moves = [t - value for t, value in ((t0, self.start), (t1, self.end))]
        self._is_fixed = not any(isinstance(t, Tensor) for t in (t0, t1))

    def length(self) -> Any:
        """How long it is; at least 0."""
        return abs_of(self.end - self.start)

    def _fraction(self, t: Any) -> Any:
        length = self.end - self.start
        return t / where(length == 0, 1.0, length)

    def at(self, t: Any) -> Any:
        """A time in it, with the derivatives of a point at the same fraction of the interval."""
        if self._is_fixed:
            return t
        part = self._fraction(t - self.start)
        return t + (1 - part) * self._moves[0] + part * self._moves[1]

    def span(self, h: Any) -> Any:
        """The difference of two such times."""
        if self._is_fixed:
            return h
        return h + self._fraction(h) * (self._moves[1] - self._moves[0])

    def is_before(self, t: Any, target: Any) -> Any:
        """Whether a time comes before another one."""
        return self.direction * (target - t) > 0


class Integrator:
    """Steps of a method along an interval.

    Args:
        f: The right-hand side.
        method: The method.
        interval: The times.
        tolerances: What errors are allowed.
        first_step: The length of the first step; None to estimate it.
        max_step: The longest step.
    """

    def __init__(
        self,
        f: RightHandSide,
        method: Method,
        interval: Interval,
        tolerances: Tolerances,
        first_step: float | None = None,
        max_step: float = np.inf,
    ) -> None:
        self._f, self._method, self.interval = f, method, interval
        self._tolerances, self._first_step, self._max_step = tolerances, first_step, max_step

    def start(self, y: Any, f: Any) -> State:
        """The first state.

        Args:
            y: The solution at the beginning.
            f: Its derivative there.
        """
        t = self.interval.start
        calls = 1
        if self._first_step is None:
            h, calls = self._estimated(still(y), still(f)), 2
        else:
            h = np.float64(self._first_step)
        tangent, mode = _any_direction(y, 1), None
        limits = self._method.limits
        if limits is not None:
            none = np.float64(0.0)
            mode = Mode(_any_direction(y, 0), none, none, none)
            for n in range(_FIRST_ESTIMATES + 1):
                turn = np.bool_(n < _FIRST_ESTIMATES)
                tangent, mode = self._changed(t, still(y), still(f), none, tangent, mode, turn)
            calls += _FIRST_ESTIMATES + 1
            if self._first_step is None:
                h = minimum(h, self._stable(limits, mode))
                missed = maximum(self._missed(limits, h, mode), 1.0)
                h = h / missed ** (1 / (limits.order + 1))
        rows = tuple(zeros_like(y) for _ in range(self._method.row_count))
        never = np.bool_(False)
        return State(
            t, y, f, h, t, y, f, rows, never, never, np.int64(calls), np.int64(0), tangent,
            mode,
        )  # fmt: skip

    # ---- lengths of steps -------------------------------------------------------------------

    def _estimated(self, y: Any, f: Any) -> Any:
        """The length of a first step: Hairer, Nørsett and Wanner, Solving ODEs I, II.4."""
        interval, scale = self.interval, self._tolerances.scale(y)
        size, slope = rms(y / scale), rms(f / scale)
        small = (size < 1e-5) | (slope < 1e-5)
        h = where(small, 1e-6, 0.01 * size / where(small, 1.0, slope))
        h = minimum(h, interval.length())
        # An interval of length 0 needs no step, but must not be divided by.
        h = where(h == 0, 1e-6, h)
        ahead = still(
            self._f(interval.start + h * interval.direction, y + h * interval.direction * f)
        )
        bend = rms((ahead - f) / scale) / h
        most = maximum(slope, bend)
        flat = most <= 1e-15
        power = 1 / (self._method.error_order + 1)
        longer = where(flat, maximum(1e-6, h * 1e-3), (0.01 / where(flat, 1.0, most)) ** power)
        h = minimum(minimum(100 * h, longer), minimum(interval.length(), self._max_step))
        return where(isfinite(h), h, interval.length())

    def _changed(
        self, t: Any, y: Any, f: Any, h: Any, tangent: Any, mode: Mode, turn: Any
    ) -> tuple[Any, Mode]:
        """Better estimates of how errors change, from one more call of f.

        Args:
            t: The time.
            y: The solution there.
            f: Its derivative.
            h: About how far it is from where the tangent was followed last.
            tangent: The tangent.
            mode: The estimates.
            turn: Whether it is the turn of the power method, v ← ∂f/∂y·v. Else the tangent is
                followed, by Euler's method, in which fast parts are damped.
        """
        scale = self._tolerances.scale(y)
        weights = where(scale == 0, 0.0, 1 / where(scale == 0, 1.0, scale))
        along = where(turn, mode.direction, tangent)
        # A difference as large as the errors that are allowed
        size = rms(along * weights)
        along = along / where(size == 0, 1.0, size)
        with np.errstate(all="ignore"):
            change = still(self._f(t, y + along)) - f
            rate, drift = rms(change) / rms(along), rms(change * weights)
        known = isfinite(rate) & isfinite(drift) & (rate > 0)
        ahead = along + h / (1 + abs_of(h) * self._rate(mode)) * change
        return where(turn | ~known, tangent, ahead), Mode(
            direction=where(turn & known, change, mode.direction),
            rate=where(turn, where(known, rate, 0.0), mode.rate),
            before=where(turn, mode.rate, mode.before),
            drift=where(turn, mode.drift, where(known, drift, 0.0)),
        )

    def _rate(self, mode: Mode) -> Any:
        """The fastest change: two in turn tell |λ| of pairs of complex λ, too."""
        return sqrt(mode.rate * mode.before)

    def _stable(self, limits: Limits, mode: Mode) -> Any:
        """The longest stable step."""
        rate = self._rate(mode)
        return where(rate > 0, limits.reach / where(rate > 0, rate, 1.0), np.inf)

    def _missed(self, limits: Limits, h: Any, mode: Mode) -> Any:
        """The error of the tangent in a step, relative to what is allowed; no less than that.

        What changes at a rate λ ≤ Λ is wrong by c·|h·λ|^(p + 1) ≤ c·(h·Λ)^p·h·λ, and all of it
        together by no more than c·(h·Λ)^p·h times the drift.
        """
        allowed = _TANGENT_ERROR * self._tolerances.rtol
        powers = _power(h * self._rate(mode), limits.order) * (h * mode.drift)
        return limits.miss / allowed * powers

    def attempt(self, state: State) -> State:
        """Try one step: the next state, or the same with a shorter step to try."""
        # Loops would otherwise carry cotangents of the grid, which nothing depends on.
        t, given, interval = still(state.t), still(state.h), self.interval
        tangent, mode = still(state.tangent), state.mode and Mode(*map(still, state.mode))
        state = state._replace(tangent=tangent, mode=mode)
        least = 10 * maximum(np.finfo(np.float64).eps * abs_of(t), np.finfo(np.float64).tiny)
        t_new = t + interval.direction * minimum(maximum(given, least), self._max_step)
        t_new = where(interval.is_before(t_new, interval.end), t_new, interval.end)
        h = t_new - t
        step = self._method.step(self._f, interval.at(t), interval.span(h), state, self._tolerances)
        good = step.error < 1

        def kept(new: Any, old: Any) -> Any:
            return where(good, new, old)

        y, f, calls = kept(step.y, state.y), kept(step.f, state.f), step.calls
        tangent = tangent if step.tangent is None else kept(step.tangent, tangent)
        error, stable, limits = step.error, np.inf, self._method.limits
        if mode is not None and limits is not None:
            # If f jumps there, the estimate is too large for once.
            stable = maximum(self._stable(limits, mode), _SHORTER * abs_of(h))
            # By estimates from before: the new ones are found meanwhile.
            error = maximum(error, self._missed(limits, abs_of(h), mode))
            turn = state.tries % 2 == 0
            since = kept(t_new, t) - still(state.t_old)  # the tangent is followed every other time
            tangent, mode = self._changed(
                kept(t_new, t), still(y), still(f), since, tangent, mode, turn
            )
            calls = calls + 1
        next_h = abs_of(h) * self._factor(error, step.safety, good, state.rejected)
        failed = ~good & (next_h < least)
        if mode is not None:
            ahead = abs_of(interval.end - t_new)
            failed = failed | (good & (next_h > stable) & (ahead > _MOST_STEPS * stable))
            next_h = minimum(next_h, stable)
        return State(
            kept(t_new, t),
            y,
            f,
            next_h,
            kept(t, state.t_old),
            kept(state.y, state.y_old),
            kept(state.f, state.f_old),
            tuple(map(kept, step.rows, state.rows)),
            ~good,
            failed,
            state.calls + calls,
            state.tries + 1,
            tangent,
            mode,
        )

    def _factor(self, error: Any, safety: Any, good: Any, rejected: Any) -> Any:
        """By how much the next step is longer or shorter."""
        # The error grows with the length of a step to the power of its order and one.
        known = isfinite(error) & (error > 0)
        factor = safety * where(known, error, 1.0) ** (-1 / (self._method.error_order + 1))
        longer = where(error == 0, _LONGER, minimum(factor, _LONGER))
        longer = maximum(longer, _SHORTER)
        # After a step was too long, the next one is not made longer again.
        longer = where(rejected, minimum(longer, 1.0), longer)
        shorter = where(known, maximum(factor, _SHORTER), _SHORTER)
        return where(good, longer, shorter)

    def advance(self, state: State, target: Any, save: Save = "all") -> State:
        """Take steps until a time is reached, or no step is short enough."""

        def going(state: State) -> Any:
            return self.interval.is_before(state.t, target) & ~state.failed

        reached: State = while_loop(going, self.attempt, state, save=save)
        return reached

    def values(self, state: State, times: Any, save: Save = "all") -> tuple[State, Any]:
        """Go on to the last of some times, in order; the solution at each, in rows."""

        def reach(state: State, pair: Any) -> tuple[State, Any]:
            t, target = pair
            state = self.advance(state, target, save)
            return state, self.value(state, t)

        end, ys = scan(reach, state, (times, still(times)))
        return end, ys

    def value(self, state: State, t: Any) -> Any:
        """The solution at a time in the last step; t may have derivatives."""
        return self.within(self.piece(state), t)

    def piece(self, state: State) -> Piece:
        """The solution in the last step, as numbers that all of its derivatives go through."""
        t, t_old = still(state.t), still(state.t_old)
        ends = Ends(self.interval.span(t - t_old), state.y_old, state.f_old, state.y, state.f)
        return Piece(self.interval.at(t_old), ends, state.rows)

    def within(self, piece: Piece, t: Any) -> Any:
        """The solution at a time in a step; t may have derivatives."""
        ends, since = piece.ends, t - piece.start
        none = still(ends.h) == 0
        part = where(none, 0.0, since / where(none, 1.0, ends.h))
        inside = self._method.between(part, ends, piece.rows)
        # Before the first step, and along an interval of length 0, a line has the derivatives.
        return where(none, ends.y_old + ends.f_old * since, inside)


def _power(x: Any, n: int) -> Any:
    """xⁿ by products, which are much cheaper than a power."""
    half = x if n < 4 else _power(x, n // 2)
    found = half * half
    return found * x if n % 2 else found


def _any_direction(y: Any, seed: int) -> Any:
    """A vector with a part in all directions; neighbours have different signs, as in fast modes."""
    size = y.shape[0]
    vector = np.random.default_rng(seed).uniform(0.5, 1.5, size) * (-1.0) ** np.arange(size)
    return astype(vector / np.sqrt(np.mean(vector**2)), y.dtype)
