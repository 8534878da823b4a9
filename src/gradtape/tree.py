"""Nested containers of arrays: the small part of optree that gradtape uses.

optree is loaded when the first container comes: most arguments are a single array, which needs no
optree, and importing gradtape is cheaper without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.locks import load, once

# An optree.PyTreeSpec, or SINGLE.
Structure = Any


class _Single:
    """The structure of a value that is a leaf itself."""

    num_leaves = 1

    def __repr__(self) -> str:
        return "PyTreeSpec(*)"


SINGLE = _Single()


_ARRAYS_HAVE = "__array_ufunc__"
# The namespace in which our own classes are registered with optree.
NAMESPACE = "gradtape"


@once
def loaded() -> Any:
    """The module optree."""
    return load("optree")


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
    entry = loaded().GetAttrEntry
    loaded().register_pytree_node(kind, take, make, path_entry_type=entry, namespace=NAMESPACE)


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of nested lists, tuples, dicts and registered nodes, and their structure."""
    # A class that only claims operators with arrays for itself sets `__array_ufunc__` to None.
    if type(tree) is np.ndarray or type(tree) is float or getattr(tree, _ARRAYS_HAVE, None):
        return [tree], SINGLE
    leaves, structure = loaded().tree_flatten(tree, namespace=NAMESPACE)
    return leaves, SINGLE if structure.is_leaf() else structure


def unflatten(structure: Structure, leaves: list[Any]) -> Any:
    """The inverse of `flatten`."""
    return leaves[0] if structure is SINGLE else loaded().tree_unflatten(structure, leaves)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """`tree` with `function` applied to its leaves."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])


class Place:
    """The name of a leaf in errors: `argument 0['w'][2]`. It is worked out when printed."""

    __slots__ = ("_name", "_number", "_tree")

    def __init__(self, name: str, tree: Any, number: int) -> None:
        self._name = name
        self._tree = tree
        self._number = number

    def __str__(self) -> str:
        paths = loaded().tree_accessors(self._tree, namespace=NAMESPACE)
        return self._name + str(paths[self._number].codify(""))


def argument_place(args: Sequence[Any], number: int) -> Place:
    """The name in errors of a leaf of a call's arguments, counted over all of them."""
    for position, arg in enumerate(args):
        count = len(flatten(arg)[0])
        if number < count:
            return Place(f"argument {position}", arg, number)
        number -= count
    raise IndexError(number)


def broadcast_prefix(prefix: Any, tree: Any) -> list[Any]:
    """The leaf of `prefix` that applies to each leaf of `tree`; None is a leaf of the prefix only.

    Raises:
        ValueError: The containers of the prefix are not those of the tree.
    """
    if prefix is None or isinstance(prefix, int):
        return [prefix] * len(flatten(tree)[0])
    parts, kind, *_ = loaded().tree_flatten_one_level(prefix, namespace=NAMESPACE)
    children, tree_kind, *_ = loaded().tree_flatten_one_level(tree, namespace=NAMESPACE)
    if type(prefix) is not type(tree) or kind != tree_kind or len(parts) != len(children):
        raise ValueError(f"got {prefix}, expected a prefix of {flatten(tree)[1]}")
    return [leaf for p, t in zip(parts, children, strict=True) for leaf in broadcast_prefix(p, t)]


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
