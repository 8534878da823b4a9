"""Interpolation of images: what a row of samples does not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gradtape as gt
from gradtape.errors import UnsupportedError

RNG = np.random.default_rng(0)
MODES = ("constant", "grid-constant", "nearest", "mirror", "reflect", "grid-mirror", "wrap")
MODES = (*MODES, "grid-wrap")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", range(6))
@pytest.mark.parametrize("shape", [(7,), (2, 3), (1, 4)])
def test_values_and_slopes_everywhere(shape: tuple[int, ...], order: int, mode: str) -> None:
    """At elements, far outside, and for arrays shorter than a spline is wide."""
    x = RNG.normal(size=shape)
    places = RNG.uniform(-15, 15, (len(shape), 60))
    options: dict[str, Any] = {"order": order, "mode": mode, "cval": 1.5}
    for at in (places, np.round(places)):
        expected = scipy.ndimage.map_coordinates(x, at, **options)
        np.testing.assert_allclose(
            gt.ndimage.map_coordinates(x, at, **options), expected, atol=1e-12
        )
    if order == 0:
        return
    # Where the sum of terms is differentiated, the sum itself is that of SciPy.
    step = 1e-6
    places += (np.abs(places * 2 - np.round(places * 2)) < 1e-3) * 0.01
    slopes = gt.grad(lambda c: gt.sum(gt.ndimage.map_coordinates(x, c, **options)))(places)
    for axis in range(len(shape)):
        moved = np.zeros((len(shape), 1))
        moved[axis] = step
        sides = [scipy.ndimage.map_coordinates(x, places + m, **options) for m in (moved, -moved)]
        expected = (sides[0] - sides[1]) / (2 * step)
        near = np.abs(expected) < 1e3  # not across a jump
        np.testing.assert_allclose(slopes[axis][near], expected[near], atol=1e-7)


def test_a_displacement_is_found_by_descent() -> None:
    """Two images registered by the gradient in the coordinates."""
    image = scipy.ndimage.gaussian_filter(RNG.normal(size=(24, 24)), 3.0)
    image /= image.std()
    target = scipy.ndimage.shift(image, (1.3, -0.8), mode="mirror")

    def loss(d: Any) -> Any:
        return np.mean((gt.ndimage.shift(image, d, mode="mirror") - target) ** 2)

    d, gradient = np.zeros(2), gt.jit(gt.grad(loss))
    for _ in range(60):
        d = d - 2.0 * gradient(d)
    np.testing.assert_allclose(d, (1.3, -0.8), atol=1e-3)


def test_single_precision_stays() -> None:
    x, at = np.ones((3, 3), np.float32), np.full((2, 2), 1.2, np.float32)
    out, pullback = gt.vjp(gt.ndimage.map_coordinates, x, at)
    assert out.dtype == np.float32
    assert [ct.dtype for ct in pullback(out)] == [np.float32, np.float32]


def test_angle_that_decides_on_the_shape() -> None:
    with pytest.raises(UnsupportedError, match="reshape=False"):
        gt.grad(lambda angle: gt.sum(gt.ndimage.rotate(np.eye(3), angle)))(20.0)


def test_spline_is_the_identity_at_elements() -> None:
    x = RNG.normal(size=(4, 5))
    places = np.stack(np.meshgrid(np.arange(4.0), np.arange(5.0), indexing="ij"))
    jacobian = gt.jacobian(lambda x: gt.ndimage.map_coordinates(x, places))(x)
    np.testing.assert_allclose(jacobian.reshape(20, 20), np.eye(20), atol=1e-12)
