"""`gradtape.scipy.optimize.minimize`: minima with derivatives, bounds and constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import gradtape as gt
from gradtape.errors import ArgumentError, ConvergenceError, LinAlgError, ShapeError
from gradtape.testing import check_grads

minimize = gt.scipy.optimize.minimize
TIGHT = {"rtol": 1e-8, "atol": 1e-10}


# ---- ridge regression ---------------------------------------------------------------------------


def ridge(w: Any, x: Any, y: Any, penalty: Any) -> Any:
    return 0.5 * np.sum((x @ w - y) ** 2) + 0.5 * penalty * np.sum(w * w)


def normal_equations(x: Any, y: Any, penalty: Any) -> Any:
    return gt.solve(x.T @ x + penalty * np.eye(3), x.T @ y)


@pytest.fixture
def data(rng: np.random.Generator) -> Any:
    return rng.normal(size=(10, 3)), rng.normal(size=10), 0.5


# Methods that come as near to the minimum as derivatives are to be compared.
METHODS = [
    None, "BFGS", "CG", "Newton-CG", "SLSQP", "trust-ncg", "trust-krylov", "trust-exact", "dogleg",
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_ridge_regression_against_the_normal_equations(method: Any, data: Any) -> None:
    def fitted(x: Any, y: Any, penalty: Any) -> Any:
        return minimize(ridge, np.zeros(3), args=(x, y, penalty), method=method, tol=1e-10).x

    np.testing.assert_allclose(fitted(*data), normal_equations(*data), **TIGHT)
    found = gt.jacobian(fitted, (0, 1, 2))(*data)
    expected = gt.jacobian(normal_equations, (0, 1, 2))(*data)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, **TIGHT)


@pytest.mark.parametrize("method", ["L-BFGS-B", "TNC", "Nelder-Mead", "Powell", "COBYQA"])
def test_derivatives_are_as_accurate_as_the_minimum(method: str, data: Any) -> None:
    x, y, penalty = data

    def fitted(p: Any) -> Any:
        return minimize(ridge, np.zeros(3), args=(x, y, p), method=method, tol=1e-9).x

    found = gt.jacobian(fitted)(penalty)
    expected = gt.jacobian(lambda p: normal_equations(x, y, p))(penalty)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_modes_and_second_order(data: Any) -> None:
    x, y, penalty = data

    def fitted(p: Any) -> Any:
        return minimize(ridge, np.zeros(3), args=(x, y, p), tol=1e-10).x

    def exact(p: Any) -> Any:
        return normal_equations(x, y, p)

    expected = gt.jacfwd(gt.jacfwd(exact))(penalty)
    for outer in (gt.jacfwd, gt.jacrev):
        for inner in (gt.jacfwd, gt.jacrev):
            np.testing.assert_allclose(outer(inner(fitted))(penalty), expected, **TIGHT)
    np.testing.assert_allclose(gt.jit(gt.jacobian(fitted))(penalty), gt.jacfwd(exact)(penalty))
    many = np.array([0.1, 0.5])
    np.testing.assert_allclose(
        gt.vmap(gt.jacrev(fitted))(many), gt.vmap(gt.jacfwd(exact))(many), **TIGHT
    )


def test_value_at_the_minimum(data: Any) -> None:
    # The envelope theorem: the derivative of the least value is the partial derivative.
    x, y, penalty = data

    def least(p: Any) -> Any:
        return minimize(ridge, np.zeros(3), args=(x, y, p), tol=1e-10).fun

    w = normal_equations(x, y, penalty)
    np.testing.assert_allclose(gt.grad(least)(penalty), 0.5 * np.sum(w * w), **TIGHT)


def test_nonlinear_with_containers_and_closures(thorough: bool) -> None:
    target = np.array([0.3, -0.4])

    def solution(p: Any) -> Any:
        def f(x: Any, args: Any) -> Any:
            return np.sum(np.cosh(x - target)) + args["a"] * x[0] * x[1] + p["b"] * np.sum(x**4)

        return minimize(f, np.zeros(2), args=({"a": p["a"]},), method="Newton-CG", tol=1e-12).x

    parameters = {"a": np.float64(0.3), "b": np.float64(0.2)}
    check_grads(solution, (parameters,), order=2 if thorough else 1, rtol=1e-5)
    compiled = gt.jit(gt.jacobian(solution))(parameters)
    eager = gt.jacobian(solution)(parameters)
    np.testing.assert_allclose(compiled["b"], eager["b"], **TIGHT)


def test_without_tensors_it_is_scipys(data: Any) -> None:
    x0 = np.zeros(3)
    for method in ("BFGS", "L-BFGS-B", "Nelder-Mead", "trust-exact"):
        slope = {"jac": gt.grad(ridge), "hess": gt.hessian(ridge)} if "trust" in method else {}
        ours = minimize(ridge, x0, data, method)
        theirs = scipy.optimize.minimize(ridge, x0, data, method, **slope)
        assert type(ours) is type(theirs)
        assert set(ours) == set(theirs)
        for key in theirs:
            assert type(ours[key]) is type(theirs[key])
        assert ours.x.dtype == theirs.x.dtype
        np.testing.assert_allclose(ours.x, theirs.x, atol=1e-3)


def test_derivatives_save_evaluations(data: Any) -> None:
    ours, theirs = (
        m.minimize(ridge, np.zeros(3), data) for m in (gt.scipy.optimize, scipy.optimize)
    )
    assert ours.nfev * 3 < theirs.nfev


def test_derivatives_of_ones_own(data: Any) -> None:
    x, y, _ = data
    asked = []

    def slope(w: Any, p: Any) -> Any:
        asked.append("jac")
        return x.T @ (x @ w - y) + p * w

    def products(w: Any, v: Any, p: Any) -> Any:
        asked.append("hessp")
        return x.T @ (x @ v) + p * v

    def value(w: Any, p: Any) -> Any:
        return ridge(w, x, y, p)

    expected = gt.jacobian(lambda p: normal_equations(x, y, p))(0.5)
    for fun, options in (
        (value, {"jac": slope}),
        (value, {"jac": slope, "hessp": products, "method": "Newton-CG"}),
        (lambda w, p: (value(w, p), slope(w, p)), {"jac": True}),
        (value, {"jac": "3-point"}),
    ):
        solve = lambda p, f=fun, o=options: minimize(f, np.zeros(3), (p,), tol=1e-9, **o).x  # noqa: E731
        np.testing.assert_allclose(gt.jacobian(solve)(0.5), expected, rtol=1e-5)
    assert set(asked) == {"jac", "hessp"}


# ---- bounds -------------------------------------------------------------------------------------


def coupled(x: Any, c: Any) -> Any:
    return np.sum((x - c) ** 2) + x[0] * x[1]


LIMITS = [(0.0, None), (None, 0.25), (None, None)]


@pytest.mark.parametrize("method", ["L-BFGS-B", "TNC", "SLSQP", "trust-constr", "Nelder-Mead"])
def test_active_bounds_hold_variables(method: str) -> None:
    c = np.array([2.0, 2.0, 0.3])

    def solution(c: Any, upper: Any) -> Any:
        bounds = [(0.0, None), (None, upper), (None, None)]
        return minimize(coupled, np.zeros(3), (c,), method, bounds=bounds, tol=1e-9).x

    # x₁ is at its bound; x₀ = c₀ − x₁/2, x₂ = c₂
    np.testing.assert_allclose(solution(c, 0.25), [1.875, 0.25, 0.3], atol=1e-4)
    by_c, by_bound = gt.jacobian(solution, (0, 1))(c, 0.25)
    np.testing.assert_allclose(by_c, np.diag([1.0, 0.0, 1.0]), atol=1e-12)
    np.testing.assert_allclose(by_bound, [-0.5, 1.0, 0.0], atol=1e-12)


def test_bounds_that_hold_nothing_back() -> None:
    inside = scipy.optimize.Bounds(-10.0, 10.0)
    for bounds in (inside, [(-10, 10)] * 3, None):
        solve = lambda c, b=bounds: minimize(coupled, np.zeros(3), (c,), bounds=b, tol=1e-12).x  # noqa: E731
        found = gt.jacobian(solve)(np.array([2.0, 2.0, 0.3]))
        # 2x₀ + x₁ = 2c₀ and 2x₁ + x₀ = 2c₁
        expected = [[4 / 3, -2 / 3, 0], [-2 / 3, 4 / 3, 0], [0, 0, 1]]
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_bounds_compiled_and_batched() -> None:
    def solution(c: Any) -> Any:
        return minimize(coupled, np.zeros(3), (c,), bounds=LIMITS, tol=1e-10).x

    # The first is at both of its bounds, the second at none.
    c = np.array([[-1.0, 2.0, 0.3], [1.0, -1.0, 0.3]])
    expected = [gt.jacobian(solution)(each) for each in c]
    np.testing.assert_allclose(expected[0], np.diag([0.0, 0.0, 1.0]), atol=1e-12)
    assert np.abs(expected[1][0, 1]) > 0.5
    np.testing.assert_allclose(gt.vmap(gt.jacobian(solution))(c), expected, atol=1e-10)
    compiled = gt.jit(gt.jacobian(solution))
    for each, slopes in zip(c, expected, strict=True):
        np.testing.assert_allclose(compiled(each), slopes, atol=1e-10)


# ---- constraints --------------------------------------------------------------------------------


def distance(x: Any, c: Any) -> Any:
    return np.sum((x - c) ** 2)


C = np.array([-1.0, 2.0, 0.3])


# The constraint is linear, which SciPy's estimate of its Hessian warns of.
@pytest.mark.filterwarnings("ignore:delta_grad")
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", "COBYQA"])
def test_an_equality_keeps_its_plane(method: str) -> None:
    def solution(c: Any, total: Any) -> Any:
        plane = {"type": "eq", "fun": lambda x, s: np.sum(x) - s, "args": (total,)}
        return minimize(distance, np.zeros(3), (c,), method, constraints=plane, tol=1e-9).x

    # The nearest point of a plane: x = c + (s − Σc)/3
    by_c, by_total = gt.jacobian(solution, (0, 1))(C, 1.0)
    np.testing.assert_allclose(by_c, np.eye(3) - 1 / 3, **TIGHT)
    np.testing.assert_allclose(by_total, np.full(3, 1 / 3), **TIGHT)


def test_inequalities_active_or_not() -> None:
    def solution(c: Any, most: Any) -> Any:
        below = {"type": "ineq", "fun": lambda x, s: s - np.sum(x), "args": (most,)}
        return minimize(distance, np.zeros(3), (c,), constraints=[below], tol=1e-12).x

    for most, slopes, by_most in ((1.0, np.eye(3) - 1 / 3, 1 / 3), (5.0, np.eye(3), 0.0)):
        found = gt.jacobian(solution, (0, 1))(C, most)
        np.testing.assert_allclose(found[0], slopes, **TIGHT)
        np.testing.assert_allclose(found[1], np.full(3, by_most), **TIGHT)
    cubes = gt.hessian(lambda most: np.sum(solution(C, most) ** 3))(1.0)
    exact = gt.hessian(lambda most: np.sum((C + (most - np.sum(C)) / 3) ** 3))(1.0)
    np.testing.assert_allclose(cubes, exact, rtol=1e-6)


def test_constraints_of_scipys_classes_with_bounds() -> None:
    circle = scipy.optimize.NonlinearConstraint(lambda x: x[0] ** 2 + x[1] ** 2, 1.0, 1.0)
    flat = scipy.optimize.LinearConstraint([[0.0, 0.0, 1.0, 0.0]], 0.0, 0.1)

    def solution(c: Any) -> Any:
        return minimize(
            distance,
            np.full(4, 0.5),
            (c,),
            bounds=[(None, None)] * 3 + [(0.0, 0.4)],
            constraints=[circle, flat],
            tol=1e-12,
        ).x

    c = np.array([3.0, 4.0, 1.0, 2.0])
    np.testing.assert_allclose(solution(c), [0.6, 0.8, 0.1, 0.4], atol=1e-9)
    # On a circle: the projection on its tangent, divided by the distance of c from the middle.
    normal, expected = np.array([0.6, 0.8]), np.zeros((4, 4))
    expected[:2, :2] = (np.eye(2) - np.outer(normal, normal)) / 5
    np.testing.assert_allclose(gt.jacobian(solution)(c), expected, atol=1e-8)
    np.testing.assert_allclose(gt.jit(gt.jacobian(solution))(c), expected, atol=1e-8)
    np.testing.assert_allclose(gt.vmap(solution)(np.stack([c, c]))[1], solution(c), atol=1e-12)


def test_constraints_that_use_recorded_tensors() -> None:
    def solution(total: Any) -> Any:
        plane = {"type": "eq", "fun": lambda x: np.sum(x) - total}
        return minimize(distance, np.zeros(3), (C,), constraints=plane, tol=1e-12).x

    np.testing.assert_allclose(gt.jacobian(solution)(1.0), np.full(3, 1 / 3), **TIGHT)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", "COBYQA"])
@pytest.mark.parametrize("way", [gt.jacobian, lambda f: gt.jit(gt.jacobian(f))])
def test_scipys_classes_with_recorded_tensors(method: str, way: Any) -> None:
    def by_function(total: Any) -> Any:
        plane = scipy.optimize.NonlinearConstraint(lambda x: np.sum(x) - total, 0.0, 0.0)
        return minimize(distance, np.zeros(3), (C,), method, constraints=plane, tol=1e-10).x

    def by_bounds(total: Any) -> Any:
        plane = scipy.optimize.NonlinearConstraint(np.sum, total, total)
        return minimize(distance, np.zeros(3), (C,), method, constraints=[plane], tol=1e-10).x

    def by_linear_bounds(total: Any) -> Any:
        plane = scipy.optimize.LinearConstraint(np.ones((1, 3)), -np.inf, total)
        return minimize(distance, np.zeros(3), (C,), method, constraints=plane, tol=1e-10).x

    def by_matrix(total: Any) -> Any:
        plane = scipy.optimize.LinearConstraint(np.ones((1, 3)) / total, 1.0, 1.0)
        return minimize(distance, np.zeros(3), (C,), method, constraints=plane, tol=1e-10).x

    for solution in (by_function, by_bounds, by_linear_bounds, by_matrix):
        np.testing.assert_allclose(way(solution)(1.0), np.full(3, 1 / 3), rtol=1e-6)


def test_constraints_get_exact_derivatives() -> None:
    calls = []

    def norm(x: Any) -> Any:
        calls.append(x)
        return x @ x

    def solved(method: str, **options: Any) -> Any:
        calls.clear()
        circle = scipy.optimize.NonlinearConstraint(norm, 1.0, 1.0, **options)
        return minimize(distance, np.ones(3), (C,), method, constraints=circle, tol=1e-10).x

    for method in ("SLSQP", "trust-constr"):
        np.testing.assert_allclose(solved(method), C / np.linalg.norm(C), atol=1e-6)
        assert any(isinstance(x, gt.Tensor) for x in calls)
        np.testing.assert_allclose(solved(method, jac="3-point"), C / np.linalg.norm(C), atol=1e-5)
        assert not any(isinstance(x, gt.Tensor) for x in calls)


@pytest.mark.filterwarnings("ignore:delta_grad", "ignore:Singular Jacobian matrix")
def test_constraints_that_depend_on_each_other() -> None:
    def solution(c: Any) -> Any:
        planes = [
            {"type": "eq", "fun": lambda x: np.sum(x) - 1.0},
            {"type": "eq", "fun": lambda x: 2 * np.sum(x) - 2.0},
        ]
        return minimize(
            distance, np.full(3, 1 / 3), (c,), "trust-constr", constraints=planes, tol=1e-10
        ).x

    with pytest.raises(
        LinAlgError, match="minimize: got a Hessian with active constraints that is"
    ):
        gt.jacobian(solution)(C)


# ---- what is refused ----------------------------------------------------------------------------


def test_failures_and_wrong_arguments() -> None:
    def stopped(c: Any) -> Any:
        return minimize(coupled, np.ones(3), (c,), options={"maxiter": 0}).x[0]

    assert np.isfinite(stopped(C))
    with pytest.raises(
        ConvergenceError,
        match=r"minimize: got no solution from SciPy \(Maximum number of iterations.*residual is",
    ):
        gt.grad(stopped)(C)
    flat = lambda a: minimize(lambda x, a: x[0] ** 2 + 0 * a * x[1], np.ones(2), (a,)).x[0]  # noqa: E731
    with pytest.raises(LinAlgError, match="minimize: got a Hessian that is singular"):
        gt.grad(flat)(1.0)
    with pytest.raises(ShapeError, match=r"minimize: got x0 of shape \(2, 2\), expected one axis"):
        minimize(coupled, np.ones((2, 2)))
    with pytest.raises(ArgumentError, match="minimize: got an int, expected a function"):
        minimize(3, np.ones(2))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="minimize: got bounds for 1 variables"):
        minimize(coupled, np.ones(3), (C,), bounds=[(0, 1)])
    with pytest.raises(ArgumentError, match="minimize: got a constraint with"):
        minimize(coupled, np.ones(3), (C,), constraints={"type": "less", "fun": np.sum})
    with pytest.raises(ArgumentError, match="minimize: got a float as a constraint"):
        minimize(coupled, np.ones(3), (C,), constraints=[1.0])


@pytest.mark.parametrize(
    ("method", "options"),
    [("BFGS", {"gtol": 1e-11}), ("CG", {"gtol": 1e-13}), ("SLSQP", {"ftol": 1e-16})],
)
def test_precision_loss_is_no_failure(method: str, options: Any) -> None:
    def rosenbrock(x: Any, a: Any) -> Any:
        return 100 * np.sum((x[1:] - x[:-1] ** 2) ** 2) + np.sum((a - x) ** 2)

    def solution(a: Any, **how: Any) -> Any:
        return minimize(rosenbrock, np.zeros(3), (a,), **how).x

    a = np.array([1.1, 0.9, 0.8])
    expected = gt.jacobian(lambda a: solution(a, method="trust-exact"))(a)
    found = gt.jacobian(lambda a: solution(a, method=method, options=options))(a)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    # SciPy's word for it stays in the result.
    stopped = minimize(rosenbrock, np.zeros(3), (a,), options={"gtol": 1e-16})
    assert not stopped.success
