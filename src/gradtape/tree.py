"""Nested containers of arrays: the small part of optree that gradtape uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import optree

Structure = optree.PyTreeSpec

# Most trees are a single leaf; knowing so without asking optree makes small transforms cheap.
SINGLE: Structure = optree.tree_structure(cast(Any, 0))


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of nested lists, tuples, dicts and dataclass-like nodes, and their structure."""
    if type(tree) is np.ndarray or type(tree) is float or hasattr(tree, "__array_ufunc__"):
        return [tree], SINGLE
    return optree.tree_flatten(tree)


def unflatten(structure: Structure, leaves: list[Any]) -> Any:
    """The inverse of `flatten`."""
    return leaves[0] if structure is SINGLE else optree.tree_unflatten(structure, leaves)


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """`tree` with `function` applied to its leaves (and the matching leaves of `others`)."""
    if not others:
        leaves, structure = flatten(tree)
        return unflatten(structure, [function(leaf) for leaf in leaves])
    return optree.tree_map(function, tree, *others)


def broadcast_prefix(prefix: Any, tree: Any) -> list[Any]:
    """The leaf of `prefix` that applies to each leaf of `tree`; None is a leaf of the prefix only.

    Raises:
        ValueError: The containers of the prefix are not those of the tree.
    """
    if prefix is None or isinstance(prefix, int):
        return [prefix] * len(flatten(tree)[0])
    parts, kind, *_ = optree.tree_flatten_one_level(prefix)
    children, tree_kind, *_ = optree.tree_flatten_one_level(tree)
    if type(prefix) is not type(tree) or kind != tree_kind or len(parts) != len(children):
        raise ValueError(f"{prefix} is not a prefix of {flatten(tree)[1]}")
    return [leaf for p, t in zip(parts, children, strict=True) for leaf in broadcast_prefix(p, t)]
