"""Callbacks: what happens beside a training, at the end of batches and epochs."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gradtape.errors import ArgumentError, a_type
from gradtape.io.tensor_files import save
from gradtape.nn.module import Module
from gradtape.ops.checks import check_choice, check_count, check_least
from gradtape.training.checkpoints import saving
from gradtape.training.optimizers import optimizers_in

if TYPE_CHECKING:
    from gradtape.training.run import Run

_MODES = {"min": 1.0, "max": -1.0}
# What is better when it is lower, without saying so; None is one of them.
_LOSSES = (None, "loss", "validation_loss")
BEST = "best.safetensors"


class Callback:
    """Base class of callbacks for `gt.fit`; all methods do nothing.

    Objects of other classes will do that have some of the methods, and functions, which are called
    with the run at the end of each epoch.

    >>> class Print(gt.training.Callback):
    ...     def on_epoch_end(self, run):
    ...         print(run.epoch, run.history["loss"][-1])
    """

    def on_start(self, run: Run) -> None:
        """Before the first batch; the run may have been continued."""

    def on_batch_end(self, run: Run) -> None:
        """After each step of the optimizer."""

    def on_epoch_end(self, run: Run) -> None:
        """After each epoch, before its checkpoint is saved; `run.stop(why)` makes it the last."""

    def on_end(self, run: Run) -> None:
        """At the end, also if it comes by an error."""

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint has to keep: a dict of arrays, and of what `json` can write."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned."""


class _Watching(Callback):
    """Base class of callbacks that look for the best value of a metric."""

    def __init__(self, monitor: str | None, mode: str | None, min_delta: float = 0.0) -> None:
        name = type(self).__name__
        if mode is None and monitor not in _LOSSES:
            # A wrong guess would keep the worst model, and nothing would say so.
            raise ArgumentError(
                f"{name}: got monitor={monitor!r} and no mode; say what is better: mode='max', as "
                "of an accuracy, or mode='min', as of an error"
            )
        mode = mode or "min"
        check_choice(name, _MODES, mode=mode)
        check_least(name, 0, min_delta=min_delta)
        self.monitor, self._sign, self._min_delta = monitor, _MODES[mode], min_delta
        self.reset()

    def reset(self) -> None:
        """Forget all values."""
        self.best, self.best_epoch = math.inf * self._sign, -1

    def on_start(self, run: Run) -> None:
        """Forget the values of another run, unless this one is continued."""
        if run.step == 0:
            self.reset()

    def is_better(self, value: float, epoch: int) -> bool:
        """Whether a value is the best so far, which is noted."""
        if not self._sign * value < self._sign * self.best - self._min_delta:
            return False
        self.best, self.best_epoch = value, epoch
        return True

    def value_in(self, run: Run) -> float:
        """The last value of the metric."""
        default = "validation_loss" if "validation_loss" in run.history else "loss"
        return _last(run, type(self).__name__, self.monitor or default)

    def state_dict(self) -> dict[str, Any]:
        """Return the best value and its epoch."""
        return {"best": self.best, "best_epoch": self.best_epoch}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.best, self.best_epoch = float(state["best"]), int(state["best_epoch"])


class EarlyStopping(_Watching):
    """Ends a training when a metric has not become better for some epochs.

    Args:
        monitor: The metric; the loss on validation data if None, or that in training if there are
            none.
        patience: How many epochs without a better value it takes.
        min_delta: By how much a value has to be better to count.
        mode: `"min"` or `"max"`: what is better; None for `"min"`, if it is a loss.

    Attributes:
        best: The best value.
        best_epoch: Its epoch.
        waited: How many epochs came after it.

    Raises:
        ArgumentError: A number is negative, or the mode is unknown, or missing for a metric.

    >>> stopping = gt.training.EarlyStopping(patience=2)
    >>> [stopping.update(value) for value in (3.0, 2.0, 2.5, 2.0)]
    [False, False, False, True]
    """

    def __init__(
        self,
        monitor: str | None = None,
        *,
        patience: int = 5,
        min_delta: float = 0.0,
        mode: str | None = None,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        check_count("EarlyStopping", 1, patience=patience)
        self.patience = patience

    def reset(self) -> None:
        """Forget all values."""
        super().reset()
        self.waited, self._epoch = 0, -1

    def update(self, value: float) -> bool:
        """Note the value of one more epoch; returns whether to stop.

        Args:
            value: The metric.
        """
        self._epoch += 1
        self.waited = 0 if self.is_better(value, self._epoch) else self.waited + 1
        return self.waited >= self.patience

    def on_epoch_end(self, run: Run) -> None:
        """Stop the run if it is time."""
        if self.update(self.value_in(run)):
            run.stop(f"no better {self.monitor or 'loss'} for {self.waited} epochs")

    def state_dict(self) -> dict[str, Any]:
        """Return the best value, its epoch, and how long ago it was."""
        return super().state_dict() | {"waited": self.waited, "epoch": self._epoch}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        super().load_state_dict(state)
        self.waited, self._epoch = int(state["waited"]), int(state["epoch"])


class KeepBest(_Watching):
    """Saves the model to `best.safetensors` in the folder of the run when a metric is the best.

    `net.load_state_dict(gt.load(folder / "best.safetensors"))` loads it.

    Args:
        monitor: The metric; the loss on validation data if None, or that in training if there are
            none.
        mode: `"min"` or `"max"`: what is better; None for `"min"`, if it is a loss.

    Attributes:
        best: The best value.
        best_epoch: Its epoch.

    Raises:
        ArgumentError: The mode is unknown, or missing for a metric.

    >>> gt.training.KeepBest("accuracy", mode="max").best_epoch
    -1
    """

    def __init__(self, monitor: str | None = None, *, mode: str | None = None) -> None:
        super().__init__(monitor, mode)

    def on_start(self, run: Run) -> None:
        """Check that there is a folder; forget another run, unless this one is continued."""
        if run.folder is None:
            raise ArgumentError("KeepBest: expected a folder to save to; use fit(..., folder=...)")
        super().on_start(run)

    def on_epoch_end(self, run: Run) -> None:
        """Save the model if it is the best so far."""
        value = self.value_in(run)
        if self.is_better(value, run.epoch):
            assert run.folder is not None  # looked at in the beginning
            arrays = run.model.state_dict() if isinstance(run.model, Module) else run.model
            note = {"epoch": str(run.epoch), "value": repr(value)}
            path = os.path.join(run.folder, BEST)
            with saving(path):
                save(path, arrays, metadata=note)


class ScheduleRate(Callback):
    """Calls `step` of a scheduler of `gt.optim`, whose state is saved with the run.

    Args:
        scheduler: The scheduler, made with the optimizer that is given to `fit`.
        every: `"epoch"` or `"step"`: after what it is called.
        monitor: The metric that it is called with, for `gt.optim.ReduceLROnPlateau`.

    Raises:
        ArgumentError: It is no scheduler.

    >>> optimizer = gt.optim.SGD(lr=0.5)
    >>> halve = gt.training.ScheduleRate(gt.optim.StepLR(optimizer, 2, gamma=0.5))
    >>> loss = lambda w, batch: gt.mean((w - batch) ** 2)
    >>> run = gt.fit(np.zeros(3), loss, optimizer, [np.ones(3)], epochs=5, callbacks=[halve])
    >>> optimizer.lr
    0.125
    """

    def __init__(self, scheduler: Any, *, every: str = "epoch", monitor: str | None = None) -> None:
        check_choice("ScheduleRate", ("epoch", "step"), every=every)
        for method in ("step", "state_dict", "load_state_dict"):
            if not callable(getattr(scheduler, method, None)):
                raise ArgumentError(
                    f"ScheduleRate: got {a_type(scheduler)}, which has no {method}; expected a "
                    "scheduler such as gt.optim.StepLR(optimizer, 10)"
                )
        self.scheduler, self._every, self._monitor = scheduler, every, monitor

    def on_start(self, run: Run) -> None:
        """Check that it is a scheduler of the run's optimizer, or of one inside."""
        own = getattr(self.scheduler, "optimizer", None)
        if own is not None and not any(own is one for one in optimizers_in(run.optimizer)):
            raise ArgumentError(
                f"ScheduleRate: got a {type(self.scheduler).__name__} of another optimizer than "
                "that of fit, whose learning rate would stay as it is"
            )

    def on_batch_end(self, run: Run) -> None:
        """Call the scheduler, if it is one of steps."""
        if self._every == "step":
            self.scheduler.step()

    def on_epoch_end(self, run: Run) -> None:
        """Call the scheduler, if it is one of epochs."""
        if self._every == "epoch":
            watched = [] if self._monitor is None else [_last(run, "ScheduleRate", self._monitor)]
            self.scheduler.step(*watched)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the scheduler."""
        return dict(self.scheduler.state_dict())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.scheduler.load_state_dict(state)


def _last(run: Run, callback: str, name: str) -> float:
    """The last value of a metric."""
    if name not in run.history:
        validated = "validation_loss" in run.history
        raise ArgumentError(
            f"{callback}: got monitor={name!r}, expected one of "
            f"{', '.join(map(repr, run.history))}"
            + ("" if validated else "; further ones need validation= of fit")
        )
    return run.history[name][-1]
