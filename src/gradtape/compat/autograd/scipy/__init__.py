"""`autograd.scipy`: modules of SciPy with functions that take tensors, as in `gradtape.scipy`.

They are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from gradtape.errors import MissingNameError as _MissingNameError
from gradtape.locks import load as _load

if TYPE_CHECKING:
    from gradtape.compat.autograd.scipy import (
        integrate as integrate,
        linalg as linalg,
        misc as misc,
        signal as signal,
        special as special,
        stats as stats,
    )

_MODULES = ("integrate", "linalg", "misc", "signal", "special", "stats")
__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _load(f"{__name__}.{name}")
    raise _MissingNameError(
        name, lambda name: f"import gradtape.scipy.{name}, if it is there", f"module {__name__!r}"
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES} - {"TYPE_CHECKING"})
