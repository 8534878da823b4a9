"""np.emath on tensors: complex numbers where real ones have no result, decided by values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ConversionError

NEGATIVE = np.array([-2.0, 0.5, 3.0])
INSIDE = np.array([0.25, 0.5, 0.75])
FUNCTIONS = ["sqrt", "log", "log2", "log10", "arccos", "arcsin", "arctanh"]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    "x", [NEGATIVE, INSIDE, NEGATIVE + 1j], ids=["outside", "inside", "complex"]
)
def test_value_and_gradient(name: str, x: Any) -> None:
    function = getattr(np.emath, name)
    expected = function(x)
    got = function(gt.tensor(x))
    assert isinstance(got, gt.Tensor)
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-15)

    def loss(t: Any) -> Any:
        return gt.sum(abs(function(t)) ** 2)

    # A real argument has the real part of the gradient of a complex one.
    by_complex = gt.grad(lambda t: gt.sum(abs(getattr(gt, name)(t)) ** 2))(x.astype(complex))
    gradient = gt.grad(loss)(x)
    assert gradient.dtype == x.dtype
    np.testing.assert_allclose(
        gradient, by_complex if x.dtype.kind == "c" else by_complex.real, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(np.float32, np.complex64), (np.int16, np.complex64), (np.int64, complex)],
)
def test_dtypes_are_those_of_numpy(dtype: Any, expected: Any) -> None:
    x = np.array([-4, 4], dtype)
    assert np.emath.sqrt(x).dtype == expected
    assert np.emath.sqrt(gt.tensor(x)).dtype == expected


def test_two_arguments() -> None:
    x, n = np.array([-2.0, 4.0]), np.array([2.0, -3.0])
    for function in (np.emath.logn, lambda n, x: np.emath.power(x, n)):
        got = function(gt.tensor(n), gt.tensor(x))
        np.testing.assert_allclose(got.numpy(), function(n, x), rtol=1e-14)
    got = np.emath.power(gt.tensor(np.array([2.0, 4.0])), np.array([-1, 2]))
    np.testing.assert_array_equal(got.numpy(), [0.5, 16.0])
    slope = gt.grad(lambda x: gt.sum(np.emath.power(x, 2.0).real))(x)
    np.testing.assert_allclose(slope, 2 * x)


def test_values_have_to_be_known() -> None:
    for transform in (gt.jit, gt.vmap):
        with pytest.raises(ConversionError):
            transform(lambda x: abs(np.emath.sqrt(x)))(NEGATIVE)
    # A complex argument says it without looking.
    np.testing.assert_allclose(
        gt.jit(lambda x: abs(np.sqrt(x + 0j)))(NEGATIVE), abs(np.emath.sqrt(NEGATIVE))
    )
