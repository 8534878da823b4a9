"""`RegularGridInterpolator` and `interpn` against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as theirs
import scipy.sparse.linalg

import gradtape as gt
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.testing import check_grads
from interpolation_cases import assert_same, check_batches, check_twice

ours = gt.scipy.interpolate
GRID = [
    np.array([0.0, 1.0, 2.5, 3.0, 4.0, 5.5]),
    np.array([5.0, 3.0, 2.0, 1.5, 1.0, 0.2]),
    np.array([0.0, 1.0, 2.0, 4.0, 6.0, 7.0]),
]
METHODS = ["linear", "nearest", "slinear", "cubic", "quintic", "pchip"]
SPLINES = METHODS[2:5]
POINTS = np.array([[0.4, 4.1, 0.3], [2.1, 0.63, 3.3], [2.7, 1.7, 6.4], [5.2, 2.2, 4.7]])


def exact(method: str) -> dict[str, Any]:
    """SciPy's own solver for splines stops at an error of 1e-5."""
    return {"solver": scipy.sparse.linalg.spsolve} if method in SPLINES else {}


def case(axes: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    values = rng.normal(size=(6, 6, 6, 2))[(slice(None),) * axes + (0,) * (3 - axes)]
    return GRID[:axes], values, POINTS[:, :axes].reshape(2, 2, axes)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_values_are_scipys(method: str, axes: int, rng: np.random.Generator) -> None:
    grid, values, points = case(axes, rng)
    make, loose = theirs.RegularGridInterpolator, {"rtol": 1e-7, "atol": 1e-8}
    one = ours.RegularGridInterpolator(grid, gt.tensor(values), method)
    other = make(grid, values, method, **exact(method))
    assert_same(one(points), other(points), **loose)
    held = ours.RegularGridInterpolator(grid, values, method, **exact(method))
    assert_same(held(gt.tensor(points)), other(points), **loose)
    np.testing.assert_array_equal(held(points), other(points))
    outside = 1.3 * points - 0.5
    for fill in (np.nan, 3.0, None):
        one = ours.RegularGridInterpolator(grid, gt.tensor(values), method, False, fill)
        other = make(grid, values, method, False, fill, **exact(method))
        assert_same(one(outside), other(outside), rtol=1e-6, atol=1e-6)


def test_places_of_the_grid_and_nan(rng: np.random.Generator) -> None:
    grid, values, _ = case(2, rng)
    points = np.array([[0.0, 5.0], [5.5, 0.2], [1.0, 1.5], [np.nan, 1.0], [1.75, 2.5]])
    for method in ("linear", "nearest"):
        one, other = (
            f.RegularGridInterpolator(grid, x, method, bounds_error=False)(points)
            for f, x in ((ours, gt.tensor(values)), (theirs, values))
        )
        assert_same(one, other)


def test_an_axis_of_one_place(rng: np.random.Generator) -> None:
    values = rng.normal(size=(1, 6))
    grid, points = (np.array([2.0]), GRID[0]), np.array([[2.0, 0.5]])
    found = ours.RegularGridInterpolator(grid, gt.tensor(values))(points)
    np.testing.assert_allclose(found, theirs.RegularGridInterpolator(grid, values)(points))


@pytest.mark.parametrize("method", METHODS)
def test_derivatives(method: str, rng: np.random.Generator) -> None:
    grid, values, _ = case(2, rng)
    values, points = values[..., 0] if values.ndim > 2 else values, POINTS[:, :2]

    def f(values: Any, points: Any) -> Any:
        return ours.RegularGridInterpolator(grid, gt.asarray(values), method)(points)

    check_twice(f, values, points)
    check_batches(f, values, points)


@pytest.mark.parametrize("method", ["linear", "cubic", "pchip"])
def test_derivatives_in_the_grid(method: str, rng: np.random.Generator) -> None:
    values, points = rng.normal(size=(6, 6)), POINTS[:, [0, 2]]

    def f(one: Any, other: Any) -> Any:
        made = ours.RegularGridInterpolator((one, other), gt.asarray(values), method)
        return made(points)

    check_grads(f, (GRID[0], GRID[2]), order=1, rtol=1e-5, atol=1e-5)


def test_derivatives_by_nu(rng: np.random.Generator) -> None:
    grid, values, points = case(2, rng)
    one = ours.RegularGridInterpolator(grid, gt.tensor(values), "cubic")
    other = theirs.RegularGridInterpolator(grid, values, "cubic", **exact("cubic"))
    assert_same(one(points, nu=(1, 2)), other(points, nu=(1, 2)), rtol=1e-6, atol=1e-6)
    with pytest.raises(ArgumentError, match="nu for method='linear'"):
        one(points, "linear", nu=(1, 0))


@pytest.mark.parametrize("method", METHODS)
def test_interpn(method: str, rng: np.random.Generator) -> None:
    grid, values, points = case(2, rng)
    apart = points[..., 0], points[..., 1]
    found = ours.interpn(grid, gt.tensor(values), apart, method)
    assert_same(found, theirs.interpn(grid, values, apart, method), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found, ours.interpn(grid, gt.tensor(values), points, method))
    np.testing.assert_array_equal(
        ours.interpn(grid, values, points, method), theirs.interpn(grid, values, points, method)
    )


def test_points_outside_raise(rng: np.random.Generator) -> None:
    grid, values, points = case(2, rng)
    with pytest.raises(ArgumentError, match="outside of the grid"):
        ours.interpn(grid, gt.tensor(values), points + 3.0)
    with pytest.raises(ArgumentError, match="outside of the grid"):
        gt.jit(lambda p: ours.interpn(grid, values, p))(points + 3.0)


def test_wrong_arguments(rng: np.random.Generator) -> None:
    grid, values, points = case(2, rng)
    values = gt.tensor(values)
    make = ours.RegularGridInterpolator
    with pytest.raises(UnsupportedError, match="cubic_legacy"):
        make(grid, values, "cubic_legacy")
    with pytest.raises(UnsupportedError, match="splinef2d"):
        ours.interpn(grid, values, points, "splinef2d")
    with pytest.raises(ArgumentError, match="method='curved'"):
        make(grid, values, "curved")
    with pytest.raises(UnsupportedError, match="a solver"):
        make(grid, values, "cubic", solver=scipy.sparse.linalg.spsolve)
    with pytest.raises(ShapeError, match="5 places"):
        make([grid[0], grid[1][:5]], values)
    with pytest.raises(ShapeError, match="3 axes of a grid"):
        make(GRID, values[..., 0])
    with pytest.raises(ArgumentError, match="in no order"):
        make([grid[0][[0, 2, 1, 3, 4, 5]], grid[1]], values)
    with pytest.raises(ShapeError, match="grid of 2 axes"):
        make(grid, values)(POINTS)
    with pytest.raises(ArgumentError, match="expected at least 6"):
        make([grid[0][:4], grid[1]], values[:4], "quintic")
    with pytest.raises(ArgumentError, match="complex values"):
        make(grid, values * 1j, "pchip")(points)
