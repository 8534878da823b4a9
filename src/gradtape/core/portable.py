"""Functions that are objects, to be pickled and copied as functions are.

Python pickles a function by its name and does not copy it at all. An object made from a function by
`jit` or `grad` is pickled by its name too if it has one, as a decorated function does; otherwise it
is pickled as the function it was made from, and copied only if that is.
"""

from __future__ import annotations

import copy
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from gradtape.errors import UnknownSizeError


class Portable:
    """Base of functions that are objects."""

    __slots__ = ()

    def made_by(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """A function at the top of a module that makes this, and its arguments."""
        raise NotImplementedError

    def __reduce__(self) -> str | tuple[Any, ...]:
        return known_name(self) or self.made_by()

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        make, args = self.made_by()
        copied = copy.deepcopy(args, memo)
        return self if copied is args else make(*copied)


def known_name(function: Any) -> str | None:
    """The name by which a function is found in its module; None if it is not the one found."""
    name = getattr(function, "__qualname__", None)
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    if not isinstance(name, str) or found is None:
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is function else None


class Transformed(Portable):
    """A function that a transform made of another one: `gt.grad(f)`.

    As with compiled functions, Python finds `__call__` in the object and calls it without any code
    in between.
    """

    __slots__ = ("__call__", "__dict__", "__weakref__", "_made_by")
    __call__: Callable[..., Any]

    def __init__(
        self,
        call: Callable[..., Any],
        transform: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> None:
        """Make it of what runs when it is called, and of the call that makes it again.

        Args:
            call: What runs when it is called.
            transform: The function at the top of a module that makes this.
            args: Its arguments, the function that was transformed first.
            options: Those by name.
        """
        function = args[0]
        # Attributes set on a function are the user's; those of an object belong to the object.
        updated = ("__dict__",) if isinstance(function, types.FunctionType) else ()
        functools.update_wrapper(self, function, updated=updated)

        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                return call(*args, **kwargs)
            except UnknownSizeError as error:
                return error.deferred(call, args, kwargs)

        self.__call__ = run
        self._made_by = transform, args, options

    def made_by(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        transform, args, options = self._made_by
        return functools.partial(transform, **options), args

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return bound(self, self.__wrapped__, instance)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        transform, (function, *_), _ = self._made_by
        return f"<{transform.__name__} of {getattr(function, '__qualname__', function)}>"


def bound(made: Any, function: Any, instance: Any) -> Any:
    """The result of looking `made` up on an instance: a method if the function would be one."""
    if instance is None or isinstance(function, staticmethod) or not hasattr(function, "__get__"):
        return made
    return types.MethodType(made, instance)
