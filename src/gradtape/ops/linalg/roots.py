"""Logarithms, roots, powers and signs of one matrix, also where SciPy has no values.

A singular matrix has roots and positive powers if its eigenvalue 0 is repeated as often as its null
space has dimensions. With the projector P on that space along the others, and s as large as A is,
A + s·P is regular, and its root less √s·P is that of A.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.ops.linalg.common import explained, failed
from gradtape.ops.linalg.gauge import rounding
from gradtape.ops.linalg.lapack import scipy_linalg

_SINGULAR = "expected a matrix without the eigenvalue 0; add a small multiple of the identity"
# Newton's iteration for the sign doubles the correct digits at each step, once it is near.
_STEPS = 100


def null_space_of(a: Any) -> tuple[Any, Any] | None:
    """Bases of the null spaces of A and of Aᴴ as columns; None if A is regular up to rounding."""
    u, s, vh = np.linalg.svd(a)
    missing = s <= rounding(len(s), s.dtype) * s.max(initial=0)
    return (vh.conj().T[:, missing], u[:, missing]) if missing.any() else None


def logarithm_of(a: Any) -> Any:
    """The principal logarithm."""
    if null_space_of(a) is not None:
        raise failed("logm", (a,), "Singular matrix", _SINGULAR)
    # In double precision, whose errors SciPy compares its results with.
    double = np.complex128 if a.dtype.kind == "c" else np.float64
    return scipy_linalg().logm(a.astype(double, copy=False))


def root_of(a: Any) -> Any:
    """The principal square root."""
    return _with_null_space("sqrtm", scipy_linalg().sqrtm, a, 0.5)


def power_of(a: Any, power: float) -> Any:
    """The principal power, to a number that is not an integer."""
    power_of_regular = functools.partial(scipy_linalg().fractional_matrix_power, t=power)
    return _with_null_space("fractional_matrix_power", power_of_regular, a, power)


def _with_null_space(name: str, function: Callable[[Any], Any], a: Any, power: float) -> Any:
    """A power by a function for regular matrices."""
    spaces = null_space_of(a)
    if spaces is None:
        return function(a)
    if power < 0:
        raise failed(name, (a,), "Singular matrix", _SINGULAR)
    right, left = spaces
    overlap = left.conj().T @ right
    if np.linalg.cond(overlap) > 1 / np.sqrt(np.finfo(overlap.dtype).eps):
        raise failed(name, (a,), "a singular matrix without such a root", _SINGULAR)
    projector = right @ np.linalg.solve(overlap, left.conj().T)
    size = float(np.abs(a).max()) or 1.0
    return function(a + size * projector) - size**power * projector


@explained(
    "signm",
    "expected eigenvalues on the left or right of that axis",
    problem="an eigenvalue has no real part",
)
def sign_of(a: Any) -> Any:
    """The sign, by Newton's iteration X ← (μX + (μX)⁻¹)/2, scaled by determinants."""
    size = len(a)
    scaled = True
    for _ in range(_STEPS):
        inverse = np.linalg.inv(a)
        if not np.isfinite(inverse).all():
            break
        factor = np.exp(-np.linalg.slogdet(a)[1] / size) if scaled else 1.0
        following = (factor * a + inverse / factor) / 2
        change = np.abs(following - a).max() / np.abs(following).max()
        if not scaled and change < 4 * size * np.finfo(change.dtype).eps:
            return following
        # Scaling helps only far from convergence.
        scaled = scaled and change > 0.01
        a = following
    raise np.linalg.LinAlgError("no convergence")
