"""Writes in traced functions: into buffers and through views, as NumPy does them.

Whether a reshape is a view depends on how the elements lie in memory, so traces keep track of that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.aval import Abstract
from gradtape.graph.layout import reshaped_strides
from graphcall import check_traced, traced

Function = Callable[..., Any]
X = np.random.default_rng(7).normal(size=(3, 4))
V = np.array([2, 0, 1])


def fill(x: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(len(x)):
        out[i] = x[i] ** 2
    out[0] += 1
    out[:, 1] *= 3
    out[V, 0] = x[0, :3]
    return out


def through_transpose(x: Any) -> Any:
    out = np.zeros_like(x, shape=(4, 3))
    view = out.T
    view[0] = x[0]
    view[:, 1] *= 3
    flat = out.reshape(-1)
    flat[2:4] = 7
    out.ravel()[0] = 5
    return out, view, flat


def through_slices(x: Any) -> Any:
    y = x * 1
    part = y[:, ::2]
    part += 10
    back = y[::-1]
    back[0] = -1
    flipped = np.flip(y, 1)
    flipped[0, 0] = 77
    y[1, 1] = 5
    return y, part, back, flipped


def copied_by_reshape(x: Any) -> Any:
    y = x * 1
    copy = y.T.reshape(-1)
    copy[0] = 100
    # In the order of its operand, so that a reshape copies: as NumPy's arrays do it.
    z = x.T * 2
    flat = z.reshape(-1)
    flat[0] = 100
    kept = z.T.reshape(-1)
    kept[1] = 50
    return y, copy, z, flat, kept


def copied_in_order(x: Any) -> Any:
    total = np.stack([x, x]).transpose(1, 2, 0).sum(0)
    flat = total.reshape(-1)
    flat[0] = 9
    cast = np.where(x.T > 0, x.T, 0.0).astype(np.float32)
    flat_cast = cast.reshape(-1)
    flat_cast[0] = 9
    assigned = x.T.copy()
    assigned[0, 0] = 3
    flat_assigned = assigned.reshape(12)
    flat_assigned[1] = 9
    return total, flat, cast, flat_cast, assigned, flat_assigned


def augmented(x: Any) -> Any:
    y = x * 1
    z = y
    y += x
    y -= 1
    y *= 2
    y /= 3
    y **= 2
    mask = y > 0
    mask &= x > 0
    return y, z, mask


@pytest.mark.parametrize(
    "function",
    [fill, through_transpose, through_slices, copied_by_reshape, copied_in_order, augmented],
)
def test_writes(function: Function) -> None:
    check_traced(function, X)

    def total(x: Any) -> Any:
        return sum(np.sum(part * part) for part in _floats(function(x)))

    check_traced(gt.grad(total), X)


def _floats(out: Any) -> list[Any]:
    parts = out if isinstance(out, tuple) else (out,)
    return [part for part in parts if part.dtype.kind == "f"]


def random_view(rng: np.random.Generator) -> Any:
    """Part of an array, with its axes in some order."""
    whole = np.zeros(tuple(rng.integers(1, 5, size=rng.integers(0, 4))))
    steps = [slice(None, None, int(rng.choice([1, 1, 2, -1]))) for _ in whole.shape]
    return whole.transpose(rng.permutation(whole.ndim))[(*steps, ...)]


def random_shape(rng: np.random.Generator, size: int) -> tuple[int, ...]:
    """Sizes with a given product, some of them 1."""
    sizes = [1] * int(rng.integers(2))
    while size > 1:
        divisor = int(rng.choice([d for d in range(2, size + 1) if size % d == 0]))
        sizes.insert(int(rng.integers(len(sizes) + 1)), divisor)
        size //= divisor
    return tuple(sizes)


def test_reshape_is_a_view_where_numpys_is() -> None:
    rng = np.random.default_rng(0)
    views = 0
    for _ in range(2000):
        x = random_view(rng)
        shape = random_shape(rng, x.size)
        expected = x.reshape(shape)
        strides = reshaped_strides(x.shape, x.strides, shape)
        assert (strides is not None) == np.shares_memory(x, expected)
        if strides is not None:
            views += 1
            for size, one, other in zip(shape, strides, expected.strides, strict=True):
                assert size == 1 or one == other
    assert 500 < views < 1990


@pytest.mark.parametrize("name", ["add", "where", "sum", "max", "cumsum", "softmax", "stack"])
def test_results_lie_in_memory_as_numpys(name: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        shape = tuple(int(n) for n in rng.integers(1, 4, size=3))
        order = rng.permutation(3)
        x = np.ones([shape[i] for i in order])
        axes = tuple(int(i) for i in np.argsort(order))

        def function(x: Any, axes: Any = axes) -> Any:
            y = np.transpose(x, axes)
            return {
                "add": lambda: y + np.ones(y.shape[-1:]),
                "where": lambda: gt.where(y > 0, y, 1.0),
                "sum": lambda: gt.sum(y, axis=1),
                "max": lambda: gt.max(y, axis=0),
                "cumsum": lambda: gt.cumsum(y, axis=2),
                "softmax": lambda: gt.softmax(y, axis=1),
                "stack": lambda: gt.stack([y, y], axis=1),
            }[name]()

        seen: list[Any] = []

        def look(x: Any, function: Any = function, seen: Any = seen) -> Any:
            out = function(x)
            seen.append(out.value)
            return out

        traced(look, x)
        expected = np.asarray(function(x))
        assert isinstance(seen[0], Abstract)
        for n, one, other in zip(expected.shape, seen[0].strides, expected.strides, strict=True):
            assert n == 1 or one == other
