"""The health of gradients, layer by layer: figures, limits, and the verdicts that follow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError
from gradtape.locks import load
from gradtape.tools.text_table import aligned

# Figures of a layer that may be missing; in arrays, NaN stands for that.
FIGURES = ("weight_norm", "gradient_norm", "update", "zeros", "dead", "saturated")
_COLUMNS = (
    "layer", "kind", "weights", "gradient", "ratio", "update", "zeros", "dead", "saturated",
    "verdict",
)  # fmt: skip


@dataclass(frozen=True)
class HealthLimits:
    """From where on gradients are called unhealthy.

    Args:
        vanishing: A layer's gradient vanishes if the root of its mean square is less than this
            part of the largest among the layers: it learns that much more slowly.
        exploding: It explodes if its norm is more than this times the norm of the weights.
        dead: A layer is dead if this part of its units has been dead in all of the last
            observations.
        saturated: An activation is saturated if this part of its outputs is at an end.
        end: How near an end of its range that is, relative to the length of the range.

    Raises:
        ArgumentError: A number is negative, or a part larger than 1.

    >>> gt.HealthLimits(dead=0.5).dead
    0.5
    """

    vanishing: float = 1e-4
    exploding: float = 1e3
    dead: float = 0.25
    saturated: float = 0.5
    end: float = 0.01

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            most = math.inf if field.name == "exploding" else 1.0
            # Written so that NaN fails.
            if not 0.0 <= value <= most:
                wanted = "0 or more" if most == math.inf else "a part from 0 to 1"
                raise ArgumentError(f"HealthLimits: got {field.name}={value}, expected {wanted}")


@dataclass(frozen=True)
class LayerHealth:
    """How one layer, or one activation, is doing.

    Attributes:
        name: The name of the module, or that of the module and an activation in its `forward`:
            `encoder:tanh`.
        kind: The class of the module, or the name of the activation.
        parameters: How many numbers it has as parameters of its own, not those of modules in it.
        trained: How many of them are not frozen.
        weight_norm: The norm of its parameters; None if it has none.
        gradient_norm: The norm of their gradients; None if there are none.
        update: How far the step moved them, relative to their norm; None if there was no step.
        zeros: The part of their gradients that is zero.
        dead: The part of its units that is dead: what the unit gives has a gradient of zero, or is
            zero after a ReLU, for all items. A unit is a feature, or a channel of a convolution.
        saturated: The part of outputs that is at an end of the range of the activation.
        nonfinite: How many elements of parameters, gradients and outputs are NaN or infinite.
        verdicts: What is wrong: "non-finite", "no gradient", "exploding", "vanishing", "dead",
            "saturated".

    >>> layer = gt.LayerHealth("0", "Linear", 8, 8, weight_norm=2.0, gradient_norm=0.5)
    >>> layer.ratio
    0.25
    """

    name: str
    kind: str
    parameters: int = 0
    trained: int = 0
    weight_norm: float | None = None
    gradient_norm: float | None = None
    update: float | None = None
    zeros: float | None = None
    dead: float | None = None
    saturated: float | None = None
    nonfinite: int = 0
    verdicts: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """The norm of the gradient divided by that of the weights, which is taken for 1 if it is 0.

        None if there is no gradient.
        """
        if self.gradient_norm is None or self.weight_norm is None:
            return None
        return self.gradient_norm / (self.weight_norm or 1.0)

    @property
    def scale(self) -> float:
        """The root of the mean square of the gradient; 0 without one."""
        return (self.gradient_norm or 0.0) / math.sqrt(max(1, self.trained))

    def judged(self, limits: HealthLimits, largest: float) -> LayerHealth:
        """The same with verdicts.

        Args:
            limits: The limits.
            largest: The largest `scale` of the layers.
        """
        ratio = self.ratio or 0.0
        found = {
            "non-finite": self.nonfinite > 0,
            "no gradient": self.trained > 0 and not self.gradient_norm,
            "exploding": ratio > limits.exploding,
            "vanishing": 0.0 < self.scale < limits.vanishing * largest,
            "dead": self.dead is not None and self.dead >= max(limits.dead, 1e-12),
            "saturated": self.saturated is not None and self.saturated >= limits.saturated,
        }
        return replace(self, verdicts=tuple([name for name, is_so in found.items() if is_so]))

    def sentences(self) -> list[str]:
        """What is wrong, in words."""
        texts = {
            "non-finite": f"{self.nonfinite} elements are NaN or infinite",
            "no gradient": "the gradient is zero, or there is none",
            "exploding": f"exploding: the gradient is {_short(self.ratio)} times the weights",
            "vanishing": (
                f"vanishing: the gradient, of norm {_short(self.gradient_norm)}, is far below "
                "those of other layers"
            ),
            "dead": f"dead: {_percent(self.dead)} of the units do not react",
            "saturated": f"saturated: {_percent(self.saturated)} of the outputs are at an end",
        }
        return [f"{self.name}: {texts[verdict]}" for verdict in self.verdicts]

    def cells(self) -> tuple[str, ...]:
        """The columns of a table."""
        norms = (self.weight_norm, self.gradient_norm, self.ratio, self.update)
        parts = (self.zeros, self.dead, self.saturated)
        verdict = ", ".join(self.verdicts) or "healthy"
        return (self.name, self.kind, *map(_short, norms), *map(_percent, parts), verdict)


@dataclass(frozen=True)
class HealthReport:
    """The health of all layers at one step; `print` shows a table.

    Attributes:
        layers: The layers and activations, in the order in which they ran.
        step: The number of the step.

    >>> gt.HealthReport((gt.LayerHealth("0", "Tanh", saturated=0.1),)).is_healthy
    True
    """

    layers: tuple[LayerHealth, ...]
    step: int = 0

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong with any layer."""
        return not any(layer.verdicts for layer in self.layers)

    @property
    def problems(self) -> list[str]:
        """What is wrong, a sentence for each: `0: dead: 40% of the units do not react`."""
        return [text for layer in self.layers for text in layer.sentences()]

    def __getitem__(self, name: str) -> LayerHealth:
        for layer in self.layers:
            if layer.name == name:
                return layer
        names = ", ".join(repr(layer.name) for layer in self.layers)
        raise ArgumentError(f"HealthReport: got the layer {name!r}, expected one of {names}")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dicts, lists and numbers, for a log."""
        return {
            "step": self.step,
            "layers": [asdict(layer) for layer in self.layers],
            "problems": self.problems,
        }

    def table(self) -> Any:
        """Return a table of the package rich, problems in red: `rich.print(report.table())`."""
        table = load("rich.table").Table(*_COLUMNS)
        as_it_is = load("rich.text").Text  # a name like a[b] is no markup
        for layer in self.layers:
            style = "red" if layer.verdicts else None
            table.add_row(*map(as_it_is, layer.cells()), style=style)
        return table

    def __str__(self) -> str:
        return aligned([_COLUMNS, *[layer.cells() for layer in self.layers]], left=2)


def judged(layers: Sequence[LayerHealth], limits: HealthLimits, step: int = 0) -> HealthReport:
    """A report of layers, with verdicts."""
    scales = [layer.scale for layer in layers]
    largest = max([scale for scale in scales if math.isfinite(scale)], default=0.0)
    return HealthReport(tuple([layer.judged(limits, largest) for layer in layers]), step)


# ---- many reports, as arrays --------------------------------------------------------------------


def packed(reports: Sequence[HealthReport]) -> dict[str, Any]:
    """Reports as arrays of figures, which are short also for many of them.

    Returns:
        The layers, as lists of name, kind and counts of parameters; the steps; the figures by
        report, layer and name, with NaN for those that are missing; the counts of elements that are
        not finite, with -1 for a layer that a report does not have.
    """
    known: dict[str, LayerHealth] = {}
    for report in reports:
        for layer in report.layers:
            known.setdefault(layer.name, layer)
    rows = {name: row for row, name in enumerate(known)}
    figures = np.full((len(reports), len(rows), len(FIGURES)), np.nan)
    nonfinite = np.full((len(reports), len(rows)), -1, np.int64)
    for number, report in enumerate(reports):
        for layer in report.layers:
            values = [getattr(layer, name) for name in FIGURES]
            row = rows[layer.name]
            figures[number, row] = [np.nan if value is None else value for value in values]
            nonfinite[number, row] = layer.nonfinite
    layers = [[one.name, one.kind, one.parameters, one.trained] for one in known.values()]
    steps = [report.step for report in reports]
    return {"layers": layers, "steps": steps, "figures": figures, "nonfinite": nonfinite}


def unpacked(held: Mapping[str, Any], limits: HealthLimits) -> list[HealthReport]:
    """The reports that `packed` was given, judged by these limits."""
    reports = []
    for number, step in enumerate(held["steps"]):
        layers = []
        for row, (name, kind, parameters, trained) in enumerate(held["layers"]):
            count = int(held["nonfinite"][number][row])
            if count < 0:
                continue
            given = dict(zip(FIGURES, map(float, held["figures"][number][row]), strict=True))
            # A norm may be NaN itself, if elements are.
            values: dict[str, Any] = {
                key: None if math.isnan(value) and not (count and "norm" in key) else value
                for key, value in given.items()
            }
            layers.append(LayerHealth(name, kind, parameters, trained, **values, nonfinite=count))
        reports.append(judged(layers, limits, int(step)))
    return reports


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"
