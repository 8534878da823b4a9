"""Functions of NumPy and SciPy that take tensors: theirs without a tensor, ours with one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.dropin.classes import ClassDropIn
from gradtape.dropin.held_tensors import any_tensor
from gradtape.ops.adapt import Adapter
from gradtape.ops.joined import joined

# Parameters that change how SciPy computes, not what; ours have no use for them.
WITHOUT_EFFECT = frozenset(
    f"overwrite_{array}" for array in ("A", "a", "a_band", "ab", "b", "c", "data", "x")
) | {
    "balanced", "batch_memory", "check_finite", "copy", "driver", "lapack_driver", "lwork",
    "maxprint", "workers",
}  # fmt: skip


def drop_in(theirs: Callable[..., Any], ours: Callable[..., Any], name: str) -> Any:
    """A function with the signature of SciPy's that takes tensors.

    Args:
        theirs: The function of SciPy, or a class.
        ours: What computes with tensors; it need not have all parameters of `theirs`. Those it
            lacks are refused unless they have their defaults, or have no effect on values.
        name: The public name, `scipy.linalg.qr`, for messages and for `pickle`.

    Attributes:
        on_tensors: `ours`.
    """
    if isinstance(theirs, np.ufunc):
        return UfuncDropIn(theirs, ours, name)
    adapter = Adapter(theirs, ours, name=name, without_effect=WITHOUT_EFFECT)
    if isinstance(theirs, type):
        made = ClassDropIn(theirs, ours, adapter)
        _known_as(made, name)
        return made

    @functools.wraps(ours)
    def function(*args: Any, **kwargs: Any) -> Any:
        if not any_tensor(args, kwargs):
            return theirs(*args, **kwargs)
        return adapter(args, kwargs)

    _known_as(function, name)
    function.__signature__ = adapter.signature  # type: ignore[attr-defined]
    function.on_tensors = ours  # type: ignore[attr-defined]
    return function


def _known_as(function: Any, name: str) -> None:
    """Say where a function is found: to readers, and to pickle."""
    module, _, function.__name__ = f"gradtape.{name}".rpartition(".")
    function.__module__, function.__qualname__ = module, function.__name__


class UfuncDropIn:
    """A ufunc that takes lists of tensors, too; everything else of it is NumPy's.

    >>> gt.scipy.special.expit([gt.ones(()), 0.0])
    tensor([0.73105858, 0.5       ])
    >>> gt.scipy.special.expit.nin, gt.scipy.special.expit.nout
    (1, 1)
    """

    __name__: str

    def __init__(self, ufunc: np.ufunc, ours: Callable[..., Any], name: str) -> None:
        functools.update_wrapper(self, ours)
        _known_as(self, name)
        self.ufunc = ufunc
        self.on_tensors = ours

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not any_tensor(args, kwargs):
            return self.ufunc(*args, **kwargs)
        if kwargs or len(args) != self.ufunc.nin:  # `out` or `where`, which NumPy gives to ours
            return self.ufunc(*map(joined, args), **kwargs)
        return self.on_tensors(*args)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.ufunc, name)
        if name not in ("reduce", "accumulate", "reduceat", "outer", "at"):
            return found

        @functools.wraps(found)
        def method(*args: Any, **kwargs: Any) -> Any:
            return found(*map(joined, args), **kwargs)

        return method

    def __repr__(self) -> str:
        return f"<gradtape's form of {self.ufunc!r}>"

    def __reduce__(self) -> str:
        return self.__name__

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.ufunc)
