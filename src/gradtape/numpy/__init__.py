"""NumPy, whose functions make arrays of tracked numbers: `import gradtape.numpy as np`.

It has every public name of NumPy. Without a tensor among the arguments a function is NumPy's own;
with one, also in a list, it is gradtape's, and gives a tensor. While a transform (`gt.grad`,
`gt.vmap`, `gt.jit`, …) runs a function, the arrays that `zeros`, `ones`, `empty`, `full`, `eye` and
their kin make are tensors, too, and record what is written to them. Under tapes and contexts they
are NumPy's, and refuse a tensor that is being recorded.
"""

from typing import TYPE_CHECKING

from gradtape.dropin.numpy_names import numpy_name as _numpy_name, numpy_names as _numpy_names
from gradtape.dropin.submodules import find_submodules as _find_submodules
from gradtape.errors import MissingNameError as _MissingNameError

if TYPE_CHECKING:
    from numpy import *  # noqa: F403

__all__ = _numpy_names("numpy")
_find_submodules()


if not TYPE_CHECKING:  # so that mypy reports names that NumPy does not have

    def __getattr__(name: str) -> object:
        try:
            return globals().setdefault(name, _numpy_name("numpy", name))
        except AttributeError:
            raise _MissingNameError(
                name, lambda name: "NumPy has no such name", f"module {__name__!r}"
            ) from None


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()} - {"TYPE_CHECKING"})
