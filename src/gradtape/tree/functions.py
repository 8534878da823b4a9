"""Functions of all leaves: map, leaves, reduce, all, transpose."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from gradtape.errors import ArgumentError, a_type
from gradtape.tree.structures import IsLeaf, Structure, flatten

_NOT_GIVEN = object()


def leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of nested containers, in order; see `gt.tree.flatten`.

    Args:
        tree: The containers, or a single leaf.
        is_leaf: As of `gt.tree.flatten`. `is_leaf=lambda x: x is None` makes None a leaf.

    >>> gt.tree.leaves({"b": [1.0, None], "a": 2.0})
    [2.0, 1.0]
    >>> gt.tree.leaves({"b": [1.0, None], "a": 2.0}, is_leaf=lambda x: isinstance(x, list))
    [2.0, [1.0, None]]
    """
    return flatten(tree, is_leaf)[0]


def map(
    function: Callable[..., Any], tree: Any, /, *rest: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """The containers with a function applied to their leaves.

    Args:
        function: Takes a leaf of `tree`, and what stands in its place in each of `rest`.
        tree: The containers, whose form the result has.
        *rest: Other containers of the same form. Where `tree` has a leaf, they may have containers,
            which are passed to the function as they are.
        is_leaf: As of `gt.tree.flatten`.

    Raises:
        ArgumentError: The containers differ.

    >>> params = {"w": np.ones(2), "b": 0.5}
    >>> grads = gt.grad(lambda p: np.sum(p["w"]) * p["b"])(params)
    >>> gt.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    {'w': array([0.95, 0.95]), 'b': np.float64(0.3)}
    """
    if not callable(function):
        raise ArgumentError(
            f"tree.map: got {a_type(function)}, expected a function; it comes before the containers"
        )
    first, outline = flatten(tree, is_leaf)
    others = [
        outline.split(other, f"tree.map: got containers {number}")
        for number, other in enumerate(rest, start=2)
    ]
    return outline.unflatten([function(*parts) for parts in zip(first, *others, strict=True)])


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _NOT_GIVEN,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """The leaves combined from the first to the last, as `functools.reduce` does.

    Args:
        function: Takes the result so far and a leaf, and returns the next result.
        tree: The containers, or a single leaf.
        initializer: What to begin with, in place of the first leaf.
        is_leaf: As of `gt.tree.flatten`.

    Raises:
        ArgumentError: There are no leaves and no initializer.

    >>> gt.tree.reduce(lambda total, leaf: total + np.sum(leaf), {"a": np.ones(3), "b": 2.0}, 0.0)
    np.float64(5.0)
    """
    found = leaves(tree, is_leaf)
    if initializer is not _NOT_GIVEN:
        return functools.reduce(function, found, initializer)
    if not found:
        raise ArgumentError("tree.reduce: got no leaves, expected some, or an initializer=")
    return functools.reduce(function, found)


def all(tree: Any, is_leaf: IsLeaf | None = None) -> bool:
    """Whether all leaves are true.

    Args:
        tree: The containers, or a single leaf.
        is_leaf: As of `gt.tree.flatten`.

    >>> a = {"w": np.ones(2), "b": [1.0]}
    >>> gt.tree.all(gt.tree.map(np.array_equal, a, {"w": np.ones(2), "b": [2.0]}))
    False
    """
    return builtins.all(leaves(tree, is_leaf))


def transpose(outer: Structure, inner: Structure, tree: Any) -> Any:
    """Containers of containers turned inside out: a list of dicts becomes a dict of lists.

    Args:
        outer: The structure outside, `gt.tree.structure([0, 0])` of a list of two.
        inner: The structure in place of each of its leaves.
        tree: The containers to turn inside out.

    Raises:
        ArgumentError: The containers are not those of the two structures.

    >>> steps = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    >>> gt.tree.transpose(gt.tree.structure([0, 0]), gt.tree.structure(steps[0]), steps)
    {'a': [1, 3], 'b': [2, 4]}
    """
    for name, given in (("outer", outer), ("inner", inner)):
        if not isinstance(given, Structure):
            raise ArgumentError(
                f"tree.transpose: got {a_type(given)} as {name}, expected what gt.tree.structure "
                "returns"
            )
    rows = [
        inner.split(part, "tree.transpose: got a part")
        for part in outer.split(tree, "tree.transpose: got containers")
    ]
    columns = zip(*rows, strict=True) if rows else [()] * inner.num_leaves
    return inner.unflatten([outer.unflatten(column) for column in columns])
