"""The main job: a convolution net learns handwritten digits, and what it did is checked.

Training is `gt.fit` with a compiled step. Three checks say whether to trust it: how many test
images are recognized; that the first epoch has the same loss when it is not compiled; and that the
gradient of the trained net agrees with differences. The net is smooth, since differences across the
kink of a relu or between the elements of a maximum are not derivatives.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from gradtape import containers, nn, optim, training
from gradtape.compiler.jit import jit
from gradtape.core.state import no_grad
from gradtape.data import DataLoader, Digits, TensorDataset, load_digits
from gradtape.dtypes import float64
from gradtape.io.atomic import Path
from gradtape.ops.generator import manual_seed
from gradtape.ops.reduce import mean
from gradtape.ops.which import argmax
from gradtape.tools.check import GradientReport, NumericalChecker
from gradtape.tools.confusion import ConfusionMatrix
from gradtape.tools.training_report import TrainingReport
from gradtape.training import Run

WIDTH = 16
BATCH = 32
RATE = 4e-3
NEEDED_ACCURACY = 0.98
# How far the loss of the first epoch may be from that without compiling, relative to it. Both round
# to 7 digits, each in its own way, and training amplifies the difference.
ALLOWED_DIFFERENCE = 1e-4
CHECKED_IMAGES = 4
WATCHED_IMAGES = 128  # whose gradients are looked at while it trains


class Result(NamedTuple):
    """The outcome of the demo.

    Attributes:
        run: The training: its model, and its history with loss, test loss and accuracy.
        labels: The digits that the test images show.
        predictions: The digits that the net takes them for.
        check: The comparison of the gradient with differences, in float64.
        eager: The first epoch without compiling.
    """

    run: Run
    labels: Any
    predictions: Any
    check: GradientReport
    eager: Run

    @property
    def confusion(self) -> ConfusionMatrix:
        """How often each digit of the test images was taken for which."""
        return ConfusionMatrix(self.labels, self.predictions, classes=range(10))

    @property
    def accuracy(self) -> float:
        """The fraction of test images that were recognized."""
        return self.confusion.accuracy

    @property
    def difference(self) -> float:
        """How far the loss of the first epoch is from that without compiling, relative to it."""
        return abs(self.run.losses[0] - self.eager.losses[0]) / self.eager.losses[0]

    @property
    def failures(self) -> list[str]:
        """Everything that went wrong; times are not judged."""
        # Written so that NaN fails.
        wrong = {
            f"the accuracy is below {NEEDED_ACCURACY:.0%}": not self.accuracy >= NEEDED_ACCURACY,
            "the gradient is wrong": not self.check.is_valid,
            "compiled and eager losses differ": not self.difference <= ALLOWED_DIFFERENCE,
        }
        return [what for what, is_so in wrong.items() if is_so]


def run(
    *, epochs: int = 20, seed: int = 0, progress: bool = True, report: Path | None = None
) -> Result:
    """Train, test and check the net, and report on the terminal.

    Args:
        epochs: How often every training image is shown.
        seed: Chooses the initial weights and the order of the images.
        progress: Whether to show a progress bar, if the output is a terminal.
        report: A file to write a page with plots of the training to.

    Returns:
        The outcome.

    Raises:
        OSError: The page cannot be written.

    >>> from gradtape import demo
    >>> result = demo.run(epochs=1, progress=False)
    training a convolution net ... on 1438 digits: float32, Adam, batches of 32
    ...
    >>> result.check.is_valid, result.confusion.counts.sum()
    (True, np.int64(359))
    """
    digits, begun = load_digits(), time.perf_counter()
    loader = loader_of(digits.train_images, digits.train_labels, seed)
    print(
        f"training a convolution net of {count_of(net_of(seed))} parameters on "
        f"{len(loader.dataset)} digits: float32, Adam, batches of {BATCH}"
    )
    trained = train(digits, loader, epochs, seed, progress)
    eager = training.fit(
        net_of(seed), loss_of, optim.Adam(lr=RATE), loader, epochs=1, progress=False
    )
    predictions = predictions_of(trained.model, digits.test_images)
    checked = check(trained.model, digits)
    result = Result(trained, digits.test_labels, predictions, checked, eager)
    show(result, len(loader), time.perf_counter() - begun)
    if report is not None:
        page = TrainingReport(
            trained, title="Handwritten digits", confusion=result.confusion, settings={"seed": seed}
        )
        page.save(report)
        print(f"plots of the training are in {report}")
    return result


# ---- the net ------------------------------------------------------------------------------------


def net_of(seed: int) -> nn.Sequential:
    """Two convolutions and a linear layer, for rows of 64 pixels."""
    manual_seed(seed)
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, WIDTH, 3, padding=1, bias=False),
        nn.BatchNorm2d(WIDTH),
        nn.GELU(),
        nn.AvgPool2d(2),
        nn.Conv2d(WIDTH, 2 * WIDTH, 3, padding=1, bias=False),
        nn.BatchNorm2d(2 * WIDTH),
        nn.GELU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * WIDTH, 10),
    )


def loss_of(net: Any, batch: Any) -> Any:
    """Cross entropy: the mean of −log p of the right digit."""
    images, labels = batch
    return nn.cross_entropy(net(images), labels)


def accuracy_of(net: Any, batch: Any) -> Any:
    """The fraction of images that are recognized."""
    images, labels = batch
    return mean(argmax(net(images), axis=1) == labels)


def count_of(net: Any) -> int:
    """How many parameters there are."""
    return sum(param.size for param in net.parameters())


# ---- training -----------------------------------------------------------------------------------


def loader_of(images: Any, labels: Any, seed: int) -> DataLoader:
    """Full batches in random orders."""
    data = TensorDataset(images, labels)
    return DataLoader(data, BATCH, shuffle=True, seed=seed, drop_last=True)


def train(digits: Digits, loader: DataLoader, epochs: int, seed: int, progress: bool) -> Run:
    """Train by a compiled step whose rate falls to 0, and test after each epoch."""
    optimizer = optim.Adam(lr=RATE)
    watched = digits.train_images[:WATCHED_IMAGES], digits.train_labels[:WATCHED_IMAGES]
    callbacks = [
        training.ScheduleRate(optim.CosineAnnealingLR(optimizer, epochs)),
        # Seldom: a look takes as long as ten compiled steps.
        training.WatchGradients(loss_of, watched, every=3 * len(loader)),
        training.WatchMemory(),
        print_epoch,
    ]
    if progress:
        callbacks.append(training.Progress(Console()))
    return training.fit(
        net_of(seed),
        loss_of,
        optimizer,
        loader,
        epochs=epochs,
        compile=True,
        validation=DataLoader(TensorDataset(digits.test_images, digits.test_labels), 359),
        metrics={"accuracy": accuracy_of},
        callbacks=callbacks,
        progress=False,
    )


def print_epoch(run: Run) -> None:
    """Write a line about an epoch; rich puts it above the progress bar."""
    loss, accuracy = (run.history[name][-1] for name in ("loss", "accuracy"))
    print(f"epoch {run.epoch + 1:3d}   loss {loss:.4f}   test accuracy {accuracy:.1%}")


# ---- tests and checks ---------------------------------------------------------------------------


def predictions_of(net: Any, images: Any) -> Any:
    """The digits that a net sees."""
    net.eval()
    with no_grad():
        return np.argmax(net(images).numpy(), axis=1)


def check(net: Any, digits: Digits) -> GradientReport:
    """Compare the gradient of the loss with central differences, for every parameter."""
    exact = net_of(0).to(float64).eval()
    exact.load_state_dict(net.state_dict())
    images = digits.train_images[:CHECKED_IMAGES].astype(np.float64)
    labels = digits.train_labels[:CHECKED_IMAGES]
    params, structure = containers.flatten(exact)

    # Of arrays, which a compiled function takes with less to do than modules.
    def loss(arrays: list[Any]) -> Any:
        return loss_of(containers.unflatten(structure, arrays), (images, labels))

    arrays = [param.detach().numpy() for param in params]
    return NumericalChecker().check_gradient_central(jit(loss), arrays)


# ---- the terminal -------------------------------------------------------------------------------


def show(result: Result, steps: int, seconds: float) -> None:
    """Print the outcome; `steps` is the number of steps in an epoch."""
    print(f"\n{result.confusion}\n")
    compiled = statistics.median(result.run.history["seconds"]) / steps
    eager = result.eager.history["seconds"][0] / steps
    found = result.check
    rows = (
        ("test accuracy", f"{result.accuracy:.1%}", f"needed: {NEEDED_ACCURACY:.0%}"),
        ("gradient check", "valid" if found.is_valid else "WRONG",
         f"max error {found.max_error:.1e}, {found.analytic.size} parameters"),
        ("compiled, eager", f"{result.difference:.1e}", "relative difference of the first loss"),
        ("time per step", f"{compiled * 1e6:.0f} µs",
         f"{eager / compiled:.1f} times as fast as eager"),
        ("time in all", f"{seconds:.1f} s", "compile time and checks included"),
    )  # fmt: skip
    for label, value, remark in rows:
        print(f"{label:17}{value:>9}   {remark}")
    if not found.is_valid:
        print(found)
