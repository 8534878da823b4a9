"""Modules under SciPy's names whose results are differentiable, such as `gradtape.scipy.optimize`.

They are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from gradtape import advice as _advice
from gradtape.errors import MissingNameError as _MissingNameError
from gradtape.locks import load as _load

if TYPE_CHECKING:
    from gradtape.scipy import integrate as integrate, optimize as optimize

_MODULES = ("integrate", "optimize")
__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _load(f"{__name__}.{name}")
    raise _MissingNameError(
        name, lambda name: _advice.instead_in("scipy", name), f"module {__name__!r}"
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES} - {"TYPE_CHECKING"})
