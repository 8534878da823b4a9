"""The iterative solvers of `scipy.sparse.linalg` on tensors and matrices of all kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import gradtape as gt
from gradtape.errors import LinAlgError, ShapeError, UnsupportedError
from gradtape.scipy.sparse import csr_array, linalg

RNG = np.random.default_rng(0)
N = 6
SPARSE = scipy.sparse.random_array((N, N), density=0.3, rng=RNG).toarray()
GENERAL, SYMMETRIC = SPARSE + 4 * np.eye(N), SPARSE @ SPARSE.T + 4 * np.eye(N)
B = RNG.normal(size=N)
METHODS = ["cg", "minres", "bicg", "bicgstab", "cgs", "tfqmr", "gmres", "lgmres", "gcrotmk"]
HERMITIAN = ("cg", "minres")
each = pytest.mark.parametrize("name", METHODS)


def solver(name: str) -> tuple[Any, Any, dict[str, float]]:
    """The function, a matrix for it, and a tolerance near rounding."""
    matrix = SYMMETRIC if name in HERMITIAN else GENERAL
    return getattr(linalg, name), matrix, {"rtol": 1e-15 if name == "minres" else 1e-13}


@each
def test_values_are_those_of_scipy(name: str) -> None:
    function, dense, goal = solver(name)
    sparse = scipy.sparse.csr_array(dense)
    theirs = getattr(scipy.sparse.linalg, name)(sparse, B, **goal)
    plain = function(sparse, B, **goal)
    np.testing.assert_array_equal(plain[0], theirs[0])
    for matrix in (sparse, dense, gt.tensor(dense), csr_array(gt.tensor(dense))):
        x, info = function(matrix, gt.tensor(B), x0=np.zeros(N), **goal)
        assert info == 0
        np.testing.assert_allclose(x.numpy(), np.linalg.solve(dense, B), rtol=1e-10)
    if name not in ("gmres", "lgmres", "gcrotmk"):  # their first round is long enough
        assert function(sparse, gt.tensor(B), maxiter=1, **goal)[1] != 0


@each
def test_derivatives(name: str, thorough: bool) -> None:
    detail: dict[str, Any] = {} if thorough else {"entries": 0}
    function, dense, goal = solver(name)
    sparse = scipy.sparse.csr_array(dense)
    gt.testing.check_grads(lambda b: function(sparse, b, **goal)[0], (B,), order=2, **detail)

    def of_numbers(data: Any, b: Any) -> Any:
        if name in HERMITIAN:  # has to stay so
            return function(data * gt.scipy.sparse.from_scipy(sparse), b, **goal)[0]
        matrix = csr_array((data, sparse.indices, sparse.indptr), shape=sparse.shape)
        return function(matrix, b, **goal)[0]

    numbers = 2.0 if name in HERMITIAN else sparse.data
    gt.testing.check_grads(of_numbers, (numbers, B), order=2, **detail)
    back = np.linalg.solve(dense.T, np.ones(N))
    compiled = gt.jit(gt.grad(lambda b: np.sum(function(sparse, b, **goal)[0])))(B)
    np.testing.assert_allclose(compiled, back, rtol=1e-9)
    rows = gt.vmap(lambda b: function(sparse, b, **goal)[0])(np.stack([B, 2 * B]))
    np.testing.assert_allclose(rows[1], np.linalg.solve(dense, 2 * B), rtol=1e-9)


@each
def test_preconditioners_and_operators(name: str) -> None:
    function, dense, goal = solver(name)
    sparse, inverse = scipy.sparse.csr_array(dense), scipy.sparse.diags_array(1 / np.diag(dense))
    factors = scipy.sparse.linalg.splu(scipy.sparse.csc_array(dense))
    plain = scipy.sparse.linalg.LinearOperator(
        (N, N), factors.solve, lambda v: factors.solve(v, "T"), dtype=float
    )
    own = linalg.LinearOperator((N, N), lambda v: inverse @ v, dtype=float)
    back = np.linalg.solve(dense.T, np.ones(N))
    for help in (inverse, inverse.toarray(), plain, own):
        got = gt.grad(lambda b, help=help: np.sum(function(sparse, b, M=help, **goal)[0]))(B)
        np.testing.assert_allclose(got, back, rtol=1e-8)

    def scaled(c: Any, make: Any) -> Any:
        operator = make((N, N), lambda v: c * (sparse @ v), dtype=float)
        return np.sum(function(operator, b, **goal)[0])

    expected = -np.linalg.solve(dense, B).sum() / 4
    for make in (linalg.LinearOperator, scipy.sparse.linalg.LinearOperator):
        b: Any = gt.tensor(B) if make is not linalg.LinearOperator else B
        got = gt.grad(lambda c, make=make: scaled(c, make))(2.0)
        np.testing.assert_allclose(got, expected, rtol=1e-8)


def test_shifted_equations_and_columns() -> None:
    sparse = scipy.sparse.csr_array(SYMMETRIC)
    got = linalg.minres(sparse, gt.tensor(B), rtol=1e-14, shift=0.5)[0]
    np.testing.assert_allclose(got.numpy(), np.linalg.solve(SYMMETRIC - 0.5 * np.eye(N), B))
    column = linalg.gmres(sparse, gt.tensor(B[:, None]), restart=3, rtol=1e-12)[0]
    np.testing.assert_allclose(column.numpy(), np.linalg.solve(SYMMETRIC, B))


def test_methods_that_break_down_for_unit_vectors() -> None:
    """Derivatives of single elements are equations with unit vectors on the right."""
    sparse = scipy.sparse.csr_array(GENERAL)
    unit = np.eye(N)[0]
    reached: list[Any] = []
    expected, info = scipy.sparse.linalg.bicg(sparse, unit, rtol=1e-9, callback=reached.append)
    assert info == -10
    # SciPy 1.15 gives a function.
    expected = reached[-1] if callable(expected) else expected
    found, info = linalg.bicg(sparse, gt.tensor(unit), rtol=1e-9)
    assert info == -10
    np.testing.assert_allclose(found.numpy(), expected)
    for name in ("bicg", "bicgstab", "cgs", "tfqmr"):
        function = getattr(linalg, name)
        jacobian = gt.jacrev(lambda b, f=function: f(sparse, b, rtol=1e-12)[0])(B)
        np.testing.assert_allclose(jacobian, np.linalg.inv(GENERAL), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda b: linalg.cg(np.eye(2), b), LinAlgError, r"cg: got a matrix of shape \(2, 2\)"),
        (lambda b: linalg.cg(np.eye(N), gt.ones((N, 2))), ShapeError, r"cg: got b of shape \(6, 2"),
        (lambda b: linalg.cg(np.eye(N), b, M=np.eye(2)), LinAlgError, "got a matrix of shape"),
        (lambda b: linalg.gmres(np.eye(N), b, callback=print), UnsupportedError, "callback="),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call(gt.tensor(B))


def test_an_operator_without_a_form_for_tensors_raises() -> None:
    """Its adjoint is found by reverse mode, through a function that wants arrays."""
    factors = scipy.sparse.linalg.splu(scipy.sparse.csc_array(GENERAL))
    operator = scipy.sparse.linalg.LinearOperator((N, N), factors.solve, dtype=float)
    with pytest.raises(TypeError, match=r"must be numpy.ndarray, not Tensor"):
        gt.grad(lambda b: np.sum(linalg.gmres(operator, b, rtol=1e-12)[0]))(B)
