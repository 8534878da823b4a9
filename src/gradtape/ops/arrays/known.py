"""Values that functions read while they run, where a size or a dtype depends on them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor, concrete, innermost
from gradtape.errors import ConversionError, UnsupportedError


def values_of(x: Any) -> Any:
    """The values of an array or tensor; raises if it has none yet, in a trace or batch."""
    return innermost(x) if isinstance(x, Tensor) else np.asarray(x)


def like(x: Any, found: Any) -> Any:
    """An array that was found from the values of `x`, as a tensor if `x` is one."""
    return Tensor(found) if isinstance(x, Tensor) and not isinstance(found, Tensor) else found


def without_history(name: str, values: Iterable[Any]) -> list[Any]:
    """Values as arrays, to write into an ndarray; raises for a tensor that is recorded."""
    try:
        return [concrete(x, name) if isinstance(x, Tensor) else x for x in values]
    except ConversionError:
        raise UnsupportedError(
            f"np.{name}: an ndarray cannot hold the history of a tensor; write into a tensor, such "
            "as gt.tensor(array)"
        ) from None


def values_if_known(x: Any) -> Any:
    """The same, or None if it has no values yet."""
    with contextlib.suppress(ConversionError):
        return values_of(x)
    return None
