"""Names for the leaves of nested containers: `{"layers": [{"w": x}]}` has `layers.0.w`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gradtape import containers
from gradtape.errors import ArgumentError, a_type

# The name of an array that is in no container.
SINGLE_NAME = "array"
_SEPARATOR = "."


def named_leaves(
    nested: Any, function: str, *, view: str = containers.ALL_ARRAYS
) -> tuple[dict[str, Any], containers.Structure]:
    """The leaves of nested containers by name, and the structure that puts them back.

    A name has the keys of dicts, positions in lists and tuples, and the fields of named tuples on
    the way to the leaf, with dots between them.

    Args:
        nested: Nested containers, or a single leaf.
        function: The caller, for errors.
        view: Which leaves of modules: all arrays, or parameters alone (`containers.NAMESPACE`).

    Raises:
        ArgumentError: A key is neither a string nor an integer, or two leaves have the same name.
    """
    leaves, structure = containers.flatten(nested, view=view)
    if structure is containers.SINGLE:
        return {SINGLE_NAME: leaves[0]}, structure
    accessors = containers.loaded().tree_accessors(nested, namespace=view)
    names = [_joined(accessor, function) for accessor in accessors]
    if doubled := [name for name, count in Counter(names).items() if count > 1]:
        raise ArgumentError(
            f"{function}: got several values that would have the same name, "
            f"{', '.join(map(repr, doubled))}; rename the keys of the dicts they are in"
        )
    return dict(zip(names, leaves, strict=True)), structure


def _joined(accessor: Any, function: str) -> str:
    parts = []
    for entry in accessor:
        key = getattr(entry, "field", entry.entry)
        if not isinstance(key, str | int):
            raise ArgumentError(
                f"{function}: got {a_type(key)} as a key, {key!r}, expected strings or integers; "
                "names in the file are made of them"
            )
        parts.append(str(key))
    return _SEPARATOR.join(parts)
