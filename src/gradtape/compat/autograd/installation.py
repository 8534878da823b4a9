"""Taking autograd's place: the package under its name, for programs that import autograd."""

from __future__ import annotations

import pkgutil
import sys
from types import ModuleType, TracebackType
from typing import Any

from gradtape.errors import ArgumentError
from gradtape.locks import load

_HOME = "gradtape.compat.autograd"
_NAME = "autograd"
_INSTALLED: list[Installation] = []


class Installation:
    """autograd's name in `sys.modules`, standing for `gradtape.compat.autograd`; see `install`.

    It is a context manager, which takes itself back at the end of the block.
    """

    def __init__(self, taken: dict[str, ModuleType]) -> None:
        self._taken = taken

    def undo(self) -> None:
        """Take it back: `import autograd` finds what it found before."""
        if self not in _INSTALLED:
            return
        _INSTALLED.remove(self)
        for name in _loaded():
            del sys.modules[name]
        sys.modules.update(self._taken)

    def __enter__(self) -> Installation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.undo()


def install(*, replace: bool = False) -> Installation:
    """Make `import autograd` give `gradtape.compat.autograd`, in this process.

    It is for programs and packages that import autograd and cannot be changed: call it before
    they are imported. What has imported names of autograd already keeps them.

    Args:
        replace: Whether to take the place of autograd if that is loaded already.

    Returns:
        An object whose `undo()` takes it back, at the end of the block if it is used in `with`.

    Raises:
        ArgumentError: autograd itself is loaded.

    >>> from gradtape.compat.autograd import install
    >>> with install():
    ...     import autograd.numpy as np
    ...     from autograd import grad
    ...
    ...     grad(lambda x: np.sum(x**2))(np.ones(2))
    array([2., 2.])
    """
    if _INSTALLED:
        return _INSTALLED[-1]
    taken = {name: sys.modules[name] for name in _loaded()}
    if taken and not replace:
        found = getattr(taken.get(_NAME), "__file__", None) or "unknown place"
        raise ArgumentError(
            f"install: autograd is loaded already, from {found}, and what has imported it keeps "
            "it; call install() before, or give replace=True"
        )
    for name in taken:
        del sys.modules[name]
    for name in _modules():
        sys.modules[_NAME + name.removeprefix(_HOME)] = load(name)
    # Modules that are made by others, such as those of distributions.
    for name in [name for name in sys.modules if name.startswith(f"{_HOME}.")]:
        sys.modules[_NAME + name.removeprefix(_HOME)] = sys.modules[name]
    made = Installation(taken)
    _INSTALLED.append(made)
    return made


def uninstall() -> None:
    """Undo `install`, if it was called."""
    for installation in list(_INSTALLED):
        installation.undo()


def _loaded() -> list[str]:
    """The names in `sys.modules` that are autograd's."""
    return [name for name in sys.modules if name == _NAME or name.startswith(f"{_NAME}.")]


def _modules() -> list[str]:
    """The names of all modules of the package."""
    package: Any = load(_HOME)
    below = pkgutil.walk_packages(package.__path__, f"{_HOME}.")
    return [_HOME, *(module.name for module in below)]
