"""What goes through elements in order, in native code: writes at places, sums so far, argmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.call import call
from gradtape.core.lowering import Scatter
from gradtape.core.op import Op
from gradtape.errors import IndexingError
from gradtape.ops.recurrence import recurrence
from jitcheck import assert_close
from test_native_indexing import native, refused

RNG = np.random.default_rng(1)
Function = Callable[..., Any]
COMPILED = gt.jit(recurrence, static_argnames=("axis", "reverse"))


def equal(function: Function, *args: Any) -> None:
    """Compiled code gives the bits of eager code, which runs on tensors."""
    with np.errstate(all="ignore"):
        expected = np.asarray(function(*map(gt.tensor, args)))
    got = native(function, *args)(*args)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


# ---- adding at places ---------------------------------------------------------------------------


def add_rows(values: Any, i: Any) -> Any:
    return gt.index_add(np.zeros((9, values.shape[1])), i, values, axis=0)


@pytest.mark.parametrize(
    ("width", "dtype"),
    [
        *((width, np.float64) for width in (1, 13, 1001)),
        *((width, np.float32) for width in (3, 64)),
        *(pytest.param(width, np.float64, marks=pytest.mark.slow) for width in (3, 64)),
        *(pytest.param(width, np.float32, marks=pytest.mark.slow) for width in (1, 13, 1001)),
    ],
)
def test_rows_are_added_in_order(width: int, dtype: Any) -> None:
    # Places repeat, and rows are no multiple of a vector: nothing is added twice or left out.
    values, i = RNG.normal(size=(300, width)).astype(dtype), RNG.integers(-9, 9, 300)
    zeros = np.zeros((9, width), dtype)
    equal(lambda v, i: gt.index_add(zeros, i, v, axis=0), values, i)
    i[-1] = 9
    refused(lambda v, i: gt.index_add(zeros, i, v, axis=0), values, i, match="got index 9")


def test_rows_are_added_by_several_threads() -> None:
    values, i = RNG.normal(size=(64, 20_004)), RNG.integers(0, 9, 64)
    (_, put) = gt.jit(add_rows).explain(values, i).kernels[:2]
    assert put.parts > 1
    equal(add_rows, values, i)


def test_sums_do_not_depend_on_what_is_fused() -> None:
    # The product is rounded before it is added, as eager code rounds it.
    x, i = RNG.normal(size=4000), RNG.integers(0, 5, 4000)
    equal(lambda x, i: gt.index_add(np.zeros(5), i, x * x, axis=0), x, i)


def test_rows_that_do_not_lie_side_by_side_are_added() -> None:
    """Axes along which places never coincide may be any of the result's, or decide on others."""
    values, positions = RNG.normal(size=(4, 37)), np.array([1, 0, 1, 2])
    sizes = (positions.shape, (37,))

    def by_columns(i: Any, x: Any, positions: Any) -> Any:
        return [i[1], positions(i[0])], x(*i)

    def by_diagonals(i: Any, x: Any, positions: Any) -> Any:
        at = positions(i[0])
        return [at, scalar.where(i[1] + at < 37, i[1] + at, i[1] + at - 37)], x(*i)

    columns, diagonals = np.zeros((37, 3)), np.zeros((3, 37))
    for row, at in enumerate(positions):
        columns[:, at] += values[row]
        diagonals[at] += np.roll(values[row], at)
    for put, expected in ((by_columns, columns), (by_diagonals, diagonals)):
        op = Op(
            "put_rows",
            evaluate=lambda xp, x, positions, expected=expected: expected,
            infer=lambda x, positions, expected=expected: Aval(expected.shape, x.dtype),
            vjps=(),
            lower=Scatter(lambda x, positions: sizes, put, adds=True),
        )
        got = native(lambda x, p, op=op: call(op, (x, p), {}), values, positions)
        np.testing.assert_array_equal(got(values, positions), expected)


def test_values_are_added_to_a_start_where_nothing_repeats() -> None:
    x = RNG.normal(size=(3, 40))
    op = Op(
        "add_columns",
        evaluate=lambda xp, x: x.T + 1.0,
        infer=lambda x: Aval((40, 3), x.dtype),
        vjps=(),
        lower=Scatter(
            lambda x: ((), x.shape),
            lambda i, x: ([i[1], i[0]], x(*i)),
            lambda i, x: scalar.constant(1.0, x.aval.dtype),
            adds=True,
        ),
    )
    got = native(lambda x: call(op, (x,), {}), x)(x)
    np.testing.assert_array_equal(got, x.T + 1.0)


SCATTERS: dict[str, Function] = {
    "embedding": lambda w, t: np.sum(np.sin(w[t]) ** 2),
    "columns": lambda w, t: np.sum(np.sin(w[:, t % 5]) * w[0, 0]),
    "pairs": lambda w, t: np.sum(w[t % 7, t] ** 3),
    "take_along_axis": lambda w, t: np.sum(np.take_along_axis(w, t[:, :5] % 7, 0) ** 2),
    "twice": lambda w, t: np.sum(w[t][1] * w[t % 2]),
    "softmax": lambda w, t: np.sum(gt.log_softmax(w, axis=1)[t % 7, t]),
}


@pytest.mark.parametrize("name", SCATTERS)
def test_gradients(name: str, thorough: bool) -> None:
    t = RNG.integers(-5, 5, (3, 6))
    grad = gt.value_and_grad(SCATTERS[name])
    # Code that checks itself is compiled for one precision: that of the other has the same checks.
    single = thorough or name in ("embedding", "pairs")
    for dtype in (np.float64, np.float32) if single else (np.float64,):
        w = RNG.normal(size=(7, 5)).astype(dtype)
        got = native(grad, w, t)(w, t)
        assert_close(got, tuple(np.asarray(v)[()] for v in grad(w, t)))
        if thorough or dtype is np.float64:
            assert_close(gt.jit(grad, debug=True)(w, t), got)


def test_scatter_add_along_an_axis() -> None:
    x, src = RNG.normal(size=(4, 6)), RNG.normal(size=(4, 3))
    index = np.array([[0, 0, 5], [1, -1, 1], [2, 2, 2], [3, 4, 3]])
    equal(lambda x, i, s: gt.scatter_add(x, i, s, axis=1), x, index, src)


# ---- writing at places --------------------------------------------------------------------------


def write(x: Any, i: Any, v: Any) -> Any:
    x = x * 1.0
    x[i] = v
    return x


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_the_last_value_remains(size: int) -> None:
    x, i, v = RNG.normal(size=50), RNG.integers(-50, 50, size), RNG.normal(size=size)
    equal(write, x, i, v)
    equal(lambda x, i: write(x, i, 2.5), x, i)
    i[size // 2] = -51
    refused(write, x, i, v, match="setitem: got index -51 for an axis of size 50")


def test_writes_of_rows_and_parts() -> None:
    x, v = RNG.normal(size=(6, 4)), RNG.normal(size=(3, 4))
    rows = np.array([1, -1, 1])
    equal(write, x, rows, v)
    equal(lambda x, i, v: write(x, (slice(None, None, 2), i), v[:, :3]), x, np.array([3, 0, 3]), v)
    equal(lambda x, i, v: write(x, i, v.astype(np.float32)), x, rows, v)
    equal(lambda x, i, v: write(x.astype(np.int32), i, 7), x, rows, v)


def test_gradients_of_writes() -> None:
    x, v, i = RNG.normal(size=8), RNG.normal(size=5), np.array([1, 3, 1, -1, 3])
    grad = gt.grad(lambda x, v: np.sum(write(x, i, v * 2.0) ** 2), argnums=(0, 1))
    assert_close(native(grad, x, v)(x, v), tuple(map(np.asarray, grad(x, v))))


def test_batches_of_writes() -> None:
    x, i, v = RNG.normal(size=(3, 8)), RNG.integers(0, 8, (3, 5)), RNG.normal(size=(3, 5))
    batched = gt.vmap(lambda x, i, v: gt.setitem(x, v, i))
    assert_close(native(batched, x, i, v)(x, i, v), np.asarray(batched(x, i, v)))


def test_writes_of_no_elements() -> None:
    x, none = RNG.normal(size=5), np.zeros(0, int)
    assert_close(gt.jit(write)(x, none, np.zeros(0)), x)
    with pytest.raises(IndexingError, match="got index 3"):
        gt.jit(write)(np.zeros(0), np.array([3]), np.ones(1))


# ---- cumulative sums and products ---------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 7, 1), (33, 2, 65), (2, 600, 300)])
@pytest.mark.parametrize("function", [np.cumsum, np.cumprod])
def test_scans(function: Function, shape: tuple[int, ...], axis: int, thorough: bool) -> None:
    others = [np.float32, np.int32, np.uint8, np.bool_]
    # Double precision, and one of the others that is another one for the next axis and function.
    turn = axis + len(others) // 2 * (function is np.cumprod)
    for dtype in (np.float64, *(others if thorough else [others[(turn + shape[0]) % 4]])):
        x = (RNG.normal(size=shape) * 2).astype(dtype)
        equal(lambda x: function(x, axis=axis), x)


def test_scans_by_several_threads() -> None:
    # The last vector of a part begins in another one, which may not be done that far.
    x = RNG.normal(size=(40, 30_001))
    (kernel,) = gt.jit(lambda x: np.cumsum(x, axis=0)).explain(x).kernels
    assert kernel.parts > 1
    expected, compiled = np.cumsum(x, axis=0), gt.jit(lambda x: np.cumsum(x, axis=0))
    for _ in range(20):
        np.testing.assert_array_equal(compiled(x), expected)
    equal(lambda x: np.cumsum(x, axis=1), x)


def test_scans_of_special_values() -> None:
    x = np.array([-0.0, 0.0, 1.0, np.inf, -np.inf, 2.0, np.nan, 3.0])
    for function in (np.cumsum, np.cumprod):
        equal(function, x)
        got, expected = gt.jit(function)(x), [-0.0, 0.0 if function is np.cumsum else -0.0]
        np.testing.assert_array_equal(np.signbit(got[:2]), np.signbit(expected))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 7, 1), (33, 2, 65), (2, 300, 100)])
def test_recurrences(shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    for dtype in (np.float64, np.float32):
        x, factor = RNG.normal(size=shape).astype(dtype), RNG.uniform(-1, 1, shape).astype(dtype)
        got = COMPILED(x, factor, axis=axis, reverse=reverse)
        assert_close(got, recurrence(x, factor, axis=axis, reverse=reverse), 64)


@pytest.mark.parametrize("way", [recurrence, COMPILED], ids=["eager", "jit"])
def test_a_recurrence_begins_without_its_factor(way: Function) -> None:
    x, factor = np.array([-0.0, 1.0, 2.0]), np.array([np.inf, 3.0, np.nan])
    got = way(x, factor, axis=0, reverse=False)
    np.testing.assert_array_equal(got, [0.0, 1.0, np.nan])
    assert np.signbit(got[0])


@pytest.mark.parametrize("way", [recurrence, COMPILED], ids=["eager", "jit"])
def test_factors_whose_product_overflows_meet_what_is_small(way: Function) -> None:
    x, factor = np.zeros(200), np.full(200, 1e30)
    x[100] = 1e-300
    factor[110:] = 0.0
    got = way(x, factor, axis=0, reverse=False)
    np.testing.assert_allclose(got[100:110], 1e-300 * 10.0 ** (30 * np.arange(10)), rtol=1e-13)
    assert not got[:100].any()
    assert not got[110:].any()


def test_scans_with_ops_around_them() -> None:
    x = RNG.normal(size=(5, 17))

    def function(x: Any) -> Any:
        return np.sum(np.cumsum(np.tanh(x), axis=1) * x, axis=0) + np.cumprod(x.T, axis=0)[:, 0]

    assert_close(native(function, x)(x), np.asarray(function(x)))
    grad = gt.grad(lambda x: np.sum(function(x) ** 2))
    assert_close(native(grad, x)(x), np.asarray(grad(x)), 1000)
    assert_close(gt.jit(gt.vmap(np.cumsum))(x), np.cumsum(x, axis=1))
    assert_close(gt.jit(np.cumsum)(x), np.cumsum(x))
    assert_close(gt.jit(np.cumsum)(x[:0]), np.cumsum(x[:0]))


def test_compile_time_of_gradients_grows_with_the_logarithm() -> None:
    # Parts that are put side by side again and again are not computed again at each place.
    grad = gt.grad(lambda x: np.sum(np.cumprod(x)))
    sizes = [len(gt.jit(grad).explain(np.ones(n)).ir) for n in (8, 64, 512)]
    assert sizes[2] < 4 * sizes[0]


# ---- where the extreme is -----------------------------------------------------------------------

ROWS = np.array(
    [
        [1.0, 3.0, 3.0, -1.0, -1.0],
        [0.0, -0.0, 0.0, -0.0, 0.0],
        [1.0, np.nan, np.inf, np.nan, -np.inf],
        [-np.inf, -np.inf, -np.inf, -np.inf, -np.inf],
        [np.nan] * 5,
        [5.0, 4.0, 3.0, 2.0, np.inf],
    ]
)


@pytest.mark.parametrize("function", [np.argmax, np.argmin])
def test_places_of_extremes(function: Function) -> None:
    whole = RNG.integers(-3, 3, (4, 9))
    arrays = (ROWS, ROWS.astype(np.float32), whole, whole.astype(np.uint8), whole > 0, whole[:, :1])
    for x in arrays:
        for axis in (0, 1, None):
            equal(lambda x, axis=axis: function(x, axis=axis), x)
        equal(lambda x: function(x, axis=1, keepdims=True), x)
    for size in (1, 2, 17, 1000, 200_003):
        equal(lambda x: function(x), RNG.integers(0, 1000, size).astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_extreme_is_found_where_its_element_is_computed(dtype: Any) -> None:
    # Rounded in another way for the comparison, no element would be equal to the largest one.
    a, b, c = (RNG.normal(size=(200, 37)).astype(dtype) for _ in range(3))

    def function(a: Any) -> Any:
        product = a * b
        total = product + c
        others = np.sum(np.exp(product**3) * total, axis=1), np.sum(product, axis=1)
        return np.argmax(total, axis=1), np.argmin(total, axis=1), *others

    largest, smallest, *_ = native(function, a)(a)
    np.testing.assert_array_equal(largest, np.argmax(a * b + c, axis=1))
    np.testing.assert_array_equal(smallest, np.argmin(a * b + c, axis=1))


def test_predictions() -> None:
    def accuracy(w: Any, x: Any, labels: Any) -> Any:
        return np.mean(np.argmax(np.tanh(x @ w), axis=1) == labels)

    w, x, labels = RNG.normal(size=(4, 3)), RNG.normal(size=(20, 4)), RNG.integers(0, 3, 20)
    assert_close(native(accuracy, w, x, labels)(w, x, labels), accuracy(w, x, labels))


# ---- parts --------------------------------------------------------------------------------------


def test_parts_are_views_of_what_is_computed() -> None:
    x = RNG.normal(size=(4, 12))

    def gates(x: Any) -> Any:
        a, b, c = np.split(x * 2.0, 3, axis=1)
        return np.tanh(a) * b + c, np.array_split(x, 3)[2]

    assert_close(native(gates, x)(x), gates(x))
    assert len(gt.jit(gates).explain(x).kernels) == 2
    grad = gt.grad(lambda x: np.sum(gates(x)[0] ** 2))
    assert_close(native(grad, x)(x), np.asarray(grad(x)))
    assert_close(
        gt.jit(lambda x: np.split(x, [0, 3, 3], axis=0))(x), np.split(x, [0, 3, 3], axis=0)
    )


@pytest.mark.parametrize("way", [lambda f: f, gt.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gradients_of_products_that_overflow_on_the_way(way: Function, dtype: Any) -> None:
    # What comes after the small factors is too large by itself; all products so far are not.
    exponents = np.r_[np.full(60, -3), np.full(115, 3)] if dtype == np.float64 else [-1, 1, 1] * 30
    x = 10.0 ** np.sort(np.asarray(exponents, dtype))
    got = way(gt.grad(lambda x: gt.cumprod(x)[-1]))(x)
    np.testing.assert_allclose(got, np.prod(x) / x, rtol=200 * np.finfo(dtype).eps)
