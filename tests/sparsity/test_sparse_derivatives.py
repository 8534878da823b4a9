"""Sparse Jacobians and Hessians: their numbers are those of the dense ones, in every way to run."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg

import gradtape as gt
import our_scipy
from gradtape.errors import (
    ArgumentError,
    ConversionError,
    DTypeError,
    GradtapeError,
    NotDifferentiableError,
    ShapeError,
)
from gradtape.sparsity import compressed


def tridiagonal(x: Any) -> Any:
    y = np.exp(-x) + x * x
    padded = np.pad(x, 1)
    return y * padded[:-2] - np.sin(padded[2:]) * x


def arrowhead(x: Any) -> Any:
    return np.concatenate([np.sum(x**2)[None], x[1:] * x[0] + np.cos(x[1:])])


def wide(x: Any) -> Any:
    return np.sum(x.reshape(3, -1) ** 3, axis=1)


def tall(x: Any) -> Any:
    return np.stack([np.sin(x), 2.0 * x, x**3], axis=1)


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def hub(x: Any) -> Any:
    return np.sum(np.sin(x[0] * x[1:])) + np.sum(x**4)


FUNCTIONS = {f.__name__: f for f in (tridiagonal, arrowhead, wide, tall)}
SCALARS = {f.__name__: f for f in (rosenbrock, hub)}
DTYPES = (np.float64, np.float32)


def close(got: Any, expected: Any, dtype: Any = np.float64) -> None:
    tolerance = 100 * np.finfo(dtype).eps * max(1.0, np.abs(expected).max(initial=0.0))
    assert got.dtype == dtype
    dense = got.toarray() if hasattr(got, "toarray") else got
    np.testing.assert_allclose(dense, expected, rtol=0, atol=tolerance)


# ---- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "mixed"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_as_dense(name: str, mode: str, rng: Any) -> None:
    function = FUNCTIONS[name]
    jacobian = gt.sparse_jacobian(function, mode=mode)
    for dtype in DTYPES:
        x, v = rng.normal(size=(2, 12)).astype(dtype)
        got = jacobian(x)
        assert isinstance(got, scipy.sparse.csr_array)
        assert got.has_canonical_format
        for dense in (gt.jacfwd, gt.jacrev):
            close(got, dense(function)(x).reshape(got.shape), dtype)
        tangent = gt.jvp(function, (x,), (v,))[1]
        np.testing.assert_allclose(
            got @ v, tangent.reshape(-1), rtol=0, atol=1e-4 if dtype == np.float32 else 1e-12
        )


@pytest.mark.parametrize("name", SCALARS)
def test_hessians(name: str, rng: Any) -> None:
    function = SCALARS[name]
    hessian = gt.sparse_hessian(function)
    for dtype in DTYPES:
        x = rng.normal(size=12).astype(dtype)
        got = hessian(x)
        assert (got != got.T).nnz == 0
        close(got, gt.hessian(function)(x), dtype)


def test_numbers_of_sweeps() -> None:
    x = np.linspace(0.1, 1.0, 10_000)
    plan = gt.sparse_jacobian(tridiagonal).plan(x)
    assert (plan.forward, plan.reverse) == (3, 0)
    assert plan.pattern.nnz == 3 * 10_000 - 2
    plan = gt.sparse_jacobian(arrowhead).plan(x)
    assert (plan.forward, plan.reverse) == (2, 1)
    assert gt.sparse_jacobian(arrowhead, mode="forward").plan(x[:50]).forward == 50
    plan = gt.sparse_jacobian(wide).plan(x[:9_999])
    assert (plan.forward, plan.reverse) == (0, 1)
    assert gt.sparse_jacobian(tall).plan(x).forward == 1
    plan = gt.sparse_hessian(rosenbrock).plan(x)
    assert (plan.forward, plan.reverse, plan.pattern.nnz) == (3, 0, 29_998)
    assert gt.sparse_hessian(hub).plan(x).forward == 2


def test_arguments_and_results_of_any_shape(rng: Any) -> None:
    def function(x: Any) -> Any:
        return x[:, ::-1].T * x[0, 0]

    x = rng.normal(size=(3, 4))
    got = gt.sparse_jacobian(function)(x)
    close(got, gt.jacrev(function)(x).reshape(12, 12))
    scalar = gt.sparse_jacobian(lambda x: x**3)(2.0)
    assert scalar.shape == (1, 1)
    assert scalar.toarray() == [[12.0]]
    column = gt.sparse_jacobian(lambda x: x * np.arange(3.0))(np.float64(2.0))
    np.testing.assert_array_equal(column.toarray(), [[0.0], [1.0], [2.0]])


def test_containers_are_columns_one_after_the_other(rng: Any) -> None:
    def function(parts: Any, scale: Any) -> Any:
        return parts["a"][1:] * parts["b"][0][:, :2].sum(axis=0) * scale

    parts = {"a": rng.normal(size=3), "b": (rng.normal(size=(2, 3)).astype(np.float32),)}
    got = gt.sparse_jacobian(function)(parts, 2.0)
    dense = gt.jacrev(function)(parts, 2.0)
    close(got, np.concatenate([dense["a"], dense["b"][0].reshape(2, 6)], axis=1), np.float64)
    reverse = gt.sparse_jacobian(function, mode="reverse")(parts, 2.0)
    np.testing.assert_allclose(reverse.toarray(), got.toarray(), rtol=1e-6)

    def energy(parts: Any) -> Any:
        return np.sum(function(parts, 1.0) ** 2)

    flat = np.concatenate([parts["a"], parts["b"][0].reshape(-1)])

    def of_vector(x: Any) -> Any:
        return energy({"a": x[:3], "b": (x[3:].reshape(2, 3),)})

    doubles = {"a": parts["a"], "b": (parts["b"][0].astype(np.float64),)}
    close(gt.sparse_hessian(energy)(doubles), gt.hessian(of_vector)(flat))


def test_other_arguments(rng: Any) -> None:
    def function(scale: Any, x: Any, kind: str, *, power: Any = 2, shift: Any = None) -> Any:
        y = x[::-1] if kind == "turned" else x
        return scale * y**power + (0.0 if shift is None else shift["by"])

    jacobian = gt.sparse_jacobian(function, argnums=1)
    x = rng.normal(size=5)
    for kind in ("plain", "turned"):
        for options in ({}, {"power": 3}, {"shift": {"by": np.ones(5)}}):
            got = jacobian(1.5, x, kind, **options)
            close(got, gt.jacrev(function, 1)(1.5, x, kind, **options))
    close(gt.sparse_jacobian(function, argnums=-2)(1.5, x, "plain"), np.diag(3.0 * x))


def test_results_besides(rng: Any) -> None:
    def function(x: Any) -> Any:
        y = np.sin(x)
        return y[1:] * y[:-1], {"y": y, "total": np.sum(y)}

    x = rng.normal(size=5)
    got, aux = gt.sparse_jacobian(function, has_aux=True)(x)
    close(got, gt.jacrev(lambda x: function(x)[0])(x))
    np.testing.assert_allclose(aux["y"], np.sin(x))
    np.testing.assert_allclose(aux["total"], np.sin(x).sum())

    got, (extra,) = gt.sparse_hessian(lambda x: (rosenbrock(x), (x * 2.0,)), has_aux=True)(x)
    close(got, gt.hessian(rosenbrock)(x))
    np.testing.assert_array_equal(extra, 2.0 * x)


def test_half_floats_come_as_single_ones() -> None:
    for dtype in (np.float16, gt.bfloat16):
        x = np.arange(1.0, 5.0).astype(dtype)
        for pattern in (None, np.eye(3, 4) + np.eye(3, 4, k=1)):
            got = gt.sparse_jacobian(lambda x: x[1:] * x[:-1], pattern=pattern)(x)
            close(
                got, [[2.0, 1.0, 0.0, 0.0], [0.0, 3.0, 2.0, 0.0], [0.0, 0.0, 4.0, 3.0]], np.float32
            )
        assert gt.sparse_jacobian(lambda x: x * x)(gt.tensor(x)).dtype == dtype


def test_without_elements() -> None:
    assert gt.sparse_jacobian(lambda x: x * 2.0)(np.zeros(0)).shape == (0, 0)
    assert gt.sparse_jacobian(lambda x: np.sum(x))(np.zeros(0)).shape == (1, 0)
    assert gt.sparse_jacobian(lambda x: x[:0])(np.ones(3)).shape == (0, 3)
    constant = gt.sparse_jacobian(lambda x: np.sign(x))(np.ones(3))
    assert (constant.shape, constant.nnz) == ((3, 3), 0)
    assert gt.sparse_jacobian(lambda x: np.ones(2))(np.ones(3)).nnz == 0
    linear, aux = gt.sparse_hessian(lambda x: (np.sum(x), x), has_aux=True)(np.ones(3))
    assert linear.nnz == 0
    np.testing.assert_array_equal(aux, np.ones(3))
    plan = gt.sparse_jacobian(lambda x: np.sign(x)).plan(np.ones(3))
    assert "no sweeps" in str(plan)


def test_results_belong_to_the_caller(rng: Any) -> None:
    jacobian, x = gt.sparse_jacobian(tridiagonal), rng.normal(size=8)
    first = jacobian(x)
    expected = first.toarray()
    first.data[:] = first.indices[:] = first.indptr[:] = 0
    np.testing.assert_array_equal(jacobian(x).toarray(), expected)


def test_many_sweeps_go_in_parts(monkeypatch: pytest.MonkeyPatch, rng: Any) -> None:
    monkeypatch.setattr(compressed, "_MOST_BYTES", 3 * 8 * 12)
    x = rng.normal(size=12)
    for mode in ("forward", "reverse", "mixed"):
        jacobian = gt.sparse_jacobian(arrowhead, mode=mode)
        close(jacobian(x), gt.jacrev(arrowhead)(x))
        gradient = gt.grad(lambda x, j=jacobian: np.sum(j(x).data ** 2))(x)
        expected = gt.grad(lambda x: np.sum(gt.jacrev(arrowhead)(x) ** 2))(x)
        np.testing.assert_allclose(gradient, expected, rtol=1e-12)


# ---- tensors and transforms ---------------------------------------------------------------------


def test_tensors_in_sparse_arrays_out(rng: Any) -> None:
    x = gt.tensor(rng.normal(size=6), requires_grad=True)
    got = gt.sparse_jacobian(tridiagonal)(x)
    assert isinstance(got, our_scipy.sparse.SparseArray)
    np.sum(got.data**3).backward()
    expected = gt.grad(lambda x: np.sum(gt.jacrev(tridiagonal)(x) ** 3))(x.detach())
    np.testing.assert_allclose(x.grad, expected, rtol=1e-12)
    plain = gt.sparse_hessian(rosenbrock)(gt.tensor(x.detach()))
    assert isinstance(plain, our_scipy.sparse.SparseArray)
    np.testing.assert_allclose(plain.toarray(), gt.hessian(rosenbrock)(x.detach()))


def test_transforms_of_functions_of_the_matrix(rng: Any) -> None:
    x, v = rng.normal(size=(2, 7))
    sparse, dense = gt.sparse_jacobian(tridiagonal), gt.jacrev(tridiagonal)

    def energy(x: Any, matrix: Callable[[Any], Any]) -> Any:
        return np.sum((matrix(x) @ v) ** 2)

    for transform in (
        lambda f: gt.grad(f),
        lambda f: gt.jit(gt.grad(f)),
        lambda f: gt.grad(gt.jit(f)),
        lambda f: gt.hessian(f),
        lambda f: lambda x: gt.jvp(f, (x,), (v,))[1],
        lambda f: lambda x: gt.vmap(f)(np.stack([x, 2.0 * x])),
        lambda f: gt.jit(f),
    ):
        got = transform(lambda x: energy(x, sparse))(x)
        np.testing.assert_allclose(got, transform(lambda x: energy(x, dense))(x), rtol=1e-9)


def test_hessian_inside_of_transforms(rng: Any) -> None:
    x = rng.normal(size=5)
    sparse, dense = gt.sparse_hessian(rosenbrock), gt.hessian(rosenbrock)
    for transform in (gt.grad, lambda f: gt.jit(gt.grad(f)), gt.jit):
        got = transform(lambda x: np.sum(np.sin(sparse(x) @ x)))(x)
        expected = transform(lambda x: np.sum(np.sin(dense(x) @ x)))(x)
        np.testing.assert_allclose(got, expected, rtol=1e-8)


def test_matrix_is_a_result_of_compiled_functions(rng: Any) -> None:
    x = rng.normal(size=6)
    got = gt.jit(gt.sparse_jacobian(tridiagonal))(x)
    assert isinstance(got, our_scipy.sparse.SparseArray)
    close(got, gt.jacrev(tridiagonal)(x))


def test_captured_tensors_are_differentiated(rng: Any) -> None:
    x, weights = rng.normal(size=(2, 6))

    def total(weights: Any, jacobian: Callable[..., Any]) -> Any:
        return np.sum(jacobian(lambda x: tridiagonal(x * weights))(x) @ x)

    got = gt.grad(lambda w: total(w, gt.sparse_jacobian))(weights)
    np.testing.assert_allclose(got, gt.grad(lambda w: total(w, gt.jacrev))(weights), rtol=1e-9)
    held = gt.tensor(weights, requires_grad=True)
    matrix = gt.sparse_jacobian(lambda x: tridiagonal(x * held))
    np.sum(matrix(x) @ x).backward()
    np.testing.assert_allclose(held.grad, got, rtol=1e-9)


def test_a_function_without_forward_mode(rng: Any) -> None:
    @gt.custom_vjp
    def cubed(x: Any) -> Any:
        return x**3

    @cubed.defvjp
    def rule(ct: Any, out: Any, x: Any) -> Any:
        return (3.0 * ct * x * x,)

    x = rng.normal(size=5)
    jacobian = gt.sparse_jacobian(lambda x: cubed(x)[1:] * x[:-1])
    plan = jacobian.plan(x)
    assert (plan.forward, plan.reverse) == (0, 2)
    close(jacobian(x), gt.jacrev(lambda x: cubed(x)[1:] * x[:-1])(x))
    hessian = gt.sparse_hessian(lambda x: np.sum(cubed(x)[1:] * x[:-1]))
    close(hessian(x), gt.hessian(lambda x: np.sum(x[1:] ** 3 * x[:-1]))(x))
    with pytest.raises(gt.errors.NotDifferentiableError):
        gt.sparse_jacobian(cubed, mode="forward")(x)


def test_second_derivatives_that_are_not_symmetric(rng: Any) -> None:
    """Rules of users need not be those of any function: each element is computed by itself."""

    @gt.custom_jvp
    def odd(x: Any) -> Any:
        return np.sum(x * x)

    @odd.defjvp
    def rule(tangents: Any, out: Any, x: Any) -> Any:
        return np.sum(x[:-1] ** 2 * tangents[0][1:])

    x = rng.normal(size=6)
    dense = gt.hessian(odd)(x)
    assert np.abs(dense - dense.T).max() > 0.1
    close(gt.sparse_hessian(odd)(x), dense)

    def partly(x: Any) -> Any:
        with gt.no_grad():
            y = x[::-1] * 2.0
        return np.sum(x * x * y)

    # Tangents pass no_grad, which gt.hessian does not see: it follows what was recorded.
    close(gt.sparse_hessian(partly)(x), gt.jacfwd(gt.grad(partly))(x))


# ---- as functions -------------------------------------------------------------------------------


def test_pickled_and_copied(rng: Any) -> None:
    x = rng.normal(size=6)
    jacobian = gt.sparse_jacobian(tridiagonal, mode="reverse")
    for made in (pickle.loads(pickle.dumps(jacobian)), copy.deepcopy(jacobian)):
        assert made.plan(x).reverse == 3
        close(made(x), gt.jacrev(tridiagonal)(x))
    assert repr(jacobian) == "<sparse_jacobian of tridiagonal>"


def test_traced_once_for_each_form(rng: Any) -> None:
    traced = []

    def function(x: Any) -> Any:
        traced.append(x.shape)
        return tridiagonal(x)

    jacobian = gt.sparse_jacobian(function)
    for size in (5, 6, 5, 6):
        jacobian(rng.normal(size=size))
        jacobian.plan(rng.normal(size=size))
    jacobian(rng.normal(size=5).astype(np.float32))
    assert traced == [(5,), (6,), (5,)]


def test_methods(rng: Any) -> None:
    class Model:
        weight = 3.0

        def residuals(self, x: Any) -> Any:
            return tridiagonal(x) * self.weight

    x = rng.normal(size=5)
    close(gt.sparse_jacobian(Model().residuals)(x), 3.0 * gt.jacrev(tridiagonal)(x))


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: gt.sparse_jacobian(3.0), ArgumentError, "expected a function"),
        (
            lambda x: gt.sparse_jacobian(tridiagonal, (0, 1)),
            ArgumentError,
            "position of one argument",
        ),
        (lambda x: gt.sparse_jacobian(tridiagonal, mode="up"), ArgumentError, "got mode='up'"),
        (lambda x: gt.sparse_jacobian(tridiagonal, 1)(x), ArgumentError, "argnums"),
        (lambda x: gt.sparse_jacobian(tridiagonal)(np.arange(3)), DTypeError, "floating"),
        (lambda x: gt.sparse_jacobian(lambda p, x: x)((), x), ArgumentError, "holds no array"),
        (lambda x: gt.sparse_jacobian(tridiagonal)(x + 1j), DTypeError, "expected real arguments"),
        (lambda x: gt.sparse_jacobian(lambda x: x + 1j)(x), DTypeError, "expected real arguments"),
        (lambda x: gt.sparse_jacobian(lambda x: x > 0)(x), DTypeError, "returned bool"),
        (lambda x: gt.sparse_jacobian(lambda x: (x, x))(x), ArgumentError, "expected one array"),
        (
            lambda x: gt.sparse_jacobian(lambda x: x, has_aux=True)(x),
            ArgumentError,
            r"expected \(result, aux\)",
        ),
        (lambda x: gt.sparse_hessian(lambda x: x * x)(x), ShapeError, "expected a scalar"),
        (
            lambda x: gt.sparse_jacobian(lambda x: x if x[0] > 0 else -x)(x),
            ConversionError,
            "sparse_jacobian: the value of a traced tensor",
        ),
        (
            lambda x: gt.jacobian_sparsity(lambda x: x * float(x[0]))(x),
            ConversionError,
            "jacobian_sparsity: the value",
        ),
        (
            lambda x: gt.sparse_jacobian(lambda x, y: x)(x, {1, 2}),
            ArgumentError,
            "sparse_jacobian: a static argument cannot be hashed",
        ),
    ],
)
def test_bad_input(call: Callable[[Any], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        call(np.ones(3))
    assert str(caught.value).startswith(
        ("sparse_jacobian:", "sparse_hessian:", "jacobian_sparsity:")
    )


# ---- with SciPy ---------------------------------------------------------------------------------


def test_newton_steps_by_spsolve() -> None:
    def equations(x: Any) -> Any:
        padded = np.pad(x, 1)
        return 3.0 * x + x**3 - padded[:-2] - padded[2:] - 1.0

    jacobian, x = gt.sparse_jacobian(equations), np.zeros(50)
    for _ in range(8):
        x = x - scipy.sparse.linalg.spsolve(jacobian(x), equations(x))
    np.testing.assert_allclose(equations(x), 0.0, atol=1e-13)


def test_least_squares(rng: Any) -> None:
    target = rng.normal(size=20)

    def residuals(x: Any) -> Any:
        return np.concatenate([np.tanh(x) - 0.3 * np.tanh(target), 0.1 * (x[1:] - x[:-1])])

    jacobian = gt.sparse_jacobian(residuals)
    found = scipy.optimize.least_squares(residuals, np.zeros(20), jac=jacobian, gtol=1e-12)
    gradient = jacobian(found.x).T @ residuals(found.x)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8)


# ---- messages -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [gt.sparse_jacobian, gt.sparse_hessian])
def test_what_is_no_array_in_aux_is_named(make: Any) -> None:
    name = make.__name__
    for aux in ({"s": "str"}, [np.ones(2), object()]):
        with pytest.raises(GradtapeError, match=rf"^{name}: the function returned an? \w+ in aux"):
            make(lambda x, aux=aux: (np.sum(x**2), aux), has_aux=True)(np.ones(3))
    with pytest.raises(GradtapeError, match=rf"^{name}: the function returned a str, expected"):
        make(lambda x: "str")(np.ones(3))


def test_masked_arrays_are_refused_with_the_name_of_the_function() -> None:
    masked = np.ma.array(np.ones(3), mask=[0, 1, 0])
    for make in (gt.sparse_jacobian, gt.jacobian_sparsity, gt.sparse_hessian, gt.grad):
        with pytest.raises(DTypeError, match=rf"^{make.__name__}: argument 0 is a masked array"):
            make(lambda x: np.sum(x**2))(masked)


def test_a_direction_that_the_function_lacks_is_named_with_the_other_one() -> None:
    @gt.custom_vjp
    def squares(x: Any) -> Any:
        return x * x

    @squares.defvjp
    def _(ct: Any, out: Any, x: Any) -> Any:
        return (2.0 * ct * x,)

    @gt.custom_jvp
    def doubled(x: Any) -> Any:
        return 2.0 * x

    @doubled.defjvp
    def _(tangents: Any, out: Any, x: Any) -> Any:
        return doubled(tangents[0])

    def arrow(x: Any) -> Any:
        return np.concatenate([np.sum(squares(x))[None], x[1:] * x[0]])

    x = np.arange(1.0, 5.0)
    for mode in ("forward", "mixed"):
        with pytest.raises(NotDifferentiableError) as caught:
            gt.sparse_jacobian(arrow, mode=mode)(x)
        text = str(caught.value)
        assert text.startswith(f"sparse_jacobian: got mode='{mode}' (squares: has no forward-mode")
        assert 'use mode="reverse" or "auto"' in text
    for mode in ("reverse", "auto"):
        assert gt.sparse_jacobian(arrow, mode=mode)(x).nnz == 10
    with pytest.raises(NotDifferentiableError, match='use mode="forward" or "auto"'):
        gt.sparse_jacobian(doubled, mode="reverse")(x)
    # Where no direction works, none is advised.
    with pytest.raises(NotDifferentiableError, match=r"^neither: has no"):
        gt.sparse_jacobian(gt.custom_vjp(neither), mode="forward")(x)


def neither(x: Any) -> Any:
    return x


def test_products_with_matrices_of_scipy() -> None:
    matrix, x = scipy.sparse.csr_array(np.diag([1.0, 2.0, 3.0])), np.ones(3)
    for times in (lambda x: matrix @ x, lambda x: our_scipy.sparse.from_scipy(matrix) @ x):
        got = gt.sparse_jacobian(times)(x)
        assert got.nnz == 3
        np.testing.assert_array_equal(got.toarray(), matrix.toarray())
