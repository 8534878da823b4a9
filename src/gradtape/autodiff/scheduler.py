"""How the Jacobians of a tape are accumulated: `SchedulerConfig` and its strategies."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from gradtape.errors import ArgumentError, a_type


class SchedulingStrategy(enum.Enum):
    """In which direction a Jacobian is accumulated.

    Attributes:
        Auto: In the one that the estimated cost is lowest for, block by block; or mixed.
        Forward: Tangents of every source element, pushed forward.
        Reverse: Cotangents of every target element, pulled back.
        Mixed: Cut where few numbers pass, accumulated on both sides of the cuts and multiplied;
            as `Auto` does it where there is nothing to cut.

    >>> gt.SchedulingStrategy.Mixed
    <SchedulingStrategy.Mixed: 'mixed'>
    """

    Auto = "auto"
    Forward = "forward"
    Reverse = "reverse"
    Mixed = "mixed"


@dataclass(frozen=True, kw_only=True)
class SchedulerConfig:
    """How a tape chooses between forward, reverse and mixed mode when a Jacobian is asked for.

    Args:
        strategy: A member of `gt.SchedulingStrategy`.
        forward_mode_threshold: From how many target elements per source element on `Auto` does not
            consider reverse mode.
        reverse_mode_threshold: Up to how many target elements per source element `Auto` does not
            consider forward mode.
        enable_mixed_mode: Whether `Auto` may cut the tape where few numbers pass.

    Raises:
        ArgumentError: The strategy is none, a threshold is no positive number, or the options
            contradict each other.

    >>> config = gt.SchedulerConfig(strategy=gt.SchedulingStrategy.Auto)
    >>> tape = gt.GradientTape(scheduler=config)
    >>> t = tape.watch(0.5)
    >>> tape.jacobian(gt.exp(t * np.arange(1000.0) / 1000.0), t).shape
    (1000,)
    >>> tape.schedule.mode
    'forward'
    """

    strategy: SchedulingStrategy = SchedulingStrategy.Auto
    forward_mode_threshold: float = 10.0
    reverse_mode_threshold: float = 0.1
    enable_mixed_mode: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.strategy, SchedulingStrategy):
            raise ArgumentError(
                f"SchedulerConfig: got strategy={self.strategy!r}, expected a member of "
                "gt.SchedulingStrategy, such as gt.SchedulingStrategy.Auto"
            )
        for name in ("forward_mode_threshold", "reverse_mode_threshold"):
            value = getattr(self, name)
            known = isinstance(value, int | float | np.integer | np.floating)
            if isinstance(value, bool) or not known or not value > 0:
                raise ArgumentError(
                    f"SchedulerConfig: got {name}={value!r}, expected a positive number"
                )
        if not isinstance(self.enable_mixed_mode, bool | np.bool):
            raise ArgumentError(
                f"SchedulerConfig: got enable_mixed_mode={self.enable_mixed_mode!r}, expected True "
                "or False"
            )
        if self.reverse_mode_threshold >= self.forward_mode_threshold:
            raise ArgumentError(
                f"SchedulerConfig: got reverse_mode_threshold={self.reverse_mode_threshold} and "
                f"forward_mode_threshold={self.forward_mode_threshold}, expected the first to be "
                "smaller, or neither mode would be left"
            )
        if self.strategy is SchedulingStrategy.Mixed and not self.enable_mixed_mode:
            raise ArgumentError(
                "SchedulerConfig: got strategy Mixed with enable_mixed_mode=False; leave one out"
            )


def scheduler_config(
    mode: str | SchedulingStrategy | SchedulerConfig, what: str
) -> SchedulerConfig:
    """The configuration that an option `mode=` stands for.

    Raises:
        ArgumentError: There is no such mode.
    """
    if isinstance(mode, SchedulerConfig):
        return mode
    if isinstance(mode, SchedulingStrategy):
        return SchedulerConfig(strategy=mode)
    names = [strategy.value for strategy in SchedulingStrategy]
    if mode not in names:
        got = repr(mode) if isinstance(mode, str) else a_type(mode)
        raise ArgumentError(
            f"{what}: got mode={got}, expected {', '.join(map(repr, names))}, a "
            "gt.SchedulingStrategy or a gt.SchedulerConfig"
        )
    return SchedulerConfig(strategy=SchedulingStrategy(mode))
