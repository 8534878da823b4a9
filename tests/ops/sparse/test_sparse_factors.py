"""Factored sparse matrices, inverses and exponentials, under SciPy's names."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

import gradtape as gt
from gradtape.errors import ArgumentError, LinAlgError, ShapeError, UnsupportedError
from gradtape.ops.sparse import solve as solving
from gradtape.scipy.sparse import csc_array, linalg

RNG = np.random.default_rng(0)
N = 6
SPARSE = scipy.sparse.random_array((N, N), density=0.3, rng=RNG).toarray()
DENSE = SPARSE + 4 * np.eye(N)
A = scipy.sparse.csc_array(DENSE)
B = RNG.normal(size=(N, 2))


def matrix(data: Any, like: Any = A) -> Any:
    return csc_array((data, like.indices, like.indptr), shape=like.shape)


@pytest.mark.parametrize(("trans", "dense"), [("N", DENSE), ("T", DENSE.T), ("H", DENSE.T)])
def test_factors_of_constant_and_of_recorded_numbers(trans: str, dense: Any) -> None:
    factors = linalg.splu(A)
    np.testing.assert_array_equal(
        factors.solve(B, trans), scipy.sparse.linalg.splu(A).solve(B, trans)
    )
    expected = np.linalg.solve(dense, B)
    np.testing.assert_allclose(factors.solve(gt.tensor(B), trans).numpy(), expected)
    gt.testing.check_grads(lambda b: factors.solve(b, trans), (B[:, 0],), order=2)

    def solved(data: Any, b: Any) -> Any:
        return linalg.splu(matrix(data)).solve(b, trans)

    gt.testing.check_grads(solved, (A.data, B), order=2)
    np.testing.assert_allclose(gt.jit(solved)(A.data, B), expected)
    several = gt.vmap(solved, in_axes=(0, None))(np.stack([A.data, 2 * A.data]), B)
    np.testing.assert_allclose(several, [expected, expected / 2])


def test_complex_factors() -> None:
    values = scipy.sparse.csc_array(DENSE + 1j * SPARSE.T)
    factors, b = linalg.splu(values), B[:, 0] + 1j * B[:, 1]
    for trans in "NTH":
        expected = scipy.sparse.linalg.splu(values).solve(b, trans)
        np.testing.assert_allclose(factors.solve(gt.tensor(b), trans).numpy(), expected)
        gt.testing.check_grads(lambda b, trans=trans: factors.solve(b, trans), (b,))


def test_a_matrix_is_factored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    original = scipy.sparse.linalg.splu

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        return original(*args, **kwargs)

    monkeypatch.setattr(scipy.sparse.linalg, "splu", counted)
    solve = linalg.factorized(A)
    for _ in range(3):
        gt.grad(lambda b: gt.sum(solve(solve(b)) ** 2))(B[:, 0])
    assert count == 1

    def twice(data: Any) -> Any:
        factors = linalg.splu(matrix(data))
        return gt.sum(factors.solve(factors.solve(B[:, 0])))

    gt.grad(twice)(A.data)
    assert count == 2


def test_factors_are_those_of_the_matrix_as_it_was() -> None:
    own = A.copy()
    factors = linalg.splu(own)
    own.data *= 2
    expected = np.linalg.solve(DENSE, B[:, 0])
    np.testing.assert_allclose(factors.solve(gt.tensor(B[:, 0])).numpy(), expected)
    np.testing.assert_allclose(linalg.spsolve(own, gt.tensor(B[:, 0])).numpy(), expected / 2)


def test_factors_go_with_the_numbers_they_are_of() -> None:
    gc.collect()
    before = len(solving._KEPT._found)
    factors = linalg.splu(A)
    assert len(solving._KEPT._found) == before + 1
    del factors
    gc.collect()
    assert len(solving._KEPT._found) == before


def test_attributes_of_factors() -> None:
    theirs = scipy.sparse.linalg.splu(A)
    np.testing.assert_array_equal(linalg.splu(A).perm_r, theirs.perm_r)
    assert linalg.splu(A).nnz == theirs.nnz
    assert linalg.splu(A).shape == (N, N)
    with pytest.raises(UnsupportedError, match="'L' of a factored matrix of tensors"):
        _ = linalg.splu(matrix(gt.tensor(A.data))).L


def test_the_inverse() -> None:
    np.testing.assert_allclose(linalg.inv(A).toarray(), scipy.sparse.linalg.inv(A).toarray())
    inverse = linalg.inv(matrix(gt.tensor(A.data)))
    np.testing.assert_allclose(inverse.toarray().numpy(), np.linalg.inv(DENSE), atol=1e-15)
    gt.testing.check_grads(lambda data: linalg.inv(matrix(data)).toarray(), (A.data,))


# ---- exponentials -------------------------------------------------------------------------------


def test_the_exponential() -> None:
    small = A.data / 4
    got = linalg.expm(matrix(gt.tensor(small)))
    np.testing.assert_allclose(got.toarray().numpy(), scipy.linalg.expm(DENSE / 4), rtol=1e-12)
    gt.testing.check_grads(lambda data: linalg.expm(matrix(data)).toarray(), (small,))
    dense = linalg.expm(gt.tensor(DENSE))
    np.testing.assert_allclose(dense.numpy(), scipy.linalg.expm(DENSE), rtol=1e-12)


@pytest.mark.parametrize("dense", [DENSE, -5 * DENSE, 30 * SPARSE, 0 * DENSE])
def test_products_with_the_exponential(dense: Any) -> None:
    sparse = scipy.sparse.csr_array(dense)
    expected = scipy.linalg.expm(dense) @ B
    near = {"rtol": 1e-11, "atol": 1e-12 * np.abs(expected).max()}
    for given in (sparse, dense):
        got = linalg.expm_multiply(given, gt.tensor(B))
        np.testing.assert_allclose(got.numpy(), expected, **near)
    for options in ({"num": 4}, {"num": 3, "endpoint": False}):
        times = linalg.expm_multiply(sparse, gt.tensor(B), 0.1, 1.0, **options)
        theirs = scipy.sparse.linalg.expm_multiply(sparse, B, 0.1, 1.0, **options)
        atol = 1e-11 * np.abs(theirs).max()
        np.testing.assert_allclose(times.numpy(), theirs, rtol=1e-9, atol=atol)


def test_derivatives_of_products_with_the_exponential(thorough: bool) -> None:
    def product(data: Any, b: Any) -> Any:
        return linalg.expm_multiply(matrix(data), b)

    small, b = A.data / 3, B[:, 0]
    gt.testing.check_grads(product, (small, b), order=2, **({} if thorough else {"entries": 0}))
    expected = scipy.linalg.expm(DENSE / 3) @ b
    np.testing.assert_allclose(gt.jit(product)(small, b), expected, rtol=1e-12)
    compiled = gt.jit(lambda b: linalg.expm_multiply(A, b))(b)
    np.testing.assert_allclose(compiled, scipy.linalg.expm(DENSE) @ b, rtol=1e-12)
    rows = gt.vmap(product)(np.stack([small, small]), np.stack([b, 2 * b]))
    np.testing.assert_allclose(rows, [expected, 2 * expected], rtol=1e-12)


SINGULAR = scipy.sparse.csc_array(np.diag([1.0, 0.0]))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda t: linalg.splu(t), ArgumentError, "splu: got a dense matrix"),
        (lambda t: linalg.inv(t), ArgumentError, "inv: got a dense matrix"),
        (lambda t: linalg.splu(csc_array(t[:2])), ShapeError, "a square matrix"),
        (lambda t: linalg.inv(csc_array(t[:2])), ShapeError, "a square matrix"),
        (lambda t: linalg.splu(csc_array(t * 0.0)), LinAlgError, "singular"),
        (lambda t: linalg.splu(A).solve(t[:2]), ShapeError, "solve: got shapes"),
        (lambda t: linalg.splu(A).solve(t, "X"), ArgumentError, "got trans='X'"),
        (lambda t: linalg.expm_multiply(A, t[:2]), ShapeError, "expm_multiply: got a matrix of"),
        (lambda t: linalg.expm_multiply(A, t, 0.0), ArgumentError, "one of start and stop"),
        (lambda t: linalg.expm_multiply(A, t, traceA=1.0), UnsupportedError, "traceA="),
        (
            lambda t: linalg.expm_multiply(linalg.aslinearoperator(A), t),
            ArgumentError,
            "got a LinearOperator and a tensor",
        ),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call(gt.tensor(DENSE))


def test_a_singular_matrix_of_scipy_raises_as_scipy_does() -> None:
    with pytest.raises(RuntimeError, match="singular"):
        linalg.splu(SINGULAR)
    assert linalg.splu(A, "NATURAL").solve(B).shape == B.shape
