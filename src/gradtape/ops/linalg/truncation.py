"""Derivatives of matrices whose small singular values were set to 0.

What depends on such a matrix changes along A ↦ A₁, where A₁ has the singular values above the
cutoff, and is otherwise as A. With E = Uᴴ·dA·V, where sᵢ is above the cutoff and sⱼ is not, dA₁
has the elements sᵢ·(sᵢ·Eᵢⱼ + sⱼ·Ēⱼᵢ)/(sᵢ² − sⱼ²): they are Eᵢⱼ only if sⱼ is negligible.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from gradtape.ops.arrays.pieces import block
from gradtape.ops.linalg.common import adjoint
from gradtape.ops.linalg.spectral import derivative
from gradtape.ops.shape import broadcast_to

# Up to this many spacings of numbers, per row or column, what is dropped is rounding.
_ROUNDING = 100


@dataclasses.dataclass(frozen=True)
class _Kept:
    """The values that are kept as a function of values: itself or 0, and its derivatives."""

    rtol: float
    atol: float

    def __call__(self, values: Any, order: int) -> list[Any]:
        sizes = np.abs(values)
        kept = sizes > self.atol + self.rtol * sizes.max(initial=0.0)
        slopes = [kept.astype(values.dtype), *[np.zeros_like(values)] * order]
        return [np.where(kept, values, 0.0), *slopes[:order]]


def kept_change(a: Any, change: Any, rtol: float, atol: float = 0.0) -> Any:
    """The change of A₁ along a change of A; as a map of changes it is its own adjoint.

    Args:
        a: The matrix A, or a stack of them.
        change: The change, in the shape of the matrices or of a larger stack.
        rtol: Singular values count as 0 if they are not larger than the largest one times this,
        atol: and this.
    """
    rounding = _ROUNDING * max(a.shape[-2:], default=0) * float(np.finfo(a.dtype).eps)
    if 0 in change.shape or (not atol and rtol <= rounding):
        return change
    whole = _hermitian(broadcast_to(a, change.shape))
    found = derivative(whole, _hermitian(change), jets=_Kept(rtol, atol))
    return found[..., : a.shape[-2], a.shape[-2] :]


def _hermitian(a: Any) -> Any:
    """[[0, A], [Aᴴ, 0]], whose eigenvalues are the singular values with both signs, and zeros."""
    *stack, rows, columns = a.shape
    upper = broadcast_to(np.zeros((), a.dtype), (*stack, rows, rows))
    lower = broadcast_to(np.zeros((), a.dtype), (*stack, columns, columns))
    return block([[upper, a], [adjoint(a), lower]])
