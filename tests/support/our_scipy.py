"""Functions of ours below `gradtape.scipy`, which that calls for tensors only.

Tests of what they compute call them with arrays, too: `our_scipy.special.gamma(x)`.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import gradtape as gt


class Namespace:
    """A module of `gradtape.scipy`, with what its functions call for tensors."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    @property
    def __all__(self) -> list[str]:
        """The names in the module that are not SciPy's own."""
        name = self._module.__name__.removeprefix("gradtape.")
        theirs, public = importlib.import_module(name), self._module.__all__
        own = vars(self._module)
        return [
            name for name in public if name in own and own[name] is not getattr(theirs, name, 0)
        ]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            return Namespace(found)
        return getattr(found, "on_tensors", found)


def __getattr__(name: str) -> Any:
    return globals().setdefault(name, Namespace(getattr(gt.scipy, name)))
