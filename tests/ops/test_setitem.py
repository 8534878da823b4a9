"""Writing parts of arrays, also through views, against NumPy on random indices."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import gradtape as gt
from gradtape.errors import DTypeError, GradtapeError, ShapeError
from random_indices import indexed_arrays, weights

# ---- writing ------------------------------------------------------------------------------------


@st.composite
def writings(draw: Any) -> tuple[Any, Any, Any]:
    """An array, an index, and a value that broadcasts to what is indexed."""
    x, index = draw(indexed_arrays())
    part = x[index].shape
    start = draw(st.integers(0, len(part)))
    shape = tuple(draw(st.sampled_from([1, n])) for n in part[start:])
    return x, index, weights(shape)


@given(writings())
def test_writing_equals_numpy(case: tuple[Any, Any, Any]) -> None:
    x, index, value = case
    expected = x.copy()
    expected[index] = value
    before = x.copy()
    tensor = gt.Tensor(x)
    tensor[index] = value
    for got in (gt.setitem(x, value, index), tensor):
        np.testing.assert_array_equal(np.asarray(got), expected, strict=True)
    np.testing.assert_array_equal(x, before)


def jacobians_of_writing(x: Any, value: Any, index: Any) -> tuple[Any, Any]:
    """Of a function that is linear in both, row by row, by NumPy alone."""

    def write(x: Any, value: Any) -> Any:
        out = x.copy()
        out[index] = value
        return out.ravel()

    zero = np.zeros_like(value)
    by_x = [write(e.reshape(x.shape), zero) for e in np.eye(x.size)]
    by_value = [write(np.zeros_like(x), e.reshape(value.shape)) for e in np.eye(value.size)]
    return np.reshape(by_x, (x.size, x.size)), np.reshape(by_value, (value.size, x.size))


@given(writings())
def test_derivatives_of_writing(case: tuple[Any, Any, Any]) -> None:
    x, index, value = case
    by_x, by_value = jacobians_of_writing(x, value, index)
    dx, dvalue, ct = weights(x.shape, 1), weights(value.shape, 2), weights(x.shape, 3)

    def write(x: Any, value: Any) -> Any:
        return gt.setitem(x, value, index)

    pulled = gt.vjp(write, x, value)[1](ct)
    np.testing.assert_allclose(pulled[0].ravel(), by_x @ ct.ravel(), atol=1e-14)
    np.testing.assert_allclose(pulled[1].ravel(), by_value @ ct.ravel(), atol=1e-14)
    np.testing.assert_array_equal(gt.vjp(lambda x: write(x, value), x)[1](ct)[0], pulled[0])
    np.testing.assert_array_equal(gt.vjp(lambda v: write(x, v), value)[1](ct)[0], pulled[1])
    pushed = [
        gt.jvp(write, (x, value), (dx, dvalue))[1],
        gt.jvp(lambda x: write(x, value), (x,), (dx,))[1],
        gt.jvp(lambda v: write(x, v), (value,), (dvalue,))[1],
    ]
    parts = dx.ravel() @ by_x, dvalue.ravel() @ by_value
    for got, expected in zip(pushed, (parts[0] + parts[1], *parts), strict=True):
        np.testing.assert_allclose(np.ravel(got), expected, atol=1e-14)


@given(writings(), st.sampled_from([(0, None), (None, 0), (0, 0), (-1, 0), (0, -1)]))
def test_writing_in_a_batch_equals_a_loop(case: tuple[Any, Any, Any], axes: Any) -> None:
    x, index, value = case

    def write(x: Any, value: Any) -> Any:
        return gt.setitem(x, value, index)

    def pulled(x: Any, value: Any) -> Any:
        out, pullback = gt.vjp(write, x, value)
        return pullback(out)

    batches = [
        array if axis is None else np.stack([array, 2 * array], axis)
        for array, axis in zip((x, value), axes, strict=True)
    ]
    rows = [
        [array if axis is None else array * n for array, axis in zip((x, value), axes, strict=True)]
        for n in (1, 2)
    ]
    expected = [write(*row) for row in rows]
    np.testing.assert_array_equal(gt.vmap(write, in_axes=axes)(*batches), expected)
    got = gt.vmap(pulled, in_axes=axes)(*batches)
    for i in range(2):
        np.testing.assert_allclose(got[i], [pulled(*row)[i] for row in rows], atol=1e-13)


def test_writing_at_batched_places_equals_a_loop() -> None:
    x, value = weights((4, 3)), weights((3,))
    places = np.array([[0, 0, 3], [-1, 2, 1], [1, 1, 1]])

    def written(x: Any, value: Any, i: Any) -> Any:
        return (gt.setitem(x, value, i),)

    def pulled(x: Any, value: Any, i: Any) -> Any:
        out, pullback = gt.vjp(lambda x, v: gt.setitem(x, v, i), x, value)
        return pullback(out)

    for function in (written, pulled):
        got = gt.vmap(function, in_axes=(None, None, 0))(x, value, places)
        rows = [function(x, value, i) for i in places]
        for i, one in enumerate(got):
            np.testing.assert_allclose(one, [row[i] for row in rows])


def test_the_last_of_repeated_writes_remains() -> None:
    x, value = np.zeros(3), np.array([1.0, 2.0, 3.0, 4.0])
    index = np.array([1, 0, 1, -2])
    out, pullback = gt.vjp(lambda x, v: gt.setitem(x, v, index), x, value)
    np.testing.assert_array_equal(out, [2.0, 4.0, 0.0])
    by_x, by_value = pullback(np.array([5.0, 6.0, 7.0]))
    np.testing.assert_array_equal(by_x, [0.0, 0.0, 7.0])
    np.testing.assert_array_equal(by_value, [0.0, 5.0, 0.0, 6.0])


def test_infinite_cotangents_stay_with_the_writes_that_remain() -> None:
    _, pullback = gt.vjp(lambda v: gt.setitem(np.zeros(2), v, [0, 0]), np.ones(2))
    np.testing.assert_array_equal(pullback(np.array([np.inf, np.nan]))[0], [0.0, np.inf])


def test_a_buffer_filled_element_by_element() -> None:
    def f(x: Any) -> Any:
        out = gt.Tensor(np.zeros(3))
        for i in range(3):
            out[i] = x[i] ** 2 * (out[i - 1] + 1 if i else 1)
        return gt.sum(out)

    x = np.array([1.0, 2.0, 3.0])
    a, b, c = x**2
    expected = 2 * x * [1 + b + b * c, (1 + a) * (1 + c), 1 + b + a * b]
    np.testing.assert_allclose(gt.grad(f)(x), expected)
    np.testing.assert_allclose(gt.jacfwd(f)(x), expected)
    batch = np.stack([x, 2 * x])
    np.testing.assert_allclose(gt.vmap(gt.grad(f))(batch), [gt.grad(f)(row) for row in batch])
    np.testing.assert_allclose(gt.hessian(f)(x), gt.jacfwd(gt.grad(f))(x))


def test_the_dtype_is_kept() -> None:
    x = gt.Tensor(np.zeros(3, np.float32))
    x[0] = np.float64(1.5)
    x[1] = 2
    x[[2]] = gt.Tensor(np.array([3]))
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x.numpy(), np.array([1.5, 2, 3], np.float32))
    numbers = gt.Tensor(np.zeros(3, np.int64))
    numbers[0] = 2
    numbers[1] = True
    np.testing.assert_array_equal(numbers.numpy(), [2, 1, 0])
    for value in (1.5, np.array(1.5), 1j):
        with pytest.raises(DTypeError, match="setitem: got a value of dtype"):
            numbers[0] = value
    with pytest.raises(DTypeError, match="expected float32"):
        x[0] = np.array(1j)
    gradient = gt.grad(lambda v: gt.sum(gt.setitem(np.zeros(2, np.float32), v, 0)))(np.float64(2))
    assert gradient == 1.0
    assert gradient.dtype == np.float64


def test_values_that_do_not_fit() -> None:
    x = gt.Tensor(np.zeros((3, 2)))
    for index in (slice(1, None), [1, 2]):
        for shape in ((3,), (2, 2, 2), (4, 2)):
            with pytest.raises(ShapeError, match="setitem: got a value of shape"):
                x[index] = np.ones(shape)
        x[index] = np.ones((1, 1, 2, 2))


# ---- views --------------------------------------------------------------------------------------


def leaf(*shape: int) -> Any:
    return gt.Tensor(np.arange(np.prod(shape, dtype=float)).reshape(shape)).set_requires_grad(True)


@pytest.mark.parametrize("tracked", [False, True])
def test_writing_through_a_view_writes_the_base(tracked: bool) -> None:
    x = leaf(3, 2) * 0.0 if tracked else gt.Tensor(np.zeros((3, 2)))
    view = x[1:]
    view[0] = 5.0
    view[:, 1] += 2.0
    expected = np.array([[0.0, 0.0], [5.0, 7.0], [0.0, 2.0]])
    np.testing.assert_array_equal(x.detach().numpy(), expected)
    np.testing.assert_array_equal(view.detach().numpy(), expected[1:])


def test_a_view_reads_what_the_base_holds_now() -> None:
    x = gt.Tensor(np.arange(4.0))
    view, copy, number = x[1:3], x[[1, 2]], x[1]
    x[1] = 10.0
    x *= 2.0
    assert view.tolist() == [20.0, 4.0]
    assert copy.tolist() == [1.0, 2.0]
    assert number.item() == 1.0
    assert gt.sum(view).item() == 24.0


def test_views_of_views() -> None:
    x = gt.Tensor(np.arange(12.0).reshape(3, 4))
    inner = x[1:][:, ::2][0]
    inner[1] = -1.0
    assert x.tolist()[1] == [4.0, 5.0, -1.0, 7.0]
    x[...] = 3.0
    assert inner.tolist() == [3.0, 3.0]
    inner += 1.0
    assert x.tolist()[1] == [4.0, 3.0, 4.0, 3.0]


def test_gradients_through_views() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        view = y[1:]
        view *= x[:-1]
        inner = view[1:]
        inner[0] = inner[0] ** 2
        return (y * y).sum()

    def in_numpy(x: Any) -> Any:
        y = x.copy()
        y[1:] *= x[:-1]
        y[2] = y[2] ** 2
        return np.sum(y * y)

    x = np.array([1.5, -0.5, 2.0, 0.5])
    assert gt.value_and_grad(f)(x)[0] == in_numpy(x)
    step = 6e-6 * np.eye(4)
    expected = [(in_numpy(x + e) - in_numpy(x - e)) / 1.2e-5 for e in step]
    np.testing.assert_allclose(gt.grad(f)(x), expected, rtol=1e-7)
    np.testing.assert_allclose(gt.jacfwd(f)(x), gt.grad(f)(x), rtol=1e-13)
    np.testing.assert_allclose(gt.hessian(f)(x), gt.jacfwd(gt.jacfwd(f))(x), rtol=1e-12)
    batch = np.stack([x, x + 1])
    np.testing.assert_allclose(gt.vmap(gt.grad(f))(batch), [gt.grad(f)(row) for row in batch])


def test_augmented_assignment_to_a_part_is_recorded_once() -> None:
    x = leaf(3)
    with gt.GradientContext() as context:
        y = x * 1.0
        before = len(context.tape)
        y[1:] += 1.0
        assert len(context.tape) - before == 3  # read, add, write
        gt.compute_gradients(gt.sum(y * y))
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 4.0, 6.0])


def test_iterating_and_unpacking() -> None:
    x = gt.Tensor(np.zeros((3, 2)))
    for i, row in enumerate(x):
        row += i
    assert x.tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    a, b = gt.Tensor(np.array([1.0, 2.0]))
    assert (a.item(), b.item()) == (1.0, 2.0)
    gradient = gt.grad(lambda x: sum(v * w for v, w in itertools.pairwise(x)))(np.arange(4.0))
    np.testing.assert_array_equal(gradient, [1.0, 2.0, 4.0, 2.0])


def test_a_leaf_is_written_under_no_grad_only() -> None:
    x = leaf(3)
    view = x[1:]
    with pytest.raises(GradtapeError, match="leaf"):
        x[0] = 1.0
    with pytest.raises(GradtapeError, match="leaf"):
        view[0] = 1.0
    with gt.no_grad():
        x[0] = 7.0
        x[1:] += 1.0
    assert x.is_leaf
    assert x.requires_grad
    assert x.tolist() == [7.0, 2.0, 3.0]
