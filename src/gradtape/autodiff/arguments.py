"""What every transform does with what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import tree
from gradtape.backends import is_raw
from gradtape.core.aval import aval_of
from gradtape.core.call import is_differentiable
from gradtape.core.state import adopted
from gradtape.core.tensor import Tensor, as_value
from gradtape.errors import ArgumentError, DTypeError, GradtapeError


def run(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a user's function; an error of ours that NumPy wrapped comes out as ours.

    Views among its results are read while the levels they were recorded at are active.
    `array[i] = tracked` reaches us as `float(tracked)`, and NumPy turns what that raises into a
    ValueError of its own that hides the advice.
    """
    try:
        out = function(*args, **kwargs)
        return out if type(out) is Tensor else tree.map_leaves(_fresh, out)
    except (TypeError, ValueError) as error:
        cause = error.__cause__ or error.__context__
        if isinstance(cause, GradtapeError) and not isinstance(error, GradtapeError):
            raise cause.with_traceback(error.__traceback__) from None
        raise


def _fresh(value: Any) -> Any:
    return value.fresh() if isinstance(value, Tensor) else value


def primal(value: Any, transform: str, where: str) -> Any:
    """An argument to be differentiated: a tensor, or an array made of what came."""
    if not isinstance(value, Tensor) and not is_raw(value):
        raise DTypeError(
            f"{transform}: {where} is a {type(value).__name__}; needed an array, a tensor or a "
            "float" + ("; use np.array" if transform == "watch" else " (or containers of them)")
        )
    value = adopted(as_value(value))
    if isinstance(value, bool | int | float | complex):
        value = np.asarray(value)[()]  # a NumPy scalar: faster than a 0-d array
    if not is_differentiable(value):
        raise DTypeError(
            f"{transform}: {where} is {aval_of(value)}; needed a floating or complex dtype, as "
            f"{value.dtype} has no derivatives; use x.astype(float)"
        )
    return value


def deliver(value: Any, *, tensors: bool) -> Any:
    """A result as users get it: a tensor if tensors went in, else an array."""
    value = value.fresh() if isinstance(value, Tensor) else value
    return Tensor(value) if tensors and not isinstance(value, Tensor) else value


def like_argument(result: Any, argument: Any) -> Any:
    """A derivative in the form of its argument: an array for an array, a scalar for a number."""
    if isinstance(argument, np.ndarray):
        return np.asarray(result) if isinstance(result, np.generic) else result
    if not isinstance(argument, Tensor) and isinstance(result, np.ndarray):
        return result[()]
    return result


def selected(argnums: int | Sequence[int], count: int, transform: str) -> tuple[int, ...]:
    """`argnums` as a tuple of positions that exist."""
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in chosen:
        if not -count <= n < count:
            raise ArgumentError(
                f"{transform}: argnums={argnums} with {count} positional argument(s); give the "
                "argument to differentiate by position"
            )
    positions = tuple(n % count for n in chosen)
    if len(set(positions)) != len(positions):
        raise ArgumentError(f"{transform}: argnums={argnums} names an argument twice")
    return positions


def has_tensors(leaves: Sequence[Any]) -> bool:
    """Whether any of the values is a tensor."""
    return any(isinstance(leaf, Tensor) for leaf in leaves)
