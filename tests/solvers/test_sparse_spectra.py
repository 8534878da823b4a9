"""Some eigenvalues and singular values of sparse matrices: eigsh, svds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, LinAlgError, ShapeError, UnsupportedError
from gradtape.scipy.sparse import csr_array, linalg

RNG = np.random.default_rng(0)
N = 9
HALF = RNG.normal(size=(N, N)) * (RNG.uniform(size=(N, N)) < 0.4)
S = HALF + HALF.T + np.diag(np.arange(N))
CHANGE = RNG.normal(size=(N, N))
CHANGE += CHANGE.T
SPARSE, WIDE = scipy.sparse.csr_array(S), RNG.normal(size=(7, 5))
# The signs of vectors depend on where the iteration begins.
FROM = {"v0": np.ones(N)}


def in_detail(thorough: bool) -> dict[str, Any]:
    """Options of `check_grads`: entry by entry, or along random directions of all entries."""
    return {} if thorough else {"entries": 0}


def moved(t: Any) -> Any:
    return gt.scipy.sparse.from_scipy(SPARSE) + t * gt.scipy.sparse.from_scipy(
        scipy.sparse.csr_array((S != 0) * CHANGE)
    )


@pytest.mark.parametrize("options", [{}, {"which": "SA"}, {"sigma": 1.0}, {"k": 2, "tol": 1e-12}])
def test_eigenvalues_and_eigenvectors(options: dict[str, Any], thorough: bool) -> None:
    order = 2 if thorough or not options else 1
    options = {"k": 3, **options, **FROM}
    expected = scipy.sparse.linalg.eigsh(SPARSE, **options)
    for given in (gt.tensor(S), csr_array(gt.tensor(S))):
        for one, other in zip(linalg.eigsh(given, **options), expected, strict=True):
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-9, atol=1e-9)
    gt.testing.check_grads(
        lambda t: linalg.eigsh(moved(t), **options), (0.1,), order=order, **in_detail(thorough)
    )
    gt.testing.check_grads(
        lambda t: linalg.eigsh(S + t * CHANGE, **options), (0.1,), **in_detail(thorough)
    )


def test_the_gradient_by_stored_numbers() -> None:
    def largest(data: Any) -> Any:
        s = csr_array((data, SPARSE.indices, SPARSE.indptr), shape=SPARSE.shape)
        return linalg.eigsh(s, 1, return_eigenvectors=False, **FROM)[0]

    vector = scipy.sparse.linalg.eigsh(SPARSE, 1, **FROM)[1][:, 0]
    rows, columns = SPARSE.tocoo().coords
    expected = vector[rows] * vector[columns]
    np.testing.assert_allclose(gt.grad(largest)(SPARSE.data), expected, atol=1e-12)
    np.testing.assert_allclose(gt.jit(gt.grad(largest))(SPARSE.data), expected, atol=1e-12)
    both = gt.vmap(largest)(np.stack([SPARSE.data, 2 * SPARSE.data]))
    np.testing.assert_allclose(both, [largest(SPARSE.data), 2 * largest(SPARSE.data)])


@pytest.mark.parametrize("which", ["LM", "SM"])
def test_singular_values_and_vectors(which: str, thorough: bool) -> None:
    order = 2 if thorough or which == "LM" else 1
    options = {"k": 2, "which": which, "v0": np.ones(5)}
    expected = scipy.sparse.linalg.svds(WIDE, **options)
    got = linalg.svds(gt.tensor(WIDE), **options)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-9, atol=1e-9)
    change = RNG.normal(size=WIDE.shape)
    gt.testing.check_grads(
        lambda t: linalg.svds(WIDE + t * change, **options),
        (0.1,),
        order=order,
        **in_detail(thorough),
    )
    few = scipy.sparse.csr_array(WIDE * (np.abs(WIDE) > 0.3))

    def of_numbers(data: Any) -> Any:
        s = csr_array((data, few.indices, few.indptr), shape=few.shape)
        return linalg.svds(s, return_singular_vectors=False, **options)

    gt.testing.check_grads(of_numbers, (few.data,), **in_detail(thorough))
    u, _, vh = linalg.svds(gt.tensor(WIDE), return_singular_vectors="u", **options)
    assert vh is None
    np.testing.assert_allclose(u.numpy(), expected[0], rtol=1e-9, atol=1e-9)


def test_a_repeated_value_has_no_derivative(rng: np.random.Generator) -> None:
    """Wherever the iteration begins, and so whatever rounding makes of the equations."""
    for _ in range(10):
        start = rng.uniform(size=4)

        def values(t: Any, start: Any = start) -> Any:
            return linalg.eigsh(t * np.diag([1.0, 1.0, 2.0, 0.0]), 3, v0=start)[0]

        def singular(t: Any, start: Any = start) -> Any:
            return linalg.svds(t * np.eye(4), 2, v0=start)[1]

        np.testing.assert_allclose(values(gt.tensor(1.0)), [1.0, 1.0, 2.0])
        with pytest.raises(LinAlgError, match=r"eigsh: got .* an eigenvalue, which may be rep"):
            gt.jvp(values, (1.0,), (1.0,))
        with pytest.raises(LinAlgError, match=r"svds: got .* a singular value, which may be rep"):
            gt.grad(lambda t, f=singular: gt.sum(f(t)))(1.0)
    with pytest.raises(LinAlgError, match="an eigenvalue, which may be repeated"):
        gt.jit(gt.grad(lambda t: gt.sum(values(t))))(1.0)


def test_without_tensors_they_are_scipys() -> None:
    for one, other in zip(
        linalg.eigsh(SPARSE, 2, **FROM), scipy.sparse.linalg.eigsh(SPARSE, 2, **FROM), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert linalg.eigs is scipy.sparse.linalg.eigs


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda t: linalg.eigsh(t, N), ArgumentError, "eigsh: got k=9, expected a number from 1"),
        (lambda t: linalg.svds(t, 0), ArgumentError, "svds: got k=0"),
        (lambda t: linalg.eigsh(t[:3], 1), ShapeError, "a square matrix"),
        (lambda t: linalg.eigsh(t[0], 1), ShapeError, "expected a matrix"),
        (lambda t: linalg.eigsh(t * 1j, 1), DTypeError, "got a complex matrix"),
        (lambda t: linalg.eigsh(t, 1, M=np.eye(N)), UnsupportedError, "M="),
        (lambda t: linalg.eigsh(t, 1, maxiter=1, ncv=2), LinAlgError, "eigsh: ARPACK error"),
        (
            lambda t: linalg.eigsh(linalg.LinearOperator((N, N), lambda v: t @ v), 1),
            ArgumentError,
            "got a LinearOperator and a tensor",
        ),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call(gt.tensor(S))
