"""Filters and convolutions: what a row of samples does not show."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.signal

import gradtape as gt
import our_scipy
from builds import needs_scipy_1_17
from gradtape.errors import ArgumentError, DTypeError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shapes", [((6000,), (4000,)), ((70, 60), (30, 30))])
def test_large_convolutions_go_by_transforms(shapes: Any) -> None:
    x, h = (RNG.normal(size=shape) for shape in shapes)
    assert scipy.signal.choose_conv_method(x, h, "same") == "fft"
    expected = scipy.signal.convolve(x, h, "same", "fft")
    np.testing.assert_allclose(our_scipy.signal.convolve(x, h, "same"), expected, atol=1e-10)
    out, pullback = gt.vjp(lambda x, h: our_scipy.signal.convolve(x, h, "same"), x, h)
    ct = RNG.normal(size=out.shape)
    direct = gt.vjp(lambda x, h: our_scipy.signal.convolve(x, h, "same", "direct"), x, h)[1]
    for one, other in zip(pullback(ct), direct(ct), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_blocks_of_a_long_convolution() -> None:
    x, h = RNG.normal(size=(2, 1000)), RNG.normal(size=(2, 7))
    for mode in ("full", "same", "valid"):
        got = our_scipy.signal.oaconvolve(x, h, mode, axes=1)
        np.testing.assert_allclose(got, scipy.signal.oaconvolve(x, h, mode, axes=1), atol=1e-12)


def test_a_batch_of_kernels() -> None:
    x, h = RNG.normal(size=(4, 9, 8)), RNG.normal(size=(4, 3, 2))
    got = gt.vmap(lambda x, h: our_scipy.signal.convolve(x, h, "valid", "direct"))(x, h)
    rows = [scipy.signal.convolve(*pair, "valid", "direct") for pair in zip(x, h, strict=True)]
    np.testing.assert_allclose(got, np.stack(rows), atol=1e-13)


def test_a_filter_in_pieces_is_the_filter_of_the_whole() -> None:
    b, a, x = np.array([0.2, 0.3]), np.array([1.0, -0.5, 0.1]), RNG.normal(size=20)

    def in_pieces(b: Any, a: Any, x: Any) -> Any:
        first, state = our_scipy.signal.lfilter(b, a, x[:8], zi=np.zeros(2))
        second, _ = our_scipy.signal.lfilter(b, a, x[8:], zi=state)
        return np.sum(np.concatenate([first, second]) ** 3)

    def at_once(b: Any, a: Any, x: Any) -> Any:
        return np.sum(our_scipy.signal.lfilter(b, a, x) ** 3)

    for one, other in zip(
        gt.grad(in_pieces, (0, 1, 2))(b, a, x), gt.grad(at_once, (0, 1, 2))(b, a, x), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_filter_is_found_by_gradient_descent() -> None:
    """The coefficients of a recursive filter from its input and output."""
    x = RNG.normal(size=200)
    target = scipy.signal.lfilter([0.5], [1.0, -0.8], x)

    def loss(p: Any) -> Any:
        a = np.concatenate([np.ones_like(p[:1]), p[1:]])
        return np.mean((our_scipy.signal.lfilter(p[:1], a, x) - target) ** 2)

    p, gradient = np.array([0.6, -0.6]), gt.jit(gt.grad(loss))
    for _ in range(200):
        p = p - 0.03 * gradient(p)
    np.testing.assert_allclose(p, [0.5, -0.8], atol=1e-4)


def test_default_padding_of_sections_looks_at_their_coefficients() -> None:
    x = RNG.normal(size=30)
    sos = scipy.signal.butter(3, 0.3, output="sos")
    expected = scipy.signal.sosfiltfilt(sos, x)
    got = gt.grad(lambda s: gt.sum(our_scipy.signal.sosfiltfilt(s, x)))(sos)
    assert got.shape == sos.shape
    np.testing.assert_allclose(our_scipy.signal.sosfiltfilt(sos, x), expected, rtol=1e-11)


def test_default_padding_of_sections_in_compiled_code_and_batches() -> None:
    """Where values are not known, as many elements are put before as could be needed."""
    x = RNG.normal(size=(2, 40))
    rows = [scipy.signal.butter(n, 0.3, output="sos") for n in (3, 4)]

    def loss(sos: Any, x: Any) -> Any:
        return gt.sum(our_scipy.signal.sosfiltfilt(sos, x) ** 2)

    slope = gt.grad(loss, (0, 1))
    compiled, compiled_slope = gt.jit(our_scipy.signal.sosfiltfilt), gt.jit(slope)
    for sos in rows:
        np.testing.assert_allclose(compiled(sos, x), scipy.signal.sosfiltfilt(sos, x), rtol=1e-9)
        expected = slope(sos, x)
        for one, other in zip(compiled_slope(sos, x), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    both = gt.vmap(lambda sos: our_scipy.signal.sosfiltfilt(sos, x))(np.stack(rows))
    expected = np.stack([scipy.signal.sosfiltfilt(sos, x) for sos in rows])
    np.testing.assert_allclose(both, expected, rtol=1e-9)


def test_segments_are_no_longer_than_the_signal() -> None:
    x = RNG.normal(size=9)
    with pytest.warns(UserWarning, match="nperseg"):
        expected = scipy.signal.welch(x, nperseg=20)[1]
    np.testing.assert_allclose(our_scipy.signal.welch(x, nperseg=20)[1], expected, rtol=1e-12)


def test_frequencies_out_of_range_are_refused() -> None:
    for wn in (1.5, -0.1, np.array(1.0), gt.tensor(2.0)):
        with pytest.raises(ArgumentError, match=r"butter: got Wn=.*expected frequencies that rise"):
            our_scipy.signal.butter(2, wn)
        with pytest.raises(ArgumentError, match="firwin: got cutoff="):
            our_scipy.signal.firwin(3, wn)
        with pytest.raises(ArgumentError, match="iirnotch: got w0="):
            our_scipy.signal.iirnotch(wn, 2.0)
    with pytest.raises(ArgumentError, match="rise"):
        our_scipy.signal.butter(2, [0.5, 0.2], "band")


def test_a_cutoff_is_found_by_descent() -> None:
    """From what a filter does to a signal, through its design and its sections."""
    x = RNG.normal(size=200)
    target = scipy.signal.sosfiltfilt(scipy.signal.butter(4, 0.3, output="sos"), x)

    def loss(cutoff: Any) -> Any:
        sos = our_scipy.signal.butter(4, cutoff, output="sos")
        return np.mean((our_scipy.signal.sosfiltfilt(sos, x) - target) ** 2)

    cutoff, gradient = np.array(0.2), gt.jit(gt.grad(loss))
    np.testing.assert_allclose(gradient(cutoff), gt.grad(loss)(cutoff), rtol=1e-8)
    for _ in range(100):
        cutoff = cutoff - 0.05 * gradient(cutoff)
    np.testing.assert_allclose(cutoff, 0.3, atol=1e-4)


def test_the_middle_frequency_of_an_analytic_image_is_left_out() -> None:
    """As SciPy has it from 1.17 on."""
    x = RNG.normal(size=(4, 6))
    spectrum = np.fft.fft2(our_scipy.signal.hilbert2(x))
    expected = np.zeros((4, 6), complex)
    expected[:2, :3] = np.fft.fft2(x)[:2, :3] * np.outer([1, 2], [1, 2, 2])
    np.testing.assert_allclose(spectrum, expected, atol=1e-12)


def test_half_precision_is_refused_by_filters() -> None:
    with pytest.raises(DTypeError, match="lfilter: got float16, expected float32"):
        our_scipy.signal.lfilter(*(np.ones(2, np.float16),) * 3)


def test_scipy_itself_refuses_a_recorded_tensor() -> None:
    """Without SCIPY_ARRAY_API it converts what it is given."""
    with pytest.raises(gt.GradtapeError, match="recorded by"):
        gt.grad(lambda x: gt.sum(scipy.signal.lfilter([1.0], [1.0, 0.5], x)))(np.ones(3))


WITH_ARRAY_API = """
import numpy as np, scipy.fft, scipy.signal
import gradtape as gt
from gradtape.scipy import signal

x, h = np.random.default_rng(0).normal(size=(2, 8))
pairs = [
    (lambda x, h: scipy.fft.irfft(scipy.fft.rfft(x) * scipy.fft.rfft(h)),
     lambda x, h: gt.fft.irfft(gt.fft.rfft(x) * gt.fft.rfft(h))),
    (lambda x, h: scipy.signal.hilbert(x).imag * h, lambda x, h: signal.hilbert(x).imag * h),
    (lambda x, h: scipy.signal.resample(x * h, 5), lambda x, h: signal.resample(x * h, 5)),
    (scipy.signal.fftconvolve, signal.fftconvolve),
    (scipy.signal.oaconvolve, signal.oaconvolve),
]
for theirs, ours in pairs:
    one, other = (gt.grad(lambda x, h: gt.sum(f(x, h) ** 2), (0, 1))(x, h) for f in (theirs, ours))
    np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
"""


@needs_scipy_1_17
def test_scipy_itself_on_tensors_with_its_array_api() -> None:
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-c", WITH_ARRAY_API], check=True, env=environment)


def test_filters_need_a_first_coefficient() -> None:
    b, a, x = np.array([1.0, 2.0]), np.array([0.0, 1.0]), np.ones(20)
    for name in ("lfilter", "filtfilt"):
        theirs, ours = getattr(scipy.signal, name), getattr(our_scipy.signal, name)
        with pytest.raises(ValueError, match=r"0|zero"):
            theirs(b, a, x)
        with pytest.raises(ArgumentError, match=rf"{name}: got a\[0\] = 0"):
            ours(b, a, x)
        with pytest.raises(ArgumentError, match=rf"{name}: got a\[0\] = 0"):
            gt.grad(lambda a, f=ours: gt.sum(f(b, a, x)))(a)
