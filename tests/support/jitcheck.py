"""What the tests of compiled functions are made of: comparing, counting, examples."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import containers
from opcall import resolution


def assert_close(got: Any, expected: Any, ulps: float = 64) -> None:
    """The same containers, types, shapes and dtypes; values equal up to rounding."""
    got_leaves, got_structure = containers.flatten(got)
    leaves, structure = containers.flatten(expected)
    assert got_structure == structure
    for one, other in zip(got_leaves, leaves, strict=True):
        assert_leaf_close(one, other, ulps)


def assert_leaf_close(one: Any, other: Any, ulps: float = 64) -> None:
    """The same type, shape and dtype; values equal up to rounding, relative to the largest."""
    # What is computed of Python's numbers is one; of truth values it is NumPy's.
    if type(other) in (int, float) and type(one) is not np.int64:
        assert type(one) is type(other)
        one = np.asarray(one)[()]
    # Results without axes are NumPy scalars, also where eager code has a truth value.
    assert type(one) is np.ndarray if np.ndim(other) else isinstance(one, np.generic | np.ndarray)
    assert isinstance(one, np.generic) or isinstance(other, np.ndarray)
    one, other = np.asarray(one), np.asarray(other)
    assert (one.shape, one.dtype) == (other.shape, other.dtype)
    tolerance = ulps * resolution(other.dtype)
    finite = np.abs(other[np.isfinite(other)]).max(initial=1.0)
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * float(finite))


class Counted:
    """A function that counts how often it is run; of a compiled one that is how often traced."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self.count = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        return self._function(*args, **kwargs)


def network(weights: Any, x: Any) -> Any:
    """A small network of weights in a dict."""
    hidden = np.tanh(x @ weights["w1"] + weights["b1"])
    return hidden @ weights["w2"] + weights["b2"]


def network_loss(weights: Any, x: Any, y: Any) -> Any:
    """Its squared error."""
    return np.mean((network(weights, x) - y) ** 2)


def network_arguments(rng: np.random.Generator, dtype: Any = np.float64) -> tuple[Any, Any, Any]:
    """Weights, inputs and targets of it."""

    def normal(*shape: int) -> Any:
        return rng.normal(size=shape).astype(dtype)

    weights = {"w1": normal(3, 7), "b1": normal(7), "w2": normal(7, 2), "b2": normal(2)}
    return weights, normal(5, 3), normal(5, 2)
