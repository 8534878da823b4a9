"""Functions of matrices near those that have no basis of eigenvectors, against many digits.

Besides: solvers and norms at points of which a table of samples can say too little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import NotDifferentiableError
from gradtape.testing import check_grads

RNG = np.random.default_rng(4)
# A Jordan block of four, and what rounding may make of one.
DEFECTIVE = 1.5 * np.eye(4) + np.diag(np.ones(3), 1)
NEARLY = DEFECTIVE + 1e-9 * RNG.standard_normal((4, 4))
DIRECTION = RNG.standard_normal((4, 4))


def in_digits(function: Callable[[Any], Any], x: Any) -> Any:
    """A function of a matrix, computed with 60 digits."""
    with mpmath.workdps(60):
        out = function(mpmath.matrix(x.tolist())).tolist()
        return np.array([[complex(element).real for element in row] for row in out])


def power_in_digits(x: Any) -> Any:
    return mpmath.expm(mpmath.logm(x) * mpmath.mpf(0.3))


FUNCTIONS = {
    "expm": (gt.linalg.expm, mpmath.expm),
    "logm": (gt.linalg.logm, mpmath.logm),
    "sqrtm": (gt.linalg.sqrtm, mpmath.sqrtm),
    "cosm": (gt.linalg.cosm, mpmath.cosm),
    "sinm": (gt.linalg.sinm, mpmath.sinm),
    "power": (lambda x: gt.linalg.fractional_matrix_power(x, 0.3), power_in_digits),
}


def in_detail(thorough: bool) -> dict[str, Any]:
    """Options of `check_grads`: entry by entry, or along random directions of all entries."""
    return {} if thorough else {"entries": 0}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_near_defective_matrices(name: str) -> None:
    function, exact = FUNCTIONS[name]
    # The corner of the function of [[A, E], [0, A]] is the derivative along E.
    pair = np.block([[NEARLY, DIRECTION], [np.zeros((4, 4)), NEARLY]])
    expected = in_digits(exact, pair)
    value, change = gt.jvp(function, (NEARLY,), (DIRECTION,))
    assert_near(value, expected[:4, :4])
    assert_near(change, expected[:4, 4:])
    # Reverse mode states the same derivative: <C, L(E)> = <L*(C), E>.
    (back,) = gt.vjp(function, NEARLY)[1](DIRECTION.T)
    scale = np.linalg.norm(back) * np.linalg.norm(DIRECTION)
    assert abs(np.sum(DIRECTION.T * change) - np.sum(back * DIRECTION)) < 1e-13 * scale


def assert_near(got: Any, expected: Any) -> None:
    scale = np.abs(expected).max()
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13 * scale)


def test_second_derivative_of_expm_at_a_defective_matrix() -> None:
    n = np.zeros((4, 4))
    rows = [
        [DEFECTIVE, DIRECTION, DIRECTION, n],
        [n, DEFECTIVE, n, DIRECTION],
        [n, n, DEFECTIVE, DIRECTION],
        [n, n, n, DEFECTIVE],
    ]
    expected = in_digits(mpmath.expm, np.block(rows))[:4, 12:]

    def along(x: Any) -> Any:
        return gt.jvp(gt.linalg.expm, (x,), (DIRECTION,))[1]

    assert_near(gt.jvp(along, (DEFECTIVE,), (DIRECTION,))[1], expected)


@pytest.mark.parametrize("function", [gt.linalg.sqrtm, gt.linalg.signm], ids=["sqrtm", "signm"])
def test_definition(function: Callable[..., Any]) -> None:
    x = NEARLY - (3.0 * np.diag([0.0, 1.0, 0.0, 0.0]) if function is gt.linalg.signm else 0.0)
    out = function(x)
    assert_near(out @ out, np.eye(4) if function is gt.linalg.signm else x)


def test_root_of_a_singular_matrix_has_a_value_and_no_derivative() -> None:
    singular = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    root = gt.linalg.sqrtm(singular)
    np.testing.assert_allclose(root @ root, singular, atol=1e-14)
    third = gt.linalg.fractional_matrix_power(singular, 1 / 3)
    np.testing.assert_allclose(third @ third @ third, singular, atol=1e-14)

    def total(x: Any) -> Any:
        return gt.sum(gt.linalg.sqrtm(x))

    with pytest.raises(NotDifferentiableError, match="sqrtm: got a singular matrix"):
        gt.grad(total)(singular)
    assert np.isnan(gt.jit(gt.grad(total))(singular)).all()


def test_power_as_a_variable(thorough: bool) -> None:
    x = np.array([[3.0, 1.0], [0.5, 2.0]])

    def power(x: Any, t: Any) -> Any:
        return gt.linalg.fractional_matrix_power(x, t)

    check_grads(
        lambda x, t: power(x, gt.tensor(t) if not isinstance(t, gt.Tensor) else t),
        (x, 0.7),
        **in_detail(thorough),
    )


# ---- solvers ------------------------------------------------------------------------------------

A = RNG.standard_normal((4, 4)) + 5 * np.eye(4)
B = RNG.standard_normal(4)
METHODS = [gt.linalg.cg, gt.linalg.bicgstab, gt.linalg.gmres]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_equations_by_a_function(method: Callable[..., Any], thorough: bool) -> None:
    matrix = A + A.T if method is gt.linalg.cg else A

    def solution(b: Any, shift: Any) -> Any:
        def product(v: Any, shift: Any) -> Any:
            return matrix @ v + shift * shift * v

        return method(product, b, rtol=1e-12, args=(shift,), M=lambda v: v / 8)[0]

    shift = np.array(0.7)
    expected = np.linalg.solve(matrix + shift * shift * np.eye(4), B)
    np.testing.assert_allclose(solution(B, shift), expected, rtol=1e-9)
    check_grads(solution, (B, shift), rtol=1e-6, **in_detail(thorough))


def test_derivative_that_does_not_converge_is_refused() -> None:
    def total(b: Any) -> Any:
        return gt.sum(gt.linalg.cg(A + A.T, b, rtol=1e-12, maxiter=1)[0])

    assert gt.linalg.cg(A + A.T, B, rtol=1e-12, maxiter=1)[1] == 1
    with pytest.raises(np.linalg.LinAlgError, match="cg: a derivative did not converge"):
        gt.grad(total)(B)


def test_solve_factors_once() -> None:
    # The backward pass solves with the factors of the forward one: no LAPACK call factors again.
    seen: list[str] = []

    class Watch:
        kind = "observing"

        def run(self, op: Any, args: Any, params: Any, proceed: Any) -> Any:
            seen.append(op.name)
            return proceed(op, args, params)

    with gt.using_mode(Watch()):
        gt.grad(lambda a: gt.sum(gt.linalg.solve(a, B)))(gt.Tensor(A))
    assert seen.count("solve") == 1


def test_least_squares_of_lower_rank_under_jit() -> None:
    thin = np.outer([1.0, 2.0, 3.0], [1.0, 1.0])
    eager = gt.linalg.lstsq(thin, np.array([1.0, 0.0, 1.0]))
    compiled = gt.jit(gt.linalg.lstsq)(thin, np.array([1.0, 0.0, 1.0]))
    assert eager.rank == compiled.rank == 1
    assert eager.residuals.shape == (0,)
    assert np.isnan(compiled.residuals).all()
    np.testing.assert_allclose(eager.x, compiled.x)


# ---- norms and determinants ---------------------------------------------------------------------


@pytest.mark.parametrize("x", [np.array([1.0, 0.0, -2.0]), np.array([1j, 0.0, -2.0])])
def test_second_derivative_of_a_norm_where_an_element_is_0(x: Any) -> None:
    def twice(x: Any, p: float) -> Any:
        direction = np.array([0.0, 1.0, 0.0], x.dtype)

        def once(x: Any) -> Any:
            return gt.jvp(lambda x: gt.norm(x, ord=p), (x,), (direction,))[1]

        return gt.jvp(once, (x,), (direction,))[1]

    assert twice(x, 3.0) == 0
    with np.errstate(all="ignore"):
        assert not np.isfinite(twice(x, 1.5))  # |x|^1.5 has an infinite one at 0


def test_second_derivative_of_a_norm_at_0() -> None:
    with np.errstate(all="ignore"):
        assert np.isnan(gt.hessian(lambda x: gt.norm(x, ord=3))(np.zeros(2))).any()


def test_third_derivative_of_det_at_a_singular_matrix(thorough: bool) -> None:
    x = RNG.standard_normal((3, 1)) @ RNG.standard_normal((1, 3))
    check_grads(gt.linalg.det, (x,), order=3, **in_detail(thorough))


def test_fourth_derivative_of_det() -> None:
    def fourth(x: Any, direction: Any) -> Any:
        def lower(order: int) -> Callable[[Any], Any]:
            if order == 0:
                return gt.linalg.det
            return lambda x: gt.jvp(lower(order - 1), (x,), (direction,))[1]

        return lower(4)(x)

    # det(A + tE) is a polynomial of degree 4, whose last coefficient is det(E).
    np.testing.assert_allclose(fourth(A, DIRECTION), 24 * np.linalg.det(DIRECTION), rtol=1e-9)
    with pytest.raises(np.linalg.LinAlgError, match=r"det: got a singular matrix.*order 4"):
        fourth(np.zeros((4, 4)), DIRECTION)


@pytest.mark.parametrize("name", ["expm", "sqrtm", "logm", "cosm"])
def test_jacobians_of_jacobians(name: str) -> None:
    function = getattr(gt.linalg, name)

    def total(a: Any) -> Any:
        return np.sum(function(a) ** 2)

    a = np.array([[1.2, 0.1], [0.3, 0.9]])
    expected = gt.hessian(total)(a)
    for outer in (gt.jacfwd, gt.jacrev):
        for inner in (gt.jacfwd, gt.jacrev):
            np.testing.assert_allclose(outer(inner(total))(a), expected, rtol=1e-9, atol=1e-9)
