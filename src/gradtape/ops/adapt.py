"""Calls written for functions of NumPy and SciPy, passed to those of gradtape that answer for them.

Our functions take the common positional arguments at the same positions, and the rest by
the same names. So nearly every call fits unchanged, which counting its arguments tells. A call that
does not, as `np.sum(a=t)` or `np.max(t, 0, None, True)`, is bound to the other signature first.
Parameters that gradtape lacks are refused here, and nowhere else.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradtape import advice
from gradtape.errors import UnsupportedError

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_NO_VALUE = np._NoValue
# Defaults that mean what they say; others are marks of "not given".
_PLAIN = (str, bool, int, float, complex, tuple)
# Names of parameters in NumPy 2.0, and their names today where they differ.
_OLD_NAMES = {"newshape": "shape", "a_min": "min", "a_max": "max"}


class Adapter:
    """A function of NumPy or SciPy and the one that answers for it.

    Args:
        original: The function of NumPy or SciPy.
        function: The gradtape function.
        name: The name of the former in messages.
        without_effect: Parameters that `function` may lack, as they do not change values.

    Attributes:
        function: The gradtape function.
        positions: How many arguments it takes by position as the original does.
        signature: The signature of the original, None if it has none.
    """

    __slots__ = (
        "_defaults", "_keywords", "_name", "_open", "_passes_on", "_without_effect", "function",
        "positions", "signature",
    )  # fmt: skip

    def __init__(
        self,
        original: Callable[..., Any],
        function: Callable[..., Any],
        name: str | None = None,
        without_effect: frozenset[str] = frozenset(),
    ) -> None:
        self.function = function
        self._name = name or qualified_name(original)
        self._without_effect = without_effect
        own = inspect.signature(function).parameters.values()
        kinds = {parameter.kind for parameter in own}
        self._keywords = frozenset(p.name for p in own if p.kind in _BY_NAME)
        try:
            self.signature: inspect.Signature | None = inspect.signature(original)
        except ValueError:  # some functions written in C have no signature
            self.signature = None
        # A function that takes anything by name decides itself what it refuses, or passes on what
        # the original does.
        open_kinds = _kinds(self.signature)
        self._passes_on = inspect.Parameter.VAR_KEYWORD in kinds & open_kinds
        self._open = inspect.Parameter.VAR_KEYWORD in kinds - open_kinds
        # What only ours takes is not part of the original's interface.
        self._keywords &= _names_taken(self.signature, self._keywords)
        if inspect.Parameter.VAR_POSITIONAL in kinds or self.signature is None:
            self.positions = sys.maxsize
        else:
            self.positions = _common(list(self.signature.parameters.values()), list(own))
        self._defaults = _other_defaults(self.signature, own, without_effect)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer a call of the original function."""
        fits = len(args) <= self.positions and not self._defaults
        for name, value in kwargs.items():
            fits &= value is not _NO_VALUE and (name in self._keywords or self._open)
        if not fits and self.signature is not None:
            args, kwargs = self._bound(self.signature, args, kwargs)
        return self.function(*args, **kwargs)

    def _bound(
        self, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as the gradtape function takes them."""
        by_position: list[Any] = []
        by_name: dict[str, Any] = {}
        more: dict[str, Any] = {}
        try:
            given = self._defaults | signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            advice.raise_misfit(self._name, signature.parameters, kwargs, error)
        for place, parameter in enumerate(signature.parameters.values()):
            name = parameter.name
            if name not in given or given[name] is _NO_VALUE:
                continue
            value = given[name]
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                by_position += value
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                more = value
            elif parameter.kind in _BY_POSITION and place == len(by_position) < self.positions:
                by_position.append(value)
            elif name in self._keywords or (
                name not in self._without_effect and not _is_default(value, parameter.default)
            ):
                by_name[name] = value
        unknown = by_name if self._passes_on else by_name | more
        refused = [f"{name}=" for name in unknown if name not in self._keywords]
        if refused and not self._open:
            raise UnsupportedError(
                f"{self._name}: got {', '.join(refused)}; gradtape does not take it on a tensor; "
                "leave it out and apply it to the argument or to the result"
            )
        return tuple(by_position), by_name | more


def _common(theirs: list[inspect.Parameter], ours: list[inspect.Parameter]) -> int:
    """How many leading arguments mean the same by position in both signatures."""
    count = 0
    for one, other in zip(theirs, ours, strict=False):
        if one.kind not in _BY_POSITION or other.kind not in _BY_POSITION:
            break
        name = _OLD_NAMES.get(one.name, one.name)
        if other.kind is not inspect.Parameter.POSITIONAL_ONLY and name != other.name:
            break
        count += 1
    return count


def _kinds(signature: inspect.Signature | None) -> set[Any]:
    """The kinds of parameters."""
    return set() if signature is None else {p.kind for p in signature.parameters.values()}


def _names_taken(signature: inspect.Signature | None, names: frozenset[str]) -> frozenset[str]:
    """Those of the names that a function of this signature takes."""
    if signature is None or inspect.Parameter.VAR_KEYWORD in _kinds(signature):
        return names
    return names & frozenset(signature.parameters)


def _other_defaults(
    theirs: inspect.Signature | None,
    ours: Iterable[inspect.Parameter],
    without_effect: frozenset[str],
) -> dict[str, Any]:
    """The defaults of the original for parameters that have others in gradtape."""
    known = {} if theirs is None else theirs.parameters
    return {
        parameter.name: known[parameter.name].default
        for parameter in ours
        if parameter.name in known.keys() - without_effect
        and isinstance(known[parameter.name].default, _PLAIN)
        and not _is_default(known[parameter.name].default, parameter.default)
    }


def _is_default(value: Any, default: Any) -> bool:
    """Whether an argument has the same effect as leaving it out."""
    if value is default or (value is None and default is _NO_VALUE):
        return True
    return isinstance(value, _PLAIN) and isinstance(default, _PLAIN) and value == default


def qualified_name(function: Any) -> str:
    """The usual name of a function of NumPy or SciPy: np.linalg.eigh, scipy.special.j0."""
    name: str = function.__name__
    if isinstance(function, np.ufunc):
        if getattr(np, name, None) is function:
            return f"np.{name}"
        special = sys.modules.get("scipy.special")
        return f"scipy.special.{name}" if getattr(special, name, None) is function else name
    module = str(getattr(function, "__module__", None) or "numpy")
    if getattr(np, name, None) is function or "._" in module:
        module = "numpy"
    return f"{module.replace('numpy', 'np', 1)}.{name}"
