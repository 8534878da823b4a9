"""Modules that re-export the names of other modules."""

from __future__ import annotations

from typing import Any

from gradtape.errors import MissingNameError
from gradtape.locks import load


def mirror(namespace: dict[str, Any], *places: str, keep: bool = False) -> None:
    """Give a module the names of others, besides its own; they are loaded when asked.

    Args:
        namespace: The `globals()` of the module.
        *places: Where to look, the first first: `"module"`, or `"module:name"` for an object there.
        keep: Whether to store the names that were found in the namespace. Not for a module with
            functions of its own: in these, NumPy's `any` would replace Python's.
    """

    def others() -> list[Any]:
        found = []
        for place in places:
            module, _, name = place.partition(":")
            found.append(getattr(load(module), name) if name else load(module))
        return found

    def missing(name: str) -> Any:
        if name == "__all__":
            names = {name for other in others() for name in dir(other)}
            return sorted(name for name in {*namespace, *names} if not name.startswith("_"))
        if name.startswith("__"):  # asked for by the import system
            raise AttributeError(name)
        for other in others():
            if hasattr(other, name):
                found = getattr(other, name)
                return namespace.setdefault(name, found) if keep else found
        if len(places) == 1:
            getattr(others()[0], name)  # its error knows what to do
        text = f"nor has {' or '.join(places)}"
        raise MissingNameError(name, lambda _: text, f"module {namespace['__name__']!r}")

    namespace["__getattr__"] = missing
    namespace["__dir__"] = lambda: sorted({*namespace, *(n for o in others() for n in dir(o))})
