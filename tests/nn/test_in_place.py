"""First values written in place: their distributions, where they come from, and bad input."""

import ml_dtypes
import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError

init = gt.nn.init
SHAPE = (60, 40, 5)  # fan in 200, fan out 300
# Functions, and the mean, standard deviation and largest absolute value of what they draw.
DRAWS = {
    "uniform_": (lambda w: init.uniform_(w, -1.0, 3.0), 1.0, 4 / 12**0.5, 3.0),
    "normal_": (lambda w: init.normal_(w, 2.0, 0.5), 2.0, 0.5, np.inf),
    "trunc_normal_": (lambda w: init.trunc_normal_(w, std=2.0), 0.0, 2 * 0.5396, 2.0),
    "xavier_uniform_": (
        lambda w: init.xavier_uniform_(w, 2.0),
        0.0,
        2 * 0.004**0.5,
        2 * 0.012**0.5,
    ),
    "xavier_normal_": (lambda w: init.xavier_normal_(w, 2.0), 0.0, 2 * 0.004**0.5, np.inf),
    "kaiming_uniform_": (lambda w: init.kaiming_uniform_(w), 0.0, 0.1, 0.03**0.5),
    "kaiming_normal_": (lambda w: init.kaiming_normal_(w, mode="fan_out"), 0.0, 150**-0.5, np.inf),
    "kaiming_of_slopes": (lambda w: init.kaiming_normal_(w, a=3.0), 0.0, 0.001**0.5, np.inf),
    "kaiming_of_tanh": (
        lambda w: init.kaiming_normal_(w, nonlinearity="tanh"),
        *(0.0, 5 / 3 / 200**0.5, np.inf),
    ),
}


def parameter(shape=SHAPE, dtype=np.float64):
    return gt.nn.Parameter(np.full(shape, np.nan, dtype))


@pytest.mark.parametrize("name", DRAWS)
def test_moments(name):
    draw, mean, std, most = DRAWS[name]
    w = parameter()
    assert draw(w) is w
    numbers = w.detach().numpy()
    assert abs(numbers.mean() - mean) < 5 * std / numbers.size**0.5
    assert abs(numbers.std() / std - 1) < 0.03
    assert 0.9 * most < abs(numbers).max() <= most or most == np.inf


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16])
def test_dtypes_stay(dtype):
    for name in (
        "uniform_",
        "normal_",
        "trunc_normal_",
        "orthogonal_",
        "zeros_",
        "ones_",
        "dirac_",
    ):
        w = parameter((4, 3, 3), dtype)
        getattr(init, name)(w)
        assert w.dtype == dtype
        assert w.requires_grad
        assert not np.isnan(w.detach().numpy().astype(float)).any()


@pytest.mark.parametrize(
    ("mean", "std", "low", "high"),
    [(0.0, 1.0, -0.5, 2.0), (0.0, 1.0, 6.0, 7.0), (5.0, 0.5, 0.0, 2.0)],
)
def test_truncated_normal_has_the_density_of_the_interval(mean, std, low, high):
    w = init.trunc_normal_(parameter((40000,)), mean, std, low, high).detach().numpy()
    assert low <= w.min() < w.max() <= high
    # Against the density on a grid, which also holds in the tails.
    grid = np.linspace(low, high, 20001)
    weights = np.exp(
        -0.5 * ((grid - mean) / std) ** 2 + 0.5 * ((np.clip(mean, low, high) - mean) / std) ** 2
    )
    expected = (grid * weights).sum() / weights.sum()
    assert abs(w.mean() - expected) < 5 * w.std() / w.size**0.5


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 2, 3), (6, 2, 2), (4, 4)])
def test_orthogonal(shape):
    w = init.orthogonal_(parameter(shape), gain=2.0).detach().numpy().reshape(shape[0], -1)
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)


def test_orthogonal_matrices_are_equally_likely():
    # Half of them have a positive determinant; the Q of a QR decomposition has one sign only.
    signs = [
        np.sign(np.linalg.det(init.orthogonal_(parameter((2, 2))).detach())) for _ in range(64)
    ]
    assert 12 < signs.count(1.0) < 52


def test_array_rng_draws_the_same_kinds():
    rng = init.ArrayRng(0, gt.float32)
    w = rng.orthogonal((6, 4))
    np.testing.assert_allclose(w.T @ w, np.eye(4), atol=1e-6)
    kernel = rng.orthogonal((4, 2, 3)).reshape(4, 6)
    np.testing.assert_allclose(kernel @ kernel.T, np.eye(4), atol=1e-6)
    of_keras = rng.orthogonal((3, 2, 4), outputs_first=False).reshape(6, 4)
    np.testing.assert_allclose(of_keras.T @ of_keras, np.eye(4), atol=1e-6)
    x = rng.truncated_normal((50, 50), mean=1.0, std=0.1, lo=0.9, hi=1.1)
    assert x.dtype == np.float32
    assert 0.9 <= x.min() < 0.91
    assert 1.09 < x.max() <= 1.1000001


def test_given_numbers():
    w = init.dirac_(parameter((4, 2, 3)), groups=2).detach().numpy()
    x = np.random.default_rng(0).normal(size=(4, 7))
    np.testing.assert_array_equal(gt.nn.conv1d(x, w, padding=1, groups=2), x)
    w = init.sparse_(parameter((10, 3)), 0.25, 2.0).detach().numpy()
    np.testing.assert_array_equal((w == 0).sum(0), [3, 3, 3])
    np.testing.assert_array_equal(init.constant_(np.ones(2), 5.0), [5.0, 5.0])


def test_generators():
    def drawn(draw, **options):
        return draw(parameter((6, 4)), **options).detach().numpy()

    draws = [
        init.uniform_,
        init.normal_,
        init.trunc_normal_,
        init.xavier_uniform_,
        init.orthogonal_,
    ]
    for draw in [*draws, init.kaiming_normal_]:
        generators = [gt.random.Generator(3) for _ in range(2)]
        first, second = (drawn(draw, generator=generator) for generator in generators)
        np.testing.assert_array_equal(first, second)
        gt.manual_seed(1)
        third = drawn(draw)
        gt.manual_seed(1)
        np.testing.assert_array_equal(third, drawn(draw))
        assert not np.array_equal(first, third)


def test_what_was_read_before_stays():
    net = gt.nn.Linear(2, 1)
    state = net.state_dict()
    before = state["weight"].numpy().copy()
    init.ones_(net.weight)
    np.testing.assert_array_equal(state["weight"], before)
    gt.sum(net(np.ones((1, 2), np.float32))).backward()
    assert net.weight.grad.shape == (1, 2)


def test_buffers_and_frozen_parameters_can_be_written():
    net = gt.nn.BatchNorm1d(2)
    init.constant_(net.running_var, 4.0)
    init.zeros_(net.requires_grad_(False).weight)
    np.testing.assert_array_equal(net.running_var, [4.0, 4.0])
    np.testing.assert_array_equal(net.weight, [0.0, 0.0])
    assert not net.weight.requires_grad


def test_bad_input_writes_nothing():
    w = parameter()
    bad = [
        (ArgumentError, "result of an operation", lambda: init.zeros_(w * 2)),
        (ArgumentError, "expected a parameter", lambda: init.zeros_([1.0])),
        (ArgumentError, "expected a parameter", lambda: init.eye_([[1.0]])),
        (DTypeError, "int64", lambda: init.normal_(np.zeros(2, np.int64))),
        (ShapeError, r"shape \(3,\).*zeros_", lambda: init.xavier_normal_(parameter((3,)))),
        (ShapeError, "two axes", lambda: init.eye_(w)),
        (ArgumentError, "groups=7", lambda: init.dirac_(w, 7)),
        (ArgumentError, "mode='fan'", lambda: init.kaiming_normal_(w, mode="fan")),
        (
            ArgumentError,
            "nonlinearity='gelu'",
            lambda: init.kaiming_normal_(w, nonlinearity="gelu"),
        ),
        (ArgumentError, "std=-1", lambda: init.normal_(w, std=-1.0)),
        (ArgumentError, "b=-1", lambda: init.uniform_(w, 0.0, -1.0)),
        (ArgumentError, "from 3.0 to 2.0", lambda: init.trunc_normal_(w, a=3.0, b=2.0)),
        (ArgumentError, "normal numbers", lambda: init.trunc_normal_(w, a=90.0, b=91.0)),
    ]
    for kind, message, call in bad:
        with pytest.raises(kind, match=message):
            call()
    assert np.isnan(w.detach().numpy()).all()

    @gt.jit
    def compiled(x):
        init.normal_(w)
        return x

    with pytest.raises(UnsupportedError, match="normal_: got a random draw"):
        compiled(np.ones(2))
    assert np.isnan(w.detach().numpy()).all()
