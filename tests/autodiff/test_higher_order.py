"""Transforms of transforms: no confusion of perturbations, every mix of modes, any order."""

import itertools

import numpy as np
import pytest

import gradtape as gt

X = np.array([0.5, -1.0, 2.0])


def forward(f):
    """The derivative of a scalar function of a scalar, forward."""
    return lambda x: gt.jvp(f, (x,), (1.0,))[1]


def by_tape(f):
    """The same with a tape."""

    def slope(x):
        tape = gt.GradientTape()
        xi = tape.watch(x)
        return tape.gradient(f(xi), xi)

    return slope


MODES = {"reverse": gt.grad, "forward": forward, "tape": by_tape}
pairs = pytest.mark.parametrize(
    ("outer", "inner"),
    list(itertools.product(MODES.values(), MODES.values())),
    ids=[f"{a}-{b}" for a, b in itertools.product(MODES, MODES)],
)


@pairs
def test_no_perturbation_confusion(outer, inner):
    assert float(outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0)) == 1.0
    assert float(outer(lambda x: x * inner(lambda y: x * y * y)(1.0))(1.0)) == 4.0
    assert float(outer(lambda x: inner(lambda y: x + 0.0 * y)(x) + x)(1.0)) == 1.0
    assert float(outer(lambda x: inner(lambda y: y * x)(x) * x)(3.0)) == 6.0
    assert float(outer(lambda x: x * inner(lambda y: y * y)(x))(3.0)) == 12.0


@pairs
def test_a_function_returned_by_an_outer_level_does_not_confuse_levels(outer, inner):
    # Siskind and Pearlmutter's example: the shift must use its own perturbation each time.
    def shift(u):
        return lambda f: lambda x: f(x + u)

    def d(f):
        return lambda x: outer(lambda u: shift(u)(f)(x))(0.0)

    assert float(inner(d(lambda x: x**3))(2.0)) == 12.0


@pytest.mark.parametrize("modes", list(itertools.product(MODES, repeat=3)), ids="-".join)
def test_every_mix_of_modes_to_the_third_order(modes):
    def f(x):
        return np.sin(x) * x**3

    s, c = np.sin(2.0), np.cos(2.0)
    expected = [8 * c + 12 * s, 24 * c - 8 * s + 12 * s, 6 * s + 36 * c - 36 * s - 8 * c]
    for mode, value in zip(modes, expected, strict=True):
        f = MODES[mode](f)
        assert float(f(2.0)) == pytest.approx(value, rel=1e-13)


def non_separable(x):
    y = np.tanh(x) * x[::-1]
    return np.sum(y @ y + x[0] ** 2 * x[1] + np.exp(x[1:]) * x[:-1])


def test_the_four_hessians_agree_and_match_differences():
    hessians = [
        outer(inner(non_separable))(X)
        for outer in (gt.jacfwd, gt.jacrev)
        for inner in (gt.jacfwd, gt.jacrev)
    ]
    for hessian in hessians[1:]:
        np.testing.assert_allclose(hessian, hessians[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(hessians[0], hessians[0].T, rtol=1e-12, atol=1e-12)
    step = 1e-5
    slopes = [gt.grad(non_separable)(X + step * e) - gt.grad(non_separable)(X - step * e)
              for e in np.eye(3)]  # fmt: skip
    np.testing.assert_allclose(hessians[0], np.stack(slopes) / (2 * step), rtol=1e-7, atol=1e-7)


def test_second_derivatives_of_linear_functions_are_zero():
    for first, second in itertools.product(MODES.values(), repeat=2):
        assert float(first(second(lambda x: x * 3.0 + 1.0))(2.0)) == 0.0
    assert gt.hessian(np.sum)(X).tolist() == np.zeros((3, 3)).tolist()


@pytest.mark.parametrize("first", [gt.grad, forward], ids=["reverse", "forward"])
@pytest.mark.parametrize("second", [gt.grad, forward], ids=["reverse", "forward"])
def test_derivatives_of_constants_are_zero(first, second):
    assert float(second(lambda x: 7.0)(2.0)) == 0.0
    assert float(first(second(lambda x: 7.0))(2.0)) == 0.0


def test_derivatives_of_derivatives_with_respect_to_other_arguments():
    def f(x, y):
        return np.sum(np.sin(x) * y**2)

    mixed = gt.jacfwd(gt.grad(f, 0), 1)(X, X)
    np.testing.assert_allclose(mixed, np.diag(np.cos(X) * 2 * X), rtol=1e-13)
    swapped = gt.jacrev(gt.grad(f, 1), 0)(X, X)
    np.testing.assert_allclose(swapped, mixed.T, rtol=1e-13)


def test_a_pullback_is_differentiable_in_its_cotangent_and_its_primal():
    def pulled(x, ct):
        return np.sum(gt.vjp(lambda v: v**3, x)[1](ct)[0])

    by_x, by_ct = gt.grad(pulled, (0, 1))(X, np.full(3, 2.0))
    np.testing.assert_allclose(by_x, 12 * X)
    np.testing.assert_allclose(by_ct, 3 * X**2)


def test_differentiating_through_an_optimization_loop():
    def after_steps(rate):
        w = 1.0
        for _ in range(5):
            w = w - rate * gt.grad(lambda v: (v - 3.0) ** 2)(w)
        return (w - 3.0) ** 2

    # Each step multiplies the error −2 by 1 − 2·rate.
    def error(rate):
        return 4 * (1 - 2 * rate) ** 10

    assert float(after_steps(0.1)) == pytest.approx(error(0.1))
    assert float(gt.grad(after_steps)(0.1)) == pytest.approx(-80 * (1 - 0.2) ** 9)
    assert float(forward(after_steps)(0.1)) == pytest.approx(-80 * (1 - 0.2) ** 9)


def test_branches_and_loops_depend_on_values():
    def f(x):
        y = x
        while y < 10.0:
            y = y * y
        return y if x > 1.5 else -y

    assert gt.grad(f)(2.0) == 4 * 2.0**3
    assert forward(f)(1.25) == pytest.approx(-16 * 1.25**15)
