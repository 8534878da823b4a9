"""Fourier transforms: what a row of samples does not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.fft

import gradtape as gt
from gradtape.errors import ArgumentError

X = np.random.default_rng(0).normal(size=(3, 4))


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_frequencies(n: int) -> None:
    for name in ("fftfreq", "rfftfreq"):
        got = getattr(gt.fft, name)(n, d=0.3)
        assert isinstance(got, gt.Tensor)
        np.testing.assert_allclose(got.numpy(), getattr(np.fft, name)(n, d=0.3), rtol=1e-15)
        assert getattr(gt.fft, name)(n, dtype=np.float32, device="cpu").dtype == np.float32


def test_frequencies_are_differentiable_in_the_distance() -> None:
    assert gt.grad(lambda d: gt.fft.fftfreq(5, d)[1])(0.5) == pytest.approx(-0.8)


def test_frequencies_need_points() -> None:
    with pytest.raises(ArgumentError, match="fftfreq: got n=0"):
        gt.fft.fftfreq(0)
    with pytest.raises(ArgumentError, match="got device 'cuda'"):
        gt.fft.rfftfreq(3, device="cuda")


def test_no_axes_is_the_identity() -> None:
    assert gt.fft.fftn(np.array(2.0)) == 2.0
    assert gt.fft.fftshift(np.array(2.0)) == 2.0
    np.testing.assert_array_equal(gt.fft.ifftn(X, axes=()), X)


def test_sizes_of_fast_transforms() -> None:
    assert gt.fft.next_fast_len(97) == scipy.fft.next_fast_len(97)
    assert gt.fft.prev_fast_len(97, real=True) == scipy.fft.prev_fast_len(97, real=True)


def test_gradient_of_a_spectrum_in_reverse_mode_is_complex() -> None:
    """The direction of steepest ascent: of |z|² it is 2z."""
    z = X[0] + 1j * X[1]
    grad = gt.grad(lambda z: gt.sum(gt.abs(gt.fft.fft(z, norm="ortho")) ** 2))(z)
    np.testing.assert_allclose(grad, 2 * z, rtol=1e-13)


def test_bfloat16_is_transformed_in_single_precision() -> None:
    x = X[0].astype(gt.bfloat16)
    assert gt.fft.fft(x).dtype == np.complex64
    grad = gt.grad(lambda t: gt.sum(gt.abs(gt.fft.rfft(t))))(gt.Tensor(x))
    assert grad.dtype == gt.bfloat16


def test_a_compiled_transform_runs_in_the_plan() -> None:
    def loss(x: Any) -> Any:
        return gt.sum(gt.abs(np.fft.rfft(np.sin(x))) ** 2)

    np.testing.assert_allclose(gt.jit(gt.grad(loss))(X), gt.grad(loss)(X), rtol=1e-12)


# ---- SciPy --------------------------------------------------------------------------------------

NAMES = [name for name in gt.fft.__all__ if hasattr(getattr(scipy.fft, name), "arg_extractor")]


def test_all_transforms_of_scipy_are_there() -> None:
    theirs = {
        name for name in scipy.fft.__all__ if hasattr(getattr(scipy.fft, name), "arg_extractor")
    }
    assert theirs == set(NAMES)
    assert len(NAMES) == 28


@pytest.mark.parametrize("name", NAMES)
def test_scipy_functions_work_on_tensors_with_our_backend(name: str) -> None:
    function = getattr(scipy.fft, name)
    options: dict[str, Any] = {"norm": "ortho"}
    hints: dict[str, Any] = {"workers": 2, "overwrite_x": False}
    if name.endswith("fht"):
        options, hints = {"dln": 0.1, "mu": 0.5}, {}
    expected = function(X, **options)
    with scipy.fft.set_backend(gt.fft):
        tape = gt.GradientTape()
        with tape:
            x = tape.watch(X)
            out = function(x, **options, **hints)
        from_array = function(X, **options)
    assert isinstance(out, gt.Tensor)
    assert out.requires_grad
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(from_array, expected)


def test_scipy_functions_take_their_arguments_by_position() -> None:
    with scipy.fft.set_backend(gt.fft):
        out = scipy.fft.dct(gt.Tensor(X), 3, 5, 0, "forward", False, None, True)
    expected = scipy.fft.dct(X, 3, 5, 0, "forward", False, None, True)
    np.testing.assert_array_equal(out.numpy(), expected)


def test_scipy_functions_without_our_backend_refuse_a_recorded_tensor() -> None:
    with pytest.raises(gt.GradtapeError, match="recorded by"):
        gt.grad(lambda x: gt.sum(scipy.fft.dct(x)))(X)
