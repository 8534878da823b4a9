"""Loops that time a call: how often to repeat it, and taking turns.

A call may be far shorter than what a clock can tell apart, so it is repeated within a sample. And
machines drift (frequency, neighbours), so calls that are to be compared take turns: each pair of
samples met the same machine.

Python's garbage collector stays on, as what it costs is part of what a call costs. It is run to its
end beforehand, and before each turn, so that nobody pays for the garbage of others.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Any

Clock = Callable[[], float]
"""Returns seconds since some moment."""
Loop = Callable[[int], float]
"""Makes so many calls and returns the seconds they took together."""

# Seconds that other processes may take from a call at once; what takes longer is slow by itself.
_INTERRUPTION = 0.1
# A clock that stands still must not make a loop endless.
_MOST_CALLS = 10**8


def loop_of(function: Callable[..., object], args: tuple[Any, ...], clock: Clock) -> Loop:
    """The loop that calls a function with the same arguments again and again."""

    def loop(calls: int) -> float:
        times = repeat(None, calls)
        start = clock()
        for _ in times:
            function(*args)
        return clock() - start

    return loop


def calls_that_fill(loop: Loop, seconds: float) -> int:
    """How many calls take about that long, at least one; trying it out is a warm-up as well.

    The fastest of three tries decides. If one that was interrupted did, a side would get few calls
    per sample, each of which then bears more of what a sample costs: equal sides would differ.
    """
    calls = 1
    while True:
        spent = loop(calls)
        if 0.5 * seconds <= spent < _INTERRUPTION:
            spent = min(spent, loop(calls), loop(calls))
        if spent >= 0.5 * seconds:
            return max(1, round(calls * seconds / spent))
        if calls >= _MOST_CALLS:
            return calls
        calls = max(2 * calls, min(10 * calls, int(calls * seconds / max(spent, 1e-9))))


def sampled(loop: Loop, calls: int, samples: int) -> list[float]:
    """The seconds per call, in a number of samples of so many calls."""
    gc.collect()
    return [loop(calls) / calls for _ in range(samples)]


def sampled_in_turns(
    loops: Mapping[str, Loop], calls: Mapping[str, int], rounds: int
) -> dict[str, list[float]]:
    """The seconds per call of several loops, a sample of each per round.

    The order is reversed from round to round, so that no loop always has the same one before it.
    """
    samples: dict[str, list[float]] = {name: [] for name in loops}
    order = list(loops)
    for _ in range(rounds):
        for name in order:
            samples[name] += sampled(loops[name], calls[name], 1)
        order.reverse()
    return samples


def step_of(clock: Clock) -> float:
    """The least time that a clock can tell from nothing, the cost of reading it included.

    Returns:
        0 for a clock that stands still while it is read, as those of tests do.
    """
    steps = []
    for _ in range(20):
        start = clock()
        for _ in range(1000):
            if (step := clock() - start) > 0.0:
                steps.append(step)
                break
        else:
            return 0.0
    return min(steps)


def duration(seconds: float) -> str:
    """A time in a unit that suits it.

    >>> from gradtape.tools.timing import duration
    >>> duration(0.00123), duration(45e-9)
    ('1.23 ms', '45 ns')
    """
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1.0:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"
