"""SciPy's protocol for backends of `scipy.fft`, which makes `gt.fft` one of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from gradtape.core.tensor import Tensor

DOMAIN = "numpy.scipy.fft"
# How to compute, not what: SciPy may overwrite its argument, use threads, reuse a plan.
_HINTS = ("overwrite_x", "workers", "plan")


def backend(namespace: dict[str, Any]) -> Callable[..., Any]:
    """The `__ua_function__` of a module with functions of the names of SciPy's.

    Args:
        namespace: The `globals()` of the module.
    """

    def answer(method: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Answer a function of `scipy.fft` on a tensor; on arrays SciPy's own does."""
        given = inspect.signature(method).bind(*args, **kwargs).arguments
        array, *options = (name for name in given if name not in _HINTS)
        if method.__name__ not in namespace["__all__"] or not isinstance(given[array], Tensor):
            return NotImplemented
        function = namespace[method.__name__]
        return function(given[array], **{name: given[name] for name in options})

    return answer
