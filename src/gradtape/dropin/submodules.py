"""Import NumPy's and SciPy's modules that gradtape does not have under gradtape's names.

`from gradtape.scipy.constants import g` gives SciPy's own, as `gradtape.scipy.constants.g` does.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from gradtape.locks import load

_PREFIXES = ("gradtape.numpy.", "gradtape.scipy.")


class _SameModule(Loader):
    """Loads `gradtape.scipy.io` by entering `scipy.io` itself under that name."""

    def __init__(self, original: str) -> None:
        self._original = original

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make a module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        # The import system reads the module from here once this has run.
        sys.modules[module.__name__] = load(self._original)


class _Finder(MetaPathFinder):
    """Finds modules below `gradtape.numpy` and `gradtape.scipy` that have no file of their own."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PREFIXES):
            return None
        parent = fullname.rpartition(".")[0]
        # Below a module of SciPy, Python would find SciPy's file, and load it a second time.
        if sys.modules[parent].__name__ == parent and PathFinder.find_spec(fullname, path):
            return None
        original = fullname.removeprefix("gradtape.")
        if importlib.util.find_spec(original) is None:
            return None
        return ModuleSpec(fullname, _SameModule(original))


_FINDER = _Finder()


def find_submodules() -> None:
    """Let `import gradtape.scipy.io` and its like find the module of SciPy or NumPy."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
