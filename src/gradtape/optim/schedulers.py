"""Schedules under PyTorch's names: objects that set the learning rates of an optimizer.

Each is a pure schedule for every group of parameters, and a counter of its steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, NonFiniteError, UnsupportedError, a_type
from gradtape.ops.arguments import as_integer, as_number
from gradtape.ops.checks import check_least, check_positive
from gradtape.ops.shared_options import options, section
from gradtape.optim.numbers import Numbers, plain
from gradtape.optim.optimizer import Optimizer
from gradtape.optim.plateau import Plateau
from gradtape.optim.schedules import (
    Schedule,
    constant,
    cosine,
    cosine_restarts,
    exponential,
    linear,
    milestones as milestones_schedule,
    one_cycle,
    polynomial,
    product,
    sequence,
    staircase,
)

# The learning rates of optimizers before their first scheduler changed them: that is what a second
# one begins from, too.
_FIRST_RATES: WeakKeyDictionary[Optimizer, list[float]] = WeakKeyDictionary()
# A function of the step.
Rate = Callable[[Any], Any]

# Completes the docstring of a scheduler with what arguments mean that several have.
_explained = options(
    {
        "optimizer": "The optimizer.",
        "gamma": "The factor.",
        "total_iters": "How many steps it takes.",
    },
    raises={"ArgumentError": "A number is out of its range."},
)


@_explained
class LRScheduler:
    """Set the learning rates of an optimizer by a schedule; the base class of all that do.

    The number of steps so far decides the rates, so that errors do not add up. If something else
    has changed a rate in between, such as a second scheduler of the same optimizer, the change of
    the schedule is applied to what is found: rates are multiplied as they are in PyTorch.

    The rate in `optimizer.defaults` is set like those of the groups, so that a compiled function
    that calls `optimizer.apply` follows the schedule, too; it is not compiled again.

    Args:
        schedule: A function of the step, or one for each group of parameters, and perhaps one more
            for `optimizer.defaults`.

    Attributes:
        optimizer: The optimizer.
        schedules: The schedule of each group, and at last that of `optimizer.defaults`.
        last_epoch: How many steps it has made.

    Raises:
        ArgumentError: It is not an optimizer, or there is not one schedule for each group.

    >>> optimizer = gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = gt.optim.LRScheduler(optimizer, gt.optim.warmup(0.1, steps=2))
    >>> optimizer.lr
    0.0
    >>> scheduler.step()
    >>> optimizer.lr, scheduler
    (0.05, <LRScheduler, step 1, lr 0.05>)
    """

    # What the rates fall to, for those that do not fall by factors.
    _floor = 0.0

    def __init__(self, optimizer: Optimizer, schedule: Rate | Sequence[Rate]) -> None:
        self.optimizer = optimizer
        self.schedules: list[Rate] = _for_each(schedule, optimizer, self._name)
        if not all(map(callable, self.schedules)):
            raise ArgumentError(f"{self._name}: got a schedule that is not a function of the step")
        self.last_epoch = 0
        self._last: list[float] = []
        # Whether something else changes the rates as well.
        self._shared = False
        self._write([as_number(rate(0), self._name, "schedule(0)") for rate in self.schedules])

    @property
    def _name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        rates = ", ".join(f"{rate:.6g}" for rate in self.get_last_lr())
        return f"<{self._name}, step {self.last_epoch}, lr {rates}>"

    def step(self) -> None:
        """Set the learning rates of the next step.

        Raises:
            ArgumentError: The optimizer has got further groups of parameters.
        """
        targets = numbers_of(self.optimizer, self._name)
        if len(targets) != len(self._last):
            raise ArgumentError(
                f"{self._name}: got {len(targets) - 1} groups of parameters, expected "
                f"{len(self._last) - 1} as there were at first; make the scheduler after the groups"
            )
        epoch = self.last_epoch + 1
        rates = [(rate(epoch - 1), float(rate(epoch))) for rate in self.schedules]
        current = [target["lr"] for target in targets]
        self._shared = self._shared or current != self._last
        self.last_epoch = epoch
        self._write([self._moved(now, *pair) for now, pair in zip(current, rates, strict=True)])

    def get_last_lr(self) -> list[float]:
        """Return the learning rate of each group, as this scheduler has set it."""
        return self._last[:-1] or self._last[:]

    def state_dict(self) -> dict[str, Any]:
        """Return the state: the number of steps, the learning rates, and who sets them."""
        return {
            "last_epoch": self.last_epoch,
            "last_lr": list(self._last),
            "shared": int(self._shared),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state that `state_dict` returned, and set the learning rates.

        Args:
            state: The state of a scheduler made with the same numbers.

        Raises:
            ArgumentError: It is the state of a scheduler with other numbers, or for other groups.
        """
        _check_names(self._name, state, ("last_epoch", "last_lr", "shared"))
        epoch = as_integer(plain(state["last_epoch"]), self._name, "last_epoch")
        rates = _loaded_rates(state["last_lr"], len(self._last), self._name)
        if epoch < 0:
            raise ArgumentError(f"{self._name}: got last_epoch={epoch}, expected an integer >= 0")
        shared, own = bool(plain(state["shared"])), [rate(epoch) for rate in self.schedules]
        if not (shared or all(map(math.isclose, own, rates))):
            raise ArgumentError(
                f"{self._name}: got the state of one that set {rates} at step {epoch}; this "
                f"one sets {own}. Make it with the same numbers, and before "
                "optimizer.load_state_dict changes the rate that it begins from"
            )
        self.last_epoch, self._shared = epoch, shared
        self._write(rates)

    def _moved(self, current: float, before: float, rate: float) -> float:
        """A learning rate after the schedule went from `before` to `rate`."""
        if not self._shared:
            return rate
        if before == self._floor:
            return current + rate - before
        return self._floor + (current - self._floor) * (rate - self._floor) / (before - self._floor)

    def _write(self, rates: Sequence[float]) -> None:
        write_rates(self.optimizer, rates, self._name)
        self._last = list(rates)


def numbers_of(optimizer: Any, name: str) -> list[Numbers]:
    """The numbers of each group of parameters, and at last those in `defaults`."""
    if not isinstance(optimizer, Optimizer):
        raise ArgumentError(
            f"{name}: got {a_type(optimizer)}, expected an optimizer such as gt.optim.SGD"
        )
    return [*optimizer.param_groups, optimizer.defaults]


def write_rates(optimizer: Optimizer, rates: Sequence[float], name: str) -> None:
    """Set the learning rates of the groups and of `defaults`."""
    for target, rate in zip(numbers_of(optimizer, name), rates, strict=True):
        target["lr"] = rate


def _for_each(given: Any, optimizer: Any, name: str) -> list[Any]:
    """One value, or one for each group of parameters, as one for each and for `defaults`."""
    count = len(numbers_of(optimizer, name))
    if not isinstance(given, Sequence):
        return [given] * count
    if len(given) not in (max(1, count - 1), count):
        raise ArgumentError(
            f"{name}: got {len(given)} values for {count - 1} groups of parameters, expected one "
            "for each"
        )
    return [*given, given[0]][:count]


def _loaded_rates(rates: Any, count: int, name: str) -> list[float]:
    numbers = [as_number(plain(rate), name, "last_lr") for rate in rates]
    if len(numbers) != count:
        raise ArgumentError(
            f"{name}: got a state with {len(numbers)} learning rates, expected {count}: those of "
            "the groups of parameters and that in defaults"
        )
    return numbers


def _base_rates(optimizer: Any, name: str) -> list[float]:
    """The learning rates as they were before any scheduler changed them."""
    rates = [target["lr"] for target in numbers_of(optimizer, name)]
    for rate in rates:
        if callable(rate) or isinstance(rate, Tensor):
            raise ArgumentError(
                f"{name}: got an optimizer whose learning rate is {a_type(rate)}, expected a number"
            )
    known = _FIRST_RATES.setdefault(optimizer, rates)
    # Those of groups that were added since; `defaults` are the last.
    known[-1:-1] = rates[len(known) - 1 : -1]
    return list(known)


def _check_names(name: str, state: Any, expected: Sequence[str]) -> None:
    if not (isinstance(state, Mapping) and set(state) == set(expected)):
        got = sorted(state) if isinstance(state, Mapping) else a_type(state)
        raise ArgumentError(f"{name}: got a state with {got}, expected {sorted(expected)}")


class _OfBase(LRScheduler):
    """A scheduler whose schedules begin from the learning rates of the optimizer."""

    def __init__(self, optimizer: Optimizer, schedule: Callable[[float], Rate]) -> None:
        rates = _base_rates(optimizer, self._name)
        found = [target["lr"] for target in numbers_of(optimizer, self._name)]
        super().__init__(optimizer, [schedule(rate) for rate in rates])
        # Another scheduler may have changed them already.
        self._shared = found != rates
        triples = zip(found, rates, self._last, strict=True)
        self._write([self._moved(now, base, to) for now, base, to in triples])


# ---- single schedules ---------------------------------------------------------------------------


@_explained
class LambdaLR(_OfBase):
    """Multiply the first learning rate by a function of the step.

    Args:
        lr_lambda: The function, or one for each group of parameters.

    Raises:
        ArgumentError: There is not one function for each group.

    >>> optimizer = gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = gt.optim.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    >>> scheduler.step()
    >>> optimizer.lr
    0.05
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Rate | Sequence[Rate]) -> None:
        left = iter(_for_each(lr_lambda, optimizer, "LambdaLR"))
        super().__init__(optimizer, lambda lr: product(lr, next(left)))


@_explained
class ConstantLR(_OfBase):
    """Multiply the learning rate by a factor for the first steps.

    Args:
        factor: The factor.
        total_iters: For how many steps.

    >>> optimizer = gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = gt.optim.ConstantLR(optimizer, factor=0.5, total_iters=1)
    >>> before = optimizer.lr
    >>> scheduler.step()
    >>> before, optimizer.lr
    (0.05, 0.1)
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5) -> None:
        check_least("ConstantLR", 0, factor=factor)

        def schedule(lr: float) -> Rate:
            return sequence([constant(lr * factor), constant(lr)], [total_iters])

        super().__init__(optimizer, schedule)


@_explained
class LinearLR(_OfBase):
    """Change the learning rate from one multiple of it to another on a straight line.

    Args:
        start_factor: The first multiple.
        end_factor: The last one.

    >>> optimizer = gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = gt.optim.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> before = optimizer.lr
    >>> scheduler.step()
    >>> before, round(optimizer.lr, 6)
    (0.05, 0.075)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
    ) -> None:
        check_least("LinearLR", 0, start_factor=start_factor, end_factor=end_factor)
        super().__init__(
            optimizer, lambda lr: linear(lr * start_factor, lr * end_factor, total_iters)
        )


@_explained
class StepLR(_OfBase):
    """Multiply the learning rate by a factor every so many steps.

    Args:
        step_size: How many steps it stays as it is.

    >>> optimizer = gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = gt.optim.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> optimizer.lr
    0.05
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        super().__init__(optimizer, lambda lr: staircase(lr, step_size, gamma))


@_explained
class MultiStepLR(_OfBase):
    """Multiply the learning rate by a factor at some steps.

    Args:
        milestones: The steps.

    Raises:
        ArgumentError: A number is out of its range, or a step is not an integer.

    >>> optimizer = gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = gt.optim.MultiStepLR(optimizer, milestones=[1, 5], gamma=0.5)
    >>> scheduler.step()
    >>> optimizer.lr
    0.05
    """

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1) -> None:
        super().__init__(optimizer, lambda lr: milestones_schedule(lr, milestones, gamma))


@_explained
class ExponentialLR(_OfBase):
    """Multiply the learning rate by a factor at every step.

    Raises:
        ArgumentError: It is negative.

    >>> optimizer = gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = gt.optim.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler.step()
    >>> optimizer.lr
    0.05
    """

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        super().__init__(optimizer, lambda lr: exponential(lr, gamma))


@_explained
class PolynomialLR(_OfBase):
    """Let the learning rate fall to zero like a power of the steps that are left.

    Args:
        power: The power.

    >>> optimizer = gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = gt.optim.PolynomialLR(optimizer, total_iters=2, power=2.0)
    >>> scheduler.step()
    >>> optimizer.lr
    0.025
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0) -> None:
        super().__init__(optimizer, lambda lr: polynomial(lr, total_iters, power))


@_explained
class CosineAnnealingLR(_OfBase):
    """Let the learning rate fall along a cosine (Loshchilov and Hutter, 2017).

    As in PyTorch it rises again after `T_max` steps; `LRScheduler(optimizer, gt.optim.cosine(…))`
    stays where it is.

    Args:
        T_max: How many steps it takes to fall.
        eta_min: The learning rate then.

    >>> optimizer = gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = gt.optim.CosineAnnealingLR(optimizer, T_max=2)
    >>> scheduler.step()
    >>> round(optimizer.lr, 6)
    0.05
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        self._floor = eta_min
        super().__init__(optimizer, lambda lr: cosine(lr, T_max, eta_min, periodic=True))


@_explained
class CosineAnnealingWarmRestarts(_OfBase):
    """Let the learning rate fall along a cosine and start again, over and over.

    Args:
        T_0: The length of the first period.
        T_mult: How many times longer than the last one each further period is.
        eta_min: What the learning rate falls to.

    >>> optimizer = gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = gt.optim.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> optimizer.lr
    0.1
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
    ) -> None:
        self._floor = eta_min
        super().__init__(optimizer, lambda lr: cosine_restarts(lr, T_0, T_mult, eta_min))


@_explained
class OneCycleLR(LRScheduler):
    """Let the learning rate rise and fall once, and the momentum fall and rise.

    Args:
        max_lr: The learning rate at the top, or one for each group of parameters.
        total_steps: The number of steps of the training.
        epochs: Its number of epochs, with `steps_per_epoch` in place of `total_steps`.
        steps_per_epoch: The number of steps of an epoch.
        pct_start: The part of the steps in which the learning rate rises.
        anneal_strategy: `"cos"` for half waves, `"linear"` for straight lines.
        cycle_momentum: Whether the momentum, or the first of Adam's betas, changes as well.
        base_momentum: The momentum at the top.
        max_momentum: The momentum at both ends.
        div_factor: How many times smaller than at the top the learning rate is at first.
        final_div_factor: How many times smaller than at first it is at the end.
        three_phase: Whether it falls back to the first learning rate as quickly as it rose.

    Raises:
        ArgumentError: A number is out of its range or missing, or the optimizer has no momentum.

    >>> optimizer = gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1, momentum=0.9)
    >>> scheduler = gt.optim.OneCycleLR(optimizer, max_lr=0.1, total_steps=20)
    >>> for _ in range(5):
    ...     scheduler.step()
    >>> optimizer.lr, optimizer.defaults["momentum"]
    (0.1, 0.85)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ArgumentError(
                    "OneCycleLR: got no number of steps; give total_steps, or epochs and "
                    "steps_per_epoch"
                )
            total_steps = epochs * steps_per_epoch
        tops = _for_each(max_lr, optimizer, "OneCycleLR")
        check_least("OneCycleLR", 0, **{f"max_lr[{place}]": top for place, top in enumerate(tops)})
        check_positive("OneCycleLR", div_factor=div_factor, final_div_factor=final_div_factor)

        def cycle(top: Any, start: Any, end: Any) -> Schedule:
            return one_cycle(
                top,
                total_steps,
                rise=pct_start,
                start=start,
                end=end,
                shape=anneal_strategy,
                back=three_phase,
            )

        # The momentum is set along with the rates.
        self._momentum = None
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ArgumentError(
                    "OneCycleLR: got an optimizer without momentum or betas; use "
                    "cycle_momentum=False"
                )
            self._momentum = cycle(base_momentum, max_momentum, max_momentum)
        self.optimizer = optimizer
        cycles = [cycle(top, top / div_factor, top / div_factor / final_div_factor) for top in tops]
        super().__init__(optimizer, cycles)

    def _write(self, rates: Sequence[float]) -> None:
        super()._write(rates)
        if self._momentum is None:
            return
        momentum = self._momentum(self.last_epoch)
        for target in numbers_of(self.optimizer, self._name):
            if "betas" in target:
                target["betas"] = (momentum, *target["betas"][1:])
            else:
                target["momentum"] = momentum


# ---- several schedulers -------------------------------------------------------------------------


@_explained
class SequentialLR(LRScheduler):
    """Follow the schedule of one scheduler after another.

    Args:
        schedulers: Schedulers of the same optimizer, which are not stepped themselves.
        milestones: The steps at which all but the first begin.

    Raises:
        ArgumentError: A scheduler is one of another optimizer, or a step is missing.
        UnsupportedError: A scheduler has no schedule, such as `ReduceLROnPlateau`.

    >>> optimizer = gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    >>> warm = gt.optim.LinearLR(optimizer, start_factor=0.5, total_iters=1)
    >>> fall = gt.optim.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = gt.optim.SequentialLR(optimizer, [warm, fall], milestones=[1])
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(optimizer.lr)
    ...     scheduler.step()
    >>> rates
    [0.05, 0.1, 0.05]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[Any], milestones: Sequence[int]
    ) -> None:
        for scheduler in schedulers:
            _check_part(scheduler, optimizer, "SequentialLR")
            if type(scheduler)._write is not LRScheduler._write:
                raise UnsupportedError(
                    f"SequentialLR: got a {type(scheduler).__name__}, which sets the momentum as "
                    "well; use cycle_momentum=False with gt.optim.one_cycle and gt.optim.sequence"
                )
        count = len(numbers_of(optimizer, "SequentialLR"))
        by_group = [[scheduler.schedules[n] for scheduler in schedulers] for n in range(count)]
        super().__init__(optimizer, [sequence(parts, milestones) for parts in by_group])


class ChainedScheduler:
    """Step several schedulers of one optimizer together; each multiplies the rate by its factor.

    Args:
        schedulers: The schedulers.
        optimizer: Their optimizer, if it is to be checked.

    Raises:
        ArgumentError: There is none, or they are not of one optimizer.

    >>> optimizer = gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    >>> warm = gt.optim.ConstantLR(optimizer, factor=0.5, total_iters=1)
    >>> fall = gt.optim.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = gt.optim.ChainedScheduler([warm, fall])
    >>> scheduler.step()
    >>> round(optimizer.lr, 6)
    0.05
    """

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ArgumentError("ChainedScheduler: got no scheduler, expected at least one")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        for scheduler in schedulers:
            _check_part(scheduler, self.optimizer, "ChainedScheduler")
        self._schedulers = list(schedulers)

    def step(self) -> None:
        """Step all of them."""
        for scheduler in self._schedulers:
            scheduler.step()

    def get_last_lr(self) -> list[float]:
        """Return the learning rate of each group."""
        return self._schedulers[-1].get_last_lr()  # type: ignore[no-any-return]

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all of them."""
        return {"schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state that `state_dict` returned.

        Args:
            state: The state of the same schedulers in the same order.

        Raises:
            ArgumentError: It has other parts.
        """
        _check_names("ChainedScheduler", state, ["schedulers"])
        states = list(state["schedulers"])
        if len(states) != len(self._schedulers):
            raise ArgumentError(
                f"ChainedScheduler: got states of {len(states)} schedulers, expected "
                f"{len(self._schedulers)}"
            )
        before = self.state_dict()["schedulers"]
        try:
            _load_all(self._schedulers, states)
        except Exception:
            _load_all(self._schedulers, before)
            raise


def _load_all(schedulers: Sequence[Any], states: Sequence[Any]) -> None:
    for scheduler, part in zip(schedulers, states, strict=True):
        scheduler.load_state_dict(part)


def _check_part(scheduler: Any, optimizer: Any, name: str) -> None:
    if not isinstance(scheduler, LRScheduler):
        raise UnsupportedError(
            f"{name}: got {a_type(scheduler)}, expected a scheduler by the step, such as "
            "gt.optim.StepLR"
        )
    if scheduler.optimizer is not optimizer:
        raise ArgumentError(f"{name}: got a {type(scheduler).__name__} of another optimizer")


# ---- by the loss --------------------------------------------------------------------------------


@_explained
@options(section(Plateau, "Args"), raises=section(Plateau, "Raises"))
class ReduceLROnPlateau:
    """Reduce the learning rate when a loss has stopped getting better.

    Args:
        patience: For how many steps the loss may fail to improve.
        cooldown: After how many steps failures are counted again.
        min_lr: The learning rate that it does not go below, or one for each group.

    >>> optimizer = gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = gt.optim.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in (1.0, 0.8, 0.8, 0.8):
    ...     scheduler.step(loss)
    >>> optimizer.lr
    0.05
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        floors = _for_each(min_lr, optimizer, "ReduceLROnPlateau")
        self.optimizer = optimizer
        self._rules = [
            Plateau(
                factor=factor,
                patience=patience,
                mode=mode,
                threshold=threshold,
                threshold_mode=threshold_mode,
                cooldown=cooldown,
                min_lr=floor,
                eps=eps,
            )
            for floor in floors
        ]
        # The groups have the same loss, and so the same state.
        self._state = self._rules[0].init()

    def step(self, metrics: Any) -> None:
        """Reduce the learning rates if the loss has not improved for long enough.

        Args:
            metrics: The loss.

        Raises:
            NonFiniteError: It is NaN.
        """
        loss = as_number(plain(metrics), "ReduceLROnPlateau", "metrics")
        if loss != loss:
            raise NonFiniteError(
                "ReduceLROnPlateau: got a loss of nan, which is neither better nor worse than "
                "another; find out where it comes from with gt.detect_anomaly()"
            )
        before, rates = self._state, []
        for rule, rate in zip(self._rules, self._rates(), strict=True):
            rate, self._state = rule.apply(rate, loss, before)
            rates.append(rate)
        write_rates(self.optimizer, rates, "ReduceLROnPlateau")

    def _rates(self) -> list[float]:
        return [target["lr"] for target in numbers_of(self.optimizer, "ReduceLROnPlateau")]

    def get_last_lr(self) -> list[float]:
        """Return the learning rate of each group."""
        rates = self._rates()
        return rates[:-1] or rates

    def state_dict(self) -> dict[str, Any]:
        """Return the state: the best loss, counts, and the learning rates."""
        return {**self._state, "last_lr": self._rates()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state that `state_dict` returned, and set the learning rates.

        Args:
            state: The state of a scheduler made with the same numbers.

        Raises:
            ArgumentError: It is the state of another kind of scheduler, or for other groups.
        """
        name = "ReduceLROnPlateau"
        _check_names(name, state, [*self._state, "last_lr"])
        rates = _loaded_rates(state["last_lr"], len(self._rules), name)
        counts = {key: as_integer(plain(state[key]), name, key) for key in ("failures", "cooldown")}
        self._state = {"best": as_number(plain(state["best"]), name, "best"), **counts}
        write_rates(self.optimizer, rates, name)
