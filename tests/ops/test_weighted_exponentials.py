"""Logarithms of weighted sums of exponentials, where weights vanish or exponents are infinite."""

from __future__ import annotations

import numpy as np
import scipy.special

import gradtape as gt
import our_scipy

inf = np.inf


def test_a_weight_of_zero_has_a_slope() -> None:
    a, b = np.array([1.0, 0.0]), np.array([0.0, 2.0])
    by_a, by_b = gt.grad(lambda a, b: our_scipy.special.logsumexp(a, b=b), (0, 1))(a, b)
    np.testing.assert_allclose(by_a, [0.0, 1.0], rtol=1e-15)
    np.testing.assert_allclose(by_b, [np.e / 2, 0.5], rtol=1e-15)


def test_what_has_no_weight_does_not_overflow() -> None:
    a, b = np.array([[1e4, inf, 0.0]]), np.array([0.0, 0.0, 2.0])
    np.testing.assert_array_equal(our_scipy.special.logsumexp(a, b=b), np.log(2.0))
    np.testing.assert_array_equal(
        gt.grad(lambda a: our_scipy.special.logsumexp(a, b=b))(a), [[0.0, 0.0, 1.0]]
    )


def test_weighted_exponentials_of_nothing_are_flat() -> None:
    a, b = np.full(2, -inf), np.array([1.0, 2.0])
    value, slope = gt.value_and_grad(lambda a: our_scipy.special.logsumexp(a, b=b))(a)
    assert value == -inf
    np.testing.assert_array_equal(slope, np.zeros(2))


def test_phase_of_a_complex_sum() -> None:
    a, b = np.array([1 + 2j, 3 - 1j]), np.array([1.0, -2.0])
    size, phase = our_scipy.special.logsumexp(a, b=b, return_sign=True)
    expected = scipy.special.logsumexp(a, b=b, return_sign=True)
    np.testing.assert_allclose((size, phase), expected, rtol=1e-14)
    assert size.dtype == np.float64
