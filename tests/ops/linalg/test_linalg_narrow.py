"""float16 and bfloat16 in linear algebra: computed in float32, and rounded once."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.ops.linalg.in_float32 import in_float32

DTYPES = [np.dtype(gt.float16), np.dtype(gt.bfloat16)]
# One unit in the last place, relative.
UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7}

POSITIVE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
GENERAL = np.array([[4.0, 1.0, 0.5], [-1.0, 1.0, 2.0], [0.25, 0.5, -3.0]])
TALL = np.array([[0.25, 0.5], [0.75, 1.25], [0.125, -0.25]])
BANDS = np.array([[0.0, 0.5, 0.25], [4.0, 5.0, 6.0]])
VECTOR = np.array([1.0, -2.0, 0.5])

_OF_POSITIVE = (
    "cholesky cond cosm coshm det eigh eigvalsh expm hessenberg inv ldl logm lu matrix_rank norm "
    "pinv qr sinm slogdet sqrtm svd svdvals tanhm trace"
)
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(_OF_POSITIVE.split(), (POSITIVE,)),
    **dict.fromkeys(("eig", "eigvals", "polar", "schur", "signm"), (GENERAL,)),
    **dict.fromkeys(("solve", "lstsq", "solve_triangular", "tensorsolve"), (POSITIVE, VECTOR)),
    "solveh_banded": (BANDS, VECTOR),
    "cholesky_banded": (BANDS,),
    "eigvals_banded": (BANDS,),
    "matrix_power": (POSITIVE, 3),
    "multi_dot": ([TALL, TALL.T, TALL],),
    "fractional_matrix_power": (POSITIVE, 0.5),
    "solve_sylvester": (POSITIVE, POSITIVE, GENERAL),
    "toeplitz": (VECTOR,),
    "orth": (TALL,),
}


def leaves(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


def cast(value: Any, dtype: Any) -> Any:
    if isinstance(value, list):
        return [cast(part, dtype) for part in value]
    return value.astype(dtype) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str, dtype: Any) -> None:
    function = getattr(gt.linalg, name)
    args = [cast(arg, dtype) for arg in FUNCTIONS[name]]
    results, exact = function(*args), function(*(cast(arg, np.float32) for arg in args))
    for got, expected in zip(leaves(results), leaves(exact), strict=True):
        wanted = dtype if expected.dtype == np.float32 else expected.dtype
        assert got.dtype == wanted
        assert isinstance(got, np.ndarray) == isinstance(expected, np.ndarray)
        np.testing.assert_array_equal(got, expected.astype(wanted))


def loss(name: str, args: tuple[Any, ...]) -> Any:
    """A function of all results that does not depend on signs, smooth where elements are 0."""
    results = leaves(getattr(gt.linalg, name)(*args))
    floats = [part for part in results if part.dtype.kind in "fcV"]
    sizes = gt.concat([gt.reshape(abs(part) ** 2, -1) for part in floats])
    return gt.sum(sizes * np.arange(1, sizes.size + 1).astype(sizes.dtype) / sizes.size)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "matrix_rank"])
def test_gradients(name: str, dtype: Any) -> None:
    args = FUNCTIONS[name]
    start = np.stack([TALL, TALL]) if name == "multi_dot" else args[0]

    def function(x: Any) -> Any:
        rest = tuple(cast(arg, x.dtype) for arg in args[1:])
        return loss(name, ([x[0], x[1].mT, x[0]] if name == "multi_dot" else x, *rest))

    x = start.astype(dtype)
    expected = gt.grad(function)(x.astype(np.float64))
    bound = {"rtol": 0.0, "atol": 16 * UNIT[str(dtype)] * abs(expected).max()}
    assert gt.grad(function)(x).dtype == dtype
    for gradient in (gt.grad(function)(x), gt.jacfwd(function)(x)):
        np.testing.assert_allclose(gradient.astype(np.float64), expected, **bound)


def test_every_function_is_declared_so() -> None:
    # What computes without LAPACK takes these as they are.
    others = {"bicgstab", "cg", "gmres", "kron", "matmul", "matrix_norm", "matrix_transpose"}
    others |= {"norm", "tensordot", "vector_norm"}
    for name in gt.linalg.__all__:
        function = getattr(gt.linalg, name)
        files = []
        while inspect.isfunction(function):
            files.append(function.__code__.co_filename)
            function = getattr(function, "__wrapped__", None)
        if files:
            assert (in_float32.__code__.co_filename in files) != (name in others), name


@pytest.mark.parametrize("order", [2, -2, "nuc", None])
def test_norms(order: Any) -> None:
    got = gt.linalg.norm(POSITIVE.astype(np.float16), order)
    assert got.dtype == np.float16
    assert got == pytest.approx(np.linalg.norm(POSITIVE, order), rel=1e-3)


def test_numpy_functions_tensors_jit_and_vmap() -> None:
    x = POSITIVE.astype(np.float16)
    t = gt.tensor(x)
    assert np.linalg.inv(t).dtype == np.float16
    assert np.linalg.eigh(t).eigenvalues.dtype == np.float16
    np.testing.assert_array_equal(gt.jit(gt.linalg.inv)(x), gt.linalg.inv(x))
    np.testing.assert_array_equal(gt.vmap(gt.linalg.inv)(x[None])[0], gt.linalg.inv(x))
    gradient = gt.jit(gt.grad(lambda x: gt.linalg.slogdet(x)[1]))(x)
    assert gradient.dtype == np.float16


def test_wider_arguments_decide() -> None:
    x, b = POSITIVE.astype(np.float16), VECTOR.astype(np.float32)
    assert gt.linalg.solve(x, b).dtype == np.float32
    assert gt.linalg.solve(x, VECTOR).dtype == np.float64
    assert gt.linalg.solve(x, VECTOR.astype(gt.bfloat16)).dtype == np.float32
