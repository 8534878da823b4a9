"""Reading parts of arrays, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import gradtape as gt
from gradtape.errors import GradtapeError, IndexingError
from random_indices import indexed_arrays, integer_arrays, weights


def transpose_of_reading(x: Any, index: Any, ct: Any) -> Any:
    expected = np.zeros_like(x)
    np.add.at(expected, index, ct)
    return expected


@given(indexed_arrays())
def test_reading_equals_numpy(case: tuple[Any, Any]) -> None:
    x, index = case
    expected = x[index]
    for got in (gt.getitem(x, index), gt.Tensor(x)[index]):
        np.testing.assert_array_equal(np.asarray(got), expected, strict=True)


@given(indexed_arrays())
def test_gradient_of_reading_is_adding(case: tuple[Any, Any]) -> None:
    x, index = case
    ct = weights(x[index].shape)
    expected = transpose_of_reading(x, index, ct)
    out, pullback = gt.vjp(lambda x: x[index], x)
    np.testing.assert_array_equal(out, x[index])
    np.testing.assert_allclose(pullback(ct)[0], expected, atol=1e-14)
    # The gradient recorded again, so that the rules run on tensors.
    second = gt.grad(lambda x: gt.sum(gt.grad(lambda x: gt.sum(x[index] ** 2 * ct))(x)))(x)
    np.testing.assert_allclose(second, 2 * expected, atol=1e-13)


@given(indexed_arrays())
def test_tangent_of_reading_is_reading(case: tuple[Any, Any]) -> None:
    x, index = case
    tangent = weights(x.shape)
    _, got = gt.jvp(lambda x: x[index], (x,), (tangent,))
    np.testing.assert_array_equal(np.asarray(got), tangent[index])


@given(indexed_arrays(), st.integers(0, 4))
def test_reading_a_batch_equals_a_loop(case: tuple[Any, Any], axis: int) -> None:
    x, index = case
    axis = min(axis, x.ndim)
    batch = np.stack([x, x * 2, x * 3], axis=axis)
    got = gt.vmap(lambda x: x[index], in_axes=axis)(batch)
    np.testing.assert_array_equal(got, [x[index], 2 * x[index], 3 * x[index]])
    ct = weights((3, *x[index].shape))
    pulled = gt.vmap(lambda x, ct: gt.vjp(lambda x: x[index], x)[1](ct)[0], in_axes=(axis, 0))
    expected = [transpose_of_reading(x, index, c) for c in ct]
    np.testing.assert_allclose(pulled(batch, ct), expected, atol=1e-14)


@given(st.data())
def test_batched_index_arrays_equal_a_loop(data: Any) -> None:
    x = weights((4, 3, 5))
    places = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True))
    items: list[Any] = [slice(None), slice(None), slice(None)]
    numbers = data.draw(integer_arrays(3, len(places)))
    batched = [data.draw(st.booleans()) for _ in places]
    batched[0] = True
    x_axis = data.draw(st.sampled_from([None, 0, 2]))
    batches = [np.stack([a, -1 - a]) if b else a for a, b in zip(numbers, batched, strict=True)]

    def read(x: Any, *arrays: Any) -> Any:
        index = list(items)
        for place, array in zip(places, arrays, strict=True):
            index[place] = array
        return gt.getitem(x, tuple(index))

    def pulled(x: Any, *arrays: Any) -> Any:
        out, pullback = gt.vjp(lambda x: read(x, *arrays), x)
        return pullback(out)[0]

    in_axes = (x_axis, *(0 if b else None for b in batched))
    xs = x if x_axis is None else np.stack([x, 2 * x], axis=x_axis)
    for function in (read, pulled):
        rows = [
            function(
                x if x_axis is None else x * (n + 1),
                *(a[n] if b else a for a, b in zip(batches, batched, strict=True)),
            )
            for n in range(2)
        ]
        got = gt.vmap(function, in_axes=in_axes)(xs, *batches)
        np.testing.assert_allclose(got, rows, atol=1e-14)


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint8, np.uint64])
def test_integer_dtypes_of_index_arrays(kind: Any) -> None:
    x, index = weights((4, 2)), np.array([3, 0, 3], kind)
    for i in (index, gt.Tensor(index)):
        np.testing.assert_array_equal(gt.Tensor(x)[i].numpy(), x[index])
        gradient = gt.grad(lambda x, i=i: gt.sum(x[i]))(x)
        np.testing.assert_array_equal(gradient, np.array([[1.0, 1], [0, 0], [0, 0], [2, 2]]))


def test_many_repeated_places() -> None:
    # Large enough for the flattened way of adding.
    x, i, j = weights((7, 5, 3)), np.arange(500) % 7 - 7, np.arange(500) % 4
    ct = weights((500, 3))
    got = gt.vjp(lambda x: x[i, j], x)[1](ct)[0]
    np.testing.assert_allclose(got, transpose_of_reading(x, (i, j), ct), atol=1e-13)
    got = gt.vjp(lambda x: x[:, i % 5], x)[1](weights((7, 500, 3)))[0]
    expected = transpose_of_reading(x, (slice(None), i % 5), weights((7, 500, 3)))
    np.testing.assert_allclose(got, expected, atol=1e-13)


def test_tensors_as_numbers_and_bounds() -> None:
    x, one = gt.Tensor(weights((4, 2))), gt.Tensor(np.array(1))
    assert x[one].shape == (2,)
    assert x[one, np.int8(0)].item() == x.numpy()[1, 0]
    view = x[one:]
    one += 2
    assert view.shape == (3, 2)
    np.testing.assert_array_equal(view.numpy(), x.numpy()[1:])


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.complex128])
def test_dtypes_of_what_is_read(dtype: Any) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    for index in (0, (0, 1), slice(1, None), [1, 0], x > 2 if dtype != np.complex128 else x == 2):
        got = gt.Tensor(x)[index]
        np.testing.assert_array_equal(got.numpy(), x[index])
        assert got.dtype == dtype


def test_sum_over_elements_is_linear_backward() -> None:
    x = gt.Tensor(np.arange(5.0)).set_requires_grad(True)
    total = x[0] ** 2
    for i in range(1, 5):
        total = total + x[i] ** 2
    total.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * np.arange(5.0))


def test_parts_and_whole_add_up() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        return gt.sum(y * y) + gt.sum(y[1:] * y[:-1]) + y[0] + gt.sum(x[::2])

    x = np.arange(1.0, 5.0)
    gradient = gt.grad(f)(x)
    expected = 8 * x + 4 * (np.r_[x[1:], 0] + np.r_[0, x[:-1]]) + [3, 0, 1, 0]
    np.testing.assert_allclose(gradient, expected)


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "match"),
    [
        (3, r"got index 3 on axis 0 of shape \(3, 2\), expected one from -3 to 2"),
        ((0, -3), r"got index -3 on axis 1 of shape \(3, 2\)"),
        (([0, 5],), "got index 5 for an axis of size 3"),
        ((slice(None), np.array([0, -3])), "got index -3 for an axis of size 2"),
        ((0, 0, 0), r"got indices for 3 axes, expected at most 2, as the shape is \(3, 2\)"),
        ((np.ones((3, 2), bool), 0), "got indices for 3 axes"),
        ((..., ...), "Ellipsis"),
        (1.0, "got an index of dtype float64, expected integers"),
        (np.array([0.0, 1.0]), "got an index of dtype float64"),
        ("a", "got an index of dtype"),
        (slice(0.5, None), "expected integers or None in a slice"),
        (slice(None, None, 0), "step that is not zero"),
        (np.ones(2, bool), r"got a mask of shape \(2,\) for axes of sizes \(3,\)"),
        (([0, 1], [0, 1, 0]), r"got index arrays of shapes \(2,\), \(3,\)"),
    ],
)
def test_bad_indices(index: Any, match: str) -> None:
    x = np.zeros((3, 2))
    tracked = gt.Tensor(x).set_requires_grad(True)
    for tensor in (x, gt.Tensor(x), tracked, gt.Tensor(x.astype(int))):
        with pytest.raises(IndexingError, match="getitem: .*" + match):
            gt.getitem(tensor, index)
    with pytest.raises(IndexingError, match=match):
        gt.setitem(x, 0.0, index)
    with pytest.raises(IndexingError, match=match):
        gt.vmap(lambda x: x[index])(np.zeros((4, 3, 2)))


def test_masks_of_a_batch_raise() -> None:
    with pytest.raises(GradtapeError, match=r"gt\.where"):
        gt.vmap(lambda x: x[x > 0])(np.ones((2, 3)))


def test_where_elements_are_not_zero() -> None:
    x = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, -1.0]])
    for tensor in (gt.Tensor(x), gt.Tensor(x).set_requires_grad(True)):
        results = [*np.nonzero(tensor), np.flatnonzero(tensor), np.argwhere(tensor)]
        expected = [*np.nonzero(x), np.flatnonzero(x), np.argwhere(x)]
        for got, array in zip(results, expected, strict=True):
            assert isinstance(got, gt.Tensor)
            np.testing.assert_array_equal(got.numpy(), array)
        np.testing.assert_array_equal(tensor[gt.nonzero(tensor)].tolist(), x[x != 0])
    with pytest.raises(GradtapeError, match="vmap"):
        gt.vmap(gt.flatnonzero)(x)
