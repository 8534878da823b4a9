"""First values of parameters: their spread, their dtypes, and what they depend on."""

import ml_dtypes
import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.nn.init import ArrayRng, fans

DRAWS = {
    "glorot_uniform": lambda rng, shape: rng.glorot_uniform(shape),
    "glorot_normal": lambda rng, shape: rng.glorot_normal(shape),
    "he_uniform": lambda rng, shape: rng.he_uniform(shape),
    "he_normal": lambda rng, shape: rng.he_normal(shape),
    "standard_normal": lambda rng, shape: rng.standard_normal(shape),
    "standard_uniform": lambda rng, shape: rng.standard_uniform(shape),
    "random_uniform": lambda rng, shape: rng.random_uniform(shape, -1.0, 3.0),
    "random_normal": lambda rng, shape: rng.random_normal(shape, 5.0, 2.0),
    "bernoulli": lambda rng, shape: rng.bernoulli(shape, 0.3),
    "exponential": lambda rng, shape: rng.exponential(shape, 4.0),
    "gamma": lambda rng, shape: rng.gamma(shape, 3.0, 2.0),
    "log_normal": lambda rng, shape: rng.log_normal(shape, 0.1, 0.5),
}
# Of 200 × 300: inputs 200, outputs 300.
MOMENTS = {
    "glorot_uniform": (0, (2 / 500) ** 0.5),
    "glorot_normal": (0, (2 / 500) ** 0.5),
    "he_uniform": (0, (2 / 200) ** 0.5),
    "he_normal": (0, (2 / 200) ** 0.5),
    "standard_normal": (0, 1),
    "standard_uniform": (0.5, 12**-0.5),
    "random_uniform": (1, 4 * 12**-0.5),
    "random_normal": (5, 2),
    "bernoulli": (0.3, 0.21**0.5),
    "exponential": (0.25, 0.25),
    "gamma": (6, 12**0.5),
    "log_normal": (np.exp(0.225), (np.exp(0.25) - 1) ** 0.5 * np.exp(0.225)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_mean_and_spread(name):
    x = DRAWS[name](ArrayRng(1), (200, 300))
    mean, std = MOMENTS[name]
    assert type(x) is np.ndarray
    assert x.dtype == np.float64
    assert abs(x.mean() - mean) < 5 * std / x.size**0.5
    assert abs(x.std() / std - 1) < 0.03


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_dtypes_and_shapes(name, dtype):
    for shape in [(), (3,), (2, 0), (4, 3, 2)]:
        x = DRAWS[name](ArrayRng(0, dtype), shape)
        assert type(x) is np.ndarray
        assert x.dtype == dtype
        assert x.shape == shape
        assert np.isfinite(x.astype(float)).all()


@pytest.mark.parametrize("name", DRAWS)
def test_seeds_decide(name):
    draw = DRAWS[name]
    rng = ArrayRng(seed=3)
    first, second = draw(rng, (4, 5)), draw(rng, (4, 5))
    assert not np.array_equal(first, second)
    again = ArrayRng(seed=3)
    np.testing.assert_array_equal(draw(again, (4, 5)), first)
    np.testing.assert_array_equal(draw(again, (4, 5)), second)
    assert not np.array_equal(ArrayRng().standard_normal(4), ArrayRng().standard_normal(4))


# The numbers of torch.nn.init._calculate_fan_in_and_fan_out and Keras' compute_fans.
@pytest.mark.parametrize(
    ("shape", "outputs_first", "expected"),
    [
        ((), None, (1, 1)),
        ((7,), None, (7, 7)),
        ((20, 16), None, (20, 16)),
        ((20, 16), True, (16, 20)),
        ((32, 8, 5), None, (40, 160)),
        ((32, 8, 3, 3), None, (72, 288)),
        ((32, 8, 3, 3), True, (72, 288)),
        ((3, 3, 8, 32), False, (72, 288)),
        ((2, 3, 4, 8, 32), False, (192, 768)),
    ],
)
def test_fans(shape, outputs_first, expected):
    assert fans(shape, outputs_first) == expected


def test_limits_are_reached_but_not_passed():
    x = ArrayRng(0).glorot_uniform((100, 50))
    limit = (6 / 150) ** 0.5
    assert 0.99 * limit < abs(x).max() <= limit
    k = ArrayRng(0).he_uniform((16, 4, 5, 5))
    assert 0.99 * (6 / 100) ** 0.5 < abs(k).max() <= (6 / 100) ** 0.5
    w = ArrayRng(0).he_uniform((100, 6), outputs_first=True)
    assert 0.95 < abs(w).max() <= 1


def test_permutation(rng):
    own = ArrayRng(5)
    assert sorted(own.permutation(10).tolist()) == list(range(10))
    assert own.permutation(0).shape == (0,)
    rows = rng.normal(size=(6, 2))
    shuffled = own.permutation(rows)
    np.testing.assert_array_equal(np.sort(shuffled, 0), np.sort(rows, 0))
    assert {tuple(row) for row in shuffled} == {tuple(row) for row in rows}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda rng: ArrayRng("a"), ArgumentError),
        (lambda rng: ArrayRng(-1), ArgumentError),
        (lambda rng: ArrayRng(0, int), DTypeError),
        (lambda rng: ArrayRng(0, complex), DTypeError),
        (lambda rng: rng.glorot_uniform((2, -1)), ShapeError),
        (lambda rng: rng.glorot_uniform("ab"), ShapeError),
        (lambda rng: rng.random_normal(2, 0, -1), ArgumentError),
        (lambda rng: rng.random_normal(2, "a", 1), DTypeError),
        (lambda rng: rng.random_uniform(2, 1, 0), ArgumentError),
        (lambda rng: rng.bernoulli(2, 1.5), ArgumentError),
        (lambda rng: rng.exponential(2, 0), ArgumentError),
        (lambda rng: rng.gamma(2, -1), ArgumentError),
        (lambda rng: rng.log_normal(2, 0, float("nan")), ArgumentError),
        (lambda rng: rng.permutation(-1), ArgumentError),
        (lambda rng: rng.permutation(1.5), ArgumentError),
    ],
)
def test_bad_arguments(call, error):
    with pytest.raises(error):
        call(ArrayRng(0))


def test_it_is_found_at_nn():
    assert gt.nn.init.ArrayRng is ArrayRng
