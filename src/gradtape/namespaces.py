"""Complete the modules that users import names from, such as `gt.linalg`.

Such a module is a list of imports `name as name`, which type checkers take for its public names.
What Python needs to be told besides follows from it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from gradtape.core.entry import open_doors
from gradtape.core.spellings import missing_from


def export(namespace: dict[str, Any], *modules: str) -> None:
    """Set `__all__` of a module to its names without an underscore.

    Args:
        namespace: The `globals()` of the module, after its imports.
        *modules: Which of its names are public although they are modules.
    """
    namespace["__all__"] = [
        name
        for name, value in namespace.items()
        if name in modules or not (name.startswith("_") or isinstance(value, ModuleType))
    ]


def complete(namespace: dict[str, Any], *modules: str) -> None:
    """Export the names of a module, with errors that explain arguments and missing names.

    Args:
        namespace: The `globals()` of the module, after its imports.
        *modules: Which of its names are public although they are modules.
    """
    export(namespace, *modules)
    open_doors(namespace)
    namespace["__getattr__"] = missing_from(namespace["__name__"].split(".")[1])
