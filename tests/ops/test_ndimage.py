"""Interpolation of images: what a row of samples does not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gradtape as gt
import our_scipy
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
            our_scipy.ndimage.map_coordinates(x, at, **options), expected, atol=1e-12
        )
    if order == 0:
        return
    # Where the sum of terms is differentiated, the sum itself is that of SciPy.
    step = 1e-6
    places += (np.abs(places * 2 - np.round(places * 2)) < 1e-3) * 0.01
    slopes = gt.grad(lambda c: gt.sum(our_scipy.ndimage.map_coordinates(x, c, **options)))(places)
    for axis in range(len(shape)):
        moved = np.zeros((len(shape), 1))
        moved[axis] = step
        sides = [scipy.ndimage.map_coordinates(x, places + m, **options) for m in (moved, -moved)]
        expected = (sides[0] - sides[1]) / (2 * step)
        near = np.abs(expected) < 1e3  # not across a jump
        np.testing.assert_allclose(slopes[axis][near], expected[near], atol=1e-7)


def test_a_displacement_is_found_by_descent() -> None:
    """Two images registered by the gradient in the coordinates."""
    image = scipy.ndimage.gaussian_filter(np.random.default_rng(0).normal(size=(24, 24)), 3.0)
    image /= image.std()
    target = scipy.ndimage.shift(image, (1.3, -0.8), mode="mirror")

    def loss(d: Any) -> Any:
        return np.mean((our_scipy.ndimage.shift(image, d, mode="mirror") - target) ** 2)

    d, gradient = np.zeros(2), gt.jit(gt.grad(loss))
    for _ in range(60):
        d = d - 2.0 * gradient(d)
    np.testing.assert_allclose(d, (1.3, -0.8), atol=1e-3)


def test_single_precision_stays() -> None:
    x, at = np.ones((3, 3), np.float32), np.full((2, 2), 1.2, np.float32)
    out, pullback = gt.vjp(our_scipy.ndimage.map_coordinates, x, at)
    assert out.dtype == np.float32
    assert [ct.dtype for ct in pullback(out)] == [np.float32, np.float32]


def test_angle_that_decides_on_the_shape() -> None:
    with pytest.raises(UnsupportedError, match="reshape=False"):
        gt.grad(lambda angle: gt.sum(our_scipy.ndimage.rotate(np.eye(3), angle)))(20.0)


def test_spline_is_the_identity_at_elements() -> None:
    x = RNG.normal(size=(4, 5))
    places = np.stack(np.meshgrid(np.arange(4.0), np.arange(5.0), indexing="ij"))
    jacobian = gt.jacobian(lambda x: our_scipy.ndimage.map_coordinates(x, places))(x)
    np.testing.assert_allclose(jacobian.reshape(20, 20), np.eye(20), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gaussian_filter", {"sigma": 1.0}),
        ("gaussian_filter1d", {"sigma": 1.0}),
        ("gaussian_laplace", {"sigma": 1.0}),
        ("gaussian_gradient_magnitude", {"sigma": 1.0}),
        ("uniform_filter1d", {"size": 3}),
        ("maximum_filter1d", {"size": 3}),
        ("minimum_filter1d", {"size": 3}),
        ("correlate", {"weights": np.eye(2)}),
        ("convolve", {"weights": np.eye(2)}),
        ("correlate1d", {"weights": [1.0, 2.0]}),
        ("convolve1d", {"weights": [1.0, 2.0]}),
        ("shift", {"shift": (0.5, -1.0)}),
        ("zoom", {"zoom": 1.5}),
        ("rotate", {"angle": 30.0}),
        ("affine_transform", {"matrix": np.array([[0.9, 0.1], [0.0, 1.1]])}),
        ("map_coordinates", {"coordinates": np.array([[0.5, 1.0], [1.5, 2.0]])}),
    ],
)
def test_options_by_name(name: str, options: dict[str, Any]) -> None:
    x = RNG.normal(size=(3, 4))
    expected = getattr(scipy.ndimage, name)(x, **options)
    np.testing.assert_allclose(getattr(our_scipy.ndimage, name)(x, **options), expected, atol=1e-12)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("mode", ["reflect", "constant", "nearest", "mirror", "wrap"])
def test_filters_of_no_elements(shape: tuple[int, ...], mode: str) -> None:
    """The result has none either, and the weights have a gradient of zeros."""
    x, window = np.zeros(shape), (3,) * len(shape)
    for name, size in (("gaussian_filter", 1.0), ("uniform_filter", 2), ("maximum_filter", 3)):
        assert getattr(our_scipy.ndimage, name)(x, size, mode=mode).shape == shape
    for name in ("sobel", "prewitt", "laplace"):
        assert getattr(our_scipy.ndimage, name)(x, mode=mode).shape == shape

    def total(x: Any, weights: Any) -> Any:
        return gt.sum(our_scipy.ndimage.convolve(x, weights, mode=mode))

    for gradients in (gt.grad(total, argnums=(0, 1)), gt.jit(gt.grad(total, argnums=(0, 1)))):
        by_image, by_weights = gradients(x, np.ones(window))
        assert by_image.shape == shape
        np.testing.assert_array_equal(by_weights, np.zeros(window))


def test_splines_of_no_elements() -> None:
    gradient = gt.grad(lambda x: gt.sum(our_scipy.ndimage.spline_filter1d(x, axis=0)))
    assert gradient(np.zeros((0, 3))).shape == (0, 3)


def test_a_region_of_equal_elements_has_no_spread_and_no_slope() -> None:
    x = np.array([2.0, 2.0, 1.0, 3.0])
    slope = gt.grad(
        lambda x: gt.sum(our_scipy.ndimage.standard_deviation(x, [1, 1, 2, 2], [1, 2]))
    )(x)
    np.testing.assert_allclose(slope, [0.0, 0.0, -0.5, 0.5])
