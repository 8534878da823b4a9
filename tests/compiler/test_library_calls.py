"""Linear algebra in compiled code by calls of LAPACK: matrices too large for registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler.library_call import LibraryCall
from gradtape.compiler.plan import plan_of
from gradtape.compiler.program import Program
from gradtape.core.aval import aval_of
from gradtape.errors import LinAlgError
from gradtape.graph.trace import trace
from gradtape.ops.linalg import lapack, native_lapack
from numpy_target import NumpyTarget

SIZES = [9, 20, 33]
STACKS: list[tuple[int, ...]] = [(), (3,), (2, 2)]
Function = Callable[..., Any]


def flat(result: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in gt.tree.flatten(result)[0]]


def assert_native(function: Function, arrays: tuple[Any, ...], *, exact: bool) -> None:
    """One native part, with calls of LAPACK, gives what eager code gives."""
    compiled = gt.jit(function)
    explained = compiled.explain(*arrays)
    assert not explained.eager, explained.eager
    assert any(kernel.calls_library for kernel in explained.kernels)
    for found, expected in zip(flat(compiled(*arrays)), flat(function(*arrays)), strict=True):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        if exact or expected.dtype.kind != "f":
            np.testing.assert_array_equal(found, expected)
        else:
            size = np.abs(expected).max(initial=0)
            bound = 1e4 * float(np.finfo(expected.dtype).eps) * size
            np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


def general(rng: Any, stack: tuple[int, ...], size: int, dtype: Any) -> Any:
    return (rng.normal(size=(*stack, size, size)) + 4 * np.eye(size)).astype(dtype)


def definite(rng: Any, stack: tuple[int, ...], size: int, dtype: Any) -> Any:
    a = rng.normal(size=(*stack, size, size))
    return (a @ np.swapaxes(a, -1, -2) + np.eye(size)).astype(dtype)


# Those that call the routines of NumPy's own functions, on the same layout, have their bits.
FUNCTIONS: dict[str, tuple[Function, Function, bool]] = {
    "solve": (gt.linalg.solve, general, False),
    "solve pos": (lambda a, b: gt.linalg.solve(a, b, assume_a="pos"), definite, False),
    "lower": (lambda a, b: gt.linalg.solve_triangular(a, b, lower=True), general, False),
    "upper": (lambda a, b: gt.linalg.solve_triangular(a, b), general, False),
    "unit": (
        lambda a, b: gt.linalg.solve_triangular(a / 99, b, lower=True, unit_diagonal=True),
        general,
        False,
    ),
    "inv": (lambda a, _b: gt.linalg.inv(a), general, True),
    "det": (lambda a, _b: gt.linalg.det(a / 4), general, False),
    "slogdet": (lambda a, _b: tuple(gt.linalg.slogdet(a)), general, False),
    "cholesky": (lambda a, _b: gt.linalg.cholesky(a), definite, True),
    "upper cholesky": (lambda a, _b: gt.linalg.cholesky(a, upper=True), definite, True),
    "lu_factor": (lambda a, _b: tuple(gt.linalg.lu_factor(a)), general, False),
    "qr": (lambda a, _b: tuple(gt.linalg.qr(a)), general, True),
}
EACH = pytest.mark.parametrize("name", FUNCTIONS)


@EACH
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("stack", STACKS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values(rng: Any, name: str, size: int, stack: tuple[int, ...], dtype: Any) -> None:
    function, make, exact = FUNCTIONS[name]
    b = rng.normal(size=(*stack, size, 2)).astype(dtype)
    assert_native(function, (make(rng, stack, size, dtype), b), exact=exact)


@pytest.mark.parametrize("size", [127, 130])
def test_large_inverses(rng: Any, size: int) -> None:
    assert_native(gt.linalg.inv, (general(rng, (), size, np.float64),), exact=False)


@pytest.mark.parametrize("shape", [(12, 5), (3, 40, 9), (9, 1)], ids=str)
def test_tall_matrices(rng: Any, shape: tuple[int, ...]) -> None:
    a = rng.normal(size=shape)
    assert_native(lambda a: tuple(gt.linalg.qr(a)), (a,), exact=True)
    assert_native(lambda a: tuple(gt.linalg.lu_factor(a)), (a,), exact=False)
    assert_native(
        lambda a: tuple(gt.linalg.lu_factor(a)), (np.swapaxes(a, -1, -2).copy(),), exact=False
    )


@pytest.mark.parametrize("stack", STACKS, ids=str)
@pytest.mark.parametrize("size", [9, 30])
def test_gradients(rng: Any, size: int, stack: tuple[int, ...]) -> None:
    a, b = definite(rng, stack, size, np.float64), rng.normal(size=(*stack, size, 1))

    def likelihood(a: Any, b: Any) -> Any:
        factor = gt.linalg.cholesky(a)
        white = gt.linalg.solve_triangular(factor, b, lower=True)
        quadratic = (white**2).sum() + (b.mT @ gt.linalg.solve(a, b)).sum()
        pos = (b.mT @ gt.linalg.solve(a, b, assume_a="pos")).sum()
        return quadratic + pos + gt.linalg.slogdet(a)[1].sum()

    assert_native(gt.grad(likelihood, argnums=(0, 1)), (a, b), exact=False)


def test_matrices_of_integers(rng: Any) -> None:
    a = rng.integers(-3, 4, size=(10, 10)) + 20 * np.eye(10, dtype=int)
    assert_native(gt.linalg.solve, (a, np.arange(20).reshape(10, 2)), exact=False)


def test_singular_matrices_have_a_determinant() -> None:
    a = np.ones((10, 10))
    assert gt.jit(gt.linalg.det)(a) == 0
    assert tuple(gt.jit(lambda x: tuple(gt.linalg.slogdet(x)))(a)) == (0, -np.inf)


def test_stacks_that_broadcast_run_eagerly(rng: Any) -> None:
    a, b = general(rng, (1,), 9, np.float64), rng.normal(size=(4, 9, 2))
    compiled = gt.jit(gt.linalg.solve)
    assert [each.op for each in compiled.explain(a, b).eager] == ["solve"]
    np.testing.assert_allclose(compiled(a, b), np.linalg.solve(a, b))


def test_many_calls_in_one_function(rng: Any) -> None:
    a = general(rng, (), 9, np.float64) / 9

    def function(a: Any, x: Any) -> Any:
        for _ in range(60):
            x = np.tanh(gt.linalg.solve(a, x)) + 1.0
        return x

    x = np.ones((9, 1))
    np.testing.assert_allclose(gt.jit(function)(a, x), function(a, x), rtol=0, atol=1e-12)


# ---- failures -----------------------------------------------------------------------------------

N = 12
FAILING: list[tuple[Function, tuple[Any, ...]]] = [
    (gt.linalg.inv, (np.ones((N, N)),)),
    (gt.linalg.solve, (np.ones((N, N)), np.ones((N, 1)))),
    (gt.linalg.cholesky, (-np.eye(N),)),
    (lambda a, b: gt.linalg.solve(a, b, assume_a="pos"), (-np.eye(N), np.ones((N, 1)))),
    (gt.linalg.solve_triangular, (np.diag([1.0] * 9 + [0.0] * 3), np.ones((N, 1)))),
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
    fine = (3 * np.eye(N), *arrays[1:])
    for one, other in zip(flat(compiled(*fine)), flat(function(*fine)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-15)


def test_one_singular_matrix_of_a_stack_is_noticed() -> None:
    a = np.broadcast_to(np.eye(N), (7, N, N)).copy()
    compiled = gt.jit(gt.linalg.inv)
    np.testing.assert_array_equal(compiled(a), a)
    a[3, 1] = a[3, 0]
    with pytest.raises(LinAlgError, match="Singular matrix"):
        compiled(a)


# ---- other ways to run a plan, other libraries --------------------------------------------------


def test_debug_mode(rng: Any) -> None:
    a, b = definite(rng, (), 10, np.float64), rng.normal(size=(10, 2))

    def function(a: Any, b: Any) -> Any:
        return gt.linalg.solve(a, np.exp(b)) * gt.linalg.det(a), gt.linalg.cholesky(a)

    for one, other in zip(gt.jit(function, debug=True)(a, b), function(a, b), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


@EACH
def test_plans_say_all_there_is_to_do(rng: Any, name: str) -> None:
    function, make, _ = FUNCTIONS[name]
    a, b = make(rng, (2,), 10, np.float64), rng.normal(size=(2, 10, 3))
    traced = trace(lambda a, b: flat_values(function(a, b)), [aval_of(a), aval_of(b)])
    target = NumpyTarget()
    found = Program(traced.graph, target=target)(a, b)
    assert target.library_calls
    for one, other in zip(found, flat(function(a, b)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def flat_values(result: Any) -> list[Any]:
    return gt.tree.flatten(result)[0]


def test_failures_of_plans(rng: Any) -> None:
    traced = trace(lambda a: [gt.linalg.cholesky(a)], [aval_of(np.eye(N))])
    with pytest.raises(LinAlgError, match="not positive definite"):
        Program(traced.graph, target=NumpyTarget())(-np.eye(N))


@pytest.fixture
def library_of_scipy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where NumPy's library does not have the names of its wheels."""
    monkeypatch.setattr(native_lapack, "numpy_library", lambda: None)
    for function in (native_lapack._library, native_lapack.workspace):
        function.cache_clear()
    yield
    monkeypatch.undo()
    for function in (native_lapack._library, native_lapack.workspace):
        function.cache_clear()


@pytest.mark.usefixtures("library_of_scipy")
@EACH
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_library_of_scipy(rng: Any, name: str, dtype: Any) -> None:
    assert native_lapack.integers() == np.intc
    function, make, _ = FUNCTIONS[name]
    b = rng.normal(size=(2, 11, 2)).astype(dtype)
    assert_native(function, (make(rng, (2,), 11, dtype), b), exact=False)


@pytest.mark.usefixtures("library_of_scipy")
def test_failures_of_the_library_of_scipy() -> None:
    with pytest.raises(LinAlgError, match="a 0 at 9"):
        gt.jit(gt.linalg.solve_triangular)(*FAILING[-1][1])


def test_the_library_of_numpy_is_called_where_it_is_found() -> None:
    if lapack.numpy_routine("getrf", np.float64) is None:
        pytest.skip("NumPy has another library")
    assert native_lapack.integers() == np.int64


def test_working_memory_is_asked_for_when_a_plan_is_made() -> None:
    traced = trace(lambda a: list(gt.linalg.qr(a)), [aval_of(np.ones((40, 20)))])
    steps = [step for step in plan_of(traced.graph).steps if isinstance(step, LibraryCall)]
    assert [call.symbol[-5:] for step in steps for call in step.calls] == ["geqrf", "orgqr"]
    (length,) = {step.calls[0].args[-1] for step in steps}
    assert length >= 20
    assert max(buffer.size for buffer in steps[0].buffers) >= length


# ---- spectra ------------------------------------------------------------------------------------

SPECTRA: dict[str, Function] = {
    "eigh": lambda a: tuple(gt.linalg.eigh(a + a.mT)),
    "eigh of the upper triangle": lambda a: tuple(gt.linalg.eigh(a, UPLO="U")),
    "eigenvectors": lambda a: gt.linalg.eigh(a).eigenvectors,
    "eigvalsh": lambda a: gt.linalg.eigvalsh(a),
    "svd": lambda a: tuple(gt.linalg.svd(a)),
    "one more vector": lambda a: tuple(gt.linalg.svd(a[..., :-1])),
    "tall": lambda a: tuple(gt.linalg.svd(a[..., : a.shape[-1] // 2], full_matrices=False)),
    "wide": lambda a: tuple(gt.linalg.svd(a[..., : a.shape[-1] // 2, :], full_matrices=False)),
    "left vectors": lambda a: gt.linalg.svd(a).U,
    "svdvals": lambda a: gt.linalg.svdvals(a[..., 1:]),
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("size", [2, 5, 14])
@pytest.mark.parametrize("stack", STACKS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_spectra(rng: Any, name: str, size: int, stack: tuple[int, ...], dtype: Any) -> None:
    a = rng.normal(size=(*stack, size, size)).astype(dtype)
    assert_native(SPECTRA[name], (a,), exact=True)


@pytest.mark.parametrize("size", [2, 9])
@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_gradients_of_decompositions(rng: Any, size: int, stack: tuple[int, ...]) -> None:
    weights = rng.normal(size=(size, size))

    def loss(a: Any) -> Any:
        w, v = gt.linalg.eigh(a)
        u, s, vh = gt.linalg.svd(a)
        total = (w * v**2 * weights).sum() + (s * u**2 * weights).sum() + (vh**2 * weights).sum()
        q, r = gt.linalg.qr(a)
        return total + (q * weights).sum() + (r * weights).sum() + gt.linalg.svdvals(a).sum()

    # Values of a stack are told apart by an axis for the rows of vectors.
    def stacked(a: Any) -> Any:
        return loss(a) if a.ndim == 2 else sum(stacked(a[k]) for k in range(len(a)))

    assert_native(gt.grad(stacked), (rng.normal(size=(*stack, size, size)),), exact=False)


REPEATED: dict[str, Any] = {
    "eigh": np.eye(5),
    "eigh of the upper triangle": np.diag([1.0, 2.0, 2.0]),
    "eigenvectors": np.diag([1.0, 2.0, 2.0]),
    "eigvalsh": np.zeros((4, 4)),
    "svd": np.eye(3),
    "one more vector": np.ones((4, 4)),
    "tall": np.ones((6, 6)),
    "wide": np.ones((6, 6)),
    "left vectors": np.diag([2.0, 1.0, 0.0]),
    "svdvals": np.ones((5, 5)),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_repeated_values_are_left_to_eager_code(rng: Any, name: str) -> None:
    function, compiled = SPECTRA[name], gt.jit(SPECTRA[name])
    fine, special = rng.normal(size=REPEATED[name].shape), REPEATED[name]
    assert not compiled.explain(fine).eager
    for a in (fine, special, fine, special):
        for found, expected in zip(flat(compiled(a)), flat(function(a)), strict=True):
            np.testing.assert_array_equal(found, expected)
    assert compiled.explain(fine).eager  # from then on


def test_gradients_at_repeated_values_are_those_of_eager_code() -> None:
    a = np.diag([1.0, 2.0, 2.0])
    gradient = gt.grad(lambda a: gt.linalg.eigvalsh(a).max())
    np.testing.assert_allclose(gt.jit(gradient)(a), gradient(a), atol=1e-15)
    # What depends on the choice of vectors has no gradient, whatever LAPACK's choice is.
    dependent = gt.jit(gt.grad(lambda a: gt.linalg.eigh(a).eigenvectors.sum()))
    assert np.isnan(dependent(a)).any()


def test_one_repeated_value_of_a_stack_is_noticed(rng: Any) -> None:
    a = rng.normal(size=(6, 3, 3))
    a[4] = np.eye(3)
    found, expected = gt.jit(gt.linalg.eigh)(a), gt.linalg.eigh(a)
    np.testing.assert_array_equal(found.eigenvectors, expected.eigenvectors)


def test_bases_of_null_spaces_are_left_to_eager_code(rng: Any) -> None:
    compiled = gt.jit(lambda a: tuple(gt.linalg.svd(a)))
    assert [each.op for each in compiled.explain(np.ones((5, 2))).eager] == ["svd"]


@pytest.mark.parametrize("function", [gt.linalg.eigvalsh, gt.linalg.svdvals])
def test_nan_raises_as_in_eager_code(function: Function) -> None:
    a = np.full((3, 3), np.nan)
    with pytest.raises(LinAlgError, match="not converge"):
        function(a)
    with pytest.raises(LinAlgError, match="not converge"):
        gt.jit(function)(a)


@pytest.mark.usefixtures("library_of_scipy")
@pytest.mark.parametrize("name", SPECTRA)
def test_spectra_by_the_library_of_scipy(rng: Any, name: str) -> None:
    assert_native(SPECTRA[name], (rng.normal(size=(2, 7, 7)),), exact=False)
