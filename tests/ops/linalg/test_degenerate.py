"""Decompositions where values are repeated or 0: the derivative if there is one, else an error.

What does not depend on the choice of vectors is compared with differences. What does is refused in
eager mode, and NaN in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import gradtape as gt
from degenerate import DIRECTION, REPEATED, RNG, SINGULAR, WEIGHTS, P, Q, symmetric, weighted
from gradtape.errors import ArgumentError, ConversionError, LinAlgError, NotDifferentiableError
from gradtape.testing import check_grads


@pytest.fixture
def in_detail(thorough: bool) -> dict[str, Any]:
    """Options of `check_grads`: entry by entry, or along random directions of all entries."""
    return {} if thorough else {"entries": 0}


def along(function: Callable[[Any], Any], x: Any, step: float = 1e-6) -> float:
    """The derivative in a direction by central differences."""
    ends = function(x + step * DIRECTION), function(x - step * DIRECTION)
    return float((ends[0] - ends[1]) / (2 * step))


def check(function: Callable[[Any], Any], x: Any, modes: str = "reverse forward") -> None:
    """The derivative in a direction is that of differences."""
    expected = along(function, x)
    if "reverse" in modes:
        got = np.sum(gt.grad(function)(x) * DIRECTION)
        assert got == pytest.approx(expected, rel=1e-7, abs=1e-7)
    if "forward" in modes:
        got = gt.jvp(function, (x,), (DIRECTION,))[1]
        assert got == pytest.approx(expected, rel=1e-7, abs=1e-7)


def check_refused(
    function: Callable[[Any], Any], x: Any, match: str, *, forward: bool = False
) -> None:
    """There is no derivative: an error in eager mode, NaN in compiled code."""

    def derivative(x: Any) -> Any:
        return gt.jvp(function, (x,), (DIRECTION,))[1] if forward else gt.grad(function)(x)

    with pytest.raises(NotDifferentiableError, match=match):
        derivative(x)
    # Compiling takes long, and a matrix turned out of the axes is as good as others.
    if x is REPEATED["turned"] or x is SINGULAR["rank 1"] or x.shape != (3, 3):
        assert np.isnan(gt.jit(derivative)(x)).all()


# ---- eigenvalues --------------------------------------------------------------------------------


@pytest.mark.parametrize("x", REPEATED.values(), ids=REPEATED)
def test_functions_that_treat_eigenvalues_alike(x: Any) -> None:
    check(lambda x: gt.sum(gt.linalg.eigvalsh(symmetric(x))), x)
    check(lambda x: gt.sum(gt.exp(gt.linalg.eigvalsh(symmetric(x)))), x)
    check(lambda x: gt.sum(gt.linalg.eigh(symmetric(x)).eigenvalues ** 3), x, "reverse")


def test_eigenvalues_equal_up_to_rounding_are_made_equal() -> None:
    w = gt.linalg.eigvalsh(REPEATED["turned"])
    assert w[0] == w[1]
    # A minimum shares its gradient among equals: the projection on their space.
    grad = gt.grad(lambda x: gt.min(gt.linalg.eigvalsh(x)))(REPEATED["turned"])
    np.testing.assert_allclose(grad, Q[:, :2] @ Q[:, :2].T / 2, atol=1e-14)


@pytest.mark.parametrize("x", REPEATED.values(), ids=REPEATED)
def test_single_ones_of_repeated_eigenvalues_have_no_gradient(x: Any) -> None:
    check_refused(lambda x: gt.linalg.eigvalsh(x)[0], x, "repeated eigenvalues.*treated diff")
    check_refused(lambda x: gt.linalg.eigh(x)[0][0], x, "repeated eigenvalues.*treated diff")


def test_eigenvalues_that_are_not_repeated_have_their_gradient() -> None:
    check(lambda x: gt.linalg.eigvalsh(symmetric(x))[2], REPEATED["turned"])
    check(lambda x: gt.linalg.eigh(symmetric(x))[0][2], REPEATED["turned"], "reverse")


@pytest.mark.parametrize("x", REPEATED.values(), ids=REPEATED)
@pytest.mark.parametrize(
    "function",
    [
        lambda v: gt.sum(v),
        lambda v: v[0, 0],
        lambda v: v[0, 0] ** 2,
        lambda v: gt.sum(abs(v[:, 0])),
        lambda v: weighted(v[:, :1] @ v[:, :1].T),
    ],
    ids=["sum", "element", "square", "absolute", "projection"],
)
def test_eigenvectors_of_repeated_eigenvalues_have_no_gradient(function: Any, x: Any) -> None:
    check_refused(lambda x: function(gt.linalg.eigh(x)[1]), x, "chosen for repeated eigenvalues")
    check_refused(lambda x: function(gt.linalg.eigh(x)[1]), x, "forward mode", forward=True)


@pytest.mark.parametrize("name", ["diagonal", "turned"])
def test_projections_on_whole_spaces(name: str) -> None:
    def projection(x: Any) -> Any:
        v = gt.linalg.eigh(symmetric(x)).eigenvectors
        return weighted(v[:, :2] @ v[:, :2].T)

    def other(x: Any) -> Any:
        v = gt.linalg.eigh(symmetric(x)).eigenvectors
        return weighted(v[:, 2:] @ v[:, 2:].T)

    check(projection, REPEATED[name], "reverse")
    check(other, REPEATED[name], "reverse")
    check(lambda x: gt.linalg.eigh(symmetric(x))[1][0, 2] ** 2, REPEATED[name], "reverse")


@pytest.mark.parametrize("x", REPEATED.values(), ids=REPEATED)
@pytest.mark.parametrize("element", [(0, 0), (0, 1)])
def test_functions_of_the_matrix_by_its_eigenvectors_are_refused(x: Any, element: Any) -> None:
    # They have a derivative, but (w, V) do not tell it: better an error than a wrong one.
    def logarithm(x: Any) -> Any:
        w, v = gt.linalg.eigh(x)
        return ((v * gt.log(w + 1.0)) @ v.T)[element]

    check_refused(logarithm, x, "hermitian_function|treated differently")


@pytest.mark.parametrize("x", REPEATED.values(), ids=REPEATED)
def test_functions_of_the_matrix(x: Any, in_detail: dict[str, Any]) -> None:
    def logarithm(x: Any) -> Any:
        return gt.linalg.hermitian_function(symmetric(x), lambda w: gt.log(w + 1.0))

    check_grads(logarithm, (x,), order=2, **in_detail)
    np.testing.assert_allclose(logarithm(x), scipy.linalg.logm(x + np.eye(3)), atol=1e-13)


def test_functions_of_the_matrix_to_third_order() -> None:
    def third(x: Any, e: Any) -> Any:
        def cube(x: Any) -> Any:
            return gt.linalg.hermitian_function(x, lambda w: w**3)

        def once(x: Any) -> Any:
            return gt.jvp(cube, (x,), (e,))[1]

        return gt.jvp(lambda x: gt.jvp(once, (x,), (e,))[1], (x,), (e,))[1]

    e = DIRECTION + DIRECTION.T
    np.testing.assert_allclose(third(np.eye(3), e), 6 * e @ e @ e, atol=1e-12)


def test_steps_of_functions_of_the_matrix_are_refused() -> None:
    def first(x: Any) -> Any:
        return weighted(gt.linalg.hermitian_function(x, lambda w: np.array([1.0, 0, 0]) + 0.0 * w))

    check_refused(first, np.eye(3), "jump or a kink")
    check_refused(lambda x: weighted(gt.linalg.hermitian_function(x, gt.sqrt)), 0 * Q, "kink")


def test_functions_of_the_matrix_depend_on_nothing_else() -> None:
    def power(p: Any) -> Any:
        return gt.sum(gt.linalg.hermitian_function(np.eye(2), lambda w: w**p))

    with pytest.raises(ArgumentError, match="depends on a tensor besides"):
        gt.grad(power)(2.0)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12, 1e-15])
def test_derivatives_are_accurate_for_close_eigenvalues(gap: float) -> None:
    x = Q @ np.diag([1.0, 1.0 + gap, 2.0]) @ Q.T
    e = DIRECTION + DIRECTION.T
    got = gt.jvp(lambda x: gt.linalg.hermitian_function(x, gt.exp), (x,), (e,))[1]
    np.testing.assert_allclose(got, scipy.linalg.expm_frechet(x, e)[1], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("size", [1e-5, 1e-8, 1e-12])
def test_derivatives_of_functions_that_round_larger_numbers(size: float) -> None:
    # log(1 + w) is off by as much as 1 + w is, and so are quotients of its differences.
    x, e = size * (WEIGHTS + WEIGHTS.T), DIRECTION + DIRECTION.T
    near, exact = (
        gt.jvp(lambda x, f=f: gt.linalg.hermitian_function(x, f), (x,), (e,))[1]
        for f in (lambda w: gt.log(w + 1.0), gt.log1p)
    )
    np.testing.assert_allclose(near, exact, rtol=1e-13)


def test_phases_of_eigenvectors_are_free() -> None:
    x = symmetric(WEIGHTS + 1j * DIRECTION)
    check_refused(lambda x: gt.sum(gt.real(gt.linalg.eigh(x)[1])), x, "phases")
    gt.grad(lambda x: weighted(abs(gt.linalg.eigh(x)[1])))(x)


def compiled_gradient(function: Callable[[Any], Any], x: Any) -> Any:
    return gt.jit(gt.grad(function))(x)


def test_compiled_gradients() -> None:
    def projection(x: Any) -> Any:
        v = gt.linalg.eigh(x).eigenvectors
        return weighted(v[:, :2] @ v[:, :2].T)

    for function in (projection, lambda x: gt.sum(gt.exp(gt.linalg.eigvalsh(x)))):
        got = compiled_gradient(function, REPEATED["turned"])
        np.testing.assert_allclose(got, gt.grad(function)(REPEATED["turned"]), atol=1e-13)


def test_batches_of_which_one_is_degenerate() -> None:
    stack = np.stack([np.diag([1.0, 2.0, 4.0]), np.eye(3)])
    check_batch = gt.jit(gt.grad(lambda x: gt.sum(gt.linalg.eigvalsh(x)[:, 0])))(stack)
    assert np.isfinite(check_batch[0]).all()
    assert np.isnan(check_batch[1]).all()


# ---- singular values ----------------------------------------------------------------------------


@pytest.mark.parametrize("x", SINGULAR.values(), ids=SINGULAR)
def test_functions_that_treat_singular_values_alike(x: Any) -> None:
    check(lambda x: gt.sum(gt.linalg.svdvals(x) ** 2), x)
    check(lambda x: gt.sum(gt.cosh(gt.linalg.svdvals(x))), x)


@pytest.mark.parametrize("name", ["identity", "orthogonal", "pair"])
def test_nuclear_norm(name: str) -> None:
    x = SINGULAR[name]
    check(lambda x: gt.sum(gt.linalg.svdvals(x)), x)
    check(lambda x: gt.sum(gt.linalg.svd(x).S), x, "reverse")


def test_values_of_zero_have_a_kink() -> None:
    x = SINGULAR["rank 1"]
    grad = gt.grad(lambda x: gt.sum(gt.linalg.svdvals(x)))(x)
    np.testing.assert_allclose(grad, np.outer(Q[:, 0], P[:, 0]), atol=1e-14)
    check_refused(lambda x: gt.sum(gt.linalg.svd(x).S), SINGULAR["rank 2"], "of 0 in a result")


@pytest.mark.parametrize("name", ["identity", "orthogonal", "pair"])
def test_polar_factor_by_singular_vectors(name: str) -> None:
    def factor(x: Any) -> Any:
        u, _, vh = gt.linalg.svd(x)
        return weighted(u @ vh)

    check(factor, SINGULAR[name], "reverse")
    check(lambda x: weighted(gt.linalg.polar(x)[0]), SINGULAR[name])
    np.testing.assert_allclose(
        gt.grad(factor)(SINGULAR[name]),
        gt.grad(lambda x: weighted(gt.linalg.polar(x)[0]))(SINGULAR[name]),
        atol=1e-13,
    )


@pytest.mark.parametrize("name", ["rank 2", "rank 1", "zero"])
def test_polar_factor_needs_full_rank(name: str) -> None:
    def factor(x: Any) -> Any:
        u, _, vh = gt.linalg.svd(x)
        return weighted(u @ vh)

    check_refused(factor, SINGULAR[name], "svd: got")
    check_refused(factor, SINGULAR[name], "svd: got", forward=True)
    check_refused(lambda x: weighted(gt.linalg.polar(x)[0]), SINGULAR[name], "full rank")
    check_refused(
        lambda x: weighted(gt.linalg.polar(x)[0]), SINGULAR[name], "full rank", forward=True
    )


@pytest.mark.parametrize("x", SINGULAR.values(), ids=SINGULAR)
def test_singular_vectors_of_repeated_values_have_no_gradient(x: Any) -> None:
    match = "svd: got"
    if np.linalg.matrix_rank(x) != 2:
        check_refused(lambda x: gt.sum(gt.linalg.svd(x).U), x, match)
        check_refused(
            lambda x: gt.linalg.svd(x).Vh[0, 0] ** 2 + gt.linalg.svd(x).Vh[1, 0], x, match
        )
    check_refused(lambda x: gt.sum(gt.linalg.svd(x).U), x, match, forward=True)


@pytest.mark.parametrize("x", SINGULAR.values(), ids=SINGULAR)
def test_products_of_the_decomposition_are_never_wrong(x: Any, in_detail: dict[str, Any]) -> None:
    def product(x: Any) -> Any:
        u, s, vh = gt.linalg.svd(x)
        return weighted((u * s) @ vh)

    check_refused(product, x, "svd: got")
    check_grads(lambda x: gt.linalg.singular_function(x, lambda s: s), (x,), order=2, **in_detail)


@pytest.mark.parametrize("name", ["rank 2", "rank 1", "pair"])
def test_approximations_of_low_rank(name: str, in_detail: dict[str, Any]) -> None:
    x, rank = SINGULAR[name], 1 if name == "rank 1" else 2

    def kept(x: Any) -> Any:
        u, s, vh = gt.linalg.svd(x)
        return weighted((u[:, :rank] * s[:rank]) @ vh[:rank])

    def function(x: Any) -> Any:
        mask = np.arange(3) < rank
        return gt.linalg.singular_function(x, lambda s: s * mask)

    if name != "pair":
        check(kept, x, "reverse")
    check(lambda x: weighted(function(x)), x)
    check_grads(function, (x,), order=2, **in_detail)


def test_phases_of_singular_vectors_are_free() -> None:
    x = WEIGHTS + 1j * DIRECTION
    check_refused(lambda x: gt.sum(gt.real(gt.linalg.svd(x).U)), x, "phases")
    u, _, vh = gt.linalg.svd(x)
    gt.grad(lambda x: gt.sum(gt.real(gt.linalg.svd(x).U @ gt.linalg.svd(x).Vh)))
    assert np.isfinite(u @ vh).all()


def test_bases_of_null_spaces(in_detail: dict[str, Any]) -> None:
    x = DIRECTION[:, :2] @ WEIGHTS[:2]
    null, image = gt.linalg.null_space(x), gt.linalg.orth(x)
    assert (null.shape, image.shape) == ((3, 1), (3, 2))
    np.testing.assert_allclose(x @ null, 0, atol=1e-14)
    np.testing.assert_allclose(image @ image.T @ x, x, atol=1e-14)
    tall = WEIGHTS[:, :2]

    def projection(x: Any) -> Any:
        n = gt.linalg.null_space(x.T)
        return n @ n.T

    def columns(x: Any) -> Any:
        q = gt.linalg.orth(x)
        return q @ q.T

    check_grads(projection, (tall,), order=2, **in_detail)
    check_grads(columns, (tall,), order=2, **in_detail)
    check_grads(projection, (WEIGHTS[:, :1],), order=1)
    with pytest.raises(NotDifferentiableError, match="null space"):
        gt.grad(lambda x: gt.sum(gt.linalg.null_space(x)))(WEIGHTS[:1])
    with pytest.raises(LinAlgError, match="expected one matrix"):
        gt.linalg.orth(np.ones((2, 2, 2)))
    with pytest.raises(ConversionError):
        gt.vmap(gt.linalg.orth)(np.ones((2, 2, 2)))


# ---- other decompositions -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr_of_dependent_columns_is_refused(mode: str) -> None:
    x = np.outer([1.0, 2.0, 3.0], [1.0, 2.0])
    check_refused(lambda x: gt.sum(gt.linalg.qr(x, mode)[1]), x, "depend on each other")
    with pytest.raises(NotDifferentiableError, match="depend on each other"):
        gt.jvp(lambda x: gt.linalg.qr(x, mode)[1], (x,), (x,))


def test_rows_and_columns_of_different_size_are_not_dependent() -> None:
    x = WEIGHTS * np.array([1e-20, 1.0, 1e20])
    assert np.isfinite(gt.grad(lambda x: gt.sum(gt.linalg.qr(x)[0]))(x)).all()
    assert np.isfinite(gt.grad(lambda x: gt.sum(gt.linalg.lu(x)[1]))(x)).all()


def test_basis_that_completes_columns_is_free() -> None:
    x = RNG.normal(size=(4, 2))
    check_refused(lambda x: gt.sum(gt.linalg.qr(x, "complete")[0]), x, "completes the columns")


def test_lu_needs_pivots() -> None:
    check_refused(lambda x: gt.sum(gt.linalg.lu(x)[1]), np.ones((3, 3)), "depend on each other")
    check_refused(lambda x: gt.sum(gt.linalg.lu(x)[1]), np.ones((3, 2)), "depend on each other")
    check(lambda x: weighted(gt.linalg.lu(x)[-1]), SINGULAR["rank 2"])


def test_eigenvalues_of_any_matrix() -> None:
    check(lambda x: gt.real(gt.sum(gt.linalg.eigvals(x))), np.eye(3))
    check_refused(lambda x: gt.real(gt.linalg.eigvals(x)[0]), np.eye(3), "treated differently")
    check_refused(lambda x: abs(gt.linalg.eig(x)[1][0, 0]), np.eye(3), "repeated eigenvalues")
    check_refused(
        lambda x: abs(gt.linalg.eig(x)[1][0, 0]), np.eye(3), "repeated eigenvalues", forward=True
    )


@pytest.mark.parametrize("x", [[[1.0, 1.0], [0.0, 1.0]], [[1.0, 1.0], [1e-17, 1.0]]])
def test_matrices_without_a_basis_of_eigenvectors(x: Any) -> None:
    check_refused(lambda x: gt.real(gt.sum(gt.linalg.eigvals(x))), np.array(x), "without a basis")
    check_refused(lambda x: gt.sum(abs(gt.linalg.eig(x)[1])), np.array(x), "eig: got")


def test_phases_of_other_eigenvectors_are_free() -> None:
    x = WEIGHTS + 1j * DIRECTION
    check_refused(lambda x: gt.sum(gt.real(gt.linalg.eig(x)[1])), x, "phases")
    check_refused(lambda x: gt.sum(gt.real(gt.linalg.schur(x, output="complex").Z)), x, "phases")


def test_schur_needs_different_eigenvalues() -> None:
    check_refused(lambda x: weighted(gt.linalg.schur(x).T), np.eye(3), "repeated eigenvalues")
    rotation = np.array([[0.0, 1.0], [-1.0, 0.0]])
    check_refused(lambda x: gt.sum(gt.linalg.schur(x).T), rotation, "output='complex'")


# ---- as NumPy and SciPy call them ---------------------------------------------------------------


def test_numpy_functions_on_tensors() -> None:
    x = gt.Tensor(WEIGHTS)
    for name in ("qr", "svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals"):
        function: Any = getattr(np.linalg, name)
        got, expected = function(x), function(WEIGHTS)
        if isinstance(expected, tuple):
            assert type(got)._fields == type(expected)._fields  # type: ignore[attr-defined]
        else:
            got, expected = (got,), (expected,)
        for one, other in zip(got, expected, strict=True):
            assert isinstance(one, gt.Tensor)
            np.testing.assert_allclose(one.detach(), other, atol=1e-12)
    upper: Any = np.linalg.eigh(x, "U")[0]
    np.testing.assert_allclose(upper.detach(), np.linalg.eigh(WEIGHTS, "U")[0], atol=1e-12)
