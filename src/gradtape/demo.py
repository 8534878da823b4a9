"""The main job: train a small classifier of handwritten digits on a tape, and check its gradients.

The loop is the one of the guide: losses are recorded by the default context, gradients are added
to the parameters, and the optimizer's `zero_grad(params)` clears the tape.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from gradtape.autodiff.context import compute_gradients
from gradtape.core.tensor import Tensor
from gradtape.data import Digits, load_digits
from gradtape.ops.activation import relu
from gradtape.ops.generator import Generator
from gradtape.ops.random import randn
from gradtape.ops.random_discrete import permutation
from gradtape.ops.reduce import mean
from gradtape.ops.softmax import logsumexp
from gradtape.optim import Adam
from gradtape.tools.check import GradientReport, NumericalChecker

LAYERS = (64, 64, 10)
BATCH = 32
RATE = 3e-3
NEEDED_ACCURACY = 0.95
# The check takes so many images, and their hidden units keep so far away from the corner of relu:
# differences across it are not derivatives.
CHECKED_IMAGES = 8
CORNER = 1e-4


class Result(NamedTuple):
    """What a run of the demo found.

    Attributes:
        losses: The mean loss of each epoch.
        accuracy: The fraction of test images that were classified rightly.
        report: The comparison of the gradient with differences, in float64.
        seconds_per_step: How long a step of training took on average.
    """

    losses: list[float]
    accuracy: float
    report: GradientReport
    seconds_per_step: float

    @property
    def passed(self) -> bool:
        """Whether the classifier is good enough and its gradients are right."""
        return self.accuracy >= NEEDED_ACCURACY and self.report.is_valid


class Console(Protocol):
    """Where the demo writes while it runs."""

    def line(self, text: str) -> None:
        """Write a line."""

    def advance(self) -> None:
        """Note that a step was made."""


def run(*, epochs: int = 20, seed: int = 0, progress: bool = True) -> Result:
    """Train, test and check the classifier, writing what happens to the terminal.

    Args:
        epochs: How often every training image is shown.
        seed: Chooses the initial weights and the order of the images.
        progress: Whether to show a progress bar.

    >>> from gradtape import demo
    >>> demo.run(epochs=1, progress=False).report.is_valid
    training a 64-64-10 perceptron on 1438 digits: float32, Adam, batches of 32
    epoch   1   loss ...
    True
    """
    digits = load_digits()
    generator = Generator(seed)
    params = initial_params(generator)
    steps = epochs * -(-len(digits.train_labels) // BATCH)
    with console(steps, progress=progress) as out:
        out.line(
            f"training a {'-'.join(map(str, LAYERS))} perceptron on {len(digits.train_labels)} "
            f"digits: float32, Adam, batches of {BATCH}"
        )
        losses, seconds = train(params, digits, epochs, generator, out)
        result = Result(losses, accuracy_of(params, digits), check(params, digits), seconds / steps)
        out.line(f"test accuracy    {result.accuracy:.1%} (needed: {NEEDED_ACCURACY:.0%})")
        out.line(f"gradient check   {_summary(result.report)}")
        out.line(f"time per step    {result.seconds_per_step * 1e6:.0f} µs")
    return result


def _summary(report: GradientReport) -> str:
    if not report.is_valid:
        return str(report)
    count = report.analytic.size
    return (
        f"valid: max error {report.max_error:.1e} against central differences, all {count} "
        "parameters in float64"
    )


# ---- the classifier -----------------------------------------------------------------------------


def initial_params(generator: Generator) -> list[Tensor]:
    """Weights and biases of every layer: normal with He's variance, and zeros."""
    params = []
    for fan_in, fan_out in pairwise(LAYERS):
        weight = randn(fan_in, fan_out, dtype=np.float32, generator=generator)
        params += [weight * (2 / fan_in) ** 0.5, Tensor(np.zeros(fan_out, np.float32))]
    return [param.set_requires_grad(True) for param in params]


def logits_of(params: Sequence[Any], images: Any) -> Any:
    """The network: one hidden layer."""
    w1, b1, w2, b2 = params
    return relu(images @ w1 + b1) @ w2 + b2


def loss_of(params: Sequence[Any], images: Any, labels: Any) -> Any:
    """Cross entropy: the mean of −log p of the right digit."""
    logits = logits_of(params, images)
    return mean(logsumexp(logits, axis=1) - logits[np.arange(len(labels)), labels])


def train(
    params: list[Tensor], digits: Digits, epochs: int, generator: Generator, out: Console
) -> tuple[list[float], float]:
    """Run the training loop; returns the mean loss of each epoch, and the seconds it took."""
    optimizer = Adam(lr=RATE)
    count = len(digits.train_labels)
    losses, seconds = [], 0.0
    for epoch in range(1, epochs + 1):
        order = permutation(count, generator=generator).numpy()
        total = 0.0
        for start in range(0, count, BATCH):
            before = time.perf_counter()
            chosen = order[start : start + BATCH]
            loss = loss_of(params, digits.train_images[chosen], digits.train_labels[chosen])
            compute_gradients(loss)
            optimizer.step(params)
            optimizer.zero_grad(params)
            total += loss.item() * len(chosen)
            seconds += time.perf_counter() - before
            out.advance()
        losses.append(total / count)
        out.line(f"epoch {epoch:3d}   loss {losses[-1]:.4f}")
    return losses, seconds


def accuracy_of(params: Sequence[Tensor], digits: Digits) -> float:
    """The fraction of test images that are classified rightly."""
    logits = logits_of([param.detach() for param in params], digits.test_images)
    return float(np.mean(np.argmax(logits.numpy(), axis=1) == digits.test_labels))


def check(params: Sequence[Tensor], digits: Digits) -> GradientReport:
    """Compare the gradient of the loss with central differences, for every parameter."""
    arrays = [param.detach().numpy().astype(np.float64) for param in params]
    hidden = digits.train_images @ arrays[0] + arrays[1]
    smooth = np.flatnonzero(np.abs(hidden).min(axis=1) > CORNER)[:CHECKED_IMAGES]
    images, labels = digits.train_images[smooth].astype(np.float64), digits.train_labels[smooth]
    return NumericalChecker().check_gradient_central(
        lambda params: loss_of(params, images, labels), arrays
    )


# ---- the terminal -------------------------------------------------------------------------------


class _Plain:
    def line(self, text: str) -> None:
        print(text)

    def advance(self) -> None:
        """Nothing to show."""


class _Bar:
    def __init__(self, progress: Any, steps: int) -> None:
        self._progress = progress
        self._task = progress.add_task("training", total=steps)

    def line(self, text: str) -> None:
        self._progress.console.print(text, highlight=False, markup=False)

    def advance(self) -> None:
        self._progress.advance(self._task)


@contextlib.contextmanager
def console(steps: int, *, progress: bool) -> Iterator[Console]:
    """Where to write: below the lines a progress bar for so many steps, if wanted."""
    if not progress:
        yield _Plain()
        return
    from rich.progress import Progress

    with Progress() as bar:
        yield _Bar(bar, steps)
