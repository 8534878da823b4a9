"""Nested containers of arrays: the small part of optree that gradtape uses.

optree is loaded when the first container comes: most arguments are a single array, which is known
without asking, and the import of gradtape is the cheaper for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# An optree.PyTreeSpec, or SINGLE.
Structure = Any


class _Single:
    """The structure of a value that is a leaf itself."""

    num_leaves = 1

    def __repr__(self) -> str:
        return "PyTreeSpec(*)"


SINGLE = _Single()


def _optree() -> Any:
    import optree

    return optree


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of nested lists, tuples, dicts and registered nodes, and their structure."""
    if type(tree) is np.ndarray or type(tree) is float or hasattr(tree, "__array_ufunc__"):
        return [tree], SINGLE
    leaves, structure = _optree().tree_flatten(tree)
    return leaves, SINGLE if structure.is_leaf() else structure


def unflatten(structure: Structure, leaves: list[Any]) -> Any:
    """The inverse of `flatten`."""
    return leaves[0] if structure is SINGLE else _optree().tree_unflatten(structure, leaves)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """`tree` with `function` applied to its leaves."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])


class Place:
    """What an error calls a leaf: `argument 0['w'][2]`. It is found out when it is printed."""

    __slots__ = ("_name", "_number", "_tree")

    def __init__(self, name: str, tree: Any, number: int) -> None:
        self._name = name
        self._tree = tree
        self._number = number

    def __str__(self) -> str:
        path: str = _optree().tree_accessors(self._tree)[self._number].codify("")
        return self._name + path


def argument_place(args: Sequence[Any], number: int) -> Place:
    """What an error calls a leaf of the arguments of a call, counted over all of them."""
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
    parts, kind, *_ = _optree().tree_flatten_one_level(prefix)
    children, tree_kind, *_ = _optree().tree_flatten_one_level(tree)
    if type(prefix) is not type(tree) or kind != tree_kind or len(parts) != len(children):
        raise ValueError(f"{prefix} is not a prefix of {flatten(tree)[1]}")
    return [leaf for p, t in zip(parts, children, strict=True) for leaf in broadcast_prefix(p, t)]
