"""Handwritten digits by a convolution net: `gt.fit` with a compiled step.

`gt.fit` goes through the epochs, shows progress, tests after each of them, and keeps a checkpoint
and a log in a folder. Called again with the same folder it goes on where it was, to the bit. Two
callbacks look at gradients and memory, for a report with plots.

    python examples/digits_convnet.py
"""

import json
import tempfile
from pathlib import Path
from typing import NamedTuple

import gradtape as gt


class Result(NamedTuple):
    """What the example found."""

    losses: list[float]  # of each epoch
    accuracy: list[float]  # on test images, after each epoch
    logged: list[float]  # the losses as they are in the log
    confusion: gt.ConfusionMatrix  # test images by what they show and what was said
    page: str  # curves, confusion matrix, gradients and memory, as HTML


def make_model(width: int) -> gt.nn.Module:
    """Two convolutions with batch normalization, and a linear layer."""
    return gt.nn.Sequential(
        gt.nn.Unflatten(1, (1, 8, 8)),
        gt.nn.Conv2d(1, width, 3, padding=1, bias=False),
        gt.nn.BatchNorm2d(width),
        gt.nn.ReLU(),
        gt.nn.MaxPool2d(2),
        gt.nn.Conv2d(width, 2 * width, 3, padding=1, bias=False),
        gt.nn.BatchNorm2d(2 * width),
        gt.nn.ReLU(),
        gt.nn.MaxPool2d(2),
        gt.nn.Flatten(),
        gt.nn.Linear(8 * width, 10),
    )


def loss(model, batch):
    """Cross entropy of a batch."""
    images, labels = batch
    return gt.nn.cross_entropy(model(images), labels)


def accuracy(model, batch):
    """The part of a batch that is recognized."""
    images, labels = batch
    return gt.mean(gt.argmax(model(images), axis=1) == labels)


def main(quick: bool = False) -> Result:
    """Train for half of the epochs, go on for the other half; `quick` is a smaller model."""
    gt.manual_seed(0)
    width, epochs = (4, 4) if quick else (16, 12)
    digits = gt.data.load_digits()
    training = gt.data.TensorDataset(digits.train_images, digits.train_labels)
    test = gt.data.TensorDataset(digits.test_images, digits.test_labels)
    loader = gt.data.DataLoader(training, batch_size=64, shuffle=True, drop_last=True)
    options = {
        "validation": gt.data.DataLoader(test, batch_size=359),
        "metrics": {"accuracy": accuracy},
        "compile": True,
    }
    images, labels = digits.train_images[:64], digits.train_labels[:64]

    with tempfile.TemporaryDirectory() as folder:

        def fit(epochs):
            optimizer = gt.optim.Adam(lr=3e-3)
            watch = gt.training.WatchGradients(loss, (images, labels))
            callbacks = [watch, gt.training.WatchMemory()]
            return gt.fit(
                make_model(width), loss, optimizer, loader,
                epochs=epochs, folder=folder, callbacks=callbacks, **options,
            )  # fmt: skip

        fit(epochs // 2)  # as if it had been interrupted here
        run = fit(epochs)
        log = [json.loads(line) for line in (Path(folder) / "log.jsonl").read_text().splitlines()]

    for row in run.rows():
        print("epoch {epoch:2d}   loss {loss:.4f}   test accuracy {accuracy:.1%}".format(**row))

    run.model.eval()
    with gt.no_grad():
        scores = run.model(digits.test_images).numpy()
    confusion = gt.ConfusionMatrix(digits.test_labels, scores)
    print(confusion)
    report = gt.TrainingReport(run, title="Digits", confusion=confusion)
    page = report.html()  # report.save("digits.html") writes it to a file
    logged = [row["loss"] for row in log]
    return Result(run.losses, run.history["accuracy"], logged, confusion, page)


if __name__ == "__main__":
    main()
