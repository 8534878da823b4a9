"""Matrices from one of their triangles, as the other one repeats it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.define import general
from gradtape.core.lowering import Elements, Reader
from gradtape.core.scalar import Scalar, maximum, minimum
from gradtape.ops.linalg.common import adjoint, real_dtype


def _forward(xp: Any, x: Any, lower: bool, conjugate: bool) -> Any:
    part = xp.tril(x) if lower else xp.triu(x)
    rest = xp.tril(x, -1) if lower else xp.triu(x, 1)
    if conjugate and x.dtype.kind == "c":
        diagonal = np.arange(x.shape[-1])
        part[..., diagonal, diagonal] = part[..., diagonal, diagonal].real
        rest = rest.conj()
    return part + rest.mT


def _element(i: tuple[Scalar, ...], x: Reader, lower: bool, conjugate: bool) -> Scalar:
    *stack, row, column = i
    first, last = minimum(row, column), maximum(row, column)
    # The other triangle is 0 in the forward: adding it takes the sign of -0 away.
    return x(*stack, *((last, first) if lower else (first, last))) + 0.0


def symmetric_part(x: Any, conjugate: bool = True) -> Any:
    """(X + Xᴴ)/2, or (X + Xᵀ)/2."""
    return (x + (adjoint(x) if conjugate else x.mT)) / 2


def lower_half(x: Any) -> Any:
    """The lower triangle with half of the diagonal: a factor's share of a Hermitian change."""
    size, dtype = x.shape[-1], real_dtype(x.dtype)
    return x * (np.tri(size, dtype=dtype) - np.eye(size, dtype=dtype) / 2)


# The derivative is that with respect to a matrix that stays symmetric, which all elements share:
# dX ↦ (dX + dXᴴ)/2, its own transpose
mirrored = general(
    "mirrored",
    _forward,
    vjps=(lambda ct, _out, _x, lower, conjugate: symmetric_part(ct, conjugate),),
    self_adjoint=True,
    lower=Elements(_element),
)
