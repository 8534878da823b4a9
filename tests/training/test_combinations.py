"""Options of `gt.fit` together: compiled or not, in one go or resumed, the losses are the same."""

import itertools
import random

import numpy as np
import pytest

import gradtape as gt
from gradtape import nn, optim
from gradtape.training import ScheduleRate


class WithNorm(nn.Module):
    """Batch statistics, dropout, and a tied weight."""

    def __init__(self):
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.norm, self.drop, self.out = nn.BatchNorm1d(4), nn.Dropout(0.2), nn.Linear(4, 1)

    def forward(self, x):
        return self.out(self.drop(self.second(gt.tanh(self.norm(self.first(x))))))


class WithSequence(nn.Module):
    """A recurrent layer and attention, of which one part is frozen."""

    def __init__(self):
        self.recurrent = nn.GRU(2, 4, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True).requires_grad_(False)
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        steps, _ = self.recurrent(gt.reshape(x, (-1, 2, 2)))
        return self.out(gt.mean(self.attention(steps, steps, steps)[0], axis=1))


def amp(kind):
    scaler = gt.LossScaler.Dynamic(init_scale=64.0) if kind == "Float16" else None
    return gt.AmpConfig(precision_mode=gt.PrecisionMode[kind], loss_scaler=scaler)


CHOICES = {
    "net": [WithNorm, WithSequence],
    "optimizer": [
        lambda: optim.Adam(lr=0.02),
        lambda: optim.SGD(lr=optim.cosine(0.05, 12), momentum=0.9),
        lambda: optim.Lookahead(optim.AdamW(lr=0.02), k=2),
        lambda: gt.amp.MasterWeights(optim.RMSprop(lr=0.01)),
    ],
    "schedule": [None, lambda one: ScheduleRate(optim.ExponentialLR(one, 0.9), every="step")],
    "clip": [None, 0.5, lambda grads: gt.gradients.clip_by_value(grads, 0.1)],
    "accumulate": [1, 3],
    "checkpoint": [None, gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full)],
    "amp": [None, lambda: amp("BFloat16"), lambda: amp("Float16")],
}


def pairwise(choices):
    """Some combinations in which each two options occur together."""
    rng, names = random.Random(0), list(choices)
    every = {
        frozenset([(a, i), (b, j)])
        for a, b in itertools.combinations(names, 2)
        for i in range(len(choices[a]))
        for j in range(len(choices[b]))
    }
    found = []
    while every:
        tried = [{n: rng.randrange(len(c)) for n, c in choices.items()} for _ in range(200)]
        pairs = [set(map(frozenset, itertools.combinations(one.items(), 2))) for one in tried]
        best = max(range(len(tried)), key=lambda n: len(every & pairs[n]))
        every -= pairs[best]
        found.append(tried[best])
    return found


def loss(model, batch):
    return gt.mean((gt.astype(model(batch[0]), gt.float32) - batch[1]) ** 2)


def train(chosen, *, compiled=False, epochs=3, folder=None):
    gt.manual_seed(3)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(24, 4)).astype(np.float32)
    data = gt.data.TensorDataset(x, np.sin(x[:, :1]))
    made = {name: CHOICES[name][place] for name, place in chosen.items()}
    optimizer, schedule = made["optimizer"](), made["schedule"]
    numbers = getattr(optimizer, "optimizer", getattr(optimizer, "base", optimizer))
    fixed = isinstance(numbers.defaults["lr"], float)
    run = gt.fit(
        made["net"](), loss, optimizer, gt.data.DataLoader(data, 6, shuffle=True), epochs=epochs,
        accumulate=made["accumulate"], clip=made["clip"], checkpoint=made["checkpoint"],
        amp=made["amp"] and made["amp"](), compile=compiled, folder=folder, progress=False,
        callbacks=[schedule(numbers)] if schedule and fixed else [],
    )  # fmt: skip
    state = run.model.state_dict()
    return run.losses, {name: value.numpy() for name, value in state.items()}


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(chosen, marks=[pytest.mark.slow] if place > 2 else [])
        for place, chosen in enumerate(pairwise(CHOICES))
    ],
    ids=lambda chosen: "-".join(map(str, chosen.values())),
)
def test_every_way_to_train_is_the_same(chosen, tmp_path):
    losses, state = train(chosen)
    assert np.all(np.isfinite(losses))
    narrow = CHOICES["amp"][chosen["amp"]] is not None
    compiled, _ = train(chosen, compiled=True)
    np.testing.assert_allclose(compiled, losses, rtol=2e-2 if narrow else 1e-4)
    train(chosen, epochs=2, folder=tmp_path)
    resumed, resumed_state = train(chosen, folder=tmp_path)
    assert resumed == losses
    for name, value in state.items():
        np.testing.assert_array_equal(resumed_state[name], value, err_msg=name)
