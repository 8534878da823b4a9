"""Copies of large arrays, on all threads: the same elements, in memory of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import config
from gradtape.core.copies import by_rows, copied
from gradtape.core.kernels import LARGE
from gradtape.errors import ShapeError

SIZE = LARGE + 777


@pytest.mark.parametrize(
    "array",
    [
        np.arange(SIZE, dtype=np.float32),
        np.broadcast_to(np.float64(2.5), (300, 200)),
        np.broadcast_to(np.arange(200.0), (300, 200)),
        np.broadcast_to(np.arange(200.0), (3, 100, 200)),
        np.broadcast_to(np.arange(300.0)[:, None], (300, 200)),
        np.broadcast_to(np.arange(300.0).reshape(3, 100, 1), (3, 100, 200)),
        np.broadcast_to(np.arange(100.0)[:, None], (3, 100, 200)),
        np.arange(60_000.0).reshape(300, 200).T,
        np.arange(60_000.0)[::-1],
        np.broadcast_to(np.arange(3.0), (20_000, 3)),
    ],
    ids=["all", "number", "row", "rows", "column", "columns", "middle", "turned", "back", "short"],
)
def test_copies(array: Any) -> None:
    copy = copied(array)
    np.testing.assert_array_equal(copy, array)
    assert copy.flags.carray
    assert not np.shares_memory(copy, array)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128, np.int16])
def test_joined(axis: int, dtype: Any) -> None:
    x = np.arange(60_000).reshape(300, 200).astype(dtype)
    for parts in (
        [x, x + 1],
        [x, x.T.copy().T],
        [x, x.astype(np.result_type(dtype, np.float64))],
        [x, x[:0] if axis == 0 else x[:, :0]],
    ):
        out, expected = gt.concatenate(parts, axis), np.concatenate(parts, axis)
        assert out.dtype == expected.dtype
        np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(gt.stack([x, x + 1], axis), np.stack([x, x + 1], axis))
    np.testing.assert_array_equal(gt.roll(x, 7, axis), np.roll(x, 7, axis))


def test_large_arrays_whose_shapes_differ_are_not_joined() -> None:
    row, large = np.ones(4001), np.ones((9, 4001))
    for function, arrays in (
        (gt.stack, [row, large, row]),
        (gt.stack, [large[:, 1:], large]),
        (gt.concatenate, [large[:1, :1], large]),
        (gt.concatenate, [large, large[:1, :1]]),
        (gt.concatenate, [large[:, 1:], large]),
    ):
        with pytest.raises(ShapeError):
            function(arrays)


@pytest.mark.parametrize(
    "widths", [3, (0, 2), ((1, 0), (0, 0)), ((0, 0), (2, 3)), ((0, 0), (0, 0))]
)
def test_padded(widths: Any) -> None:
    x = np.arange(60_000.0).reshape(300, 200)
    for array in (x, x.T, x.astype(np.float32)):
        expected = np.pad(array, widths, constant_values=7.0)
        np.testing.assert_array_equal(gt.pad(array, widths, constant_values=7.0), expected)


@pytest.mark.skipif(not config.uses("pool"), reason="threads are switched off")
def test_an_error_of_a_thread_is_raised() -> None:
    def refuse(x: Any) -> Any:
        if x[0, 0] == 1:
            raise MemoryError("no room")
        return x

    x = np.zeros((400, 1000))
    x[-1, 0] = x[200, 0] = 1
    np.testing.assert_array_equal(by_rows(np.sort, x), np.sort(x))
    before = gt.get_num_threads()
    try:
        gt.set_num_threads(2)
        with pytest.raises(MemoryError, match="no room"):
            by_rows(refuse, x)
    finally:
        gt.set_num_threads(before)
