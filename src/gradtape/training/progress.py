"""Progress of a run in the terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from gradtape.locks import load as load_module
from gradtape.tools.peak_memory import resident_and_peak
from gradtape.training.callbacks import Callback

if TYPE_CHECKING:
    from gradtape.training.run import Run

# Seconds between updates.
_PAUSE = 0.1
# Columns of a terminal that has room for the loss on validation data, too.
_WIDE = 110


class Progress(Callback):
    """Shows epoch, loss, rate, the time that is left, and memory, if the output is a terminal.

    Args:
        console: A `rich.console.Console` to show it in; that of standard error if None.

    >>> import io, rich.console
    >>> console = rich.console.Console(file=io.StringIO(), force_terminal=True)
    >>> data = [np.ones(3)]
    >>> loss = lambda w, batch: gt.mean((w - batch) ** 2)
    >>> progress = gt.training.Progress(console)
    >>> _ = gt.fit(np.zeros(3), loss, gt.optim.SGD(lr=0.1), data, epochs=2, callbacks=[progress])
    >>> "epoch 2/2" in console.file.getvalue()
    True
    """

    def __init__(self, console: Any = None) -> None:
        self._console, self._next = console, 0.0
        self._shown: Any = None
        self._task: Any = None
        self._begun, self._first = 0.0, 0

    def on_start(self, run: Run) -> None:
        """Begin to show it."""
        console = self._console or load_module("rich.console").Console(stderr=True)
        if not console.is_terminal or run.epoch >= run.epochs:
            return
        rich = load_module("rich.progress")
        self._shown = rich.Progress(
            rich.TextColumn("{task.description}"),
            rich.BarColumn(bar_width=None),  # the rest of the line
            rich.TextColumn("{task.fields[text]}"),
            rich.TimeElapsedColumn(table_column=rich.Column(no_wrap=True)),
            rich.TextColumn("left"),
            rich.TimeRemainingColumn(table_column=rich.Column(no_wrap=True)),
            console=console,
            expand=True,
        )
        total = None if run.batches is None else run.epochs * run.batches
        done = run.batch + run.epoch * (run.batches or 0)
        title = _title(run, run.epoch)
        self._task = self._shown.add_task(title, total=total, completed=done, text="")
        self._begun, self._first = time.monotonic(), run.step
        self._shown.start()

    def on_batch_end(self, run: Run) -> None:
        """Show the step, a few times a second."""
        if self._shown is not None and time.monotonic() >= self._next:
            self._show(run, run.epoch, run.batch)
            self._next = time.monotonic() + _PAUSE

    def on_epoch_end(self, run: Run) -> None:
        """Show the epoch."""
        if self._shown is not None:
            self._show(run, run.epoch, run.batch)

    def on_end(self, run: Run) -> None:
        """Leave what was shown last."""
        if self._shown is not None:
            self._shown.stop()
            self._shown = None

    def _show(self, run: Run, epoch: int, batch: int) -> None:
        seconds = max(time.monotonic() - self._begun, 1e-9)
        text = [f"loss {run.mean_loss:.4g}", f"{(run.step - self._first) / seconds:.4g} steps/s"]
        validation = run.history.get("validation_loss")
        if validation and self._shown.console.width >= _WIDE:
            text.insert(1, f"validation {validation[-1]:.4g}")
        memory = resident_and_peak()
        if memory is not None:
            text.append(f"{memory[0] / 1e6:.0f} MB")
        done = batch + epoch * (run.batches or 0)
        self._shown.update(
            self._task, completed=done, description=_title(run, epoch), text=", ".join(text)
        )


def _title(run: Run, epoch: int) -> str:
    return f"epoch {min(epoch + 1, run.epochs)}/{run.epochs}"
