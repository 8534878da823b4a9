"""Cubic interpolators against SciPy's, and their derivatives in values, points and knots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as theirs

import gradtape as gt
from builds import SCIPY
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.testing import check_grads
from interpolation_cases import KNOTS, POINTS, assert_same, check_batches, check_twice

ours = gt.scipy.interpolate
SLOPE, BEND = np.full((2, 3), 0.5), np.full((2, 3), -1.0)
ENDS: list[Any] = [
    "not-a-knot",
    "natural",
    "clamped",
    "periodic",
    ("natural", "not-a-knot"),
    ("clamped", (1, SLOPE)),
    ((2, BEND), (1, SLOPE)),
]
OTHERS = [
    ("PchipInterpolator", {}),
    ("Akima1DInterpolator", {}),
    ("Akima1DInterpolator", {"method": "makima"}),
]


def values(rng: np.random.Generator, count: int, *, closed: bool = False) -> Any:
    y = rng.normal(size=(2, count, 3))
    if closed:
        y[:, -1] = y[:, 0]
    return y


# ---- values ----


@pytest.mark.parametrize("count", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("ends", ENDS, ids=str)
def test_splines_are_scipys(ends: Any, count: int, rng: np.random.Generator) -> None:
    x, y = KNOTS[:count], values(rng, count, closed=ends == "periodic")
    points = np.concatenate([rng.uniform(-1, 6, 6), x[:2]]).reshape(4, 2)
    for extrapolate in (None, True, False, "periodic"):
        one = ours.CubicSpline(x, gt.tensor(y), 1, ends, extrapolate)
        other = theirs.CubicSpline(x, y, 1, ends, extrapolate)
        assert one.extrapolate == other.extrapolate
        assert one.axis == 1
        assert_same(one.c, other.c)
        for nu in range(5):
            assert_same(one(points, nu), other(points, nu))
        assert_same(one(points, extrapolate=True), other(points, extrapolate=True))
        assert_same(one.derivative()(points), other.derivative()(points))
        assert_same(one.antiderivative(2)(points), other.antiderivative(2)(points))
        for a, b in ((1.0, 2.0), (2.0, 1.0), (-3.0, 7.0), (0.5, 0.5)):
            assert_same(one.integrate(a, b), other.integrate(a, b))


@pytest.mark.parametrize("count", [2, 3, 4, 7])
@pytest.mark.parametrize(("name", "options"), OTHERS)
def test_others_are_scipys(name: str, options: Any, count: int, rng: np.random.Generator) -> None:
    if name == "Akima1DInterpolator" and count == 2 and SCIPY < (1, 17):
        pytest.skip("SciPy's polynomial through two points is no line before 1.17")
    x, y = KNOTS[:count], values(rng, count)
    points = rng.uniform(-1, 6, (4, 2))
    one = getattr(ours, name)(x, gt.tensor(y), 1, **options)
    other = getattr(theirs, name)(x, y, 1, **options)
    assert_same(one.c, other.c)
    assert_same(one(points), other(points))
    assert_same(one(points, 1), other(points, 1))


@pytest.mark.parametrize(("name", "options"), OTHERS)
def test_flat_and_straight_values(name: str, options: Any) -> None:
    for y in ([1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]):
        x = np.arange(7.0)
        one = getattr(ours, name)(x, gt.tensor(y), **options)
        assert_same(one.c, getattr(theirs, name)(x, np.array(y), **options).c)
        gradient = gt.jacobian(lambda y: getattr(ours, name)(x, y, **options)(POINTS))(np.array(y))  # noqa: B023
        assert np.isfinite(gradient).all()


def test_hermite_splines_are_scipys(rng: np.random.Generator) -> None:
    y, slopes = values(rng, 7), values(rng, 7)
    one = ours.CubicHermiteSpline(KNOTS, y, gt.tensor(slopes), 1)
    other = theirs.CubicHermiteSpline(KNOTS, y, slopes, 1)
    assert_same(one.c, other.c)
    assert_same(one(POINTS, 2), other(POINTS, 2))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex128])
def test_dtypes(dtype: Any, rng: np.random.Generator) -> None:
    y = (10 * rng.normal(size=7)).astype(dtype) * (1 + 2j if dtype == np.complex128 else 1)
    assert_same(ours.CubicSpline(KNOTS, gt.tensor(y))(POINTS), theirs.CubicSpline(KNOTS, y)(POINTS))


def test_float32_gradients_are_float32(rng: np.random.Generator) -> None:
    y = rng.normal(size=7).astype(np.float32)
    gradient = gt.grad(lambda y: np.sum(ours.CubicSpline(KNOTS, y)(POINTS)))(y)
    assert gradient.dtype == np.float32


def test_lists_of_tensors() -> None:
    def at(a: Any) -> Any:
        return ours.CubicSpline([0.0, 1.0, 2.0, 3.0], [a, 2.0 * a, 0.0, a])([0.5, a])[1]

    check_grads(at, (1.3,), order=2)


# ---- derivatives ----


@pytest.mark.parametrize("ends", ["not-a-knot", "natural", "clamped"])
def test_derivatives_of_splines(ends: str, rng: np.random.Generator) -> None:
    y = rng.normal(size=7)

    def f(x: Any, y: Any, p: Any) -> Any:
        return ours.CubicSpline(x, y, bc_type=ends)(p)

    check_twice(f, KNOTS, y, POINTS)
    check_batches(f, KNOTS, y, POINTS)


@pytest.mark.parametrize("count", [2, 3, 6])
def test_derivatives_of_periodic_splines(count: int, rng: np.random.Generator) -> None:
    def f(x: Any, y: Any, p: Any) -> Any:
        return ours.CubicSpline(x, gt.concatenate([y, y[:1]]), bc_type="periodic")(p)

    check_twice(f, KNOTS[: count + 1], rng.normal(size=count), POINTS + 0.93)


def test_derivatives_in_conditions(rng: np.random.Generator) -> None:
    y = rng.normal(size=7)

    def f(slope: Any, bend: Any) -> Any:
        return ours.CubicSpline(KNOTS, y, bc_type=((1, slope), (2, bend)))(POINTS)

    check_twice(f, 0.3, -0.4)


@pytest.mark.parametrize(("name", "options"), OTHERS)
def test_derivatives_of_others(name: str, options: Any, rng: np.random.Generator) -> None:
    y = rng.normal(size=7)

    def f(x: Any, y: Any, p: Any) -> Any:
        return getattr(ours, name)(x, y, **options)(p)

    check_twice(f, KNOTS, y, POINTS)
    check_batches(f, KNOTS, y, POINTS)


@pytest.mark.parametrize("at", ["knot", "start", "end", "below", "above"])
def test_slopes_at_awkward_points(at: str, rng: np.random.Generator) -> None:
    y = rng.normal(size=7)
    point = {"knot": 2.4, "start": 0.0, "end": 4.9, "below": -0.5, "above": 5.5}[at]
    spline = ours.CubicSpline(KNOTS, y)
    slope, bend = gt.grad(spline), gt.grad(gt.grad(spline))
    np.testing.assert_allclose(slope(point), spline(point, 1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(bend(point), spline(point, 2), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        gt.jvp(spline, (point,), (1.0,))[1], spline(point, 1), rtol=1e-12, atol=1e-12
    )
    # In values: those of the spline through unit vectors, since it is linear in them.
    units = theirs.CubicSpline(KNOTS, np.eye(7))(point)
    found = gt.grad(lambda y: ours.CubicSpline(KNOTS, y)(point))(y)
    np.testing.assert_allclose(found, units, rtol=1e-10, atol=1e-12)


def test_beyond_the_ends_of_one_that_ends(rng: np.random.Generator) -> None:
    y = rng.normal(size=7)
    points = np.array([-1.0, 2.0, 9.0, np.nan, np.inf])
    spline = ours.CubicSpline(KNOTS, gt.tensor(y), extrapolate=False)
    found = np.asarray(spline(points))
    assert np.isnan(found).tolist() == [True, False, True, True, True]

    def total(y: Any) -> Any:
        return gt.nansum(ours.CubicSpline(KNOTS, y, extrapolate=False)(points))

    inside = theirs.CubicSpline(KNOTS, np.eye(7))(2.0)
    np.testing.assert_allclose(gt.grad(total)(y), inside, atol=1e-12)


def test_derivatives_of_integrals(rng: np.random.Generator) -> None:
    y = rng.normal(size=7)
    for extrapolate, b in ((True, 7.0), ("periodic", 12.0)):

        def area(a: Any, b: Any, y: Any, extrapolate: Any = extrapolate) -> Any:
            return ours.CubicSpline(KNOTS, y, extrapolate=extrapolate).integrate(a, b)

        check_twice(area, -1.3, b, y)


def test_pchip_interpolate(rng: np.random.Generator) -> None:
    y = rng.normal(size=7)
    for der in (0, 1, [0, 2]):
        found = ours.pchip_interpolate(KNOTS, gt.tensor(y), POINTS, der)
        wanted = theirs.pchip_interpolate(KNOTS, y, POINTS, der)
        np.testing.assert_allclose(np.stack([np.asarray(x) for x in found]), np.stack(wanted))


def test_gradients_of_a_context(rng: np.random.Generator) -> None:
    y = gt.tensor(rng.normal(size=7), requires_grad=True)
    p = gt.tensor(POINTS, requires_grad=True)
    np.sum(ours.CubicSpline(KNOTS, y)(p)).backward()
    np.testing.assert_allclose(y.grad, theirs.CubicSpline(KNOTS, np.eye(7))(POINTS).sum(0))
    slopes = theirs.CubicSpline(KNOTS, y.detach().numpy())(POINTS, 1)
    np.testing.assert_allclose(p.grad, slopes)


# ---- bad input ----


def test_wrong_arguments() -> None:
    y = gt.ones(4)
    for x in ([0.0, 2.0, 1.0, 3.0], [0.0, 1.0, 1.0, 3.0], [0.0, 1.0, np.nan, 3.0]):
        with pytest.raises(ArgumentError, match="CubicSpline: got x"):
            ours.CubicSpline(x, y)
    with pytest.raises(ArgumentError, match="y with NaN"):
        ours.CubicSpline(np.arange(4.0), gt.tensor([0.0, np.inf, 0.0, 1.0]))
    with pytest.raises(ShapeError, match=r"y of shape \(4,\) for 3 numbers"):
        ours.CubicSpline(np.arange(3.0), y)
    with pytest.raises(ArgumentError, match="bc_type='round'"):
        ours.CubicSpline(np.arange(4.0), y, bc_type="round")
    with pytest.raises(ArgumentError, match="order=3"):
        ours.CubicSpline(np.arange(4.0), y, bc_type=((3, 0.0), "natural"))
    with pytest.raises(ShapeError, match="a value of shape"):
        ours.CubicSpline(np.arange(4.0), y, bc_type=((1, np.ones(2)), "natural"))
    with pytest.raises(ArgumentError, match="for one end"):
        ours.CubicSpline(np.arange(4.0), y, bc_type=("periodic", "natural"))
    with pytest.raises(ArgumentError, match="differ at the ends"):
        ours.CubicSpline(np.arange(4.0), gt.arange(4.0), bc_type="periodic")
    with pytest.raises(ArgumentError, match="complex y"):
        ours.PchipInterpolator(np.arange(4.0), gt.ones(4) * 1j)
    with pytest.raises(ArgumentError, match="method='spline'"):
        ours.Akima1DInterpolator(np.arange(4.0), y, method="spline")
    with pytest.raises(ArgumentError, match="nu"):
        ours.CubicSpline(np.arange(4.0), y)(1.0, -1)
    with pytest.raises(ArgumentError, match="complex x"):
        ours.CubicSpline(np.arange(4.0), y)(1j)


def test_wrong_knots_raise_when_compiled(rng: np.random.Generator) -> None:
    f = gt.jit(lambda x, y: ours.CubicSpline(x, y)(1.0))
    y = rng.normal(size=7)
    np.testing.assert_allclose(f(KNOTS, y), theirs.CubicSpline(KNOTS, y)(1.0))
    with pytest.raises(ArgumentError, match="not strictly increasing"):
        f(KNOTS[::-1].copy(), y)


def test_roots_have_no_derivative(rng: np.random.Generator) -> None:
    y = rng.normal(size=7)
    np.testing.assert_array_equal(
        ours.CubicSpline(KNOTS, gt.tensor(y)).roots(), theirs.CubicSpline(KNOTS, y).roots()
    )
    with pytest.raises(UnsupportedError, match="brentq"):
        gt.grad(lambda y: np.sum(ours.CubicSpline(KNOTS, y).solve(0.1)))(y)


def test_a_root_by_brentq_is_differentiable() -> None:
    y = np.array([-1.0, -0.5, 0.2, 0.7, 0.9, 1.5, 2.0])

    def root(y: Any) -> Any:
        return gt.scipy.optimize.brentq(ours.CubicSpline(KNOTS, y), 0.0, 4.9)

    check_grads(root, (y,), order=1, atol=1e-5, rtol=1e-5)
