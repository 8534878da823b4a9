"""Nested containers of arrays: the small part of optree that gradtape uses.

optree is loaded when the first container comes: most arguments are a single array, which needs no
optree, and importing gradtape is cheaper without it.

Dataclasses and attrs classes are containers of their fields. They need not be registered: optree
takes an instance of a class it does not know for a leaf, and leaves are looked at before they are
returned.

There are two views of a container, which differ for objects such as modules only (`Members`):
derivatives and optimizers see its parameters, while buffers travel along unseen; what compiles or
batches a function sees all arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import numpy as np

from gradtape.class_fields import HOW_TO_MARK, fields_of, has_fields
from gradtape.errors import ArgumentError, a_type
from gradtape.locks import Once, load, loading, once

# An optree.PyTreeSpec, or SINGLE.
Structure = Any


class _Single:
    """The structure of a value that is a leaf itself."""

    num_leaves = 1

    def __repr__(self) -> str:
        return "PyTreeSpec(*)"


SINGLE = _Single()


ARRAYS_HAVE = "__array_ufunc__"
# The namespaces in which classes are registered with optree: one for each view of a container.
NAMESPACE = "gradtape"
ALL_ARRAYS = "gradtape.all_arrays"


class Members:
    """Base of objects that are containers of parameters, and hold other arrays besides.

    A subclass is a container by its own methods, in both views.
    """

    __slots__ = ("__weakref__",)

    def take(self, view: str) -> tuple[Sequence[Any], Any, tuple[str, ...]]:
        """The leaves in a view, the rest, and the names of the leaves; see `register`."""
        raise NotImplementedError

    @classmethod
    def make(cls, rest: Any, children: Sequence[Any]) -> Any:
        """An object like the one that `rest` comes from, with other leaves."""
        raise NotImplementedError

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """The arrays besides parameters, which what it computes may write to, by name."""
        raise NotImplementedError


# Gradients that were made in a trace: they hold the buffers of the model, and are not the model.
_GRADIENTS: WeakSet[Members] = WeakSet()


def note_gradients(tree: Any) -> None:
    """Note that the objects of class `Members` in containers are gradients."""
    _GRADIENTS.update(members_in(tree))


def all_but_gradients(tree: Any) -> list[Any]:
    """The arrays in nested containers, without those in gradients that were noted."""

    def is_noted(node: Any) -> bool:
        return isinstance(node, Members) and node in _GRADIENTS

    flatten(tree, view=ALL_ARRAYS)  # makes new classes known
    return _optree.tree_flatten(tree, is_noted, namespace=ALL_ARRAYS)[0]  # type: ignore[no-any-return]


def members_in(tree: Any) -> list[Members]:
    """The objects of class `Members` in nested containers, each once, in order."""
    found: dict[int, Members] = {}

    def note(node: Any) -> bool:
        if isinstance(node, Members):
            found[id(node)] = node
        return False

    flatten(tree, note)
    return list(found.values())


ndarray = np.ndarray
# Classes that are known to be no containers. Only those of arrays are added, which are few: a class
# in here is never freed.
_KINDS: Once[bool] = Once()
_LEAVES: dict[Any, bool] = _KINDS.made
_LEAVES.update(
    dict.fromkeys([ndarray, float, int, bool, complex, str, np.float64, np.float32], False)
)


@once
def loaded() -> Any:
    """The module optree."""
    return load("optree")


class _Optree:
    """Functions of optree, which are attributes once they were asked for."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(loaded(), name)
        setattr(self, name, found)
        return found


_optree = _Optree()


# ---- classes that are containers ----------------------------------------------------------------


def register(
    kind: type, take: Callable[[Any], tuple[Any, ...]], make: Callable[[Any, Any], Any]
) -> None:
    """Make a class a container.

    Args:
        kind: The class.
        take: Returns the leaves of an instance, the rest of it, which must be hashable, and the
            attributes that hold the leaves.
        make: Returns an instance made of that rest and of other leaves.
    """
    for view in (NAMESPACE, ALL_ARRAYS):
        _register(kind, take, make, view)


def _register(
    kind: type, take: Callable[[Any], tuple[Any, ...]], make: Callable[[Any, Any], Any], view: str
) -> None:
    # optree has a lock of its own, which must not be held in a child process.
    with loading():
        register_node = loaded().register_pytree_node
        entry = loaded().GetAttrEntry
        register_node(kind, take, make, path_entry_type=entry, namespace=view)


def unregister(kind: type) -> None:
    """Take a registration back.

    Raises:
        ValueError: The class is a container by itself.
    """
    with loading():
        for view in (NAMESPACE, ALL_ARRAYS):
            loaded().unregister_pytree_node(kind, namespace=view)


def _is_new_container(leaf: Any) -> bool:
    """Whether a leaf turns out to be an instance of a class that is a container from now on."""
    kind: Any = type(leaf)
    if getattr(kind, ARRAYS_HAVE, None):
        return _KINDS.find(kind, lambda: False)
    if isinstance(leaf, Members):
        for view in (NAMESPACE, ALL_ARRAYS):
            with suppress(ValueError):  # another thread was faster
                _register(kind, functools.partial(kind.take, view=view), kind.make, view)
        return True
    fields = fields_of(leaf)
    if fields is None:
        return False
    with suppress(ValueError):
        register(kind, fields.take, fields.make)
    return True


class _Objects:
    """What becomes of arrays of objects; `gradtape.ops` sets it to `ops.joined.joined`."""

    def __init__(self) -> None:
        self.join: Callable[[Any], Any] = lambda array: array


objects = _Objects()
_OBJECTS = np.dtype(object)

# ---- taking apart, and putting together ---------------------------------------------------------


def flatten(
    tree: Any,
    note: Callable[[Any], bool] | None = None,
    *,
    view: str = NAMESPACE,
    join: bool = True,
) -> tuple[list[Any], Structure]:
    """Take nested lists, tuples, dicts, dataclasses and other containers apart.

    Args:
        tree: The containers, or a single leaf.
        note: Called for every container and leaf, the outermost first; says whether it is to be
            treated as a leaf. With classes that are met for the first time, it is called again.
        view: `ALL_ARRAYS` for functions that take buffers of modules as arguments, too.
        join: Whether arrays of objects that hold tensors become leaves that are one tensor.

    Returns:
        The leaves, and the structure that puts them back.

    Raises:
        ArgumentError: A container holds itself.
    """
    kind = type(tree)
    if kind is ndarray or kind is float:
        whole = kind is float or tree.dtype is not _OBJECTS or not join
        return [tree if whole else objects.join(tree)], SINGLE
    # A class that only claims operators with arrays for itself sets `__array_ufunc__` to None.
    if kind is not tuple and kind is not dict and getattr(tree, ARRAYS_HAVE, None):
        return [tree], SINGLE
    try:
        leaves, structure = _optree.tree_flatten(tree, note, namespace=view)
    except RecursionError:
        _check_ends(tree)
        raise
    for n, leaf in enumerate(leaves):
        kind = type(leaf)
        if kind is ndarray:
            if leaf.dtype is _OBJECTS and join:
                leaves[n] = objects.join(leaf)
        elif kind in _LEAVES or (note is not None and note(leaf)):
            continue
        elif _is_new_container(leaf):
            return flatten(tree, note, view=view, join=join)
    return leaves, SINGLE if structure.is_leaf() else structure


def _check_ends(tree: Any) -> None:
    """Raise if a container holds itself, directly or in another one."""
    stack, inside = [(tree, False)], set[int]()
    while stack:
        part, done = stack.pop()
        if done:
            inside.discard(id(part))
        elif id(part) in inside:
            raise ArgumentError(
                f"containers: got {a_type(part)} that holds itself, expected nested containers "
                "that end in arrays or numbers"
            )
        elif not loaded().tree_is_leaf(part, namespace=NAMESPACE):
            inside.add(id(part))
            stack.append((part, True))
            parts = loaded().tree_flatten_one_level(part, namespace=NAMESPACE)[0]
            stack += [(child, False) for child in parts]


def outline(structure: Structure) -> str:
    """A structure for messages: its containers, with * for each array or number."""
    text = str(structure).removeprefix("PyTreeSpec(").removesuffix(")")
    return text.removesuffix(f", namespace={NAMESPACE!r}").removesuffix(
        f", namespace={ALL_ARRAYS!r}"
    )


def unflatten(structure: Structure, leaves: list[Any]) -> Any:
    """The inverse of `flatten`."""
    return leaves[0] if structure is SINGLE else loaded().tree_unflatten(structure, leaves)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """`tree` with `function` applied to its leaves."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])


class Place:
    """The name of a leaf in errors: `argument 0['w'][2]`. It is worked out when printed."""

    __slots__ = ("_name", "_number", "_tree", "_view")

    def __init__(self, name: str, tree: Any, number: int, *, view: str = NAMESPACE) -> None:
        self._name = name
        self._tree = tree
        self._number = number
        self._view = view

    def __str__(self) -> str:
        return self._name + str(self._path().codify(""))

    def _path(self) -> Any:
        return loaded().tree_accessors(self._tree, namespace=self._view)[self._number]

    @property
    def advice(self) -> str:
        """What to do if the leaf is neither an array nor a number, as the end of a message."""
        path = self._path()
        holder = path and path[-1].type
        if holder and has_fields(holder):
            return f"; if it is no parameter, mark the field static: {HOW_TO_MARK}"
        return ""


def argument_place(args: Sequence[Any], number: int, *, view: str = NAMESPACE) -> Place:
    """The name in errors of a leaf of a call's arguments, counted over all of them."""
    for position, arg in enumerate(args):
        count = len(flatten(arg, view=view)[0])
        if number < count:
            return Place(f"argument {position}", arg, number, view=view)
        number -= count
    raise IndexError(number)


def merged(one: Any, other: Any, name: str) -> Any:
    """The containers of both; None in one of them stands for what the other has in its place.

    Where both have a leaf, it is that of the first.

    Args:
        one: Containers.
        other: Containers.
        name: The name of the first, for messages.

    Raises:
        ValueError: The containers differ; the message says where: `grads['w'] is a list of 2,
            expected an array`.
    """
    if one is None or other is None:
        return other if one is None else one
    is_leaf, expects_leaf = flatten(one)[1] is SINGLE, flatten(other)[1] is SINGLE
    if is_leaf and expects_leaf:
        return one
    if is_leaf or expects_leaf or type(one) is not type(other):
        got, expected = _described(one, is_leaf), _described(other, expects_leaf)
        raise ValueError(f"{name} is {got}, expected {expected}")
    parts, kind, entries, rebuild = loaded().tree_flatten_one_level(one, namespace=NAMESPACE)
    others, other_kind, *_ = loaded().tree_flatten_one_level(other, namespace=NAMESPACE)
    if kind != other_kind or len(parts) != len(others):
        raise ValueError(f"{name} {_difference(one, other)}")
    indexed = isinstance(one, dict | list | tuple)
    names = [f"{name}[{x!r}]" if indexed else f"{name}.{x}" for x in entries]
    made = rebuild(kind, [merged(*three) for three in zip(parts, others, names, strict=True)])
    return {key: made[key] for key in one} if type(one) is dict else made


def _described(container: Any, is_leaf: bool) -> str:
    if is_leaf:
        return "an array"
    sized = type(container) in (list, tuple)
    return f"{a_type(container)} of {len(container)}" if sized else a_type(container)


def _difference(one: Any, other: Any) -> str:
    """What differs between two containers of a class, in a sentence about the first."""
    if isinstance(one, dict):
        missing, more = [repr(key) for key in other if key not in one], one.keys() - other.keys()
        texts = [f"has no {', '.join(missing)}"] if missing else []
        if more:
            texts.append(f"has {', '.join(sorted(map(repr, more)))} besides")
        return f"{' and '.join(texts)}, expected the keys {', '.join(map(repr, other))}"
    if type(one) in (list, tuple):
        return f"is {_described(one, False)}, expected {_described(other, False)}"
    return f"is {a_type(one)} with other static fields or sizes than expected"


def broadcast_prefix(prefix: Any, tree: Any, *, view: str = NAMESPACE) -> list[Any]:
    """The leaf of `prefix` that applies to each leaf of `tree`; None is a leaf of the prefix only.

    Raises:
        ValueError: The containers of the prefix are not those of the tree.
    """
    if prefix is None or isinstance(prefix, int):
        return [prefix] * len(flatten(tree, view=view)[0])
    parts, kind, *_ = loaded().tree_flatten_one_level(prefix, namespace=view)
    children, tree_kind, *_ = loaded().tree_flatten_one_level(tree, namespace=view)
    if type(prefix) is not type(tree) or kind != tree_kind or len(parts) != len(children):
        raise ValueError(f"got {prefix}, expected a prefix of {flatten(tree, view=view)[1]}")
    pairs = zip(parts, children, strict=True)
    return [leaf for p, t in pairs for leaf in broadcast_prefix(p, t, view=view)]


def aligned(given: Any, tree: Any) -> list[Any]:
    """The leaf of `given` for each leaf of `tree`; None stands for a leaf, or for all below it.

    Raises:
        ValueError: The containers are not those of the tree.
    """
    if given is None:
        return [None] * len(flatten(tree)[0])
    if flatten(tree)[1] is SINGLE:
        if flatten(given)[1] is not SINGLE:
            raise ValueError(f"got {flatten(given)[1]}, expected a leaf")
        return [given]
    parts, kind, *_ = loaded().tree_flatten_one_level(given, namespace=NAMESPACE)
    children, tree_kind, *_ = loaded().tree_flatten_one_level(tree, namespace=NAMESPACE)
    if type(given) is not type(tree) or kind != tree_kind or len(parts) != len(children):
        raise ValueError(f"got {flatten(given)[1]}, expected {flatten(tree)[1]}")
    return [leaf for g, t in zip(parts, children, strict=True) for leaf in aligned(g, t)]
