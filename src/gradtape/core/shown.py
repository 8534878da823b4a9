"""What a tensor looks like when it is printed."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.backends import to_numpy
from gradtape.core.aval import Abstract
from gradtape.core.level import LEAVES, Node


def shown(raw: Any, dtype: np.dtype[Any], record: Node | None) -> str:
    """The text of a tensor: its elements, and what else is not to be overlooked.

    Args:
        raw: The array below all levels.
        dtype: The type of the elements.
        record: Where they come from.
    """
    notes = []
    if isinstance(raw, Abstract):
        body = str(raw)
    else:
        body = np.array2string(to_numpy(raw), separator=", ", prefix="tensor(", floatmode="maxprec")
        if dtype not in (np.float64, np.int64, np.bool_):
            notes.append(f"dtype={dtype}")
    if record is not None:
        leaf = record.segment is LEAVES
        notes.append("requires_grad=True" if leaf else f"recorded by {record.segment.label}")
    return f"tensor({', '.join([body, *notes])})"
