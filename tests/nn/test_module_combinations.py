"""Modules through several transforms at once: all ways to the same derivative agree."""

import numpy as np
import pytest

import gradtape as gt
from gradtape import containers, nn
from gradtape.errors import ShapeError, WriteError

F64 = {"dtype": gt.float64}
B, C = np.random.default_rng(0).normal(size=(2, 4, 3, 4))


class Attention(nn.Module):
    def __init__(self):
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True, num_kv_heads=1, **F64)

    def forward(self, x):
        return self.attention(x, x, x)[0]


class Recurrent(nn.Module):
    def __init__(self):
        self.layer = nn.LSTM(4, 4, batch_first=True, **F64)

    def forward(self, x):
        return self.layer(x)[0]


MODULES = {
    "linear": lambda: nn.Sequential(nn.Linear(4, 4, **F64), nn.GELU(), nn.LayerNorm(4, **F64)),
    "batch norm": lambda: nn.Sequential(
        nn.Conv1d(3, 3, 1, **F64), nn.BatchNorm1d(3, **F64), nn.Dropout(0.5)
    ).eval(),
    "attention": Attention,
    "recurrent": Recurrent,
}


def loss(module, x, y):
    return gt.mean((module(x) - y) ** 2)


def one(module, x, y):
    return loss(module, x[None], y[None])


def arrays(module):
    return [np.asarray(gt.stop_gradient(leaf)) for leaf in containers.flatten(module)[0]]


def by_tape(module, x, y):
    tape = gt.GradientTape()
    watched = tape.watch(module)
    return tape.gradient(loss(watched, x, y), watched)


def by_backward(module, x, y):
    module.zero_grad()
    loss(module, x, y).backward()
    return [param.grad for param in module.parameters()]


def means(stacked):
    return [np.mean(leaf, axis=0) for leaf in arrays(stacked)]


WAYS = {
    "vjp": lambda m, x, y: gt.vjp(loss, m, x, y)[1](1.0)[0],
    "jacfwd": lambda m, x, y: gt.jacfwd(loss)(m, x, y),
    "tape": by_tape,
    "backward": by_backward,
    "compiled inside": lambda m, x, y: gt.grad(gt.jit(loss))(m, x, y),
    "compiled twice": lambda m, x, y: gt.jit(gt.grad(gt.jit(loss)))(m, x, y),
    "computed again": lambda m, x, y: gt.grad(gt.checkpoint(loss))(m, x, y),
    "computed again, compiled": lambda m, x, y: gt.jit(gt.grad(gt.checkpoint(loss)))(m, x, y),
    "samples": lambda m, x, y: means(gt.per_sample_gradients(one)(m, x, y)),
    "samples, compiled": lambda m, x, y: means(
        gt.jit(gt.vmap(gt.grad(one), in_axes=(None, 0, 0)))(m, x, y)
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_all_ways_to_a_gradient_agree(name):
    gt.manual_seed(0)
    module = MODULES[name]()
    expected = arrays(gt.grad(loss)(module, B, C))
    for way, function in WAYS.items():
        for found, known in zip(arrays(function(module, B, C)), expected, strict=True):
            np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-12, err_msg=way)


@pytest.mark.parametrize("name", MODULES)
def test_second_derivatives_agree(name):
    gt.manual_seed(0)
    module = MODULES[name]()
    leaves, structure = containers.flatten(module)
    direction = containers.unflatten(
        structure, [np.cos(np.arange(x.size)).reshape(x.shape) for x in leaves]
    )
    grad = gt.grad(lambda m: loss(m, B, C))
    moved = [
        containers.unflatten(
            structure, [x + h * d for x, d in zip(arrays(module), arrays(direction), strict=True)]
        )
        for h in (1e-5, -1e-5)
    ]
    differences = [(a - b) / 2e-5 for a, b in zip(*(arrays(grad(m)) for m in moved), strict=True)]
    hvp = lambda m, d: gt.hvp(lambda m: loss(m, B, C), (m,), (d,))  # noqa: E731
    for product in (hvp(module, direction), gt.jvp(grad, (module,), (direction,))[1]):
        for found, known in zip(arrays(product), differences, strict=True):
            np.testing.assert_allclose(found, known, rtol=1e-5, atol=1e-8)
    for found, known in zip(
        arrays(gt.jit(hvp)(module, direction)), arrays(hvp(module, direction)), strict=True
    ):
        np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-12)


def test_an_ensemble_is_stepped_by_one_compiled_function():
    rule = gt.optim.SGD(lr=0.1, momentum=0.9)

    def made(seed):
        gt.manual_seed(seed)
        layers = nn.Linear(4, 4, **F64), nn.BatchNorm1d(3, **F64), nn.Linear(4, 4, **F64)
        return nn.Sequential(*layers)

    def step(module, state):
        gradient = gt.grad(loss)(module, B, C)
        return rule.apply(module, gradient, state)

    alone = [(made(seed), rule.init(made(seed))) for seed in (0, 1)]
    flat = [containers.flatten(made(seed), view=containers.ALL_ARRAYS) for seed in (0, 1)]
    pairs = zip(*(leaves for leaves, _ in flat), strict=True)
    stacked = containers.unflatten(
        flat[0][1], [gt.tensor(np.stack([leaf.detach() for leaf in pair])) for pair in pairs]
    )
    state, together = gt.vmap(rule.init)(stacked), gt.jit(gt.vmap(step))
    with gt.no_grad():
        for _ in range(2):
            stacked, state = together(stacked, state)
            alone = [step(*pair) for pair in alone]
    for n, (module, _) in enumerate(alone):
        for group in (nn.Module.parameters, nn.Module.buffers):
            for found, known in zip(group(stacked), group(module), strict=True):
                np.testing.assert_allclose(found[n], known, rtol=1e-9, atol=1e-12)
    assert stacked[1].num_batches_tracked.tolist() == [2, 2]
    with pytest.raises(WriteError, match="does not return it"):
        gt.jit(gt.vmap(lambda module: module(B)))(stacked)


def test_batch_statistics_of_single_samples_raise():
    norm = nn.BatchNorm1d(4, **F64)
    with pytest.raises(ShapeError, match="more than one element for each channel"):
        gt.per_sample_gradients(lambda m, x: gt.sum(m(x[None])))(norm, B[:, 0])
    assert norm.num_batches_tracked == 0
    with pytest.raises(WriteError, match=r"running_mean: .* inside vmap"):
        gt.per_sample_gradients(lambda m, x: gt.sum(m(x) ** 2))(norm, B)
    np.testing.assert_array_equal(norm.running_mean.numpy(), np.zeros(4))


@pytest.mark.parametrize("name", ["attention", "recurrent"])
def test_casts_are_those_of_eager_code_in_every_transform(name):
    gt.manual_seed(0)
    module, x = MODULES[name]().float(), B.astype(np.float32)

    def narrow(m, x):
        with gt.autocast(gt.bfloat16):
            out = m(x)
        return gt.sum(gt.astype(out, gt.float32) ** 2)

    expected = arrays(gt.grad(narrow)(module, x))
    wide = arrays(gt.grad(lambda m, x: gt.sum(m(x) ** 2))(module, x))
    ways = {
        "compiled": gt.jit(gt.grad(narrow)),
        "computed again": gt.grad(gt.checkpoint(narrow)),
        "computed again, compiled": gt.jit(gt.grad(gt.checkpoint(narrow))),
    }
    size = max(np.abs(array).max() for array in wide)
    for way, function in ways.items():
        for found, known in zip(arrays(function(module, x)), expected, strict=True):
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, known, atol=0.01 * size, err_msg=way)
    for known, exact in zip(expected, wide, strict=True):
        np.testing.assert_allclose(known, exact, atol=0.05 * size)
