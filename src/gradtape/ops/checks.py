"""Check options and shapes, each by one line that leads to the same words everywhere.

>>> from gradtape.ops.checks import check_axes, check_choice, check_least, check_positive
>>> check_choice("gelu", ("none", "tanh"), approximate="none")
>>> check_choice("gelu", ("none", "tanh"), approximate="erf")
Traceback (most recent call last):
gradtape.errors.ArgumentError: gelu: got approximate='erf', expected 'none' or 'tanh'
>>> check_least("diff", 0, n=-1)
Traceback (most recent call last):
gradtape.errors.ArgumentError: diff: got n=-1, expected 0 or more
>>> check_least("diff", 0, n="1")
Traceback (most recent call last):
gradtape.errors.DTypeError: diff: got n='1', expected a real number
>>> check_positive("softplus", beta=0.0)
Traceback (most recent call last):
gradtape.errors.ArgumentError: softplus: got beta=0.0, expected a positive number
>>> check_axes("bincount", np.ones((2, 3)), 1, what="weights")
Traceback (most recent call last):
gradtape.errors.ShapeError: bincount: got weights of shape (2, 3), expected one axis

They take a few hundred nanoseconds: functions that small networks call often compare by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradtape import advice
from gradtape.core.broadcasting import broadcast_sizes
from gradtape.errors import ArgumentError, DTypeError, GradtapeError, ShapeError, a_type
from gradtape.ops.arguments import as_integer

_COUNTS = ("no axes", "one axis", "two axes", "three axes", "four axes")


def one_of(choices: Iterable[Any]) -> str:
    """Alternatives in words: "1, 2 or 3"."""
    *others, last = map(repr, choices)
    return f"{', '.join(others)} or {last}" if others else last


def check_choice(name: str, choices: Iterable[Any], **given: Any) -> None:
    """Raise an ArgumentError for an option that is none of the choices."""
    for option, value in given.items():
        if value not in tuple(choices):  # lists cannot be looked up in a dict
            raise ArgumentError(f"{name}: got {option}={value!r}, expected {one_of(choices)}")


def check_least(name: str, least: float, **given: Any) -> None:
    """Raise an ArgumentError for a number below the least one that is allowed."""
    for option, value in given.items():
        if not _holds(name, option, value, lambda x: x >= least):
            raise ArgumentError(f"{name}: got {option}={value}, expected {least} or more")


def check_count(name: str, least: int, **given: Any) -> None:
    """Raise unless options are integers that are not below the least one that is allowed."""
    for option, value in given.items():
        if isinstance(value, bool):
            raise DTypeError(f"{name}: got {option}={value}, expected an integer")
        check_least(name, least, **{option: as_integer(value, name, option)})


def check_callable(name: str, **given: Any) -> None:
    """Raise an ArgumentError for an option that cannot be called."""
    for option, value in given.items():
        if not callable(value):
            got = repr(value) if isinstance(value, str | int | float) else a_type(value)
            raise ArgumentError(f"{name}: got {got} for {option}, expected a function")


def check_positive(name: str, **given: Any) -> None:
    """Raise an ArgumentError for a number that is not above 0."""
    for option, value in given.items():
        if not _holds(name, option, value, lambda x: x > 0):
            raise ArgumentError(f"{name}: got {option}={value}, expected a positive number")


def _holds(name: str, option: str, value: Any, is_right: Callable[[Any], Any]) -> bool:
    """Whether a number is in its range; raises a DTypeError for what is no number."""
    try:
        return bool(is_right(value))
    except (TypeError, ValueError) as error:
        if isinstance(error, GradtapeError):
            raise
        raise DTypeError(
            f"{name}: got {option}={advice.shown(value)}, expected a real number"
        ) from None


def check_axes(
    name: str,
    x: Any,
    exactly: int | None = None,
    *,
    least: int = 0,
    most: int = 64,
    what: str = "",
    instead: str = "",
) -> None:
    """Raise a ShapeError for an array that has another number of axes.

    Args:
        name: The name of the function.
        x: The array, or its aval.
        exactly: How many axes it needs, if it needs a certain number.
        least: How many it needs at least.
        most: How many it may have.
        what: Which argument it is, if there are several.
        instead: Advice on what to do.
    """
    least, most = (least, most) if exactly is None else (exactly, exactly)
    ndim = len(x.shape)
    if not least <= ndim <= most:
        bound = "" if least == most else "at least " if ndim < least else "at most "
        got = f"{what} of shape" if what else "shape"
        count = least if ndim < least else most
        expected = bound + (_COUNTS[count] if count < len(_COUNTS) else f"{count} axes")
        advice = f"; {instead}" if instead else ""
        raise ShapeError(f"{name}: got {got} {x.shape}, expected {expected}{advice}")


def check_same_shape(name: str, **arrays: Any) -> None:
    """Raise a ShapeError unless all arrays have the shape of the first one."""
    shapes = [tuple(x.shape) for x in arrays.values()]
    if any(shape != shapes[0] for shape in shapes):
        listed = " and ".join(f"{what} of shape {x.shape}" for what, x in arrays.items())
        raise ShapeError(f"{name}: got {listed}, expected the same")


def check_shape(name: str, shape: tuple[int, ...], **arrays: Any) -> None:
    """Raise a ShapeError unless all arrays have a certain shape."""
    for what, x in arrays.items():
        if x.shape != shape:
            raise ShapeError(f"{name}: got {what} of shape {x.shape}, expected {shape}")


def check_between(name: str, least: float, most: float, **given: Any) -> None:
    """Raise an ArgumentError for a number outside of an interval."""
    for option, value in given.items():
        if not _holds(name, option, value, lambda x: least <= x <= most):
            raise ArgumentError(
                f"{name}: got {option}={value}, expected a number from {least} to {most}"
            )


def common_shape(name: str, *arrays: Any, last: int = 0) -> tuple[int, ...]:
    """The shape that arrays broadcast to, without the given number of last axes; raises if none."""
    try:
        return broadcast_sizes(*(x.shape[: len(x.shape) - last] for x in arrays))
    except ShapeError as error:
        shapes, which = ", ".join(str(x.shape) for x in arrays), "leading axes" if last else "ones"
        raise ShapeError(f"{name}: got shapes {shapes}, expected {which} that broadcast") from error


def check_broadcasts(name: str, shape: tuple[int, ...], **arrays: Any) -> None:
    """Raise a ShapeError unless all arrays broadcast to a certain shape."""
    for what, x in arrays.items():
        pairs = zip(x.shape[::-1], shape[::-1], strict=False)
        if len(x.shape) > len(shape) or any(own not in (1, n) for own, n in pairs):
            raise ShapeError(
                f"{name}: got {what} of shape {x.shape}, expected one that broadcasts to {shape}"
            )
