"""Gradient health of a model: at a batch, or over the steps of a training."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.reverse import value_and_grad
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import ArgumentError, NonFiniteError, a_type
from gradtape.io.leaf_names import named_leaves
from gradtape.nn.module import Module
from gradtape.ops.checks import check_least
from gradtape.tools.layer_health import HealthLimits, HealthReport, judged, packed, unpacked
from gradtape.tools.layer_watch import Layer, LayerWatch, Probe, Seen, layers_of, measured

MOST_REPORTS = 256
"""How many reports are kept: when there are more, every second is dropped."""


def gradient_health(
    model: Any, loss: Callable[[Any, Any], Any], batch: Any, *, limits: HealthLimits | None = None
) -> HealthReport:
    """Look at the gradients of a model for a batch, layer by layer, and at its activations.

    Nothing is changed: parameters, buffers and random generators are as before.

    Args:
        model: A module, in the mode it is to be looked at in, or nested containers of arrays.
        loss: `loss(model, batch)`, a number. It is not compiled; layers in compiled functions that
            it calls are judged by the gradients of their parameters alone.
        batch: The batch.
        limits: From where on something is wrong.

    Returns:
        The report: `.layers`, `.problems`; `print` shows a table.

    Raises:
        ArgumentError: There is no parameter.

    >>> gt.manual_seed(0)
    >>> layers = [gt.nn.Linear(8, 8), gt.nn.Sigmoid()] * 1
    >>> for _ in range(9):
    ...     layers += [gt.nn.Linear(8, 8), gt.nn.Sigmoid()]
    >>> net = gt.nn.Sequential(*layers, gt.nn.Linear(8, 1))
    >>> loss = lambda net, batch: gt.mean(net(batch) ** 2)
    >>> report = gt.gradient_health(net, loss, np.ones((4, 8), np.float32))
    >>> report["0"].verdicts, report["20"].verdicts
    (('vanishing',), ())
    """
    chosen = limits or HealthLimits()
    return judged(measured(*probed(model, loss, batch, chosen)), chosen)


def probed(
    model: Any, loss: Callable[[Any, Any], Any], batch: Any, limits: HealthLimits
) -> tuple[dict[str, Layer], dict[str, Any], dict[str, Seen]]:
    """The layers of a model, their gradients for a batch, and what was seen on the way."""
    layers = layers_of(model, "gradient_health")
    if not layers:
        raise ArgumentError(f"gradient_health: got {a_type(model)} without parameters")
    copy = _copied(model)
    with Probe(copy, limits.end) as watch, np.errstate(all="ignore"):
        _, grads = value_and_grad(loss)(copy, batch)
    return layers, _by_name(grads), watch.seen


class GradientHealth:
    """Watches the layers of a model in a loop by hand: a block around each step.

    Every so many steps, hooks on the modules look at outputs and at gradients that come back; other
    steps cost nothing. What the block computes is not changed. A step that an optimizer refuses,
    since a gradient is not finite, has a report, too. `gt.training.WatchGradients` watches
    `gt.fit`.

    Args:
        model: The module that is trained, or nested containers of arrays.
        every: Of how many steps one is looked at, the first included. When there are more than 256
            reports, every second is dropped, and this is doubled.
        limits: From where on something is wrong.
        window: A unit is dead if it was so at each of the last `window` looks.

    Attributes:
        step: How many steps there were.

    Raises:
        ArgumentError: A number is smaller than 1.

    >>> net = gt.nn.Sequential(gt.nn.Linear(2, 8), gt.nn.Tanh(), gt.nn.Linear(8, 1))
    >>> optimizer = gt.optim.Adam(net.parameters(), lr=0.01)
    >>> health = gt.GradientHealth(net, every=10)
    >>> x = np.random.default_rng(0).normal(size=(32, 2)).astype(np.float32)
    >>> for _ in range(30):
    ...     with health:
    ...         optimizer.zero_grad()
    ...         gt.mean((net(x) - x[:, :1]) ** 2).backward()
    ...         optimizer.step()
    >>> [report.step for report in health.reports], health.report.is_healthy
    ([1, 11, 21], True)
    """

    def __init__(
        self, model: Any, *, every: int = 20, limits: HealthLimits | None = None, window: int = 3
    ) -> None:
        self._model = model
        self._watch: LayerWatch | None = None
        self._before: dict[str, Layer] = {}
        self._grads: Mapping[str, Any] | None = None
        self._kept = Kept("GradientHealth", every, limits, window)
        self.step = 0

    @property
    def reports(self) -> list[HealthReport]:
        """The reports, in order."""
        return self._kept.reports

    @property
    def report(self) -> HealthReport:
        """The last report.

        Raises:
            ArgumentError: There is none yet.
        """
        return self._kept.last("use it around a step")

    def gradients(self, grads: Any) -> None:
        """Give the gradients of the step, where they are not in `.grad` of the parameters.

        Args:
            grads: Gradients in the containers of the model, as `gt.grad` returns them.

        >>> net = gt.nn.Linear(2, 1)
        >>> health = gt.GradientHealth(net)
        >>> with health:
        ...     loss = lambda net: gt.mean(net(np.ones((4, 2), np.float32)))
        ...     health.gradients(gt.grad(loss)(net))
        >>> health.report.layers[0].gradient_norm
        1.732...
        """
        if self._watch is not None:
            self._grads = _by_name(grads)

    def __enter__(self) -> GradientHealth:
        if self._kept.is_due(self.step):
            self._grads, self._before = None, layers_of(self._model, "GradientHealth")
            self._watch = LayerWatch(self._model, self._kept.limits.end)
            self._watch.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.__exit__(*error)
        raised = error[0] if error else None
        before, self._before = self._before, {}
        if raised is None:
            self.step += 1
        # What was NaN in a step that was refused is what one wants to see.
        if watch is not None and (raised is None or issubclass(raised, NonFiniteError)):
            layers = layers_of(self._model, "GradientHealth")
            found = self._found()
            if found is not None:
                step = self.step + (raised is not None)
                self._kept.add(step, layers, found, watch.seen, before)
            elif raised is None:
                raise ArgumentError(
                    "GradientHealth: the block has left no gradients in .grad of the parameters; "
                    "call backward() inside, or give the gradients with health.gradients(grads). "
                    "Compiled steps are looked at with gt.gradient_health(model, loss, batch)"
                )

    def _found(self) -> Mapping[str, Any] | None:
        """The gradients of the step, by the names of parameters; None if there are none."""
        found, self._grads = self._grads, None
        if found is None and isinstance(self._model, Module):
            found = {name: value.grad for name, value in self._model.named_parameters()}
        if found is None or all(value is None for value in found.values()):
            return None
        return found


class Kept:
    """Reports over the steps of a training, a bounded number of them.

    Args:
        name: Whose options they are, for errors.
        every: Of how many steps one is looked at.
        limits: From where on something is wrong.
        window: Over how many looks a unit has to be dead.
    """

    def __init__(self, name: str, every: int, limits: HealthLimits | None, window: int) -> None:
        check_least(name, 1, every=every, window=window)
        self._name = name
        self.every, self.limits, self._window = every, limits or HealthLimits(), window
        self.reports: list[HealthReport] = []
        # Which units reacted at the last looks.
        self._active: dict[str, deque[Any]] = {}

    def last(self, remedy: str) -> HealthReport:
        """The last report; if there is none yet, an error says what makes one."""
        if not self.reports:
            raise ArgumentError(f"{self._name}: there is no report yet; {remedy}")
        return self.reports[-1]

    def is_due(self, step: int) -> bool:
        """Whether to look at the step after so many."""
        return step % self.every == 0

    def add(
        self,
        step: int,
        layers: Mapping[str, Layer],
        grads: Mapping[str, Any],
        seen: Mapping[str, Seen],
        before: Mapping[str, Layer],
    ) -> None:
        """Add a report."""
        for name, one in seen.items():
            if one.active is not None:
                last = self._active.setdefault(name, deque(maxlen=self._window))
                last.append(one.active)
                for other in last:
                    if other.shape == one.active.shape:
                        one.active = one.active | other
        found = measured(layers, grads, seen, before if _differ(before, layers) else None)
        self.reports.append(judged(found, self.limits, step))
        if len(self.reports) > MOST_REPORTS:
            del self.reports[1::2]
            self.every *= 2

    def state_dict(self) -> dict[str, Any]:
        """All of it, as arrays and what `json` can write."""
        active = {f"active.{name}": np.array(list(last)) for name, last in self._active.items()}
        limits = dataclasses.asdict(self.limits)
        return {**packed(self.reports), "every": self.every, "limits": limits, **active}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        self.reports, self.every = unpacked(state, self.limits), int(state["every"])
        self._active = {
            key.removeprefix("active."): deque(map(np.asarray, masks), maxlen=self._window)
            for key, masks in state.items()
            if key.startswith("active.")
        }


def _differ(before: Mapping[str, Layer], after: Mapping[str, Layer]) -> bool:
    """Whether any parameter has moved: otherwise there was no step."""
    return any(
        not np.array_equal(value, after[name].values[key], equal_nan=value.dtype.kind in "fc")
        for name, layer in before.items()
        if name in after
        for key, value in layer.values.items()
    )


def _by_name(grads: Any) -> dict[str, Any]:
    return named_leaves(grads, "gradient_health", view=containers.NAMESPACE)[0]


def _copied(model: Any) -> Any:
    """A model with arrays of its own, so that what is written to buffers stays in it."""
    if not isinstance(model, Module):
        return model
    leaves, structure = containers.flatten(model, view=containers.ALL_ARRAYS)
    return containers.unflatten(structure, [Tensor(np.array(_raw(leaf))) for leaf in leaves])


def _raw(leaf: Any) -> Any:
    return innermost(leaf, show=True) if isinstance(leaf, Tensor) else leaf
