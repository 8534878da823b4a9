"""A branch that `where` did not take and that has no finite value there adds exactly zero."""

import numpy as np
import pytest

import gradtape as gt

# name: (function, point, gradient); at some element of each point the other branch is undefined.
BRANCHES = {
    "sqrt": (lambda x: np.where(x > 0, np.sqrt(x), 0.0), [-1.0, 4.0], [0.0, 0.25]),
    "log": (lambda x: np.where(x > 0, np.log(x), 0.0), [-1.0, 0.0, 2.0], [0.0, 0.0, 0.5]),
    "log2": (lambda x: np.where(x > 0, np.log2(x), x), [0.0, 1.0], [1.0, 1 / np.log(2)]),
    "log10": (lambda x: np.where(x > 0, np.log10(x), x), [0.0, 1.0], [1.0, 1 / np.log(10)]),
    "log1p": (lambda x: np.where(x > -1, np.log1p(x), 0.0), [-1.0, 1.0], [0.0, 0.5]),
    "exp": (lambda x: np.where(x < 100, np.exp(x), 0.0), [0.0, 1000.0], [1.0, 0.0]),
    "expm1": (lambda x: np.where(x < 100, np.expm1(x), 0.0), [0.0, 1000.0], [1.0, 0.0]),
    "exp2": (lambda x: np.where(x < 100, np.exp2(x), 0.0), [0.0, 2000.0], [np.log(2), 0.0]),
    "softplus by hand": (
        lambda x: np.where(x > 30, x, np.log1p(np.exp(x))),
        [0.0, 1000.0],
        [0.5, 1.0],
    ),
    "reciprocal": (lambda x: np.where(x != 0, np.reciprocal(x), 0.0), [0.0, 2.0], [0.0, -0.25]),
    "divide": (lambda x: np.where(x != 0, (x + 1) / x, 0.0), [0.0, 2.0], [0.0, -0.25]),
    "divided": (lambda x: np.where(x > 1, x / (x - 1) ** 2, x), [1.0, 3.0], [1.0, -0.5]),
    "negative power": (lambda x: np.where(x != 0, x**-2.0, 0.0), [0.0, 1.0], [0.0, -2.0]),
    "fractional power": (lambda x: np.where(x > 0, x**1.5, 0.0), [-1.0, 4.0], [0.0, 3.0]),
    "exponent": (lambda x: np.where(x > 0, (x - 2.0) ** x, 0.0), [3.0, -0.5], [3.0, 0.0]),
    "arcsin": (lambda x: np.where(abs(x) < 1, np.arcsin(x), 0.0), [0.0, 2.0], [1.0, 0.0]),
    "arccos": (lambda x: np.where(abs(x) < 1, np.arccos(x), 0.0), [0.0, 2.0], [-1.0, 0.0]),
    "arccosh": (lambda x: np.where(x > 1, np.arccosh(x), 0.0), [0.0, 2.0], [0.0, 3**-0.5]),
    "arctanh": (lambda x: np.where(abs(x) < 1, np.arctanh(x), 0.0), [0.0, 1.0], [1.0, 0.0]),
}


@pytest.mark.parametrize(("function", "point", "gradient"), BRANCHES.values(), ids=BRANCHES.keys())
def test_the_gradient_is_that_of_the_branch_taken(function, point, gradient):
    x = np.array(point)
    with np.errstate(all="ignore"):  # NumPy warns of the values, as it should
        reverse = gt.grad(lambda v: np.sum(function(v)))(x)
        forward = np.diagonal(gt.jacfwd(function)(x))
        mapped = gt.vmap(gt.grad(function))(x)
        second = gt.hessian(lambda v: np.sum(function(v)))(x)
    for result in (reverse, forward, mapped):
        np.testing.assert_allclose(result, gradient, rtol=1e-14, atol=1e-15)
    assert np.isfinite(second).all()


def test_a_division_is_zero_by_both_arguments():
    x, y = np.array([1.0, 0.0, 3.0]), np.array([0.0, 0.0, 2.0])
    with np.errstate(all="ignore"):
        by_x, by_y = gt.grad(lambda x, y: np.sum(np.where(y != 0, x / y, 0.0)), (0, 1))(x, y)
    np.testing.assert_array_equal(by_x, [0, 0, 0.5])
    np.testing.assert_array_equal(by_y, [0, 0, -0.75])


def test_an_infinite_slope_of_a_finite_value_is_not_guessed():
    # d sqrt(x)²/dx is 1, but the chain rule says 0·∞ at 0: NaN, and not 0.
    assert np.isnan(gt.grad(lambda x: np.sqrt(x) ** 2)(0.0))


def test_second_derivatives_at_the_kink_of_a_norm_do_not_exist():
    assert gt.grad(np.linalg.norm)(np.zeros(2)).tolist() == [0, 0]
    assert np.isnan(gt.hessian(lambda w: np.linalg.norm(w) ** 2)(np.zeros(2))).all()
    assert np.isnan(gt.grad(gt.grad(lambda x: np.hypot(x, 0.0) ** 2))(0.0))
