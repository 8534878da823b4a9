"""`linear_solve`: matrices known by their products, against `solve`, in every way of running."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from builds import NATIVE
from gradtape.errors import ArgumentError, ConvergenceError, LinAlgError, ShapeError
from gradtape.solvers import krylov
from gradtape.testing import check_grads

linear_solve = gt.implicit.linear_solve
TIGHT = {"rtol": 1e-8, "atol": 1e-11}
METHODS = ("auto", "dense", "gmres", "bicgstab")


def product(v: Any, matrix: Any) -> Any:
    return matrix @ v


@pytest.fixture
def matrix(rng: np.random.Generator) -> Any:
    return rng.normal(size=(5, 5)) + 4 * np.eye(5)


@pytest.fixture
def b(rng: np.random.Generator) -> Any:
    return rng.normal(size=5)


@pytest.mark.parametrize("method", METHODS)
def test_value_and_derivatives(method: str, matrix: Any, b: Any, thorough: bool) -> None:
    def solution(matrix: Any, b: Any) -> Any:
        return linear_solve(product, b, args=(matrix,), solver=method)

    np.testing.assert_allclose(solution(matrix, b), np.linalg.solve(matrix, b), rtol=1e-12)
    check_grads(solution, (matrix, b), rtol=1e-6, order=2 if thorough else 1)

    def total(matrix: Any, b: Any) -> Any:
        return np.sum(solution(matrix, b) ** 2)

    def exact(matrix: Any, b: Any) -> Any:
        return np.sum(gt.solve(matrix, b) ** 2)

    expected = gt.grad(exact, (0, 1))(matrix, b)
    compiled = gt.jit(gt.grad(total, (0, 1)))
    for found in (compiled(matrix, b), gt.grad(gt.jit(total), (0, 1))(matrix, b)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, **TIGHT)
    assert compiled.explain(matrix, b).eager == [] or not NATIVE
    by_b = gt.hessian(total, 1)(matrix, b)
    np.testing.assert_allclose(by_b, gt.hessian(exact, 1)(matrix, b), **TIGHT)


@pytest.mark.parametrize("method", METHODS)
def test_batches(method: str, matrix: Any, b: Any) -> None:
    many = np.stack([matrix, matrix.T, matrix + np.eye(5)]), np.stack([b, 2 * b, 0 * b])

    def gradient(matrix: Any, b: Any) -> Any:
        solve = lambda m, b: linear_solve(product, b, args=(m,), solver=method)  # noqa: E731
        return gt.grad(lambda m, b: np.sum(solve(m, b) ** 3))(matrix, b)

    expected = gt.vmap(gt.grad(lambda m, b: np.sum(gt.solve(m, b) ** 3)))(*many)
    np.testing.assert_allclose(gt.vmap(gradient)(*many), expected, **TIGHT)
    np.testing.assert_allclose(gt.jit(gt.vmap(gradient))(*many), expected, **TIGHT)
    # One matrix for the whole batch.
    found = gt.vmap(lambda b: linear_solve(product, b, args=(matrix,), solver=method))(many[1])
    np.testing.assert_allclose(found, np.linalg.solve(matrix, many[1].T).T, **TIGHT)


@pytest.mark.parametrize("method", ["auto", "cg"])
def test_symmetric_positive(method: str, matrix: Any, b: Any) -> None:
    def solution(scale: Any) -> Any:
        def multiply(v: Any, scale: Any) -> Any:
            return matrix.T @ (matrix @ v) + scale * v

        return linear_solve(
            multiply, b, args=(scale,), symmetric=True, positive=True, solver=method
        )

    def exact(scale: Any) -> Any:
        return gt.solve(matrix.T @ matrix + scale * np.eye(5), b)

    np.testing.assert_allclose(gt.jacfwd(solution)(0.5), gt.jacfwd(exact)(0.5), **TIGHT)
    np.testing.assert_allclose(gt.jacrev(solution)(0.5), gt.jacfwd(exact)(0.5), **TIGHT)


def test_symmetric_needs_no_transpose(matrix: Any, b: Any) -> None:
    # A product without a derivative by v: only its symmetry makes it solvable the other way.
    symmetric = matrix + matrix.T

    def multiply(v: Any, scale: Any) -> Any:
        @gt.custom_vjp
        def by_hand(v: Any, scale: Any) -> Any:
            return scale * (symmetric @ v)

        @by_hand.defvjp
        def rule(ct: Any, out: Any, v: Any, scale: Any) -> Any:
            return None, gt.sum(ct * out) / scale

        return by_hand(v, scale)

    def total(scale: Any) -> Any:
        return np.sum(linear_solve(multiply, b, args=(scale,), symmetric=True))

    expected = -np.sum(np.linalg.solve(symmetric, b)) / 4
    np.testing.assert_allclose(gt.grad(total)(2.0), expected, **TIGHT)


def test_a_transpose_of_ones_own(matrix: Any, b: Any) -> None:
    asked = []

    def transpose(v: Any, matrix: Any) -> Any:
        asked.append(v.shape)
        return matrix.T @ v

    def total(matrix: Any) -> Any:
        solved = linear_solve(product, b, args=(matrix,), transpose=transpose, solver="gmres")
        return np.sum(solved**2)

    expected = gt.grad(lambda m: np.sum(gt.solve(m, b) ** 2))(matrix)
    np.testing.assert_allclose(gt.grad(total)(matrix), expected, **TIGHT)
    assert asked


def test_containers_and_closures(rng: np.random.Generator) -> None:
    b = {"u": rng.normal(size=(2, 2)), "w": (np.float64(1.0), rng.normal(size=3))}

    def total(scale: Any) -> Any:
        def multiply(x: Any) -> Any:
            u, (v, w) = x["u"], x["w"]
            return {"u": scale * u + u.T, "w": (3.0 * v + u[0, 0], w * scale - v)}

        x = linear_solve(multiply, b)
        return np.sum(x["u"]) + np.sum(x["w"][1])

    check_grads(total, (4.0,))
    assert gt.jit(total)(4.0) == pytest.approx(total(4.0))


def test_complex_numbers(rng: np.random.Generator, thorough: bool) -> None:
    matrix = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) + 3 * np.eye(3)
    b = rng.normal(size=3) + 1j * rng.normal(size=3)
    for method in ("dense", "gmres"):

        def solution(matrix: Any, b: Any, method: str = method) -> Any:
            return linear_solve(product, b, args=(matrix,), solver=method)

        np.testing.assert_allclose(solution(matrix, b), np.linalg.solve(matrix, b), rtol=1e-10)
        check_grads(solution, (matrix, b), rtol=1e-6, order=2 if thorough else 1)


def test_what_is_not_linear_in_shape() -> None:
    with pytest.raises(
        ShapeError, match=r"linear_solve: got shapes \[\(1,\)\] from the linear function"
    ):
        linear_solve(lambda v: v[:1], np.ones(2))
    with pytest.raises(ArgumentError, match="linear_solve: got linear_solver='lu'"):
        linear_solve(lambda v: v, np.ones(2), solver="lu")
    with pytest.raises(LinAlgError, match="not positive definite"):
        linear_solve(lambda v: -v, np.ones(2), symmetric=True, positive=True)


NOT_LINEAR = {
    "affine": (lambda x: 2 * x + 1, 3.0),
    "affine at 0": (lambda x: 2 * x + 1, 0.0),
    "square": (lambda x: x**2, 4.0),
}


@pytest.mark.parametrize("way", [lambda f: f, gt.jit, gt.vmap])
@pytest.mark.parametrize("method", ["auto", "dense", "gmres"])
@pytest.mark.parametrize("case", NOT_LINEAR)
def test_what_is_not_linear(case: str, method: str, way: Any) -> None:
    multiply, size = NOT_LINEAR[case]
    b = size * np.ones((2, 3) if way is gt.vmap else 3)
    with pytest.raises(ConvergenceError, match="linear_solve: got a residual"):
        way(lambda b: linear_solve(multiply, b, solver=method))(b)
    if method == "dense":
        with pytest.raises(ConvergenceError, match="a function that is linear in x"):
            way(lambda b: linear_solve(multiply, b))(b)


def test_a_solver_of_ones_own_is_checked(matrix: Any, b: Any) -> None:
    def wrong(matvec: Any, b: Any) -> Any:
        return b

    def by_scipy(matvec: Any, b: Any) -> Any:
        return gt.linalg.gmres(matvec, b)[0]  # to 1e-5

    said = "from the linear solver that was given"
    with pytest.raises(ConvergenceError, match=f"linear_solve: got a residual of .* {said}"):
        linear_solve(product, b, args=(matrix,), solver=wrong)
    found = linear_solve(product, b, args=(matrix,), solver=by_scipy)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, b), rtol=1e-3)
    half = gt.implicit.root(lambda x, a: 2 * x - a, linear_solver=wrong)
    for way in (lambda f: f, gt.jit):
        with pytest.raises(ConvergenceError, match=f"root: got a residual of .* {said}"):
            way(gt.grad(half, 1))(0.0, 1.0)
        with pytest.raises(ConvergenceError, match="root: got a residual of"):
            way(lambda a: gt.jvp(lambda a: half(0.0, a), (a,), (1.0,))[1])(1.0)


def test_the_check_is_one_product(matrix: Any, b: Any) -> None:
    calls = [0]

    def counted(v: Any) -> Any:
        calls[0] += 1
        return matrix @ v

    linear_solve(counted, b)
    assert calls[0] == 2  # one in a batch for the matrix


# ---- iterative methods --------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 30, 150])
@pytest.mark.parametrize("method", ["gmres", "bicgstab", "cg"])
def test_methods_against_factors(method: str, size: int, rng: np.random.Generator) -> None:
    matrix = rng.normal(size=(size, size)) / np.sqrt(size) + 3 * np.eye(size)
    if method == "cg":
        matrix = matrix @ matrix.T
    b = rng.normal(size=size)
    found = getattr(krylov, method)(lambda v: matrix @ v, b)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, b), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("size", [1e-250, 1e250])
@pytest.mark.parametrize("method", ["dense", "gmres", "bicgstab", "cg"])
def test_right_hand_sides_of_any_size(method: str, size: float) -> None:
    matrix = np.array([[4.0, 1.0, 0.0], [1.0, 5.0, 1.0], [0.0, 1.0, 6.0]])
    b = size * np.array([1.0, -2.0, 0.5])
    found = linear_solve(lambda v: matrix @ v, b, solver=method)
    np.testing.assert_allclose(found / size, np.linalg.solve(matrix, b / size), rtol=1e-12)


def test_gmres_begins_again(rng: np.random.Generator) -> None:
    # Eigenvalues all over a disk: one basis of 100 vectors is not enough.
    matrix = rng.normal(size=(300, 300)) / np.sqrt(300) + 1.25 * np.eye(300)
    b, products = rng.normal(size=300), [0]

    def counted(v: Any) -> Any:
        products[0] += 1
        return matrix @ v

    found = krylov.gmres(counted, b)
    assert products[0] > 102
    np.testing.assert_allclose(found, np.linalg.solve(matrix, b), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_invariant_space_ends_it(dtype: Any) -> None:
    # b is an eigenvector: the first step finds the solution, and there is no second vector.
    b = np.array([0.0, 1.0, 0.0], dtype)
    found = linear_solve(lambda v: np.array([2.0, 4.0, 8.0], dtype) * v, b, solver="gmres")
    assert found.dtype == dtype
    np.testing.assert_allclose(found, b / 4)
    np.testing.assert_array_equal(linear_solve(lambda v: 2 * v, 0 * b, solver="gmres"), 0 * b)


@pytest.mark.parametrize("method", ["gmres", "bicgstab", "cg"])
def test_no_convergence_says_the_residual(method: str) -> None:
    singular = np.array([[1.0, 1.0], [1.0, 1.0]])
    wanted = r"linear_solve: got a residual|ingul"
    with pytest.raises((ConvergenceError, LinAlgError), match=wanted):
        linear_solve(lambda v: singular @ v, np.array([1.0, -2.0]), solver=method)


# ---- gt.linalg.cg and its kin, which use the same rule ------------------------------------------


@pytest.mark.parametrize("method", [gt.linalg.cg, gt.linalg.bicgstab, gt.linalg.gmres])
def test_scipys_methods_batched_compiled_and_with_closures(method: Any, rng: Any) -> None:
    matrix = rng.normal(size=(4, 4)) + 5 * np.eye(4)
    matrix, b = matrix @ matrix.T, rng.normal(size=(3, 4))

    def solution(b: Any, shift: Any) -> Any:
        return method(lambda v: matrix @ v + shift * v, b, rtol=1e-13)[0]

    shifted = matrix + 0.7 * np.eye(4)
    expected = np.linalg.solve(shifted, b.T).T
    np.testing.assert_allclose(gt.vmap(solution, (0, None))(b, 0.7), expected, rtol=1e-9)
    np.testing.assert_allclose(gt.jit(solution)(b[0], 0.7), expected[0], rtol=1e-9)
    slope = -np.linalg.solve(shifted, expected[0])
    for way in (solution, gt.jit(solution)):
        np.testing.assert_allclose(gt.jacobian(way, 1)(b[0], 0.7), slope, rtol=1e-8)
        np.testing.assert_allclose(gt.jacfwd(way, 1)(b[0], 0.7), slope, rtol=1e-8)


def test_the_code_of_scipy_in_a_batch() -> None:
    matrix = np.diag([1.0, 2.0, 3.0, 4.0])
    info = gt.linalg.cg(lambda v: matrix @ v, np.ones(4), rtol=1e-12, maxiter=2)[1]
    assert (type(info), info) == (int, 2)
    b = np.stack([np.ones(4), np.eye(4)[0]])
    found = gt.vmap(lambda b: gt.linalg.cg(lambda v: matrix @ v, b, rtol=1e-12, maxiter=2)[1])(b)
    np.testing.assert_array_equal(found, [2, 0])
