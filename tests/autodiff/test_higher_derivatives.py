"""Derivatives of any order by numbers, mixed ones, and the Laplacian."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError

# ---- nth_derivative -----------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(9))
def test_nth_derivative(n: int) -> None:
    x = 0.4
    assert math.isclose(gt.nth_derivative(np.sin, n)(x), math.sin(x + n * math.pi / 2))
    cubic = gt.nth_derivative(lambda x: x**3, n)(x)
    assert math.isclose(cubic, [x**3, 3 * x**2, 6 * x, 6.0, 0, 0, 0, 0, 0][n])


def test_nth_derivative_equals_nested_gradients() -> None:
    def function(x: Any, a: Any) -> Any:
        return np.exp(-a * x) / (1 + x**2.5)

    nested = function
    for n in range(5):
        assert math.isclose(gt.nth_derivative(function, n)(0.7, 2.0), nested(0.7, 2.0))
        nested = gt.grad(nested)


def test_nth_derivative_at_each_element() -> None:
    x = np.linspace(0.1, 2.0, 5)
    second = gt.nth_derivative(lambda x: np.sin(x) * x, 2)
    expected = 2 * np.cos(x) - x * np.sin(x)
    for way in (second, gt.jit(second), gt.vmap(second)):
        np.testing.assert_allclose(way(x), expected, rtol=1e-14)
    np.testing.assert_allclose(second(x.astype(np.float32)), expected, rtol=1e-5)
    assert second(x.astype(np.float32)).dtype == np.float32
    assert isinstance(second(gt.tensor(x)), gt.Tensor)


def test_nth_derivative_by_another_argument() -> None:
    third = gt.nth_derivative(lambda a, x, *, scale: {"y": scale * a * x**4}, 3, argnum=-1)
    assert third(2.0, 0.5, scale=3.0)["y"] == 3 * 2 * 24 * 0.5


def test_nth_derivative_of_complex_numbers() -> None:
    z = 0.3 + 0.4j
    np.testing.assert_allclose(gt.nth_derivative(np.exp, 5)(z), np.exp(z), rtol=1e-14)


def test_gradient_of_nth_derivative() -> None:
    third = gt.nth_derivative(np.log, 3)
    assert math.isclose(gt.grad(third)(2.0), -6 / 2.0**4)


def test_is_portable() -> None:
    for made in (
        gt.nth_derivative(np.sin, 2),
        gt.laplacian(np.sin),
        gt.mixed_derivative(np.add, (0,)),
    ):
        copied = pickle.loads(pickle.dumps(made))
        assert repr(copied) == repr(made)
    assert math.isclose(
        pickle.loads(pickle.dumps(gt.nth_derivative(np.sin, 2)))(0.5), -math.sin(0.5)
    )


# ---- mixed_derivative ---------------------------------------------------------------------------


def wave(x: Any, y: Any, z: Any) -> Any:
    return np.sin(x * y) * np.exp(z * x) + y**3 * z**2


@pytest.mark.parametrize("argnums", [(0,), (0, 1), (1, 0, 1), (0, 1, 2), (2, 2), (1, 1, 1, 2, 2)])
def test_mixed_derivative_equals_nested_gradients(argnums: tuple[int, ...]) -> None:
    expected, point = wave, (0.3, -0.4, 0.5)
    for n in argnums:
        expected = gt.grad(expected, n)
    for got in (gt.mixed_derivative(wave, argnums), gt.jit(gt.mixed_derivative(wave, argnums))):
        np.testing.assert_allclose(got(*point), expected(*point), rtol=1e-12, atol=1e-13)


def test_mixed_derivative_of_high_order() -> None:
    """∂⁴ˣ∂⁶ʸ of exp(2x + 3y)."""
    got = gt.mixed_derivative(lambda x, y: np.exp(2 * x + 3 * y), (0,) * 4 + (1,) * 6)(0.1, 0.2)
    assert math.isclose(got, 2**4 * 3**6 * math.exp(0.8), rel_tol=1e-13)


def test_mixed_derivative_at_each_element() -> None:
    x, y = np.array([1.0, 2.0, 3.0])[:, None], np.array([0.5, 1.5])
    got = gt.mixed_derivative(lambda x, y: x**2 * y**3, (0, 1, 1))(x, y)
    np.testing.assert_allclose(got, 2 * x * 6 * y, rtol=1e-14)
    np.testing.assert_allclose(
        gt.mixed_derivative(lambda x, y: x**2 * y**3, (0, 1))(x[:, 0], 2.0), 2 * x[:, 0] * 12
    )


def test_mixed_derivative_by_nothing_is_the_function() -> None:
    assert gt.mixed_derivative(wave, ())(0.3, -0.4, 0.5) == wave(0.3, -0.4, 0.5)


# ---- laplacian ----------------------------------------------------------------------------------

A = np.array([[2.0, 1.0, 0.5], [0.0, -1.0, 3.0], [1.0, 4.0, 0.25]])


def energy(x: Any) -> Any:
    return np.exp(-np.sum(x * x)) + x @ A @ x + np.tanh(x[0] * x[1] * x[2])


def test_laplacian_is_the_trace_of_the_hessian() -> None:
    x = np.array([0.3, -0.2, 0.7])
    expected = np.trace(gt.hessian(energy)(x))
    for way in (gt.laplacian(energy), gt.jit(gt.laplacian(energy))):
        np.testing.assert_allclose(way(x), expected, rtol=1e-13)
    np.testing.assert_allclose(gt.laplacian(energy)(x.astype(np.float32)), expected, rtol=1e-5)
    batch = np.stack([x, 2 * x])
    np.testing.assert_allclose(
        gt.vmap(gt.laplacian(energy))(batch), [gt.laplacian(energy)(one) for one in batch]
    )


def test_laplacian_of_a_harmonic_function_is_0() -> None:
    np.testing.assert_allclose(
        gt.laplacian(lambda x: np.exp(x[0]) * np.cos(x[1]))(np.array([0.3, 0.4])), 0, atol=1e-15
    )


def test_laplacian_of_arrays_and_containers() -> None:
    def function(p: Any, y: Any, scale: float) -> Any:
        return {"f": scale * p["a"] ** 3 * y, "g": np.sum(p["b"] ** 2) * y**2}

    p, y = {"a": np.array([1.0, 2.0]), "b": np.ones((2, 2))}, 3.0
    got = gt.laplacian(function, (0, 1))(p, y, scale=2.0)
    np.testing.assert_allclose(got["f"], 2 * 6 * p["a"] * y, rtol=1e-14)
    np.testing.assert_allclose(got["g"], 4 * 2 * y**2 + 2 * np.sum(p["b"] ** 2), rtol=1e-14)
    only = gt.laplacian(function, 1)(p, y, scale=2.0)
    np.testing.assert_allclose(only["f"], np.zeros(2))
    np.testing.assert_allclose(only["g"], 8.0)


def test_gradient_of_the_laplacian() -> None:
    x = np.array([0.5, 1.5])
    got = gt.grad(gt.laplacian(lambda x: np.sum(x**4)))(x)
    np.testing.assert_allclose(got, 24 * x, rtol=1e-14)


def test_laplacian_of_nothing_that_depends() -> None:
    assert gt.laplacian(lambda x: 3.0 * np.sum(x))(np.ones(3)) == 0


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [-1, 1.5, None, "2", 171])
def test_bad_orders(n: Any) -> None:
    with pytest.raises(ArgumentError, match=r"nth_derivative: got n=.*, expected the order"):
        gt.nth_derivative(np.sin, n)


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"nth_derivative: got argnum=\(0,\)"):
        gt.nth_derivative(np.sin, 1, (0,))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="nth_derivative: got argnums=1 for 1 positional"):
        gt.nth_derivative(np.sin, 1, 1)(0.5)
    with pytest.raises(ArgumentError, match="nth_derivative: argument 0 is a dict, expected a num"):
        gt.nth_derivative(lambda p: p["x"], 1)({"x": 1.0})
    with pytest.raises(DTypeError, match="nth_derivative: argument 0 is the int 2, expected a fl"):
        gt.nth_derivative(np.sin, 1)(2)
    with pytest.raises(ArgumentError, match="mixed_derivative: got argnums=2 for 2 positional"):
        gt.mixed_derivative(np.add, (0, 2))(0.5, 0.5)
    with pytest.raises(DTypeError, match="mixed_derivative: argument 1 is the int 1"):
        gt.mixed_derivative(np.multiply, (0, 1))(0.5, 1)
    with pytest.raises(ArgumentError, match="laplacian: got argnums=None, expected the position"):
        gt.laplacian(np.sin, None)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match=r"laplacian: got complex128.*, expected real"):
        gt.laplacian(np.sin)(np.ones(2, complex))
    with pytest.raises(ArgumentError, match="laplacian: got a float, expected a function"):
        gt.laplacian(1.0)  # type: ignore[arg-type]
