"""Functions that are put off when they ask for a size that is not known yet."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from gradtape.errors import UnknownSizeError

F = TypeVar("F", bound=Callable[..., Any])


@functools.cache  # as `gt.norm` is `gt.linalg.norm`
def deferrable(function: F) -> F:
    """A function that is deferred as a whole on lazy tensors of unknown size."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except UnknownSizeError as error:
            return error.deferred(wrapper, args, kwargs)

    return wrapper  # type: ignore[return-value]
