"""Complex derivatives: the convention for real functions, and `holomorphic=True`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import DTypeError, NotDifferentiableError

Z = np.array([0.3 + 0.4j, -0.5 + 0.2j, 0.1 - 0.7j])

# Function of one number, its derivative.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "square": (lambda z: z * z, lambda z: 2 * z),
    "cube": (lambda z: z**3, lambda z: 3 * z**2),
    "reciprocal": (lambda z: 1 / (z + 2), lambda z: -1 / (z + 2) ** 2),
    "exp": (np.exp, np.exp),
    "log": (np.log, lambda z: 1 / z),
    "sqrt": (np.sqrt, lambda z: 0.5 / np.sqrt(z)),
    "sin": (np.sin, np.cos),
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "arctan": (np.arctan, lambda z: 1 / (1 + z * z)),
    "power": (lambda z: z ** (1.5 + 0.5j), lambda z: (1.5 + 0.5j) * z ** (0.5 + 0.5j)),
}
functions = pytest.mark.parametrize(
    ("function", "derivative"), FUNCTIONS.values(), ids=list(FUNCTIONS)
)


def directions_of_ascent(function: Callable[[Any], float], z: Any) -> Any:
    """The gradient of a real function by differences, real part along 1 and imaginary along i."""
    out = np.empty_like(z)
    for i in range(z.size):
        e = np.zeros_like(z)
        e[i] = 1e-6
        along = [(function(z + d * e) - function(z - d * e)) / 2e-6 for d in (1, 1j)]
        out[i] = along[0] + 1j * along[1]
    return out


@pytest.mark.parametrize(
    "function",
    [
        lambda z: np.sum(np.abs(z) ** 2),
        lambda z: np.sum(np.real(z * z * (1 + 2j))),
        lambda z: np.imag(np.sum(np.exp(z))),
        lambda z: np.abs(np.sum(z * np.conj(z) ** 2)),
        lambda z: np.sum(np.real(z) * np.imag(z) ** 2),
    ],
    ids=["energy", "real", "imag", "mixed", "parts"],
)
def test_gradient_of_a_real_function_is_the_direction_of_steepest_ascent(
    function: Callable[[Any], Any],
) -> None:
    expected = directions_of_ascent(function, Z)
    np.testing.assert_allclose(gt.grad(function)(Z), expected, rtol=1e-7, atol=1e-9)


@functions
def test_grad(function: Callable[[Any], Any], derivative: Callable[[Any], Any]) -> None:
    for z in Z:
        got = gt.grad(function, holomorphic=True)(z)
        np.testing.assert_allclose(got, derivative(z), rtol=1e-12)
        step = 1e-6 * np.exp(0.7j)  # a derivative along any direction
        difference = (function(z + step) - function(z - step)) / (2 * step)
        np.testing.assert_allclose(got, difference, rtol=1e-7)


@functions
def test_jacobians(function: Callable[[Any], Any], derivative: Callable[[Any], Any]) -> None:
    for transform in (gt.jacfwd, gt.jacrev, gt.jacobian):
        got = transform(function, holomorphic=True)(Z)
        np.testing.assert_allclose(got, np.diag(derivative(Z)), rtol=1e-12, atol=1e-14)


@functions
def test_second_derivatives(
    function: Callable[[Any], Any], derivative: Callable[[Any], Any]
) -> None:
    first = gt.grad(lambda z: derivative(z), holomorphic=True)
    for z in Z:
        twice = gt.grad(gt.grad(function, holomorphic=True), holomorphic=True)(z)
        np.testing.assert_allclose(twice, first(z), rtol=1e-10)
    hessian = gt.hessian(lambda z: np.sum(function(z)), holomorphic=True)(Z)
    np.testing.assert_allclose(hessian, np.diag([first(z) for z in Z]), rtol=1e-10, atol=1e-12)


def test_matrix_valued() -> None:
    a = np.array([[2.0 + 1j, 0.5], [0.3j, 1.5]])
    got = gt.jacobian(np.linalg.inv, holomorphic=True)(a)
    inverse = np.linalg.inv(a)
    np.testing.assert_allclose(got, -np.einsum("ik,lj->ijkl", inverse, inverse), rtol=1e-12)


def test_value_and_grad_with_aux() -> None:
    def function(z: Any) -> Any:
        return np.sum(z * z), z

    (value, aux), grad = gt.value_and_grad(function, has_aux=True, holomorphic=True)(Z)
    np.testing.assert_allclose(value, np.sum(Z * Z))
    np.testing.assert_array_equal(aux, Z)
    np.testing.assert_allclose(grad, 2 * Z)


def test_compiled() -> None:
    grad = gt.grad(lambda z: np.sum(z**3), holomorphic=True)
    np.testing.assert_allclose(gt.jit(grad)(Z), 3 * Z**2, rtol=1e-12)


@pytest.mark.parametrize("function", [np.conj, lambda z: np.abs(z) * z, lambda z: z + np.real(z)])
def test_functions_that_are_not_holomorphic_are_refused(function: Callable[[Any], Any]) -> None:
    with pytest.raises(NotDifferentiableError, match=r"grad: .*not holomorphic.*gt\.vjp"):
        gt.grad(lambda z: np.sum(function(z)), holomorphic=True)(Z)
    for transform in (gt.jacfwd, gt.jacrev):
        with pytest.raises(NotDifferentiableError, match="not holomorphic"):
            transform(function, holomorphic=True)(Z)


def test_compiled_and_nested_code_gives_nan() -> None:
    def function(z: Any) -> Any:
        return np.sum(z[0] * np.conj(z[1]))

    assert np.isnan(gt.jit(gt.grad(function, holomorphic=True))(Z)).all()
    for transform in (gt.jacfwd, gt.jacrev):
        jacobian = transform(lambda z: z * np.conj(z), holomorphic=True)
        assert np.isnan(gt.jit(jacobian)(Z)).all()
    second = gt.hessian(lambda z: np.sum(z * np.conj(z) ** 2), holomorphic=True)
    with pytest.raises(NotDifferentiableError):
        second(Z)


def test_real_arguments_and_results_are_refused() -> None:
    with pytest.raises(DTypeError, match=r"grad: got float64\[\].*expected complex"):
        gt.grad(lambda x: x * 1j, holomorphic=True)(1.0)
    with pytest.raises(DTypeError, match="expected complex"):
        gt.grad(np.sum, holomorphic=True)(np.ones(2))
    with pytest.raises(DTypeError, match="expected complex arguments"):
        gt.jacrev(lambda z: np.real(z), holomorphic=True)(Z)
    with pytest.raises(DTypeError, match="holomorphic=True"):
        gt.grad(lambda z: z * z)(1j)
    with pytest.raises(DTypeError, match="holomorphic=True"):
        gt.jacobian(lambda z: z * z)(Z)
