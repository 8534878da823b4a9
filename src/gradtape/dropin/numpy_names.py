"""The names of `gradtape.numpy`: NumPy's functions, wrapped so that they take tensors.

NumPy passes a call with a tensor among its arguments on by itself. The wrappers do so for lists of
tensors, too, and `numpy_creation` has the functions that make arrays.
"""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any

import numpy as np

from gradtape.dropin import numpy_creation
from gradtape.dropin.functions import UfuncDropIn
from gradtape.dropin.held_tensors import any_tensor
from gradtape.locks import load
from gradtape.ops.protocols import answer_function, answer_of

# Modules of NumPy for which there is one of ours.
_OURS = ("linalg", "fft", "random")


def numpy_names(module: str) -> list[str]:
    """The public names of a module of NumPy."""
    return [name for name in dir(load(module)) if not name.startswith("_")]


def numpy_name(module: str, name: str) -> Any:
    """What a module of `gradtape.numpy` has under a name of NumPy.

    Raises:
        AttributeError: NumPy has no such name.
    """
    if module == "numpy" and name in numpy_creation.MADE:
        return numpy_creation.MADE[name]
    original = getattr(load(module), name)
    if isinstance(original, ModuleType):
        return load(f"gradtape.numpy.{name}") if name in _OURS and module == "numpy" else original
    if isinstance(original, np.ufunc):
        return UfuncDropIn(original, answer_of(original) or original, f"{module}.{name}")
    if isinstance(original, type) or not callable(original) or module == "numpy.random":
        return original
    return _function(original, f"gradtape.{module}")


def _function(original: Any, module: str) -> Any:
    """A function of NumPy that takes lists of tensors, too."""

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        if any_tensor(args, kwargs) and answer_of(original) is not None:
            return answer_function(original, args, kwargs)
        return original(*args, **kwargs)

    function.__module__ = module
    try:
        function.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    except ValueError:  # some functions written in C have none
        del function.__wrapped__
    return function
