"""The report of a training: a page of HTML that needs nothing else."""

from __future__ import annotations

import html
import json
import math
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradtape.compiler.cpu.runtime.pool import get_num_threads
from gradtape.errors import ArgumentError, a_type
from gradtape.io.atomic import Path as PathLike, replacing
from gradtape.io.leaf_names import named_leaves
from gradtape.io.tensor_files import load
from gradtape.nn.module import Module
from gradtape.ops.generator import default_generator
from gradtape.tools.confusion import ConfusionMatrix
from gradtape.tools.gradient_health import GradientHealth
from gradtape.tools.layer_health import HealthLimits, HealthReport, packed, unpacked
from gradtape.tools.memory import GradientMemoryProfiler
from gradtape.training.checkpoints import header_of
from gradtape.training.optimizers import described_optimizer
from gradtape.training.run import CHECKPOINT, Run
from gradtape.training.watching import WatchGradients, WatchMemory

if TYPE_CHECKING:
    from _typeshed import ConvertibleToFloat

_TEMPLATE = Path(__file__).with_name("training_report.html")
# Points of a curve: of more, only the lowest and the highest of neighbours are shown.
_MOST_POINTS = 1000
_X_NAMES = ("epoch", "step")
_RATES = ("lr", "learning_rate")
_STARTS = ("train_", "training_", "validation_", "valid_", "val_", "test_")

History = Run | Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]


class TrainingReport:
    """A report of a training as one page of HTML: curves, classes, gradients, memory, the model.

    The page needs no network and no other files, and is light or dark as the browser is. All of it
    is optional: what is not given is left out.

    Args:
        history: The values of metrics: a dict of lists, a list of dicts with the same keys (rows of
            a log), or the run that `gt.fit` returned. `"epoch"` or `"step"` is the horizontal axis
            if it is there.
        title: The title of the page.
        confusion: A `gt.ConfusionMatrix`, or a pair of labels and predictions that makes one.
        classes: The names of classes for a pair.
        health: A `gt.GradientHealth`, a `gt.training.WatchGradients`, or reports of
            `gt.gradient_health`.
        memory: A `gt.training.WatchMemory`, a `gt.GradientMemoryProfiler`, or pairs of a step and
            bytes.
        model: A module, nested containers of arrays, or a text.
        settings: Names and values to be listed, such as the seed.

    Raises:
        ArgumentError: Something is given in another form, or lists have different lengths.

    >>> history = {"loss": [0.9, 0.4, 0.2], "accuracy": [0.5, 0.8, 0.9]}
    >>> report = gt.TrainingReport(history, confusion=([0, 1, 1], [0, 1, 0]), settings={"seed": 0})
    >>> page = report.html()
    >>> page.startswith("<!DOCTYPE html>"), "accuracy" in page
    (True, True)
    """

    def __init__(
        self,
        history: History | None = None,
        *,
        title: str = "Training",
        confusion: ConfusionMatrix | tuple[Any, Any] | None = None,
        classes: Sequence[Any] | None = None,
        health: Any = None,
        memory: Any = None,
        model: Any = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._settings = dict(settings or {})
        if isinstance(history, Run):
            model = history.model if model is None else model
            health = health or _found(history.callbacks, WatchGradients)
            memory = memory or _found(history.callbacks, WatchMemory)
            self._settings = _settings_of(history) | self._settings
            history = history.history
        self.title, self._columns = str(title), _columns(history)
        self._confusion = _as_confusion(confusion, classes)
        self._health = _reports(health)
        self._memory = _samples(memory)
        self._model, self._parameters = _described(model)

    @classmethod
    def from_folder(cls, folder: PathLike, **more: Any) -> TrainingReport:
        """Make the report of a training from the folder of `gt.fit`.

        Args:
            folder: The folder, with a checkpoint.
            more: Arguments of `TrainingReport` that the folder has no values for.

        Raises:
            FileFormatError: The checkpoint is damaged.
            OSError: There is none.

        >>> import tempfile
        >>> loss = lambda w, batch: gt.mean((w - batch) ** 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     options = {"epochs": 2, "folder": folder}
        ...     _ = gt.fit(np.zeros(3), loss, gt.optim.SGD(lr=0.1), [np.ones(3)], **options)
        ...     report = gt.TrainingReport.from_folder(folder, title="A training")
        >>> "A training" in report.html()
        True
        """
        path = os.path.join(os.fspath(folder), CHECKPOINT)
        known, arrays = header_of(path), load(path)
        progress = known["progress"]

        def state(name: str) -> dict[str, Any] | None:
            key = f"{name} 1"
            start = f"arrays.{key}."
            held = {n.removeprefix(start): x for n, x in arrays.items() if n.startswith(start)}
            found = progress["callbacks"].get(key)
            return None if found is None else found | held

        given: dict[str, Any] = {"model": "\n".join(known["model"])}
        given["settings"] = {
            "optimizer": ", ".join(known["optimizer"]),
            "epochs": progress["epoch"],
            "steps": progress["step"],
        }
        if progress["stopped"]:
            given["settings"]["stopped"] = progress["stopped"]
        if (watched := state(WatchGradients.__qualname__)) is not None:
            given["health"] = unpacked(watched, HealthLimits(**watched["limits"]))
        if (samples := state(WatchMemory.__qualname__)) is not None:
            given["memory"] = samples["samples"]
        given["settings"] |= more.pop("settings", None) or {}
        return cls(**{"history": progress["history"], **given, **more})

    def save(self, path: PathLike) -> None:
        """Write the page to a file, which is replaced as a whole.

        Args:
            path: The file.

        Raises:
            OSError: The file cannot be written.
        """
        page = self.html()
        with replacing(path) as temporary:
            Path(temporary).write_bytes(page.encode("utf-8", "replace"))

    def html(self) -> str:
        """Return the page."""
        data = {
            "title": self.title,
            "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "totals": self._totals(),
            "panels": _panels(self._columns),
            "confusion": _confusion_data(self._confusion),
            "health": _health_data(self._health),
            "memory": _memory_data(self._memory),
            "model": self._model,
            "parameters": self._parameters,
            "settings": [[str(name), str(value)] for name, value in self._settings.items()],
            "environment": [list(pair) for pair in _environment().items()],
        }
        # Inside of a script, only these could end it or begin a comment.
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
        for character in "<>&":
            text = text.replace(character, f"\\u{ord(character):04x}")
        before, after = _TEMPLATE.read_text(encoding="utf-8").split("{{data}}")
        return before.replace("{{title}}", html.escape(self.title)) + text + after

    def _totals(self) -> list[list[str]]:
        """The figures at the top of the page."""
        found = []
        axis, x, columns = self._columns
        if x:
            found.append([f"{axis}s", f"{len(x):,}"])
        for name, values in columns.items():
            if name == "loss" or name in ("validation_loss", "val_loss"):
                found.append([name.replace("_", " "), _short(values[-1]) if values else ""])
        if self._confusion is not None:
            found.append(["accuracy", f"{self._confusion.accuracy:.2%}"])
        count = sum(row[2] for row in self._parameters)
        if count:
            found.append(["parameters", f"{count:,}"])
        if self._health:
            ill = sum(bool(layer.verdicts) for layer in self._health[-1].layers)
            found.append(["unhealthy layers", str(ill)])
        if self._memory:
            most = max(size for _, size in self._memory)
            found.append(["peak memory", f"{most / 1e6:,.0f} MB"])
        return found


# ---- what was given -----------------------------------------------------------------------------


class _Columns(NamedTuple):
    """A history: the name and the values of the horizontal axis, and metrics by name."""

    axis: str
    x: list[float]
    values: dict[str, list[float]]


def _columns(history: Any) -> _Columns:
    if history is None:
        return _Columns("epoch", [], {})
    if isinstance(history, Mapping):
        given = {str(name): list(values) for name, values in history.items()}
    elif isinstance(history, Sequence) and all(isinstance(row, Mapping) for row in history):
        names = dict.fromkeys(str(name) for row in history for name in row)
        given = {name: [row.get(name) for row in history] for name in names}
    else:
        raise ArgumentError(
            f"TrainingReport: got {a_type(history)} as history, expected a dict of lists, a list "
            "of dicts, or the run that gt.fit returned"
        )
    sizes = {name: len(values) for name, values in given.items()}
    if len(set(sizes.values())) > 1:
        raise ArgumentError(
            f"TrainingReport: got lists of different lengths in history, {sizes}; use NaN or None "
            "where a metric has no value"
        )
    columns = {name: [_number(name, value) for value in values] for name, values in given.items()}
    count = max(sizes.values(), default=0)
    for name in _X_NAMES:
        if name in columns and all(map(math.isfinite, columns[name])):
            return _Columns(name, columns.pop(name), columns)
    return _Columns("epoch", [float(n) for n in range(count)], columns)


def _number(name: str, value: ConvertibleToFloat | None) -> float:
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"TrainingReport: got {a_type(value)} in {name!r} of history, expected numbers"
        ) from None


def _as_confusion(given: Any, classes: Sequence[Any] | None) -> ConfusionMatrix | None:
    if given is None or isinstance(given, ConfusionMatrix):
        return given
    if isinstance(given, tuple | list) and len(given) == 2:
        return ConfusionMatrix(*given, classes=classes)
    raise ArgumentError(
        f"TrainingReport: got {a_type(given)} as confusion, expected a gt.ConfusionMatrix, or "
        "labels and predictions"
    )


def _reports(given: Any) -> list[HealthReport]:
    if given is None:
        return []
    if isinstance(given, HealthReport):
        return [given]
    if isinstance(given, GradientHealth | WatchGradients):
        return list(given.reports)
    if isinstance(given, Sequence) and all(isinstance(one, HealthReport) for one in given):
        return list(given)
    raise ArgumentError(
        f"TrainingReport: got {a_type(given)} as health, expected a gt.GradientHealth, a "
        "gt.training.WatchGradients, or reports of gt.gradient_health"
    )


def _samples(given: Any) -> list[tuple[float, int]]:
    if given is None:
        return []
    if isinstance(given, WatchMemory):
        return [(float(step), size) for step, size in given.samples]
    if isinstance(given, GradientMemoryProfiler):
        return [(sample.time, sample.bytes) for sample in given.timeline()]
    array = np.asarray(given, float)
    if array.size and (array.ndim != 2 or array.shape[1] != 2 or not np.isfinite(array).all()):
        raise ArgumentError(
            f"TrainingReport: got memory of shape {array.shape}, expected pairs of a step and bytes"
        )
    return [(float(x), int(size)) for x, size in array.reshape(-1, 2)]


def _described(model: Any) -> tuple[str, list[list[Any]]]:
    """A model as text; and names, shapes and sizes of its parameters."""
    if model is None or isinstance(model, str):
        return model or "", []
    if isinstance(model, Module):
        named = dict(model.named_parameters())
        text = repr(model)
    else:
        named, _ = named_leaves(model, "TrainingReport")
        text = ""
    rows = [[name, str(list(np.shape(x))), math.prod(np.shape(x))] for name, x in named.items()]
    return text, rows


def _found(callbacks: Sequence[Any], kind: type) -> Any:
    return next((one for one in callbacks if isinstance(one, kind)), None)


def _settings_of(run: Run) -> dict[str, Any]:
    found = {
        "optimizer": ", ".join(described_optimizer(run.optimizer)),
        "epochs": run.epoch,
        "steps": run.step,
    }
    return found | ({"stopped": run.stopped} if run.stopped else {})


def _environment() -> dict[str, str]:
    try:
        version = metadata.version("gradtape")
    except metadata.PackageNotFoundError:  # a source tree that is not installed
        version = "not installed"
    return {
        "gradtape": version,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "system": f"{sys.platform}, {platform.machine()}",
        "threads": str(get_num_threads()),
        "random numbers": "seeded" if default_generator().seeded else "without a seed",
    }


# ---- what the page gets: numbers that are not finite are null ------------------------------------


def _panels(columns: _Columns) -> list[dict[str, Any]]:
    """The plots of curves: losses together, learning rates, and metrics by their names."""
    axis, x, values = columns
    panels: dict[str, list[str]] = {}
    for name in values:
        panels.setdefault(_panel_of(name), []).append(name)
    return [
        {
            "title": title,
            "axis": axis,
            "log": title in ("loss", "learning rate"),
            "series": [
                {"name": name.replace("_", " "), "points": _curve(x, values[name])}
                for name in names
            ],
            "odd": sum(_odd(values[name]) for name in names),
        }
        for title, names in panels.items()
    ]


def _odd(values: Sequence[float]) -> int:
    """How many values are not finite, after the first that is; all, if none is."""
    known = [math.isfinite(value) for value in values]
    return known[known.index(True) :].count(False) if any(known) else len(known)


def _panel_of(name: str) -> str:
    if name in _RATES:
        return "learning rate"
    if "loss" in name:
        return "loss"
    if name == "seconds":
        return "seconds for an epoch"
    for start in _STARTS:
        name = name.removeprefix(start)
    return name.replace("_", " ")


def _curve(x: Sequence[float], values: Sequence[float]) -> list[list[float | None]]:
    """Points of a curve, not too many; null where it is not finite."""
    points: list[list[float | None]] = [
        [at, value if math.isfinite(value) else None] for at, value in zip(x, values, strict=True)
    ]
    together = -(-2 * len(points) // _MOST_POINTS)
    if together <= 2:
        return points
    kept = []
    for start in range(0, len(points), together):
        group = points[start : start + together]
        known = [point for point in group if point[1] is not None]
        ends = [min(known, key=_height), max(known, key=_height)] if known else group[:1]
        kept += sorted(ends if ends[0] is not ends[-1] else ends[:1], key=_place)
    return kept


def _place(point: Sequence[Any]) -> Any:
    return point[0]


def _height(point: Sequence[Any]) -> Any:
    return point[1]


def _confusion_data(matrix: ConfusionMatrix | None) -> dict[str, Any] | None:
    if matrix is None:
        return None
    rows, columns = np.nonzero(matrix.counts)
    return {
        "classes": list(matrix.classes),
        "cells": np.stack([rows, columns, matrix.counts[rows, columns]], 1).tolist(),
        "recall": _known(matrix.recall),
        "precision": _known(matrix.precision),
        "totals": matrix.counts.sum(1).tolist(),
        "accuracy": matrix.accuracy,
        "confused": matrix.most_confused(),
    }


def _health_data(reports: Sequence[HealthReport]) -> dict[str, Any] | None:
    if not reports:
        return None
    held = packed(reports)
    figures, nonfinite = held["figures"], held["nonfinite"]
    weight, gradient, update, _, dead, saturated = np.moveaxis(figures, 2, 0)
    trained = np.array([max(1, layer[3]) for layer in held["layers"]])
    scale = gradient / np.sqrt(trained)
    with np.errstate(all="ignore"):
        largest = np.nanmax(np.where(np.isfinite(scale), scale, 0.0), 1, keepdims=True)
        shown = {
            "gradient / weights": gradient / np.where(weight == 0, 1, weight),
            "gradient / largest": scale / np.where(largest == 0, 1, largest),
            "update / weights": update,
            "dead units": dead,
            "saturated": saturated,
        }
    last = reports[-1]
    return {
        "steps": held["steps"],
        "layers": [layer[:2] for layer in held["layers"]],
        # -1 for what is not finite.
        "maps": {
            name: [
                [-1 if bad > 0 else value for bad, value in zip(counts, _known(row), strict=True)]
                for counts, row in zip(nonfinite.T, values.T, strict=True)
            ]
            for name, values in shown.items()
        },
        "verdicts": _verdicts(reports),
        "last": [list(layer.cells()) for layer in last.layers],
        "problems": last.problems,
    }


def _verdicts(reports: Sequence[HealthReport]) -> list[list[Any]]:
    """For each layer and verdict: in how many reports, the first and the last step."""
    found: dict[tuple[str, str], list[int]] = {}
    for report in reports:
        for layer in report.layers:
            for verdict in layer.verdicts:
                found.setdefault((layer.name, verdict), []).append(report.step)
    return [[*key, len(steps), steps[0], steps[-1]] for key, steps in found.items()]


def _memory_data(samples: Sequence[tuple[float, int]]) -> dict[str, Any] | None:
    if not samples:
        return None
    points = _curve([x for x, _ in samples], [float(size) for _, size in samples])
    whole = all(x == int(x) for x, _ in samples)
    return {"points": points, "axis": "step" if whole else "seconds"}


def _known(values: Any) -> list[float | None]:
    return [float(f"{x:.4g}") if math.isfinite(x) else None for x in np.asarray(values).tolist()]


def _short(value: float) -> str:
    return f"{value:.4g}"
