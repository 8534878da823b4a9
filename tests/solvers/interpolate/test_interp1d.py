"""`interp1d` against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as theirs

import gradtape as gt
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.testing import check_grads
from interpolation_cases import KNOTS, POINTS, assert_same, check_batches, check_twice

ours = gt.scipy.interpolate
STEPS = ["nearest", "nearest-up", "previous", "next", "zero"]
KINDS: list[Any] = [*STEPS, "linear", "slinear", "quadratic", "cubic", 5]
FILLINGS: list[Any] = [
    np.nan, 2.0, (1.0, -1.0), np.ones((2, 3)), (np.ones((2, 3)), 2 * np.ones(3)), "extrapolate",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_values_are_scipys(kind: Any, dtype: Any, rng: np.random.Generator) -> None:
    y = (10 * rng.normal(size=(2, 7, 3))).astype(dtype)
    order = rng.permutation(7)
    inside = np.concatenate([rng.uniform(0, 4.9, 6), KNOTS[:2]]).reshape(4, 2)
    loose = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {}
    mixed = KNOTS[order], y[:, order]
    one = ours.interp1d(mixed[0], gt.tensor(mixed[1]), kind, 1)
    other = theirs.interp1d(*mixed, kind, 1)
    np.testing.assert_array_equal(one.x, other.x)
    assert_same(one(inside), other(inside), **loose)
    points = 1.5 * inside - 0.7
    for fill in FILLINGS:
        options = {"bounds_error": False, "fill_value": fill}
        wanted = theirs.interp1d(KNOTS, y, kind, 1, **options)(points)
        assert_same(ours.interp1d(KNOTS, gt.tensor(y), kind, 1, **options)(points), wanted, **loose)
        assert_same(ours.interp1d(KNOTS, y, kind, 1, **options)(gt.tensor(points)), wanted, **loose)
    assert_same(
        ours.interp1d(KNOTS, gt.tensor(y[0, :, 0]), kind)(1.3),
        theirs.interp1d(KNOTS, y[0, :, 0], kind)(1.3),
        **loose,
    )


@pytest.mark.parametrize("kind", [*STEPS[:4], "linear", "cubic"])
def test_points_at_knots_ends_and_nan(kind: Any, rng: np.random.Generator) -> None:
    y = rng.normal(size=7)
    points = np.concatenate([KNOTS, (KNOTS[1:] + KNOTS[:-1]) / 2, [np.nan]])
    one, other = (f.interp1d(KNOTS, y, kind) for f in (ours, theirs))
    assert_same(one(gt.tensor(points)), other(points))


@pytest.mark.parametrize("kind", ["linear", "quadratic", "cubic"])
def test_derivatives(kind: str, rng: np.random.Generator) -> None:
    y = rng.normal(size=7)

    def f(x: Any, y: Any, p: Any) -> Any:
        return ours.interp1d(x, gt.asarray(y), kind, bounds_error=False)(p)

    check_twice(f, KNOTS, y, POINTS)
    check_batches(f, KNOTS, y, POINTS)


@pytest.mark.parametrize("kind", STEPS)
def test_steps_have_slope_0(kind: str, rng: np.random.Generator) -> None:
    y = rng.normal(size=7)

    def f(y: Any, p: Any) -> Any:
        return ours.interp1d(KNOTS, gt.asarray(y), kind)(p)

    check_grads(f, (y, POINTS), order=1)
    assert not gt.jacobian(f, 1)(y, POINTS).any()
    check_batches(f, y, POINTS)


def test_slopes_of_lines_at_knots(rng: np.random.Generator) -> None:
    """At a knot the slope is that of the line to its right, at the last one to its left."""
    y = rng.normal(size=7)
    slopes = np.diff(y) / np.diff(KNOTS)
    slope = gt.grad(ours.interp1d(KNOTS, y))
    np.testing.assert_allclose([slope(p) for p in KNOTS], [*slopes, slopes[-1]])


def test_derivatives_beyond_the_ends(rng: np.random.Generator) -> None:
    y = rng.normal(size=7)
    points = np.array([-1.0, 2.0, 9.0])

    def f(y: Any, fill: Any, p: Any) -> Any:
        return ours.interp1d(KNOTS, y, bounds_error=False, fill_value=(fill, 3.0))(p)

    check_grads(f, (y, 2.0, points), order=1)
    assert gt.grad(lambda p: f(y, 2.0, p))(-1.0) == 0.0

    def beyond(y: Any, p: Any) -> Any:
        return ours.interp1d(KNOTS, y, fill_value="extrapolate")(p)

    check_twice(beyond, y, points)


def test_attributes(rng: np.random.Generator) -> None:
    y = rng.normal(size=(2, 7))
    for one in (ours.interp1d(KNOTS, y), ours.interp1d(KNOTS, gt.tensor(y))):
        np.testing.assert_array_equal(one.y, y)
        assert one.axis == 1
        assert one.bounds_error


def test_points_beyond_raise(rng: np.random.Generator) -> None:
    y = gt.tensor(rng.normal(size=7))
    for point in (-0.1, 5.0):
        with pytest.raises(ArgumentError, match="beyond the first or last place"):
            ours.interp1d(KNOTS, y)(point)
        with pytest.raises(ArgumentError, match="beyond the first or last place"):
            gt.jit(lambda p: ours.interp1d(KNOTS, y.detach())(p))(point)


def test_wrong_arguments(rng: np.random.Generator) -> None:
    y = gt.tensor(rng.normal(size=7))
    with pytest.raises(UnsupportedError, match="kind='curved'"):
        ours.interp1d(KNOTS, y, "curved")
    with pytest.raises(ArgumentError, match="expected only one"):
        ours.interp1d(KNOTS, y, bounds_error=True, fill_value="extrapolate")
    with pytest.raises(ArgumentError, match="fill_value='more'"):
        ours.interp1d(KNOTS, y, fill_value="more")
    with pytest.raises(ShapeError, match=r"y of shape \(7,\) for 6"):
        ours.interp1d(KNOTS[:6], y)
    with pytest.raises(ShapeError, match="x of shape"):
        ours.interp1d(np.ones((2, 2)), y)
    with pytest.raises(ArgumentError, match="not sorted"):
        ours.interp1d(KNOTS[::-1], y, assume_sorted=True)
    with pytest.raises(ShapeError, match="fill_value of shape"):
        ours.interp1d(KNOTS, y, bounds_error=False, fill_value=np.ones(3))(9.0)
    with pytest.raises(ShapeError, match="expected 4"):
        ours.interp1d(KNOTS[:3], y[:3], "cubic")
