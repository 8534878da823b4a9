"""Naming the argument that an error is about.

An error of Python or NumPy that came out of a public function may name neither the function nor the
argument. Then the arguments are compared with the annotations of the function, and the first that
does not fit is named. The original error is the cause of the new one, so nothing of it is lost.
"""

from __future__ import annotations

import inspect
import operator
import os
import traceback
from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from gradtape.advice.error_names import in_the_name_of
from gradtape.advice.frames import PASS_ON
from gradtape.advice.keywords import keyword_advice, position_advice, unknown_keyword
from gradtape.backends import is_raw
from gradtape.core.aval import aval_of, is_numeric
from gradtape.core.evaluate import KINDS, Kinds
from gradtape.core.tensor import Tensor, as_value
from gradtape.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    GradtapeError,
    UnsupportedError,
)

# The errors to raise instead of ones that do not name the function; others are left alone.
_KINDS: Kinds = (
    *KINDS,
    (ValueError, ArgumentError),
    (KeyError, ArgumentError),
    (ZeroDivisionError, ArgumentError),
    (OverflowError, ArgumentError),
)
_PYTHONS = (os.path.dirname(os.__file__), "<frozen")
_NOT_USERS = ("gradtape", "numpy", "scipy", "opt_einsum", "ml_dtypes", "cupy")
# Errors that our functions raise for arguments in the positions another library has them in.
_OF_POSITIONS = (TypeError, ArgumentError, AxisError)


def raise_explained(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    error: Exception,
    method: str | None = None,
) -> NoReturn:
    """Raise an error that came out of a function, or one that explains it.

    Args:
        function: The function.
        args: Its arguments.
        kwargs: Its keyword arguments.
        error: The error.
        method: The method of tensors that called it, if one did.
    """
    better = _of_method(method, args[1:], kwargs, error) if method else None
    cause = error if better is None else None
    if better is None:
        better = _explained(function, args, kwargs, error)
    try:
        if better is error:
            raise error
        raise better from cause
    finally:
        del better, cause, error  # their tracebacks refer to this frame


def _of_method(
    name: str, args: Sequence[Any], kwargs: dict[str, Any], error: Exception
) -> Exception | None:
    """The error for arguments that other libraries' methods take, or our own error; else None."""
    own = isinstance(error, GradtapeError)
    if own and not isinstance(error, _OF_POSITIONS):
        return error
    if advice := position_advice(name, tuple(args)):
        return ArgumentError(f"{name}: {advice}")
    if own:
        return error
    advice = keyword_advice(kwargs)
    return UnsupportedError(f"{name}: {advice}") if advice else None


def _explained(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], error: Exception
) -> Exception:
    """The error to raise instead of one that came out of a function: it names the argument.

    Errors that say enough are returned as they are: our own, those about the number of arguments,
    and those raised by a user's function that ours called.
    """
    inside = error.__traceback__ and error.__traceback__.tb_next
    while inside and inside.tb_frame.f_globals.get("__name__") in PASS_ON:
        inside = inside.tb_next
    if _is_users(inside):
        return error
    if isinstance(error, GradtapeError):
        return in_the_name_of(function.__name__, error)
    hidden = error.__cause__ or error.__context__
    # NumPy wraps errors about the conversion of tensors. An error that was already being handled
    # further out went through the code that handles it.
    if isinstance(hidden, GradtapeError) and not _is_users(hidden.__traceback__):
        return hidden
    kind = next((ours for theirs, ours in _KINDS if isinstance(error, theirs)), None)
    if type(error) is RuntimeError:  # not its subclasses, which say more
        kind = ArgumentError
    if kind is None:
        return error
    if inside is None:
        return _of_signature(function, args, kwargs, error)
    name = function.__name__
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return _of_signature(function, args, kwargs, error)
    for parameter, value, annotation in _annotated(function, given):
        if not _fits(value, annotation):
            return DTypeError(
                f"{name}: got {parameter}={shown(value)}, expected {_wanted(annotation)}"
            )
    got = ", ".join(f"{parameter}={shown(value)}" for parameter, value in given.items())
    return kind(f"{name}: got {got}; {str(error) or type(error).__name__}")


def _of_signature(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], error: Exception
) -> Exception:
    """The error for a call that does not fit the signature."""
    known = inspect.signature(function).parameters
    kinds = [parameter.kind for parameter in known.values()]
    unknown = next((name for name in kwargs if name not in known), None)
    arrays = kinds.count(inspect.Parameter.POSITIONAL_ONLY)
    if unknown is None or inspect.Parameter.VAR_KEYWORD in kinds or len(args) < arrays:
        return error
    advice = keyword_advice([unknown], known) or unknown_keyword(unknown, list(known)[arrays:])
    return UnsupportedError(f"{function.__name__}: {advice}")


def raise_unknown_keyword(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], error: TypeError
) -> NoReturn:
    """Raise an error about the first keyword that a function or class does not have.

    Args:
        function: The function, or the `__init__` of the class.
        args: Its arguments; of a class, the instance comes first.
        kwargs: Its keyword arguments.
        error: The error of Python, which is raised if it was about something else.
    """
    known = list(inspect.signature(function).parameters)
    name = function.__name__
    if name == "__init__":
        known, name = known[1:], type(args[0]).__name__
    for option in kwargs:
        if option not in known:
            advice = keyword_advice([option], known) or unknown_keyword(option, known)
            raise UnsupportedError(f"{name}: {advice}") from None
    raise error


def _is_users(inside: TracebackType | None) -> bool:
    """Whether a call went through someone else's code, whose errors are left alone."""
    for frame, _ in traceback.walk_tb(inside):
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        # By file: a user's module may have the name of a standard one.
        if package not in _NOT_USERS and not frame.f_code.co_filename.startswith(_PYTHONS):
            return True
    return False


# ---- arguments and annotations ------------------------------------------------------------------


def _annotated(
    function: Callable[..., Any], given: dict[str, Any]
) -> list[tuple[str, Any, list[str]]]:
    """The given arguments: names, values and the alternatives of their annotations."""
    found: list[tuple[str, Any, list[str]]] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in given:
            continue
        alternatives = ["dtype", "None"] if name == "dtype" else _split(str(parameter.annotation))
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            found += [(name, value, alternatives) for value in given[name]]
        elif parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            found.append((name, given[name], alternatives))
    return found


def _split(annotation: str) -> list[str]:
    """The alternatives of an annotation: `["int", "None"]` for `int | None`."""
    found, depth = [""], 0
    for letter in annotation.replace(" | ", "|"):
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return found


def _fits(value: Any, alternatives: list[str]) -> bool:
    """Whether a value is one of the alternatives; unknown ones are assumed to fit."""
    return any(check is None or check(value) for check, _ in map(_known, alternatives))


def _wanted(alternatives: list[str]) -> str:
    return " or ".join(str(words) for _, words in map(_known, alternatives) if words)


def _known(alternative: str) -> tuple[Callable[[Any], bool] | None, str | None]:
    """The check for one annotation and its description; None for one not in the table."""
    plain = alternative.partition("[")[0]
    return _ANNOTATIONS.get(alternative) or _ANNOTATIONS.get(plain) or (None, None)


def _is_integer(value: Any) -> bool:
    try:
        operator.index(value)
    except (TypeError, GradtapeError):
        return False
    return True


def _is_number(value: Any) -> bool:
    if isinstance(value, Tensor | np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "biuf"
    return isinstance(value, int | float | np.integer | np.floating | np.bool_)


def _all(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """The check of a collection whose elements pass a check."""
    return lambda value: _is_collection(value) and all(map(check, value))


def _is_collection(value: Any) -> bool:
    if isinstance(value, Tensor | np.ndarray):
        return value.ndim > 0
    return isinstance(value, Collection) and not isinstance(value, str | bytes | dict)


def _is_array(value: Any) -> bool:
    try:
        value = value if isinstance(value, Tensor) else as_value(value)
    except GradtapeError:
        return isinstance(value, list | tuple) and any(isinstance(one, Tensor) for one in value)
    return (isinstance(value, Tensor) or is_raw(value)) and is_numeric(aval_of(value).dtype)


def _is_dtype(value: Any) -> bool:
    try:
        return np.dtype(value).kind in "biufcV"
    except TypeError:
        return False


_is_sizes = _all(_is_integer)
_SIZES = (_is_sizes, "a tuple of integers")
_ANNOTATIONS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "int": (_is_integer, "an integer"),
    "float": (_is_number, "a real number"),
    "complex": (lambda x: _is_number(x) or isinstance(x, complex), "a number"),
    "bool": (lambda x: isinstance(x, int | np.bool_), "True or False"),
    "str": (lambda x: isinstance(x, str), "a string"),
    "None": (lambda x: x is None, "None"),
    "dtype": (_is_dtype, "a dtype such as gt.float32"),
    "Generator": (lambda x: type(x).__module__.startswith("gradtape."), "a gt.random.Generator"),
    "Callable": (callable, "a function"),
    "ArrayLike": (_is_array, "an array of numbers"),
    "Array": (_is_array, "an array of numbers"),
    "Axis": (lambda x: x is None or _is_integer(x) or _is_sizes(x), "an axis, axes or None"),
    "Shape": (lambda x: _is_integer(x) or _is_sizes(x), "an integer or a tuple of integers"),
    "Sizes": _SIZES,
    "Sequence[int]": _SIZES,
    "tuple[int, int]": (lambda x: _is_sizes(x) and len(x) == 2, "a pair of integers"),
    "Sequence[float]": (_all(_is_number), "a tuple of numbers"),
    "Sequence[ArrayLike]": (_all(_is_array), "a list or tuple of arrays"),
    "Sequence": (_is_collection, "a list or tuple"),
}


def shown(value: Any) -> str:
    """An argument as shown in a message: arrays by dtype and shape, others shortened."""
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return str(aval_of(value))
    if isinstance(value, list | tuple) and len(value) < 5:
        inner = ", ".join(map(shown, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    text = repr(value)
    return text if len(text) <= 60 else f"<{type(value).__name__}>"
