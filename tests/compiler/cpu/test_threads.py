"""Compiled functions give the same bits for any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt

RNG = np.random.default_rng(5)
LONG = RNG.normal(size=200_003).astype(np.float32)  # no equal parts
EVEN = RNG.normal(size=1 << 18)
TALL = RNG.normal(size=(4099, 129))
WIDE = RNG.normal(size=(7, 60_000)).astype(np.float32)
SQUARE = RNG.normal(size=(300, 300))


def normalised(x: Any) -> Any:
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sum of an odd number": (lambda x: np.sum(x * x), (LONG,)),
    "sum, largest and product of sums": (
        lambda x: (np.sum(np.sin(x)), np.max(x), np.sum(x) * np.sum(np.abs(x))),
        (EVEN,),
    ),
    "columns": (lambda x: (np.sum(x, axis=0), np.max(x * 2.0, axis=0)), (TALL,)),
    "rows": (lambda x: np.sum(np.exp(x), axis=1), (TALL,)),
    "few long rows": (lambda x: np.mean(x, axis=1), (WIDE,)),
    "softmax and its gradient": (gt.grad(lambda x: np.sum(gt.softmax(x, axis=1) ** 2)), (TALL,)),
    "normalised, gradient": (gt.grad(lambda x: np.sum(normalised(x) ** 3)), (TALL,)),
    "elementwise": (lambda x: np.tanh(x) * np.exp(-x * x), (LONG,)),
    "products": (lambda x: (x @ x, np.sum(x @ x.T, axis=0)), (SQUARE,)),
}


@pytest.fixture
def _threads() -> Iterator[None]:
    before = gt.get_num_threads()
    yield
    gt.set_num_threads(before)


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_do_not_depend_on_the_number_of_threads(name: str) -> None:
    function, args = FUNCTIONS[name]
    compiled = gt.jit(function)
    found = []
    for threads in (1, 2, 3, 5):
        gt.set_num_threads(threads)
        results = [np.asarray(out).tobytes() for out in gt.tree.flatten(compiled(*args))[0]]
        again = [np.asarray(out).tobytes() for out in gt.tree.flatten(compiled(*args))[0]]
        assert results == again
        found.append(results)
    assert all(results == found[0] for results in found)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_in_parts_are_those_of_eager_code(name: str) -> None:
    function, args = FUNCTIONS[name]
    for one, other in zip(
        gt.tree.flatten(gt.jit(function)(*args))[0],
        gt.tree.flatten(function(*args))[0],
        strict=True,
    ):
        other = np.asarray(other)
        tolerance = 64 * np.finfo(other.dtype).eps
        scale = float(np.abs(other).max())
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


def test_large_sums_are_as_exact_as_numpy_s() -> None:
    x = (RNG.random(3_000_000) + 0.5).astype(np.float32)
    exact = np.sum(x, dtype=np.float64)
    ours = abs(float(gt.jit(np.sum)(x)) - exact) / exact
    assert ours < 4 * np.finfo(np.float32).eps
