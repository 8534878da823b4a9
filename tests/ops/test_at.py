"""`x.at[index].set(v)` and its kin: values of JAX and NumPy, derivatives to order two."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import gradtape as gt
from gradtape.errors import (
    ArgumentError,
    ConversionError,
    DTypeError,
    IndexingError,
    ShapeError,
    UnsupportedError,
)
from gradtape.testing import check_grads
from random_indices import indexed_arrays, weights

X = np.array([1.0, -2.0, 3.0, 4.0])
PLACES = np.array([0, 2, 0])
V = np.array([2.0, 3.0, 5.0])
# What JAX 0.10 gives for x.at[places].name(v).
OF_JAX = {
    "set": [5.0, -2.0, 3.0, 4.0],
    "add": [8.0, -2.0, 6.0, 4.0],
    "subtract": [-6.0, -2.0, 0.0, 4.0],
    "multiply": [10.0, -2.0, 9.0, 4.0],
    "divide": [0.1, -2.0, 1.0, 4.0],
    "power": [1.0, -2.0, 27.0, 4.0],
    "min": [1.0, -2.0, 3.0, 4.0],
    "max": [5.0, -2.0, 3.0, 4.0],
}
NAMES = list(OF_JAX)
UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "min": np.minimum,
    "max": np.maximum,
}
UP = np.arange(1.0, 5.0)


def update(name: str, x: Any, index: Any, values: Any, **options: Any) -> Any:
    return getattr(gt.at(x)[index], name)(values, **options)


# ---- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_values_of_jax(name: str) -> None:
    for index in (PLACES, PLACES.tolist(), gt.tensor(PLACES), PLACES - 4):
        got = update(name, X, index, V)
        assert type(got) is np.ndarray
        np.testing.assert_allclose(got, OF_JAX[name], rtol=1e-15)
    compiled = gt.jit(lambda x, index, v: update(name, x, index, v))
    np.testing.assert_allclose(compiled(X, PLACES, V), OF_JAX[name], rtol=1e-15)
    tensor = getattr(gt.tensor(X).at[PLACES], name)(gt.tensor(V))
    assert isinstance(tensor, gt.Tensor)
    np.testing.assert_allclose(tensor.numpy(), OF_JAX[name], rtol=1e-15)


@st.composite
def updates(draw: Any) -> tuple[Any, Any, Any]:
    """An array, an index, and values that broadcast to what is indexed."""
    x, index = draw(indexed_arrays())
    part = x[index].shape
    start = draw(st.integers(0, len(part)))
    shape = tuple(draw(st.sampled_from([1, n])) for n in part[start:])
    return x, index, weights(shape)


@given(updates())
def test_any_index_as_numpys_ufuncs(case: tuple[Any, Any, Any]) -> None:
    x, index, values = case
    before = x.copy()
    assigned = x.copy()
    assigned[index] = values
    np.testing.assert_array_equal(update("set", x, index, values), assigned, strict=True)
    for name, ufunc in UFUNCS.items():
        expected = x.copy()
        ufunc.at(expected, index, values)
        for given_x in (x, gt.tensor(x)):
            got = np.asarray(update(name, given_x, index, values))
            np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-13, strict=True)
    got = gt.at(x)[index].get()
    np.testing.assert_array_equal(got, x[index])
    np.testing.assert_array_equal(x, before)
    if np.size(got):
        assert not np.shares_memory(got, x)


@given(updates())
def test_applied_as_often_as_an_index_occurs(case: tuple[Any, Any, Any]) -> None:
    x, index, _ = case
    expected = x.copy()
    np.square.at(expected, index)
    np.testing.assert_allclose(gt.at(x)[index].apply(np.square), expected, rtol=1e-13)


def test_nothing_shares_memory_with_the_array() -> None:
    x = gt.tensor(X)
    for made in (x.at[1:3].set(x[1:3]), x.at[1:3].get(), x.at[...].add(0.0), x.at[...].get()):
        made[...] = 9.0
    np.testing.assert_array_equal(x.numpy(), X)
    part = x[1:]
    np.testing.assert_array_equal(part.at[0].set(7.0).numpy(), [7.0, 3.0, 4.0])
    np.testing.assert_array_equal(x.numpy(), X)


def test_other_dtypes() -> None:
    counts = np.arange(4, dtype=np.uint8)
    np.testing.assert_array_equal(
        gt.at(counts)[[1, 1]].subtract(3), np.array([0, 251, 2, 3], np.uint8), strict=True
    )
    np.testing.assert_array_equal(
        gt.at(counts)[[3, 3, 2]].multiply(np.array([2, 3, 4], np.uint8)), [0, 1, 8, 18]
    )
    np.testing.assert_array_equal(gt.at(np.arange(4))[[3, 3]].power(2), [0, 1, 2, 81])
    single = gt.at(X.astype(np.float32))[[0, 0]].multiply(V[:2])
    np.testing.assert_array_equal(single, np.array([6, -2, 3, 4], np.float32), strict=True)
    z = gt.at(X + 1j)[[0, 0]].multiply(np.array([1j, 1j]))
    np.testing.assert_array_equal(z, [-1 - 1j, -2 + 1j, 3 + 1j, 4 + 1j])


# ---- out of bounds ------------------------------------------------------------------------------

FAR = np.array([0, 7, -1, -9])
W = np.array([10.0, 20.0, 30.0, 40.0])
DROPPED = {"set": [10, -2, 3, 30], "add": [11, -2, 3, 34], "multiply": [10, -2, 3, 120]}
DROPPED |= {"max": [10, -2, 3, 30], "divide": [0.1, -2, 3, 4 / 30]}
CLIPPED = {"set": [40, -2, 3, 30], "add": [51, -2, 3, 54], "multiply": [400, -2, 3, 2400]}
CLIPPED |= {"max": [40, -2, 3, 30], "divide": [1 / 400, -2, 3, 4 / 600]}


@pytest.mark.parametrize(
    ("mode", "expected"), [("drop", DROPPED), ("fill", DROPPED), ("clip", CLIPPED)]
)
def test_modes_of_jax(mode: str, expected: dict[str, Any]) -> None:
    for name, values in expected.items():
        np.testing.assert_allclose(update(name, X, FAR, W, mode=mode), values, rtol=1e-15)
        compiled = gt.jit(lambda x, i, w, name=name: update(name, x, i, w, mode=mode))
        np.testing.assert_allclose(compiled(X, FAR, W), values, rtol=1e-15)


def test_reading_out_of_bounds() -> None:
    nan = np.nan
    np.testing.assert_array_equal(gt.at(X)[FAR].get(mode="fill"), [1.0, nan, 4.0, nan])
    np.testing.assert_array_equal(gt.at(X)[FAR].get(mode="clip"), [1.0, 4.0, 4.0, 1.0])
    filled = gt.at(X)[FAR].get(mode="fill", fill_value=0.5)
    np.testing.assert_array_equal(filled, [1.0, 0.5, 4.0, 0.5])
    assert gt.at(X)[9].get(mode="clip") == 4.0
    assert np.isnan(gt.at(X)[-9].get(mode="fill"))
    least = np.iinfo(np.int64).min
    np.testing.assert_array_equal(gt.at(np.arange(4))[FAR].get(mode="fill"), [0, least, 3, least])
    small = gt.at(np.arange(4, dtype=np.uint8))[FAR].get(mode="fill")
    np.testing.assert_array_equal(small, np.array([0, 255, 3, 255], np.uint8), strict=True)
    truths = gt.at(np.arange(4) > 1)[FAR].get(mode="fill")
    np.testing.assert_array_equal(truths, [False, True, True, True])


def test_modes_along_several_axes() -> None:
    m = np.arange(12.0).reshape(3, 4)
    rows, columns = np.array([0, 5, 2]), np.array([1, 1, -8])
    expected = m.copy()
    expected[0, 1] = 99.0
    got = gt.at(m)[rows, columns].set(99.0, mode="drop")
    np.testing.assert_array_equal(got, expected, strict=True)
    assert got.flags.c_contiguous
    expected = m.copy()
    np.add.at(expected, ([0, 2, 2], slice(1, 3)), 100.0)
    np.testing.assert_array_equal(gt.at(m)[rows, 1:3].add(100.0, mode="clip"), expected)
    read = gt.at(m)[rows, columns].get(mode="fill", fill_value=-1.0)
    np.testing.assert_array_equal(read, [1.0, -1.0, -1.0])
    read = gt.at(m)[rows, None, 1:3].get(mode="fill", fill_value=-1.0)
    np.testing.assert_array_equal(read[:, 0], [[1.0, 2.0], [-1.0, -1.0], [9.0, 10.0]])
    np.testing.assert_array_equal(gt.at(m)[..., columns].get(mode="clip"), m[:, [1, 1, 0]])
    np.testing.assert_array_equal(gt.at(m)[7].set(5.0, mode="drop"), m)
    np.testing.assert_array_equal(gt.at(m)[7, m[0] > 1.0].set(5.0, mode="drop"), m)
    mask = m > 5.0
    np.testing.assert_array_equal(gt.at(m)[mask].set(0.0, mode="drop"), np.where(mask, 0.0, m))
    np.testing.assert_array_equal(gt.at(np.zeros((0, 2)))[3].get(mode="fill"), [np.nan, np.nan])
    wide = gt.at(np.arange(200))[np.array([100, -100, 127], np.int8)].get(mode="fill")
    np.testing.assert_array_equal(wide, [100, 100, 127])


# ---- derivatives --------------------------------------------------------------------------------

POSITIVE = np.array([1.5, 2.2, 3.3, 4.0])


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_at_repeated_places(name: str) -> None:
    check_grads(lambda x, v: update(name, x, PLACES, v) ** 2, (POSITIVE, V))
    check_grads(gt.jit(lambda x, v: update(name, x, PLACES, v)), (POSITIVE, V), order=1)
    bends = gt.hessian(lambda x, v: np.sum(UP * update(name, x, PLACES, v)), (0, 1))
    for compiled, eager in zip(
        gt.tree.leaves(gt.jit(bends)(POSITIVE, V)), gt.tree.leaves(bends(POSITIVE, V)), strict=True
    ):
        np.testing.assert_allclose(compiled, eager, rtol=1e-12, atol=1e-12)
    check_grads(lambda x, v: update(name, x, FAR[:3], v, mode="drop"), (POSITIVE, V))
    check_grads(lambda x, v: update(name, x, FAR[:3], v, mode="clip"), (POSITIVE, V))
    check_grads(lambda x, v: update(name, x, slice(0, 3), v), (POSITIVE, V))


def product(x: Any, v: Any) -> Any:
    return gt.at(x)[[0, 0]].multiply(v)


compiled_product = gt.jit(product)  # once for all zeros, as are its derivatives


@pytest.mark.parametrize("zeros", list(itertools.product((0.0, 1.5), repeat=3)))
def test_products_at_zeros(zeros: tuple[float, ...]) -> None:
    # d/dx, d/dv and all second derivatives of x·v₀·v₁ are those of a product, also where it is 0.
    x, v = np.array([zeros[0], 7.0]), np.array(zeros[1:])
    check_grads(product, (x, v))
    check_grads(compiled_product, (x, v))
    curvature = gt.hessian(lambda v: x[0] * gt.at(np.ones(2))[[0, 0]].multiply(v)[0])(v)
    np.testing.assert_allclose(curvature, [[0.0, x[0]], [x[0], 0.0]], rtol=1e-14)


def test_ties_share_the_gradient_as_in_jax() -> None:
    x, v = np.array([2.0, -2.0, 3.0, 4.0]), np.array([2.0, 3.0, 2.0])
    for name in ("min", "max"):
        dx, dv = gt.grad(lambda x, v: np.sum(UP * update(name, x, PLACES, v)), (0, 1))(x, v)  # noqa: B023
        np.testing.assert_allclose(dx, [1 / 3, 2.0, 1.5, 4.0])
        np.testing.assert_allclose(dv, [1 / 3, 1.5, 1 / 3])


def test_apply_is_differentiated() -> None:
    check_grads(lambda x: gt.at(x)[PLACES].apply(np.square), (POSITIVE,))
    slope = gt.grad(lambda x: np.sum(UP * x.at[PLACES].apply(np.square)))(X)
    np.testing.assert_allclose(slope, UP * [4.0, 1.0, 6.0, 1.0])


def test_what_is_not_reached_has_an_exact_slope() -> None:
    x = np.array([0.0, 4.0, 0.0])
    for mask in (x > 0, gt.tensor(x > 0)):
        slope = gt.grad(lambda x: np.sum(x.at[mask].power(0.5)))(x)  # noqa: B023
        np.testing.assert_array_equal(slope, [1.0, 0.25, 1.0])
        slope = gt.grad(lambda x: np.sum(x.at[mask].apply(np.sqrt)))(x)  # noqa: B023
        np.testing.assert_array_equal(slope, [1.0, 0.25, 1.0])
    slope = gt.grad(lambda x: np.sum(x.at[[1, 1]].power([0.5, 2.0])))(x)
    np.testing.assert_array_equal(slope, [1.0, 1.0, 1.0])


# ---- transforms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_batches(name: str, rng: np.random.Generator) -> None:
    xs, vs = rng.uniform(0.5, 2.0, (5, 4)), rng.uniform(0.5, 2.0, (5, 3))
    places = rng.integers(-4, 4, (5, 3))
    for axes in itertools.product((0, None), repeat=3):
        if axes == (None, None, None):
            continue
        given_arrays = [
            array if axis == 0 else array[0]
            for array, axis in zip((xs, places, vs), axes, strict=True)
        ]

        def one(x: Any, index: Any, v: Any) -> Any:
            return update(name, x, index, v)

        expected = [
            one(*(a[k] if axis == 0 else a for a, axis in zip(given_arrays, axes, strict=True)))
            for k in range(5)
        ]
        got = gt.vmap(one, in_axes=axes)(*given_arrays)
        np.testing.assert_allclose(got, expected, rtol=1e-13)
    slopes = gt.jit(gt.vmap(gt.grad(lambda x, i, v: np.sum(UP * update(name, x, i, v)), (0, 2))))
    one_slope = gt.grad(lambda x, i, v: np.sum(UP * update(name, x, i, v)), (0, 2))
    for got, expected in zip(
        slopes(xs, places, vs), zip(*map(one_slope, xs, places, vs), strict=True), strict=True
    ):
        np.testing.assert_allclose(got, np.stack(expected), rtol=1e-12)


def test_masks_known_only_when_the_code_runs() -> None:
    mask = np.array([True, False, True, False])
    expected = np.where(mask, X * 2.0, X)
    double = gt.jit(lambda x, mask: gt.at(x)[mask].multiply(2.0))
    np.testing.assert_array_equal(double(X, mask), expected)
    np.testing.assert_array_equal(double(X, ~mask), np.where(~mask, X * 2.0, X))
    root = gt.jit(gt.grad(lambda x, mask: np.sum(x.at[mask].apply(np.sqrt))))
    np.testing.assert_array_equal(root(np.array([4.0, 0.0, 0.0, 1.0]), ~mask * mask), np.ones(4))
    batch = gt.vmap(lambda x, mask: x.at[mask].set(0.0))(np.stack([X, X]), np.stack([mask, ~mask]))
    np.testing.assert_array_equal(batch, [np.where(mask, 0.0, X), np.where(mask, X, 0.0)])
    with pytest.raises(ConversionError):
        gt.jit(lambda x, mask: gt.at(x)[mask].add(np.array([1.0, 2.0])))(X, mask)


def test_indices_from_outside_are_read_at_each_call() -> None:
    places = np.array([0, 0, 1])
    compiled = gt.jit(lambda x: x.at[places].multiply(2.0))
    np.testing.assert_array_equal(compiled(np.ones(3)), [4.0, 2.0, 1.0])
    places[...] = [2, 2, 2]
    np.testing.assert_array_equal(compiled(np.ones(3)), [1.0, 1.0, 8.0])


def test_a_loop() -> None:
    def step(i: Any, x: Any) -> Any:
        return x.at[i].set(x[i - 1] + x[i - 2])

    got = gt.jit(lambda x: gt.fori_loop(2, 8, step, x))(gt.at(np.zeros(8))[1].set(1.0))
    np.testing.assert_array_equal(got, [0, 1, 1, 2, 3, 5, 8, 13])


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: gt.at(X)[9].set(1.0), IndexingError, "index 9 on axis 0"),
        (lambda: gt.at(X)[[0, 9]].add(1.0), IndexingError, r"at\[...\].add: got index 9"),
        (lambda: gt.at(X)[0, 0].add(1.0), IndexingError, "indices for 2 axes"),
        (lambda: gt.at(X)[1.5].add(1.0), IndexingError, "integers"),
        (lambda: gt.at(X)[PLACES].add(np.ones(2)), ShapeError, r"at\[...\].add: got a value of"),
        (lambda: gt.at(X)[:2].max(np.ones(3)), ShapeError, r"at\[...\].max: got a value of shape"),
        (lambda: gt.at(np.arange(3))[0].add(0.5), DTypeError, r"at\[...\].add: got a value of"),
        (lambda: gt.at(np.arange(3))[0].divide(2), DTypeError, r"use x.astype\(float\)"),
        (lambda: gt.at(X + 1j)[0].max(1.0), DTypeError, "real"),
        (lambda: gt.at(X)[0].set(1.0, mode="wrap"), ArgumentError, "index % n"),
        (lambda: gt.at(X)[0].get(mode="zzz"), ArgumentError, 'expected "promise_in_bounds"'),
        (lambda: gt.at(X)[0].get(fill_value=0.0), ArgumentError, 'mode="fill"'),
        (lambda: gt.at(X)[0].set(0.0, out_sharding=1), ArgumentError, "got out_sharding="),
        (lambda: gt.at(np.zeros(0))[0].set(0.0, mode="clip"), IndexingError, "size 0"),
        (
            lambda: gt.jit(lambda x, i: x.at[i].apply(np.square))(X, PLACES),
            UnsupportedError,
            "unique_indices=True",
        ),
    ],
)
def test_bad_calls(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_hints_are_taken() -> None:
    hints = {"indices_are_sorted": True, "unique_indices": True}
    for name in NAMES:
        got = update(name, X, [0, 2], V[:2], mode="promise_in_bounds", **hints)
        np.testing.assert_array_equal(got, update(name, X, [0, 2], V[:2]))
    squared = gt.jit(lambda x, i: x.at[i].apply(np.square, unique_indices=True))
    np.testing.assert_array_equal(squared(X, np.array([1, 3])), [1.0, 4.0, 3.0, 16.0])
    assert "to be indexed" in repr(gt.at(X))
