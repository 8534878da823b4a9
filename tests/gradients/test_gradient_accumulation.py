"""Accumulation of gradients: sums, means, small floats, compiled, and what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, ShapeError, TapeError

g = gt.gradients


@pytest.mark.parametrize("mean", [True, False])
def test_parts_of_a_batch_are_the_batch(rng: np.random.Generator, mean: bool) -> None:
    w, xs = rng.normal(size=3), rng.normal(size=(12, 3))

    def loss(w: Any, xs: Any) -> Any:
        reduce = np.mean if mean else np.sum
        return reduce(np.tanh(xs @ w))

    accumulator = g.GradientAccumulator(4, mean=mean)
    states = [accumulator.add({"w": gt.grad(loss)(w, part), "b": None}) for part in np.split(xs, 4)]
    assert states == [False, False, False, True]
    assert accumulator.ready
    result = accumulator.result()
    np.testing.assert_allclose(result["w"], gt.grad(loss)(w, xs), rtol=1e-12)
    assert result["b"] is None
    assert (accumulator.count, accumulator.ready) == (0, False)


def test_fewer_than_a_step() -> None:
    accumulator = g.GradientAccumulator(4)
    accumulator.add(np.array([1.0]))
    accumulator.add(np.array([3.0]))
    np.testing.assert_array_equal(accumulator.result(), [2.0])
    with pytest.raises(TapeError, match="got no gradients"):
        accumulator.result()


def test_what_was_added_stays_as_it_was() -> None:
    first = np.ones(2)
    state = g.accumulate(None, first)
    g.accumulate(state, first)
    first[:] = 7.0
    np.testing.assert_array_equal(state.sum(), np.ones(2))


@pytest.mark.parametrize("dtype", [np.float16, gt.bfloat16])
def test_small_floats_are_added_in_float32(dtype: Any) -> None:
    # 2048 + 1 is 2048 in float16, and 256 + 1 is 256 in bfloat16.
    state = g.accumulate(None, np.full(3, 2048.0, dtype))
    for _ in range(2048):
        state = g.accumulate(state, np.ones(3, dtype))
    assert state.sum().dtype == dtype
    np.testing.assert_array_equal(state.sum().astype(float), 4096.0)


def test_compiled_and_tensors(rng: np.random.Generator) -> None:
    parts = [{"w": rng.normal(size=3), "b": np.float64(n)} for n in range(3)]

    @gt.jit
    def step(state: Any, grads: Any) -> Any:
        return g.accumulate(state, grads)

    state = None
    for part in parts:
        state = step(state, part)
    assert isinstance(state, g.Accumulation)
    assert state.count == 3
    np.testing.assert_allclose(state.mean()["w"], np.mean([p["w"] for p in parts], axis=0))
    tensors = g.accumulate(g.accumulate(None, gt.tensor([1.0])), gt.tensor([2.0]))
    assert isinstance(tensors.mean(), gt.Tensor)
    np.testing.assert_array_equal(tensors.mean().numpy(), [1.5])


def test_parts_without_a_gradient() -> None:
    x = np.array([1.0, 3.0], np.float16)
    parts = [
        {"a": x, "b": None, "c": None, "d": [None, x]},
        {"a": None, "b": 2 * x, "c": None, "d": None},
        {"a": 2 * x, "b": x, "c": None, "d": [None, x]},
    ]
    for mean, part in ((True, 3), (False, 1)):
        accumulator = g.GradientAccumulator(3, mean=mean)
        for grads in parts:
            accumulator.add(grads)
        result = accumulator.result()
        assert list(result) == ["a", "b", "c", "d"]
        assert result["c"] is None
        assert result["d"][0] is None
        for name, found, exact in (("a", result["a"], 3), ("d", result["d"][1], 2)):
            assert found.dtype == np.float16, name
            np.testing.assert_allclose(found, exact * x / part, rtol=1e-3)
    state = g.accumulate(g.accumulate(None, {"a": None, "b": x}), {"a": np.ones(2), "b": x})
    assert [leaf.dtype for leaf in state.sum().values()] == [np.float64, np.float16]
    assert g.accumulate(g.accumulate(None, None), None).mean() is None
    first = np.ones(2)
    state = g.accumulate(g.accumulate(None, {"a": None}), {"a": first})
    first[:] = 7.0
    np.testing.assert_array_equal(state.sum()["a"], np.ones(2))


def test_errors() -> None:
    accumulator = g.GradientAccumulator(2)
    accumulator.add({"w": np.ones(2)})
    with pytest.raises(ArgumentError, match=r"grads is a list of 1, expected a dict"):
        accumulator.add([np.ones(2)])
    with pytest.raises(ShapeError, match=r"grads\['w'\] has shape \(3,\), expected \(2,\)"):
        accumulator.add({"w": np.ones(3)})
    with pytest.raises(DTypeError, match=r"grads\['w'\] is a str"):
        accumulator.add({"w": "x"})
    with pytest.raises(DTypeError, match=r"steps=1\.5, expected an integer"):
        g.GradientAccumulator(1.5)
    with pytest.raises(ArgumentError, match="steps=0"):
        g.GradientAccumulator(0)
