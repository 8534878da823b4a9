"""Schedules: learning rates, and other numbers of a rule, as pure functions of the step.

A step is a Python number, or a tensor in a compiled function. The first step of a training has
number 0.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, a_type
from gradtape.ops.arguments import as_integer
from gradtape.ops.shared_options import options
from gradtape.optim.numbers import Number, checked, not_negative, positive_count

P = ParamSpec("P")


class Schedule:
    """A number that depends on the step; made by `gt.optim.cosine` and its neighbours.

    Rules take one in place of a number, `gt.optim.Adam(lr=gt.optim.cosine(0.1, 100))`, and evaluate
    it at each step. Any function of the step will do as well; one of this class says in its `repr`
    what it is.

    Args:
        rate: A function from the number of a step, 0 at first, to the number.
        text: What `repr` returns.

    >>> schedule = gt.optim.linear(0.0, 0.2, steps=10)
    >>> schedule
    linear(start=0.0, end=0.2, steps=10)
    >>> schedule(0), schedule(5), schedule(1000)
    (0.0, 0.1, 0.2)
    """

    def __init__(self, rate: Callable[[Any], Any], text: str) -> None:
        self._rate = rate
        self._text = text

    def __call__(self, step: Any) -> Any:
        """Return the number at a step, which may be a tensor."""
        return self._rate(step)

    def __repr__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(self._text)


# What arguments mean, and what is raised, unless a docstring says otherwise.
_OPTIONS = {"lr": "The learning rate at step 0."}
_ERRORS = {"ArgumentError": "A number is negative, or `steps` is not a positive integer."}


def _maker(make: Callable[P, Callable[[Any], Any]]) -> Callable[P, Schedule]:
    """Make the functions that `make` returns schedules, which are shown as the call of it."""
    options(_OPTIONS, raises=_ERRORS)(make)
    signature = inspect.signature(make)

    @functools.wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> Schedule:
        rate = make(*args, **kwargs)
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        shown = []
        for name, value in given.arguments.items():
            several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            shown += [repr(part) for part in value] if several else [f"{name}={value!r}"]
        return Schedule(rate, f"{make.__name__}({', '.join(shown)})")

    return made


# ---- one curve ----------------------------------------------------------------------------------


@_maker
def constant(lr: Number) -> Callable[[Any], Any]:
    """Return a schedule that is the same at every step.

    Args:
        lr: The learning rate.

    Raises:
        ArgumentError: It is negative.

    >>> gt.optim.constant(0.1)(50)
    0.1
    """
    rate = not_negative(lr, "constant", "lr")
    return lambda step: rate


@_maker
def linear(start: Number, end: Number, steps: int) -> Callable[[Any], Any]:
    """Return a schedule that goes from one number to another on a straight line, and stays there.

    Args:
        start: The number at step 0.
        end: The number from step `steps` on.
        steps: How long it takes.

    >>> warm = gt.optim.linear(0.0, 0.1, steps=4)
    >>> [warm(step) for step in range(6)]
    [0.0, 0.025, 0.05, 0.07500000000000001, 0.1, 0.1]
    """
    first, last = not_negative(start, "linear", "start"), not_negative(end, "linear", "end")
    count = positive_count(steps, "linear", "steps")
    return lambda step: _line(first, last, _share(step, count))


@_maker
def staircase(lr: Number, every: int, factor: Number = 0.1) -> Callable[[Any], Any]:
    """Return a schedule that is multiplied by a factor every so many steps.

    Args:
        every: How many steps it stays as it is.
        factor: What it is multiplied by then.

    Raises:
        ArgumentError: A number is negative, or `every` is not a positive integer.

    >>> schedule = gt.optim.staircase(0.1, every=30, factor=0.5)
    >>> schedule(29), schedule(30), schedule(60)
    (0.1, 0.05, 0.025)
    """
    rate, drop = _rate(lr, "staircase"), not_negative(factor, "staircase", "factor")
    count = positive_count(every, "staircase", "every")
    return lambda step: rate * drop ** (step // count)


@_maker
def milestones(lr: Number, at: Sequence[int], factor: Number = 0.1) -> Callable[[Any], Any]:
    """Return a schedule that is multiplied by a factor at some steps.

    Args:
        at: The steps; one that is listed twice counts twice.
        factor: What it is multiplied by at each.

    Raises:
        ArgumentError: A number is negative, or a step is not an integer.

    >>> schedule = gt.optim.milestones(0.1, at=[30, 80], factor=0.5)
    >>> schedule(29), schedule(30), schedule(80)
    (0.1, 0.05, 0.025)
    """
    rate, drop = _rate(lr, "milestones"), not_negative(factor, "milestones", "factor")
    places = _integers(at, "milestones", "at")
    return lambda step: rate * drop ** _count(step, places)


@_maker
def exponential(lr: Number, factor: Number) -> Callable[[Any], Any]:
    """Return a schedule that is multiplied by a factor at every step.

    Args:
        factor: What it is multiplied by.

    Raises:
        ArgumentError: A number is negative.

    >>> gt.optim.exponential(0.1, 0.5)(2)
    0.025
    """
    rate, drop = _rate(lr, "exponential"), not_negative(factor, "exponential", "factor")
    return lambda step: rate * drop**step


@_maker
def polynomial(
    lr: Number, steps: int, power: Number = 1.0, end: Number = 0.0
) -> Callable[[Any], Any]:
    """Return a schedule that falls like a power of the steps that are left, and stays at the end.

    Args:
        steps: How many steps it takes.
        power: The power; with 1 the schedule is a straight line.
        end: The learning rate from then on.

    >>> schedule = gt.optim.polynomial(0.1, steps=10, power=2)
    >>> schedule(0), schedule(5), schedule(20)
    (0.1, 0.025, 0.0)
    """
    rate, last = _rate(lr, "polynomial"), not_negative(end, "polynomial", "end")
    exponent = not_negative(power, "polynomial", "power")
    count = positive_count(steps, "polynomial", "steps")
    return lambda step: last + (rate - last) * (1.0 - _share(step, count)) ** exponent


@_maker
def cosine(
    lr: Number, steps: int, end: Number = 0.0, *, periodic: bool = False
) -> Callable[[Any], Any]:
    """Return a schedule that falls along half a wave of the cosine (Loshchilov and Hutter, 2017).

    Args:
        steps: How many steps it takes to fall.
        end: The learning rate then.
        periodic: Whether it rises again after that, as PyTorch's does, or stays at the end.

    >>> schedule = gt.optim.cosine(0.1, steps=10)
    >>> [round(schedule(step), 4) for step in (0, 2, 5, 10, 15)]
    [0.1, 0.0905, 0.05, 0.0, 0.0]
    """
    rate, last = _rate(lr, "cosine"), not_negative(end, "cosine", "end")
    count = positive_count(steps, "cosine", "steps")
    if periodic:
        return lambda step: _wave(rate, last, step / count)
    return lambda step: _wave(rate, last, _share(step, count))


@_maker
def cosine_restarts(
    lr: Number, steps: int, growth: int = 1, end: Number = 0.0
) -> Callable[[Any], Any]:
    """Return a schedule that falls along a cosine and starts again, over and over.

    Args:
        lr: The learning rate at the beginning of each period.
        steps: The length of the first period.
        growth: How many times longer than the last one each further period is.
        end: What the learning rate falls to.

    Raises:
        ArgumentError: A number is negative, or `steps` or `growth` is not a positive integer.

    >>> schedule = gt.optim.cosine_restarts(0.1, steps=10, growth=2)
    >>> [round(schedule(step), 4) for step in (0, 5, 9, 10, 20, 30)]
    [0.1, 0.05, 0.0024, 0.1, 0.05, 0.1]
    """
    rate, last = _rate(lr, "cosine_restarts"), not_negative(end, "cosine_restarts", "end")
    count = positive_count(steps, "cosine_restarts", "steps")
    times = positive_count(growth, "cosine_restarts", "growth")
    if times == 1:
        return lambda step: _wave(rate, last, (step % count) / count)
    # More periods than any training has steps.
    lengths = [count * times**period for period in range(1, 64) if count * times**period < 2**53]
    starts = [(length - count) // (times - 1) for length in lengths]

    def at(step: Any) -> Any:
        start, length = 0, count
        for next_start, next_length in zip(starts, lengths, strict=True):
            start = where(step >= next_start, next_start, start)
            length = where(step >= next_start, next_length, length)
        return _wave(rate, last, (step - start) / length)

    return at


@_maker
def one_cycle(
    lr: Number,
    steps: int,
    *,
    rise: float = 0.3,
    start: Number | None = None,
    end: Number | None = None,
    shape: str = "cos",
    back: bool = False,
) -> Callable[[Any], Any]:
    """Return a schedule that rises and falls once (Smith and Topin, 2018).

    A momentum that falls while the learning rate rises is a schedule with `start` above `lr`:
    `one_cycle(0.85, steps, start=0.95, end=0.95)`.

    Args:
        lr: The learning rate at the top.
        steps: The number of steps of the training.
        rise: The part of them in which it rises.
        start: The learning rate at step 0; a 25th of `lr` by default.
        end: The learning rate at the last step; a 10,000th of `start` by default.
        shape: `"cos"` for half waves, `"linear"` for straight lines.
        back: Whether it falls back to `start` as quickly as it rose, and to `end` after that.

    Raises:
        ArgumentError: A number is negative, `steps` is not a positive integer, `rise` is not in
            [0, 1], or not in [0, 0.5] with `back`, or the shape is unknown.

    >>> schedule = gt.optim.one_cycle(0.1, steps=100)
    >>> [round(schedule(step), 4) for step in (0, 29, 60, 99)]
    [0.004, 0.1, 0.0589, 0.0]
    """
    name = "one_cycle"
    top, count = _rate(lr, name), positive_count(steps, name, "steps")
    first = top / 25.0 if start is None else not_negative(start, name, "start")
    last = first / 1e4 if end is None else not_negative(end, name, "end")
    most = 0.5 if back else 1.0
    share = checked(rise, name, "rise", f"a part in [0, {most}]", lambda x: 0 <= x <= most)
    if shape not in _SHAPES:
        raise ArgumentError(f"one_cycle: got shape={shape!r}, expected one of {sorted(_SHAPES)}")
    curve = _SHAPES[shape]
    # The steps at which the pieces end, and the numbers there.
    ends, levels = [share * count - 1, count - 1], [first, top, last]
    if back:
        ends, levels = [ends[0], 2 * share * count - 2, ends[1]], [first, top, first, last]

    def at(step: Any) -> Any:
        found, begin = None, 0.0
        for place, stop in enumerate(ends):
            # A piece may be empty, if the training or its rise is short.
            done = (step - begin) / (stop - begin) if stop != begin else 1.0
            done = where(done > 1.0, 1.0, done)
            piece = curve(levels[place], levels[place + 1], done)
            found = piece if found is None else where(step > begin, piece, found)
            begin = stop
        return found

    return at


# ---- several schedules --------------------------------------------------------------------------


@_maker
def sequence(schedules: Sequence[Any], starts: Sequence[int]) -> Callable[[Any], Any]:
    """Return a schedule that follows one schedule after another; each begins with its step 0.

    Args:
        schedules: Schedules; functions of the step and numbers will do, too.
        starts: The steps at which all but the first begin, in increasing order.

    Raises:
        ArgumentError: There is no schedule, a step is missing or is not an integer, or they do not
            increase.

    >>> schedule = gt.optim.sequence(
    ...     [gt.optim.linear(0.0, 0.1, 10), gt.optim.cosine(0.1, 90)], [10]
    ... )
    >>> schedule(0), schedule(5), schedule(10), schedule(100)
    (0.0, 0.05, 0.1, 0.0)
    """
    parts = [_as_schedule(part, "sequence") for part in schedules]
    places = _integers(starts, "sequence", "starts")
    if not parts or len(places) != len(parts) - 1:
        raise ArgumentError(
            f"sequence: got {len(parts)} schedules and {len(places)} starts, expected the start of "
            "each but the first"
        )
    if any(late <= early for early, late in itertools.pairwise([0, *places])):
        raise ArgumentError(f"sequence: got starts={places}, expected increasing steps from 1")

    def at(step: Any) -> Any:
        if not isinstance(step, Tensor):
            turn = _count(step, places)
            return parts[turn](step - places[turn - 1] if turn else step)
        traced: Any = step
        found = parts[0](traced)
        for start, part in zip(places, parts[1:], strict=True):
            # Before its start a part gets step 0: it need not be defined for negative ones.
            found = np.where(traced >= start, part(np.maximum(traced - start, 0)), found)
        return found

    return at


@_maker
def warmup(schedule: Any, steps: int, start: Number = 0.0) -> Callable[[Any], Any]:
    """Return a schedule that rises on a straight line to where another one begins, and follows it.

    Args:
        schedule: What comes after: a schedule, a function of the step, or a number.
        steps: How many steps it rises.
        start: The learning rate at step 0.

    Raises:
        ArgumentError: `steps` is not a positive integer, or `start` is negative.

    >>> schedule = gt.optim.warmup(gt.optim.cosine(0.1, 90), steps=10)
    >>> schedule(0), schedule(5), schedule(10), schedule(100)
    (0.0, 0.05, 0.1, 0.0)
    """
    after = _as_schedule(schedule, "warmup")
    return sequence([linear(start, after(0), steps), after], [steps])


@_maker
def product(*schedules: Any) -> Callable[[Any], Any]:
    """Return a schedule that is the product of others at each step.

    Args:
        *schedules: Schedules; functions of the step and numbers will do, too.

    Raises:
        ArgumentError: There is no schedule, or something is none.

    >>> schedule = gt.optim.product(gt.optim.linear(0.5, 1.0, 2), gt.optim.exponential(0.1, 0.5))
    >>> schedule(0), schedule(2)
    (0.05, 0.025)
    """
    if not schedules:
        raise ArgumentError("product: got no schedule, expected at least one")
    parts = [_as_schedule(part, "product") for part in schedules]
    return lambda step: math.prod([part(step) for part in parts])


# ---- parts of formulas --------------------------------------------------------------------------


def _share(step: Any, count: int) -> Any:
    """The part of the steps that is over, at most 1."""
    return where(step < count, step / count, 1.0)


def _line(start: Any, end: Any, share: Any) -> Any:
    return start + (end - start) * share


def _wave(start: Any, end: Any, share: Any) -> Any:
    # end + (start − end)·(1 + cos(π·share))/2
    turned = np.cos(math.pi * share) if isinstance(share, Tensor) else math.cos(math.pi * share)
    return end + (start - end) * (1.0 + turned) / 2.0


_SHAPES = {"cos": _wave, "linear": _line}


def where(condition: Any, one: Any, other: Any) -> Any:
    """`np.where`; a Python number for Python numbers, which is quicker and adapts to any dtype."""
    if isinstance(condition, Tensor):
        return np.where(condition, one, other)
    return one if condition else other


def _count(step: Any, places: Sequence[int]) -> Any:
    """How many of the places have been reached."""
    return sum([where(step >= place, 1, 0) for place in places])


# ---- checks -------------------------------------------------------------------------------------


def _rate(lr: Any, name: str) -> Any:
    return not_negative(lr, name, "lr")


def _integers(values: Any, name: str, option: str) -> list[int]:
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str):
        raise ArgumentError(f"{name}: got {option}={values!r}, expected a sequence of integers")
    return [as_integer(value, name, option) for value in values]


def _as_schedule(value: Any, name: str) -> Callable[[Any], Any]:
    if callable(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise ArgumentError(f"{name}: got {a_type(value)}, expected a schedule or a number")
    return constant(value)
