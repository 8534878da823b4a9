"""Layers in gradients, compiled functions and batches, and the buffers that they write there."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import containers
from gradtape.errors import ShapeError, WriteError

ROWS = np.array([[1, 0, 3], [2, 2, 0]])
F64 = {"dtype": gt.float64}
# Layers, and the shape of an array for them, or the array. All are compiled, so one of each kind.
LAYERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "linear": (lambda: gt.nn.Linear(3, 2, **F64), (4, 3)),
    "conv1d": (lambda: gt.nn.Conv1d(2, 3, 3, padding="same", **F64), (4, 2, 5)),
    "conv2d": (lambda: gt.nn.Conv2d(2, 2, 3, padding=1, padding_mode="circular", **F64), (2, 4, 5)),
    "conv_transpose": (lambda: gt.nn.ConvTranspose1d(2, 3, 3, stride=2, **F64), (4, 2, 3)),
    "batch_norm": (lambda: gt.nn.BatchNorm1d(3, **F64), (4, 3)),
    "batch_norm_mean": (lambda: gt.nn.BatchNorm2d(3, momentum=None, **F64), (4, 3, 2, 2)),
    "instance_norm": (
        lambda: gt.nn.InstanceNorm1d(3, affine=True, track_running_stats=True, **F64),
        (4, 3, 5),
    ),
    "layer_norm": (lambda: gt.nn.LayerNorm(5, **F64), (4, 5)),
    "group_norm": (lambda: gt.nn.GroupNorm(2, 4, **F64), (3, 4, 5)),
    "rms_norm": (lambda: gt.nn.RMSNorm(5, **F64), (4, 5)),
    "embedding": (lambda: gt.nn.Embedding(4, 3, **F64), ROWS),
    "prelu": (lambda: gt.nn.PReLU(3, **F64), (4, 3)),
    "pools": (
        lambda: gt.nn.Sequential(gt.nn.MaxPool1d(2), gt.nn.AvgPool1d(2), gt.nn.Flatten()),
        (3, 2, 8),
    ),
    "activations": (
        lambda: gt.nn.Sequential(gt.nn.GELU(), gt.nn.ELU(0.5), gt.nn.Softmax(-1)),
        (3, 4),
    ),
}
EACH = pytest.mark.parametrize("name", LAYERS)
BUFFERED = pytest.mark.parametrize("name", ["batch_norm", "batch_norm_mean", "instance_norm"])


def made(name: str, rng: np.random.Generator) -> tuple[Any, Any]:
    make, x = LAYERS[name]
    layer = make()
    for value in layer.parameters():
        gt.nn.init.normal_(value, std=0.5)
    return layer, rng.normal(size=x) if isinstance(x, tuple) else x


def loss(net: Any, x: Any) -> Any:
    return gt.sum(gt.sin(net(x)))


def assert_close(ours: Any, expected: Any) -> None:
    pairs = zip(containers.flatten(ours)[0], containers.flatten(expected)[0], strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(gt.asarray(a).detach(), gt.asarray(b).detach(), 1e-10, 1e-12)


def state(net: Any) -> dict[str, Any]:
    return {name: value.numpy().copy() for name, value in net.state_dict().items()}


@EACH
def test_compiled_as_eager(name: str, rng: np.random.Generator) -> None:
    net, x = made(name, rng)
    plain = LAYERS[name][0]()
    plain.load_state_dict(net.state_dict())

    @gt.jit
    def step(net: Any, x: Any) -> Any:
        value, gradient = gt.value_and_grad(loss)(net, x)
        return value, gradient, net

    before = state(net)
    with gt.no_grad():
        for _ in range(2):
            value, gradient, net = step(net, x)
            expected, expected_gradient = gt.value_and_grad(loss)(plain, x)
            np.testing.assert_allclose(value.item(), expected.item(), rtol=1e-12)
            assert_close(list(gradient.parameters()), list(expected_gradient.parameters()))
            assert_close(state(net), state(plain))
        assert_close(gt.jit(lambda net, x: net(x))(net.eval(), x), plain.eval()(x))
    moved = {name for name, value in state(net).items() if not np.array_equal(value, before[name])}
    assert moved <= {"running_mean", "running_var", "num_batches_tracked"}


@EACH
def test_a_gradient_is_that_of_the_parameters(name: str, rng: np.random.Generator) -> None:
    net, x = made(name, rng)
    net.eval()
    tangents = {key: rng.normal(size=value.shape) for key, value in net.named_parameters()}
    gradients = dict(gt.grad(loss)(net, x).named_parameters())
    slope = sum(float(np.sum(gradients[key].detach() * t)) for key, t in tangents.items())

    def moved(step: float) -> Any:
        other = LAYERS[name][0]().eval()
        other.load_state_dict(net.state_dict())
        for key, value in other.named_parameters():
            value.value = value.value + step * tangents[key]
        return loss(other, x).item()

    difference = (moved(1e-6) - moved(-1e-6)) / 2e-6
    np.testing.assert_allclose(slope, difference, rtol=1e-6, atol=1e-8)


@EACH
def test_batches_as_loops(name: str, rng: np.random.Generator) -> None:
    net, x = made(name, rng)
    net.eval()
    xs = np.stack([x, x[::-1]])
    with gt.no_grad():
        assert_close(gt.vmap(net)(xs), gt.stack([net(x) for x in xs]))


@BUFFERED
def test_buffers_do_not_take_a_batch(name: str, rng: np.random.Generator) -> None:
    net, x = made(name, rng)
    before = state(net)
    with pytest.raises(WriteError, match=r"running_mean.*in_axes=0"):
        gt.vmap(net)(np.stack([x, 2 * x]))
    assert_close(state(net), before)


@BUFFERED
def test_stacked_layers_have_statistics_each(name: str, rng: np.random.Generator) -> None:
    net, x = made(name, rng)
    leaves, structure = containers.flatten(net, view=containers.ALL_ARRAYS)
    many = containers.unflatten(structure, [gt.stack([leaf.detach()] * 2) for leaf in leaves])
    xs = np.stack([x, 2 * x + 1])
    with gt.no_grad():
        out = gt.vmap(lambda net, x: net(x))(many, xs)
    for n, x in enumerate(xs):
        one = LAYERS[name][0]()
        one.load_state_dict(net.state_dict())
        assert_close(out[n], one(x))
        assert_close(many.running_var[n], one.running_var)
        assert_close(many.num_batches_tracked[n], one.num_batches_tracked)


@BUFFERED
def test_statistics_have_no_history(name: str, rng: np.random.Generator) -> None:
    net, x = made(name, rng)
    net(gt.nn.Parameter(x))
    assert not net.running_mean.requires_grad
    net.eval()
    with gt.no_grad():
        gradient = gt.grad(lambda x: loss(net, x))(x)
    factor = net.weight.detach() / np.sqrt(net.running_var.numpy() + net.eps)
    shape = (1, -1) + (1,) * (x.ndim - 2)
    expected = np.cos(net(x).detach()) * np.reshape(factor, shape)
    np.testing.assert_allclose(gradient, expected, rtol=1e-10)


@BUFFERED
def test_a_compiled_function_has_to_return_what_it_wrote(name: str, rng: Any) -> None:
    net, x = made(name, rng)
    before = state(net)
    with pytest.raises(WriteError, match=r"running_mean.*Return the module"), gt.no_grad():
        gt.jit(loss)(net, x)
    assert_close(state(net), before)


def test_a_batch_that_does_not_fit_writes_nothing() -> None:
    net = gt.nn.BatchNorm1d(3)
    for x in (np.ones((1, 3), np.float32), np.ones((4, 2), np.float32), np.ones(3, np.float32)):
        with pytest.raises(ShapeError):
            net(x)
    assert net.num_batches_tracked.item() == 0
    np.testing.assert_array_equal(net.running_mean, np.zeros(3))


def test_dropout_in_transforms() -> None:
    net = gt.nn.Sequential(gt.nn.Dropout(0.5), gt.nn.Dropout1d(0.5))
    x = np.ones((3, 8, 4))
    step = gt.jit(lambda net, x: net(x))
    first, second = step(net, x), step(net, x)
    assert set(np.unique(first)) == {0.0, 4.0}
    assert not np.array_equal(first, second)  # each call draws anew
    np.testing.assert_array_equal(step(net.eval(), x), x)
    gt.manual_seed(3)
    gradient = gt.grad(lambda x: gt.sum(net.train()(x)))(x)
    gt.manual_seed(3)
    np.testing.assert_array_equal(gradient, net(x))


def test_gradients_of_samples_go_through_evaluated_norms(rng: np.random.Generator) -> None:
    net = gt.nn.Sequential(
        gt.nn.Conv1d(2, 3, 3, **F64), gt.nn.BatchNorm1d(3, **F64), gt.nn.Flatten()
    ).eval()
    xs = rng.normal(size=(4, 2, 5))
    single = lambda net, x: loss(net, x[None])  # noqa: E731
    with gt.no_grad():
        gradients = gt.per_sample_gradients(single)(net, xs)
        whole = gt.grad(loss)(net, xs)
    np.testing.assert_allclose(gradients[0].weight.sum(0), whole[0].weight, rtol=1e-10)
    np.testing.assert_allclose(gradients[1].weight.sum(0), whole[1].weight, rtol=1e-10)


def test_a_compiled_training_goes_as_an_eager_one(rng: np.random.Generator) -> None:
    xs, ys = rng.normal(size=(4, 8, 1, 6, 6)), rng.integers(0, 3, (4, 8))
    rule, criterion = gt.optim.SGD(lr=0.1), gt.nn.CrossEntropyLoss()

    def step(net: Any, state: Any, x: Any, y: Any) -> Any:
        value, gradient = gt.value_and_grad(lambda net: criterion(net(x), y))(net)
        net, state = rule.apply(net, gradient, state)
        return value, net, state

    def trained(step: Any) -> Any:
        gt.manual_seed(0)
        net = gt.nn.Sequential(
            gt.nn.Conv2d(1, 4, 3, padding=1, bias=False, **F64),
            gt.nn.BatchNorm2d(4, **F64),
            gt.nn.GELU(),
            gt.nn.MaxPool2d(2),
            gt.nn.Dropout2d(0.2),
            gt.nn.Flatten(),
            gt.nn.LayerNorm(36, **F64),
            gt.nn.Dropout(0.2),
            gt.nn.Linear(36, 3, **F64),
        )
        state, losses = rule.init(net), []
        with gt.no_grad():
            for x, y in zip(xs, ys, strict=True):
                value, net, state = step(net, state, x, y)
                losses.append(value.item())
        return losses, {key: value.numpy() for key, value in net.state_dict().items()}

    losses, numbers = trained(step)
    compiled_losses, compiled_numbers = trained(gt.jit(step))
    np.testing.assert_allclose(compiled_losses, losses, rtol=1e-10)
    for key, value in numbers.items():
        np.testing.assert_allclose(compiled_numbers[key], value, rtol=1e-9, atol=1e-12)
    assert numbers["1.num_batches_tracked"] == 4
