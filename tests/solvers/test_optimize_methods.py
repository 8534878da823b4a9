"""SciPy's functions for one method: values are SciPy's, derivatives those of the solution."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.optimize as theirs

import gradtape as gt
from gradtape.errors import ConvergenceError, UnsupportedError
from gradtape.testing import check_grads

ours = gt.scipy.optimize
BRACKETED = ["bisect", "brenth", "brentq", "ridder", "toms748"]
OTHERS = ["newton", "fsolve", "leastsq", "minimize_scalar"]
LOOSE = {"rtol": 1e-4, "atol": 1e-4}
POINTS = np.linspace(0, 1, 8)
VALUES = 2 * np.exp(0.5 * POINTS) + 0.01 * np.cos(9 * POINTS)


def cubic(x: Any, a: Any) -> Any:
    return x**3 + a * x - 1.0


def pair(x: Any, a: Any) -> Any:
    return np.stack([x[0] ** 2 + x[1] - a, x[0] - x[1]])


def residuals(p: Any, y: Any) -> Any:
    return p[0] * np.exp(p[1] * POINTS) - y


def bowl(x: Any, a: Any) -> Any:
    return np.cosh(x - a) + 0.1 * x * x


@pytest.mark.parametrize("name", [*BRACKETED, *OTHERS])
def test_signatures_are_scipys(name: str) -> None:
    one, other = (inspect.signature(getattr(f, name)).parameters for f in (ours, theirs))
    assert [(p.name, p.kind, p.default) for p in one.values()] == [
        (p.name, p.kind, p.default) for p in other.values()
    ]


@pytest.mark.parametrize("name", BRACKETED)
def test_roots_between_points(name: str) -> None:
    find = getattr(ours, name)
    assert find.__name__ == name
    wanted = getattr(theirs, name)(cubic, 0.0, 2.0, (0.5,))
    assert find(cubic, 0.0, 2.0, (0.5,)) == wanted
    assert find(cubic, 0.0, 2.0, (0.5,), full_output=True)[1].converged
    check_grads(lambda a: find(cubic, 0.0, 2.0, (a,)), (0.5,), order=2, **LOOSE)
    slope = gt.grad(lambda a: find(lambda x: cubic(x, a), 0.0, 2.0))(0.5)
    np.testing.assert_allclose(slope, -wanted / (3 * wanted**2 + 0.5), rtol=1e-6)
    np.testing.assert_allclose(gt.jit(lambda a: find(cubic, 0.0, 2.0, (a,)))(0.5), wanted)


def test_newton() -> None:
    assert ours.newton(cubic, 0.7, args=(0.5,)) == theirs.newton(cubic, 0.7, args=(0.5,))
    assert ours.newton(cubic, 0.7, args=(0.5,), full_output=True)[1].converged

    def slope(x: Any, a: Any) -> Any:
        return 3 * x * x + a

    for options in ({}, {"fprime": slope}, {"fprime": slope, "fprime2": lambda x, a: 6 * x}):

        def root(a: Any, options: Any = options) -> Any:
            return ours.newton(cubic, 0.7, args=(a,), **options)

        check_grads(root, (0.5,), order=2, **LOOSE)
        np.testing.assert_allclose(gt.jit(root)(0.5), root(0.5), rtol=1e-8)
        found = gt.vmap(root)(np.array([0.5, 0.6]))
        np.testing.assert_allclose(found, [root(0.5), root(0.6)], rtol=1e-8)
    several = np.array([0.7, 0.8])
    check_grads(
        lambda a: ours.newton(cubic, several, args=(a,)), (np.array([0.5, 0.6]),), order=2, **LOOSE
    )
    outside = gt.grad(lambda a: ours.newton(lambda x: cubic(x, a), 0.7, x1=0.8))(0.5)
    np.testing.assert_allclose(outside, gt.grad(lambda a: ours.brentq(cubic, 0, 2, (a,)))(0.5))
    root = ours.newton(lambda x, a: x * x + a, 1.0 + 1.0j, args=(gt.tensor(4.0),))
    np.testing.assert_allclose(root, 2.0j, atol=1e-7)
    with pytest.raises(ConvergenceError, match="newton: got no solution"):
        gt.grad(lambda a: ours.newton(lambda x, a: x * x + a, 1.0, args=(a,)))(0.5)
    with pytest.raises(UnsupportedError, match="full_output"):
        ours.newton(cubic, 0.7, args=(gt.tensor(0.5),), full_output=True)


def test_fsolve() -> None:
    wanted = theirs.fsolve(pair, [1.0, 1.0], (2.5,))
    np.testing.assert_array_equal(ours.fsolve(pair, [1.0, 1.0], (2.5,)), wanted)
    assert ours.fsolve(pair, [1.0, 1.0], (2.5,), full_output=True)[2] == 1
    check_grads(lambda a: ours.fsolve(pair, [1.0, 1.0], (a,)), (2.5,), order=2, **LOOSE)
    one = gt.jacobian(lambda a: ours.fsolve(pair, [1.0, 1.0], (a,)))(2.5)
    other = gt.jacobian(lambda a: ours.fsolve(lambda x: pair(x, a), [1.0, 1.0], xtol=1e-12))(2.5)
    np.testing.assert_allclose(one, other, rtol=1e-8)
    with pytest.raises(UnsupportedError, match="full_output"):
        ours.fsolve(pair, [1.0, 1.0], (gt.tensor(2.5),), full_output=True)


def test_leastsq() -> None:
    wanted = theirs.leastsq(residuals, [1.0, 0.0], (VALUES,))
    found = ours.leastsq(residuals, [1.0, 0.0], (VALUES,))
    np.testing.assert_array_equal(found[0], wanted[0])
    x, status = ours.leastsq(residuals, [1.0, 0.0], (gt.tensor(VALUES),))
    np.testing.assert_allclose(x, wanted[0], rtol=1e-7)
    assert status in (1, 2, 3, 4)

    def fitted(y: Any) -> Any:
        return ours.leastsq(residuals, [1.0, 0.0], (y,))[0]

    check_grads(fitted, (VALUES,), order=1, **LOOSE)
    np.testing.assert_allclose(gt.jit(fitted)(VALUES), fitted(VALUES), rtol=1e-7)
    with pytest.raises(UnsupportedError, match="col_deriv"):
        ours.leastsq(residuals, [1.0, 0.0], (gt.tensor(VALUES),), col_deriv=True)


@pytest.mark.parametrize(
    "options", [{}, {"bracket": (0, 1)}, {"bounds": (-2.0, 3.0)}, {"method": "golden"}], ids=str
)
def test_minima_of_one_number(options: Any) -> None:
    wanted = theirs.minimize_scalar(bowl, args=(0.5,), **options)
    assert ours.minimize_scalar(bowl, args=(0.5,), **options).x == wanted.x

    def lowest(a: Any) -> Any:
        return ours.minimize_scalar(bowl, args=(a,), **options).x

    def exact(a: Any) -> Any:
        return ours.brentq(lambda x, a: np.sinh(x - a) + 0.2 * x, -1.0, 2.0, (a,))

    for wrap in (gt.grad, lambda f: gt.grad(gt.grad(f)), lambda f: gt.jit(gt.grad(f))):
        np.testing.assert_allclose(wrap(lowest)(0.5), wrap(exact)(0.5), rtol=1e-6)
    np.testing.assert_allclose(gt.jvp(lowest, (0.5,), (1.0,))[1], gt.grad(exact)(0.5), rtol=1e-6)
    x = np.array([0.4, 0.5])
    np.testing.assert_allclose(gt.vmap(lowest)(x), [exact(a) for a in x], atol=1e-6)


def test_the_value_at_a_minimum() -> None:
    def value(a: Any) -> Any:
        return ours.minimize_scalar(lambda x: bowl(x, a)).fun

    x = theirs.minimize_scalar(bowl, args=(0.5,)).x
    np.testing.assert_allclose(gt.grad(value)(0.5), -np.sinh(x - 0.5), rtol=1e-6)
    assert ours.minimize_scalar(bowl, args=(gt.tensor(0.5),)).success


def test_a_minimum_at_a_bound_has_no_derivative() -> None:
    with pytest.raises(ConvergenceError, match="minimize_scalar: got no solution"):
        gt.grad(lambda a: ours.minimize_scalar(bowl, args=(a,), bounds=(1.0, 3.0)).x)(0.5)
    with pytest.raises(UnsupportedError, match="bracket or bounds"):
        ours.minimize_scalar(bowl, bounds=(gt.tensor(0.0), 1.0), args=(0.5,))
