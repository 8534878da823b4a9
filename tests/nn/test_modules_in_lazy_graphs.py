"""Modules in graphs of `gt.run`, also on placeholders of unknown size."""

import numpy as np
import pytest

import gradtape as gt
from gradtape import nn
from gradtape.errors import WriteError
from gradtape.lazy.context import Context


@pytest.fixture
def ctx():
    context = Context()
    yield context
    context.close()


def values(ctx, x, value, *out):
    found = ctx.evaluator().extend(out).feed(x, value).run()
    return [gt.stop_gradient(one) for one in found]


class Square(nn.Module):
    """Asks for a size itself."""

    def __init__(self):
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x).reshape(x.shape[0], 2, -1)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (lambda: nn.Linear(4, 2), (4,)),
        (lambda: nn.Conv2d(3, 2, 3), (3, 6, 6)),
        (lambda: nn.BatchNorm1d(4).eval(), (4,)),
        (lambda: nn.LayerNorm(4), (4,)),
        (lambda: nn.MaxPool2d(2), (3, 6, 6)),
        (lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), (3, 4)),
        (lambda: nn.Sequential(nn.Flatten(), nn.Linear(8, 4), nn.Tanh(), Square()), (2, 4)),
    ],
)
def test_any_number_of_samples(ctx, rng, module, shape):
    layer = module()
    x = ctx.placeholder("x", (-1, *shape), dtype=gt.float32)
    out = layer(x)
    (by_x,) = gt.graph.grad([gt.sum(out**2)], [x])
    for size in (2, 5):
        value = rng.normal(size=(size, *shape)).astype(np.float32)
        found, slope = values(ctx, x, value, out, by_x)
        np.testing.assert_allclose(found, gt.stop_gradient(layer(value)), rtol=1e-5, atol=1e-6)
        expected = gt.stop_gradient(gt.grad(lambda x: gt.sum(layer(x) ** 2))(value))
        np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-5)


def test_several_results(ctx, rng):
    x = ctx.placeholder("x", (-1, 2, 3), dtype=gt.float32)
    value = rng.normal(size=(4, 2, 3)).astype(np.float32)
    gru, lstm = nn.GRU(3, 2), nn.LSTM(3, 2)
    out, last = gru(x)
    hidden, state = lstm(x)
    found = values(ctx, x, value, out, last, hidden, state[1])
    expected = [*gru(value), lstm(value)[0], lstm(value)[1][1]]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [3, -1])
def test_the_module_as_it_was_when_it_was_called(ctx, size):
    net = nn.Sequential(nn.Linear(2, 100), nn.BatchNorm1d(100), nn.Dropout(0.5)).eval()
    value = np.ones((3, 2), np.float32)
    expected = net(value).detach().numpy()
    x = ctx.placeholder("x", (size, 2), dtype=gt.float32)
    out = net(x)
    net.train()
    net[0].weight.value = np.zeros((100, 2), np.float32)
    net[1].running_mean = np.ones(100)
    np.testing.assert_allclose(values(ctx, x, value, out)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("size", [3, -1])
def test_buffers_get_no_lazy_values(ctx, size):
    norm = nn.BatchNorm1d(2)
    x = ctx.placeholder("x", (size, 2), dtype=gt.float32)
    with pytest.raises(WriteError, match=r"running_mean: .* part of a lazy graph.*module.eval"):
        values(ctx, x, np.ones((3, 2)), norm(x))
    assert norm.num_batches_tracked == 0
    np.testing.assert_array_equal(norm.running_mean.numpy(), np.zeros(2))
