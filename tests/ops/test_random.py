"""Random numbers: their distribution, and that they are functions of key, offset and shape."""

import copy
import pickle
import threading

import numpy as np
import pytest
from scipy import special, stats

import gradtape as gt
import our_scipy
from gradtape import random
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    NotDifferentiableError,
    ShapeError,
    WriteError,
)
from gradtape.ops.generator import Words
from gradtape.ops.random import random_normal, random_uniform
from gradtape.ops.random_discrete import random_permutation
from gradtape.ops.random_positive import random_gamma
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
        (lambda n, **options: random.exponential(3.0, n, **options), stats.expon(scale=3)),
        (lambda n, **options: random.gamma(0.4, 2.0, n, **options), stats.gamma(0.4, scale=2)),
        (lambda n, **options: random.gamma(7.0, shape=n, **options), stats.gamma(7)),
        (lambda n, **options: random.beta(0.5, 3.0, n, **options), stats.beta(0.5, 3)),
    ],
    ids=["rand", "randn", "uniform", "normal", "exponential", "small gamma", "gamma", "beta"],
)
def test_distribution(draw, law, dtype):
    x = numbers(draw(COUNT, dtype=getattr(gt, dtype), generator=Generator(1)))
    assert stats.kstest(x, law.cdf).pvalue > SMALL
    spread = law.std() / COUNT**0.5
    assert abs(x.mean() - law.mean()) < 4 * spread
    for power in (2, 3, 4):
        moments = ((x - law.mean()) / law.std()) ** power
        expected = {2: 1, 3: law.stats("s"), 4: law.stats("k") + 3}[power]
        assert abs(moments.mean() - expected) < 4 * moments.std() / COUNT**0.5
    # Neighbours, and the two numbers that Box and Muller make of one pair, are independent.
    for lag in (1, 2, 3, 4, 8):
        assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) < 4 / COUNT**0.5
        assert abs(np.corrcoef(x[:-lag] ** 2, x[lag:] ** 2)[0, 1]) < 4 / COUNT**0.5


def test_distribution_of_logarithms():
    x = numbers(random.log_normal(1.0, 0.5, COUNT, generator=Generator(1)))
    assert stats.kstest(np.log(x), stats.norm(1, 0.5).cdf).pvalue > SMALL


def test_dirichlet():
    alpha = np.array([0.001, 0.5, 4.0])
    x = numbers(random.dirichlet(alpha, COUNT, generator=Generator(1)))
    np.testing.assert_allclose(x.sum(axis=-1), 1, rtol=1e-12)
    for column, a in zip(x.T[1:], alpha[1:], strict=True):
        assert stats.kstest(column, stats.beta(a, alpha.sum() - a).cdf).pvalue > SMALL
    # All parameters may be so small that each gamma number would be 0.
    x = numbers(random.dirichlet(np.full(3, 1e-4), 100, generator=Generator(1)))
    np.testing.assert_allclose(x.sum(axis=-1), 1, rtol=1e-12)


@pytest.mark.parametrize("mean", [0.0, 0.3, 9.5, 10.0, 300.0])
def test_counts(mean):
    x = numbers(random.poisson(mean, COUNT, generator=Generator(4)))
    law = stats.poisson(mean)
    values = np.arange(law.ppf(1e-3), law.ppf(1 - 1e-3) + 1)
    expected = COUNT * law.pmf(values)
    found = (x == values[:, None]).sum(axis=1)
    statistic = ((found - expected) ** 2 / expected).sum()
    assert stats.chi2(len(values)).sf(statistic) > SMALL


def test_categories():
    p = np.array([[0.1, 0.0, 0.9], [0.2, 0.3, 0.5]])
    with np.errstate(divide="ignore"):
        logits = np.log(p) + np.array([[5.0], [-700.0]])
    x = numbers(random.categorical(logits, (COUNT, 2), generator=Generator(5)))
    for column, row in zip(x.T, p, strict=True):
        found = np.bincount(column.astype(int), minlength=3)
        assert found[row == 0].sum() == 0
        expected = COUNT * row[row > 0]
        statistic = ((found[row > 0] - expected) ** 2 / expected).sum()
        assert stats.chi2(len(expected) - 1).sf(statistic) > SMALL
    across = random.categorical(logits.T, (COUNT, 2), axis=0, generator=Generator(5))
    np.testing.assert_array_equal(across, x)


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


def test_parts_of_a_generator_are_independent():
    generator = Generator(3)
    parts = [*generator.split(3), *generator.split(2)]
    parts += [Generator(3), generator, Generator(3).fold_in(0), Generator(3).fold_in("0")]
    parts += [parts[0].split(1)[0], Generator(3).fold_in("")]
    drawn = np.array([numbers(gt.randn(20_000, generator=part)) for part in parts])
    shares = np.corrcoef(drawn) - np.eye(len(drawn))
    # A right generator has correlations of 1/√20000.
    assert abs(shares).max() < 5 / np.sqrt(20_000)
    assert len({part.state[0] for part in parts}) == len(parts) - 1  # one is at another offset


def test_parts_of_a_generator_depend_on_its_state_alone():
    # The same on every platform: figures of NumPy's Philox and SeedSequence, which are fixed.
    first, second = Generator(7).split(2)
    assert first.state == ((8648156199155761070, 7861003179181181637), 0)
    assert Generator(7).fold_in(3).state == ((3749034214700016421, 6929252988812845845), 0)
    named = Generator(7).fold_in("dropout")
    assert named.state == ((6764398468970393607, 12733673550652982245), 0)
    assert second.state == Generator(7).split(5)[1].state
    moved = Generator(7)
    gt.rand(3, generator=moved)
    assert moved.split(2)[0].state != first.state
    assert moved.fold_in(3).state == Generator(7).fold_in(3).state
    assert moved.split(0) == ()


def test_parts_of_a_generator_inside_compiled_functions():
    @gt.jit
    def own(x):
        first, second = Generator(7).split()
        return x + gt.rand(3, generator=second) + gt.rand(3, generator=first.fold_in(1))

    first, second = Generator(7).split()
    expected = gt.rand(3, generator=second) + gt.rand(3, generator=first.fold_in(1))
    for _ in range(2):
        np.testing.assert_array_equal(own(np.zeros(3)), expected)
    outer = Generator(7)
    with pytest.raises(WriteError, match="splits a random generator from outside"):
        gt.jit(lambda x: x + gt.rand(generator=outer.split(1)[0]))(1.0)
    with pytest.raises(WriteError, match="derives another from a random generator"):
        gt.jit(lambda x: x + gt.rand(generator=outer.fold_in(1)))(1.0)


def test_states_are_saved_and_loaded(tmp_path):
    generator = Generator(10)
    gt.rand(7, generator=generator)
    gt.save(tmp_path / "state.safetensors", generator.state_dict())
    x = gt.rand(7, generator=generator)
    generator.load_state_dict(gt.load(tmp_path / "state.safetensors"))
    np.testing.assert_array_equal(gt.rand(7, generator=generator), x)
    state = gt.get_rng_state()
    x = gt.rand(5)
    gt.set_rng_state(state)
    np.testing.assert_array_equal(gt.rand(5), x)
    far = Generator(1)
    far.state = (far.state[0], 2**100)
    generator.load_state_dict(far.state_dict())
    assert generator.state == far.state


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda g: g.split(-1), "got -1 generators"),
        (lambda g: g.split(1.5), "got 1.5 generators"),
        (lambda g: g.fold_in(-1), "got -1, expected an integer from 0"),
        (lambda g: g.fold_in([1]), "got a list"),
        (lambda g: g.load_state_dict({}), 'one array, "state"'),
        (lambda g: g.load_state_dict([1]), "got a list"),
        (lambda g: g.load_state_dict({"state": np.zeros(4)}), "dtype float64"),
        (lambda g: g.load_state_dict({"state": np.zeros(3, np.uint64)}), r"shape \(3,\)"),
    ],
)
def test_bad_parts_and_states_change_nothing(change, match):
    generator = Generator(3)
    before = generator.state
    with pytest.raises(ArgumentError, match=match):
        change(generator)
    assert generator.state == before


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


@pytest.mark.parametrize("log", [False, True])
def test_gamma_moves_with_its_parameter_along_the_quantile(log):
    a = np.array([1e-3, 0.05, 0.7, 1.0, 3.0, 50.0, 1e4])

    def sample(a):
        if log:
            return random_gamma(a, shape=a.shape, log=True, **Generator(2).take(8 * a.size))
        return random.gamma(a, generator=Generator(2))

    x = np.exp(numbers(sample(a))) if log else numbers(sample(a))
    seen = x > 0  # where x has underflowed, only its logarithm still moves
    upper = special.gammaincc(a[seen], x[seen])

    def quantile(a):
        found = our_scipy.special.gammainccinv(a, upper)
        return gt.log(found) if log else found

    slopes = gt.grad(lambda a: gt.sum(sample(a)))(a)
    expected = gt.grad(lambda a: gt.sum(quantile(a)))(a[seen])
    np.testing.assert_allclose(slopes[seen], expected, rtol=1e-6)
    assert np.isfinite(slopes).all()
    curvatures = np.diag(gt.hessian(lambda a: gt.sum(sample(a)))(a))
    expected = np.diag(gt.hessian(lambda a: gt.sum(quantile(a)))(a[seen]))
    np.testing.assert_allclose(curvatures[seen], expected, rtol=1e-4)


def test_derivatives_of_expectations():
    alpha = np.array([0.4, 1.5, 3.0])

    def mean(alpha):
        return gt.mean(random.dirichlet(alpha, COUNT, generator=Generator(6)), axis=0)

    # E xᵢ = αᵢ/Σα
    total = alpha.sum()
    expected = np.eye(3) / total - alpha[:, None] / total**2
    np.testing.assert_allclose(gt.jacobian(mean)(alpha), expected, atol=3e-3)


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


def test_counts_are_not_differentiable():
    with pytest.raises(NotDifferentiableError, match="poisson"):
        gt.grad(lambda a: gt.sum(random.poisson(a, dtype=float)))(np.ones(3))


def test_the_first_of_many_elements_are_those_of_few():
    a = np.array([0.3, 2.0, 5.0, 20.0, 100.0])
    for draw in (random.gamma, random.poisson):
        many = numbers(draw(a, generator=Generator(3)))
        np.testing.assert_array_equal(draw(a[:3], generator=Generator(3)), many[:3])


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
        (lambda: random.gamma(np.array([1.0, 0.0])), ArgumentError, "finite number > 0"),
        (lambda: random.gamma(np.inf), ArgumentError, "finite number > 0"),
        (lambda: random.gamma(1j), DTypeError, "gamma: got parameters of complex128"),
        (lambda: random.gamma(1.0, dtype=int), DTypeError, "gamma: got dtype int64"),
        (lambda: random.beta(np.ones(3), 1.0, 2), ShapeError, "beta: got parameters"),
        (lambda: random.dirichlet(1.0), ShapeError, "dirichlet"),
        (lambda: random.poisson(np.nan), ArgumentError, "poisson: got a mean"),
        (lambda: random.poisson(1.0, dtype=complex), DTypeError, "poisson: got dtype complex128"),
        (lambda: random.categorical(np.ones(0)), ShapeError, "without categories"),
        (lambda: random.categorical(np.ones((3, 2)), 2), ShapeError, "categorical: got logits"),
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


def test_a_copy_of_one_without_a_seed_has_none():
    generator = gt.random.Generator()
    for one in (copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))):
        assert not one.seeded
        with gt.deterministic(), pytest.raises(gt.errors.NondeterministicError):
            gt.rand(generator=one)
    assert copy.deepcopy(gt.random.Generator(3)).seeded
