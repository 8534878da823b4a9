"""Gradients of each sample, with clipping: differentially private training.

No image may move the parameters by more than a bound, and noise hides what it does. For this each
sample's gradient is clipped on its own. `gt.per_sample_gradients` computes them all at once;
`gt.per_sample_norms` finds only their norms, which is enough and takes much less memory.

    python examples/private_gradients.py
"""

from typing import NamedTuple

import numpy as np

import gradtape as gt

BOUND = 1.0  # the largest norm of a sample's gradient


class Result(NamedTuple):
    """What the example found."""

    difference: float  # between both ways to clip, relative
    clipped: float  # part of the samples whose gradient was clipped, in the first step
    largest: float  # norm of what one sample adds to the first step
    private: float  # accuracy with clipping and noise
    plain: float  # accuracy without


def make_model() -> gt.nn.Module:
    """A perceptron for images of 8 by 8."""
    gt.manual_seed(0)
    return gt.nn.Sequential(gt.nn.Linear(64, 32), gt.nn.Tanh(), gt.nn.Linear(32, 10))


def loss(model, image, label):
    """Cross entropy of one sample."""
    return gt.nn.cross_entropy(model(image), label)


def each_clipped(model, images, labels):
    """The gradients of all samples, each scaled to the bound, and what they come to before."""
    grads = gt.per_sample_gradients(loss)(model, images, labels)

    def clip(grads):
        return gt.gradients.clip_by_global_norm(grads, BOUND)

    return gt.vmap(clip)(grads), gt.vmap(gt.gradients.global_norm)(grads)


def clipped_mean(model, images, labels):
    """The mean of them, without any sample's gradient: a weight for each loss does it."""
    norms = gt.per_sample_norms(loss)(model, images, labels)
    weights = np.minimum(1.0, BOUND / norms)

    def weighted(model):
        losses = gt.vmap(loss, in_axes=(None, 0, 0))(model, images, labels)
        return np.mean(weights * losses)

    return gt.grad(weighted)(model)


def train(digits, steps: int, batch: int, noise: float | None):
    """Train with clipped and noisy gradients, or as usual if `noise` is None."""
    model, rule = make_model(), gt.optim.Adam(lr=0.02)
    data = gt.data.TensorDataset(digits.train_images, digits.train_labels)
    loader = gt.data.DataLoader(data, batch, shuffle=True, drop_last=True)

    @gt.jit
    def step(model, state, images, labels):
        if noise is None:
            grads = gt.grad(lambda model: gt.nn.cross_entropy(model(images), labels))(model)
        else:
            grads = clipped_mean(model, images, labels)
            grads = gt.gradients.add_noise(grads, noise * BOUND / batch)
        return rule.apply(model, grads, state)

    state, done = rule.init(model), 0
    with gt.no_grad():
        while done < steps:
            for images, labels in loader:
                model, state = step(model, state, images, labels)
                done += 1
        scores = model(digits.test_images).numpy()
    return float(np.mean(np.argmax(scores, axis=1) == digits.test_labels))


def main(quick: bool = False) -> Result:
    """Compare both ways to clip, then train with and without; `quick` takes fewer steps."""
    digits = gt.data.load_digits()
    images, labels = digits.train_images[:32], digits.train_labels[:32]
    model = make_model()
    with gt.no_grad():
        each, norms = each_clipped(model, images, labels)
        mean = clipped_mean(model, images, labels)
    pairs = list(zip(each.parameters(), mean.parameters(), strict=True))
    difference = max(
        float(gt.max(gt.abs(gt.mean(one, axis=0) - whole)) / gt.max(gt.abs(whole)))
        for one, whole in pairs
    )
    after = np.sqrt(sum(np.sum(one.numpy().reshape(32, -1) ** 2, axis=1) for one, _ in pairs))
    clipped = float(np.mean(norms.numpy() > BOUND))
    print(f"{clipped:.0%} of the gradients are clipped; norms are {after.max():.4f} at most")
    print(f"both ways differ by {difference:.1e} of the gradient")

    steps, batch = (60, 128) if quick else (300, 256)
    private = train(digits, steps, batch, noise=1.0)
    plain = train(digits, steps, batch, noise=None)
    print(f"test accuracy {private:.1%} with clipping and noise, {plain:.1%} without")
    return Result(difference, clipped, float(after.max()), private, plain)


if __name__ == "__main__":
    main()
