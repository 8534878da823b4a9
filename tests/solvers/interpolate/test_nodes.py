"""Polynomials through points against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as theirs

import gradtape as gt
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.testing import check_grads
from interpolation_cases import assert_same, check_batches, check_twice

ours = gt.scipy.interpolate


def nodes(count: int) -> Any:
    return np.cos(np.linspace(0, np.pi, count))


@pytest.mark.parametrize("name", ["BarycentricInterpolator", "KroghInterpolator"])
@pytest.mark.parametrize("count", [2, 5, 12])
def test_values_are_scipys(name: str, count: int, rng: np.random.Generator) -> None:
    x, y = nodes(count), rng.normal(size=(2, count))
    points = np.concatenate([rng.uniform(-1, 1, 4), x[:2]]).reshape(3, 2)
    other = getattr(theirs, name)(x, y, 1)
    held = getattr(ours, name)(x, y, 1)
    loose = {"rtol": 1e-7, "atol": 1e-8}
    for one, at in ((getattr(ours, name)(x, gt.tensor(y), 1), points), (held, gt.tensor(points))):
        assert_same(one(at), other(points))
        assert_same(one.derivative(at), other.derivative(points), **loose)
        assert_same(one.derivative(at, 2), other.derivative(points, 2), **loose)
        assert_same(one.derivatives(at), other.derivatives(points), **loose)
    # SciPy multiplies weights in a random order.
    np.testing.assert_allclose(held(points), other(points), rtol=1e-12)


@pytest.mark.parametrize("name", ["BarycentricInterpolator", "KroghInterpolator"])
def test_derivatives(name: str, rng: np.random.Generator) -> None:
    x, y = nodes(6), rng.normal(size=6)
    points = np.array([0.3, -0.77, x[0], x[2]])

    def f(y: Any, p: Any) -> Any:
        return getattr(ours, name)(x, y)(p)

    check_twice(f, y, points)
    check_batches(f, y, points)


def test_derivatives_in_nodes(rng: np.random.Generator) -> None:
    y, points = rng.normal(size=5), np.array([0.3, -0.77])

    def f(x: Any) -> Any:
        return ours.BarycentricInterpolator(x, y)(points)

    check_twice(f, nodes(5))


def test_many_nodes(rng: np.random.Generator) -> None:
    x, points = nodes(80), rng.uniform(-1, 1, 50)
    found = ours.BarycentricInterpolator(x, gt.tensor(np.sin(5 * x)))(points)
    np.testing.assert_allclose(found, np.sin(5 * points), atol=1e-12)
    slopes = gt.jacobian(lambda p: ours.BarycentricInterpolator(x, np.sin(5 * x))(p))(points)
    np.testing.assert_allclose(np.diag(slopes), 5 * np.cos(5 * points), atol=1e-9)


def test_given_weights(rng: np.random.Generator) -> None:
    x, y = nodes(5), rng.normal(size=5)
    weights = theirs.BarycentricInterpolator(x).wi
    found = ours.BarycentricInterpolator(x, gt.tensor(y), wi=3.0 * weights)(0.3)
    np.testing.assert_allclose(found, theirs.BarycentricInterpolator(x, y)(0.3))


def test_repeated_nodes(rng: np.random.Generator) -> None:
    x, y, points = (
        [0.0, 0.0, 0.0, 1.0, 1.0, 2.0],
        rng.normal(size=6),
        np.array([0.0, 0.4, 1.0, 1.9]),
    )
    one, other = ours.KroghInterpolator(x, gt.tensor(y)), theirs.KroghInterpolator(x, y)
    assert_same(one(points), other(points))
    assert_same(one.derivative(points), other.derivative(points))
    check_grads(lambda y, p: ours.KroghInterpolator(x, y)(p), (y, points), order=2)


@pytest.mark.parametrize("name", ["barycentric_interpolate", "krogh_interpolate"])
@pytest.mark.parametrize("der", [0, 1, [0, 2]])
def test_functions(name: str, der: Any, rng: np.random.Generator) -> None:
    x, y = nodes(5), rng.normal(size=5)
    points = np.array([0.3, -0.7])
    wanted = getattr(theirs, name)(x, y, points, der=der)
    assert_same(getattr(ours, name)(x, gt.tensor(y), points, der=der), wanted)
    np.testing.assert_allclose(getattr(ours, name)(x, y, points, der=der), wanted, rtol=1e-12)


def test_wrong_arguments(rng: np.random.Generator) -> None:
    y = gt.tensor(rng.normal(size=4))
    with pytest.raises(ShapeError, match="5 nodes"):
        ours.BarycentricInterpolator(nodes(5), y)
    with pytest.raises(ArgumentError, match="nodes that are equal"):
        ours.BarycentricInterpolator([0.0, 1.0, 1.0, 2.0], y)(0.5)
    with pytest.raises(UnsupportedError, match="no yi"):
        ours.BarycentricInterpolator(gt.tensor(nodes(4)))
    with pytest.raises(UnsupportedError, match="nodes may be equal"):
        gt.grad(lambda x: ours.KroghInterpolator(x, y.detach())(0.3))(nodes(4))
    with pytest.raises(ArgumentError, match="set_yi"):
        ours.BarycentricInterpolator(nodes(4))(gt.tensor(0.3))
