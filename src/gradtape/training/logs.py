"""Logs of a run, a row for each epoch: as CSV, as lines of JSON, for TensorBoard.

A run that is continued goes back to its last checkpoint. So a log is written anew at the start,
from the history that the run has, and grows from there.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradtape.errors import ArgumentError, UnsupportedError
from gradtape.io.atomic import Path, replacing
from gradtape.locks import load as load_module
from gradtape.training.callbacks import Callback
from gradtape.training.checkpoints import saving

if TYPE_CHECKING:
    from gradtape.training.run import Run

Row = dict[str, Any]


class _FileLog(Callback):
    """Base class of logs in a file."""

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(path)
        self._written: set[str] = set()

    def on_start(self, run: Run) -> None:
        """Write the epochs that there are."""
        self._written = set(run.history)
        self.rewrite(run.rows())

    def on_epoch_end(self, run: Run) -> None:
        """Add the epoch."""
        rows = run.rows()
        if self._written == set(run.history) or len(rows) == 1:
            self.write(rows[-1])
        else:  # there is a new metric
            self.rewrite(rows)
        self._written = set(run.history)

    def rewrite(self, rows: Sequence[Row]) -> None:
        """Replace the file by one with these rows.

        Args:
            rows: Values by name, for each row.
        """
        with saving(self.path), replacing(self.path):
            pass
        for row in rows:
            self.write(row)

    def write(self, row: Row) -> None:
        """Add a row at the end.

        Args:
            row: Values by name.
        """
        raise NotImplementedError


class JSONLog(_FileLog):
    r"""A log with an object of JSON on each line.

    Args:
        path: The file.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = gt.training.JSONLog(f"{folder}/log.jsonl")
    ...     log.write({"epoch": 0, "loss": 0.5})
    ...     pathlib.Path(log.path).read_text()
    '{"epoch": 0, "loss": 0.5}\n'
    """

    def write(self, row: Row) -> None:
        """Add a row at the end.

        Args:
            row: Values by name.
        """
        with saving(self.path), open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({name: _known(value) for name, value in row.items()}) + "\n")


def _known(value: Any) -> Any:
    """A value for JSON, which has no NaN: null for a metric that an epoch did not have."""
    return value if not isinstance(value, float) or math.isfinite(value) else None


class CSVLog(_FileLog):
    r"""A log with comma-separated values, and their names in the first line.

    Args:
        path: The file.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = gt.training.CSVLog(f"{folder}/log.csv")
    ...     log.write({"epoch": 0, "loss": 0.5})
    ...     pathlib.Path(log.path).read_text()
    'epoch,loss\n0,0.5\n'
    """

    _names: tuple[str, ...] = ()

    def rewrite(self, rows: Sequence[Row]) -> None:
        """Replace the file by one with these rows.

        Args:
            rows: Values by name, for each row.
        """
        self._names = ()
        super().rewrite(rows)

    def write(self, row: Row) -> None:
        """Add a row at the end.

        Args:
            row: Values by name.

        Raises:
            ArgumentError: It has other names than the first one.
        """
        is_new = not (os.path.exists(self.path) and os.path.getsize(self.path))
        if not is_new and not self._names:
            with open(self.path, encoding="utf-8", newline="") as file:
                self._names = tuple(next(csv.reader(file)))
        if not is_new and set(row) != set(self._names):
            raise ArgumentError(
                f"CSVLog: got a row with {sorted(row)}, but {self.path} has {sorted(self._names)}"
            )
        with saving(self.path), open(self.path, "a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if is_new:
                self._names = tuple(row)
                writer.writerow(self._names)
            writer.writerow([row[name] for name in self._names])


class TensorBoardLog(Callback):
    """A log for TensorBoard: event files in a folder; `pip install gradtape[tensorboard]`.

    Args:
        folder: The folder; several runs in folders of one folder are shown together.

    Raises:
        UnsupportedError: The package tensorboardX is not installed.

    >>> gt.training.TensorBoardLog("runs/first").folder
    'runs/first'
    """

    def __init__(self, folder: Path) -> None:
        self.folder = os.fspath(folder)
        self._writer: Any = None

    def on_start(self, run: Run) -> None:
        """Open a file; epochs that come again hide those before."""
        try:
            writer = load_module("tensorboardX").SummaryWriter
        except ImportError:
            raise UnsupportedError(
                "TensorBoardLog: the package tensorboardX is not installed; "
                "pip install gradtape[tensorboard]"
            ) from None
        self._writer = writer(self.folder, purge_step=run.epoch)

    def on_epoch_end(self, run: Run) -> None:
        """Add the epoch."""
        row = run.rows()[-1]
        for name, value in row.items():
            if name != "epoch":
                self._writer.add_scalar(name, value, row["epoch"])

    def on_end(self, run: Run) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
