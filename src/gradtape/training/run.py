"""A run: where a training is, and what it has come to."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gradtape import containers
from gradtape.errors import ArgumentError, FileFormatError, NonFiniteError, SaveError
from gradtape.io.atomic import Path
from gradtape.nn.module import Module
from gradtape.ops.checks import check_count, check_least
from gradtape.training.callbacks import ScheduleRate
from gradtape.training.checkpoints import (
    check_model,
    header_of,
    load_checkpoint,
    save_checkpoint,
)
from gradtape.training.evaluation import items_in, number
from gradtape.training.optimizers import rate_of

CHECKPOINT = "checkpoint.safetensors"
_EVENTS = ("on_start", "on_batch_end", "on_epoch_end", "on_end")


@dataclass(frozen=True)
class SaveEvery:
    """How often `gt.fit` saves a checkpoint; it is saved when any of them says so.

    Args:
        epochs: After so many epochs, and after the last.
        batches: After so many batches of an epoch.
        seconds: When so many seconds have passed since the last one.

    >>> gt.training.SaveEvery(epochs=1, seconds=300)
    SaveEvery(epochs=1, batches=None, seconds=300)
    """

    epochs: int = 1
    batches: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        given = {name: value for name, value in vars(self).items() if value is not None}
        check_least("SaveEvery", 0, **{k: v for k, v in given.items() if k == "seconds"})
        check_count("SaveEvery", 1, **{k: v for k, v in given.items() if k != "seconds"})


class Run:
    """A training in progress or at its end: what `gt.fit` returns, and what callbacks are given.

    Args:
        model: The model.
        state: The state of the optimizer.
        optimizer: The optimizer.
        epochs: How many epochs are wanted.
        folder: The folder of its files, or None.
        callbacks: The callbacks.
        save: How often a checkpoint is saved.
        data: The data of an epoch.

    Attributes:
        model: The model.
        state: The state of the optimizer.
        optimizer: The optimizer.
        callbacks: The callbacks.
        epochs: How many epochs are wanted.
        epoch: The number of the current epoch; at the end, how many there were.
        batch: How many batches of it are done.
        step: How many steps the optimizer has made.
        history: For each metric a list with its value in each epoch: `"loss"`, `"seconds"`,
            `"validation_loss"`, metrics by their names, and the learning rate, `"lr"`, if the
            optimizer has one that is a number.
        stopped: Why it was stopped before its last epoch; None if it was not.
        folder: The folder of its files, or None.
        batches: How many batches an epoch has, or None if that is not known.

    >>> loss = lambda w, batch: gt.mean((w - batch) ** 2)
    >>> run = gt.fit(np.zeros(3), loss, gt.optim.SGD(lr=0.5), [np.ones(3)], epochs=2)
    >>> run
    <Run, 2 of 2 epochs, 2 steps, loss 0.4444, seconds ...>
    >>> run.losses
    [1.0, 0.444...]
    """

    def __init__(
        self,
        model: Any,
        state: Any,
        optimizer: Any,
        epochs: int,
        folder: Path | None,
        callbacks: Sequence[Any],
        save: SaveEvery,
        data: Any,
    ) -> None:
        self.model, self.state, self.epochs = model, state, epochs
        self.folder = None if folder is None else os.fspath(folder)
        self.epoch = self.batch = self.step = 0
        self.history: dict[str, list[float]] = {}
        self.stopped: str | None = None
        self.batches = len(data) if hasattr(data, "__len__") else None
        self.optimizer, self._save, self._data = optimizer, save, data
        self._loss_sum, self._items = 0.0, 0
        self._first_rate = rate_of(optimizer)
        self.callbacks = callbacks
        self._called: dict[str, list[Callable[[Run], Any]]] = {
            event: [found for one in callbacks if (found := _method(one, event))]
            for event in _EVENTS
        }
        self._begun = self._saved = time.monotonic()
        self._saved_at = ""

    # ---- what it has come to ---------------------------------------------------------------

    def __repr__(self) -> str:
        last = "".join(f", {name} {some[-1]:.4g}" for name, some in self.history.items() if some)
        return f"<Run, {self.epoch} of {self.epochs} epochs, {self.step} steps{last}>"

    @property
    def losses(self) -> list[float]:
        """The mean loss of each epoch, earlier ones included."""
        return self.history.get("loss", [])

    @property
    def mean_loss(self) -> float:
        """The mean loss of the current epoch so far."""
        return self._loss_sum / self._items if self._items else math.nan

    def rows(self) -> list[dict[str, Any]]:
        """Return the history as a row for each epoch."""
        count = len(self.losses)
        return [
            {"epoch": n, **{name: values[n] for name, values in self.history.items()}}
            for n in range(count)
        ]

    def stop(self, why: str = "a callback asked for it") -> None:
        """Make the current epoch the last.

        Args:
            why: The reason, for `stopped`.
        """
        self.stopped = why

    # ---- what `fit` does with it -----------------------------------------------------------

    def call(self, event: str) -> None:
        """Call the callbacks."""
        for called in self._called[event]:
            called(self)

    def add(self, losses: Sequence[Any], batches: Sequence[Any]) -> None:
        """Note the losses of a step."""
        for loss, batch in zip(losses, batches, strict=True):
            items = items_in(batch)
            self._loss_sum += items * number(loss)
            self._items += items

    def advance(self, batches: int) -> None:
        """Note that a step is done, and save a checkpoint if it is time."""
        before = self.batch
        self.batch += batches
        self.step += 1
        self.call("on_batch_end")
        every, seconds = self._save.batches, self._save.seconds
        if (every is not None and self.batch // every > before // every) or (
            seconds is not None and time.monotonic() - self._saved >= seconds
        ):
            self.save()

    def end_epoch(self, metrics: dict[str, float]) -> None:
        """Note the end of an epoch, and save a checkpoint if it is time.

        Raises:
            ArgumentError: The epoch had no batch.
            NonFiniteError: A parameter or buffer is NaN or infinite.
        """
        if not self._items:
            raise ArgumentError(f"fit: the data gave no batches in epoch {self.epoch}")
        try:
            check_model(self.model, f"fit: at the end of epoch {self.epoch}")
        except NonFiniteError as error:
            raise NonFiniteError(f"{error}{self._advice()}") from None
        seconds = time.monotonic() - self._begun
        rate = rate_of(self.optimizer)
        held = {} if rate is None else {"lr": rate}
        row = {"loss": self.mean_loss, "seconds": seconds, **held, **metrics}
        for name in dict.fromkeys([*self.history, *row]):
            values = self.history.setdefault(name, [math.nan] * self.epoch)
            values.append(row.get(name, math.nan))
        self.call("on_epoch_end")
        self.epoch, self.batch = self.epoch + 1, 0
        self._loss_sum, self._items, self._begun = 0.0, 0, time.monotonic()
        last = self.epoch >= self.epochs or self.stopped is not None
        if last or self.epoch % self._save.epochs == 0:
            self.save()

    def failed(self, error: NonFiniteError) -> NonFiniteError:
        """An error of a step, with the place where it was raised."""
        place = f"epoch {self.epoch}, batch {self.batch + getattr(error, 'place', 0)}"
        return NonFiniteError(f"fit: at {place}: {error}{self._advice()}")

    def _reached(self) -> str:
        if self.batch or not self.epoch:
            return f"epoch {self.epoch} up to batch {self.batch}"
        return f"the end of epoch {self.epoch - 1}"

    def _advice(self) -> str:
        return f". {self.folder} holds the state of {self._saved_at}" if self._saved_at else ""

    # ---- checkpoints -----------------------------------------------------------------------

    def save(self) -> None:
        """Save a checkpoint, if there is a folder."""
        if self.folder is None:
            return
        numbers: dict[str, dict[str, Any]] = {}
        arrays: dict[str, Any] = {}
        for key, state, _ in self._states():
            held = {name: value for name, value in state.items() if hasattr(value, "shape")}
            numbers[key] = {name: value for name, value in state.items() if name not in held}
            arrays |= {f"{key}.{name}": value for name, value in held.items()}
        progress = {
            "epoch": self.epoch,
            "batch": self.batch,
            "step": self.step,
            "loss_sum": self._loss_sum,
            "items": self._items,
            "seconds": time.monotonic() - self._begun,
            "history": self.history,
            "stopped": self.stopped,
            "callbacks": numbers,
            "order": self._order(self.epoch, self.batch),
            "lr": self._first_rate,
        }
        path = os.path.join(self.folder, CHECKPOINT)
        try:
            save_checkpoint(
                path, self.model, self.optimizer, self.state, progress=progress, arrays=arrays
            )
        except NonFiniteError as error:
            raise NonFiniteError(f"fit: at {self._reached()}: {error}{self._advice()}") from None
        self._saved, self._saved_at = time.monotonic(), self._reached()

    def resume(self) -> None:
        """Go on from what the folder holds, if it holds a checkpoint.

        Raises:
            ArgumentError: Model or optimizer differ, or the data of an epoch that was begun.
            SaveError: The folder cannot be made or read.
        """
        if self.folder is None:
            return
        try:
            os.makedirs(self.folder, exist_ok=True)
            _remove_leftovers(self.folder)
        except OSError as error:
            raise SaveError(
                f"fit: got folder={self.folder!r}, expected one to write to: {error}"
            ) from error
        path = os.path.join(self.folder, CHECKPOINT)
        if not os.path.exists(path):
            return
        known = header_of(path)["progress"]
        if "history" not in known:
            raise FileFormatError(
                f"fit: got {path}, which a loop by hand saved, expected a run of fit; use another "
                "folder"
            )
        _check_progress(path, known)
        self._check_fits(known)
        found = load_checkpoint(path, self.model, self.optimizer, self.state)
        self.model, self.state = found.model, found.state
        self.epoch, self.batch, self.step = known["epoch"], known["batch"], known["step"]
        self._loss_sum, self._items = known["loss_sum"], known["items"]
        self.history, self.stopped = known["history"], known["stopped"]
        self._first_rate = known["lr"]
        self._begun = time.monotonic() - known["seconds"]
        self._saved_at = self._reached()
        for key, _, callback in self._states():
            if key in known["callbacks"]:
                start = f"{key}."
                held = {
                    n.removeprefix(start): x for n, x in found.arrays.items() if n.startswith(start)
                }
                callback.load_state_dict(known["callbacks"][key] | held)

    def _check_fits(self, known: dict[str, Any]) -> None:
        """Raise an ArgumentError if this is not the run that the folder holds."""
        epoch, batch = known["epoch"], known["batch"]
        if epoch + (batch > 0) > self.epochs:
            raise ArgumentError(
                f"fit: got epochs={self.epochs}, but {self.folder} holds a run of {epoch} epochs; "
                "ask for more, or use another folder"
            )
        scheduled = any(isinstance(one, ScheduleRate) for one in self.callbacks)
        if known["lr"] != self._first_rate and not scheduled:
            raise ArgumentError(
                f"fit: the optimizer differs: {self.folder} holds a run with lr={known['lr']}, got "
                f"lr={self._first_rate}; use the same, or another folder"
            )
        if known["order"] != self._order(epoch, batch):
            raise ArgumentError(
                f"fit: {self.folder} holds epoch {epoch} up to batch {batch}, whose batches were "
                "others; data set, batch size, seed and sampler have to be the same"
            )

    def _order(self, epoch: int, batch: int) -> int | None:
        """What tells the batches of an epoch that has begun from others."""
        checksum = getattr(self._data, "order_checksum", None)
        return checksum(epoch) if batch and checksum is not None else None

    def _states(self) -> list[tuple[str, dict[str, Any], Any]]:
        """Callbacks that have a state: a key, the state, the callback."""
        found, seen = [], dict[str, int]()
        for one in self.callbacks:
            if callable(getattr(one, "state_dict", None)):
                name = type(one).__qualname__
                seen[name] = seen.get(name, 0) + 1
                found.append((f"{name} {seen[name]}", one.state_dict(), one))
        return found


def copy_into(model: Any, trained: Any) -> Any:
    """The trained model; a module that was given gets its values, and is returned."""
    if trained is model or not isinstance(model, Module):
        return trained
    own, _ = containers.flatten(model, view=containers.ALL_ARRAYS)
    new, _ = containers.flatten(trained, view=containers.ALL_ARRAYS)
    for leaf, value in zip(own, new, strict=True):
        leaf.value = value.value
    return model


def is_callback(value: Any) -> bool:
    """Whether something is an object with a method for an event, or a function."""
    if isinstance(value, type):
        return False
    return callable(value) or any(callable(getattr(value, name, None)) for name in _EVENTS)


def _method(callback: Any, event: str) -> Callable[[Run], Any] | None:
    """What to call at an event; a function is called at the end of epochs."""
    found = getattr(callback, event, None)
    plain = callable(callback) and not any(hasattr(callback, name) for name in _EVENTS)
    return callback if plain and event == "on_epoch_end" else found


def _check_progress(path: str, known: dict[str, Any]) -> None:
    """Raise a FileFormatError if what a checkpoint says of the progress cannot be."""
    counts = [known.get(name) for name in ("epoch", "batch", "step", "items")]
    numbers = [known.get(name) for name in ("loss_sum", "seconds")]
    history, callbacks = known["history"], known.get("callbacks")
    if not (
        all(type(count) is int and count >= 0 for count in counts)
        and all(type(number) in (int, float) for number in numbers)
        and isinstance(known.get("stopped"), str | None)
        and {"lr", "order"} <= known.keys()
        and isinstance(callbacks, dict)
        and all(isinstance(state, dict) for state in callbacks.values())
        and isinstance(history, dict)
        and ("loss" in history or not counts[0])
        and all(_are_numbers(values, known["epoch"]) for values in history.values())
    ):
        raise FileFormatError(f"fit: got {path}, whose record of the progress is damaged")


def _are_numbers(values: Any, count: int) -> bool:
    is_list = isinstance(values, list) and len(values) == count
    return is_list and all(type(value) in (int, float) for value in values)


def _remove_leftovers(folder: str) -> None:
    """Remove what a process that was killed while it saved has left."""
    for name in os.listdir(folder):
        if name.startswith(".gradtape-") and name.endswith(".tmp"):
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))
