"""Loss curves are those of PyTorch from the same weights, eager and compiled.

PyTorch is not needed to work on gradtape; `make test-torch` runs this file where it is installed.
"""

from typing import Any

import numpy as np
import pytest

import gradtape as gt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

STEPS = 50


def perceptron(nn: Any) -> list[Any]:
    return [nn.Flatten(), nn.Linear(64, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, 10)]


def conv_net(nn: Any) -> list[Any]:
    return [
        *(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(4, 6, 3, stride=2), nn.GELU(), nn.Flatten(), nn.Linear(6, 10)),
    ]


OPTIMIZERS = {
    "SGD": {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3},
    "AdamW": {"lr": 0.01, "weight_decay": 0.02},
    "RMSprop": {"lr": 1e-3, "centered": True},
}


def data() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(8, 1, 8, 8)), rng.integers(0, 10, 8)) for _ in range(5)]


def of_torch(model: Any, optimizer: Any) -> list[float]:
    losses = []
    for step in range(STEPS):
        x, labels = (torch.tensor(part) for part in data()[step % 5])
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def eager(model: Any, optimizer: Any) -> list[float]:
    optimizer.add_param_group({"params": list(model.parameters())})
    losses = []
    for step in range(STEPS):
        x, labels = data()[step % 5]
        optimizer.zero_grad()
        loss = gt.nn.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def compiled(model: Any, optimizer: Any) -> list[float]:
    @gt.jit
    def step(model: Any, state: Any, x: Any, labels: Any) -> Any:
        def loss(model: Any) -> Any:
            return gt.nn.cross_entropy(model(x), labels)

        value, grads = gt.value_and_grad(loss)(model)
        model, state = optimizer.apply(model, grads, state)
        return value, model, state

    losses, state = [], optimizer.init(model)
    with gt.no_grad():
        for number in range(STEPS):
            value, model, state = step(model, state, *data()[number % 5])
            losses.append(float(value))
    return losses


@pytest.mark.parametrize("way", [eager, compiled])
@pytest.mark.parametrize(
    ("layers", "name"), [(perceptron, "SGD"), (conv_net, "AdamW"), (conv_net, "RMSprop")]
)
def test_losses_are_those_of_pytorch(layers: Any, name: str, way: Any) -> None:
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(*layers(torch.nn)).double()
    ours = gt.nn.Sequential(*layers(gt.nn)).to(gt.float64)
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    options = OPTIMIZERS[name]
    expected = of_torch(theirs, getattr(torch.optim, name)(theirs.parameters(), **options))
    losses = way(ours, getattr(gt.optim, name)(**options))
    np.testing.assert_allclose(losses, expected, rtol=1e-8)
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
