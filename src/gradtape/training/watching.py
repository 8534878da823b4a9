"""Callbacks that watch a training: the health of gradients, and memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gradtape.ops.checks import check_least
from gradtape.tools.gradient_health import Kept, probed
from gradtape.tools.layer_health import HealthLimits, HealthReport
from gradtape.tools.layer_watch import Layer, layers_of
from gradtape.tools.peak_memory import resident_and_peak
from gradtape.training.callbacks import Callback

if TYPE_CHECKING:
    from gradtape.training.run import Run

_MOST_SAMPLES = 1000


class WatchGradients(Callback):
    """Looks at the gradients of a model every so many steps, layer by layer.

    A look computes the loss for a batch and its gradients once more, as `gt.gradient_health` does:
    eagerly, also if the training is compiled, and in the dtype of the model. It changes nothing, so
    that a training has the same bits with it and without.

    Args:
        loss: `loss(model, batch)`, a number.
        batch: The batch to look at, the same each time.
        every: Of how many steps one is looked at, the first included. When there are more than 256
            reports, every second is dropped, and this is doubled.
        limits: From where on something is wrong.
        window: A unit is dead if it was so at each of the last `window` looks.

    Raises:
        ArgumentError: A number is smaller than 1.

    >>> x = np.random.default_rng(0).normal(size=(32, 2)).astype(np.float32)
    >>> loss = lambda net, batch: gt.mean(net(batch) ** 2)
    >>> watch = gt.training.WatchGradients(loss, x, every=5)
    >>> net = gt.nn.Linear(2, 1)
    >>> _ = gt.fit(net, loss, gt.optim.Adam(lr=0.1), [x] * 10, epochs=1, callbacks=[watch])
    >>> [report.step for report in watch.reports]
    [1, 6]
    """

    def __init__(
        self,
        loss: Callable[[Any, Any], Any],
        batch: Any,
        *,
        every: int = 20,
        limits: HealthLimits | None = None,
        window: int = 3,
    ) -> None:
        self._loss, self._batch = loss, batch
        self._kept = Kept("WatchGradients", every, limits, window)
        self._before: dict[str, Layer] = {}

    @property
    def reports(self) -> list[HealthReport]:
        """The reports, those before a run was continued included."""
        return self._kept.reports

    @property
    def report(self) -> HealthReport:
        """The last report.

        Raises:
            ArgumentError: There is none yet.
        """
        return self._kept.last("it takes a step")

    def on_start(self, run: Run) -> None:
        """Keep the parameters, if the first step is looked at."""
        self._keep_parameters(run)

    def on_batch_end(self, run: Run) -> None:
        """Look, if it is time."""
        if self._kept.is_due(run.step - 1):
            found = probed(run.model, self._loss, self._batch, self._kept.limits)
            self._kept.add(run.step, *found, self._before)
        self._keep_parameters(run)

    def _keep_parameters(self, run: Run) -> None:
        """Keep copies of the parameters if the next step is looked at."""
        due = self._kept.is_due(run.step)
        self._before = layers_of(run.model, "WatchGradients") if due else {}

    def state_dict(self) -> dict[str, Any]:
        """Return the reports as arrays."""
        return self._kept.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._kept.load_state_dict(state)


class WatchMemory(Callback):
    """Notes the resident memory of the process after steps.

    Where the system does not tell, as it does on Linux, nothing is noted.

    Args:
        every: After how many steps. When there are more than 1000 samples, every second is dropped,
            and this is doubled.

    Attributes:
        samples: Pairs of a step and bytes.

    Raises:
        ArgumentError: The number is smaller than 1.

    >>> memory = gt.training.WatchMemory()
    >>> loss = lambda w, batch: gt.mean((w - batch) ** 2)
    >>> _ = gt.fit(
    ...     np.zeros(3), loss, gt.optim.SGD(lr=0.1), [np.ones(3)], epochs=4, callbacks=[memory]
    ... )
    >>> [step for step, size in memory.samples]
    [1, 2, 3, 4]
    """

    def __init__(self, *, every: int = 1) -> None:
        check_least("WatchMemory", 1, every=every)
        self._every = every
        self.samples: list[tuple[int, int]] = []

    def on_batch_end(self, run: Run) -> None:
        """Note the memory, if it is time."""
        if (run.step - 1) % self._every:
            return
        found = resident_and_peak()
        if found is not None:
            self.samples.append((run.step, found[0]))
        if len(self.samples) > _MOST_SAMPLES:
            del self.samples[1::2]
            self._every *= 2

    def state_dict(self) -> dict[str, Any]:
        """Return the samples."""
        return {"every": self._every, "samples": np.array(self.samples, np.int64).reshape(-1, 2)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._every = int(state["every"])
        self.samples = [(int(step), int(size)) for step, size in np.asarray(state["samples"])]
