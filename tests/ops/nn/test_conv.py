"""Convolutions, pooling and resizing beyond the table of ops: layouts, identities, dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import config
from gradtape.core.aval import aval_of
from gradtape.core.kernels import INSTALLED
from gradtape.kernels.whole import WholeArrays
from gradtape.ops.nn import conv_grouped, conv_kernels
from gradtape.ops.nn.conv_products import conv, conv_input, conv_weight, conv_weights
from opcases.conv import correlate

F = gt.nn.functional


def channels_last(x: Any) -> Any:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1)).transpose(0, -1, *range(1, x.ndim - 1))


def random_geometry(rng: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    """An image, weights and options that fit together, of one to three axes."""
    rank = int(rng.integers(1, 4))
    groups, c, o = (int(n) for n in rng.integers(1, 3, 3))
    kernel, stride, dilation = (tuple(rng.integers(1, 4, rank).tolist()) for _ in range(3))
    pads = rng.integers(0, 3, (rank, 2)).tolist()
    reach = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    sizes = [r + 1 + int(rng.integers(0, 5)) for r in reach]
    x = rng.normal(size=(int(rng.integers(1, 4)), groups * c, *sizes))
    w = rng.normal(size=(groups * o, c, *kernel))
    geometry = {
        "stride": stride,
        "padding": tuple((before, after) for before, after in pads),
        "dilation": dilation,
        "groups": groups,
    }
    return x, w, geometry


@pytest.mark.parametrize("number", range(20))
def test_three_products_come_of_one_form(number: int) -> None:
    rng = np.random.default_rng(number)
    x, w, geometry = random_geometry(rng)
    out = conv(x, w, **geometry)
    y = rng.normal(size=out.shape)
    form = np.sum(y * out)
    by_input = np.sum(x * conv_input(y, w, sizes=x.shape[2:], **geometry))
    by_weight = np.sum(w * conv_weight(x, y, kernel=w.shape[2:], **geometry))
    np.testing.assert_allclose([by_input, by_weight], form, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("number", range(20))
@pytest.mark.parametrize("chunk", [1, 400, 1 << 20])
def test_weights_of_pairs(number: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conv_kernels, "_CHUNK", chunk)
    rng = np.random.default_rng(number)
    x, w, geometry = random_geometry(rng)
    xs = np.stack([x, x[::-1], 2 * x])
    ys = rng.normal(size=(3, *conv(x, w, **geometry).shape))
    if number % 2:
        xs, ys = (np.stack([channels_last(part) for part in array]) for array in (xs, ys))
    found = conv_weights(xs, ys, kernel=w.shape[2:], **geometry)
    one_by_one = [
        conv_weight(a, b, kernel=w.shape[2:], **geometry) for a, b in zip(xs, ys, strict=True)
    ]
    np.testing.assert_allclose(found, one_by_one, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("number", range(30))
def test_every_stride_th_element_by_itself(number: int) -> None:
    rng = np.random.default_rng(number)
    x, w, geometry = random_geometry(rng)
    # By a stride of more than 1, windows have no gaps.
    pairs = zip(geometry["stride"], geometry["dilation"], strict=True)
    geometry["dilation"] = tuple(1 if s > 1 else d for s, d in pairs)
    y = rng.normal(size=conv(x, w, **geometry).shape)
    shape = conv_kernels.Geometry(**geometry)
    one = conv_kernels._conv_input(np, y, x.shape[2:], w, shape)
    other = conv_kernels._by_phases(conv, y, w, x.shape[2:], shape)
    np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize(
    ("weight", "options"),
    [
        ((16, 8, 3, 3), {"stride": 2, "padding": 1}),
        ((16, 8, 5, 4), {"stride": (2, 3), "padding": (0, 2)}),
        ((16, 8, 4, 3), {"stride": (3, 1), "dilation": (1, 2)}),
        ((16, 2, 3, 3), {"stride": 2, "groups": 4}),
        ((16, 8, 2, 2), {"stride": 2}),
    ],
    ids=str,
)
def test_gradients_of_large_strided_convolutions(weight: Any, options: Any) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(6, 8, 61, 63)), rng.normal(size=weight)
    out, pull = gt.vjp(lambda x, w: F.conv2d(x, w, **options), x, w)
    seed = rng.normal(size=out.shape)
    by_x, by_w = pull(seed)
    np.testing.assert_allclose([np.sum(by_x * x), np.sum(by_w * w)], np.sum(seed * out))
    # One sample is a small array.
    _, pull = gt.vjp(lambda x, w: F.conv2d(x, w, **options), x[:1], w)
    np.testing.assert_allclose(by_x[:1], pull(seed[:1])[0], atol=1e-12)


@pytest.mark.parametrize("chunk", [1, 200, 2000, 20000])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_chunks_of_windows(chunk: int, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(chunk)
    x, w = rng.normal(size=(3, 4, 6, 5)), rng.normal(size=(4, 4 // groups, 3, 2))
    for stride in (1, 2):
        options = {"stride": stride, "padding": 1, "groups": groups}
        expected = correlate(x, w, **options)
        y = rng.normal(size=expected.shape)

        def pulled(x: Any, w: Any, options: Any = options, y: Any = y) -> Any:
            return gt.grad(lambda x, w: gt.sum(F.conv2d(x, w, **options) * y), (0, 1))(x, w)

        whole = pulled(x, w)
        with monkeypatch.context() as patch:
            patch.setattr(conv_kernels, "_CHUNK", chunk)
            np.testing.assert_allclose(F.conv2d(x, w, **options), expected, atol=1e-13)
            for part, one in zip(pulled(x, w), whole, strict=True):
                np.testing.assert_allclose(part, one, atol=1e-13)


@pytest.mark.parametrize(("groups", "c", "o"), [(6, 1, 1), (6, 1, 2), (6, 2, 3), (4, 8, 1)])
def test_groups_computed_together_and_one_by_one(
    groups: int, c: int, o: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, groups * c, 6, 5)), rng.normal(size=(groups * o, c, 3, 2))

    def results(stride: int) -> list[Any]:
        options = {"stride": stride, "padding": 1, "dilation": 2, "groups": groups}
        out = F.conv2d(x, w, **options)
        np.testing.assert_allclose(out, correlate(x, w, **options), atol=1e-13)
        cotangent = np.cos(np.arange(out.size)).reshape(out.shape)
        return list(gt.vjp(lambda x, w: F.conv2d(x, w, **options), x, w)[1](cotangent))

    for stride in (1, 2):
        together = results(stride)
        with monkeypatch.context() as patch:
            patch.setattr(conv_kernels, "_FEW_CHANNELS", 1)
            for one, other in zip(together, results(stride), strict=True):
                np.testing.assert_allclose(one, other, atol=1e-13)


@pytest.mark.parametrize("layout", [np.ascontiguousarray, channels_last])
@pytest.mark.parametrize(
    "options",
    [
        {"padding": 1},
        {"padding": 1, "stride": 2},
        {"padding": (2, 0), "stride": (3, 1)},
        pytest.param({"dilation": 2}, marks=pytest.mark.slow),
        pytest.param({"padding": 5, "stride": 1}, marks=pytest.mark.slow),
    ],
)
def test_large_arrays_of_separate_channels(options: Any, layout: Any) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 16, 37, 33)), rng.normal(size=(16, 1, 3, 2))
    options = {**options, "groups": 16}

    def results(x: Any, w: Any) -> list[Any]:
        leaves = [gt.Tensor(a).set_requires_grad(True) for a in (x, w)]
        out = F.conv2d(*leaves, **options)
        out.backward(gt.Tensor(layout(np.cos(np.arange(out.size)).reshape(out.shape))))
        return [out.value, *(leaf.grad.value for leaf in leaves)]

    out, by_x, by_w = results(layout(x), w)
    np.testing.assert_allclose(out, correlate(x, w, **options), atol=1e-12)
    # The same of each channel by itself, which is a small array.
    seed = np.cos(np.arange(out.size)).reshape(out.shape)
    for c in (0, 15):
        own = {**options, "groups": 1}
        _, pull = gt.vjp(lambda x, w, own=own: F.conv2d(x, w, **own), x[:, [c]], w[[c]])
        expected = pull(seed[:, [c]])
        np.testing.assert_allclose(by_x[:, [c]], expected[0], atol=1e-12)
        np.testing.assert_allclose(by_w[[c]], expected[1], atol=1e-11)


def by_group(x: Any, w: Any, groups: int, function: Any) -> Any:
    """A convolution of each group by itself, joined."""
    parts = zip(np.split(x, groups, 1), np.split(w, groups), strict=True)
    return np.concatenate([function(*part) for part in parts], 1)


@pytest.mark.parametrize("layout", [np.ascontiguousarray, channels_last])
@pytest.mark.parametrize(
    ("shape", "weight", "options"),
    [
        ((2, 24, 31, 33), (24, 4, 3, 3), {"padding": 1, "groups": 6}),
        ((2, 24, 31, 33), (12, 4, 3, 2), {"padding": "same", "groups": 6}),
        ((2, 24, 31, 33), (48, 1, 3, 3), {"padding": (0, 3), "dilation": (1, 2), "groups": 24}),
        ((2, 24, 31, 33), (24, 12, 2, 3), {"groups": 2}),
        ((2, 24, 31, 33), (24, 16, 3, 3), {"groups": 2, "padding": 1}),
        ((2, 12, 2001), (12, 3, 5), {"padding": 7, "groups": 4}),
        ((2, 8, 9, 16, 21), (4, 2, 2, 3, 1), {"padding": (0, 1, 0), "groups": 4}),
    ],
    ids=str,
)
def test_large_arrays_of_small_groups(shape: Any, weight: Any, options: Any, layout: Any) -> None:
    if weight == (24, 16, 3, 3):
        shape = (shape[0], 32, *shape[2:])
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=shape), rng.normal(size=weight)
    function = getattr(F, f"conv{len(shape) - 2}d")
    own = {**options, "groups": 1}
    groups = options["groups"]

    def alone(x: Any, w: Any) -> Any:
        return function(x, w, **own)

    leaves = [gt.Tensor(a).set_requires_grad(True) for a in (layout(x), w)]
    out = function(*leaves, **options)
    seed = np.cos(np.arange(out.size)).reshape(out.shape)
    out.backward(gt.Tensor(layout(seed)))
    np.testing.assert_allclose(out.value, by_group(x, w, groups, alone), atol=1e-11)
    pieces = zip(*(np.split(a, groups, n) for a, n in ((x, 1), (w, 0), (seed, 1))), strict=True)
    pulled = [gt.vjp(alone, x, w)[1](seed) for x, w, seed in pieces]
    for leaf, axis, number in zip(leaves, (1, 0), (0, 1), strict=True):
        expected = np.concatenate([pair[number] for pair in pulled], axis)
        np.testing.assert_allclose(leaf.grad.value, expected, atol=1e-10)


@pytest.mark.skipif(not config.uses("kernels"), reason="there are no kernels to look at")
def test_small_groups_of_large_arrays_are_native(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = WholeArrays()
    strategies = [whole if each.name == "whole" else each for each in INSTALLED.kernels.strategies]
    monkeypatch.setattr(INSTALLED.kernels, "strategies", strategies)
    x, w = np.ones((2, 24, 31, 33), np.float32), np.ones((24, 4, 3, 3), np.float32)
    gt.vjp(lambda x, w: F.conv2d(x, w, groups=6), x, w)[1](np.ones((2, 24, 29, 31), np.float32))
    made = {key[0][0].name for key, program in whole._programs.made.items() if program}
    assert {"grouped", "grouped_weight"} <= made


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_small_groups_by_numpy(rank: int) -> None:
    """What runs where there is no native code."""
    rng = np.random.default_rng(rank)
    x, w = (
        rng.normal(size=(2, 6, 9, 8, 7)[: rank + 2]),
        rng.normal(size=(9, 2, 3, 2, 2)[: rank + 2]),
    )
    dilation, kernel = (2, 1, 3)[:rank], w.shape[2:]
    params = {"dilation": dilation, "groups": 3}
    ours, by_weight = conv_grouped._CONV, conv_grouped._WEIGHT
    out = ours.evaluate(np, x, w, **params)
    assert out.shape == ours.infer(aval_of(x), aval_of(w), **params).shape
    np.testing.assert_allclose(out, correlate(x, w, **params), atol=1e-13)
    y = rng.normal(size=out.shape)
    given = by_weight.evaluate(np, x, y, kernel=kernel, **params)
    np.testing.assert_allclose(np.sum(given * w), np.sum(out * y))
    for tap in conv_grouped.taps(kernel):
        seen = conv_grouped._AT_TAP.evaluate(np, x, tap=tap, shape=y.shape, **params)
        one = np.sum(seen * y[:, :, None], axis=(0, *range(3, rank + 3)))
        np.testing.assert_allclose(one, given[(..., *tap)], atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("stride", [1, 2])
@np.errstate(invalid="ignore")  # which some BLAS report for any infinity
def test_what_is_not_finite_stays_in_its_group(bad: float, stride: int) -> None:
    x, w = np.ones((1, 4, 5)), np.ones((4, 2, 3))
    x[:, 0, 0] = bad
    out, pull = gt.vjp(lambda x: F.conv1d(x, w, stride=stride, groups=2), x)
    assert not np.isfinite(out[:, :2, 0]).any()
    assert np.isfinite(out[:, 2:]).all()
    (grad,) = pull(np.where(np.isfinite(out), 1.0, bad))
    assert not np.isfinite(grad[:, :2, 0]).any()
    assert np.isfinite(grad[:, 2:]).all()


def test_layout_does_not_matter_and_is_handed_on() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3, 5, 4)), rng.normal(size=(6, 3, 3, 3))
    expected = F.conv2d(x, w)
    np.testing.assert_array_equal(F.conv2d(channels_last(x), w), expected)
    np.testing.assert_array_equal(F.conv2d(np.asfortranarray(x), w), expected)
    assert np.moveaxis(expected, 1, -1).flags.c_contiguous
    for pooled in (F.max_pool2d(expected, 2, 1), F.avg_pool2d(expected, 2, 1)):
        assert np.moveaxis(pooled, 1, -1).flags.c_contiguous


def test_results_share_no_memory_with_arguments() -> None:
    x, w = channels_last(np.ones((1, 2, 2, 2))), np.eye(2).reshape(2, 2, 1, 1)
    results = [
        F.conv2d(x, w),
        F.conv_transpose2d(x, w),
        F.max_pool2d(x, 1),
        F.avg_pool2d(x, 1),
        F.adaptive_avg_pool2d(x, 2),
        F.interpolate(x, 2),
        F.pad(x, (0, 0)),
    ]
    for out in results:
        assert not np.shares_memory(out, x)
        np.testing.assert_array_equal(out, x)


def test_gradients_for_each_sample() -> None:
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(4, 2, 5, 5)), rng.normal(size=(3, 2, 3, 3)), rng.normal(size=3)

    def loss(w: Any, b: Any, x: Any) -> Any:
        return gt.sum(gt.tanh(F.max_pool2d(F.conv2d(x, w, b, padding=1), 2)))

    each = gt.vmap(gt.grad(loss, (0, 1)), in_axes=(None, None, 0))(w, b, x)
    for i, sample in enumerate(x):
        for batched, one in zip(each, gt.grad(loss, (0, 1))(w, b, sample), strict=True):
            np.testing.assert_allclose(batched[i], one, atol=1e-12)


def test_a_network_compiled() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 2, 8, 8))
    weights = [rng.normal(size=(4, 2, 3, 3)), rng.normal(size=(4, 1, 3, 3)), rng.normal(size=4)]

    def loss(weights: Any, x: Any) -> Any:
        h = gt.relu(F.conv2d(x, weights[0], weights[2], padding="same"))
        h = F.max_pool2d(F.conv2d(h, weights[1], groups=4, padding=1), 3, 2, 1)
        h = F.interpolate(h, scale_factor=2, mode="bilinear")
        return gt.mean(F.global_avg_pool(F.avg_pool2d(h, 2)) ** 2)

    value, grads = gt.value_and_grad(loss)(weights, x)
    compiled, compiled_grads = gt.jit(gt.value_and_grad(loss))(weights, x)
    np.testing.assert_allclose(compiled, value, rtol=1e-12)
    for one, other in zip(compiled_grads, grads, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_narrow_floats_are_summed_in_single_precision(name: str) -> None:
    dtype = getattr(gt, name)
    x, w = np.ones((1, 64, 8, 8), dtype), np.full((1, 64, 8, 8), 0.75, dtype)
    # 3072 products: in so few bits a sum would stop growing long before.
    out = F.conv2d(x, w)
    assert out.dtype == dtype
    assert float(out.item()) == 3072
    x, w = gt.Tensor(x).set_requires_grad(), gt.Tensor(w).set_requires_grad()
    F.conv2d(x, w).backward()
    assert x.grad.dtype == w.grad.dtype == dtype
    assert float(F.sum_pool2d(np.ones((1, 64, 64), dtype), 64).item()) == 4096
    assert float(F.global_avg_pool(np.ones((1, 1, 64, 64), dtype)).item()) == 1


def test_dtypes_that_meet() -> None:
    x, w = np.ones((1, 1, 3, 3), np.float32), np.ones((1, 1, 2, 2))
    assert F.conv2d(x, w).dtype == np.float64
    grads = gt.grad(lambda x, w: gt.sum(F.conv2d(x, w)), (0, 1))(x, w)
    assert [grad.dtype for grad in grads] == [np.float32, np.float64]
    assert F.conv2d(x, w.astype(np.float32), np.ones(1)).dtype == np.float64


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_where_it_is(bad: float) -> None:
    x = np.zeros((1, 1, 7))
    x[..., 6] = bad
    for out in (
        F.adaptive_avg_pool1d(x, 3),
        F.interpolate(x, 14, mode="linear"),
        F.interpolate(x, 3, mode="area"),
        F.pad(x, (2, 0), "reflect"),
        F.avg_pool1d(x, 2, ceil_mode=True),
    ):
        assert np.isfinite(out[..., : out.shape[-1] // 2]).all()
        assert not np.isfinite(out[..., -1]).any()


def test_random_windows_come_from_the_generator() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 9, 9))
    gt.random.manual_seed(1)
    first = F.fractional_max_pool2d(x, 2, output_ratio=0.5)
    gt.random.manual_seed(1)
    np.testing.assert_array_equal(F.fractional_max_pool2d(x, 2, output_ratio=0.5), first)
    assert isinstance(first, np.ndarray)
    assert first.shape == (2, 3, 4, 4)


def test_functions_have_two_names() -> None:
    assert all(getattr(gt.nn, name) is getattr(F, name) for name in F.__all__)


def test_padding_that_leaves_nothing_of_the_images() -> None:
    options = {"padding": 3, "output_padding": 6, "dilation": 7}
    out = gt.nn.conv_transpose1d(np.ones((1, 1, 2)), np.ones((1, 1, 1)), **options)
    np.testing.assert_array_equal(out, np.zeros((1, 1, 2)))
