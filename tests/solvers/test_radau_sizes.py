"""Radau's method for systems of many sizes: its matrices are in registers, or those of LAPACK."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import gradtape as gt
from builds import NATIVE

solve_ivp = gt.scipy.integrate.solve_ivp


def reactions(t: Any, y: Any, a: Any) -> Any:
    return a @ y + np.sin(y)


def energy(a: Any, solve: Any = solve_ivp, **options: Any) -> Any:
    options = {"method": "Radau", "t_eval": [1.0, 2.0], "rtol": 1e-7, "atol": 1e-9} | options
    return np.sum(solve(reactions, (0.0, 2.0), np.ones(a.shape[0]), args=(a,), **options).y ** 2)


@pytest.mark.skipif(not NATIVE, reason="native pieces are switched off")
@pytest.mark.parametrize("size", [1, 4, pytest.param(9, marks=pytest.mark.slow)])
def test_radau_is_native_for_systems_of_any_size(size: int, rng: np.random.Generator) -> None:
    a = -np.diag(np.logspace(0, 3, size)) + 0.1 * rng.normal(size=(size, size))
    both = gt.jit(gt.value_and_grad(energy))
    assert both.explain(a).eager == []
    value, slope = both(a)
    np.testing.assert_allclose(value, energy(a, scipy.integrate.solve_ivp), rtol=1e-5)
    direction = rng.normal(size=a.shape)
    tight = {"rtol": 1e-11, "atol": 1e-13}
    plus, minus = (
        energy(a + step * direction, scipy.integrate.solve_ivp, **tight) for step in (1e-5, -1e-5)
    )
    np.testing.assert_allclose(np.sum(slope * direction), (plus - minus) / 2e-5, rtol=1e-4)


@pytest.mark.skipif(not NATIVE, reason="native pieces are switched off")
def test_a_failure_backwards_in_time_does_not_leave_native_code() -> None:
    def failing(rate: Any) -> Any:
        fast = lambda t, y: -rate * y * np.array([1.0, 1.0, 1.0, 1.0, 1e5])  # noqa: E731
        options = {"method": "Radau", "t_eval": [20.0], "gradient": "adjoint"}
        return np.sum(solve_ivp(fast, (0.0, 20.0), np.ones(5), **options).y)

    gradient = gt.jit(gt.grad(failing))
    assert gradient.explain(1.0).eager == []
    with pytest.raises(gt.errors.ConvergenceError, match="backwards in time"):
        gradient(1.0)
    assert gradient.explain(1.0).eager == []
