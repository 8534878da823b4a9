"""Which bounds and constraints are active at a minimum: derivatives that are right, or an error."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.optimize

import gradtape as gt
from builds import SCIPY
from gradtape.errors import ConvergenceError

optimize = gt.scipy.optimize
minimize = optimize.minimize
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")


# ---- units --------------------------------------------------------------------------------------


def test_a_fit_in_small_units_is_not_at_its_bounds() -> None:
    t = np.linspace(0, 5e-6, 30)
    y = 2 * np.exp(-t / 1.5e-6) + 0.05 * np.cos(np.arange(30))

    def fitted(s: Any, **bounds: Any) -> Any:
        model = lambda t, a, tau: a * np.exp(-t / tau)  # noqa: E731
        return optimize.curve_fit(model, t, y + s * t * 1e6, p0=[1, 1e-6], **bounds)[0]

    expected = gt.jacobian(fitted)(0.0)
    found = gt.jacobian(lambda s: fitted(s, bounds=(0, np.inf)))(0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert expected[1] > 1e-6


@pytest.mark.parametrize("upper", [1e-3, None])
@pytest.mark.parametrize("method", ["L-BFGS-B", "TNC", "SLSQP"])
def test_a_minimum_in_small_units_is_not_at_its_bounds(method: str, upper: Any) -> None:
    if method == "SLSQP" and upper and SCIPY < (1, 16):
        pytest.skip("SciPy comes to no minimum")

    def solution(c: Any) -> Any:
        far = lambda x, c: np.sum((x / 1e-6 - c) ** 2)  # noqa: E731
        return minimize(far, np.array([1e-6]), (c,), method, bounds=[(0, upper)]).x / 1e-6

    np.testing.assert_allclose(gt.jacobian(solution)(2.5), [1.0], rtol=1e-8)


def test_an_inactive_constraint_of_small_size() -> None:
    def solution(a: Any) -> Any:
        inside = {"type": "ineq", "fun": lambda x: 1e-7 * (2 - x @ x)}
        far = lambda x, a: np.sum((x - a) ** 2)  # noqa: E731
        return minimize(far, np.array([0.1, 0.2]), (a,), "SLSQP", tol=1e-12, constraints=inside).x

    np.testing.assert_allclose(gt.jacobian(solution)(np.array([0.3, 0.4])), np.eye(2), atol=1e-8)


# ---- interior methods ---------------------------------------------------------------------------


def test_an_interior_method_leaves_a_gap_to_active_constraints() -> None:
    def below(k: Any) -> Any:
        limit = {"type": "ineq", "fun": lambda x, k: k - x[0], "args": (k,)}
        far = lambda x: (x[0] - 3.0) ** 2  # noqa: E731
        return minimize(far, np.zeros(1), method="trust-constr", constraints=limit).x

    np.testing.assert_allclose(gt.jacobian(below)(1.0), [1.0], atol=1e-8)

    def projected(c: Any, tol: Any) -> Any:
        plane = scipy.optimize.LinearConstraint([[1, 1]], -np.inf, 1)
        far = lambda x, c: np.sum((x - c) ** 2)  # noqa: E731
        return minimize(far, np.zeros(2), (c,), "trust-constr", constraints=plane, tol=tol).x

    for tol in (None, 1e-10):
        found = gt.jacobian(lambda c, t=tol: projected(c, t))(np.array([1.0, 2.0]))
        np.testing.assert_allclose(found, [[0.5, -0.5], [-0.5, 0.5]], atol=1e-8)


def test_an_interior_method_leaves_a_gap_to_active_bounds() -> None:
    def solution(c: Any) -> Any:
        coupled = lambda x, c: np.sum((x - c) ** 2) + x[0] * x[1]  # noqa: E731
        box = [(0, 1)] * 2
        return minimize(coupled, np.full(2, 0.5), (c,), "trust-constr", bounds=box).x

    found = gt.jacobian(solution)(np.array([2.0, 1.9]))
    np.testing.assert_allclose(found, np.zeros((2, 2)), atol=1e-10)


# ---- quadratic programs with known active sets --------------------------------------------------


class Quadratic(NamedTuple):
    """Minimize ½(x − c)ᵀH(x − c) for 0 ≤ x ≤ 1, and the Jacobian of x by c."""

    curvature: Any
    center: Any
    jacobian: Any


def quadratic(rng: np.random.Generator, margin: float = 1e-2) -> Quadratic:
    """A problem with slacks and multipliers of at least `margin`."""
    while True:
        square = rng.normal(size=(3, 3))
        curvature, center = square @ square.T + 0.3 * np.eye(3), rng.uniform(-0.7, 1.7, 3)
        for side in map(np.array, itertools.product((-1, 0, 1), repeat=3)):
            x, free, slopes = np.where(side < 0, 0.0, 1.0), side == 0, np.zeros((3, 3))
            inner = curvature[free][:, free]
            pull = curvature[free][:, ~free] @ (x - center)[~free]
            x[free] = center[free] - np.linalg.solve(inner, pull)
            slopes[free] = np.linalg.solve(inner, curvature[free])
            left = -side * (curvature @ (x - center))
            inside = np.minimum(x, 1 - x)
            if (left[~free] > margin).all() and (inside[free] > margin).all():
                return Quadratic(curvature, center, slopes)


# Of variables, objective and constraints.
UNITS = [(1, 1, 1), *((u, 1, 1) for u in (1e-8, 1e8)), *((1, u, 1) for u in (1e-8, 1e8))]
UNITS += [(1, 1, 1e-8), (1, 1, 1e8), (np.array([1e-6, 1.0, 1e6]), 1, 1)]
# Methods whose Jacobians are all right at default options, where problems are well-scaled.
ACCURATE = ("L-BFGS-B", "TNC", "SLSQP", "COBYLA", "COBYQA", "trust-constr", "trf", "dogbox")


def solver(method: str, kind: str, problem: Quadratic, units: Any) -> Any:
    """The minimum as a function of c, in units of 1, found in other ones."""
    unit, weight, scale = units
    start, upper = np.full(3, 0.5) * unit, np.ones(3) * unit
    root = np.sqrt(weight) * np.linalg.cholesky(problem.curvature).T

    def value(x: Any, c: Any) -> Any:
        return 0.5 * np.sum((root @ (x / unit - c)) ** 2)

    rows = np.eye(3) / unit * scale
    limits: dict[str, Any] = {
        "bounds": {"bounds": [(0, u) for u in upper]},
        "linear": {"constraints": scipy.optimize.LinearConstraint(rows, 0, scale)},
        "dict": {
            "constraints": [
                {"type": "ineq", "fun": lambda x: rows @ x},
                {"type": "ineq", "fun": lambda x: scale - rows @ x},
            ]
        },
        "least_squares": {},
        "curve_fit": {},
    }

    def solution(c: Any) -> Any:
        if kind == "least_squares":
            residuals = lambda x, c: root @ (x / unit - c)  # noqa: E731
            within = {"bounds": (0, upper), "method": method}
            return optimize.least_squares(residuals, start, args=(c,), **within).x / unit
        if kind == "curve_fit":
            model = lambda t, *p: root @ (np.stack(p) / unit)  # noqa: E731
            within = {"p0": start, "bounds": (0, upper), "method": method}
            return optimize.curve_fit(model, np.arange(3.0), root @ c, **within)[0] / unit
        return minimize(value, start, (c,), method, **limits[kind]).x / unit

    return solution


CONSTRAINED = ("SLSQP", "COBYLA", "COBYQA", "trust-constr")
WAYS = [(m, "bounds") for m in (*ACCURATE[:6], "Powell", "Nelder-Mead")]
WAYS += [(m, kind) for m in CONSTRAINED for kind in ("linear", "dict")]
WAYS += [(m, kind) for m in ("trf", "dogbox") for kind in ("least_squares", "curve_fit")]


@pytest.mark.parametrize(("method", "kind"), WAYS)
def test_quadratic_programs(
    method: str, kind: str, rng: np.random.Generator, thorough: bool
) -> None:
    failures = 0
    count = 40 if thorough else 4
    for _ in range(count):
        problem = quadratic(rng)
        try:
            found = gt.jacobian(solver(method, kind, problem, UNITS[0]))(problem.center)
        except ConvergenceError:
            failures += 1
        else:
            np.testing.assert_allclose(found, problem.jacobian, atol=1e-6)
    # Powell's method and that of Nelder and Mead get stuck at bounds.
    assert not failures or method not in ACCURATE


@pytest.mark.parametrize(("method", "kind"), WAYS)
def test_no_units_give_a_wrong_derivative(
    method: str, kind: str, rng: np.random.Generator, thorough: bool
) -> None:
    # Those that take many steps are tried in fewer.
    fast = method in ("L-BFGS-B", "TNC", "SLSQP", "trf", "dogbox")
    for units in UNITS if thorough or fast else UNITS[1:4:2]:
        for _ in range(10 if thorough else 1):
            problem = quadratic(rng)
            try:
                found = gt.jacobian(solver(method, kind, problem, units))(problem.center)
            except ConvergenceError:
                continue
            np.testing.assert_allclose(found, problem.jacobian, atol=1e-6)


def test_functions_that_are_not_convex() -> None:
    # A minimum on a circle, where the function alone has no minimum.
    def solution(angle: Any) -> Any:
        circle = scipy.optimize.NonlinearConstraint(lambda x: x @ x, -np.inf, 1.0)
        along = lambda x, a: -x[0] * np.cos(a) - x[1] * np.sin(a) - 0.1 * x @ x  # noqa: E731
        return minimize(along, np.full(2, 0.1), (angle,), "SLSQP", constraints=circle).x

    np.testing.assert_allclose(gt.jacobian(solution)(0.3), [-np.sin(0.3), np.cos(0.3)], atol=1e-8)

    # At the bound, the function is concave: it is held there all the same.
    def held(lower: Any) -> Any:
        return minimize(lambda x: -(x[0] ** 2), np.array([-0.5]), bounds=[(lower, 1.0)]).x

    np.testing.assert_allclose(gt.jacobian(held)(-2.0), [1.0], atol=1e-12)


def test_linear_programs() -> None:
    def corner(lower: Any, most: Any) -> Any:
        plane = {"type": "ineq", "fun": lambda x, most: most - np.sum(x), "args": (most,)}
        cost = lambda x: -2 * x[0] - x[1]  # noqa: E731
        bounds = [(0.0, 1e3), (lower, 1e3)]
        return minimize(cost, np.ones(2), bounds=bounds, constraints=plane).x

    by_lower, by_most = gt.jacobian(corner, (0, 1))(0.5, 4.0)
    np.testing.assert_allclose(by_lower, [-1.0, 1.0], atol=1e-8)
    np.testing.assert_allclose(by_most, [1.0, 0.0], atol=1e-8)


def test_many_variables() -> None:
    # Too many for Newton's method: gradients decide.
    c = np.linspace(-1.0, 2.0, 1200)

    def solution(c: Any, scale: Any = 1.0) -> Any:
        far = lambda x, c: np.sum((x / scale - c) ** 2)  # noqa: E731
        bounds = [(0.0, None)] * 1200
        return minimize(far, np.full(1200, 0.1 * scale), (c,), bounds=bounds, tol=1e-12).x / scale

    found = gt.jvp(solution, (c,), (np.ones(1200),))[1]
    np.testing.assert_allclose(found, np.where(c > 0, 1.0, 0.0), atol=1e-6)

    def stopped(c: Any) -> Any:
        far = lambda x, c: np.sum(np.cosh(x - c))  # noqa: E731
        return minimize(far, np.zeros(1200), (c,), "L-BFGS-B", options={"maxiter": 1}).x

    with pytest.raises(ConvergenceError, match="the residual is"):
        gt.jvp(stopped, (c,), (np.ones(1200),))


def test_a_minimum_that_is_inexact_is_refused() -> None:
    def solution(c: Any, tol: Any) -> Any:
        value = lambda x, c: np.sum(np.cosh(x - c))  # noqa: E731
        return minimize(value, np.zeros(2), (c,), "Nelder-Mead", tol=tol).x

    c = np.array([1.0, 2.0])
    np.testing.assert_allclose(gt.jacobian(lambda c: solution(c, 1e-6))(c), np.eye(2), atol=1e-8)
    with pytest.raises(
        ConvergenceError, match=r"x is off by .* of its size; lower tol or change units"
    ):
        gt.jacobian(lambda c: solution(c, 0.5))(c)
