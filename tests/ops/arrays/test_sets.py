"""Arrays as sets of values: how many come out depends on the values, so that nothing is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import AxisError, ConversionError
from gradtape.testing import check_grads

X = np.array([[3.0, 1.0, 3.0], [2.0, 1.0, -1.0]])
Y = np.array([1.0, 5.0, 2.0, 5.0])
WITH_NAN = np.array([np.nan, 2.0, np.nan, 2.0])


def parts(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple) else (result,)


def check(function: Callable[..., Any], *args: Any) -> None:
    """A function on arrays, on tensors, and by NumPy's name, gives what NumPy gives."""
    ref = getattr(np, function.__name__)
    tensors = [gt.tensor(x) if isinstance(x, np.ndarray) else x for x in args]
    expected = parts(ref(*args))
    for result in (function(*args), function(*tensors), ref(*tensors)):
        got = parts(result)
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            value = one.numpy() if isinstance(one, gt.Tensor) else one
            assert value.dtype == other.dtype
            np.testing.assert_array_equal(value, other)


@pytest.mark.parametrize("x", [X, X.astype(np.int8), X + 1j * X[::-1], np.zeros(0), np.array(1.5)])
def test_unique(x: Any) -> None:
    check(gt.unique, x)
    check(gt.unique, x, True)
    check(gt.unique, x, True, True, True)
    check(gt.unique, x, False, False, True)


def test_unique_slices() -> None:
    rows = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]])
    check(gt.unique, rows, True, True, True, 0)
    check(gt.unique, rows, False, False, False, -1)
    with pytest.raises(AxisError, match="unique: got axis 2"):
        gt.unique(rows, axis=2)


def test_nan_is_one_value_or_many() -> None:
    check(gt.unique, WITH_NAN)
    assert gt.unique(WITH_NAN, equal_nan=False).shape == (3,)
    assert gt.unique_values(gt.tensor(WITH_NAN)).shape == (3,)


@pytest.mark.parametrize(
    "function", [gt.unique_values, gt.unique_counts, gt.unique_inverse, gt.unique_all]
)
def test_forms_of_the_array_api(function: Callable[..., Any]) -> None:
    ref = getattr(np, function.__name__)(X)
    for got in (function(X), function(gt.tensor(X))):
        if isinstance(ref, tuple):
            assert got._fields == ref._fields
        # NumPy need not give the values of `unique_values` in order.
        for one, other in zip(parts(got), parts(ref), strict=True):
            value = one.numpy() if isinstance(one, gt.Tensor) else one
            if function is gt.unique_values:
                other = np.sort(other)
            np.testing.assert_array_equal(value, other)


@pytest.mark.parametrize("function", [gt.union1d, gt.intersect1d, gt.setdiff1d, gt.setxor1d])
def test_two_arrays(function: Callable[..., Any]) -> None:
    check(function, X, Y)
    check(function, X.astype(np.float32), Y)
    check(function, X, np.zeros(0))
    check(function, np.array([3, 1, 2]), np.array([2, 7]))


def test_options_of_two_arrays() -> None:
    x, y = np.array([3.0, 1.0, 2.0]), np.array([2.0, 5.0])
    check(gt.intersect1d, x, y, True)
    check(gt.intersect1d, X, Y, False, True)
    check(gt.setdiff1d, x, y, True)
    check(gt.setxor1d, x, y, True)
    assert isinstance(gt.intersect1d(x, gt.tensor(y)), gt.Tensor)


# ---- gradients ----------------------------------------------------------------------------------


def test_values_have_the_gradient_of_their_first_elements() -> None:
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    gradient = gt.grad(lambda x: np.sum(np.unique(x) * weights))(X)
    # The values are -1, 1, 2, 3.
    np.testing.assert_array_equal(gradient, [[4.0, 2.0, 0.0], [3.0, 0.0, 1.0]])


@pytest.mark.parametrize("function", [gt.union1d, gt.setdiff1d, gt.setxor1d, gt.intersect1d])
def test_gradients(function: Callable[..., Any]) -> None:
    x, y = np.array([3.0, 1.0, 2.5]), np.array([0.5, 4.0])
    if function is gt.intersect1d:  # a value that is moved is in both arrays no longer
        gradient = gt.grad(lambda x: np.sum(function(x, np.array([2.5, 3.0])) ** 2))(x)
        np.testing.assert_array_equal(gradient, [6.0, 0.0, 5.0])
    else:
        check_grads(lambda x, y: function(x, y) ** 2, (x, y))


def test_gradients_of_unique_slices() -> None:
    check_grads(lambda x: gt.unique(x, axis=0) ** 2, (X,))


# ---- what is not known --------------------------------------------------------------------------

FUNCTIONS = {
    "unique": gt.unique,
    "unique_all": lambda x: gt.unique_all(x).values,
    "union1d": lambda x: gt.union1d(x, Y),
    "intersect1d": lambda x: gt.intersect1d(x, Y),
    "setdiff1d": lambda x: gt.setdiff1d(Y, x),
    "setxor1d": lambda x: gt.setxor1d(x, Y),
    "bincount": lambda x: gt.bincount(gt.astype(x, int)),
    "histogram": lambda x: gt.histogram(x, "auto")[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_not_traced(name: str) -> None:
    with pytest.raises(ConversionError, match="the value of a traced tensor"):
        gt.jit(FUNCTIONS[name])(np.abs(X[0]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_not_batched(name: str) -> None:
    with pytest.raises(ConversionError, match="stands for a whole batch"):
        gt.vmap(FUNCTIONS[name])(np.abs(X))
