"""What other libraries call things, and what they are called here.

There is one name for each thing. Whoever writes another library's name is told ours, by the error
that Python raises anyway: for names of the module and of tensors, and for keywords of functions.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gradtape.core.advice import WITH_ARRAY_API
from gradtape.core.elsewhere import MODULE, NAMES
from gradtape.errors import MissingNameError, UnsupportedError

P = ParamSpec("P")
R = TypeVar("R")

# Where else a name is looked for.
_NAMESPACES = (
    *("linalg", "nn", "special", "fft", "signal", "stats"),
    *("ndimage", "sparse", "random", "optim"),
)

# What keywords are called here, where they are NumPy's.
KEYWORDS = {
    "dim": "axis",
    "dims": "axis",
    "keepdim": "keepdims",
    "keep_dims": "keepdims",
    "unbiased": "ddof",
}
_OF_TRANSFORMS = {"in_dims": "in_axes", "out_dims": "out_axes"}

# Methods whose first argument is the axis, or a tuple of axes.
_ALONG_AXES = ("sum", "mean", "prod", "max", "min", "var", "std", "any", "all", "squeeze")


def missing_name(name: str) -> MissingNameError:
    """The error for a name that the module does not have."""
    return MissingNameError(name, _instead)


def _instead(name: str) -> str | None:
    """What to write in place of `gt.name`."""
    if name in MODULE:
        return MODULE[name]
    # By name: the core does not know what is built upon it.
    gradtape = sys.modules["gradtape"]
    for namespace in _NAMESPACES:
        if hasattr(getattr(gradtape, namespace, None), name):
            return f"use gt.{namespace}.{name}"
    if hasattr(np, name):
        return f"use np.{name}"
    return _near(name, "gt", dir(gradtape))


def missing_from(namespace: str) -> Callable[[str], object]:
    """The `__getattr__` of one of the namespaces, which says what to write instead.

    >>> gt.nn.Conv2d
    Traceback (most recent call last):
        ...
    gradtape.errors.MissingNameError: module 'gradtape.nn' has no attribute 'Conv2d'; use
    gt.nn.conv2d, a function of the parameters
    """

    def missing(name: str) -> object:
        raise MissingNameError(
            name, functools.partial(_instead_in, namespace), f"module 'gradtape.{namespace}'"
        )

    return missing


def _instead_in(namespace: str, name: str) -> str | None:
    """What to write in place of `gt.namespace.name`."""
    known = NAMES.get(namespace, {}).get(name)
    if known is not None or name.startswith("_"):
        return known
    gradtape = sys.modules["gradtape"]
    if namespace == "nn" and (layer := _layer(name, gradtape.nn.functional.__all__)):
        return f"use gt.nn.{layer}, a function of the parameters"
    if hasattr(gradtape, name):
        return f"use gt.{name}"
    if namespace in ("nn", "random", "optim"):
        return _near(name, f"gt.{namespace}", dir(getattr(gradtape, namespace)))
    if not hasattr(importlib.import_module(f"scipy.{namespace}"), name):
        return _near(name, f"gt.{namespace}", dir(getattr(gradtape, namespace)))
    theirs = f"scipy.{namespace}.{name}"
    if theirs in WITH_ARRAY_API:
        return f"use {theirs} with SCIPY_ARRAY_API=1 in the environment"
    return f"use {theirs} on arrays, without gradient, or write it with NumPy's functions"


def _layer(name: str, functions: Iterable[str]) -> str | None:
    """The function of a layer: `conv2d` of `Conv2d`, `cross_entropy` of `CrossEntropyLoss`."""
    found = {function.replace("_", ""): function for function in functions}
    whole = name.lower()
    plain = whole.removesuffix("loss")
    shorter = next((plain.removesuffix(n) for n in ("1d", "2d", "3d") if plain.endswith(n)), plain)
    return next((found[one] for one in (whole, plain, shorter) if one in found), None)


def _near(name: str, owner: str, names: Iterable[str]) -> str | None:
    near = importlib.import_module("difflib").get_close_matches(name, list(names), n=1)
    return f"did you mean {owner}.{near[0]}?" if near else None


def keyword_advice(options: Iterable[str]) -> str | None:
    """What the first of some keywords that has another name in other libraries is called here."""
    found = next((option for option in options if option in KEYWORDS), None)
    if found == "unbiased":
        return "unbiased=True is ddof=1 here, and False ddof=0, as in NumPy"
    return found and f"it is called {KEYWORDS[found]}= here, as in NumPy"


def unknown_keyword(name: str, option: str, known: list[str]) -> UnsupportedError:
    """The error for an option that a function does not have.

    Args:
        name: What the function is called.
        option: What it was given.
        known: The options that it has.
    """
    near = importlib.import_module("difflib").get_close_matches(option, known, n=1, cutoff=0.7)
    listed = ", ".join(f"{one}=" for one in known) or "arrays only"
    advice = f"did you mean {near[0]}=?" if near else "leave it out"
    return UnsupportedError(f"{name}: got {option}=, expected {listed}; {advice}")


def spelled_here(function: Callable[P, R]) -> Callable[P, R]:
    """A transform that names the keyword to use in place of another library's."""

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for option in kwargs.keys() & _OF_TRANSFORMS.keys():
            raise UnsupportedError(
                f"{function.__name__}: got {option}=; it is called {_OF_TRANSFORMS[option]}= here"
            )
        return function(*args, **kwargs)

    return checked


def position_advice(name: str, args: tuple[Any, ...]) -> str | None:
    """The end of a message: what to write in place of arguments of other libraries' methods."""
    numbers = [type(arg) is int for arg in args]
    if name == "flatten" and args and all(numbers):
        return ", expected no axes; use t.reshape(len(t), -1), or all sizes: t.reshape(2, -1, 3)"
    if name == "repeat" and len(args) > 1 and all(numbers):
        return f", expected repeats and one axis; use gt.tile(t, {args}) to repeat the whole"
    if name in _ALONG_AXES and len(args) > 1 and numbers[0]:
        if all(numbers):
            return f"; axes go into one tuple: t.{name}({args})"
        if isinstance(args[1], bool):
            return f"; flags go by name: t.{name}({args[0]}, keepdims={args[1]})"
    return None
