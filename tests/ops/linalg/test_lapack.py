"""LAPACK in NumPy's library: the same as SciPy's, for every dtype, layout and option in use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import get_lapack_funcs

import gradtape as gt
from gradtape.errors import LinAlgError
from gradtape.ops.linalg import lapack

DTYPES = ["float32", "float64", "complex64", "complex128"]

pytestmark = pytest.mark.skipif(
    lapack.numpy_routine("trtrs", np.float64) is None,
    reason="NumPy's library does not have LAPACK under the names of the wheels",
)


def matrix(dtype: str, rows: int = 5, columns: int = 5, *, order: Any = "C") -> Any:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, columns)) + 1j * rng.normal(size=(rows, columns))
    x = x if np.dtype(dtype).kind == "c" else x.real
    return np.asarray(x, dtype, order=order)


def definite(dtype: str) -> Any:
    x = matrix(dtype)
    return x @ x.conj().T + 5 * np.eye(5, dtype=dtype)


def both(name: str, dtype: str) -> tuple[Any, Any]:
    ours = lapack.numpy_routine(name, dtype)
    assert ours is not None
    return ours, get_lapack_funcs((name,), dtype=np.dtype(dtype))[0]


def assert_same(got: Any, expected: Any) -> None:
    for one, other in zip(got, expected, strict=True):
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None)
        tolerance = 1e-4 if getattr(one, "dtype", np.dtype("f8")).char in "fF" else 1e-12
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("order", ["C", "F"])
def test_cholesky(dtype: str, lower: bool, order: Any) -> None:
    (potrf, potrf2), (potrs, potrs2) = both("potrf", dtype), both("potrs", dtype)
    a = np.asarray(definite(dtype), order=order)
    before, b = a.copy(), matrix(dtype, 5, 3, order=order)
    assert_same(potrf(a, lower=lower), potrf2(a, lower=lower))
    np.testing.assert_array_equal(a, before)
    factor = potrf(a, lower=lower)[0]
    assert_same(potrs(factor, b, lower=lower), potrs2(factor, b, lower=lower))
    assert potrf(-a, lower=lower)[1] == potrf2(-a, lower=lower)[1] == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_inversion(dtype: str) -> None:
    (getrf, _), (getri, getri2) = both("getrf", dtype), both("getri", dtype)
    lu, pivots, _ = getrf(matrix(dtype))
    before = lu.copy()
    assert_same(getri(lu, pivots, lwork=320), getri2(lu, pivots, lwork=320))
    np.testing.assert_array_equal(lu, before)
    np.fill_diagonal(lu, 0)
    assert getri(lu, pivots)[1] == getri2(lu, pivots)[1] == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stack", [(), (2,), (0,)])
def test_large_matrices_are_inverted(dtype: str, stack: tuple[int, ...]) -> None:
    x = matrix(dtype, 130, 130) + 30 * np.eye(130, dtype=dtype)
    x = np.broadcast_to(x, (*stack, 130, 130))
    got = gt.linalg.inv(x)
    assert_same([got], [np.linalg.inv(x)])
    with pytest.raises(LinAlgError, match=r"inv: got .*Singular matrix"):
        gt.linalg.inv(0 * x if 0 not in stack else np.zeros((130, 130), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (3, 5), (5, 3)])
def test_elimination(dtype: str, shape: tuple[int, int]) -> None:
    (getrf, getrf2), (getrs, getrs2) = both("getrf", dtype), both("getrs", dtype)
    a = matrix(dtype, *shape)
    assert_same(getrf(a), getrf2(a))
    assert getrf(0 * a)[2] == getrf2(0 * a)[2] == 1
    if shape == (5, 5):
        lu, pivots, _ = getrf(a)
        b = matrix(dtype, 5, 2)
        for trans in (0, 1, 2):
            assert_same(getrs(lu, pivots, b, trans=trans), getrs2(lu, pivots, b, trans=trans))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("trans", [0, 1, 2])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("order", ["C", "F"])
def test_triangles(dtype: str, lower: bool, trans: int, unit: bool, order: Any) -> None:
    trtrs, trtrs2 = both("trtrs", dtype)
    a = matrix(dtype, order=order) + 5 * np.eye(5, dtype=dtype)
    b = matrix(dtype, 5, 4, order=order)
    before = b.copy()
    options = {"lower": lower, "trans": trans, "unitdiag": unit}
    assert_same(trtrs(a, b, **options), trtrs2(a, b, **options))
    np.testing.assert_array_equal(b, before)
    a[2, 2] = 0
    assert trtrs(a, b, **options)[1] == trtrs2(a, b, **options)[1] == (0 if unit else 3)


def test_other_routines_are_those_of_scipy() -> None:
    assert lapack.numpy_routine("gtsv", np.float64) is None
    assert lapack.numpy_routine("trtrs", np.int64) is None
    assert lapack.lapack("gtsv", np.dtype(np.float64)).typecode == "d"


@pytest.mark.parametrize("size", [5, 100])
def test_small_and_large_matrices(size: int) -> None:
    a = np.random.default_rng(0).normal(size=(size, size)) + size * np.eye(size)
    lu, pivots, _ = lapack.lapack("getrf", np.dtype(np.float64))(a)
    x = lapack.lapack("getrs", np.dtype(np.float64))(lu, pivots, a[:, :2])[0]
    np.testing.assert_allclose(x, np.eye(size)[:, :2], atol=1e-13)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_without_numpys_library(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lapack, "numpy_library", lambda: None)
    assert lapack.numpy_routine("trtrs", dtype) is None


@pytest.mark.parametrize("size", [5, 150])
def test_numbers_in_the_other_byte_order(size: int) -> None:
    x = matrix("float64", size, size) + 30 * np.eye(size)
    for function in (gt.linalg.inv, lambda x: gt.linalg.lu_factor(x)[0]):
        np.testing.assert_array_equal(function(x.astype(">f8")), function(x))
