"""Learning rates that fall when a loss stops getting better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_integer
from gradtape.optim.numbers import Number, checked, not_negative
from gradtape.optim.pure import State
from gradtape.optim.schedules import where

_NAME = "reduce_on_plateau"
_COUNTS = ("patience", "cooldown")


class Plateau:
    """Reduce a learning rate when a loss has stopped getting better, as a pure rule.

    It needs the loss, so it is no function of the step: `init` makes its state, and `apply` maps a
    learning rate, a loss and the state to the next ones.

    Args:
        factor: What the learning rate is multiplied by, in [0, 1).
        patience: For how many calls the loss may fail to improve.
        mode: `"min"` if smaller is better, `"max"` if larger is.
        threshold: How much better than the best one a loss has to be.
        threshold_mode: `"rel"` if that is a part of the best one, `"abs"` if it is a difference.
        cooldown: After how many calls failures are counted again.
        min_lr: The learning rate that it does not go below.
        eps: The smallest change that is made.

    Raises:
        ArgumentError: A number is out of its range, or a mode is unknown.

    >>> plateau = gt.optim.Plateau(factor=0.5, patience=1)
    >>> lr, state = 0.1, plateau.init()
    >>> for loss in (1.0, 0.8, 0.8, 0.8):
    ...     lr, state = plateau.apply(lr, loss, state)
    >>> lr, state["best"]
    (0.05, 0.8)
    """

    def __init__(
        self,
        *,
        factor: float = 0.1,
        patience: int = 10,
        mode: str = "min",
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Number = 0.0,
        eps: float = 1e-8,
    ) -> None:
        self.factor = checked(factor, _NAME, "factor", "a number in [0, 1)", lambda x: 0 <= x < 1)
        for option, value in zip(_COUNTS, (patience, cooldown), strict=True):
            if as_integer(value, _NAME, option) < 0:
                raise ArgumentError(f"{_NAME}: got {option}={value}, expected an integer >= 0")
        self.patience, self.cooldown = int(patience), int(cooldown)
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ArgumentError(
                f"{_NAME}: got mode={mode!r} and threshold_mode={threshold_mode!r}, expected "
                "'min' or 'max', and 'rel' or 'abs'"
            )
        self.mode, self.threshold_mode = mode, threshold_mode
        # A loss cannot be smaller than the best one by more than the whole of it.
        most = 1.0 if threshold_mode == "rel" else math.inf
        self.threshold = checked(
            threshold, _NAME, "threshold", f"a number in [0, {most})", lambda x: 0 <= x < most
        )
        self.min_lr, self.eps = (
            not_negative(min_lr, _NAME, "min_lr"),
            not_negative(eps, _NAME, "eps"),
        )

    def init(self) -> State:
        """Return the state before the first loss: the best one, and two counts."""
        return {"best": math.inf if self.mode == "min" else -math.inf, "failures": 0, "cooldown": 0}

    def apply(self, lr: Number, loss: Number, state: Mapping[str, Any]) -> tuple[Any, State]:
        """Return the next learning rate and the new state.

        Args:
            lr: The learning rate.
            loss: The loss of an epoch, or any number that is watched. One that is NaN is none that
                is better.
            state: What `init` or the last `apply` returned.
        """
        is_better = self._is_better(loss, state["best"])
        best = where(is_better, loss, state["best"])
        failures = where(is_better, 0, state["failures"] + 1)
        cools = state["cooldown"] > 0
        cooldown = where(cools, state["cooldown"] - 1, 0)
        failures = where(cools, 0, failures)
        is_over = failures > self.patience
        cooldown = where(is_over, self.cooldown, cooldown)
        failures = where(is_over, 0, failures)
        next_lr = where(is_over, self._reduced(lr), lr)
        return next_lr, {"best": best, "failures": failures, "cooldown": cooldown}

    def _is_better(self, loss: Any, best: Any) -> Any:
        sign = 1.0 if self.mode == "min" else -1.0
        if self.threshold_mode == "abs":
            return loss * sign < best * sign - self.threshold
        return loss * sign < best * sign * (1.0 - sign * self.threshold)

    def _reduced(self, lr: Any) -> Any:
        smaller = lr * self.factor
        smaller = where(smaller > self.min_lr, smaller, self.min_lr)
        return where(lr - smaller > self.eps, smaller, lr)
