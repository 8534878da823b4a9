"""Instances of dataclasses and attrs classes as containers: taken apart by fields, and made again.

Fields marked `metadata={"static": True}` are no leaves. They belong to the structure, and have to
be hashable. An instance is put together without its `__init__`, so that no validator or converter
of users sees a tensor, an axis or a None in place of the array it expects.
"""

from __future__ import annotations

import dataclasses
import enum
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, a_type

_STATIC = "static"
HOW_TO_MARK = f'dataclasses.field(metadata={{"{_STATIC}": True}})'
_new = object.__new__
_set = object.__setattr__


class ClassFields:
    """The fields of one class: those that hold leaves, and static ones.

    Attributes:
        names: The fields that hold leaves or containers of them.
        statics: The others.
    """

    __slots__ = ("_kind", "names", "statics")

    def __init__(self, kind: type, names: tuple[str, ...], statics: tuple[str, ...]) -> None:
        self._kind, self.names, self.statics = kind, names, statics

    def take(self, instance: Any) -> tuple[list[Any], Any, tuple[str, ...]]:
        """What an instance holds, the rest of it, and the attributes that hold the former."""
        try:
            children = [getattr(instance, name) for name in self.names]
        except AttributeError:
            return self._take_set(instance)
        return children, Rest(self, self.names, instance) if self.statics else None, self.names

    def _take_set(self, instance: Any) -> tuple[list[Any], Any, tuple[str, ...]]:
        """The same, if some fields are not set, such as those that are not arguments."""
        names = tuple([name for name in self.names if hasattr(instance, name)])
        return [getattr(instance, name) for name in names], Rest(self, names, instance), names

    def make(self, rest: Rest | None, children: Any) -> Any:
        """An instance made of other children."""
        made: Any = _new(self._kind)
        # Classes may be frozen, have slots, or check what is assigned.
        for name, child in zip(rest.names if rest else self.names, children, strict=True):
            _set(made, name, child)
        if rest:
            for name, value in rest.values.items():
                _set(made, name, value)
        return made

    def name_of(self, field: str) -> str:
        """A field in messages: `Model.sizes`."""
        return f"{self._kind.__qualname__}.{field}"


class Rest:
    """The part of an instance that is not leaves: which fields are set, and the static ones.

    Attributes:
        names: The fields that hold leaves.
        values: The static fields by name.
    """

    __slots__ = ("_hash", "_key", "names", "values")

    def __init__(self, fields: ClassFields, names: tuple[str, ...], instance: Any) -> None:
        self.names = names
        self.values = {
            name: getattr(instance, name) for name in fields.statics if hasattr(instance, name)
        }
        try:
            self._key = tuple([(name, typed_key(value)) for name, value in self.values.items()])
            self._hash = hash((names, self._key))
        except TypeError:
            raise _unhashable(fields, self.values) from None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Rest)
            and self._hash == other._hash
            and self.names == other.names
            and self._key == other._key
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return ", ".join([f"{name}={value!r}" for name, value in self.values.items()])


def _unhashable(fields: ClassFields, values: dict[str, Any]) -> ArgumentError:
    """The error for the first static field that cannot be part of a structure."""
    for name, value in values.items():
        try:
            hash(typed_key(value))
        except TypeError:
            advice = "a tuple in place of a list, frozen=True for a dataclass"
            if hasattr(value, "dtype"):
                advice = "arrays and tensors belong in fields that are not static"
            return ArgumentError(
                f"{fields.name_of(name)}: got {a_type(value)} in a static field, expected "
                f"something that can be hashed; {advice}"
            )
    raise AssertionError("all of them can be hashed")


def typed_key(value: Any) -> tuple[Any, ...]:
    """A key with the type: 1, 1.0 and True are equal, as are 0.0 and -0.0, but differ here.

    Raises:
        TypeError: It is a tensor, which is known by its place in memory, not by its values.
    """
    kind = type(value)
    if kind is tuple:
        return kind, tuple(map(typed_key, value))
    # By their bits: NaN is not even equal to itself. Scalars of kind void are parts of arrays.
    if kind is float or kind is complex or (isinstance(value, np.generic) and kind is not np.void):
        number = np.asarray(value)
        # Some bytes of a long double have no meaning.
        bits = repr(value) if number.dtype.char in "gG" else number.tobytes()
        return kind, number.dtype, bits
    if getattr(kind, "__array_ufunc__", None) is not None:
        raise TypeError(f"unhashable: {a_type(value)}")
    return kind, value


def has_fields(kind: type) -> bool:
    """Whether a class is a dataclass or an attrs class."""
    return hasattr(kind, "__dataclass_fields__") or hasattr(kind, "__attrs_attrs__")


def fields_of(instance: Any) -> ClassFields | None:
    """How to take an instance apart; None if its class is no dataclass or attrs class.

    Neither are enumerations, and classes that build on a built-in one, which cannot be made without
    it. A class with the fields `shape` and `dtype` describes an array, and is a leaf like one.
    """
    kind: Any = type(instance)
    if not has_fields(kind) or isinstance(instance, enum.Enum) or not _is_made_by_object(kind):
        return None
    own = dataclasses.is_dataclass(kind)
    fields: Any = dataclasses.fields(kind) if own else kind.__attrs_attrs__
    names = [field.name for field in fields]
    if {"shape", "dtype"}.issubset(names):
        return None
    statics = tuple([field.name for field in fields if field.metadata.get(_STATIC)])
    return ClassFields(kind, tuple([name for name in names if name not in statics]), statics)


def _is_made_by_object(kind: type) -> bool:
    # What Python code defines is in a static method; `object` itself comes last.
    makers = [vars(base).get("__new__") for base in kind.__mro__[:-1]]
    return not any(isinstance(maker, BuiltinFunctionType) for maker in makers)
