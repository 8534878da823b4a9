"""The doors of the namespaces: what goes wrong behind them is said in terms of what was given.

A function of `gt.signal` may notice that an option is of no use only where it computes with it, in
an error of Python or NumPy that names neither the function nor the option. Checking every option
in every call would be paid by all calls; here nothing is checked before something went wrong. Then
the arguments are compared with the annotations of the function, and the first that does not fit is
named. The error of old is the cause of the new one, so that nothing of it is lost.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
from collections.abc import Callable, Collection, Sequence
from types import FunctionType, TracebackType
from typing import Any, NoReturn, TypeVar

import numpy as np

from gradtape import tree
from gradtape.backends import is_raw
from gradtape.core.aval import aval_of, is_numeric
from gradtape.core.blame import in_the_name_of
from gradtape.core.evaluate import KINDS, Kinds
from gradtape.core.in_float32 import in_float32
from gradtape.core.spellings import KEYWORDS, keyword_advice, unknown_keyword
from gradtape.core.state import STATE, adopted, values_read
from gradtape.core.tensor import Tensor, as_value
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    GradtapeError,
    ShapeError,
    UnsupportedError,
)
from gradtape.locks import once

F = TypeVar("F", bound=Callable[..., Any])

# What is raised in place of errors that say nothing of the function; others are left alone.
_KINDS: Kinds = (
    *KINDS,
    (ValueError, ArgumentError),
    (KeyError, ArgumentError),
    (ZeroDivisionError, ArgumentError),
    (OverflowError, ArgumentError),
)
# Where families are, by how the names of modules begin and how many parts they have at least.
# Ops that every program loads (`gradtape.ops.reduce`) are none: of their calls each part counts.
_FAMILIES = {"gradtape.ops.": 4, "gradtape.autodiff.": 3}
_PYTHONS = (os.path.dirname(os.__file__), "<frozen")
_NOT_USERS = ("gradtape", "numpy", "scipy", "opt_einsum", "ml_dtypes", "cupy")


def open_doors(namespace: dict[str, Any]) -> None:
    """Replace the functions of families in the dict of a module by doors to them."""
    for name in namespace["__all__"]:
        namespace[name] = door(namespace[name], namespace["__name__"])


def door(function: Any, module: str) -> Any:
    """A function of a family with errors that say what came; anything else as it is.

    Args:
        function: What a namespace offers by a name.
        module: Where it is found by this name, by which it is pickled.
    """
    if not isinstance(function, FunctionType) or hasattr(function, "op"):
        return function  # ops explain their errors themselves (`core.call.explain`)
    home = function.__module__
    of_family = (
        home.startswith(start) and len(home.split(".")) >= parts
        for start, parts in _FAMILIES.items()
    )
    if not any(of_family):
        return function
    opened = _with_door(function)
    if opened.__module__ == home:
        opened.__module__ = module
    return opened


@once
def _with_door(function: F) -> F:
    @functools.wraps(function)
    def opened(*args: Any, **kwargs: Any) -> Any:
        try:
            if STATE.get().modes:
                return call_adopted(function, args, kwargs)
            return function(*args, **kwargs)
        except Exception as error:
            raise_explained(function, args, kwargs, error)

    return opened  # type: ignore[return-value]


def call_adopted(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a function of a family while modes are in force, with arrays as these see them.

    What it computes from an array before it calls an op would be computed once and for all while a
    function is traced. So a trace makes inputs of the arrays beforehand. Where that cannot be
    (`repeats` of `np.repeat` decide on a shape), the function gets the array, and the trace is told
    that it depends on the elements.
    """
    leaves, structure = tree.flatten((tuple(args), kwargs))
    arrays = [n for n, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray) and leaf.size]
    if not arrays or not any(isinstance(leaf, Tensor) for leaf in leaves):
        return function(*args, **kwargs)
    floats = [n for n in arrays if leaves[n].dtype.kind in "fc"]
    for lifted in (arrays, floats) if len(floats) < len(arrays) else (arrays,):
        values = [adopted(leaf) if n in lifted else leaf for n, leaf in enumerate(leaves)]
        before = [values[n].record for n in lifted if isinstance(values[n], Tensor)]
        full, keywords = tree.unflatten(structure, values)
        try:
            out = function(*full, **keywords)
        except (GradtapeError, TypeError, ValueError):
            continue
        if [values[n].record for n in lifted if isinstance(values[n], Tensor)] == before:
            break  # else it has written to them: it is to write to the arrays, or to refuse that
    else:
        lifted, out = [], function(*args, **kwargs)
    for n in set(arrays).difference(lifted):
        values_read(leaves[n])
    return out


def raise_explained(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], error: Exception
) -> NoReturn:
    """Raise an error that came out of a function, or what explains it."""
    better = _explained(function, args, kwargs, error)
    try:
        if better is error:
            raise error
        raise better from error
    finally:
        del better, error  # their tracebacks hold this frame


def _explained(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], error: Exception
) -> Exception:
    """The error to raise in place of one that came out of a function: names what did not fit.

    What says enough is returned as it is: errors of ours, of a wrong number of arguments, and those
    that a function of the user's raised, which ours called.
    """
    if isinstance(error, GradtapeError):
        # What is said of anything that is to become an array does not know for whom.
        nameless = type(error) in (DTypeError, ShapeError) and str(error).startswith("got ")
        if nameless:
            return type(error)(f"{function.__name__}: {error}")
    traceback = error.__traceback__ and error.__traceback__.tb_next
    # What only passes a call on is not where it went wrong.
    while traceback and traceback.tb_frame.f_globals.get("__name__") == in_float32.__module__:
        traceback = traceback.tb_next
    if _is_users(traceback):
        return error
    if isinstance(error, GradtapeError):
        return in_the_name_of(function.__name__, error)
    hidden = error.__cause__ or error.__context__
    # NumPy wraps what tensors say about their conversion. What is being handled further out, while
    # this happened, went through the code that handles it.
    if isinstance(hidden, GradtapeError) and not _is_users(hidden.__traceback__):
        return hidden
    kind = next((ours for theirs, ours in _KINDS if isinstance(error, theirs)), None)
    if type(error) is RuntimeError:  # not its subclasses, which say more
        kind = ArgumentError
    if kind is None:
        return error
    if traceback is None:
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
    """Of a call that did not get into the function, of which Python says what is wrong."""
    known = inspect.signature(function).parameters
    kinds = [parameter.kind for parameter in known.values()]
    unknown = next((name for name in kwargs if name not in known), None)
    arrays = kinds.count(inspect.Parameter.POSITIONAL_ONLY)
    if unknown is None or inspect.Parameter.VAR_KEYWORD in kinds or len(args) < arrays:
        return error
    if KEYWORDS.get(unknown) in known:
        return UnsupportedError(f"{function.__name__}: got {unknown}=; {keyword_advice([unknown])}")
    return unknown_keyword(function.__name__, unknown, list(known)[arrays:])


def _is_users(traceback: TracebackType | None) -> bool:
    """Whether a call went through code of somebody else's, whose errors are theirs."""
    while traceback is not None:
        frame = traceback.tb_frame
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        # By the file: one of the user's may have the name of a module of Python's.
        if package not in _NOT_USERS and not frame.f_code.co_filename.startswith(_PYTHONS):
            return True
        traceback = traceback.tb_next
    return False


# ---- arguments and annotations ------------------------------------------------------------------


def _annotated(
    function: Callable[..., Any], given: dict[str, Any]
) -> list[tuple[str, Any, list[str]]]:
    """Names, values and the alternatives of the annotations of what was given."""
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
    """The alternatives of an annotation: `["int", "None"]` of `int | None`."""
    found, depth = [""], 0
    for letter in annotation.replace(" | ", "|"):
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return found


def _fits(value: Any, alternatives: list[str]) -> bool:
    """Whether a value is one of the alternatives; what is not known of is taken to fit."""
    return any(check is None or check(value) for check, _ in map(_known, alternatives))


def _wanted(alternatives: list[str]) -> str:
    return " or ".join(str(words) for _, words in map(_known, alternatives) if words)


def _known(alternative: str) -> tuple[Callable[[Any], bool] | None, str | None]:
    """What tells whether a value is as an annotation says, and what that is called."""
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


def _is_sizes(value: Any) -> bool:
    return _is_collection(value) and all(map(_is_integer, value))


def _is_numbers(value: Any) -> bool:
    return _is_collection(value) and all(map(_is_number, value))


def _is_collection(value: Any) -> bool:
    if isinstance(value, Tensor | np.ndarray):
        return value.ndim > 0
    return isinstance(value, Collection) and not isinstance(value, str | bytes | dict)


def _is_array(value: Any) -> bool:
    try:
        value = value if isinstance(value, Tensor) else as_value(value)
    except GradtapeError:
        return isinstance(value, list | tuple) and any(map(_is_tensor, value))
    if not (isinstance(value, Tensor) or is_raw(value)):
        return False
    dtype = aval_of(value).dtype
    return is_numeric(dtype)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _is_arrays(value: Any) -> bool:
    return _is_collection(value) and all(map(_is_array, value))


def _is_dtype(value: Any) -> bool:
    try:
        return np.dtype(value).kind in "biufcV"
    except TypeError:
        return False


_SIZES = (_is_sizes, "integers, as in a tuple")
_ANNOTATIONS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "int": (_is_integer, "an integer"),
    "float": (_is_number, "a real number"),
    "complex": (lambda x: _is_number(x) or isinstance(x, complex), "a number"),
    "bool": (lambda x: isinstance(x, int | np.bool_), "True or False"),
    "str": (lambda x: isinstance(x, str), "one of the words it knows"),
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
    "Sequence[float]": (_is_numbers, "numbers, as in a tuple"),
    "Sequence[ArrayLike]": (_is_arrays, "a list or tuple of arrays"),
    "Sequence": (_is_collection, "a list or tuple"),
}


def shown(value: Any) -> str:
    """How an argument is written in a message: arrays by dtype and shape, others in short."""
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return str(aval_of(value))
    if isinstance(value, list | tuple) and len(value) < 5:
        inner = ", ".join(map(shown, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"
