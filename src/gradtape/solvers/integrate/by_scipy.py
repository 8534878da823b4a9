"""Calls of SciPy where there is nothing to differentiate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape import tree
from gradtape.core.tensor import Tensor
from gradtape.errors import ConversionError

Function = Callable[..., Any]


class _TensorMetError(Exception):
    """A function met a tensor, which SciPy does not take."""


def by_scipy(solve: Callable[[Callable[[Any], Any]], Any], given: Any) -> Any | None:
    """What SciPy returns; None if anything is a tensor.

    Args:
        solve: `solve(of_arrays)` calls SciPy with functions of users that `of_arrays` has wrapped.
        given: The other arguments, in containers.
    """
    leaves, _ = tree.flatten(given)
    if any(isinstance(leaf, Tensor) for leaf in leaves):
        return None
    try:
        return solve(_of_arrays)
    except _TensorMetError:
        return None


def _of_arrays(function: Any) -> Any:
    """The function, which raises if it meets a tensor; what cannot be called as it is."""
    if not callable(function):
        return function

    def of_arrays(*args: Any) -> Any:
        try:
            out = function(*args)
        except Exception as error:
            # As `buffer[i] = tensor` does, where the buffer is like an argument; NumPy wraps it.
            met = (error, error.__cause__, error.__context__)
            if any(isinstance(one, ConversionError) for one in met):
                raise _TensorMetError from error
            raise
        parts = out if isinstance(out, list | tuple) else (out,)
        if any(isinstance(part, Tensor) for part in parts):
            raise _TensorMetError
        return out

    # What SciPy reads of events.
    for name in ("terminal", "direction"):
        if hasattr(function, name):
            setattr(of_arrays, name, getattr(function, name))
    return of_arrays
