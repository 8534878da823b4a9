"""Register classes as containers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gradtape import containers
from gradtape.errors import ArgumentError, a_type

C = TypeVar("C", bound=type)


def register(
    cls: C,
    flatten: Callable[[Any], tuple[Any, ...]] | None = None,
    unflatten: Callable[[Any, Any], Any] | None = None,
) -> C:
    """Make a class a container of arrays, as lists and dicts are: a function, or a decorator.

    Dataclasses and attrs classes are containers without it, and so are named tuples. It may be
    called for them, too: the registration then takes precedence.

    Args:
        cls: The class; its subclasses are not included.
        flatten: Returns a pair: what an instance holds, as a sequence of arrays or of containers,
            and the rest of it, which has to be hashable and is compared by `==`. A third entry may
            name the attributes that hold the former, for messages. Without it, the method
            `tree_flatten` of the class does that.
        unflatten: Gets that rest and a sequence like the first, and returns an instance. What it
            is given instead of arrays may be tensors, numbers or None. Without it, the class method
            `tree_unflatten` does that.

    Returns:
        The class.

    Raises:
        ArgumentError: It is not a class, or one that is a container by itself, such as `list`; the
            others are not functions, or are missing.

    >>> class Line:
    ...     def __init__(self, slope, offset):
    ...         self.slope, self.offset = slope, offset
    >>> _ = gt.tree.register(
    ...     Line,
    ...     lambda line: ((line.slope, line.offset), None, ("slope", "offset")),
    ...     lambda _, parts: Line(*parts),
    ... )
    >>> gt.grad(lambda line: line.slope * 3.0 + line.offset)(Line(2.0, 1.0)).slope
    np.float64(3.0)
    >>> @gt.tree.register
    ... class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    ...
    ...     def tree_flatten(self):
    ...         return (self.x, self.y), None
    ...
    ...     @classmethod
    ...     def tree_unflatten(cls, rest, parts):
    ...         return cls(*parts)
    >>> gt.tree.leaves([Point(1.0, 2.0), 3.0])
    [1.0, 2.0, 3.0]
    """
    if not isinstance(cls, type) or getattr(cls, containers.ARRAYS_HAVE, None):
        got = f"{cls.__name__}, a class of arrays" if isinstance(cls, type) else a_type(cls)
        raise ArgumentError(f"tree.register: got {got}, expected a class of containers")
    found = cls  # for type checkers, which know no methods of it
    if flatten is None and unflatten is None:
        flatten, unflatten = _methods(found)
    if not (callable(flatten) and callable(unflatten)):
        raise ArgumentError(
            f"tree.register: got {a_type(flatten)} and {a_type(unflatten)} as flatten and "
            "unflatten, expected functions"
        )
    take_apart = flatten

    def take(instance: Any) -> tuple[Any, ...]:
        children, rest, *names = take_apart(instance)
        return children, rest, *map(tuple, names)

    try:
        containers.register(cls, take, unflatten)
    except ValueError:
        _unregister(cls)
        containers.register(cls, take, unflatten)
    return cls


def _methods(cls: Any) -> tuple[Any, Any]:
    try:
        return cls.tree_flatten, cls.tree_unflatten
    except AttributeError:
        raise ArgumentError(
            f"tree.register: got {cls.__name__} alone, expected flatten and unflatten, or a class "
            "with the methods tree_flatten and tree_unflatten; dataclasses are containers as they "
            "are"
        ) from None


def _unregister(cls: type) -> None:
    try:
        containers.unregister(cls)
    except ValueError:
        raise ArgumentError(
            f"tree.register: got {cls.__name__}, which is a container by itself; register a "
            "subclass"
        ) from None
