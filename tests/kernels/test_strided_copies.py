"""Copies between arrays that are laid out in different ways, by native code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler.cpu.runtime import pool, strided_copies
from gradtape.core.copies import copied, copy_into
from gradtape.core.kernels import LARGE

DTYPES = ("float32", "float64", "int64", "float16", "int8", "complex128")


def laid_out(rng: Any, shape: tuple[int, ...], dtype: str, filled: bool) -> tuple[Any, Any]:
    """An array with its axes in any order in memory and gaps between them, and all that memory."""
    order = rng.permutation(len(shape))
    sizes = [shape[axis] + rng.integers(0, 3) for axis in order]
    count = int(np.prod(sizes))
    whole = (np.arange(count) % 120 if filled else np.full(count, -1)).astype(dtype).reshape(sizes)
    part = whole[tuple(slice(n - shape[axis], n) for n, axis in zip(sizes, order, strict=True))]
    return part.transpose(np.argsort(order)), whole


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_layout_into_any_other(dtype: str) -> None:
    rng, done = np.random.default_rng(0), 0
    for _ in range(150):
        ndim = int(rng.integers(1, 6))
        shape = tuple(int(n) for n in rng.integers(1, 40 if ndim < 4 else 9, ndim))
        source, _ = laid_out(rng, shape, dtype, True)
        axis = int(rng.integers(ndim))
        if rng.random() < 0.3:
            source = np.flip(source, axis)
        elif rng.random() < 0.2:
            source = np.broadcast_to(source.take([0], axis), shape)
        target, whole = laid_out(rng, shape, dtype, False)
        if strided_copies.copied_into(target, source):
            done += 1
            np.testing.assert_array_equal(target, source)
            assert np.count_nonzero(whole != -1) == target.size  # and nothing beside it
    assert done > 30


@pytest.mark.parametrize("shape", [(3, 5, 160, 97), (1, 16, 64, 64), (300, 300), (7, 6, 5, 4, 100)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_channels_first_and_last(shape: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    turned = np.moveaxis(x, 1, -1) if x.ndim > 2 else x.T
    for view in (turned, np.ascontiguousarray(turned).T):
        out = np.full(view.shape, np.nan, dtype)
        assert strided_copies.copied_into(out, view)
        np.testing.assert_array_equal(out, view)


def test_into_the_inside_of_a_larger_array() -> None:
    x = np.random.default_rng(0).normal(size=(4, 20, 30, 40)).astype(np.float32)
    out = np.zeros((4, 32, 42, 20), np.float32)
    copy_into(out[:, 1:-1, 1:-1], np.moveaxis(x, 1, -1))
    expected = np.pad(np.moveaxis(x, 1, -1), ((0, 0), (1, 1), (1, 1), (0, 0)))
    np.testing.assert_array_equal(out, expected)


def test_same_with_any_number_of_threads() -> None:
    x = np.random.default_rng(0).normal(size=(5, 33, 71, 29))
    before = pool.get_num_threads()
    try:
        for threads in (1, 2, 5):
            pool.set_num_threads(threads)
            np.testing.assert_array_equal(copied(x.T), x.T)
    finally:
        pool.set_num_threads(before)


def test_what_has_no_neighbours_is_left_to_numpy() -> None:
    x = np.arange(4.0 * LARGE).reshape(2, -1)[:, ::2]
    assert not strided_copies.copied_into(np.empty(x.shape), x)
    np.testing.assert_array_equal(copied(x), x)
    objects = np.full((200, 200), None, object)
    assert not strided_copies.copied_into(np.empty((200, 200), object), objects.T)
    misaligned = np.zeros(8 * 40_000 + 1, np.int8)[1:].view(np.float64).reshape(200, 200)
    assert not strided_copies.copied_into(np.empty((200, 200)), misaligned.T)


def test_a_gradient_is_in_order_whatever_the_layout() -> None:
    x = np.moveaxis(np.random.default_rng(0).normal(size=(4, 20, 30, 40)), -1, 1)
    leaf = gt.Tensor(x).set_requires_grad(True)
    gt.nn.avg_pool2d(leaf, 2).sum().backward()
    grad = np.asarray(leaf.grad.value)
    assert grad.flags.c_contiguous
    np.testing.assert_allclose(grad, np.full(x.shape, 0.25))
