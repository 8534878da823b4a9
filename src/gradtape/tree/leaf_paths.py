"""Leaves with their paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape import containers
from gradtape.tree.structures import IsLeaf, Structure, flatten


class Path(tuple[Any, ...]):
    """The way to a leaf: keys of dicts, positions in lists and tuples, names of fields.

    It is a tuple; as a string it reads as the code that gets the leaf.

    >>> path, leaf = gt.tree.leaves_with_path({"layers": [1.0, 2.0]})[1]
    >>> path, str(path), leaf
    (('layers', 1), "['layers'][1]", 2.0)
    """

    __slots__ = ()

    def __str__(self) -> str:
        return "".join(f".{x}" if isinstance(x, _Field) else f"[{x!r}]" for x in self)


class _Field(str):
    """The name of a field, to tell it from a key of a dict."""

    __slots__ = ()


def leaves_with_path(tree: Any, is_leaf: IsLeaf | None = None) -> list[tuple[Path, Any]]:
    """The leaves of nested containers in order, each with the way to it.

    Args:
        tree: The containers, or a single leaf, whose path is empty.
        is_leaf: As of `gt.tree.flatten`.

    Returns:
        Pairs of a `gt.tree.Path` and a leaf.

    >>> [(str(path), leaf) for path, leaf in gt.tree.leaves_with_path({"b": (1.0, 2.0), "a": 3.0})]
    [("['a']", 3.0), ("['b'][0]", 1.0), ("['b'][1]", 2.0)]
    """
    return _with_paths(tree, is_leaf)[0]


def map_with_path(
    function: Callable[..., Any], tree: Any, /, *rest: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """As `gt.tree.map`, with the way to the leaf as the first argument of the function.

    Args:
        function: Takes a `gt.tree.Path`, a leaf of `tree`, and what stands in its place in `rest`.
        tree: The containers, whose form the result has.
        *rest: Other containers, as of `gt.tree.map`.
        is_leaf: As of `gt.tree.flatten`.

    Raises:
        ArgumentError: The containers differ.

    >>> decay = lambda path, p: 0.0 if path[-1] == "bias" else 1e-2
    >>> gt.tree.map_with_path(decay, {"dense": {"weight": np.ones(2), "bias": 0.5}})
    {'dense': {'weight': 0.01, 'bias': 0.0}}
    """
    pairs, outline = _with_paths(tree, is_leaf)
    others = [
        outline.split(other, f"tree.map_with_path: got containers {number}")
        for number, other in enumerate(rest, start=2)
    ]
    columns = zip(pairs, *others, strict=True)
    return outline.unflatten([function(*pair, *parts) for pair, *parts in columns])


def _with_paths(tree: Any, is_leaf: IsLeaf | None) -> tuple[list[tuple[Path, Any]], Structure]:
    outline = flatten(tree, is_leaf)[1]  # makes new classes known
    accessors, leaves, _ = containers.loaded().tree_flatten_with_accessor(
        tree, is_leaf, namespace=containers.NAMESPACE
    )
    return [(_path(way), leaf) for way, leaf in zip(accessors, leaves, strict=True)], outline


def _path(accessor: Any) -> Path:
    optree = containers.loaded()
    indexed = (optree.SequenceEntry, optree.MappingEntry)
    return Path([_part(entry, isinstance(entry, indexed)) for entry in accessor])


def _part(entry: Any, is_indexed: bool) -> Any:
    if hasattr(entry, "field"):  # of a named tuple
        return _Field(entry.field)
    return entry.entry if is_indexed else _Field(entry.entry)
