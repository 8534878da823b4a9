"""Whether two sides computed the same."""

from typing import Any

import numpy as np


def assert_agree(
    what: str, ours: Any, theirs: Any, *, rtol: float = 1e-10, floor: float = 1.0
) -> None:
    """Raise AssertionError unless two results agree to `rtol`, relative to the largest entry.

    Args:
        what: What was computed, for the message.
        ours: One result.
        theirs: The other.
        rtol: The largest error that is allowed.
        floor: Entries smaller than this are compared as if they were this large.
    """
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.shape != b.shape:
        raise AssertionError(f"{what}: shape {a.shape} against the peer's {b.shape}")
    scale = max(floor, float(np.abs(b).max(initial=0.0)), np.finfo(float).tiny)
    error = float(np.abs(a - b).max(initial=0.0)) / scale
    if not error <= rtol:
        raise AssertionError(f"{what}: differs from the peer's by {error:.1e}, allowed {rtol:.0e}")
