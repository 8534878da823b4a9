"""Options of neural-network functions at their edges: what they do, and what they refuse."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, ShapeError

nn = gt.nn


def test_a_smaller_window_of_powers_counts_as_a_full_one() -> None:
    # As in PyTorch: the mean of the powers that are there, times the size of the window.
    x = np.array([[3.0, 4.0, 1.0, 2.0, 2.0]])
    out = nn.lp_pool1d(x, 2, 2, ceil_mode=True)
    np.testing.assert_allclose(out, [[5.0, np.sqrt(5.0), np.sqrt(8.0)]], rtol=1e-15)
    plane = nn.lp_pool2d(np.ones((1, 3, 3)), 3, 2, ceil_mode=True)
    np.testing.assert_allclose(plane, np.full((1, 2, 2), 4 ** (1 / 3)), rtol=1e-15)


def test_factors_may_come_as_an_array() -> None:
    x = np.arange(16.0).reshape(1, 1, 4, 4)
    out = nn.interpolate(x, scale_factor=np.array([2.0, 0.5]))
    np.testing.assert_array_equal(out, nn.interpolate(x, scale_factor=(2.0, 0.5)))
    ratio = np.array([0.5, 0.75])
    assert nn.fractional_max_pool2d(x, 1, output_ratio=ratio).shape == (1, 1, 2, 3)


# ---- bags ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize(
    ("offsets", "last", "said"),
    [
        ([1, 2], False, "the first at 0"),
        ([0, 3, 2], False, "in order"),
        ([0, 9], False, "up to 4"),
        ([0, 2, 3], True, "the last at 4"),
        ([2], True, "the first at 0"),
    ],
)
def test_offsets_that_are_none(mode: str, offsets: Any, last: bool, said: str) -> None:
    table, numbers = np.ones((2, 3)), np.array([0, 1, 1, 0])
    with pytest.raises(ArgumentError, match=f"embedding_bag: got offsets .*{said}"):
        nn.embedding_bag(numbers, table, offsets, mode=mode, include_last_offset=last)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_without_rows(mode: str) -> None:
    table = np.array([[1.0, 2.0], [3.0, 5.0]])
    out = nn.embedding_bag(np.array([1]), table, [0, 0, 1, 1], mode=mode)
    np.testing.assert_array_equal(out, [[0, 0], [3, 5], [0, 0], [0, 0]])
    none = nn.embedding_bag(np.array([], np.int64), table, [0, 0], mode=mode)
    np.testing.assert_array_equal(none, np.zeros((2, 2)))


# ---- attention ----------------------------------------------------------------------------------


def test_shared_heads_need_an_axis_of_heads() -> None:
    q, k = np.ones((3, 4)), np.ones((5, 4))
    with pytest.raises(ShapeError, match=r"scaled_dot_product_attention: got .*heads"):
        nn.scaled_dot_product_attention(q, k, k, enable_gqa=True)


def test_leading_axes_that_do_not_broadcast_are_named() -> None:
    q, k = np.ones((2, 3, 4)), np.ones((3, 5, 4))
    with pytest.raises(ShapeError, match=r"scaled_dot_product_attention: got shapes \(2, 3, 4\)"):
        nn.scaled_dot_product_attention(q, k, k)


# ---- dtypes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_running_statistics_of_other_precision_do_not_change_that_of_the_result(dtype: Any) -> None:
    x = np.ones((4, 2, 3), dtype)
    for training in (True, False):
        assert nn.batch_norm(x, np.zeros(2), np.ones(2), training=training).dtype == dtype
    for own in (True, False):
        x[..., 0] = 2
        out = nn.instance_norm(x, np.zeros(2), np.ones(2), use_input_stats=own)
        assert out.dtype == dtype


def test_a_grid_of_bfloat16() -> None:
    x, grid = np.arange(4.0, dtype=np.float32).reshape(1, 1, 2, 2), np.zeros((1, 1, 1, 2))
    assert nn.grid_sample(x, grid.astype(ml_dtypes.bfloat16)).astype(float).item() == 1.5


# ---- distances ----------------------------------------------------------------------------------


def test_a_point_at_infinity_leaves_the_others_alone(rng: Any) -> None:
    x, y = rng.normal(size=(40, 3)), rng.normal(size=(50, 3))
    expected = nn.cdist(x, y)
    y[7, 1] = np.inf
    out = nn.cdist(x, y)
    assert np.isinf(out[:, 7]).all()
    rest = np.arange(50) != 7
    np.testing.assert_allclose(out[:, rest], expected[:, rest], rtol=1e-12)


# ---- grids --------------------------------------------------------------------------------------


def test_what_is_outside_of_a_grid_does_not_see_what_is_not_a_number() -> None:
    x = np.ones((1, 1, 2, 2))
    x[0, 0, 0, 0] = np.nan
    far = np.full((1, 1, 1, 2), 5.0)
    for mode in ("bilinear", "nearest", "bicubic"):
        f = functools.partial(nn.grid_sample, mode=mode)
        assert f(x, far).item() == 0
        for slope in gt.grad(lambda x, grid, f=f: np.sum(f(x, grid)), (0, 1))(x, far):
            np.testing.assert_array_equal(slope, 0)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grids_of_large_images_in_any_layout(mode: str, rng: Any) -> None:
    x, grid = rng.normal(size=(2, 8, 50, 45)), rng.uniform(-1.2, 1.2, (2, 50, 60, 2))
    seed = rng.normal(size=(2, 8, 50, 60))

    def f(x: Any, grid: Any, seed: Any) -> Any:
        return np.sum(nn.grid_sample(x, grid, mode) * seed)

    # Sample by sample and channel by channel they are not large.
    parts = [
        [f(x[n, c : c + 1][None], grid[n : n + 1], seed[n, c]) for c in range(8)] for n in (0, 1)
    ]
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    slopes = []
    for given in (x, last):
        value, grads = gt.value_and_grad(f, (0, 1))(given, grid, seed)
        np.testing.assert_allclose(value, np.sum(parts), rtol=1e-10)
        slopes.append(grads)
    one = gt.grad(f, (0, 1))
    own = [one(x[:, c : c + 1, :, :], grid, seed[:, c : c + 1]) for c in range(8)]
    for by_x, by_grid in slopes:
        np.testing.assert_allclose(by_x, np.concatenate([g[0] for g in own], 1), atol=1e-12)
        np.testing.assert_allclose(by_grid, sum(g[1] for g in own), atol=1e-9)


def test_padding_by_a_constant_that_has_a_gradient() -> None:
    def padded(c: Any) -> Any:
        return np.sum(gt.nn.pad(np.ones(3), (1, 2), "constant", c) ** 2)

    np.testing.assert_allclose(gt.grad(padded)(2.5), 15.0)
    np.testing.assert_allclose(gt.jit(gt.grad(padded))(2.5), 15.0)
