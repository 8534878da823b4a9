"""Pseudo-inverses and least squares that drop singular values far above rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import gradtape.scipy.linalg as scipy_linalg

Function = Callable[[Any, float], Any]


def example(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> tuple[Any, float]:
    """A matrix, and a cutoff between its last two singular values."""
    a = rng.normal(size=shape)
    if dtype is complex:
        a = a + 1j * rng.normal(size=shape)
    s = np.linalg.svd(a)[1]
    return a, (s[-2] + s[-1]) / 2 / s[0]


FUNCTIONS: dict[str, Function] = {
    "np.pinv": lambda a, cutoff: np.linalg.pinv(a, cutoff),
    "scipy.pinv": lambda a, cutoff: scipy_linalg.pinv(a, rtol=cutoff),
    "scipy.pinv, atol": lambda a, cutoff: scipy_linalg.pinv(a, atol=cutoff, rtol=cutoff / 100),
    "np.lstsq": lambda a, cutoff: np.linalg.lstsq(a, np.eye(a.shape[0])[:, :2] + 0.5, cutoff)[0],
    "scipy.lstsq": lambda a, cutoff: scipy_linalg.lstsq(a, np.ones(a.shape[0]), cutoff)[0],
}


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3)])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_what_drops_them(
    rng: np.random.Generator, name: str, dtype: Any, shape: tuple[int, int]
) -> None:
    a, cutoff = example(rng, shape, dtype)
    gt.testing.check_grads(lambda a: FUNCTIONS[name](a, cutoff), (a,))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_and_mapped(rng: np.random.Generator, name: str) -> None:
    a, cutoff = example(rng, (4, 3), float)

    def f(a: Any) -> Any:
        return gt.sum(FUNCTIONS[name](a, cutoff) ** 2)

    expected = gt.grad(f)(a)
    np.testing.assert_allclose(gt.jit(gt.grad(f))(a), expected, rtol=1e-10)
    np.testing.assert_allclose(gt.vmap(gt.grad(f))(np.stack([a, a]))[1], expected, rtol=1e-10)


def test_repeated_singular_values(rng: np.random.Generator) -> None:
    """Those that are kept, and those that are dropped, may be equal."""
    a = np.diag([2.0, 2.0, 0.5, 0.5])
    q, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    gt.testing.check_grads(lambda a: np.linalg.pinv(a, 0.5), (q @ a,))


def test_hermitian(rng: np.random.Generator) -> None:
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    a = (q * [2.0, -1.5, 0.5]) @ q.T
    gt.testing.check_grads(lambda a: scipy_linalg.pinvh(a + a.T, rtol=0.4), (a / 2,))
