"""Linear algebra of small matrices in compiled code: in registers, without LAPACK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler.program import Program
from gradtape.core.aval import aval_of
from gradtape.errors import LinAlgError
from gradtape.graph.trace import trace
from numpy_target import NumpyTarget

SIZES = [1, 2, 3, 4, 5, 6, 8]
STACKS: list[tuple[int, ...]] = [(), (5,), (2, 3)]
DTYPES = [np.float32, np.float64]

EACH = pytest.mark.parametrize("size", SIZES)
STACKED = pytest.mark.parametrize("stack", STACKS, ids=str)
TYPED = pytest.mark.parametrize("dtype", DTYPES)


def flat(result: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in gt.tree.flatten(result)[0]]


def native(function: Callable[..., Any], *arrays: Any) -> list[Any]:
    """The results of a function that has to be one native part."""
    compiled = gt.jit(function)
    explained = compiled.explain(*arrays)
    assert not explained.eager, explained.eager
    return flat(compiled(*arrays))


def assert_close(found: list[Any], expected: Any, condition: float) -> None:
    """Equal up to 8·n·eps·cond of the largest element."""
    for one, other in zip(found, flat(expected), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        size = np.abs(other).max(initial=0)
        n = max(other.shape, default=1)
        bound = 8 * n * float(np.finfo(other.dtype).eps) * condition * size
        np.testing.assert_allclose(one, other, rtol=0, atol=bound)


def general(rng: Any, stack: tuple[int, ...], size: int, dtype: Any) -> tuple[Any, float]:
    """Matrices without special structure, and the largest of their conditions."""
    a = rng.normal(size=(*stack, size, size)).astype(dtype)
    return a, float(np.linalg.cond(a.astype(np.float64)).max())


def definite(rng: Any, stack: tuple[int, ...], size: int, dtype: Any) -> tuple[Any, float]:
    a = rng.normal(size=(*stack, size, size + 2))
    a = (a @ np.swapaxes(a, -1, -2)).astype(dtype)
    return a, float(np.linalg.cond(a.astype(np.float64)).max())


# ---- values -------------------------------------------------------------------------------------


@EACH
@STACKED
@TYPED
def test_solve(rng: Any, size: int, stack: tuple[int, ...], dtype: Any) -> None:
    a, condition = general(rng, stack, size, dtype)
    b = rng.normal(size=(*stack, size, 2)).astype(dtype)
    assert_close(native(gt.linalg.solve, a, b), np.linalg.solve(a, b), condition)


@EACH
@STACKED
@TYPED
def test_solve_of_definite_matrices(
    rng: Any, size: int, stack: tuple[int, ...], dtype: Any
) -> None:
    a, condition = definite(rng, stack, size, dtype)
    b = rng.normal(size=(*stack, size, 1)).astype(dtype)
    found = native(lambda a, b: gt.linalg.solve(a, b, assume_a="pos"), a, b)
    assert_close(found, np.linalg.solve(a, b), condition)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
@STACKED
@TYPED
def test_inverse(rng: Any, size: int, stack: tuple[int, ...], dtype: Any) -> None:
    a, condition = general(rng, stack, size, dtype)
    assert_close(native(gt.linalg.inv, a), np.linalg.inv(a), condition)


@EACH
@STACKED
@TYPED
def test_determinants(rng: Any, size: int, stack: tuple[int, ...], dtype: Any) -> None:
    a, condition = general(rng, stack, size, dtype)
    assert_close(native(gt.linalg.det, a), np.linalg.det(a), condition)
    found = native(lambda x: tuple(gt.linalg.slogdet(x)), a)
    assert_close(found[:1], np.linalg.slogdet(a)[0], 0)
    np.testing.assert_allclose(
        found[1], np.linalg.slogdet(a)[1], atol=64 * condition * np.finfo(dtype).eps
    )


@EACH
@STACKED
@TYPED
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(rng: Any, size: int, stack: tuple[int, ...], dtype: Any, upper: bool) -> None:
    a, condition = definite(rng, stack, size, dtype)
    expected = np.linalg.cholesky(a)
    # The other triangle is not read.
    a = np.where(np.tri(size, dtype=bool).T if upper else np.tri(size, dtype=bool), a, np.nan)
    found = native(lambda x: gt.linalg.cholesky(x, upper=upper), a)
    assert_close(found, np.swapaxes(expected, -1, -2) if upper else expected, condition)


@EACH
@STACKED
@TYPED
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular(
    rng: Any, size: int, stack: tuple[int, ...], dtype: Any, lower: bool, unit: bool
) -> None:
    a = rng.uniform(1, 2, size=(*stack, size, size)).astype(dtype)
    b = rng.normal(size=(*stack, size, 3)).astype(dtype)
    part = np.tril(a) if lower else np.triu(a)
    if unit:
        part[..., range(size), range(size)] = 1
    unread = np.tri(size, k=-int(unit), dtype=bool)
    a = np.where(unread if lower else unread.T, a, np.nan)
    found = native(
        lambda a, b: gt.linalg.solve_triangular(a, b, lower=lower, unit_diagonal=unit), a, b
    )
    condition = float(np.linalg.cond(part.astype(np.float64)).max())
    assert_close(found, np.linalg.solve(part, b), condition)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (4, 4), (4, 2), (3, 1), (5, 4, 3)], ids=str)
@TYPED
def test_qr_has_the_signs_of_lapack(rng: Any, shape: tuple[int, ...], dtype: Any) -> None:
    a = rng.normal(size=shape).astype(dtype)
    condition = float(np.linalg.cond(a).max())
    assert_close(native(lambda x: tuple(gt.linalg.qr(x)), a), tuple(np.linalg.qr(a)), condition)
    upper = np.triu(a)  # nothing to reflect
    assert_close(native(lambda x: tuple(gt.linalg.qr(x)), upper), tuple(np.linalg.qr(upper)), 1)


def test_qr_of_extreme_sizes() -> None:
    for scale in (1e-200, 1e200):
        a = scale * np.array([[3.0, 1.0], [4.0, 2.0]])
        assert_close(native(lambda x: tuple(gt.linalg.qr(x)), a), tuple(np.linalg.qr(a)), 16)
    assert_close(native(lambda x: tuple(gt.linalg.qr(x)), np.zeros((2, 2))), (np.eye(2), 0 * a), 1)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (3, 5, 5)], ids=str)
def test_lu_takes_the_pivots_of_lapack(rng: Any, shape: tuple[int, ...]) -> None:
    # Small whole numbers have many ties.
    a = rng.integers(-2, 3, size=shape).astype(float)
    for function in (gt.linalg.lu_factor, gt.linalg.lu):
        found = native(lambda x, f=function: tuple(f(x)), a)
        for one, other in zip(found, flat(tuple(function(a))), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-14)


def test_elements_that_have_to_be_exchanged() -> None:
    a = np.array([[0.0, 0.0, 2.0], [4.0, 0.0, 0.0], [0.0, 8.0, 0.0]])
    np.testing.assert_array_equal(native(gt.linalg.inv, a)[0], np.linalg.inv(a))
    b = np.arange(3.0)
    np.testing.assert_array_equal(native(gt.linalg.solve, a, b)[0], np.linalg.solve(a, b))
    assert native(gt.linalg.det, a)[0] == 64


def test_determinants_stay_in_range() -> None:
    a = np.diag([1e200, 1e200, 1e-300, 1e-150])
    np.testing.assert_allclose(native(gt.linalg.det, a)[0], 1e-50, rtol=1e-14)
    np.testing.assert_allclose(
        native(gt.linalg.det, np.diag([-1e30, 1e30, 1e-30]).astype(np.float32))[0], -1e30, rtol=1e-6
    )
    assert native(gt.linalg.det, np.diag([1e200, -1e200]))[0] == -np.inf
    assert native(gt.linalg.det, np.diag([1e-200, 1e-200]))[0] == 0


def test_determinants_of_singular_matrices() -> None:
    a = np.array([[1.0, 2.0], [2.0, 4.0]])
    assert native(gt.linalg.det, a)[0] == 0
    sign, logarithm = native(lambda x: tuple(gt.linalg.slogdet(x)), a)
    assert (sign, logarithm) == (0, -np.inf)


def test_nan_goes_through() -> None:
    a = np.array([[[1.0, 0.0], [0.0, 1.0]], [[np.nan, 0.0], [0.0, 1.0]]])
    for function in (gt.linalg.cholesky, gt.linalg.inv, gt.linalg.det):
        found = native(function, a)[0]
        assert np.isfinite(found[0]).all()
        assert np.isnan(found[1]).any()


def test_matrices_of_integers() -> None:
    a, b = np.array([[2, 1], [1, 3]]), np.array([3, 5])
    assert_close(native(gt.linalg.solve, a, b), np.linalg.solve(a, b), 4)
    assert_close(native(gt.linalg.inv, a), np.linalg.inv(a), 4)


# ---- stacks and memory --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"), [((3,), ()), ((), (4,)), ((2, 1), (3,)), ((1,), (5,))], ids=str
)
def test_stacks_broadcast(rng: Any, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, condition = general(rng, first, 3, np.float64)
    b = rng.normal(size=(*second, 3, 2))
    for assume in ("gen", "pos"):
        a = a if assume == "gen" else a @ np.swapaxes(a, -1, -2)
        found = native(lambda a, b, s=assume: gt.linalg.solve(a, b, assume_a=s), a, b)
        assert_close(found, np.linalg.solve(a, b), condition**2)


def test_factors_that_nothing_reads_are_not_stored() -> None:
    a, b = np.eye(3), np.ones((3, 1))
    (kernel,) = gt.jit(gt.linalg.solve).explain(a, b).kernels
    assert kernel.bytes_written == b.nbytes


def test_elements_of_operands_are_computed_in_registers() -> None:
    a, b = np.eye(2) + 1, np.ones((2, 1))
    kernels = gt.jit(lambda a, b: gt.linalg.solve(2 * a.mT, b - 1)).explain(a, b).kernels
    assert len(kernels) == 1
    assert {"solve", "multiply", "subtract"} <= set(kernels[0].ops)


@pytest.mark.parametrize("shape", [(0, 0), (0, 2, 2)], ids=str)
def test_nothing(shape: tuple[int, ...]) -> None:
    a = np.ones(shape)
    for function in (gt.linalg.inv, gt.linalg.det, gt.linalg.cholesky):
        np.testing.assert_array_equal(gt.jit(function)(a), function(a))


@pytest.mark.parametrize(("first", "second"), [((), ()), ((3,), (3,)), ((), (4,))], ids=str)
@pytest.mark.parametrize("assume", ["gen", "pos"])
def test_many_columns(
    rng: Any, first: tuple[int, ...], second: tuple[int, ...], assume: str
) -> None:
    a, condition = definite(rng, first, 3, np.float64)
    b = rng.normal(size=(*second, 3, 41))

    def pulled(a: Any, b: Any) -> Any:
        return gt.grad(lambda a, b: (gt.linalg.solve(a, b, assume_a=assume) ** 2).sum(), (0, 1))(
            a, b
        )

    found = native(lambda a, b: gt.linalg.solve(a, b, assume_a=assume), a, b)
    assert_close(found, np.linalg.solve(a, b), condition)
    assert_close(native(pulled, a, b), pulled(a, b), 10 * condition**2)


# ---- failures -----------------------------------------------------------------------------------

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
FAILING: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (gt.linalg.inv, (SINGULAR,)),
    (gt.linalg.solve, (SINGULAR, np.ones((2, 1)))),
    (gt.linalg.cholesky, (np.array([[1.0, 2.0], [2.0, 1.0]]),)),
    (gt.linalg.cholesky, (np.zeros((2, 2)),)),
    (lambda a, b: gt.linalg.solve(a, b, assume_a="pos"), (-np.eye(2), np.ones((2, 1)))),
    (gt.linalg.solve_triangular, (np.diag([1.0, 0.0, 2.0, 0.0]), np.ones((4, 1)))),
]


@pytest.mark.parametrize("number", range(len(FAILING)))
def test_failures_have_the_message_of_eager_code(number: int) -> None:
    function, arrays = FAILING[number]
    with pytest.raises(LinAlgError) as expected:
        function(*arrays)
    compiled = gt.jit(function)
    with pytest.raises(LinAlgError) as found:
        compiled(*arrays)
    got, _, rest = str(found.value).partition(" at ")
    assert str(expected.value).startswith(got)
    assert str(expected.value).endswith(rest.partition("; ")[2])
    # Nothing is left behind: a matrix that is fine is computed.
    fine = (3 * np.eye(len(arrays[0])), *arrays[1:])
    for one, other in zip(flat(compiled(*fine)), flat(function(*fine)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-15)


def test_one_singular_matrix_of_a_stack_is_noticed() -> None:
    a = np.broadcast_to(np.eye(3), (7, 3, 3)).copy()
    compiled = gt.jit(gt.linalg.inv)
    np.testing.assert_array_equal(compiled(a), a)
    a[6, 1] = a[6, 0]
    with pytest.raises(LinAlgError, match="Singular matrix"):
        compiled(a)


# ---- derivatives --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 4])
@STACKED
def test_gradients_are_native(rng: Any, size: int, stack: tuple[int, ...]) -> None:
    a, condition = definite(rng, stack, size, np.float64)
    b = rng.normal(size=(*stack, size, 1))

    def likelihood(a: Any, b: Any) -> Any:
        factor = gt.linalg.cholesky(a)
        white = gt.linalg.solve_triangular(factor, b, lower=True)
        quadratic = (white**2).sum() + (b.mT @ gt.linalg.solve(a, b)).sum()
        pos = (b.mT @ gt.linalg.solve(a, b, assume_a="pos")).sum()
        return quadratic + pos + gt.linalg.slogdet(a)[1].sum() + gt.linalg.det(a).sum()

    gradient = gt.grad(likelihood, argnums=(0, 1))
    assert_close(native(gradient, a, b), gradient(a, b), 100 * condition**2)


def test_second_derivatives(rng: Any) -> None:
    a, condition = definite(rng, (), 3, np.float64)
    hessian = gt.hessian(lambda a: gt.linalg.solve(a, np.ones(3)).sum())
    assert_close(native(hessian, a), hessian(a), 100 * condition**2)


# ---- other ways to run a plan -------------------------------------------------------------------


def test_debug_mode_allows_the_rounding_of_the_condition() -> None:
    # Hilbert's matrix has a condition of 1e10.
    size = 8
    a = 1 / (np.arange(size)[:, None] + np.arange(size) + 1.0)
    for function in (gt.linalg.inv, gt.linalg.det, gt.linalg.cholesky):
        checked = gt.jit(function, debug=True)
        np.testing.assert_allclose(checked(a), function(a), rtol=1e-3)
    checked = gt.jit(gt.linalg.solve, debug=True)
    np.testing.assert_allclose(checked(a, a @ np.ones(size)), np.ones(size), rtol=1e-3)


def test_plans_say_all_there_is_to_do(rng: Any) -> None:
    a, b = rng.normal(size=(4, 3, 3)), rng.normal(size=(4, 3, 2))
    traced = trace(lambda a, b: [gt.linalg.solve(a, b)], [aval_of(a), aval_of(b)])
    target = NumpyTarget()
    found = Program(traced.graph, target=target)(a, b)[0]
    np.testing.assert_allclose(found, np.linalg.solve(a, b), rtol=1e-10)
    assert target.kernels == 1
