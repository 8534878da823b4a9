"""The optimizers of this folder in `gt.fit`, eager and compiled, and resumed."""

import numpy as np
import pytest

import gradtape as gt
from gradtape import optim
from gradtape.errors import ArgumentError

X = np.random.default_rng(0).normal(size=(32, 3))
Y = X @ np.array([[1.0], [-2.0], [0.5]])
BATCHES = [(X[:16], Y[:16]), (X[16:], Y[16:])]

MADE = {
    "L-BFGS": lambda: optim.LBFGS(max_iter=3, history_size=4),
    "SAM": lambda: optim.SAM(optim.Adam(lr=0.05), rho=0.01),
    "Sophia": lambda: optim.Sophia(lr=0.05, betas=(0.5, 0.5), every=3),
    "SOAP": lambda: optim.SOAP(lr=0.05, precondition_frequency=3),
    "Lookahead": lambda: optim.Lookahead(optim.SGD(lr=0.1, momentum=0.5), k=3),
    "Lookahead of SAM": lambda: optim.Lookahead(optim.SAM(optim.SGD(lr=0.1), rho=0.01), k=3),
    "a schedule": lambda: optim.Adam(lr=optim.warmup(optim.cosine(0.1, 20), 3)),
}


def fitted(make, epochs, **options):
    gt.manual_seed(0)
    net = gt.nn.Linear(3, 1, dtype=np.float64)
    loss = lambda net, batch: gt.mean((net(batch[0]) - batch[1]) ** 2)  # noqa: E731
    return gt.fit(net, loss, make(), BATCHES, epochs=epochs, progress=False, **options)


@pytest.mark.parametrize("name", MADE)
def test_fit_learns_and_resumes_bit_for_bit(name, tmp_path):
    whole = fitted(MADE[name], 8)
    fitted(MADE[name], 4, folder=tmp_path)
    resumed = fitted(MADE[name], 8, folder=tmp_path)
    assert whole.losses[-1] < 0.5 * whole.losses[0]
    assert resumed.losses == whole.losses
    np.testing.assert_array_equal(resumed.model.weight.detach(), whole.model.weight.detach())
    compiled = fitted(MADE[name], 8, compile=True)
    np.testing.assert_allclose(compiled.losses, whole.losses, rtol=1e-6, atol=1e-12)


def test_another_optimizer_inside_is_noticed(tmp_path):
    fitted(MADE["SAM"], 1, folder=tmp_path)
    for make in (
        lambda: optim.SAM(optim.Adam(lr=0.05), rho=0.02),
        lambda: optim.SAM(optim.AdamW(lr=0.05), rho=0.01),
    ):
        with pytest.raises(ArgumentError, match="optimizer that was saved differs"):
            fitted(make, 2, folder=tmp_path)


def test_an_optimizer_of_given_parameters_around_another():
    gt.manual_seed(0)
    net = gt.nn.Linear(3, 1, dtype=np.float64)
    loss = lambda net, batch: gt.mean((net(batch[0]) - batch[1]) ** 2)  # noqa: E731
    optimizer = optim.Lookahead(optim.SGD(net.parameters(), lr=0.1, momentum=0.5), k=3)
    run = gt.fit(net, loss, optimizer, BATCHES, epochs=8, progress=False)
    assert run.losses == fitted(MADE["Lookahead"], 8).losses


@pytest.mark.parametrize("name", ["L-BFGS", "SAM", "Lookahead of SAM"])
def test_gradients_that_an_optimizer_asks_for_cannot_be_clipped(name):
    with pytest.raises(ArgumentError, match=r"fit: got clip= with .*would not be clipped"):
        fitted(MADE[name], 1, clip=1.0)


def test_sophia_steps_along_clipped_gradients():
    free, clipped = fitted(MADE["Sophia"], 2), fitted(MADE["Sophia"], 2, clip=1e-3)
    assert free.losses[-1] < clipped.losses[-1]
