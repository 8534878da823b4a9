"""The main job: train a small classifier of handwritten digits twice, on a tape and compiled.

Both runs start from the same parameters and see the same batches, and must find the same losses.
`EagerTrainer` is the loop of the guide: losses are recorded by the default context, gradients are
added to the parameters, and the optimizer's `zero_grad(params)` clears the tape. `CompiledTrainer`
has the whole step (loss, gradient and the rule of that optimizer) as one function of arrays, which
`jit` makes native code of.
"""

from __future__ import annotations

import contextlib
import functools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gradtape.autodiff.context import compute_gradients
from gradtape.autodiff.reverse import value_and_grad
from gradtape.compiler.jit import jit
from gradtape.core.tensor import Tensor
from gradtape.data import Digits, load_digits
from gradtape.ops.activation import relu
from gradtape.ops.generator import Generator
from gradtape.ops.random import randn
from gradtape.ops.random_discrete import permutation
from gradtape.ops.reduce import mean
from gradtape.ops.softmax import logsumexp
from gradtape.optim import Adam, AdamRule
from gradtape.tools.check import GradientReport, NumericalChecker

LAYERS = (64, 64, 10)
BATCH = 32
RATE = 3e-3
RULE = AdamRule(lr=RATE)
NEEDED_ACCURACY = 0.95
# How far apart the mean losses of both runs may be, relative to them: in the first epoch, and in
# later ones. Each rounds in its own way, to 7 digits, and training amplifies the difference:
# with 12 seeds at most 4e-8 was seen in the first epoch, and 2e-3 in the first 20.
FIRST_DIFFERENCE, LATER_DIFFERENCE = 1e-5, 1e-2
# Losses below this fraction of the first one are all rounding.
TINY = 1e-2
# The check takes this many images, and their hidden units stay this far from the kink of relu:
# differences across it are not derivatives.
CHECKED_IMAGES = 8
CORNER = 1e-4

Batch = tuple[Any, Any]  # images and labels


class Run(NamedTuple):
    """The outcome of one of the two runs.

    Attributes:
        losses: The mean loss of each epoch.
        accuracy: The fraction of test images that were classified correctly.
        report: The comparison of the gradient with differences, in float64.
        seconds: How long each epoch took.
    """

    losses: list[float]
    accuracy: float
    report: GradientReport
    seconds: list[float]


class Result(NamedTuple):
    """The outcome of the demo.

    Attributes:
        eager: The run on a tape.
        compiled: The run of the compiled step.
        compile_seconds: How long the compiler took.
    """

    eager: Run
    compiled: Run
    compile_seconds: float

    @property
    def differences(self) -> list[float]:
        """By how much the losses of each epoch differ, relative to the eager ones."""
        pairs = zip(self.eager.losses, self.compiled.losses, strict=True)
        least = TINY * self.eager.losses[0]
        return [abs(a - b) / max(a, least) for a, b in pairs]

    @property
    def failures(self) -> list[str]:
        """Everything that went wrong; times are not judged."""
        found = []
        for name, run in (("eager", self.eager), ("compiled", self.compiled)):
            # Written so that NaN fails.
            if not run.accuracy >= NEEDED_ACCURACY:
                found.append(f"the accuracy of the {name} run is too low")
            if not run.report.is_valid:
                found.append(f"the {name} gradients are wrong")
        first, *later = self.differences
        if not (first <= FIRST_DIFFERENCE and all(d <= LATER_DIFFERENCE for d in later)):
            found.append("the losses of both runs differ")
        return found

    @property
    def passed(self) -> bool:
        """Whether both classifiers are good enough, agree, and have correct gradients."""
        return not self.failures


def run(*, epochs: int = 20, seed: int = 0, progress: bool = True) -> Result:
    """Train, test and check the classifier both ways, and report on the terminal.

    Args:
        epochs: How often every training image is shown.
        seed: Chooses the initial weights and the order of the images.
        progress: Whether to show a progress bar.

    Returns:
        The outcome of both runs.

    >>> from gradtape import demo
    >>> result = demo.run(epochs=1, progress=False)
    training a 64-64-10 perceptron on 1438 digits: float32, Adam, batches of 32
    ...
    >>> result.compiled.report.is_valid
    True
    """
    digits = load_digits()
    generator = Generator(seed)
    params = initial_params(generator)
    eager, compiled = EagerTrainer(params), CompiledTrainer(params)
    count = len(digits.train_labels)
    batches = batches_of(digits, np.arange(count))
    with console(2 * epochs * len(batches), progress=progress) as (write, advance):
        write(
            f"training a {'-'.join(map(str, LAYERS))} perceptron on {count} digits: "
            f"float32, Adam, batches of {BATCH}"
        )
        seconds = compiled.prepare(batches)
        for epoch in range(1, epochs + 1):
            batches = batches_of(digits, permutation(count, generator=generator).numpy())
            for trainer in (eager, compiled):
                trainer.epoch(batches)
                advance(len(batches))
            losses = f"{eager.losses[-1]:.4f} eager, {compiled.losses[-1]:.4f} compiled"
            write(f"epoch {epoch:3d}   loss {losses}")
        result = Result(outcome(eager, digits), outcome(compiled, digits), seconds)
        for line in summary(result, len(batches)):
            write(line)
    return result


def outcome(trainer: Trainer, digits: Digits) -> Run:
    """Evaluate the parameters of a trainer."""
    accuracy, report = accuracy_of(trainer.arrays, digits), check(trainer, digits)
    return Run(trainer.losses, accuracy, report, trainer.seconds)


# ---- the classifier -----------------------------------------------------------------------------


def initial_params(generator: Generator) -> list[Any]:
    """Weights and biases of every layer: normal with He's variance, and zeros."""
    params = []
    for fan_in, fan_out in pairwise(LAYERS):
        weight = randn(fan_in, fan_out, dtype=np.float32, generator=generator)
        params += [weight.numpy() * np.float32((2 / fan_in) ** 0.5), np.zeros(fan_out, np.float32)]
    return params


def logits_of(params: Sequence[Any], images: Any) -> Any:
    """The network: one hidden layer."""
    w1, b1, w2, b2 = params
    return relu(images @ w1 + b1) @ w2 + b2


def loss_of(params: Sequence[Any], images: Any, labels: Any) -> Any:
    """Cross entropy: the mean of −log p of the right digit."""
    logits = logits_of(params, images)
    return mean(logsumexp(logits, axis=1) - logits[np.arange(len(labels)), labels])


# ---- a step of training, both ways --------------------------------------------------------------


class Trainer:
    """Parameters in training, and a log of it.

    Attributes:
        losses: The mean loss of each epoch so far.
        seconds: How long each of them took.
    """

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.seconds: list[float] = []

    @property
    def arrays(self) -> Sequence[Any]:
        """The parameters."""
        raise NotImplementedError

    def step(self, images: Any, labels: Any) -> float:
        """Take a step; returns the loss before it."""
        raise NotImplementedError

    def loss(self, images: Any, labels: Any) -> Callable[[Any], Any]:
        """The loss of these images as a function of the parameters, as used in training."""
        return lambda params: loss_of(params, images, labels)

    def epoch(self, batches: Sequence[Batch]) -> None:
        """Take a step for each batch."""
        before = time.perf_counter()
        total = sum(self.step(images, labels) * len(labels) for images, labels in batches)
        self.seconds.append(time.perf_counter() - before)
        self.losses.append(total / sum(len(labels) for _, labels in batches))


class EagerTrainer(Trainer):
    """Training on a tape."""

    def __init__(self, params: Sequence[Any]) -> None:
        super().__init__()
        self._params = [Tensor(param).set_requires_grad(True) for param in params]
        self._optimizer = Adam(lr=RATE)

    @property
    def arrays(self) -> Sequence[Any]:
        return [param.detach().numpy() for param in self._params]

    def step(self, images: Any, labels: Any) -> float:
        loss = loss_of(self._params, images, labels)
        compute_gradients(loss)
        self._optimizer.step(self._params)
        self._optimizer.zero_grad(self._params)
        return float(loss.item())


def training_step(params: list[Any], state: Any, images: Any, labels: Any) -> tuple[Any, ...]:
    """A whole step as a function: the loss, the new parameters, and the new state of Adam."""
    loss, gradients = value_and_grad(loss_of)(params, images, labels)
    return loss, *RULE.apply(params, gradients, state)


class CompiledTrainer(Trainer):
    """Training by a compiled step."""

    def __init__(self, params: Sequence[Any]) -> None:
        super().__init__()
        self._step = jit(training_step)
        self._params = list(params)
        self._state = RULE.init(self._params)

    @property
    def arrays(self) -> Sequence[Any]:
        return self._params

    def loss(self, images: Any, labels: Any) -> Callable[[Any], Any]:
        return jit(super().loss(images, labels))  # type: ignore[no-any-return]

    def prepare(self, batches: Sequence[Batch]) -> float:
        """Compile for every size of a batch; returns the seconds it took."""
        before = time.perf_counter()
        for images, labels in {len(batch[1]): batch for batch in batches}.values():
            # The step is a function: with its results dropped, nothing has happened.
            self._step(self._params, self._state, images, labels)
        return time.perf_counter() - before

    def step(self, images: Any, labels: Any) -> float:
        step = self._step(self._params, self._state, images, labels)
        loss, self._params, self._state = step
        return float(loss)


# ---- data and checks ----------------------------------------------------------------------------


def batches_of(digits: Digits, order: Any) -> list[Batch]:
    """The training images in some order, cut into batches; the last one may be smaller."""
    chosen = (order[start : start + BATCH] for start in range(0, len(order), BATCH))
    return [(digits.train_images[places], digits.train_labels[places]) for places in chosen]


def accuracy_of(params: Sequence[Any], digits: Digits) -> float:
    """The fraction of test images that are classified correctly."""
    logits = logits_of(params, digits.test_images)
    return float(np.mean(np.argmax(logits, axis=1) == digits.test_labels))


def check(trainer: Trainer, digits: Digits) -> GradientReport:
    """Compare the gradient of the loss with central differences, for every parameter."""
    arrays = [param.astype(np.float64) for param in trainer.arrays]
    hidden = digits.train_images @ arrays[0] + arrays[1]
    smooth = np.flatnonzero(np.abs(hidden).min(axis=1) > CORNER)[:CHECKED_IMAGES]
    images, labels = digits.train_images[smooth].astype(np.float64), digits.train_labels[smooth]
    return NumericalChecker().check_gradient_central(trainer.loss(images, labels), arrays)


# ---- the terminal -------------------------------------------------------------------------------


def summary(result: Result, steps: int) -> Iterator[str]:
    """The outcome as lines of a table; `steps` is the number of steps in an epoch."""
    eager, compiled = result.eager, result.compiled
    slow, fast = statistics.median(eager.seconds), statistics.median(compiled.seconds)
    error = max(eager.report.max_error, compiled.report.max_error)
    rows = (
        ("", "eager", "compiled", ""),
        ("test accuracy", f"{eager.accuracy:.1%}", f"{compiled.accuracy:.1%}",
         f"needed: {NEEDED_ACCURACY:.0%}"),
        ("gradient check", _verdict(eager), _verdict(compiled),
         f"max error {error:.1e}, {eager.report.analytic.size} parameters"),
        ("time per step", f"{slow / steps * 1e6:.0f} µs", f"{fast / steps * 1e6:.0f} µs",
         f"{slow / fast:.1f} times as fast, medians"),
        ("time per epoch", f"{slow * 1e3:.1f} ms", f"{fast * 1e3:.1f} ms", f"{steps} steps"),
        ("compile time", "", f"{result.compile_seconds * 1e3:.0f} ms",
         "two sizes of batches; less if cached"),
    )  # fmt: skip
    for label, one, other, remark in rows:
        yield f"{label:15}{one:>9}{other:>11}   {remark}".rstrip()
    yield f"losses         differ by {max(result.differences):.1e} of their size at most"
    yield from (str(run.report) for run in (eager, compiled) if not run.report.is_valid)


def _verdict(run: Run) -> str:
    return "valid" if run.report.is_valid else "WRONG"


@contextlib.contextmanager
def console(
    steps: int, *, progress: bool
) -> Iterator[tuple[Callable[[str], None], Callable[[int], None]]]:
    """Functions that write a line, and note that some of `steps` steps were taken.

    If wanted, a progress bar below the lines shows how many.
    """
    if not progress:
        yield print, lambda _taken: None
        return
    from rich.progress import Progress

    with Progress() as bar:
        task = bar.add_task("training", total=steps)
        write = functools.partial(bar.console.print, highlight=False, markup=False)
        yield write, functools.partial(bar.advance, task)
