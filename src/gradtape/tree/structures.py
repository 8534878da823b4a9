"""Taking containers apart into leaves and a structure, and putting them together again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradtape import containers
from gradtape.errors import ArgumentError, a_type

IsLeaf = Callable[[Any], bool]


class Structure:
    """Nested containers without their leaves; equal if all containers are.

    Attributes:
        num_leaves: How many leaves it has.

    >>> structure = gt.tree.structure({"w": np.ones(2), "layers": [1.0, None]})
    >>> structure
    Structure({'layers': [*, None], 'w': *})
    >>> structure.num_leaves, structure == gt.tree.structure({"w": 5, "layers": [6, None]})
    (2, True)
    """

    __slots__ = ("_spec",)

    def __init__(self, spec: containers.Structure, /) -> None:
        self._spec = spec

    @property
    def num_leaves(self) -> int:
        """How many leaves it has."""
        return self._spec.num_leaves  # type: ignore[no-any-return]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The containers with these leaves: see `gt.tree.unflatten`."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ArgumentError(
                f"tree.unflatten: got {len(leaves)} leaves, expected {self.num_leaves}, as "
                f"{self} has"
            )
        return containers.unflatten(self._spec, leaves)

    def split(self, tree: Any, name: str) -> list[Any]:
        """What `tree` has in place of each leaf: leaves, or containers of them.

        Args:
            tree: Containers that begin as this structure.
            name: The caller and the argument, for errors.

        Raises:
            ArgumentError: The containers differ.
        """
        if self._spec is containers.SINGLE:
            return [tree]
        try:
            return self._spec.flatten_up_to(tree)  # type: ignore[no-any-return]
        except (ValueError, TypeError):
            got = containers.outline(containers.flatten(tree)[1])
            raise ArgumentError(
                f"{name} of structure {got}, expected {containers.outline(self._spec)}, where * "
                "is a leaf or more containers"
            ) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and bool(self._spec == other._spec)

    def __hash__(self) -> int:
        return hash(self._spec)

    def __repr__(self) -> str:
        return f"Structure({containers.outline(self._spec)})"


def flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], Structure]:
    """The leaves of nested containers, and the structure that puts them together again.

    Lists, tuples, named tuples, dicts, dataclasses, attrs classes, modules and registered classes
    are containers; anything else is a leaf. Dicts go by their sorted keys. None is a container
    without leaves. The leaves of a module are its parameters; its buffers stay where they are.

    Args:
        tree: The containers, or a single leaf.
        is_leaf: Called with each container on the way; where it returns True, that is a leaf.

    Raises:
        ArgumentError: A container holds itself.

    >>> leaves, structure = gt.tree.flatten({"b": [1.0, None], "a": (2.0, 3.0)})
    >>> leaves
    [2.0, 3.0, 1.0]
    >>> gt.tree.unflatten(structure, ["x", "y", "z"])
    {'b': ['z', None], 'a': ('x', 'y')}
    """
    leaves, spec = containers.flatten(tree, _checked(is_leaf))
    return leaves, Structure(spec)


def structure(tree: Any, is_leaf: IsLeaf | None = None) -> Structure:
    """The containers without their leaves.

    Args:
        tree: The containers, or a single leaf.
        is_leaf: As of `gt.tree.flatten`.

    >>> gt.tree.structure([1.0, (2.0, 3.0)])
    Structure([*, (*, *)])
    """
    return flatten(tree, is_leaf)[1]


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """Containers of a structure, with other leaves.

    Args:
        structure: What `gt.tree.flatten` or `gt.tree.structure` gave.
        leaves: As many as it has. They may be anything.

    Raises:
        ArgumentError: It is no structure, or has another number of leaves.

    >>> gt.tree.unflatten(gt.tree.structure({"a": 0, "b": 0}), [1.0, 2.0])
    {'a': 1.0, 'b': 2.0}
    """
    if not isinstance(structure, Structure):
        raise ArgumentError(
            f"tree.unflatten: got {a_type(structure)} as the structure, expected what "
            "gt.tree.structure returns; the leaves come after it"
        )
    return structure.unflatten(leaves)


def _checked(is_leaf: Any) -> IsLeaf | None:
    if is_leaf is not None and not callable(is_leaf):
        raise ArgumentError(f"tree: got {a_type(is_leaf)} as is_leaf, expected a function or None")
    return is_leaf  # type: ignore[no-any-return]
