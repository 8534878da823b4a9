"""Functions that gradtape cannot differentiate: SciPy takes differences, and a warning says so."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import gradtape as gt
from builds import SCIPY
from gradtape.errors import ArgumentError, ConversionError, DifferencesWarning

optimize = gt.scipy.optimize


# ---- the examples of SciPy's documentation ------------------------------------------------------


def residuals(x: Any) -> Any:
    return np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]], float)


def equations(x: Any) -> Any:
    cube = 0.5 * (x[0] - x[1]) ** 3
    return np.array([x[0] + cube - 1, x[1] - cube], float)


def squares(x: Any) -> float:
    return float(np.sum(x**2))


def below_one(x: Any) -> Any:
    return np.array([1 - x[0] - x[1]], float)


def exponential(x: float) -> float:
    return math.exp(x) - 1


def decay(t: Any, a: float, b: float) -> Any:
    return np.array([a * math.exp(-b * s) for s in t])


T = np.linspace(0.0, 1.0, 5)
Y = decay(T, 2.0, 1.0)
LIMIT = {"type": "ineq", "fun": below_one}
CLASS = scipy.optimize.NonlinearConstraint(below_one, 0.0, np.inf)
FAR = lambda x: np.sum((x - 2) ** 2)  # noqa: E731
# Before SciPy 1.16 this method knew no other, and warned.
LM = "3-point" if SCIPY >= (1, 16) else "2-point"
# A call, given the namespace, and the options that ask for differences.
EXAMPLES: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (lambda o, **k: o.minimize(scipy.optimize.rosen, [1.3, 0.7], **k).x, {"jac": "2-point"}),
    (lambda o, **k: o.minimize(squares, [1.0, 2.0], **k).x, {"jac": "3-point"}),
    (lambda o, **k: o.least_squares(residuals, [2, 2], **k).x, {"jac": "2-point"}),
    (lambda o, **k: o.least_squares(residuals, [2, 2], method="lm", **k).x, {"jac": LM}),
    (lambda o, **k: o.root(equations, [1, 1], **k).x, {"jac": False}),
    (lambda o, **k: o.root(equations, [1, 1], method="lm", **k).x, {"jac": False}),
    (lambda o, **k: o.minimize(FAR, [1.0, 1.0], constraints=LIMIT, **k).x, {"jac": "2-point"}),
    (lambda o, **k: o.minimize(FAR, [1.0, 1.0], constraints=CLASS, **k).x, {"jac": "2-point"}),
    (lambda o, **k: o.root_scalar(exponential, x0=0.2, **k).root, {"fprime": False}),
    (lambda o, **k: o.root_scalar(exponential, x0=0.2, x1=0.1, **k).root, {"method": "secant"}),
    (lambda o, **k: o.curve_fit(decay, T, Y, **k)[0], {"jac": "2-point"}),
    (lambda o, **k: o.curve_fit(decay, T, Y, bounds=(0, 9), **k)[0], {"jac": "3-point"}),
]


@pytest.mark.parametrize(("example", "options"), EXAMPLES)
def test_plain_calls_are_as_easy_as_scipys(example: Any, options: dict[str, Any]) -> None:
    expected = example(scipy.optimize)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = example(optimize)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    # The secant method takes no derivative.
    assert len(caught) == ("method" not in options)
    for warning in caught:
        assert warning.category is DifferencesWarning
        assert warning.filename == __file__
        assert "SciPy takes differences" in str(warning.message)
        assert "without a warning" in str(warning.message)
    # Warnings are errors here: to ask for differences gives none.
    np.testing.assert_allclose(example(optimize, **options), expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore:delta_grad")
def test_differences_of_constraints() -> None:
    for method in ("SLSQP", "trust-constr"):
        for way in ("2-point", "3-point"):
            limit = scipy.optimize.NonlinearConstraint(lambda x: 1 - x @ x, 0, np.inf)
            asked = {"type": "ineq", "fun": lambda x: np.array([1 - x @ x]), "jac": way}
            found, expected = (
                optimize.minimize(FAR, [0.1, 0.2], method=method, constraints=c, tol=1e-10).x
                for c in (asked, limit)
            )
            np.testing.assert_allclose(found, expected, atol=1e-3)


def test_what_is_differentiated_takes_derivatives() -> None:
    def solution(a: Any) -> Any:
        return optimize.minimize(lambda x, a: math.cosh(x[0] - a), np.ones(1), (a,)).x[0]

    with pytest.raises(
        ConversionError, match=r"np\.sin instead of math\.sin, np\.stack instead of"
    ):
        gt.grad(solution)(1.0)


def test_wrong_functions_and_options() -> None:
    with pytest.raises(ZeroDivisionError):
        optimize.minimize(lambda _x: 1 / 0, [1.0])
    with pytest.raises(ArgumentError, match="root: got jac='3-point', expected a function, True"):
        optimize.root(equations, [1, 1], jac="3-point")
    with pytest.raises(ValueError, match="fprime must be specified for halley"):
        optimize.root_scalar(exponential, x0=0.2, method="halley")
