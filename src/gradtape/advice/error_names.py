"""Errors begin with the name of the function that was called.

A function that is made of others gets their errors: `tensorinv` that of `inv`. Whoever called it
has not called these, and is told the name that stands in their program. Which one raised it is said
in a note.
"""

from __future__ import annotations

import sys
from typing import TypeVar

from gradtape.advice.frames import own_function, running
from gradtape.core.op import Op, registry
from gradtape.errors import (
    ArgumentError,
    AxisError,
    ConversionError,
    DTypeError,
    GradtapeError,
    IndexingError,
    LinAlgError,
    NotDifferentiableError,
    ShapeError,
    UnsupportedError,
)

E = TypeVar("E", bound=GradtapeError)
# Where functions are defined that begin their messages with their name.
_OF_OPS = ("gradtape.ops.", "gradtape.autodiff.")

# Those that say of arguments what came; others are about tapes and transforms.
_OF_ARGUMENTS = (
    *(ArgumentError, AxisError, ConversionError, DTypeError, IndexingError),
    *(LinAlgError, NotDifferentiableError, ShapeError, UnsupportedError),
)


def name_caller(error: GradtapeError, name: str | None = None) -> None:
    """Let an error that begins with "got" begin with the name of the function that was called.

    Args:
        error: Changed in place.
        name: What to begin with if that function is not found.
    """
    name = own_function(running()) or name
    if name and str(error).startswith("got "):
        error.args = (f"{name}: {error}",)


def in_the_name_of(name: str, error: E) -> E:
    """An error that came out of a function, beginning with the name of that function.

    Args:
        name: Of the function that was called.
        error: Changed in place if it begins with the name of another function of gradtape, or with
            "got", as what is raised for any function does.
    """
    if type(error) not in _OF_ARGUMENTS:
        return error
    if str(error).startswith("got "):
        error.args = (f"{name}: {error}",)
    inner, colon, rest = str(error).partition(": ")
    if not colon or inner == name or not _is_ours(inner):
        return error
    error.args = (f"{name}: {rest}", *error.args[1:])
    error.add_note(f"{name} calls {inner}, which raised it.")
    return error


def name_rule(op: Op, error: GradtapeError) -> None:
    """Let an error of a derivative rule begin with the name of its op, if people know that.

    Rules of users' functions, and of compiled ones, call what they call by themselves.

    Args:
        op: The op that the rule belongs to.
        error: Changed in place.
    """
    if op.kind not in ("custom", "graph") and _is_function(op.name):
        in_the_name_of(op.name, error)


def _is_ours(name: str) -> bool:
    """Whether a name is that of an op, or of a function that may call others."""
    return name in registry or _is_function(name)


def _is_function(name: str) -> bool:
    """Whether a module of ours that is loaded, and so may have raised, has a function so named."""
    modules = [module for key, module in tuple(sys.modules.items()) if key.startswith(_OF_OPS)]
    return any(getattr(vars(module).get(name), "__name__", "") == name for module in modules)
