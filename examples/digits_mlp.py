"""Handwritten digits by a perceptron: the loop of training, as in PyTorch.

A data set, a loader, a model of layers, a loss, an optimizer, and a loop that you can read. The
model is saved without pickle, and loaded into another one. `digits_convnet.py` is the same task by
`gt.fit`, compiled.

    python examples/digits_mlp.py
"""

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

import gradtape as gt


class Result(NamedTuple):
    """What the example found."""

    losses: list[float]  # of each epoch
    accuracy: float  # on test images
    again: float  # that of the model after it was saved and loaded


class Perceptron(gt.nn.Module):
    """One hidden layer, with dropout."""

    def __init__(self, hidden: int):
        self.hidden = gt.nn.Linear(64, hidden)
        self.dropout = gt.nn.Dropout(0.2)
        self.out = gt.nn.Linear(hidden, 10)

    def forward(self, images):
        """Scores of the ten digits."""
        return self.out(self.dropout(gt.relu(self.hidden(images))))


def train(model, loader, epochs: int) -> list[float]:
    """The mean loss of each epoch."""
    optimizer = gt.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = gt.optim.CosineAnnealingLR(optimizer, epochs)
    losses = []
    model.train()
    for epoch in range(epochs):
        total = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = gt.nn.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        scheduler.step()
        losses.append(total / len(loader.dataset))
        print(f"epoch {epoch + 1:2d}   loss {losses[-1]:.4f}")
    return losses


def accuracy_of(model, loader) -> float:
    """The part of images that are recognized; `eval` switches dropout off."""
    model.eval()
    correct = 0
    with gt.no_grad():
        for images, labels in loader:
            correct += int(np.sum(np.argmax(model(images).numpy(), axis=1) == labels))
    return correct / len(loader.dataset)


def main(quick: bool = False) -> Result:
    """Train, test, save and load; `quick` is a smaller model for fewer epochs."""
    gt.manual_seed(0)
    hidden, epochs = (64, 6) if quick else (256, 30)
    digits = gt.data.load_digits()
    training = gt.data.TensorDataset(digits.train_images, digits.train_labels)
    test = gt.data.TensorDataset(digits.test_images, digits.test_labels)
    test_loader = gt.data.DataLoader(test, batch_size=128)

    model = Perceptron(hidden)
    print(model)
    losses = train(model, gt.data.DataLoader(training, batch_size=32, shuffle=True), epochs)
    accuracy = accuracy_of(model, test_loader)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.safetensors"
        gt.save(path, model.state_dict())
        loaded = Perceptron(hidden)
        loaded.load_state_dict(gt.load(path))
    again = accuracy_of(loaded, test_loader)
    print(f"test accuracy {accuracy:.1%}, saved and loaded {again:.1%}")
    return Result(losses, accuracy, again)


if __name__ == "__main__":
    main()
