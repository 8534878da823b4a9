"""Recipes of modules: what is left of a module when its arrays are taken out, to make another one.

A recipe says where the arrays go, and holds everything else. It is compared in two ways. Trees of
parameters match if classes and names agree: gradients taken in training fit a model in `eval`. A
compiled function depends on all of it, flags and sizes included.

An array that occurs in two places, as tied weights do, is one leaf, and so is what is put back.

A module keeps the recipe it was made of, or taken apart by. The next time, the recipe is only
compared with the module, attribute by attribute, which takes a fifth of the time of making one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from gradtape import containers
from gradtape.class_fields import typed_key
from gradtape.core.level import LEAVES, Leaf as GradientLeaf
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, a_type
from gradtape.nn.watched import Watched

# Kinds of what a module has in its attributes. Static ones are not noted.
PARAMETER, BUFFER, MODULE, CONTAINER = "parameter", "buffer", "module", "container"
STATIC = "static"
# Where a module keeps the kinds of its attributes by name, the names of frozen parameters, what is
# watched of it, and recipes by view. Modules share the first two, which are never changed.
KINDS, FROZEN, WATCHED, RECIPES = "_kinds", "_frozen", "_watched", "_recipes"
# The names of parameters in lists and dicts, in a module that was put together: numbers and arrays
# may be in their places, which tell nobody what they are.
INSIDE = "_inside"
_OWN = frozenset({KINDS, FROZEN, WATCHED, RECIPES, INSIDE})
_MISSING = object()

Entry = tuple[str, str, Any]  # kind, dotted name within the module, value


def entries(module: Any) -> Iterator[Entry]:
    """What a module holds directly: parameters, buffers, then modules, in order of assignment.

    Modules and tensors in lists, tuples and dicts count as held by the module; such tensors are
    parameters.
    """
    held = vars(module)
    modules: list[Entry] = []
    buffers: list[Entry] = []
    for name, kind in held[KINDS].items():
        value = held[name]
        if kind is CONTAINER:
            for inner_kind, inner_name, inner in _contained(value, name, held.get(INSIDE, ())):
                if inner_kind is MODULE:
                    modules.append((MODULE, inner_name, inner))
                else:
                    yield PARAMETER, inner_name, inner
        elif value is None:
            continue
        elif kind is PARAMETER:
            yield kind, name, value
        else:
            (modules if kind is MODULE else buffers).append((kind, name, value))
    yield from buffers
    yield from modules


def _contained(container: Any, name: str, inside: Collection[str]) -> Iterator[Entry]:
    """Modules and tensors in nested lists, tuples and dicts."""
    items = container.items() if isinstance(container, dict) else enumerate(container)
    for key, value in items:
        own_name = f"{name}.{key}"
        kind = _kind_of(value, own_name, inside)
        if kind is CONTAINER:
            yield from _contained(value, own_name, inside)
        elif kind is not STATIC:
            yield kind, own_name, value


def _kind_of(value: Any, name: str, inside: Collection[str]) -> str:
    """The kind of something in a list, tuple or dict."""
    if isinstance(value, containers.Members):
        return MODULE
    if name in inside or isinstance(value, Tensor):
        return PARAMETER
    return CONTAINER if isinstance(value, list | tuple | dict) else STATIC


def is_frozen(module: Any, name: str, value: Any) -> bool:
    """Whether a parameter is not to be trained: it was frozen, or switched off as a tensor.

    Parameters that a compiled function returned are plain tensors, and not frozen. While a function
    is traced or batched, a frozen parameter is recorded as everything else is, and stays frozen.
    """
    # Trees of gradients and states have other things in their places than tensors.
    record = getattr(value, "record", None)
    if isinstance(record, GradientLeaf) and record.segment is LEAVES:  # it was switched on
        return False
    if name in vars(module)[FROZEN]:
        return True
    return record is None and getattr(value, "_off", None) is not None


# ---- taking apart -------------------------------------------------------------------------------


class Taking:
    """One module on its way apart.

    Attributes:
        leaves: The arrays of the view, each once.
        names: Their names.
    """

    def __init__(self, module: Any, view: str) -> None:
        self.leaves: list[Any] = []
        self.names: list[str] = []
        self._all = view == containers.ALL_ARRAYS
        self._known: dict[int, Part] = {}
        self._modules: dict[int, Known] = {}
        self.recipe = self._module(module, "")

    def _module(self, module: Any, prefix: str) -> Part:
        known = self._modules.get(id(module))
        if known is not None:
            return known
        self._modules[id(module)] = Known(len(self._modules))
        held = vars(module)
        kinds: dict[str, str] = held[KINDS]
        frozen: set[str] = set()
        inside = set(held.get(INSIDE, ()))
        parts = [
            (name, self._part(module, kind, held[name], name, prefix, frozen, inside))
            for name, kind in kinds.items()
        ]
        statics = {n: value for n, value in held.items() if n not in kinds and n not in _OWN}
        training = held[WATCHED].is_training()
        names = frozenset(frozen), frozenset(inside)
        return ModulePart(type(module), kinds, tuple(parts), *names, training, statics)

    def _part(
        self,
        module: Any,
        kind: str,
        value: Any,
        name: str,
        prefix: str,
        frozen: set[str],
        inside: set[str],
    ) -> Part:
        if value is None:
            return Static(None)
        if kind is MODULE:
            return self._module(value, f"{prefix}{name}.")
        if kind is CONTAINER:
            mapping = isinstance(value, dict)
            parts = []
            for key, item in value.items() if mapping else enumerate(value):
                own_name = f"{name}.{key}"
                own_kind = _kind_of(item, own_name, inside)
                if own_kind is PARAMETER:
                    inside.add(own_name)
                known = module, own_kind, item, own_name, prefix, frozen, inside
                parts.append(self._part(*known))
            made = tuple(parts)
            return (
                MapPart(type(value), tuple(value), made)
                if mapping
                else SequencePart(type(value), made)
            )
        if kind is STATIC:
            return Static(value)
        trains = kind is PARAMETER and not is_frozen(module, name, value)
        if kind is PARAMETER and not trains:
            frozen.add(name)
        part = self._known.get(id(value))
        if part is None:
            if trains or self._all:
                part = Leaf(len(self.leaves), name, kind is PARAMETER, trains)
                self.leaves.append(value)
                self.names.append(f"{prefix}{name}")
            else:
                part = Shared(value)
            self._known[id(value)] = part
        return part


# ---- putting together ---------------------------------------------------------------------------


class Making:
    """One module on its way together."""

    def __init__(self, leaves: Sequence[Any]) -> None:
        self.leaves = leaves
        self.modules: list[Any] = []


class Matching:
    """One module on its way apart by a recipe that is known already."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.modules: list[Any] = []


class Part:
    """A part of a recipe."""

    __slots__ = ()

    def match(self, value: Any, module: Any, matching: Matching) -> bool:
        """Whether the part describes an object in a module; adds its leaves."""
        raise NotImplementedError

    def make(self, making: Making) -> Any:
        """The object that belongs here."""
        raise NotImplementedError

    def key(self) -> Any:
        """A key that is equal for parts that code compiled for one of them serves, too."""
        raise NotImplementedError

    def names(self) -> Any:
        """A key that is equal for parts with the same parameters."""
        return None


class Leaf(Part):
    """An array of the view, by its number.

    Args:
        number: Its place among the leaves.
        name: Its name in its module.
        parameter: Whether it is a parameter.
        trains: Whether it is trained.
    """

    __slots__ = ("name", "number", "parameter", "trains")

    def __init__(self, number: int, name: str, parameter: bool, trains: bool) -> None:
        self.number, self.name, self.parameter, self.trains = number, name, parameter, trains

    def match(self, value: Any, module: Any, matching: Matching) -> bool:
        leaves = matching.leaves
        if self.number < len(leaves):  # tied to an earlier one
            return value is leaves[self.number]
        if not isinstance(value, Tensor):
            return False
        if self.parameter and is_frozen(module, self.name, value) is self.trains:
            return False
        leaves.append(value)
        return True

    def make(self, making: Making) -> Any:
        return making.leaves[self.number]

    def key(self) -> Any:
        return self.number

    names = key


class Shared(Part):
    """A tensor that does not belong to the view: all modules made of the recipe have the same."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def match(self, value: Any, module: Any, matching: Matching) -> bool:
        return value is self.tensor

    def make(self, making: Making) -> Any:
        return self.tensor


class Known(Part):
    """A module that occurs further in front, by its number."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def match(self, value: Any, module: Any, matching: Matching) -> bool:
        return value is matching.modules[self.number]

    def make(self, making: Making) -> Any:
        return making.modules[self.number]

    def key(self) -> Any:
        return "known", self.number

    names = key


class Static(Part):
    """Anything that is no array."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def match(self, value: Any, module: Any, matching: Matching) -> bool:
        return value is self.value

    def make(self, making: Making) -> Any:
        return self.value

    def key(self) -> Any:
        return static_key(self.value)


class SequencePart(Part):
    """A list or tuple."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: Any, parts: tuple[Part, ...]) -> None:
        self.kind, self.parts = kind, parts

    def match(self, value: Any, module: Any, matching: Matching) -> bool:
        if type(value) is not self.kind or len(value) != len(self.parts):
            return False
        pairs = zip(self.parts, value, strict=True)
        return all(part.match(item, module, matching) for part, item in pairs)

    def make(self, making: Making) -> Any:
        made = [part.make(making) for part in self.parts]
        if hasattr(self.kind, "_make"):  # a named tuple
            return self.kind._make(made)
        return self.kind(made)

    def key(self) -> Any:
        return self.kind, *[part.key() for part in self.parts]

    def names(self) -> Any:
        return self.kind, *[part.names() for part in self.parts]


class MapPart(Part):
    """A dict."""

    __slots__ = ("keys", "kind", "parts")

    def __init__(self, kind: Any, keys: tuple[Any, ...], parts: tuple[Part, ...]) -> None:
        self.kind, self.keys, self.parts = kind, keys, parts

    def match(self, value: Any, module: Any, matching: Matching) -> bool:
        if type(value) is not self.kind or tuple(value) != self.keys:
            return False
        pairs = zip(self.parts, value.values(), strict=True)
        return all(part.match(item, module, matching) for part, item in pairs)

    def make(self, making: Making) -> Any:
        pairs = zip(self.keys, self.parts, strict=True)
        return self.kind((key, part.make(making)) for key, part in pairs)

    def key(self) -> Any:
        return self.kind, self.keys, *[part.key() for part in self.parts]

    def names(self) -> Any:
        return self.kind, self.keys, *[part.names() for part in self.parts]


class ModulePart(Part):
    """A module: its class, the parts with arrays in them, and all other attributes."""

    __slots__ = ("frozen", "inside", "kind", "kinds", "parts", "statics", "training")

    def __init__(
        self,
        kind: type,
        kinds: dict[str, str],
        parts: tuple[tuple[str, Part], ...],
        frozen: frozenset[str],
        inside: frozenset[str],
        training: bool,
        statics: dict[str, Any],
    ) -> None:
        self.kind, self.kinds, self.parts = kind, kinds, parts
        self.frozen, self.inside = frozen, inside
        self.training, self.statics = training, statics

    def match(self, value: Any, module: Any, matching: Matching) -> bool:
        if type(value) is not self.kind:
            return False
        held = vars(value)
        # Besides statics and parts, there are three entries of its own, or up to five.
        count = len(held) - (RECIPES in held) - (INSIDE in held) - 3
        if (
            count != len(self.statics) + len(self.parts)
            or held[WATCHED].is_training() != self.training
        ):
            return False
        if held[KINDS] is not self.kinds and held[KINDS] != self.kinds:
            return False
        matching.modules.append(value)
        for name, static in self.statics.items():
            if held.get(name, _MISSING) is not static:
                return False
        return all(part.match(held[name], value, matching) for name, part in self.parts)

    def make(self, making: Making) -> Any:
        # Neither `__init__` nor `__setattr__`: what is put in may be anything.
        made: Any = object.__new__(self.kind)
        making.modules.append(made)
        held = vars(made)
        held.update(self.statics)
        held[KINDS], held[FROZEN] = self.kinds, self.frozen
        held[WATCHED] = Watched(self.training)
        if self.inside:
            held[INSIDE] = self.inside
        for name, part in self.parts:
            held[name] = part.make(making)
        return made

    def key(self) -> Any:
        statics = []
        for name, value in self.statics.items():
            try:
                statics.append((name, static_key(value)))
            except TypeError:
                raise _unhashable(self.kind, name, value) from None
        parts = [(name, part.key()) for name, part in self.parts]
        kinds = tuple(self.kinds.items())
        return self.kind, kinds, self.frozen, self.training, tuple(statics), tuple(parts)

    def names(self) -> Any:
        found = [(name, part.names()) for name, part in self.parts]
        return self.kind, tuple([pair for pair in found if pair[1] is not None])


def static_key(value: Any) -> Any:
    """A key of a static attribute, with types; lists, dicts and sets go by what is in them.

    Raises:
        TypeError: It cannot be hashed.
    """
    if isinstance(value, list | tuple):
        return type(value), *map(static_key, value)
    if isinstance(value, dict):
        return type(value), *[(static_key(k), static_key(v)) for k, v in value.items()]
    if isinstance(value, set):
        return set, frozenset(map(static_key, value))
    key = typed_key(value)
    hash(key)
    return key


def _unhashable(kind: type, name: str, value: Any) -> ArgumentError:
    return ArgumentError(
        f"{kind.__name__}.{name}: got {a_type(value)}, which cannot be hashed, in an attribute of "
        "a module that is given to a compiled function, expected numbers, strings, functions or "
        "containers of them; the code depends on it. Arrays are kept by "
        f"self.register_buffer({name!r}, array)"
    )


class Rest:
    """The recipe as the part of a container that is not leaves, in one of the views.

    Attributes:
        names: The names of the leaves.
    """

    __slots__ = ("_hash", "_key", "_recipe", "_view", "names")

    def __init__(self, recipe: Part, view: str, names: Sequence[str]) -> None:
        self._recipe, self._view, self.names = recipe, view, tuple(names)
        self._key: Any = None
        self._hash: int | None = None

    def leaves(self, module: Any) -> list[Any] | None:
        """The leaves of a module that has this recipe; None for another one."""
        matching = Matching()
        found = matching.leaves
        if not self._recipe.match(module, None, matching) or len(set(map(id, found))) != len(found):
            return None
        return found

    def make(self, leaves: Sequence[Any]) -> Any:
        """A module with these leaves."""
        made = self._recipe.make(Making(leaves))
        vars(made)[RECIPES] = {self._view: self}
        return made

    @property
    def key(self) -> Any:
        """What is compared."""
        if self._key is None:
            whole = self._view == containers.ALL_ARRAYS
            self._key = self._recipe.key() if whole else self._recipe.names()
        return self._key

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Rest) or hash(self) != hash(other):
            return False
        if self.key is other.key:
            return True
        if self.key != other.key:
            return False
        other._key = self._key  # the next comparison takes no time
        return True

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.key)
        return self._hash

    def __deepcopy__(self, memo: Any) -> Rest:
        return self

    def __repr__(self) -> str:
        return "…"


def taken_apart(module: Any, view: str) -> tuple[list[Any], Rest]:
    """The arrays of a module in a view, and the recipe to put it together again."""
    held = vars(module)
    known: Rest | None = held.get(RECIPES, {}).get(view)
    leaves = None if known is None else known.leaves(module)
    if known is not None and leaves is not None:
        return leaves, known
    taking = Taking(module, view)
    rest = Rest(taking.recipe, view, taking.names)
    if not _may_change(taking.recipe):
        held[RECIPES] = {**held.get(RECIPES, {}), view: rest}
    return taking.leaves, rest


def _may_change(part: Part) -> bool:
    """Whether a recipe has static parts whose content may change, unseen by `match`."""
    if isinstance(part, Static):
        return _changes(part.value)
    if isinstance(part, ModulePart):
        return any(map(_changes, part.statics.values())) or any(
            _may_change(inner) for _, inner in part.parts
        )
    return isinstance(part, SequencePart | MapPart) and any(map(_may_change, part.parts))


def _changes(value: Any) -> bool:
    """Whether the content of something static may change while it stays the same object."""
    return isinstance(value, set | list | dict) or (
        isinstance(value, tuple) and any(map(_changes, value))
    )
