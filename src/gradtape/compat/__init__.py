"""Interfaces of other libraries, built on gradtape, such as `gradtape.compat.autograd`.

They are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from gradtape.errors import MissingNameError as _MissingNameError
from gradtape.locks import load as _load

if TYPE_CHECKING:
    from gradtape.compat import autograd as autograd

_MODULES = ("autograd",)
__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _load(f"{__name__}.{name}")
    raise _MissingNameError(name, lambda name: "", f"module {__name__!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES} - {"TYPE_CHECKING"})
