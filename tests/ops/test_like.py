"""Arrays made after the form of others, and questions about the form."""

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, UnsupportedError

X = np.arange(6.0).reshape(2, 3)
FUNCTIONS = [
    (gt.zeros_like, np.zeros_like, ()),
    (gt.ones_like, np.ones_like, ()),
    (gt.full_like, np.full_like, (2.5,)),
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"dtype": np.int32},
    {"shape": 4},
    {"shape": (2, 2), "dtype": np.float32},
    {"order": "F", "subok": False},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("function", "ref", "more"), FUNCTIONS)
def test_filled_like(function, ref, more, options):
    expected = ref(X, *more, **options)
    got = function(X, *more, **options)
    assert type(got) is np.ndarray
    tensor = gt.tensor(X, requires_grad=True)
    for made in (got, function(tensor, *more, **options), ref(tensor, *more, **options)):
        np.testing.assert_array_equal(np.asarray(made), expected, strict=True)
    assert isinstance(made, gt.Tensor)
    assert not made.requires_grad


def test_empty_like():
    made = np.empty_like(gt.tensor(X), dtype=np.float32)
    assert isinstance(made, gt.Tensor)
    assert (made.shape, made.dtype) == ((2, 3), np.float32)


def test_numbers_and_lists():
    np.testing.assert_array_equal(gt.zeros_like([1.0, 2.0]), np.zeros(2))
    assert gt.ones_like(3).shape == ()


def test_unknown_option():
    with pytest.raises(UnsupportedError, match="zeros_like: got like="):
        gt.zeros_like(X, like=X)
    with pytest.raises(ArgumentError, match="zeros_like: got device 'cuda'"):
        gt.zeros_like(X, device="cuda")


def test_recorded_fill_value():
    def function(v):
        return np.sum(np.full_like(v, v[0], shape=(2, 3)) * X) + v[1]

    np.testing.assert_array_equal(gt.grad(function)(np.ones(2)), [15.0, 1.0])


def test_buffer_holds_recorded_values():
    def function(x):
        out = np.zeros_like(x, shape=len(x) - 1)
        for i in range(len(x) - 1):
            out[i] = x[i] * x[i + 1]
        return np.sum(out)

    x = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(gt.grad(function)(x), [2.0, 4.0, 6.0, 3.0])
    batch = gt.vmap(gt.grad(function))(np.stack([x, 2 * x]))
    np.testing.assert_array_equal(batch, [[2.0, 4.0, 6.0, 3.0], [4.0, 8.0, 12.0, 6.0]])


def test_batched_buffer_has_the_shape_of_an_element():
    seen = []

    def function(x):
        out = np.zeros_like(x)
        seen.append(out.shape)
        out[1] = x[0]
        return out

    got = gt.vmap(function)(X)
    np.testing.assert_array_equal(got, [[0.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    assert seen == [(3,)]


def test_questions_about_the_form():
    tensor = gt.tensor(X)
    assert np.shape(tensor) == gt.shape(X) == (2, 3)
    assert np.ndim(tensor) == gt.ndim(X) == 2
    assert np.size(tensor) == gt.size(X) == 6
    assert np.size(tensor, 1) == gt.size(X, (1,)) == 3
    assert gt.shape([1.0, 2.0]) == (2,)
    assert gt.ndim(1.0) == 0
