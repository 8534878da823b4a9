"""Interpolators of plain arrays are SciPy's: its values to the bit, attributes, types."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.interpolate as theirs

import gradtape as gt
from interpolation_cases import KNOTS

ours = gt.scipy.interpolate
Y = np.array([1.0, 0.3, -0.5, 0.9, 1.4, 0.2, 0.8])
POINTS = np.array([[0.1, 2.4], [3.3, 4.9]])
MADE: dict[str, tuple[Any, ...]] = {
    "CubicSpline": (KNOTS, Y),
    "PchipInterpolator": (KNOTS, Y),
    "Akima1DInterpolator": (KNOTS, Y),
    "CubicHermiteSpline": (KNOTS, Y, Y),
    "PPoly": (Y.reshape(1, 7)[:, :6], KNOTS),
    "BPoly": (Y.reshape(1, 7)[:, :6], KNOTS),
    "BSpline": (np.r_[0.0, 0.0, KNOTS, 5.0, 5.0], Y, 3),
    "interp1d": (KNOTS, Y),
    "UnivariateSpline": (KNOTS, Y, None, [None, None], 3, 0),
    "InterpolatedUnivariateSpline": (KNOTS, Y),
    "RegularGridInterpolator": ((KNOTS,), Y),
    "BarycentricInterpolator": (KNOTS, Y),
    "KroghInterpolator": (KNOTS, Y),
}


def names() -> list[str]:
    """The names that gradtape defines itself."""
    return [
        name
        for name in dir(ours)
        if not name.startswith("_") and getattr(ours, name) is not getattr(theirs, name)
    ]


@pytest.mark.parametrize("name", MADE)
def test_objects(name: str) -> None:
    one, other = (getattr(f, name)(*MADE[name]) for f in (ours, theirs))
    wanted = other(POINTS.ravel())
    if name == "BarycentricInterpolator":  # SciPy multiplies weights in a random order
        np.testing.assert_allclose(one(POINTS.ravel()), wanted, rtol=1e-12)
        wanted = one(POINTS.ravel())
    np.testing.assert_array_equal(one(POINTS.ravel()), wanted)
    assert type(one(POINTS.ravel())) is type(other(POINTS.ravel()))
    assert isinstance(one, getattr(ours, name))
    assert isinstance(one, getattr(theirs, name))
    for copied in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        np.testing.assert_array_equal(copied(POINTS.ravel()), wanted)
        assert isinstance(copied, getattr(ours, name))
    assert not [x for x in dir(other) if not x.startswith("_") and not hasattr(one, x)]
    tracked = getattr(ours, name)(*(gt.tensor(x) if x is Y else x for x in MADE[name]))
    assert isinstance(tracked, getattr(ours, name))


def test_every_class_is_here() -> None:
    assert {name for name in names() if isinstance(getattr(ours, name), type)} == set(MADE)


@pytest.mark.parametrize("name", names())
def test_signatures_are_scipys(name: str) -> None:
    one, other = (inspect.signature(getattr(f, name)).parameters for f in (ours, theirs))
    known = [p for p in other.values() if p.name != "random_state"]
    assert [(p.name, p.kind) for p in one.values()] == [(p.name, p.kind) for p in known]
    assert str([p.default for p in one.values()]) == str([p.default for p in known])


def test_methods() -> None:
    one, other = ours.CubicSpline(KNOTS, Y), theirs.CubicSpline(KNOTS, Y)
    np.testing.assert_array_equal(one.roots(), other.roots())
    np.testing.assert_array_equal(one.solve(0.5), other.solve(0.5))
    np.testing.assert_array_equal(one.derivative(2)(POINTS), other.derivative(2)(POINTS))
    np.testing.assert_array_equal(one.antiderivative()(POINTS), other.antiderivative()(POINTS))
    assert one.integrate(0.0, 1.0) == other.integrate(0.0, 1.0)
    assert isinstance(one.derivative(), ours.PPoly)
    np.testing.assert_array_equal(one.c, other.c)
    assert type(one.c) is np.ndarray


def test_attributes_can_be_set() -> None:
    spline = ours.CubicSpline(KNOTS, Y)
    spline.extrapolate = False
    assert np.isnan(spline(9.0))
    assert np.isnan(spline(gt.tensor(9.0)).item())
    spline.note = "mine"
    assert spline.note == "mine"


def test_scipys_functions_take_them() -> None:
    spline = ours.make_interp_spline(KNOTS, Y)
    wanted = theirs.make_interp_spline(KNOTS, Y)(POINTS)
    np.testing.assert_allclose(theirs.splev(POINTS, spline), wanted)
    assert isinstance(theirs.BPoly.from_power_basis(ours.CubicSpline(KNOTS, Y)), theirs.BPoly)
    np.testing.assert_allclose(ours.splev(POINTS, spline), wanted)
    np.testing.assert_allclose(ours.splev(gt.tensor(POINTS), spline), wanted)


def test_subclasses() -> None:
    class Doubled(ours.CubicSpline):  # type: ignore[misc, name-defined]
        def __init__(self, x: Any, y: Any) -> None:
            super().__init__(x, 2.0 * y)

        def __call__(self, x: Any, *args: Any) -> Any:
            return super().__call__(x, *args)

    np.testing.assert_allclose(Doubled(KNOTS, Y)(POINTS), 2.0 * ours.CubicSpline(KNOTS, Y)(POINTS))
    np.testing.assert_allclose(
        gt.grad(lambda a: Doubled(KNOTS, a * Y)(1.0))(1.0), Doubled(KNOTS, Y)(1.0)
    )


def test_functions_and_other_names() -> None:
    tck, wanted = ours.splrep(KNOTS, Y, s=1.0), theirs.splrep(KNOTS, Y, s=1.0)
    for one, other in zip(tck, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert ours.griddata is theirs.griddata
    assert ours.Rbf is theirs.Rbf


def test_scipys_errors_stay_theirs() -> None:
    with pytest.raises(ValueError, match="strictly increasing"):
        ours.CubicSpline([0.0, 0.0, 1.0], [1.0, 2.0, 3.0])


def test_tensors_without_history_are_tensors() -> None:
    spline = ours.CubicSpline(KNOTS, Y)
    assert isinstance(spline(gt.tensor(1.0)), gt.Tensor)
    assert isinstance(ours.CubicSpline(KNOTS, gt.tensor(Y))(1.0), gt.Tensor)
    assert spline(gt.tensor(1.0, requires_grad=True)).requires_grad
