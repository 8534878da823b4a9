"""Functions of SciPy's linear algebra where derivatives do not exist, or sizes are large."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import gradtape as gt
from gradtape.errors import ConversionError, LinAlgError, NotDifferentiableError
from gradtape.testing import check_grads

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4))


def check_refused(function: Any, x: Any, match: str) -> None:
    """No derivative in either mode: an error in eager mode, NaN in compiled code."""
    for derivative in (gt.grad(function), lambda x: gt.jvp(function, (x,), (np.ones_like(x),))[1]):
        with pytest.raises(NotDifferentiableError, match=match):
            derivative(x)
        assert np.isnan(gt.jit(derivative)(x)).any()


# ---- the Hessenberg form ------------------------------------------------------------------------


def test_a_form_that_falls_apart_has_no_derivative() -> None:
    apart = np.triu(A, -1)
    apart[2, 1] = 0.0
    check_refused(lambda a: gt.sum(gt.linalg.hessenberg(a) ** 2), apart, "hessenberg.*subdiagonal")


def test_a_last_0_of_a_real_subdiagonal_does_not_matter() -> None:
    form = np.triu(A, -1)
    form[3, 2] = 0.0
    check_grads(lambda a: gt.linalg.hessenberg(a)[1:, 1:] ** 2, (form,), order=1)


def test_what_has_the_form_already_has_its_derivative() -> None:
    # LAPACK leaves it as it is, and chooses the other sign next to it: squares do not depend on it.
    form = np.triu(A, -1)
    np.testing.assert_array_equal(gt.linalg.hessenberg(form), form)
    check_grads(lambda a: gt.linalg.hessenberg(a) ** 2, (form,), order=1)


# ---- LDL ----------------------------------------------------------------------------------------


def test_a_pivot_of_0_has_no_derivative() -> None:
    singular = np.diag([1.0, 0.0, 2.0])
    check_refused(lambda a: gt.sum(gt.linalg.ldl(a).lu), singular, "ldl.*pivot of 0")


def test_a_last_pivot_of_0_does_not_matter() -> None:
    vectors = RNG.normal(size=(3, 2))
    singular = vectors @ vectors.T
    assert abs(np.linalg.det(singular)) < 1e-12

    def factors(a: Any) -> Any:
        return gt.linalg.ldl((a + a.mT) / 2)[:2]

    check_grads(factors, (singular,), order=1)


# ---- left eigenvectors --------------------------------------------------------------------------


def test_left_eigenvectors_are_left_eigenvectors() -> None:
    b = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
    w, left, right = gt.linalg.eig(A, b, left=True)
    np.testing.assert_allclose(left.conj().T @ A, w[:, None] * (left.conj().T @ b), atol=1e-12)
    np.testing.assert_allclose(A @ right, w * (b @ right), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(left, axis=0), 1.0)


def test_phases_of_left_eigenvectors_are_free() -> None:
    def first(a: Any) -> Any:
        return gt.sum(gt.real(gt.linalg.eig(a, left=True, right=False)[1] * 1j))

    rotation = np.array([[0.1, 1.0], [-2.0, 0.3]])
    with pytest.raises(NotDifferentiableError, match=r"eig: .*phases"):
        gt.grad(first)(rotation)


# ---- values that have to be known, or tested ----------------------------------------------------


@pytest.mark.parametrize("name", ["bandwidth", "issymmetric", "ishermitian"])
def test_properties_are_those_of_scipy(name: str) -> None:
    ours, reference = getattr(gt.linalg, name), getattr(scipy.linalg, name)
    for matrix in (A, np.triu(A, -1), A + A.T, A + A.T + 1j * (A - A.T), A + 1j * A, A[:2]):
        if matrix.shape[0] == matrix.shape[1] or name == "bandwidth":
            assert ours(matrix) == reference(matrix)
            assert ours(gt.tensor(matrix, requires_grad=True)) == reference(matrix)
    stack = np.stack([A, np.triu(A), A + A.T])
    found = np.array([reference(x) for x in stack])
    np.testing.assert_array_equal(
        np.stack(ours(stack), -1) if found.ndim > 1 else ours(stack), found
    )
    assert not gt.linalg.issymmetric(A[:2])
    assert gt.linalg.issymmetric(A + A.T + 1e-9 * A, atol=1e-6)
    with pytest.raises(LinAlgError, match=f"{name}: got shape"):
        ours(A[0])
    with pytest.raises(ConversionError):
        gt.jit(lambda a: a * float(ours(a) is True))(A)


def test_compiled_code_raises_where_a_test_of_values_fails() -> None:
    solve = gt.jit(gt.linalg.solve_circulant)
    c, b = np.array([2.0, 1.0, 0.0]), np.ones(3)
    np.testing.assert_allclose(solve(c, b), scipy.linalg.solve_circulant(c, b))
    with pytest.raises(LinAlgError, match="singular up to rounding"):
        solve(np.ones(3), b)


# ---- forms of gradtape.scipy.linalg -------------------------------------------------------------


def test_residues_of_least_squares_with_lacking_rank_are_nan() -> None:
    lacking, b = gt.tensor(np.outer(A[0], A[1])), A[:, :2]
    for lstsq in (gt.scipy.linalg.lstsq, gt.jit(gt.scipy.linalg.lstsq)):
        x, residues, rank, _ = lstsq(lacking[:, :3], b)
        np.testing.assert_allclose(x, scipy.linalg.lstsq(lacking.numpy()[:, :3], b)[0])
        assert rank == 1
        assert np.isnan(residues).all()
        assert residues.shape == (2,)


def test_matrices_with_lacking_rank_by_an_absolute_limit() -> None:
    values = np.array([4.0, 2.0, 0.5, 0.25])
    u, v = np.linalg.qr(A).Q, np.linalg.qr(A.T).Q
    for a in ((u * values) @ v.T, (u * values) @ u.T):
        expected, rank = scipy.linalg.pinv(a, atol=0.4, rtol=0.02, return_rank=True)
        inverse, found = gt.scipy.linalg.pinv(gt.tensor(a), atol=0.4, rtol=0.02, return_rank=True)
        np.testing.assert_allclose(inverse, expected, atol=1e-12)
        assert found == rank == 3
    inverse, found = gt.linalg.pinvh(a, atol=0.4, rtol=0.02, return_rank=True)
    np.testing.assert_allclose(inverse, expected, atol=1e-12)
    assert found == 3


# ---- sizes --------------------------------------------------------------------------------------


def test_banded_equations_need_no_more_than_their_diagonals() -> None:
    # The whole matrix would have 10⁹ elements.
    size = 30_000
    diagonals = np.stack([np.full(size, -1.0), np.full(size, 2.5), np.full(size, -1.0)])

    def loss(diagonals: Any, b: Any) -> Any:
        return gt.sum(gt.linalg.solve_banded((1, 1), diagonals, b))

    by_diagonals, by_b = gt.grad(loss, (0, 1))(diagonals, np.ones(size))
    # Far from the ends x is 2, and so is what multiplies b.
    assert by_b[size // 2] == pytest.approx(2.0)
    np.testing.assert_allclose(by_diagonals[:, size // 2], -4.0)


def test_toeplitz_products_need_no_matrix() -> None:
    size = 100_000
    c, x = np.zeros(size), np.arange(size) / size
    c[:2] = 1.0, 0.5

    def loss(c: Any) -> Any:
        return gt.sum(gt.linalg.matmul_toeplitz((c, c), x))

    assert gt.grad(loss)(c)[0] == pytest.approx(np.sum(x))
