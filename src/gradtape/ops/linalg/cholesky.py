"""The Cholesky factor. Xᴴ is the conjugate transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape.core.define import general
from gradtape.core.lowering import Matrices
from gradtape.ops.linalg import by_lapack, small
from gradtape.ops.linalg.common import DEFINITE, adjoint, evaluated_by, infer_like, square
from gradtape.ops.linalg.hermitian import lower_half, symmetric_part
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.triangular import triangular
from gradtape.typing import Array, ArrayLike


def _cholesky_vjp(ct: Any, out: Any, _x: Any) -> Any:
    upper = adjoint(out)
    return symmetric_part(_by_upper(upper, adjoint(_by_upper(upper, lower_half(upper @ ct)))))


def _by_upper(upper: Any, b: Any) -> Any:
    return triangular(upper, b, lower=False, unit_diagonal=False)


def _by_lower(lower: Any, b: Any) -> Any:
    return triangular(lower, b, lower=True, unit_diagonal=False)


def _cholesky_jvp(tangents: Sequence[Any], out: Any, _x: Any) -> Any:
    half = _by_lower(out, symmetric_part(tangents[0]))
    return out @ lower_half(_by_lower(out, adjoint(half)))


# A = L·Lᴴ: dL = L·Φ(L⁻¹·dA·L⁻ᴴ), where Φ takes the lower half
_cholesky = general(
    "cholesky",
    evaluated_by("cholesky", "cholesky", DEFINITE),
    infer=infer_like("cholesky"),
    vjps=(_cholesky_vjp,),
    jvp=_cholesky_jvp,
    lower=Matrices(
        small.cholesky,
        fits=small.up_to(8),
        library=by_lapack.cholesky,
        takes=by_lapack.takes,
    ),
)


@in_float32
def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Array:
    """The triangular factor L of a positive definite Hermitian matrix `L @ L.conj().T`.

    Args:
        x: The matrix, or a stack of them; only one triangle is read, and the derivative is that
            with respect to a matrix that stays Hermitian.
        upper: Whether to give Lᴴ instead, reading the upper triangle.

    Raises:
        LinAlgError: A matrix is not square, or not positive definite.

    >>> gt.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))
    array([[2., 0.],
           [1., 1.]])
    """
    x = square("cholesky", x)
    return adjoint(_cholesky(adjoint(x))) if upper else _cholesky(x)
