"""B-splines, `make_interp_spline` and FITPACK's functions against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as theirs

import gradtape as gt
from gradtape.errors import ArgumentError, LinAlgError, ShapeError, UnsupportedError
from gradtape.testing import check_grads
from interpolation_cases import assert_same, check_batches, check_twice

ours = gt.scipy.interpolate
X = np.array(
    [0.0, 0.8, 1.5, 2.4, 3.0, 4.1, 4.9, 5.5, 6.3, 7.0, 7.4, 8.2, 9.1, 9.9, 10.3, 11.0, 11.9]
)
POINTS = np.array([-0.5, 0.3, 2.2, 3.3, 4.57, 5.63, 8.0])
T = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 3.5, 4.0, 4.0, 4.0, 4.0])


# ---- make_interp_spline ----


def compare(k: int, count: int, ends: Any, rng: np.random.Generator) -> None:
    x, y, points = X[:count], rng.normal(size=(count, 2)), rng.uniform(-1, 13, (4, 2))
    if ends == "periodic":
        y[-1] = y[0]
    one = ours.make_interp_spline(x, gt.tensor(y), k, bc_type=ends)
    other = theirs.make_interp_spline(x, y, k, bc_type=ends)
    loose = {"rtol": 1e-7, "atol": 1e-8}
    np.testing.assert_allclose(one.t, other.t, rtol=1e-12)
    assert_same(one.c, other.c, **loose)
    for extrapolate in (None, False, True):
        for nu in range(k + 2):
            assert_same(one(points, nu, extrapolate), other(points, nu, extrapolate), **loose)
        for a, b in ((0.1, 0.6), (2.0, 0.5), (-3.0, 7.0)):
            assert_same(
                one.integrate(a, b, extrapolate), other.integrate(a, b, extrapolate), **loose
            )
    if k:
        assert_same(one.derivative()(points), other.derivative()(points), **loose)
        assert_same(one.derivative().c, other.derivative().c, **loose)
        assert_same(one.antiderivative(2)(points), other.antiderivative(2)(points), **loose)


@pytest.mark.parametrize("k", range(6))
@pytest.mark.parametrize("count", [7, 8, 17])
def test_splines_through_points_are_scipys(k: int, count: int, rng: np.random.Generator) -> None:
    compare(k, count, None, rng)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("count", [7, 8, 13, 17])
def test_periodic_splines_are_scipys(k: int, count: int, rng: np.random.Generator) -> None:
    compare(k, count, "periodic", rng)


@pytest.mark.parametrize(
    "ends", ["natural", "clamped", ([(1, np.ones(2))], [(2, np.zeros(2))])], ids=str
)
@pytest.mark.parametrize("count", [4, 7, 17])
def test_ends_are_scipys(ends: Any, count: int, rng: np.random.Generator) -> None:
    compare(3, count, ends, rng)


def test_given_knots(rng: np.random.Generator) -> None:
    y = rng.normal(size=8)
    x = np.array([0.0, 0.4, 1.0, 1.6, 2.2, 3.0, 3.7, 4.0])
    one, other = (f(x, y, t=T) for f in (ours.make_interp_spline, theirs.make_interp_spline))
    assert_same(ours.make_interp_spline(x, gt.tensor(y), t=T).c, other.c)
    np.testing.assert_array_equal(one.c, other.c)


def test_an_axis(rng: np.random.Generator) -> None:
    y, points = rng.normal(size=(2, 7, 3)), rng.uniform(0, 4, (2, 2))
    one = ours.make_interp_spline(X[:7], gt.tensor(y), axis=1)
    other = theirs.make_interp_spline(X[:7], y, axis=1)
    assert one.axis == 1
    assert_same(one(points), other(points))
    assert_same(one.derivative()(points), other.derivative()(points))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_derivatives_of_splines_through_points(k: int, rng: np.random.Generator) -> None:
    y = rng.normal(size=8)

    def f(x: Any, y: Any, p: Any) -> Any:
        return ours.make_interp_spline(x, gt.asarray(y), k)(p)

    check_twice(f, X[:8], y, POINTS)
    check_batches(f, X[:8], y, POINTS)


@pytest.mark.parametrize(("k", "count"), [(2, 7), (3, 7), (3, 15), (4, 15)])
def test_derivatives_of_periodic_splines(k: int, count: int, rng: np.random.Generator) -> None:
    def f(x: Any, y: Any, p: Any) -> Any:
        closed = gt.concatenate([y, y[:1]])
        return ours.make_interp_spline(x, closed, k, bc_type="periodic")(p)

    x, y = X[:count], rng.normal(size=count - 1)
    check_grads(f, (x, y, POINTS), order=1, rtol=1e-5, atol=1e-5)
    check_grads(lambda y, p: f(x, y, p), (y, POINTS), rtol=1e-5, atol=1e-5, entries=0)
    np.testing.assert_allclose(gt.jit(f)(x, y, POINTS), f(x, y, POINTS), rtol=1e-8, atol=1e-10)


def test_derivatives_in_conditions(rng: np.random.Generator) -> None:
    y = rng.normal(size=7)

    def f(slope: Any, bend: Any) -> Any:
        ends = [(1, slope)], [(2, bend)]
        return ours.make_interp_spline(X[:7], y, bc_type=ends)(POINTS)

    check_twice(f, 0.3, -0.4)


# ---- BSpline ----


@pytest.mark.parametrize("extrapolate", [True, False, "periodic"])
def test_sums_of_bsplines_are_scipys(extrapolate: Any, rng: np.random.Generator) -> None:
    c, points = rng.normal(size=(10, 2)), np.concatenate([rng.uniform(-1, 5, 9), T])
    one = ours.BSpline(T, gt.tensor(c), 3, extrapolate)
    other = theirs.BSpline(T, c, 3, extrapolate)
    for nu in range(5):
        assert_same(one(points, nu), other(points, nu))
    assert_same(one.integrate(0.7, 3.9), other.integrate(0.7, 3.9))
    assert_same(ours.BSpline(T, c, 3, extrapolate)(gt.tensor(points)), other(points))
    assert one.tck[2] == 3


def test_derivatives_of_bsplines(rng: np.random.Generator) -> None:
    t = np.sort(T + rng.uniform(0, 0.3, 12))
    c, points = rng.normal(size=8), np.array([0.5, 1.5, 2.9, 3.8])

    def f(t: Any, c: Any, p: Any) -> Any:
        return ours.BSpline(t, c, 3)(p)

    check_grads(f, (t, c, points), order=1, rtol=1e-4, atol=1e-4)
    check_grads(f, (t, c, points), order=2, rtol=1e-4, atol=1e-4, entries=0)
    check_batches(f, t, c, points)
    check_grads(lambda c, p: f(T, c, p), (c, np.array([0.5, 1.5, 2.0001, -1.0, 6.0])), order=2)
    check_grads(lambda c, a: ours.BSpline(T, c, 3).integrate(a, 2.5), (c, 0.4), order=2)


def test_slopes_at_knots(rng: np.random.Generator) -> None:
    """At a knot the slope is that to its right, at the last one that to its left."""
    spline = ours.BSpline(T, rng.normal(size=8), 3)
    for point in (0.0, 1.0, 2.0, 4.0):
        np.testing.assert_allclose(gt.grad(spline)(point), spline(point, 1), rtol=1e-12)


def test_basis_elements() -> None:
    t = [0.0, 1.0, 2.0, 3.0, 4.0]
    one, other = (f.BSpline.basis_element(x) for f, x in ((ours, gt.tensor(t)), (theirs, t)))
    assert_same(one(POINTS), other(POINTS))
    assert_same(ours.BSpline.basis_element(t, False)(gt.tensor(POINTS)), other(POINTS, 0, False))


def test_design_matrices(rng: np.random.Generator) -> None:
    x = rng.uniform(0, 4, 5)
    matrix = ours.BSpline.design_matrix(x, T, 3)
    np.testing.assert_array_equal(matrix.toarray(), theirs.BSpline.design_matrix(x, T, 3).toarray())
    dense = ours.BSpline(T, np.eye(8), 3)(gt.tensor(x))
    np.testing.assert_allclose(dense, matrix.toarray(), atol=1e-14)
    with pytest.raises(UnsupportedError, match="dense matrix"):
        ours.BSpline.design_matrix(gt.tensor(x), T, 3)


# ---- FITPACK ----


@pytest.mark.parametrize("k", range(1, 6))
def test_splines_as_tuples_are_scipys(k: int, rng: np.random.Generator) -> None:
    x, y, points = X[:9], rng.normal(size=9), rng.uniform(-1, 8, (4, 2))
    one, other = ours.splrep(x, gt.tensor(y), k=k), theirs.splrep(x, y, k=k)
    loose = {"rtol": 1e-7, "atol": 1e-8}
    np.testing.assert_allclose(one[0], other[0])
    assert_same(one[1], other[1], **loose)
    for ext in (0, 1, 3):
        for der in range(k + 1):
            wanted = theirs.splev(points, other, der, ext)
            assert_same(ours.splev(points, one, der, ext), wanted, **loose)
    np.testing.assert_allclose(ours.splint(-1, 3.0, one), theirs.splint(-1, 3.0, other))
    assert_same(ours.splder(one)[1], theirs.splder(other)[1], **loose)
    assert_same(ours.splantider(one)[1], theirs.splantider(other)[1], **loose)
    assert_same(ours.splder(one, -1)[1], theirs.splantider(other)[1], **loose)
    assert_same(ours.splantider(one, -1)[1], theirs.splder(other)[1], **loose)


def test_several_splines_as_one_tuple(rng: np.random.Generator) -> None:
    c = rng.normal(size=(2, 12))
    wanted = theirs.splev(POINTS[1:5], (T, list(c), 3))
    found = ours.splev(POINTS[1:5], (T, gt.tensor(c), 3))
    for one, other in zip(found, wanted, strict=True):
        assert_same(one, other)
    np.testing.assert_allclose(
        ours.splint(0.0, 2.0, (T, gt.tensor(c), 3)), theirs.splint(0.0, 2.0, (T, list(c), 3))
    )


def test_derivatives_of_splines_as_tuples(rng: np.random.Generator) -> None:
    y = rng.normal(size=9)

    def f(y: Any, p: Any) -> Any:
        return ours.splev(p, ours.splrep(X[:9], gt.asarray(y)))

    check_twice(f, y, POINTS)
    check_twice(lambda y, a: ours.splint(a, 3.0, ours.splrep(X[:9], gt.asarray(y))), y, 0.4)


@pytest.mark.parametrize("k", [1, 3, 4])
@pytest.mark.parametrize("ext", [0, 1, 3, "zeros"])
def test_univariate_splines_are_scipys(k: int, ext: Any, rng: np.random.Generator) -> None:
    x, y, points = X[:9], rng.normal(size=9), rng.uniform(-1, 8, (4, 2))
    one = ours.InterpolatedUnivariateSpline(x, gt.tensor(y), k=k, ext=ext)
    other = theirs.InterpolatedUnivariateSpline(x, y, k=k, ext=ext)
    loose = {"rtol": 1e-7, "atol": 1e-8}
    assert_same(one(points), other(points), **loose)
    assert_same(one(points, 1, "extrapolate"), other(points, 1, "extrapolate"), **loose)
    assert_same(one.derivative()(points), other.derivative()(points), **loose)
    assert_same(one.antiderivative()(points), other.antiderivative()(points), **loose)
    assert_same(one.integral(-1, 4), other.integral(-1, 4), **loose)
    assert_same(one.derivatives(1.2), other.derivatives(1.2), **loose)
    assert_same(one.get_coeffs(), other.get_coeffs(), **loose)
    np.testing.assert_allclose(one.get_knots(), other.get_knots())
    same = ours.UnivariateSpline(x, gt.tensor(y), k=k, s=0, ext=ext)
    assert_same(same(points), other(points), **loose)


def test_smoothing_splines_of_plain_values_take_tensors_as_points(rng: np.random.Generator) -> None:
    y = rng.normal(size=9)
    spline = ours.UnivariateSpline(X[:9], y, s=3.0)
    inside = POINTS[1:4]
    assert_same(spline(gt.tensor(inside)), spline(inside))
    np.testing.assert_allclose(gt.grad(spline)(2.2), spline(2.2, 1), rtol=1e-10)
    np.testing.assert_allclose(gt.grad(lambda b: spline.integral(0.0, b))(2.2), spline(2.2))
    np.testing.assert_allclose(spline.derivatives(gt.tensor(2.2)), spline.derivatives(2.2))


# ---- bad input ----


def test_wrong_arguments(rng: np.random.Generator) -> None:
    y = gt.tensor(rng.normal(size=9))
    smooth = "a smoothing spline has no derivative"
    with pytest.raises(UnsupportedError, match=smooth):
        ours.splrep(X[:9], y, s=1.0)
    with pytest.raises(UnsupportedError, match=smooth):
        ours.UnivariateSpline(X[:9], y)
    for option, value in (("w", np.ones(9)), ("per", 1), ("t", [3.0]), ("full_output", 1)):
        with pytest.raises(UnsupportedError, match=f"{option}="):
            ours.splrep(X[:9], y, **{option: value})
    with pytest.raises(UnsupportedError, match="w or bbox"):
        ours.InterpolatedUnivariateSpline(X[:9], y, w=np.ones(9))
    with pytest.raises(ArgumentError, match="beyond the ends"):
        ours.splev([-1.0], ours.splrep(X[:9], y), ext=2)
    with pytest.raises(ArgumentError, match="ext='round'"):
        ours.InterpolatedUnivariateSpline(X[:9], y, ext="round")
    with pytest.raises(ArgumentError, match="degree"):
        ours.splder(ours.splrep(X[:9], y), 4)
    with pytest.raises(ArgumentError, match="degree"):
        ours.make_interp_spline(X[:9], y).derivative(4)
    with pytest.raises(ShapeError, match="expected 4"):
        ours.make_interp_spline(X[:3], y[:3])
    with pytest.raises(ArgumentError, match="1 and 1 conditions"):
        ours.make_interp_spline(X[:9], y, bc_type="natural", t=T)
    with pytest.raises(ArgumentError, match="round"):
        ours.make_interp_spline(X[:9], y, bc_type="round")
    with pytest.raises(ArgumentError, match="bc_type for degree 1"):
        ours.make_interp_spline(X[:9], y, 1, bc_type="natural")
    with pytest.raises(ArgumentError, match="differ at the ends"):
        ours.make_interp_spline(X[:9], y, bc_type="periodic")
    with pytest.raises((ArgumentError, LinAlgError), match=r"do not go with the points|singular"):
        ours.make_interp_spline(np.linspace(0.0, 0.9, 8), y[:8], t=T)
    with pytest.raises(ShapeError, match="expected at least 8"):
        ours.BSpline(T, y[:7], 3)
    with pytest.raises(ArgumentError, match="not in rising order"):
        ours.BSpline(T[::-1].copy(), y[:8], 3)
    with pytest.raises(ShapeError, match="elements in t"):
        ours.BSpline(T[:5], y, 3)
    with pytest.raises(UnsupportedError, match=r"BSpline\.insert_knot"):
        ours.BSpline(T, y, 3).insert_knot(1.5)
