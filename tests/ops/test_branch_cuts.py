"""Derivatives on branch cuts: on that side of the cut which the sign of a zero says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

ON_REAL_AXIS = [complex(x, zero) for x in (-2.0, 2.0) for zero in (0.0, -0.0)]
ON_IMAGINARY_AXIS = [complex(zero, y) for y in (-2.0, 2.0) for zero in (0.0, -0.0)]
FUNCTIONS = ["sqrt", "log", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"]
cases = pytest.mark.parametrize("z", [*ON_REAL_AXIS, *ON_IMAGINARY_AXIS], ids=repr)


def along_the_axis(function: Callable[[Any], Any], z: complex) -> Any:
    """The derivative by differences along the axis that `z` is on, with the zero as it is."""
    if z.imag == 0:
        around = [complex(z.real + step, z.imag) for step in (1e-6, -1e-6)]
    else:
        around = [complex(z.real, z.imag + step) for step in (1e-6, -1e-6)]
    above, below = (function(np.array(point)) for point in around)
    return (above - below) / (around[0] - around[1])


@pytest.mark.parametrize("name", FUNCTIONS)
@cases
def test_first_and_second_derivative(name: str, z: complex) -> None:
    expected = along_the_axis(getattr(np, name), z)
    function = getattr(gt, name)
    slope = gt.grad(function, holomorphic=True)
    curvature = along_the_axis(slope, z)
    for transform in (lambda f: f, gt.jit):
        reverse = transform(slope)(np.array(z))
        _, forward = transform(lambda x: gt.jvp(function, (x,), (np.array(1.0 + 0j),)))(np.array(z))
        second = transform(gt.grad(slope, holomorphic=True))(np.array(z))
        np.testing.assert_allclose(reverse, expected, rtol=1e-8)
        np.testing.assert_allclose(forward, expected, rtol=1e-8)
        np.testing.assert_allclose(second, curvature, rtol=1e-8)


@pytest.mark.parametrize("x", [-2.0, 2.0])
@pytest.mark.parametrize("name", ["arcsin", "arccos"])
def test_emath(name: str, x: float) -> None:
    function = getattr(np.emath, name)
    difference = (function(x + 1e-6).imag - function(x - 1e-6).imag) / 2e-6
    gradient = gt.grad(lambda x: function(x).imag)(x)
    np.testing.assert_allclose(gradient, difference, rtol=1e-8)


@pytest.mark.parametrize("name", ["arcsin", "arccos", "arccosh"])
def test_far_away(name: str) -> None:
    # The square of the argument is beyond the largest number.
    slope = gt.grad(getattr(gt, name), holomorphic=True)(np.array(3e200 + 4e200j))
    np.testing.assert_allclose(abs(slope), 2e-201, rtol=1e-14)
