"""Integrals of samples against SciPy's, and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate as theirs

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, ShapeError
from gradtape.testing import check_grads

ours = gt.scipy.integrate
NAMES = ["trapezoid", "simpson", "cumulative_trapezoid", "cumulative_simpson"]
COUNTS = [1, 2, 3, 4, 5, 8, 9, 17]


def assert_same(found: Any, wanted: Any, *, is_narrow: bool = False) -> None:
    assert isinstance(found, gt.Tensor)
    assert found.shape == np.shape(wanted)
    assert found.dtype == np.asarray(wanted).dtype
    tolerance = 1e-4 if is_narrow else 1e-10
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_values_are_scipys(name: str, count: int, dtype: Any, rng: np.random.Generator) -> None:
    y = (10 * rng.normal(size=(2, count, 3))).astype(dtype)
    x = np.sort(rng.uniform(0, 3, (2, count, 3)), axis=1)
    places = [{}, {"dx": 0.3}]
    if dtype != np.float32:  # SciPy 1.17 sums such samples in float32, 1.15 in float64
        places += [{"x": x}, {"x": x[0, :, 0]}]
    for options in places:
        wanted = getattr(theirs, name)(y, axis=1, **options)
        found = getattr(ours, name)(gt.tensor(y), axis=1, **options)
        assert_same(found, wanted, is_narrow=dtype == np.float32)


@pytest.mark.parametrize("count", COUNTS)
def test_where_results_begin(count: int, rng: np.random.Generator) -> None:
    y = rng.normal(size=(2, count, 3))
    for first in (0, 2.0, np.ones((2, 1, 3))):
        assert_same(
            ours.cumulative_simpson(gt.tensor(y), axis=1, initial=first),
            theirs.cumulative_simpson(y, axis=1, initial=first),
        )
    assert_same(
        ours.cumulative_trapezoid(gt.tensor(y), axis=1, initial=0),
        theirs.cumulative_trapezoid(y, axis=1, initial=0),
    )


def test_a_distance_for_each_row(rng: np.random.Generator) -> None:
    y, dx = rng.normal(size=(2, 6)), np.array([[0.1], [0.4]])
    assert_same(ours.cumulative_simpson(gt.tensor(y), dx=dx), theirs.cumulative_simpson(y, dx=dx))


@pytest.mark.parametrize("count", [2, 3, 5, 9, 17])
def test_romberg(count: int, rng: np.random.Generator) -> None:
    y = rng.normal(size=(2, count, 3))
    assert_same(ours.romb(gt.tensor(y), 0.3, 1), theirs.romb(y, 0.3, 1))
    check_grads(lambda y, dx: ours.romb(y, dx), (y[0, :, 0], 0.3), order=2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [2, 3, 5, 6])
def test_derivatives(name: str, count: int, rng: np.random.Generator) -> None:
    x, y = np.array([0.0, 0.5, 1.1, 2.0, 2.4, 3.3])[:count], rng.normal(size=count)

    def f(y: Any, x: Any) -> Any:
        return getattr(ours, name)(y, x=x)

    def even(y: Any, dx: Any) -> Any:
        return getattr(ours, name)(y, dx=dx)

    check_grads(f, (y, x), order=2)
    check_grads(even, (y, 0.4), order=2)
    np.testing.assert_allclose(gt.jit(f)(y, x), f(y, x), rtol=1e-12)
    rows = np.stack([y, 2 * y])
    np.testing.assert_allclose(gt.vmap(f, (0, None))(rows, x), [f(row, x) for row in rows])


def test_equal_places(rng: np.random.Generator) -> None:
    """Where places are the same, SciPy counts quotients by 0 as 0; gradients stay finite."""
    x, y = np.array([0.0, 0.5, 0.5, 1.0, 1.5]), rng.normal(size=5)
    assert_same(ours.simpson(gt.tensor(y), x), theirs.simpson(y, x))
    assert np.isfinite(gt.grad(lambda y: ours.simpson(y, x))(y)).all()


@pytest.mark.parametrize("name", [*NAMES, "romb"])
def test_plain_arrays_are_scipys(name: str, rng: np.random.Generator) -> None:
    y = rng.normal(size=9)
    found, wanted = (getattr(f, name)(y) for f in (ours, theirs))
    np.testing.assert_array_equal(found, wanted)
    assert type(found) is type(wanted)
    np.testing.assert_array_equal(ours.newton_cotes(4)[0], theirs.newton_cotes(4)[0])


def test_lists_of_tensors() -> None:
    slope = gt.grad(lambda a: ours.simpson([a, 2.0 * a, 0.0], dx=0.3))(2.0)
    np.testing.assert_allclose(slope, 0.9)


def test_wrong_arguments() -> None:
    y = gt.ones((2, 4))
    with pytest.raises(ArgumentError, match="got 4 samples"):
        ours.romb(y)
    with pytest.raises(ArgumentError, match="no samples"):
        ours.simpson(gt.ones((2, 0)))
    with pytest.raises(AxisError, match="axis 2"):
        ours.simpson(y, axis=2)
    with pytest.raises(ShapeError, match=r"x of shape \(3,\)"):
        ours.cumulative_simpson(y, x=np.arange(3.0))
    with pytest.raises(ShapeError, match="dx of shape"):
        ours.simpson(y, dx=np.ones(3))
    with pytest.raises(ArgumentError, match="not strictly increasing"):
        ours.cumulative_simpson(y, x=np.zeros(4))
    with pytest.raises(ArgumentError, match="initial=2"):
        ours.cumulative_trapezoid(y, initial=2.0)
