"""Attributes computed, and functions loaded, at first use.

`functools.cached_property` of Python 3.11 holds one lock for all objects while it computes: a child
process forked meanwhile waits for it for ever. This one holds none; threads that come at the same
time may compute twice; the first result stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from gradtape.locks import load

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - used like a decorator function
    """A method that becomes an attribute when it is first read.

    >>> class Circle:
    ...     @gt.core.lazy.lazy
    ...     def area(self):
    ...         print("computed")
    ...         return 3.0
    >>> circle = Circle()
    >>> circle.area + circle.area
    computed
    6.0
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> lazy[T] | T:
        if instance is None:
            return self
        # Found in the instance's dict from now on, before this descriptor.
        return instance.__dict__.setdefault(self._name, self._compute(instance))  # type: ignore[no-any-return]


# ---- modules that not every program uses ---------------------------------------------------------


def found_at(place: str) -> Any:
    """The object at `"module:name"`; loads the module.

    >>> gt.core.lazy.found_at("math:pi")
    3.141592653589793
    """
    module, _, name = place.partition(":")
    return getattr(load(module), name)


class Deferred:
    """A function of a module that is loaded when the function is first called.

    Args:
        place: Where it is, `"module:name"`.

    >>> gt.core.lazy.Deferred("math:sqrt")(4.0)
    2.0
    """

    def __init__(self, place: str) -> None:
        self._place = place

    @lazy
    def function(self) -> Any:
        """The function itself."""
        return found_at(self._place)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)
