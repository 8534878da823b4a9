"""Roots with the derivatives of the solution: against closed forms, in every way of running."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import gradtape as gt
from builds import NATIVE
from gradtape.testing import check_grads

TIGHT = {"rtol": 1e-8, "atol": 1e-12}


def kepler(anomaly: Any, e: Any, mean: Any) -> Any:
    return anomaly - e * np.sin(anomaly) - mean


def own_newton(g: Callable[[Any], Any], x0: Any) -> Any:
    """Newton's method of a user: gradtape's loop, and a derivative by forward mode."""

    def step(state: Any) -> Any:
        x, _ = state
        value, slope = gt.jvp(g, (x,), (gt.ones_like(x),))
        return x - value / slope, np.abs(value)

    return gt.while_loop(lambda state: state[1] > 1e-14, step, (x0, np.inf + 0 * x0))[0]


SOLVERS: dict[str, Any] = {
    "newton": None,
    "while_loop": own_newton,
    "fsolve": scipy.optimize.fsolve,
    "brentq": lambda g, x0: scipy.optimize.brentq(g, 0.0, 4.0, xtol=1e-15),
}
TRACEABLE = ("newton", "while_loop")


@pytest.fixture(params=SOLVERS)
def solver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


E, M = 0.5, 1.0
ANOMALY = 1.4987011335178482
# E − e·sin E = M: ∂E/∂e = sin E/(1 − e·cos E), ∂E/∂M = 1/(1 − e·cos E)
BY_MEAN = 1 / (1 - E * np.cos(ANOMALY))
BY_ECCENTRICITY = np.sin(ANOMALY) * BY_MEAN
# ∂²E/∂M² = −e·sin E/(1 − e·cos E)³
BY_MEAN_TWICE = -E * np.sin(ANOMALY) * BY_MEAN**3


def test_kepler(solver: str) -> None:
    solve = gt.implicit.root(kepler, SOLVERS[solver])
    assert type(solve(1.0, E, M)) is np.float64
    np.testing.assert_allclose(solve(1.0, E, M), ANOMALY, rtol=1e-12)
    slopes = gt.grad(solve, (0, 1, 2))(1.0, E, M)
    np.testing.assert_allclose(slopes, (0.0, BY_ECCENTRICITY, BY_MEAN), **TIGHT)
    _, pushed = gt.jvp(solve, (1.0, E, M), (5.0, 1.0, 2.0))
    np.testing.assert_allclose(pushed, BY_ECCENTRICITY + 2 * BY_MEAN, **TIGHT)


@pytest.mark.parametrize("outer", [gt.grad, gt.jacfwd])
@pytest.mark.parametrize("inner", [gt.grad, gt.jacfwd])
def test_second_order_in_all_mixes(outer: Any, inner: Any, solver: str) -> None:
    solve = gt.implicit.root(kepler, SOLVERS[solver])
    twice = outer(inner(solve, 2), 2)(1.0, E, M)
    np.testing.assert_allclose(twice, BY_MEAN_TWICE, **TIGHT)


def test_the_first_guess_has_no_influence() -> None:
    # Not even where there is no derivative by the arguments.
    touching = gt.implicit.root(lambda x, a: (x - a) ** 3, lambda g, x0: 2.0)
    assert gt.grad(touching)(1.0, 2.0) == 0.0
    assert gt.jvp(lambda x0: touching(x0, 2.0), (1.0,), (1.0,))[1] == 0.0


def test_numbers_whose_squares_are_not_finite() -> None:
    solve = gt.implicit.root(lambda x, a: x * 3.0 - a)
    for size in (1e-200, 1e200):
        np.testing.assert_allclose(solve(np.ones(2) * size, 6.0 * size), np.full(2, 2.0 * size))


def test_third_order() -> None:
    # x³ = a: x''' = 10/27·a^(−8/3)
    cube_root = gt.implicit.root(lambda x, a: x**3 - a)
    third = gt.grad(gt.grad(gt.grad(cube_root, 1), 1), 1)(1.0, 8.0)
    np.testing.assert_allclose(third, 10 / 27 * 8 ** (-8 / 3), **TIGHT)


def test_compiled(solver: str) -> None:
    solve = gt.implicit.root(kepler, SOLVERS[solver])
    value, slope = gt.jit(solve), gt.jit(gt.grad(solve, 1))
    np.testing.assert_allclose(value(1.0, E, M), ANOMALY, rtol=1e-12)
    np.testing.assert_allclose(slope(1.0, E, M), BY_ECCENTRICITY, **TIGHT)
    np.testing.assert_allclose(gt.grad(value, 1)(1.0, E, M), BY_ECCENTRICITY, **TIGHT)
    # A solver that can be traced is part of the native code; the rule always is.
    eager = [] if solver in TRACEABLE else ["root"]
    for compiled in (value, slope):
        assert [op.op for op in compiled.explain(1.0, E, M).eager] == eager or not NATIVE


def test_batched(solver: str) -> None:
    solve = gt.implicit.root(kepler, SOLVERS[solver])
    eccentricities = np.linspace(0.1, 0.9, 4)
    one_by_one = [gt.value_and_grad(solve, 1)(1.0, e, M) for e in eccentricities]
    both = gt.vmap(gt.value_and_grad(solve, 1), in_axes=(None, 0, None))
    np.testing.assert_allclose(both(1.0, eccentricities, M), np.transpose(one_by_one), **TIGHT)
    compiled = gt.jit(both)(1.0, eccentricities, M)
    np.testing.assert_allclose(compiled, np.transpose(one_by_one), **TIGHT)
    summed = gt.grad(lambda e: np.sum(gt.vmap(lambda e: solve(1.0, e, M))(e)))
    np.testing.assert_allclose(summed(eccentricities), [pair[1] for pair in one_by_one], **TIGHT)
    _, pushed = gt.jvp(lambda m: gt.vmap(lambda e: solve(1.0, e, m))(eccentricities), (M,), (1.0,))
    expected = [gt.grad(solve, 2)(1.0, e, M) for e in eccentricities]
    np.testing.assert_allclose(pushed, expected, **TIGHT)


def test_what_the_function_uses_from_outside(solver: str) -> None:
    def anomaly(e: Any) -> Any:
        return gt.implicit.root(lambda x: kepler(x, e, M), SOLVERS[solver])(1.0)

    for way in (anomaly, gt.jit(anomaly)):
        np.testing.assert_allclose(gt.grad(way)(E), BY_ECCENTRICITY, **TIGHT)
        np.testing.assert_allclose(gt.jvp(way, (E,), (1.0,))[1], BY_ECCENTRICITY, **TIGHT)
        np.testing.assert_allclose(gt.vmap(way)(np.array([E, E])), [ANOMALY] * 2, rtol=1e-12)
    leaf = gt.tensor(E, requires_grad=True)
    anomaly(leaf).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), BY_ECCENTRICITY, **TIGHT)


def test_arguments_and_closures_together_in_a_batch() -> None:
    def anomaly(e: Any, mean: Any) -> Any:
        return gt.implicit.root(lambda x, e: kepler(x, e, mean), scipy.optimize.fsolve)(1.0, e)

    given = np.array([0.2, 0.5]), np.array([0.5, 1.0])
    expected = [gt.implicit.root(kepler)(1.0, *pair) for pair in zip(*given, strict=True)]
    np.testing.assert_allclose(gt.vmap(anomaly)(*given), expected, rtol=1e-12)


# ---- systems ------------------------------------------------------------------------------------


def test_linear_system_against_the_inverse(rng: np.random.Generator) -> None:
    matrix, b = rng.normal(size=(4, 4)) + 4 * np.eye(4), rng.normal(size=4)
    solve = gt.implicit.root(lambda x, matrix, b: matrix @ x - b)
    for way in (gt.jacrev, gt.jacfwd):
        by_matrix, by_b = way(solve, (1, 2))(np.zeros(4), matrix, b)
        inverse = np.linalg.inv(matrix)
        np.testing.assert_allclose(by_b, inverse, **TIGHT)
        expected = -np.einsum("ij,k->ijk", inverse, inverse @ b)
        np.testing.assert_allclose(by_matrix, expected, **TIGHT)


def system(x: Any, p: Any) -> Any:
    """Equations in containers, of containers: x₀² + y·x₀ = a, and three of a coupled chain."""
    return {
        "first": x["u"] ** 2 + x["w"][0] * x["u"] - p["a"],
        "rest": [x["w"] + 0.3 * np.tanh(np.roll(x["w"], 1)) * p["b"] - x["u"]],
    }


def test_containers(rng: np.random.Generator, thorough: bool) -> None:
    start = {"u": 1.0, "w": np.ones(3)}
    solve = gt.implicit.root(system)
    parameters = {"a": np.float64(2.0), "b": rng.normal(size=3)}
    found = solve(start, parameters)
    assert found.keys() == start.keys()
    assert found["w"].shape == (3,)
    for leaf in gt.tree.flatten(system(found, parameters))[0]:
        np.testing.assert_allclose(leaf, 0.0, atol=1e-13)
    check_grads(lambda p: solve(start, p), (parameters,), order=2 if thorough else 1)
    compiled = gt.jit(gt.jacobian(lambda p: solve(start, p)["w"]))(parameters)
    eager = gt.jacobian(lambda p: solve(start, p)["w"])(parameters)
    np.testing.assert_allclose(compiled["b"], eager["b"], **TIGHT)


@pytest.mark.parametrize("linear_solver", ["dense", "gmres", "bicgstab"])
def test_ways_to_solve_for_derivatives(
    linear_solver: str, rng: np.random.Generator, thorough: bool
) -> None:
    weights, b = rng.normal(size=(6, 6)) / 3, rng.normal(size=6)
    solve = gt.implicit.root(lambda x, w, b: x + np.tanh(w @ x) - b, linear_solver=linear_solver)
    check_grads(solve, (np.zeros(6), weights, b), rtol=1e-6, order=2 if thorough else 1)
    exact = gt.implicit.root(lambda x, w, b: x + np.tanh(w @ x) - b, linear_solver="dense")

    def total(solve: Any) -> Any:
        return gt.grad(lambda w: np.sum(solve(np.zeros(6), w, b) ** 2))

    np.testing.assert_allclose(total(solve)(weights), total(exact)(weights), **TIGHT)
    np.testing.assert_allclose(gt.jit(total(solve))(weights), total(exact)(weights), **TIGHT)


def test_a_linear_solver_of_ones_own(rng: np.random.Generator) -> None:
    asked = []

    def linear_solver(matvec: Callable[[Any], Any], b: Any) -> Any:
        asked.append(b.shape)
        return gt.linalg.gmres(matvec, b, rtol=1e-13)[0]

    matrix, b = rng.normal(size=(3, 3)) + 4 * np.eye(3), rng.normal(size=3)
    solve = gt.implicit.root(lambda x, b: matrix @ x - b, linear_solver=linear_solver)
    slope = gt.grad(lambda b: solve(np.zeros(3), b)[0])(b)
    np.testing.assert_allclose(slope, np.linalg.inv(matrix)[0], **TIGHT)
    assert asked == [(3,)]


def test_symmetric_systems_by_conjugate_gradients(rng: np.random.Generator) -> None:
    factor, b = rng.normal(size=(5, 5)), rng.normal(size=5)
    matrix = factor @ factor.T + np.eye(5)
    solve = gt.implicit.root(lambda x, b: matrix @ x - b, linear_solver="cg")
    np.testing.assert_allclose(
        gt.jacobian(solve, 1)(np.zeros(5), b), np.linalg.inv(matrix), **TIGHT
    )


# ---- numbers ------------------------------------------------------------------------------------


def test_float32(solver: str) -> None:
    solve = gt.implicit.root(kepler, SOLVERS[solver])
    start, e = np.float32(1.0), np.float32(E)
    # A Python number takes the dtype of what it meets, compiled or not.
    for way in (solve, gt.jit(solve)):
        found = way(start, e, M)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, ANOMALY, rtol=1e-6)
        slope = gt.grad(way, 1)(start, e, M)
        assert slope.dtype == np.float32
        np.testing.assert_allclose(slope, BY_ECCENTRICITY, rtol=1e-5)


def test_integers_begin_as_floats() -> None:
    found = gt.implicit.root(lambda x, a: x * x - a)(np.array([1, 2]), 4.0)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, [2.0, 2.0])


def test_complex_numbers() -> None:
    square_root = gt.implicit.root(lambda z, a: z * z - a)
    np.testing.assert_allclose(square_root(1 + 1j, 2j), 1 + 1j)
    slope = gt.grad(square_root, 1, holomorphic=True)(1 + 1j, 2j)
    np.testing.assert_allclose(slope, 1 / (2 + 2j), **TIGHT)
    # |z|² = |a|: the direction of steepest ascent is a/|a|
    steepest = gt.grad(lambda a: np.abs(square_root(1 + 1j, a)) ** 2)(3 + 4j)
    np.testing.assert_allclose(steepest, 0.6 + 0.8j, **TIGHT)


def test_equations_that_are_not_holomorphic(rng: np.random.Generator, thorough: bool) -> None:
    # conj(z)·w + z = a, one complex equation that is only linear over the reals
    solve = gt.implicit.root(lambda z, w, a: np.conj(z) * w + z - a)
    w, a = 0.3 - 0.2j, 1.0 + 2.0j
    z = solve(1j, w, a)
    np.testing.assert_allclose(np.conj(z) * w + z, a)
    check_grads(lambda w, a: solve(1j, w, a), (w, a), order=2 if thorough else 1)


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
def test_units_do_not_matter(unit: float) -> None:
    calls = [0]

    def f(x: Any) -> Any:
        calls[0] += 1
        return (x / unit) ** 3 - 8.0

    assert gt.implicit.newton(f, unit) == pytest.approx(2 * unit, rel=1e-15)
    # Five steps, each with a derivative and a value or two, whatever the unit.
    assert calls[0] == 14


# ---- what it costs ------------------------------------------------------------------------------


class Counter:
    """Counts ops by their names."""

    kind = "observing"

    def __init__(self) -> None:
        self.ops: dict[str, int] = {}

    def run(self, op: Any, args: Any, params: Any, proceed: Any) -> Any:
        self.ops[op.name] = self.ops.get(op.name, 0) + 1
        return proceed(op, args, params)


def test_a_derivative_is_one_linear_solve(rng: np.random.Generator) -> None:
    matrix, b = rng.normal(size=(5, 5)) / 5 + np.eye(5), rng.normal(size=5)
    calls = [0]

    def f(x: Any, b: Any) -> Any:
        calls[0] += 1
        return matrix @ x + x**3 - b

    solve = gt.implicit.root(f)
    leaf = gt.tensor(b, requires_grad=True)
    total = gt.sum(solve(np.zeros(5), leaf))
    calls[0], counter = 0, Counter()
    with gt.using_mode(counter):
        total.backward()
    # Once to record it with respect to x, once with respect to b.
    assert calls[0] == 2
    assert counter.ops["solve"] == 1
    calls[0], counter = 0, Counter()
    found = solve(np.zeros(5), b)
    alone = calls[0]
    calls[0] = 0
    gt.jvp(lambda b: gt.implicit.root(f, lambda g, x0: found)(np.zeros(5), b), (b,), (b,))
    # Twice to check the solution; then −∂f/∂b·db, and the Jacobian.
    assert calls[0] == 4
    assert alone > 2 * calls[0]


def test_a_matrix_free_derivative_calls_the_function_twice(rng: np.random.Generator) -> None:
    matrix, b = rng.normal(size=(8, 8)) / 8 + np.eye(8), rng.normal(size=8)
    calls, products = [0], [0]

    def f(x: Any, b: Any) -> Any:
        calls[0] += 1
        return matrix @ x - b

    def linear_solver(matvec: Callable[[Any], Any], b: Any) -> Any:
        def counted(v: Any) -> Any:
            products[0] += 1
            return matvec(v)

        return gt.implicit.linear_solve(counted, b, solver="gmres")

    leaf = gt.tensor(b, requires_grad=True)
    total = gt.sum(gt.implicit.root(f, linear_solver=linear_solver)(np.zeros(8), leaf))
    calls[0] = 0
    total.backward()
    assert calls[0] == 2
    # As many as GMRES takes for 8 unknowns, and one to check the solution.
    assert products[0] <= 10


# ---- functions as objects -----------------------------------------------------------------------


def cubic(x: Any, a: Any) -> Any:
    return x**3 - a


def test_it_is_pickled_and_has_the_name_of_the_function() -> None:
    solve = gt.implicit.root(cubic, linear_solver="gmres")
    assert solve.__name__ == "cubic"
    assert repr(solve) == "<root of cubic>"
    again = pickle.loads(pickle.dumps(solve))
    np.testing.assert_allclose(again(1.0, 8.0), 2.0)


def test_a_checkpointed_function(rng: np.random.Generator) -> None:
    b = rng.normal(size=3)

    @gt.checkpoint
    def total(b: Any) -> Any:
        return np.sum(np.sin(gt.implicit.root(lambda x, b: x + np.tanh(x) - b)(np.zeros(3), b)))

    np.testing.assert_allclose(gt.grad(total)(b), gt.grad(total.__wrapped__)(b), rtol=1e-14)


def test_inside_of_a_compiled_loop() -> None:
    def path(e: Any) -> Any:
        def step(anomaly: Any, mean: Any) -> Any:
            anomaly = gt.implicit.root(kepler)(anomaly, e, mean)
            return anomaly, anomaly

        return gt.scan(step, 0.1, np.linspace(0.1, 1.0, 5))[1]

    expected = [gt.grad(gt.implicit.root(kepler), 1)(1.0, E, m) for m in np.linspace(0.1, 1.0, 5)]
    np.testing.assert_allclose(gt.jacfwd(path)(E), expected, **TIGHT)
    compiled = gt.jit(gt.jacfwd(path))
    np.testing.assert_allclose(compiled(E), expected, **TIGHT)
    assert compiled.explain(E).eager == [] or not NATIVE
