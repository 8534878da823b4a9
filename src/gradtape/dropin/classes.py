"""SciPy's classes, which make an object of gradtape's class when called with tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from gradtape.dropin.held_tensors import any_tensor
from gradtape.ops.adapt import Adapter


class ClassDropIn:
    """A class of SciPy that takes tensors, too: its objects are SciPy's, or made by ours.

    It stands for SciPy's in `isinstance`, and can be the base of a class. An object of ours counts
    as one of those that its attribute `scipy_names` lists.

    Attributes:
        on_tensors: What makes an object from tensors.

    >>> matrix = gt.scipy.sparse.csr_array(np.eye(2))
    >>> isinstance(matrix, gt.scipy.sparse.csr_array)
    True
    """

    __name__: str

    def __init__(self, theirs: type, ours: Callable[..., Any], adapter: Adapter) -> None:
        functools.update_wrapper(self, ours)
        self.theirs = theirs
        self.on_tensors = ours
        self._adapter = adapter

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not any_tensor(args, kwargs):
            return self.theirs(*args, **kwargs)
        return self._adapter(args, kwargs)

    def __instancecheck__(self, instance: Any) -> bool:
        if isinstance(instance, self.theirs):
            return True
        return self.__name__ in getattr(instance, "scipy_names", ())

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, self.theirs)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (self.theirs,)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.theirs, name)

    def __repr__(self) -> str:
        return f"<gradtape's form of {self.theirs!r}>"

    def __reduce__(self) -> str:
        return self.__name__

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.theirs)
