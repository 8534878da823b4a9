"""Random numbers in compiled functions: others at each call, and the same as in eager code."""

import copy

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import NotDifferentiableError, WriteError
from gradtape.random import Generator

DRAWS = {
    "rand": lambda _x: (gt.rand(3), gt.rand(1)),
    "normal": lambda x: gt.normal(x, 2.0) + gt.uniform(0.0, x + 1),
    "bernoulli": lambda _x: gt.bernoulli(0.5, 60),
    "bernoulli of an argument": lambda x: gt.bernoulli(x + 0.5, (20, 3)),
    "randint": lambda _x: gt.randint(1000, shape=5),
    "permutation": lambda x: (gt.permutation(x + np.arange(3.0)), gt.permutation(60)),
    "dropout": lambda x: gt.nn.dropout(x + np.ones((20, 3))),
    "rrelu": lambda x: gt.nn.rrelu(x - 1, training=True),
    "gumbel_softmax": lambda x: gt.nn.gumbel_softmax(x),
    "one that is not used": lambda _x: (gt.rand(5), gt.rand(1))[1],
}


def numbers(tensor):
    return np.asarray(tensor).astype(np.float64)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_compiled_functions_draw_as_eager_ones_do(draw):
    """At each call other numbers, and the same as in eager code; also if called by another one."""
    compiled = gt.jit(draw)
    outer = gt.jit(lambda x: compiled(x))
    found = []
    for function in (draw, compiled, outer):
        gt.manual_seed(15)
        drawn = [gt.tree.flatten(function(np.zeros(3)))[0] for _ in range(3)]
        found.append([np.concatenate([numbers(x) for x in leaves]) for leaves in drawn])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-14)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-14)
    assert not np.array_equal(found[0][0], found[0][1])


def test_a_generator_made_inside_is_made_at_each_call():
    def fixed(x):
        generator = Generator(16)
        inner = gt.jit(lambda y: y + gt.rand(3, generator=generator))
        return inner(x) * gt.rand(3, generator=generator)

    expected, compiled = numbers(fixed(np.zeros(3))), gt.jit(fixed)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(np.zeros(3)), expected)
    free = gt.jit(lambda x: x + gt.rand(3, generator=Generator()))
    assert not np.array_equal(free(np.zeros(3)), free(np.zeros(3)))


def test_compiled_functions_do_not_seed_what_is_outside():
    generator = Generator(17)
    before = generator.state
    for seed in (gt.manual_seed, generator.manual_seed):

        def seeded(x, seed=seed):
            seed(0)
            return x + gt.rand(3)

        with pytest.raises(WriteError, match="seeds a random generator from outside"):
            gt.jit(seeded)(np.zeros(3))
    assert generator.state == before
    again = gt.jit(lambda x: x + gt.rand(3, generator=Generator().manual_seed(0)))
    np.testing.assert_array_equal(again(np.zeros(3)), again(np.zeros(3)))


def test_compiled_coins_have_no_derivative_either():
    def coins(p):
        return gt.sum(p * p + gt.bernoulli(p))

    p = np.full(3, 0.5)
    for slope in (
        lambda: gt.grad(gt.jit(coins))(p),
        lambda: gt.jit(gt.grad(coins))(p),
        lambda: gt.jvp(gt.jit(coins), (p,), (p,)),
    ):
        with pytest.raises(NotDifferentiableError, match="probability"):
            slope()


def test_batches_of_compiled_coins():
    p = np.array([0.0, 0.5, 1.0])
    coins = gt.jit(lambda p: gt.bernoulli(p, 50))
    gt.manual_seed(18)
    expected = gt.vmap(lambda p: gt.bernoulli(p, 50))(p)
    for function in (gt.vmap(coins), gt.jit(gt.vmap(coins))):
        gt.manual_seed(18)
        np.testing.assert_array_equal(function(p), expected)


def test_compiled_functions_do_not_read_the_state_of_what_is_outside():
    outside = gt.random.Generator(9)
    copied = gt.jit(lambda x: x + gt.randn(2, generator=copy.deepcopy(outside)))
    with pytest.raises(WriteError, match="reads the state of a random generator from outside"):
        copied(np.zeros(2))
