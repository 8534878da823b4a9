"""Fixed points with the derivatives of the solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import gradtape as gt
from builds import NATIVE
from gradtape.testing import check_grads

TIGHT = {"rtol": 1e-8, "atol": 1e-11}
fixed_point, iterate = gt.implicit.fixed_point, gt.implicit.iterate

SOLVERS: dict[str, Any] = {
    "iterate": None,
    "anderson": lambda g, x0: iterate(g, x0, history=3),
    "scipy": lambda g, x0: scipy.optimize.fixed_point(g, x0, xtol=1e-13),
}


@pytest.fixture(params=SOLVERS)
def solver(request: pytest.FixtureRequest) -> Any:
    return SOLVERS[request.param]


def affine(x: Any, matrix: Any, b: Any) -> Any:
    return matrix @ x + b


def test_affine_maps_against_the_inverse(solver: Any, rng: np.random.Generator) -> None:
    matrix, b = rng.normal(size=(4, 4)) / 8, rng.normal(size=4)
    solve = fixed_point(affine, solver)
    inverse = np.linalg.inv(np.eye(4) - matrix)
    np.testing.assert_allclose(solve(np.zeros(4), matrix, b), inverse @ b, rtol=1e-9)
    by_matrix = np.einsum("ij,k->ijk", inverse, inverse @ b)
    for mode in (gt.jacrev, gt.jacfwd):
        found = mode(solve, (1, 2))(np.zeros(4), matrix, b)
        np.testing.assert_allclose(found[0], by_matrix, **TIGHT)
        np.testing.assert_allclose(found[1], inverse, **TIGHT)
    compiled = gt.jit(gt.jacrev(solve, 2))(np.zeros(4), matrix, b)
    np.testing.assert_allclose(compiled, inverse, **TIGHT)
    many = np.stack([b, -b])
    batch = gt.vmap(lambda b: solve(np.zeros(4), matrix, b))(many)
    np.testing.assert_allclose(batch, many @ inverse.T, rtol=1e-9)


def test_nonlinear(thorough: bool, rng: np.random.Generator) -> None:
    weights, b = rng.normal(size=(3, 3)) / 3, rng.normal(size=3)
    solve = fixed_point(lambda x, w, b: np.tanh(w @ x + b))
    check_grads(
        lambda w, b: solve(np.zeros(3), w, b), (weights, b), order=2 if thorough else 1, rtol=1e-6
    )


def test_containers_and_closures() -> None:
    def total(a: Any) -> Any:
        x = fixed_point(lambda x: {"u": np.cos(a * x["u"]), "w": 0.5 * x["w"] + a})(
            {"u": 1.0, "w": np.ones(2)}
        )
        return x["u"] + np.sum(x["w"])

    # u = cos(a·u): du = −u·sin/(1 + a·sin)·da; w = 2a
    u = iterate(lambda u: np.cos(0.8 * u), 1.0)
    sine = np.sin(0.8 * u)
    expected = 4.0 - u * sine / (1 + 0.8 * sine)
    for way in (total, gt.jit(total)):
        np.testing.assert_allclose(gt.grad(way)(0.8), expected, **TIGHT)


def test_acceleration_takes_fewer_steps(rng: np.random.Generator) -> None:
    matrix, b = np.diag(np.linspace(0.1, 0.9, 6)), rng.normal(size=6)
    counts = []
    for history in (0, 5):
        calls = [0]

        def g(x: Any, calls: list[int] = calls) -> Any:
            calls[0] += 1
            return matrix @ x + b

        found = iterate(g, np.zeros(6), history=history)
        np.testing.assert_allclose(found, b / (1 - np.diag(matrix)), rtol=1e-9)
        counts.append(calls[0])
    assert counts[1] < counts[0] / 4


def test_acceleration_that_compiles(rng: np.random.Generator) -> None:
    b = rng.normal(size=3)
    compiled = gt.jit(lambda b: iterate(lambda x: 0.5 * np.cos(x) + b, np.zeros(3), history=2))
    expected = iterate(lambda x: 0.5 * np.cos(x) + b, np.zeros(3))
    np.testing.assert_allclose(compiled(b), expected, rtol=1e-10)
    assert compiled.explain(b).eager == [] or not NATIVE


def test_float32() -> None:
    solve = fixed_point(lambda x, a: 0.5 * (x + a / x))
    found = solve(np.float32(1.0), 2.0)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.sqrt(2.0), rtol=1e-6)
    np.testing.assert_allclose(gt.grad(solve, 1)(np.float32(1.0), np.float32(2.0)), 2**-1.5)
