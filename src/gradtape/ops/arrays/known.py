"""Values that functions read while they run, where a size or a dtype depends on them."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import ConversionError


def values_of(x: Any) -> Any:
    """The values of an array or tensor; raises if it has none yet, in a trace or batch."""
    return innermost(x) if isinstance(x, Tensor) else np.asarray(x)


def values_if_known(x: Any) -> Any:
    """The same, or None if it has no values yet."""
    with contextlib.suppress(ConversionError):
        return values_of(x)
    return None
