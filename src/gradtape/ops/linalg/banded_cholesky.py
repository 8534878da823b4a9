"""The Cholesky factor of a banded matrix, which has as many diagonals. Xᴴ is the adjoint.

All of it works on the diagonals: A = L·Lᴴ changes by E = X·Lᴴ + L·Xᴴ if L changes by X. Finding X
from E is a linear map, and an op of its own; so is its transpose. How these two change with L
follows from the same equation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.ops.cast import conj
from gradtape.ops.gather import take
from gradtape.ops.linalg.banded import bands_of
from gradtape.ops.linalg.bands import adjoint_bands, picked, shifted
from gradtape.ops.linalg.common import DEFINITE, failed
from gradtape.ops.linalg.implicit import transposed_pair
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import lapack
from gradtape.ops.linalg.stacks import matrixwise
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import where
from gradtape.typing import Array, ArrayLike

# ---- products of lower banded matrices ----------------------------------------------------------


def _both_ways(x: Any, y: Any) -> Any:
    """The lower diagonals of X·Yᴴ + Y·Xᴴ: x[i, k]·ȳ[j, k] + y[i, k]·x̄[j, k], summed."""
    return _one_way(x, y) + _one_way(y, x)


def _one_way(x: Any, y: Any) -> Any:
    count = x.shape[-2]
    place, step = np.arange(count)[:, None], np.arange(count)
    inside = place + step < count
    # Element (j + m, j) gets x[j + m, j − s]·ȳ[j, j − s]: row m + s times row s, moved by s.
    rows = take(x, np.where(inside, place + step, 0), axis=-2)
    products = where(inside[..., None], rows * conj(y)[..., None, :, :], 0.0)
    return sum_of(shifted(products, -step), -2)


def _hermitian_times(s: Any, x: Any) -> Any:
    """The lower diagonals of (S + Sᴴ)·X of lower banded matrices."""
    count, size = s.shape[-2:]
    place, step = np.arange(count)[:, None], np.arange(count)
    # Element (j + m, j) gets (S + Sᴴ)[j + m, j + k]·x[j + k, j].
    columns = np.arange(size) + np.minimum(place, step)[..., None]
    found = picked(take(s, abs(place - step), axis=-2), columns, -1)
    both = where((place > step)[..., None], found, conj(found))
    both = where((place == step)[..., None], found + conj(found), both)
    return sum_of(both * x[..., None, :, :], -2)


# ---- the change of the factor, and its transpose ------------------------------------------------


def _window(width: int) -> tuple[Any, Any]:
    """The places of the lower triangle of a square of `width` rows: diagonal and column of each."""
    rows, columns = np.tril_indices(width)
    return rows - columns, columns


def _change_one(factor: Any, e: Any) -> Any:
    """X from E = X·Lᴴ + L·Xᴴ, column by column; what a column explains is taken off the others."""
    width, size = len(factor) - 1, factor.shape[-1]
    left = np.zeros((width + 1, size + width), factor.dtype)
    left[:, :size] = e
    out = np.zeros_like(factor)
    places, columns = _window(width)
    for j in range(size):
        pivot, below = factor[0, j].real, factor[1:, j]
        out[0, j] = left[0, j].real / (2 * pivot)
        out[1:, j] = (left[1:, j] - below * out[0, j]) / pivot
        half = np.outer(out[1:, j], below.conj())
        explained = half + half.conj().T
        left[places, j + 1 + columns] -= explained[places + columns, columns]
    return _inside(out)


def _pull_one(factor: Any, ct: Any) -> Any:
    """The same steps transposed, from the last column to the first."""
    width, size = len(factor) - 1, factor.shape[-1]
    out = np.zeros((width + 1, size + width), factor.dtype)
    places, columns = _window(width)
    ct = _inside(ct.astype(factor.dtype))
    for j in reversed(range(size)):
        pivot, below = factor[0, j].real, factor[1:, j]
        window = np.zeros((width, width), factor.dtype)
        window[places + columns, columns] = out[places, j + 1 + columns]
        out[1:, j] = (ct[1:, j] - (window + window.conj().T) @ below) / pivot
        out[0, j] = (ct[0, j] - below.conj() @ out[1:, j]).real / (2 * pivot)
    return _inside(out[:, :size])


def _inside(ab: Any) -> Any:
    """Lower diagonals with zeros where they are outside of the matrix."""
    count, size = ab.shape[-2:]
    return np.where(np.arange(count)[:, None] + np.arange(size) < size, ab, 0)


# X with E = X·Lᴴ + L·Xᴴ, linear in E: dX is that of dE − X·dLᴴ − dL·Xᴴ; transposed, S with
# (S + Sᴴ)·L = C on the lower diagonals: dS is that of dC − (S + Sᴴ)·dL
_change, _pull = transposed_pair(
    ("cholesky_banded_change", _change_one),
    ("cholesky_banded_pull", _pull_one),
    moved=lambda x, d_factor: -_both_ways(x, d_factor),
    moved_back=lambda s, d_factor: -_hermitian_times(s, d_factor),
    by_matrix=lambda x, s: -_hermitian_times(s, x),
)

# ---- the factor ---------------------------------------------------------------------------------


def _factor_one(ab: Any) -> Any:
    factor, info = lapack("pbtrf", ab.dtype)(ab, lower=True)
    if info > 0:
        raise failed("cholesky_banded", (ab,), "Matrix is not positive definite", DEFINITE)
    return _inside(factor)


# A = L·Lᴴ: dL is the X with dA = X·Lᴴ + L·Xᴴ
_factor = matrixwise(
    "cholesky_banded",
    _factor_one,
    vjps=(lambda ct, out, _ab: _pull(out, ct),),
    jvp=lambda tangents, out, _ab: _change(out, tangents[0]),
)


@in_float32
def cholesky_banded(ab: ArrayLike, /, *, lower: bool = False) -> Array:
    """The triangular factor of a positive definite banded matrix, by its diagonals.

    Twice the sum of the logarithms of its main diagonal is the logarithm of the determinant.

    Args:
        ab: The main diagonal and those above it as rows, the uppermost first:
            `ab[u + i - j, j] = a[i, j]`, or a stack of such arrays.
        lower: Whether the main diagonal and those below it are given instead, the main one first:
            `ab[i - j, j] = a[i, j]`.

    Returns:
        The diagonals, in the same form, of U with `a = Uᴴ·U`, or of L with `a = L·Lᴴ` if `lower`;
        zeros where they are outside of the matrix.

    Raises:
        LinAlgError: A matrix is not positive definite, or has less than two axes.

    >>> gt.linalg.cholesky_banded(np.array([[4.0, 2.0], [2.0, 0.0]]), lower=True)
    array([[2., 1.],
           [1., 0.]])
    """
    ab = bands_of("cholesky_banded", ab)
    width = ab.shape[-2] - 1
    if lower:
        return _factor(ab)
    return adjoint_bands(_factor(adjoint_bands(ab, width)), 0)
