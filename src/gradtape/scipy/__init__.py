"""SciPy's modules, with functions that take tensors and whose results are differentiable.

Functions have SciPy's names, signatures and defaults. Without a tensor among the arguments they are
SciPy's own; names that have no form for tensors are SciPy's own, too. Modules are loaded when they
are first used.
"""

from typing import TYPE_CHECKING

from gradtape.dropin.submodules import find_submodules as _find_submodules
from gradtape.locks import load as _load

if TYPE_CHECKING:
    from gradtape.scipy import (
        fft as fft,
        integrate as integrate,
        interpolate as interpolate,
        linalg as linalg,
        ndimage as ndimage,
        optimize as optimize,
        signal as signal,
        sparse as sparse,
        spatial as spatial,
        special as special,
        stats as stats,
    )

_MODULES = (
    "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse",
    "spatial", "special", "stats",
)  # fmt: skip

_find_submodules()


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _load(f"{__name__}.{name}")
    return getattr(_load("scipy"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *dir(_load("scipy"))} - {"TYPE_CHECKING"})
