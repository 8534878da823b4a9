"""Whether derivatives came out finite: asked at the end, so that rules need not ask."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.backends import array_module
from gradtape.core.aval import Abstract
from gradtape.core.tensor import Tensor, innermost


def is_finite(value: Any) -> bool:
    """Whether all elements are known to be finite; those of a trace are not."""
    raw = innermost(value, show=True) if isinstance(value, Tensor) else value
    if type(raw) is np.ndarray:
        if raw.dtype.kind == "f" and raw.itemsize > 2 and raw.flags.c_contiguous:
            # A sum of squares is the fastest way to look at all; it may overflow by itself.
            flat = raw if raw.ndim == 1 else raw.ravel()
            if math.isfinite(flat.dot(flat)):
                return True
        if raw.dtype.kind == "V":
            raw = raw.astype(np.float32)
    elif isinstance(raw, Abstract):
        return False
    return bool(array_module(raw).isfinite(raw).all())
