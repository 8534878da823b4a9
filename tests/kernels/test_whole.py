"""Ops on planes of large arrays: native code gives what NumPy gives, in any layout."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.kernels import INSTALLED, LARGE
from gradtape.kernels.whole import WholeArrays

SHAPE = (2, 16, 37, 33)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "avg": lambda x: gt.nn.avg_pool2d(x, 2),
    "avg-overlapping": lambda x: gt.nn.avg_pool2d(x, 3, 2, 1),
    "avg-padding-not-counted": lambda x: gt.nn.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "avg-ceil": lambda x: gt.nn.avg_pool2d(x, 4, 3, ceil_mode=True),
    "avg-apart": lambda x: gt.nn.avg_pool2d(x, 2, 5),
    "avg-long": lambda x: gt.nn.avg_pool2d(x, (11, 9), 1),
    "lp": lambda x: gt.nn.lp_pool2d(x, 2.0, 2),
    "max": lambda x: gt.nn.max_pool2d(x, 2),
    "max-overlapping": lambda x: gt.nn.max_pool2d(x, 3, 2, 1),
    "max-dilated": lambda x: gt.nn.max_pool2d(x, 3, 2, 1, dilation=2),
    "max-long": lambda x: gt.nn.max_pool2d(x, 9, 4),
    "min": lambda x: gt.nn.min_pool2d(x, (3, 2), 1, 1),
    "max-rows": lambda x: gt.nn.max_pool1d(x.reshape(2, 16, 37 * 33), 3, 2, 1),
    "max-volumes": lambda x: gt.nn.max_pool3d(x.reshape(1, 2, 16, 37, 33), 2),
    "adaptive-max": lambda x: gt.nn.adaptive_max_pool2d(x, (7, 11)),
    "adaptive-avg": lambda x: gt.nn.adaptive_avg_pool2d(x, (7, 11)),
    "adaptive-one": lambda x: gt.nn.adaptive_avg_pool2d(x, 1),
    "bilinear": lambda x: gt.nn.interpolate(x, scale_factor=2, mode="bilinear"),
    "bilinear-smaller": lambda x: gt.nn.interpolate(x, size=(20, 10), mode="bilinear"),
    "bilinear-corners": lambda x: gt.nn.interpolate(
        x, size=(50, 40), mode="bilinear", align_corners=True
    ),
    "bicubic": lambda x: gt.nn.interpolate(x, size=(50, 20), mode="bicubic"),
    "nearest": lambda x: gt.nn.interpolate(x, scale_factor=2),
    "nearest-smaller": lambda x: gt.nn.interpolate(x, size=(10, 9)),
    "one-axis": lambda x: gt.nn.interpolate(x, size=(37, 66), mode="bilinear"),
    "reflect": lambda x: gt.nn.pad(x, (1, 2, 3, 0), mode="reflect"),
    "group-norm": lambda x: gt.nn.group_norm(x, 4),
    "group-norm-affine": lambda x: gt.nn.group_norm(x, 4, np.arange(16.0), np.arange(16.0) - 3),
    "group-norm-scaled": lambda x: gt.nn.group_norm(x, 4, np.arange(16.0)),
    "instance-norm": lambda x: gt.nn.instance_norm(x, None, None, np.arange(16.0), np.ones(16)),
    "batch-norm-affine": lambda x: gt.nn.batch_norm(
        x, None, None, np.arange(16.0), np.ones(16), training=True
    ),
    "batch-norm": lambda x: gt.nn.batch_norm(x, None, None, training=True),
    "batch-norm-of-rows": lambda x: gt.nn.batch_norm(
        x.reshape(32, 37 * 33), None, None, training=True
    ),
    "softmax-of-columns": lambda x: gt.softmax(x.reshape(16, 2 * 37 * 33), 0),
    "cumsum": lambda x: gt.cumsum(x, 2),
    "tril": gt.tril,
    "triu": lambda x: gt.triu(x, -3),
    "circular": lambda x: gt.nn.pad(x, (1, 2), mode="circular"),
}


@pytest.fixture
def planes(monkeypatch: pytest.MonkeyPatch) -> WholeArrays:
    """Fresh programs, so that a test can look at those it made."""
    whole = WholeArrays()
    strategies = [whole if each.name == "whole" else each for each in INSTALLED.kernels.strategies]
    monkeypatch.setattr(INSTALLED.kernels, "strategies", strategies)
    return whole


def last(x: np.ndarray) -> np.ndarray:
    """The same array with channels last in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)


def images(dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(0).uniform(0.1, 2.0, SHAPE).astype(dtype)


def with_gradient(f: Callable[[Any], Any], x: np.ndarray, turn: Any) -> list[np.ndarray]:
    leaf = gt.Tensor(x).set_requires_grad(True)
    out = f(leaf)
    seed = np.random.default_rng(1).uniform(0.5, 1.5, out.shape).astype(out.dtype)
    out.backward(gt.Tensor(turn(seed) if seed.ndim > 2 else seed))
    return [np.asarray(out.value), np.asarray(leaf.grad.value)]


def by_numpy(
    f: Callable[[Any], Any], x: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> list[np.ndarray]:
    with monkeypatch.context() as patch:
        patch.setitem(INSTALLED.__dict__, "kernels", None)
        return with_gradient(f, x, lambda seed: seed)


# What lies between others, and what differs from them by a number.
BETWEEN = {"avg-overlapping", "group-norm-scaled", "bilinear-smaller", "nearest-smaller"}
BETWEEN |= {"adaptive-one", "batch-norm-of-rows", "max-dilated"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in BETWEEN else ()) for name in FUNCTIONS],
)
def test_native_code_gives_what_numpy_gives(
    name: str, planes: WholeArrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    f, x = FUNCTIONS[name], images()
    assert x.size >= LARGE
    expected = by_numpy(f, x, monkeypatch)
    for turn in (lambda a: a, last):
        for ours, theirs in zip(with_gradient(f, turn(x), turn), expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert any(planes._programs.made.values())


def test_channels_stay_last(planes: WholeArrays) -> None:
    for f in (FUNCTIONS["avg"], FUNCTIONS["max"], FUNCTIONS["bilinear"]):
        out, _ = with_gradient(f, last(images("float32")), last)
        assert np.moveaxis(out, 1, -1).flags.c_contiguous


def test_layouts_may_differ(planes: WholeArrays, monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = FUNCTIONS["max-overlapping"], images()
    expected = by_numpy(f, x, monkeypatch)
    for given, turn in ((x, last), (last(x), lambda a: a), (x[::-1, ::-1][::-1, ::-1], last)):
        for ours, theirs in zip(with_gradient(f, given, turn), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def test_what_is_repeated_is_read_once(
    planes: WholeArrays, monkeypatch: pytest.MonkeyPatch, thorough: bool
) -> None:
    x = images()
    turns = (lambda a: a, last)
    for i, part in enumerate((x[:1], x[:, :1], x[:, :, :1, :1], x[:1, :1, :1, :1])):
        repeated = np.broadcast_to(part, SHAPE)
        for j, name in enumerate(("max-overlapping", "bilinear", "lp")):
            expected = by_numpy(FUNCTIONS[name], repeated, monkeypatch)
            # Layouts of gradients take turns.
            for turn in turns if thorough else [turns[(i + j) % 2]]:
                got = with_gradient(FUNCTIONS[name], repeated, turn)
                for ours, theirs in zip(got, expected, strict=True):
                    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert any(planes._programs.made.values())


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_an_axis_of_the_plane_is_not_taken_for_channels(
    mode: str, planes: WholeArrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.ascontiguousarray(images().reshape(32, 33, 37)).swapaxes(1, 2)
    for pairs in ((1, 2, 3, 0), (1, 2, 3, 0, 4, 5)):
        f = functools.partial(gt.nn.pad, pad=pairs, mode=mode)
        for ours, theirs in zip(
            with_gradient(f, x, lambda a: a), by_numpy(f, x, monkeypatch), strict=True
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def test_the_first_of_equal_elements_and_nan(planes: WholeArrays) -> None:
    x = np.round(images("float32") * 2)
    x[0, 0, ::5, ::7] = np.nan
    x[0, 1] = -np.inf
    for turn in (lambda a: a, last):
        values, indices = gt.nn.max_pool2d(gt.Tensor(turn(x)), 3, 2, 1, return_indices=True)
        small = [gt.nn.max_pool2d(x[:1, :4], 3, 2, 1, return_indices=True)]
        np.testing.assert_array_equal(np.asarray(values.value)[:1, :4], small[0][0])
        np.testing.assert_array_equal(np.asarray(indices)[:1, :4], small[0][1])


@pytest.mark.parametrize("name", ["max", "max-overlapping", "max-volumes", "min", "adaptive-max"])
def test_gradients_of_equal_elements_and_nan(
    name: str, planes: WholeArrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.round(images() * 2)
    x[0, 0, ::5, ::7] = np.nan
    x[0, 1] = -np.inf
    x[1, 2:4] = np.inf
    expected = by_numpy(FUNCTIONS[name], x, monkeypatch)
    for turn in (lambda a: a, last):
        got = with_gradient(FUNCTIONS[name], turn(x), turn)
        for ours, theirs in zip(got, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def test_second_derivatives_of_pooling(planes: WholeArrays) -> None:
    x = images()
    small = x[:1, :2]

    def twice(z: Any) -> Any:
        first = gt.grad(lambda z: gt.sum(gt.nn.max_pool2d(z, 2) ** 3))
        return gt.grad(lambda z: gt.sum(first(z) * z))(z)

    expected = twice(small)
    for turn in (lambda a: a, last):
        np.testing.assert_allclose(twice(turn(x))[:1, :2], expected, rtol=1e-13)
        out, tangent = gt.jvp(lambda z: gt.nn.max_pool2d(z, 2), (turn(x),), (turn(2 * x),))
        np.testing.assert_allclose(tangent, 2 * out, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_running_statistics(dtype: str, planes: WholeArrays) -> None:
    x = images(dtype) + 5
    for given in (x, last(x)):
        mean, var = np.zeros(16, dtype), np.ones(16, dtype)
        gt.nn.batch_norm(gt.Tensor(given).set_requires_grad(True), mean, var, training=True)
        wide = x.astype(np.float64)
        eps = 100 * np.finfo(dtype).eps
        np.testing.assert_allclose(mean, 0.1 * wide.mean((0, 2, 3)), rtol=eps)
        np.testing.assert_allclose(var, 0.9 + 0.1 * wide.var((0, 2, 3), ddof=1), rtol=eps)
    assert any(key[0][0].name == "batch_moments" for key in planes._programs.made)


def test_long_columns_are_gone_through_in_order(planes: WholeArrays) -> None:
    def centered(x: Any) -> Any:
        return x - gt.mean(x, 0)

    def kernels(*shape: int) -> int:
        return len(gt.jit(centered).explain(np.ones(shape)).kernels)

    assert kernels(50, 64) == 1
    assert kernels(5000, 64) > 1
    assert kernels(5000, 2) == 1
    assert kernels(50_000, 2) > 1
    x = np.random.default_rng(0).normal(size=(5000, 70))
    np.testing.assert_allclose(gt.jit(centered)(x), x - x.mean(0), rtol=1e-12, atol=1e-12)


def test_infinities_do_not_reach_their_neighbours(planes: WholeArrays) -> None:
    x = images()
    x[0, 0, 0, 0] = np.inf
    out = np.asarray(gt.nn.interpolate(gt.Tensor(x), scale_factor=2, mode="bilinear").value)
    assert out[0, 0, 0, 0] == np.inf
    assert not np.isnan(out).any()


def test_sums_of_results_have_gradients(planes: WholeArrays) -> None:
    for f in (FUNCTIONS["avg"], FUNCTIONS["max"], FUNCTIONS["nearest"]):
        leaf = gt.Tensor(images()).set_requires_grad(True)
        gt.sum(f(leaf)).backward()
        small = gt.grad(lambda x, f=f: gt.sum(f(x)))(images()[:1, :1])
        np.testing.assert_allclose(np.asarray(leaf.grad.value)[:1, :1], small, rtol=1e-13)


def test_integers_and_other_dtypes(planes: WholeArrays) -> None:
    whole = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    np.testing.assert_array_equal(
        np.asarray(gt.nn.max_pool2d(gt.Tensor(whole), 2).value)[:1, :1],
        gt.nn.max_pool2d(whole[:1, :1], 2),
    )
    half = images("float16")
    assert gt.nn.avg_pool2d(gt.Tensor(half), 2).dtype == np.float16
    mixed = half + 1j
    assert gt.nn.avg_pool2d(gt.Tensor(mixed), 2).dtype == mixed.dtype


def test_sizes_that_change_all_the_time_are_left_to_numpy(
    planes: WholeArrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradtape.kernels.whole._MOST_SIZES", 5)
    monkeypatch.setattr("gradtape.kernels.whole._MOST_CHEAP", 3)
    for n in range(10):
        x = gt.Tensor(np.ones((1, 1, 200, 200 + n)))
        assert gt.nn.avg_pool2d(x, 2).shape == (1, 1, 100, (200 + n) // 2)
        assert gt.max(x, 2).shape == (1, 1, 200 + n)
    assert len(planes._programs.made) == 5 + 3


def test_statistics_of_a_captured_batch_are_read_at_each_call() -> None:
    batch = gt.tensor(images())

    def mean(w: Any) -> Any:
        mean, var = np.zeros(16), np.ones(16)
        return gt.nn.batch_norm(batch, mean, var, training=True, return_statistics=True)[1] * w

    compiled = gt.jit(mean)
    for _ in range(2):
        np.testing.assert_allclose(compiled(2.0), np.asarray(mean(2.0)), rtol=1e-12)
        batch[...] = np.asarray(batch.detach()) + 5
    assert isinstance(mean(2.0), gt.Tensor)
