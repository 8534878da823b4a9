"""`numpy.random` as it is: what it draws has no history."""

from typing import TYPE_CHECKING

from gradtape.dropin.numpy_names import numpy_name as _numpy_name, numpy_names as _numpy_names

if TYPE_CHECKING:
    from numpy.random import *  # noqa: F403

__all__ = _numpy_names("numpy.random")


if not TYPE_CHECKING:  # so that mypy reports names that NumPy does not have

    def __getattr__(name: str) -> object:
        return globals().setdefault(name, _numpy_name("numpy.random", name))


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()} - {"TYPE_CHECKING"})
