"""Arguments and results of transforms: checks and conversions that all of them share."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np

from gradtape import advice, containers
from gradtape.backends import is_raw
from gradtape.core.aval import aval_of, is_numeric
from gradtape.core.call import is_differentiable
from gradtape.core.state import adopted
from gradtape.core.tensor import Tensor, as_value
from gradtape.errors import (
    ArgumentError,
    ConversionError,
    DTypeError,
    GradtapeError,
    ShapeError,
    a_type,
)


def run(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a user's function; an error of ours that NumPy wrapped is unwrapped.

    Views among its results are read while the levels they were recorded at are active.
    `array[i] = tracked` reaches us as `float(tracked)`, and NumPy turns the error into a ValueError
    of its own that hides the advice. Some of SciPy's compiled code carries on after the error, and
    ends in a SystemError.
    """
    try:
        out = function(*args, **kwargs)
        return out if type(out) is Tensor else containers.map_leaves(_fresh, out)
    except (TypeError, ValueError, SystemError, AttributeError) as error:
        raise_unwrapped(error)
        raise


def is_running() -> bool:
    """Whether a transform or a trace runs the function that calls this, directly or not.

    That is read off the stack: a variable would have to be set back, and an interrupt can come
    before that.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is run.__code__:
            return True
        frame = frame.f_back
    return False


def raise_unwrapped(error: Exception) -> None:
    """Raise the error of ours that NumPy wrapped, if there is one."""
    if isinstance(error, GradtapeError):
        return
    cause = error.__cause__ or error.__context__
    if isinstance(cause, GradtapeError):
        raise cause.with_traceback(error.__traceback__) from None
    advice.raise_of_objects(error)
    advice.note_hidden_conversion(error)


def _fresh(value: Any) -> Any:
    # An array that is returned unchanged must become an input of a trace before it is copied.
    return value.fresh() if isinstance(value, Tensor) else adopted(value)


def as_primals(container: Any, transform: str, where: str) -> tuple[list[Any], list[Any], Any]:
    """Flatten an argument to differentiate: its leaves as given, the same as primals, structure.

    Raises:
        DTypeError: A leaf cannot be differentiated; the error says which.
    """
    leaves, structure = containers.flatten(container)
    values = [
        primal(leaf, transform, containers.Place(where, container, n))
        for n, leaf in enumerate(leaves)
    ]
    return leaves, values, structure


def primal(value: Any, transform: str, where: str | containers.Place) -> Any:
    """One value to differentiate: a tensor as it is, anything else converted to an array."""
    if not isinstance(value, Tensor) and not is_raw(value):
        advice = where.advice if isinstance(where, containers.Place) else ""
        raise DTypeError(
            f"{transform}: {where} is {a_type(value)}, expected an array, a tensor or a "
            f"float (or containers of them){advice}"
        )
    if isinstance(value, np.ma.MaskedArray):
        raise DTypeError(
            f"{transform}: {where} is a masked array, which has no derivatives, expected a plain "
            "one; use np.where with filled values"
        )
    value = adopted(as_value(value))
    if isinstance(value, bool | int):
        raise DTypeError(
            f"{transform}: {where} is the {type(value).__name__} {value}, expected a float, as "
            "integers and booleans have no derivatives; use float(x)"
        )
    if isinstance(value, float | complex):
        value = np.asarray(value)[()]  # a NumPy scalar: faster than a 0-d array
    if not is_differentiable(value):
        raise DTypeError(
            f"{transform}: {where} is {aval_of(value)}, expected a floating or complex dtype, as "
            f"{value.dtype} has no derivatives; use x.astype(float)"
        )
    return value


def check_results(
    transform: str, out: Any, leaves: Sequence[Any], made_plain: str | None = None
) -> None:
    """Raise for results of a function in which derivatives would get lost.

    They are no numbers, or plain numbers although a method made plain numbers of tensors.

    Args:
        transform: The name of the transform, for messages.
        out: What the function returned.
        leaves: The same, flattened.
        made_plain: The method, `item()`; None if there was none.
    """
    for n, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            continue
        raw = is_raw(leaf)
        if not raw or not is_numeric(aval_of(leaf).dtype):
            got = aval_of(leaf) if raw else a_type(leaf)
            raise DTypeError(
                f"{transform}: {containers.Place('the result', out, n)} is {got}, expected arrays, "
                "numbers or containers of them. Use lists, dicts, dataclasses or "
                "gt.tree.register; what is not to be differentiated is returned beside the "
                "result, with has_aux=True"
            )
    if made_plain and leaves and not any(isinstance(leaf, Tensor) for leaf in leaves):
        raise ConversionError(
            f"{transform}: the function returned plain numbers, and tensors were read as plain "
            f"numbers by {made_plain} on the way, so that the derivative would be lost. Leave "
            f"{made_plain} out; if the result is constant, return gt.asarray(result)"
        )


def checked(value: Any, like: Any, transform: str, what: str | containers.Place, of: str) -> Any:
    """A tangent or cotangent cast to the dtype of `like`; raises if its shape differs."""
    aval, value = aval_of(like), adopted(value)
    if not isinstance(value, Tensor) and not hasattr(value, "dtype"):
        value = np.asarray(value)
    if value.shape != aval.shape:
        raise ShapeError(
            f"{transform}: the {what} has shape {value.shape}, expected {aval.shape}, the shape of "
            f"the {of}"
        )
    if value.dtype == aval.dtype:
        return value
    if not np.can_cast(value.dtype, aval.dtype, "same_kind"):
        raise DTypeError(
            f"{transform}: the {what} is {value.dtype}, expected {aval.dtype}, the dtype of the "
            f"{of}"
        )
    return value.astype(aval.dtype)


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


def function_and_argnums(
    function: Any, argnums: Any, transform: str
) -> tuple[Callable[..., Any], int | tuple[int, ...]]:
    """Check the function and `argnums` given to a transform, before it is called.

    Raises:
        ArgumentError: It is not a function, or the arguments are not given as positions.
    """
    function = as_function(function, transform)
    try:
        if isinstance(argnums, Sequence | np.ndarray):
            return function, tuple(operator.index(n) for n in argnums)
        return function, operator.index(argnums)
    except TypeError:
        raise ArgumentError(
            f"{transform}: got argnums={argnums!r}, expected the position of an argument, counted "
            "from 0, or a tuple of them"
        ) from None


def as_function(function: Any, transform: str) -> Callable[..., Any]:
    """The function given to a transform.

    Raises:
        ArgumentError: It is not callable.
    """
    if not callable(function):
        raise ArgumentError(
            f"{transform}: got {a_type(function)}, expected a function; give the function "
            "itself, and the arguments afterwards"
        )
    return function  # type: ignore[no-any-return]


def selected(argnums: int | Sequence[int], count: int, transform: str) -> tuple[int, ...]:
    """`argnums` as a tuple of positions that exist."""
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in chosen:
        if not -count <= n < count:
            raise ArgumentError(
                f"{transform}: got argnums={argnums} for {count} positional argument(s), expected "
                "positions of these; pass what to differentiate by position"
            )
    positions = tuple(n % count for n in chosen)
    if len(set(positions)) != len(positions):
        raise ArgumentError(f"{transform}: got argnums={argnums}, expected each argument once")
    return positions


def has_tensors(leaves: Sequence[Any]) -> bool:
    """Whether any of the values is a tensor."""
    return any(isinstance(leaf, Tensor) for leaf in leaves)
