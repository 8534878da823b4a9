"""Any function of a matrix, by its eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.ops.cast import astype, real
from gradtape.ops.linalg.checks import verified
from gradtape.ops.linalg.common import failed, real_dtype
from gradtape.ops.linalg.eig import eig, independent
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.solve import inv
from gradtape.ops.linalg.stacks import matrices
from gradtape.typing import Array, ArrayLike

_independent = independent(
    "funm", "expected a basis of eigenvectors; use expm, logm, sqrtm and so on, which need none"
)


def _real_forward(xp: Any, x: Any) -> Any:
    noise = xp.finfo(x.dtype).eps ** 0.5 * xp.abs(x).max(initial=0)
    if xp.abs(x.imag).max(initial=0) > noise:
        remedy = "expected a complex matrix: x.astype(np.complex128)"
        raise failed("funm", (x,), "the function of a real matrix is complex", remedy)
    return x.real.copy()


# d Re(x) = Re(dx)
_real_result = general(
    "real_result",
    _real_forward,
    infer=lambda x: Aval(x.shape, real_dtype(x.dtype)),
    vjps=(lambda ct, _out, _x: astype(ct, _x.dtype),),
    jvp=lambda tangents, _out, _x: real(tangents[0]),
)


@in_float32
def funm(x: ArrayLike, func: Callable[[Any], Any], /) -> Array:
    """A function of a square matrix, or of each in a stack, by the function of its eigenvalues.

    Args:
        x: The matrix; it needs a basis of eigenvectors. The exponential, the logarithm, roots and
            others have functions of their own, which work for every matrix.
        func: The function, of complex numbers in an array; made of NumPy's and gradtape's
            functions, so that it is differentiated as well.

    Returns:
        A matrix, real if `x` is.

    Raises:
        LinAlgError: A matrix is not square; has no basis of eigenvectors; or is real and its
            function complex: give a complex matrix.

    >>> gt.linalg.funm(np.array([[1.0, 1.0], [0.0, 2.0]]), lambda w: w**3).round(12)
    array([[1., 7.],
           [0., 8.]])
    """
    (x,) = matrices("funm", x)
    w, v = eig(x)
    # NumPy's eig returns real eigenvalues where it can; functions of them need not be real.
    complex_dtype = np.result_type(x.dtype, np.complex64)
    w, v = astype(w, complex_dtype), verified(astype(v, complex_dtype), _independent)
    out = (v * func(w)[..., None, :]) @ inv(v)
    return out if x.dtype.kind == "c" else _real_result(out)
