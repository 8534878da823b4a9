"""Random numbers: their distribution, and that they are functions of key, offset and shape."""

import copy
import pickle
import threading

import numpy as np
import pytest
from scipy import stats

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, NotDifferentiableError, ShapeError
from gradtape.ops.generator import Words
from gradtape.ops.random import random_normal, random_uniform
from gradtape.ops.random_discrete import random_permutation
from gradtape.random import Generator

FLOATS = ["float64", "float32", "float16", "bfloat16"]
COUNT = 200_000
# The chance that a right generator fails a test of this file; seeds are fixed, so none does.
SMALL = 1e-4


def numbers(tensor):
    return np.asarray(tensor).astype(np.float64)


# ---- distributions ----


@pytest.mark.parametrize("dtype", FLOATS[:2])
@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (gt.rand, stats.uniform()),
        (gt.randn, stats.norm()),
        (lambda n, **options: gt.uniform(-1.0, 3.0, n, **options), stats.uniform(-1, 4)),
        (lambda n, **options: gt.normal(2.0, 0.5, n, **options), stats.norm(2, 0.5)),
    ],
    ids=["rand", "randn", "uniform", "normal"],
)
def test_distribution(draw, law, dtype):
    x = numbers(draw(COUNT, dtype=getattr(gt, dtype), generator=Generator(1)))
    assert stats.kstest(x, law.cdf).pvalue > SMALL
    spread = law.std() / COUNT**0.5
    assert abs(x.mean() - law.mean()) < 4 * spread
    for power in (2, 3, 4):
        moments = ((x - law.mean()) / law.std()) ** power
        expected = {2: 1, 3: 0, 4: law.stats("k") + 3}[power]
        assert abs(moments.mean() - expected) < 4 * moments.std() / COUNT**0.5
    # Neighbours, and the two numbers that Box and Muller make of one pair, are independent.
    for lag in (1, 2, 3, 4, 8):
        assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) < 4 / COUNT**0.5
        assert abs(np.corrcoef(x[:-lag] ** 2, x[lag:] ** 2)[0, 1]) < 4 / COUNT**0.5


@pytest.mark.parametrize("dtype", FLOATS)
def test_ranges(dtype):
    generator = Generator(2)
    x = gt.rand(COUNT, dtype=getattr(gt, dtype), generator=generator)
    assert x.dtype == getattr(gt, dtype)
    assert numbers(x).min() >= 0
    assert numbers(x).max() < 1
    assert abs(numbers(x).mean() - 0.5) < 0.005
    y = gt.randn(COUNT, dtype=getattr(gt, dtype), generator=generator)
    assert y.dtype == getattr(gt, dtype)
    assert 4 < abs(numbers(y)).max() < 9
    assert abs(numbers(y).std() - 1) < 0.01


@pytest.mark.parametrize(("low", "high"), [(0, 10), (-3, 4), (0, 1), (250, 256)])
def test_integers(low, high):
    x = np.asarray(gt.randint(low, high, COUNT, generator=Generator(3)))
    assert x.dtype == np.int64
    counts = np.bincount(x - low, minlength=high - low)
    assert len(counts) == high - low
    if high - low > 1:
        assert stats.chisquare(counts).pvalue > SMALL


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_integers_of_the_whole_range(dtype):
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max) + 1
    x = np.asarray(gt.randint(low, high, COUNT, dtype=dtype, generator=Generator(4)))
    assert x.dtype == dtype
    scaled = (x.astype(np.float64) - low) / (high - low)
    assert abs(scaled.mean() - 0.5) < 0.01
    assert abs(scaled.std() - 12**-0.5) < 0.01


def test_integers_below():
    assert set(gt.randint(3, shape=100).tolist()) == {0, 1, 2}
    assert gt.randint(3).shape == ()


def test_bernoulli():
    p = np.array([0.0, 0.1, 0.5, 1.0], np.float32)
    x = gt.bernoulli(p, (COUNT, 4), generator=Generator(5))
    assert x.dtype == np.float32
    assert set(np.unique(np.asarray(x))) == {0, 1}
    means = numbers(x).mean(axis=0)
    assert means[0] == 0
    assert means[3] == 1
    assert abs(means - p).max() < 4 * 0.5 / COUNT**0.5
    assert gt.bernoulli(0.5).shape == ()
    assert gt.bernoulli(0.5, 3, dtype=gt.int64).dtype == gt.int64
    assert gt.bernoulli(1, 3).tolist() == [1, 1, 1]


def test_permutation():
    generator = Generator(6)
    orders = [tuple(gt.permutation(4, generator=generator).tolist()) for _ in range(6000)]
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > SMALL
    assert gt.permutation(0).shape == (0,)


def test_permutation_of_an_array():
    x = np.arange(12.0).reshape(4, 3)
    y = gt.permutation(x, generator=Generator(7))
    order = gt.permutation(4, generator=Generator(7)).tolist()
    np.testing.assert_array_equal(y, x[order])
    weights = np.arange(4.0)[:, None]
    gradient = gt.grad(lambda x: gt.sum(gt.permutation(x, generator=Generator(7)) * weights))(x)
    np.testing.assert_array_equal(gradient[order], np.broadcast_to(weights, (4, 3)))


# ---- functions of key, offset and shape ----


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [random_uniform, random_normal])
def test_a_longer_draw_begins_as_a_shorter_one(op, dtype):
    params = {"dtype": np.dtype(getattr(gt, dtype)), "key": (1, 2), "offset": 3}
    whole = op(shape=(40_001,), **params)
    for count in [*range(70), 16_383, 16_384, 16_385, 40_000]:
        part = op(shape=(count,), **params)
        np.testing.assert_array_equal(part.view(np.uint8), whole[:count].view(np.uint8))
    matrix = op(shape=(3, 5, 7), **params)
    np.testing.assert_array_equal(numbers(matrix).ravel(), numbers(whole[:105]))


@pytest.mark.parametrize("op", [random_uniform, random_normal])
def test_any_stretch_can_be_had_directly(op):
    params = {"dtype": np.dtype(np.float64), "key": (1, 2)}
    whole = op(shape=(400,), offset=7, **params)
    np.testing.assert_array_equal(op(shape=(360,), offset=17, **params), whole[40:])


def test_same_parameters_same_bits():
    params = {"shape": (1000,), "dtype": np.dtype(np.float32), "key": (5, 6), "offset": 2**70}
    first = random_normal(**params)
    gt.randn(10)
    np.testing.assert_array_equal(random_normal(**params), first)
    order = {"count": 100, "key": (5, 6), "offset": 1}
    np.testing.assert_array_equal(random_permutation(**order), random_permutation(**order))


def test_keys_and_offsets_differ():
    params = {"shape": (1000,), "dtype": np.dtype(np.float64)}
    streams = [((1, 2), 0), ((1, 3), 0), ((2, 2), 0), ((1, 2), 250), ((1, 2), 2**64)]
    drawn = [random_uniform(key=key, offset=offset, **params) for key, offset in streams]
    assert len(np.unique(drawn)) == 5000


def test_draws_of_a_generator_do_not_overlap():
    generator = Generator(8)
    drawn = [numbers(gt.rand(n, generator=generator)) for n in (1, 2, 3, 4, 5, 6, 100, 0, 7)]
    together = np.concatenate(drawn)
    assert len(np.unique(together)) == len(together) == 128


def test_seeds():
    assert Generator(1).state == Generator(1).state
    assert Generator(1).state != Generator(2).state
    assert Generator([1, 2]).state != Generator([2, 1]).state
    assert Generator().state[0] != Generator().state[0]
    gt.manual_seed(9)
    x = gt.randn(5)
    gt.manual_seed(9)
    assert gt.random.default_generator().state == gt.random.Generator(9).state
    np.testing.assert_array_equal(gt.randn(5), x)
    np.testing.assert_array_equal(gt.randn(5, generator=Generator(9)), x)
    assert "offset 2" in repr(gt.random.default_generator())


def test_state_goes_back():
    generator = Generator(10)
    gt.rand(7, generator=generator)
    state = generator.state
    x = gt.rand(7, generator=generator)
    generator.state = state
    np.testing.assert_array_equal(gt.rand(7, generator=generator), x)


def test_a_copy_goes_on_by_itself():
    generator = Generator(10)
    gt.rand(7, generator=generator)
    copies = [copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))]
    x = gt.rand(7, generator=generator)
    for other in copies:
        np.testing.assert_array_equal(gt.rand(7, generator=other), x)


def test_threads_share_a_generator():
    generator, drawn = Generator(11), []
    alone = [numbers(gt.rand(10, generator=generator)) for _ in range(8 * 50)]
    generator.manual_seed(11)

    def work():
        for _ in range(50):
            drawn.append(numbers(gt.rand(10, generator=generator)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # No draw was lost or given twice; only who got which depends on the threads.
    np.testing.assert_array_equal(sorted(x[0] for x in drawn), sorted(x[0] for x in alone))
    assert {x.tobytes() for x in drawn} == {x.tobytes() for x in alone}


# ---- as ops ----


def test_shapes_and_dtypes():
    assert gt.rand().shape == ()
    assert gt.rand(2, 3).shape == gt.rand((2, 3)).shape == gt.rand([2, 3]).shape == (2, 3)
    assert gt.randn((0, 3), dtype=gt.float32).shape == (0, 3)
    assert gt.randn((64, 10), dtype=gt.float32).dtype == gt.float32
    assert gt.uniform(np.zeros(3, np.float32), 1.0).dtype == gt.float32
    assert gt.uniform(np.zeros(3, np.float32), np.ones((2, 1))).shape == (2, 3)
    assert gt.uniform([0, 1], [1.0, 2.0], dtype=gt.float32).dtype == gt.float32
    assert gt.normal(np.zeros(3), 2.0, (2, 3)).shape == (2, 3)
    assert gt.normal(0, 1, 4).dtype == gt.float64


def test_reparameterized_draws_are_differentiable():
    def sample(law, a, b):
        return law(a, b, (3, 2), generator=Generator(12))

    a, b = np.array([0.5, 1.0]), np.array(2.0)
    weights = np.arange(6.0).reshape(3, 2)
    for law, by_first in ((gt.uniform, lambda noise: 1 - noise), (gt.normal, np.ones_like)):
        noise = numbers(sample(law, 0.0, 1.0))
        first, second = gt.grad(lambda a, b, law=law: gt.sum(sample(law, a, b) * weights), (0, 1))(
            a, b
        )
        np.testing.assert_allclose(first, (by_first(noise) * weights).sum(axis=0))
        np.testing.assert_allclose(second, (noise * weights).sum())


def test_bernoulli_is_not_differentiable():
    p = gt.full(3, 0.5, requires_grad=True)
    x = gt.bernoulli(p)
    assert gt.bernoulli(p.detach()).requires_grad is False
    with pytest.raises(NotDifferentiableError, match="probability"):
        gt.sum(x * 2.0).backward()
    with pytest.raises(NotDifferentiableError, match="probability"):
        gt.jvp(gt.bernoulli, (np.array(0.5),), (np.array(1.0),))
    # A mask that multiplies something else is the common case, and fine.
    y = gt.ones(3, requires_grad=True)
    gt.sum(gt.bernoulli(p.detach()) * y).backward()


def test_under_vmap_all_elements_get_the_same_numbers():
    def f(x):
        return x + gt.rand(2, generator=Generator(13))

    x = np.zeros((3, 2))
    expected = np.broadcast_to(numbers(gt.rand(2, generator=Generator(13))), (3, 2))
    np.testing.assert_array_equal(gt.vmap(f)(x), expected)
    p = np.array([0.0, 0.5, 1.0])
    coins = gt.vmap(lambda p: gt.bernoulli(p, 1000, generator=Generator(14)))(p)
    rows = [gt.bernoulli(q, 1000, generator=Generator(14)) for q in p]
    np.testing.assert_array_equal(coins, np.stack([np.asarray(row) for row in rows]))


def test_modes_see_draws():
    class See:
        kind = "observing"

        def run(self, op, args, params, proceed):
            seen.append((op, args, params))
            return proceed(op, args, params)

    seen = []
    with gt.using_mode(See()):
        x = gt.randn(3)
    ((op, args, params),) = seen
    assert (op.name, op.effect, args) == ("random_normal", "random", ())
    np.testing.assert_array_equal(op.evaluate(np, **params), x)


@pytest.mark.parametrize(
    ("draw", "error", "match"),
    [
        (lambda: gt.rand(-1), ShapeError, "negative"),
        (lambda: gt.rand(2, dtype=gt.int64), DTypeError, "float64, float32"),
        (lambda: gt.randn(2, dtype=gt.complex64), DTypeError, "complex64"),
        (lambda: gt.uniform(np.zeros(3), 1.0, (2,)), ShapeError, r"broadcasts to shape \(2,\)"),
        (lambda: gt.normal(np.zeros((2, 2)), 1.0, 2), ShapeError, r"\(2, 2\)"),
        (lambda: gt.normal(np.zeros(2), np.ones(3)), ShapeError, "broadcast"),
        (lambda: gt.bernoulli(np.zeros(3), 2), ShapeError, "bernoulli"),
        (lambda: gt.bernoulli(-0.1), ArgumentError, r"\[0, 1\]"),
        (lambda: gt.bernoulli(np.nan), ArgumentError, r"\[0, 1\]"),
        (lambda: gt.randint(3, 3), ArgumentError, "low < high"),
        (lambda: gt.randint(0, 300, 2, dtype=gt.uint8), ArgumentError, "256"),
        (lambda: gt.randint(0, 3, 2, dtype=gt.float32), DTypeError, "integer"),
        (lambda: gt.permutation(-1), ShapeError, "negative"),
        (lambda: gt.permutation(gt.tensor(3.0)), ShapeError, "one axis"),
        (lambda: gt.manual_seed(-1), ArgumentError, "non-negative"),
        (lambda: Generator("seed"), ArgumentError, "non-negative"),
        (lambda: Generator(1).manual_seed(None), ArgumentError, "non-negative"),
        (lambda: setattr(Generator(1), "state", 5), ArgumentError, "random state: got 5"),
        (lambda: setattr(Generator(1), "state", ((1, 2), -3)), ArgumentError, "offset from 0"),
        (lambda: setattr(Generator(1), "state", ((1, 2**64), 3)), ArgumentError, "64 bits"),
        (lambda: gt.rand(2, generator=0), ArgumentError, "got an int, expected a gt.random.Gen"),
        (lambda: gt.permutation(2, generator=np.random), ArgumentError, "generator: got a module"),
        (lambda: gt.nn.dropout(np.ones(2), generator=0), ArgumentError, "generator: got an int"),
        (lambda: gt.nn.gumbel_softmax(np.ones(2), generator=0), ArgumentError, "got an int"),
        (lambda: gt.randint(0.5, 3), ArgumentError, "randint: got low=0.5"),
        (lambda: gt.randint(np.zeros(3, int), 3), ArgumentError, "the same for all elements"),
        (lambda: gt.bernoulli(np.array([0.5j])), DTypeError, "bernoulli: got parameters"),
        (lambda: gt.bernoulli(0.5, dtype="U3"), DTypeError, "bernoulli: got dtype"),
        (lambda: gt.uniform(np.array(1j), dtype=float), DTypeError, "uniform: got parameters"),
    ],
)
def test_bad_arguments(draw, error, match):
    with pytest.raises(error, match=match):
        draw()


def test_draws_in_the_middle_of_a_draw() -> None:
    # As a signal handler may do.
    whole = Words((1, 2), 8)(12)
    draw = Words((1, 2), 8)
    parts = [draw(5)]
    other = Words((3, 4), 0)(7)
    parts.append(draw(7))
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(other, Words((3, 4), 0)(7))
