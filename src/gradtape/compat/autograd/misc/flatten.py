"""Nested containers as one flat vector, and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import aval_of
from gradtape.core.tensor import Tensor
from gradtape.ops.cast import real
from gradtape.ops.join import concatenate
from gradtape.ops.shape import ravel, reshape

Function = Callable[..., Any]


def flatten(value: Any) -> tuple[Any, Function]:
    """Make one vector of the arrays and numbers in nested lists, tuples and dicts.

    Args:
        value: The containers; dicts are taken in the order of their sorted keys.

    Returns:
        The vector, and the function that makes the containers of such a vector again. Both can be
        differentiated.

    >>> from gradtape.compat.autograd.misc import flatten
    >>> vector, unflatten = flatten({"w": np.ones((2, 1)), "b": 3.0})
    >>> vector
    array([3., 1., 1.])
    >>> unflatten(2 * vector)
    {'w': array([[2.],
           [2.]]), 'b': np.float64(6.0)}
    """
    parts: list[Any] = []
    rebuild = _collected(value, parts)
    flat = concatenate(list(map(ravel, parts))) if parts else np.array([])
    avals = [aval_of(part) for part in parts]

    def unflatten(vector: Any) -> Any:
        found, start = [], 0
        for aval in avals:
            end = start + math.prod(aval.shape)
            part = reshape(vector[start:end], aval.shape)
            if aval.dtype.kind != "c" and aval_of(part).dtype.kind == "c":
                part = real(part)
            found.append(part if aval.shape or isinstance(part, Tensor) else part[()])
            start = end
        return rebuild(iter(found))

    return flat, unflatten


def _collected(value: Any, parts: list[Any]) -> Function:
    """Add the leaves of a container to `parts`; returns what makes it from an iterator of them."""
    kind = type(value)
    if kind in (list, tuple):
        makers = [_collected(entry, parts) for entry in value]
        return lambda leaves: kind([maker(leaves) for maker in makers])
    if kind is dict:
        of_keys = {key: _collected(value[key], parts) for key in sorted(value)}

        def made(leaves: Any) -> Any:
            found = {key: maker(leaves) for key, maker in of_keys.items()}
            return {key: found[key] for key in value}

        return made
    parts.append(value if isinstance(value, Tensor) else np.asarray(value))
    return next


def flatten_func(func: Function, example: Any) -> tuple[Function, Function, Any]:
    """Turn a function of containers into one of vectors.

    Args:
        func: A function whose first argument and result are nested containers.
        example: Such an argument.

    Returns:
        The function of vectors, the one that makes containers of its argument, and the example as
        a vector.

    >>> from gradtape.compat.autograd.misc.flatten import flatten_func
    >>> f, unflatten, start = flatten_func(lambda d: [d["a"], d["b"]], {"a": 1.0, "b": 2.0})
    >>> f(start)
    array([1., 2.])
    """
    flat_example, unflatten = flatten(example)

    def flat_func(vector: Any, *args: Any) -> Any:
        return flatten(func(unflatten(vector), *args))[0]

    return flat_func, unflatten, flat_example
