"""Indexing with arrays in native code: the values of NumPy, and errors instead of stray reads."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler.kernel import Axis, affine
from gradtape.core import scalar
from gradtape.errors import IndexingError
from jitcheck import assert_close, assert_leaf_close

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 5))
ROWS = np.array([3, -1, 0, 3, 5])
Function = Callable[..., Any]


def native(function: Function, *args: Any) -> Any:
    """A compiled function, of which nothing is left to eager code."""
    compiled = gt.jit(function)
    assert compiled.explain(*args).eager == []
    return compiled


def refused(function: Function, *args: Any, match: str) -> None:
    """Compiled code raises as eager code does, with the user's line, and can be called again."""
    with pytest.raises(IndexingError, match=match):
        function(*map(gt.tensor, args))
    compiled = native(function, *args)
    for _ in range(2):
        with pytest.raises(IndexingError, match=match) as caught:
            compiled(*args)
        assert "/tests/compiler/test_native_" in str(caught.value)


# ---- reading ------------------------------------------------------------------------------------

READS: dict[str, tuple[Function, Any]] = {
    "rows": (lambda x, i: x[i], ROWS),
    "columns": (lambda x, i: x[:, i - 1], ROWS[:3]),
    "pairs": (lambda x, i: x[i, np.arange(5)], ROWS),
    "scaled": (lambda x, i: np.cbrt(x)[i] * 2.0 + x[0], ROWS),
    "broadcast": (lambda x, i: x[i[:, None], np.array([0, -5])], ROWS),
    "of a matrix of indices": (lambda x, i: x[i], ROWS.reshape(5, 1).repeat(2, 1)),
    "of a mask": (lambda x, i: x[X[:, 0] > 0] * i[0], ROWS),
    "one": (lambda x, i: x[i], np.array(-2)),
    "slice and array": (lambda x, i: x[::2, i], ROWS[:3] - 1),
    "take": (lambda x, i: np.take(x, i), ROWS * 5),
    "take along": (lambda x, i: np.take(x, i, axis=1, mode="wrap"), ROWS * 3),
    "take clipped": (lambda x, i: np.take(x, i, axis=0, mode="clip"), ROWS * 3),
    "take_along_axis": (lambda x, i: np.take_along_axis(x, i, 0), np.tile(ROWS, (3, 1))),
    "gather": (lambda x, i: gt.gather(x, i, 1), np.array([[4, 0], [-1, 2]])),
    "sum": (lambda x, i: np.sum(x[i] ** 2, axis=1), ROWS),
    "sum of columns": (lambda x, i: np.sum(x[i] ** 2, axis=0), ROWS),
    "transposed": (lambda x, i: x[i].T, ROWS),
    "reshaped": (lambda x, i: x[i].reshape(-1)[3:], ROWS),
    "twice": (lambda x, i: x[i][i % 2], ROWS),
    "of what is reduced": (lambda x, i: np.sum(x, axis=1)[i], ROWS),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint16])
@pytest.mark.parametrize("name", READS)
def test_reads(name: str, dtype: Any) -> None:
    function, i = READS[name]
    x = (X * 3).astype(dtype)
    compiled = native(function, x, i)
    assert_leaf_close(compiled(x, i), np.asarray(function(gt.tensor(x), i)))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint8, np.uint32, np.uint64])
def test_dtypes_of_indices(dtype: Any) -> None:
    i = np.array([3, 1, 0, 5]).astype(dtype)
    assert_close(native(lambda x, i: x[i], X, i)(X, i), X[i])
    refused(lambda x, i: x[i], X, i + dtype(1), match="got index 6 for an axis of size 6")
    if np.dtype(dtype).kind == "i":
        assert_close(gt.jit(lambda x, i: x[i])(X, -i), X[-i])


def test_an_embedding_is_read_in_rows() -> None:
    table, tokens = RNG.normal(size=(50, 64)), RNG.integers(0, 50, (3, 7))
    compiled = native(lambda w, t: w[t] * 2.0, table, tokens)
    report = compiled.explain(table, tokens)
    (kernel,) = report.kernels
    assert "in0[i2 + check(" in kernel.listing
    assert "llvm.masked.gather" not in report.ir
    assert_close(compiled(table, tokens), table[tokens] * 2.0)


def cross_entropy(x: Any, labels: Any) -> Any:
    logs = x - gt.logsumexp(x, axis=1, keepdims=True)
    return -np.mean(logs[np.arange(x.shape[0]), labels])


def test_cross_entropy() -> None:
    labels = np.array([0, 4, 2, 1, 0, 3])
    expected = cross_entropy(gt.tensor(X), labels)
    assert_close(native(cross_entropy, X, labels)(X, labels), np.asarray(expected)[()])
    refused(cross_entropy, X, labels + 1, match=r"got index 5 for an axis of size 5")


# ---- indices out of bounds ----------------------------------------------------------------------

LENGTHS = [1, 7, 64, 1003, 300_007]


@pytest.mark.parametrize("size", LENGTHS)
def test_one_wrong_index_anywhere(size: int) -> None:
    # In short and ragged vectors, and in reductions that are divided among threads.
    x, right = RNG.normal(size=11), RNG.integers(-11, 11, size)
    functions = [lambda x, i: x[i] * 2.0, lambda x, i: np.sum(x[i])]
    for function in functions:
        compiled = native(function, x, right)
        assert_close(compiled(x, right), np.asarray(function(gt.tensor(x), right))[()], 1000)
        for place, wrong in itertools.product({0, size // 2, size - 1}, (11, -12, 2**62)):
            bad = right.copy()
            bad[place] = wrong
            with pytest.raises(IndexingError, match=f"got index {wrong} for an axis of size 11"):
                compiled(x, bad)
        assert_close(compiled(x, right), np.asarray(function(gt.tensor(x), right))[()], 1000)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(5, 13), (700, 130), (3, 1)])
def test_one_wrong_index_in_rows_and_columns(shape: tuple[int, int], axis: int) -> None:
    x, right = RNG.normal(size=(9,)), RNG.integers(-9, 9, shape)
    compiled = native(lambda x, i: np.sum(x[i], axis=axis), x, right)
    assert_close(compiled(x, right), x[right].sum(axis), 1000)
    for row, column in itertools.product((0, shape[0] - 1), (0, shape[1] - 1)):
        bad = right.copy()
        bad[row, column] = 9
        with pytest.raises(IndexingError, match="got index 9"):
            compiled(x, bad)


def test_wrong_rows() -> None:
    table, right = RNG.normal(size=(9, 70)), RNG.integers(0, 9, 900)
    for function in (lambda w, i: w[i], lambda w, i: np.sum(w[i], axis=0)):
        compiled = native(function, table, right)
        assert_close(compiled(table, right), np.asarray(function(gt.tensor(table), right)), 1000)
        bad = right.copy()
        bad[-1] = -10
        with pytest.raises(IndexingError, match="got index -10"):
            compiled(table, bad)


def test_an_axis_of_one_element_is_checked() -> None:
    x = np.ones((1, 3))
    assert_close(native(lambda x, i: x[i], x, np.zeros(2, int))(x, np.array([0, -1])), x[[0, 0]])
    refused(lambda x, i: x[i], x, np.array([0, 1]), match="got index 1 for an axis of size 1")


def test_arrays_without_elements() -> None:
    none = np.zeros(0, int)
    for x, i in ((X, none), (np.ones((0, 3)), none), (np.ones((3, 0)), ROWS[:0])):
        assert_close(gt.jit(lambda x, i: x[i])(x, i), x[i])
    for x in (np.ones((0, 3)), np.ones((3, 0))):
        with pytest.raises(IndexingError, match="got index 3"):
            gt.jit(lambda x, i: x[i])(x, np.array([3]))


def test_the_first_failure_is_reported() -> None:
    def function(x: Any, i: Any, j: Any) -> Any:
        return x[i].sum() + x[:, j].sum() + gt.one_hot(j, 3).sum()

    bad = np.array([1, 7])
    refused(function, X, bad, bad + 1, match="got index 7 for an axis of size 6")
    refused(function, X, bad - 2, bad + 1, match="got index 8 for an axis of size 5")
    refused(function, X, bad - 2, bad - 4, match="one_hot: got class -3")


def test_what_is_not_read_is_not_wrong() -> None:
    # Around the part that is padded there are no indices to be read.
    def padded(x: Any, i: Any) -> Any:
        rows = np.concatenate([x[i], x[:2]])
        return np.pad(rows, ((2, 3), (0, 1))) + 1.0

    i = ROWS.copy()
    assert_close(native(padded, X, i)(X, i), np.asarray(padded(gt.tensor(X), i)))
    assert_close(
        gt.jit(gt.grad(lambda x: padded(x, i).sum()))(X), gt.grad(lambda x: padded(x, i).sum())(X)
    )
    refused(padded, X, i + 1, match="got index 6")


def test_guards_in_reductions_that_are_divided() -> None:
    # Parts are of about equal sizes, and the last one is guarded once more.
    x, right = RNG.normal(size=11), RNG.integers(-11, 11, 300_007)
    compiled = native(lambda x, i: np.sum(np.pad(x[i], 5) * 2.0), x, right)
    assert_close(compiled(x, right), np.sum(x[right] * 2.0), 1000)
    for place in (0, -1):
        bad = right.copy()
        bad[place] = 11
        with pytest.raises(IndexingError, match="got index 11"):
            compiled(x, bad)


def test_classes_out_of_bounds() -> None:
    classes = np.array([[0, 3], [2, 1]])
    function = lambda i: gt.one_hot(i, 4) * 2.0  # noqa: E731
    assert_close(native(function, classes)(classes), np.asarray(function(classes)))
    refused(function, classes + 1, match="one_hot: got class 4.*expected classes from 0 to 3")
    refused(function, classes - 1, match="one_hot: got class -1")
    assert_close(gt.jit(lambda i: gt.one_hot(i, 300))(np.int8([100])), gt.one_hot([100], 300))


def test_debug_mode_raises_the_same_error() -> None:
    compiled = gt.jit(lambda x, i: np.sin(x[i]) @ x.T, debug=True)
    assert_close(compiled(X, ROWS), np.sin(X[ROWS]) @ X.T)
    with pytest.raises(IndexingError, match="got index 6"):
        compiled(X, ROWS + 1)


def test_indices_that_may_round_are_not_steps() -> None:
    k = Axis("k", 8).index
    assert affine(k * 2 + 1) == ({k.extra: 2}, 1)
    half = scalar.convert(scalar.convert(k, np.float64) * 0.5, np.int64)
    narrow = scalar.convert(scalar.convert(k, np.int8) * scalar.constant(100, np.dtype("b")), "q")
    assert affine(half) is None
    assert affine(narrow) is None


# ---- lanes that read the same element -----------------------------------------------------------


def at_page_end(shape: tuple[int, ...], dtype: str) -> Any:
    """An array that ends where the next page may not be read: a stray read ends the process."""
    kind = np.dtype(dtype)
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    assert protect(ctypes.c_void_p(base + mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
    size = int(np.prod(shape)) * kind.itemsize
    return np.frombuffer(pages, kind, int(np.prod(shape)), mmap.PAGESIZE - size).reshape(shape)


@pytest.mark.skipif(sys.platform == "win32", reason="protects pages as Unix does")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "float16"])
@pytest.mark.parametrize("times", [2, 3, 4, 8])
def test_repeated_elements_are_read_no_further_than_they_go(
    times: int, dtype: str, rng: np.random.Generator
) -> None:
    for size in (1, 2, 3, 4, 5, 7, 8, 12, 16, 33):
        x = at_page_end((3, size), dtype)
        x[...] = rng.integers(0, 2, x.shape)
        made = native(lambda x: gt.repeat(x, times, axis=-1), x)(x)
        np.testing.assert_array_equal(made, np.repeat(x, times, axis=-1))


@pytest.mark.parametrize("size", [*range(2, 20), 32, 34, 64])
def test_max_pooling_gives_gradients_to_the_largest_elements(
    size: int, rng: np.random.Generator
) -> None:
    x = rng.permutation(2 * size * size).reshape(2, size, size).astype(np.float64)
    found = native(gt.grad(lambda x: np.sum(gt.nn.max_pool2d(x, 2) ** 2)), x)(x)
    expected = np.zeros_like(x)
    for n, i, j in np.ndindex(2, size // 2, size // 2):
        window = x[n, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        a, b = np.unravel_index(np.argmax(window), (2, 2))
        expected[n, 2 * i + a, 2 * j + b] = 2 * window.max()
    np.testing.assert_array_equal(found, expected)
