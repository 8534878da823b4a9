"""Values that functions read while they run, where a size or a dtype depends on them."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import ConversionError


def values_of(x: Any) -> Any:
    """What an array or tensor holds; raises for one that has no value yet, in a trace or batch."""
    return innermost(x) if isinstance(x, Tensor) else np.asarray(x)


def values_if_known(x: Any) -> Any:
    """The same, and None for one that has no value yet."""
    with contextlib.suppress(ConversionError):
        return values_of(x)
    return None
