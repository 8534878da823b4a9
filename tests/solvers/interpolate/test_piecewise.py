"""`PPoly` and `BPoly` against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as theirs

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from interpolation_cases import assert_same, check_batches, check_twice

ours = gt.scipy.interpolate
RISING = np.array([0.0, 1.0, 2.5, 3.0])
FALLING = RISING[::-1].copy()


@pytest.mark.parametrize("name", ["PPoly", "BPoly"])
@pytest.mark.parametrize("x", [RISING, FALLING], ids=["rising", "falling"])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_values_are_scipys(name: str, x: Any, rows: int, rng: np.random.Generator) -> None:
    c, points = rng.normal(size=(rows, 3, 2)), rng.uniform(-1, 4, (5,))
    for extrapolate in (None, False, "periodic"):
        one = getattr(ours, name)(gt.tensor(c), x, extrapolate)
        other = getattr(theirs, name)(c, x, extrapolate)
        for nu in range(rows + 1):
            assert_same(one(points, nu), other(points, nu))
        for nu in (1, 2):
            assert_same(one.derivative(nu)(points), other.derivative(nu)(points))
            assert_same(one.antiderivative(nu)(points), other.antiderivative(nu)(points))
            assert_same(one.derivative(-nu)(points), other.derivative(-nu)(points))
        for a, b in ((0.5, 1.5), (2.0, 1.0), (-4.0, 9.0)) if x[0] < x[-1] else ():
            assert_same(one.integrate(a, b), other.integrate(a, b))


def test_the_axis_of_coefficients(rng: np.random.Generator) -> None:
    c, points = rng.normal(size=(2, 4, 3, 5)), rng.uniform(0, 3, (2, 2))
    one, other = ours.PPoly(gt.tensor(c), RISING, axis=1), theirs.PPoly(c, RISING, axis=1)
    assert_same(one.c, other.c)
    assert_same(one(points), other(points))


def test_breakpoints(rng: np.random.Generator) -> None:
    """At one the piece to its right counts, at the last one that to its left."""
    c = rng.normal(size=(2, 3))
    assert_same(ours.PPoly(gt.tensor(c), RISING)(RISING), theirs.PPoly(c, RISING)(RISING))
    assert_same(ours.PPoly(gt.tensor(c), FALLING)(RISING), theirs.PPoly(c, FALLING)(RISING))


@pytest.mark.parametrize("name", ["PPoly", "BPoly"])
def test_derivatives(name: str, rng: np.random.Generator) -> None:
    c, points = rng.normal(size=(3, 3)), np.array([0.5, 1.7, 2.8, 3.3])

    def f(c: Any, x: Any, p: Any) -> Any:
        return getattr(ours, name)(c, x)(p)

    def area(c: Any, x: Any, a: Any) -> Any:
        return getattr(ours, name)(c, x).integrate(a, 2.2)

    check_twice(f, c, RISING, points)
    check_batches(f, c, RISING, points)
    check_twice(area, c, RISING, 0.3)


def test_polynomials_of_plain_arrays_are_converted() -> None:
    c = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 2.0]])
    power = ours.PPoly(c, RISING)
    bernstein = ours.BPoly.from_power_basis(power)
    assert isinstance(bernstein, ours.BPoly)
    np.testing.assert_allclose(bernstein(gt.tensor([0.3, 2.7])), power(np.array([0.3, 2.7])))
    again = ours.PPoly.from_bernstein_basis(bernstein)
    np.testing.assert_allclose(again(gt.tensor(0.3)), power(0.3))
    spline = ours.make_interp_spline(np.arange(5.0), np.arange(5.0) ** 2)
    np.testing.assert_allclose(ours.PPoly.from_spline(spline)(gt.tensor(1.5)), 2.25)
    made = ours.BPoly.from_derivatives([0.0, 1.0], [[0.0, 1.0], [2.0, 0.0]])
    np.testing.assert_allclose(gt.grad(made)(0.0), 1.0)


@pytest.mark.parametrize("x", [RISING, FALLING], ids=["rising", "falling"])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_polynomials_of_tensors_are_converted(x: Any, rows: int, rng: np.random.Generator) -> None:
    c = rng.normal(size=(rows, 3, 2))
    one = ours.PPoly.from_bernstein_basis(ours.BPoly(gt.tensor(c), x, "periodic"))
    other = theirs.PPoly.from_bernstein_basis(theirs.BPoly(c, x, "periodic"))
    assert_same(one.c, other.c)
    assert one.extrapolate == other.extrapolate
    back = ours.BPoly.from_power_basis(one)
    assert isinstance(back, ours.BPoly)
    assert_same(back.c, c)

    def f(c: Any, p: Any) -> Any:
        return ours.PPoly.from_bernstein_basis(ours.BPoly(gt.asarray(c), x))(p)

    check_twice(f, c[:, :, 0], np.array([0.5, 2.8]))


def test_splines_of_tensors_are_converted(rng: np.random.Generator) -> None:
    y, points = rng.normal(size=7), np.array([0.3, 2.7, 5.5])
    one = ours.make_interp_spline(np.arange(7.0), gt.tensor(y))
    other = theirs.make_interp_spline(np.arange(7.0), y)
    found = ours.PPoly.from_spline(one)
    assert_same(found.c, theirs.PPoly.from_spline(other).c, rtol=1e-7, atol=1e-8)
    assert_same(found(points), other(points))
    assert_same(ours.PPoly.from_spline(one.tck)(points), other(points))


def test_wrong_arguments(rng: np.random.Generator) -> None:
    c = gt.tensor(rng.normal(size=(2, 3)))
    with pytest.raises(ArgumentError, match="x in no order"):
        ours.PPoly(c, [0.0, 2.0, 1.0, 3.0])
    with pytest.raises(ShapeError, match="4 breakpoints"):
        ours.PPoly(c[:, :2], RISING)
    with pytest.raises(ShapeError, match="two axes"):
        ours.PPoly(c[0], RISING)
    with pytest.raises(ShapeError, match="1 breakpoints"):
        ours.PPoly(c, [0.0])
    with pytest.raises(ArgumentError, match="axis=2"):
        ours.PPoly(c, RISING, axis=2)
    with pytest.raises(ShapeError, match="limits"):
        ours.PPoly(c, RISING).integrate(np.zeros(2), 1.0)
    with pytest.raises(DTypeError, match="a PPoly, expected a BPoly"):
        ours.PPoly.from_bernstein_basis(ours.PPoly(c, RISING))
    with pytest.raises(UnsupportedError, match="from_derivatives"):
        ours.BPoly.from_derivatives([0.0, 1.0], [[c[0, 0]], [2.0]])
    with pytest.raises(UnsupportedError, match=r"PPoly\.extend"):
        ours.PPoly(c, RISING).extend(np.ones((2, 1)), [4.0])
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ours.PPoly(c, RISING).nothing  # noqa: B018
