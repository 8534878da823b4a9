"""Errors begin with the name of the function that was called.

A function that calls others gets their errors: `tensorinv` those of `inv`. Users did not call
these, so the error begins with the name in their program. A note names the one that raised it.
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
# Modules of functions that begin their messages with their own name.
_OF_OPS = ("gradtape.ops.", "gradtape.autodiff.")

# Errors about arguments; others are about tapes and transforms.
_OF_ARGUMENTS = (
    *(ArgumentError, AxisError, ConversionError, DTypeError, IndexingError),
    *(LinAlgError, NotDifferentiableError, ShapeError, UnsupportedError),
)


def name_caller(error: GradtapeError, name: str | None = None) -> None:
    """Prefix an error that begins with "got" with the name of the function that was called.

    Args:
        error: Changed in place.
        name: The prefix to use if that function is not found.
    """
    name = own_function(running()) or name
    if name and str(error).startswith("got "):
        error.args = (f"{name}: {error}",)


def in_the_name_of(name: str, error: E) -> E:
    """An error that came out of a function, made to begin with the name of that function.

    Args:
        name: The function that was called.
        error: Changed in place if it begins with the name of another function of gradtape, or with
            "got", like errors that are raised for any function.
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
    """Prefix an error of a derivative rule with the name of its op, if users know that name.

    Errors of rules of users' functions, and of compiled ones, are left alone.

    Args:
        op: The op that the rule belongs to.
        error: Changed in place.
    """
    if op.kind not in ("custom", "graph", "control") and _is_function(op.name):
        in_the_name_of(op.name, error)


def _is_ours(name: str) -> bool:
    """Whether a name is that of an op, or of another function of ours."""
    return name in registry or _is_function(name)


def _is_function(name: str) -> bool:
    """Whether one of our loaded modules, which may have raised, has a function of this name."""
    modules = [module for key, module in tuple(sys.modules.items()) if key.startswith(_OF_OPS)]
    return any(getattr(vars(module).get(name), "__name__", "") == name for module in modules)
