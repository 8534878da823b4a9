"""Interpolators that are SciPy's own objects where there are no tensors, and ours where there are.

One that is made of plain arrays holds SciPy's object: its attributes and methods are that object's,
and plain points get SciPy's values. `isinstance` takes it for an object of SciPy's, so that SciPy's
functions accept it. Points that are tensors are evaluated by gradtape, from the same coefficients.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from gradtape.errors import ConversionError, UnsupportedError


def scipys(name: str) -> Any:
    """A name of `scipy.interpolate`."""
    import scipy.interpolate

    return getattr(scipy.interpolate, name)


class Interpolator:
    """What all interpolators have in common."""

    _scipy: Any

    @classmethod
    def around(cls, found: Any) -> Self:
        """An interpolator that holds an object of SciPy's."""
        self = object.__new__(cls)
        self.__dict__["_scipy"] = found
        return self

    def _hold(self, *args: Any, **options: Any) -> None:
        """Make SciPy's object of the same name, and hold it."""
        self.__dict__["_scipy"] = scipys(self._scipys_name())(*args, **options)

    @classmethod
    def _scipys_name(cls) -> str:
        # A class of a user that inherits from one of ours has another name.
        return next(c.__name__ for c in cls.__mro__ if c.__module__.startswith("gradtape."))

    @property
    def holds_tensor(self) -> bool:
        """Whether it was made of tensors."""
        return self.__dict__.get("_scipy") is None

    # `isinstance` and `super` look at the real type first.
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self) if self.holds_tensor else type(self._scipy)

    def __reduce__(self) -> Any:
        return _restored, (type(self), self.__dict__)

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__.get("_scipy")
        if found is None:
            what = type(self).__name__
            if not name.startswith("_") and hasattr(scipys(self._scipys_name()), name):
                raise UnsupportedError(
                    f"{what}.{name}: got an interpolator of tensors, expected one of plain "
                    "arrays; make it of t.detach().numpy()"
                )
            raise AttributeError(f"{what!r} object has no attribute {name!r}")
        return getattr(found, name)

    def __setattr__(self, name: str, value: Any) -> None:
        found = self.__dict__.get("_scipy")
        if found is not None and hasattr(found, name):
            setattr(found, name, value)
        else:
            object.__setattr__(self, name, value)

    def _plain(self, method: str, *arrays: Any) -> list[Any]:
        """Coefficients as plain arrays, for what has no derivative."""
        try:
            return [np.asarray(x) for x in arrays]
        except ConversionError as error:
            raise UnsupportedError(
                f"{type(self).__name__}.{method}: got coefficients that are being differentiated, "
                "mapped or traced, expected plain arrays; find a root that is differentiable with "
                "gradtape.scipy.optimize.brentq, or detach() the coefficients"
            ) from error


def _restored(made: Any, attributes: dict[str, Any]) -> Any:
    self = object.__new__(made)
    self.__dict__.update(attributes)
    return self
