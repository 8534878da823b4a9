"""Classes of SciPy whose methods take tensors: SciPy's methods without one, ours with one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from gradtape.dropin.held_tensors import any_tensor
from gradtape.errors import UnsupportedError
from gradtape.locks import load


def with_methods(theirs: Any, ours: Any, module: str) -> type:
    """A subclass of SciPy's class whose methods take tensors.

    Args:
        theirs: The class of SciPy.
        ours: The class whose instances compute with tensors. Its `of_scipys` makes one from an
            instance of SciPy's. A method that it lacks is refused with a tensor.
        module: The module that exports it: `gradtape.scipy.stats`.

    >>> estimate = gt.scipy.stats.gaussian_kde(np.array([0.0, 1.0, 2.0]))
    >>> estimate.evaluate(gt.tensor([1.0]))
    tensor([0.31815622])
    """
    name = theirs.__name__
    public = f"{module.removeprefix('gradtape.')}.{name}"
    methods = {
        each: _method(getattr(theirs, each), ours, f"{public}.{each}")
        for each in dir(theirs)
        if (not each.startswith("_") or each == "__call__")
        and isinstance(getattr(theirs, each), FunctionType)
    }
    members = {
        "__doc__": theirs.__doc__,
        "__module__": module,
        "__reduce__": lambda self: (_blank, (module, name), self.__getstate__()),
    }
    return type(name, (theirs,), {**members, **methods})


def _blank(module: str, name: str) -> Any:
    """An instance of a class without its attributes, which pickle adds."""
    made = getattr(load(module), name).theirs
    return made.__new__(made)


def _method(theirs: Any, ours: Any, name: str) -> Callable[..., Any]:
    own = getattr(ours, theirs.__name__, None)

    @functools.wraps(theirs)
    def call(self: Any, *args: Any, **kwds: Any) -> Any:
        if not any_tensor(args, kwds):
            return theirs(self, *args, **kwds)
        if own is None:
            raise UnsupportedError(
                f"{name}: got a tensor, expected arrays: gradtape cannot differentiate it; use "
                "t.detach().numpy() in place of the tensor to compute without gradient"
            )
        return own(ours.of_scipys(self), *args, **kwds)

    return call
