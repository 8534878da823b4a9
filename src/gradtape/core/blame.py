"""Errors in the name of the function that was called.

A function that is made of others gets their errors: `tensorinv` that of `inv`. Whoever called it
has not called these, and is told the name that stands in their program. Which one raised it is said
in a note.
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar

from gradtape.core.op import Op, registry
from gradtape.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    IndexingError,
    LinAlgError,
    NotDifferentiableError,
    ShapeError,
    UnsupportedError,
)

# Where functions are defined that begin their messages with their name.
_OF_OPS = ("gradtape.ops.", "gradtape.autodiff.")
E = TypeVar("E", bound=BaseException)

# Those that say of arguments what came; others are about tapes and transforms.
_OF_ARGUMENTS = (
    *(ArgumentError, AxisError, DTypeError, IndexingError, LinAlgError),
    *(NotDifferentiableError, ShapeError, UnsupportedError),
)


def in_the_name_of(name: str, error: E) -> E:
    """An error that came out of a function, beginning with the name of that function.

    Args:
        name: Of the function that was called.
        error: Changed in place if it begins with the name of another function of gradtape.
    """
    if type(error) not in _OF_ARGUMENTS:
        return error
    inner, colon, rest = str(error).partition(": ")
    if not colon or inner == name or not _is_ours(inner):
        return error
    error.args = (f"{name}: {rest}", *error.args[1:])
    error.add_note(f"{name} calls {inner}, which found it.")
    return error


def blame(what: Any, error: BaseException) -> None:
    """Let an error of a rule begin with the name of its op, if that is one which people know.

    Rules of users' functions, and of compiled ones, call what they call by themselves.

    Args:
        what: An op, or the record of one.
        error: Changed in place.
    """
    op = what if isinstance(what, Op) else getattr(what, "op", None)
    if op is not None and op.kind not in ("custom", "graph") and _is_function(op.name):
        in_the_name_of(op.name, error)


def _is_ours(name: str) -> bool:
    """Whether a name is that of an op, or of a function that may call others."""
    return name in registry or _is_function(name)


def _is_function(name: str) -> bool:
    """Whether a module of ours that is loaded, and so may have raised, has a function so named."""
    modules = [module for key, module in tuple(sys.modules.items()) if key.startswith(_OF_OPS)]
    return any(getattr(vars(module).get(name), "__name__", "") == name for module in modules)
