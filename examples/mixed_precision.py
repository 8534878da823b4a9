"""Mixed precision: products in 16 bits, parameters and everything delicate in 32.

A `gt.autocast` block decides for each op. float16 has few exponents, so that small gradients become
0: a `gt.LossScaler` multiplies the loss, divides the gradients, and skips steps that overflow.
bfloat16 needs none of it. Both learn as float32 does.

    python examples/mixed_precision.py
"""

from typing import NamedTuple

import numpy as np

import gradtape as gt


class Result(NamedTuple):
    """What the example found."""

    accuracy: dict[str, float]  # on test images
    dtypes: dict[str, str]  # of the activations
    parameters: set[str]  # their dtypes, in all runs
    vanished: float  # part of a tiny float16 gradient that is 0 without scaling
    kept: float  # the same with scaling
    skipped: int  # steps that overflowed
    scale: float  # what the scaler has found
    losses: list[float]  # of the loop as in PyTorch


def make_model() -> gt.nn.Module:
    """A perceptron for images of 8 by 8."""
    gt.manual_seed(0)
    return gt.nn.Sequential(gt.nn.Linear(64, 128), gt.nn.ReLU(), gt.nn.Linear(128, 10))


def loss(model, images, labels):
    """Cross entropy; its logarithms and sums are in float32, whatever the block says."""
    return gt.nn.cross_entropy(model(images), labels)


def autocast(dtype):
    """The block for a dtype; None is one that changes nothing."""
    return gt.autocast(dtype or gt.bfloat16, enabled=dtype is not None)


def train(digits, epochs: int, dtype, scaler: gt.LossScaler):
    """Train by a compiled step, in which autocast is a mode and the scaler a pure rule."""
    model, rule = make_model(), gt.optim.Adam(lr=3e-3)
    data = gt.data.TensorDataset(digits.train_images, digits.train_labels)
    loader = gt.data.DataLoader(data, batch_size=64, shuffle=True, drop_last=True)

    @gt.jit
    def step(model, state, scaling, images, labels):
        def scaled(model):
            with autocast(dtype):
                return scaler.scale(loss(model, images, labels), scaling)

        grads, finite, scaling = scaler.unscale(gt.grad(scaled)(model), scaling)
        new = rule.apply(model, grads, state)
        return *gt.amp.select(finite, new, (model, state)), scaling

    state, scaling = rule.init(model), scaler.init()
    with gt.no_grad():
        for _ in range(epochs):
            for images, labels in loader:
                model, state, scaling = step(model, state, scaling, images, labels)
    return model, {name: float(value) for name, value in scaling.items()}


def train_as_in_pytorch(digits, steps: int) -> list[float]:
    """The same without compiling: the scaler keeps its state, and skips steps by itself."""
    model = make_model()
    optimizer = gt.optim.Adam(model.parameters(), lr=3e-3)
    scaler = gt.LossScaler.Dynamic()
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with gt.autocast(gt.float16):
            value = loss(model, digits.train_images[:64], digits.train_labels[:64])
        scaler.scale(value).backward()
        scaler.step(optimizer)  # unless a gradient is not finite
        scaler.update()
        losses.append(value.item())
    return losses


def accuracy_of(model, digits) -> float:
    """The part of test images that is recognized."""
    with gt.no_grad():
        scores = model(digits.test_images).numpy()
    return float(np.mean(np.argmax(scores, axis=1) == digits.test_labels))


def zeros_in(scaler) -> float:
    """The part of a gradient that is 0, of a loss so small that float16 can hardly tell."""
    x, w = np.ones((4, 64), np.float16), gt.ones(64, dtype=gt.float16, requires_grad=True)
    with gt.autocast(gt.float16):
        value = gt.sum((x @ w) * np.float16(1e-5)) * np.float32(1e-4)
    (value if scaler is None else scaler.scale(value)).backward()
    return float(np.mean(w.grad.numpy() == 0))


def main(quick: bool = False) -> Result:
    """Train in three precisions; `quick` has fewer epochs."""
    digits, epochs = gt.data.load_digits(), 5 if quick else 30
    one, many = gt.LossScaler.Static(1.0), gt.LossScaler.Dynamic(2.0**24, growth_interval=50)
    runs = {"float32": (None, one), "bfloat16": (gt.bfloat16, one), "float16": (gt.float16, many)}
    accuracy, dtypes, parameters = {}, {}, set()
    for name, (dtype, scaler) in runs.items():
        model, scaling = train(digits, epochs, dtype, scaler)
        accuracy[name] = accuracy_of(model, digits)
        with autocast(dtype):
            dtypes[name] = str(model(digits.test_images).dtype)
        parameters |= {str(one.dtype) for one in model.parameters()}
        print(f"{name:9} accuracy {accuracy[name]:.1%}, activations {dtypes[name]}")
    skipped, steps, scale = (scaling[name] for name in ("skipped", "steps", "scale"))
    print(f"the scaler skipped {skipped:g} of {steps:g} steps, and is at {scale:g}")

    vanished, kept = zeros_in(None), zeros_in(gt.LossScaler.Static(2.0**16))
    print(f"zeros in a tiny gradient: {vanished:.0%} without scaling, {kept:.0%} with it")
    losses = train_as_in_pytorch(digits, 20)
    print(f"eager, in 20 steps: loss {losses[0]:.3f} to {losses[-1]:.3f}")
    return Result(accuracy, dtypes, parameters, vanished, kept, int(skipped), scale, losses)


if __name__ == "__main__":
    main()
