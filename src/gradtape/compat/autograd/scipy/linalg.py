"""`autograd.scipy.linalg`: SciPy's module with functions that take tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.compat.autograd.mirror import mirror as _mirror
from gradtape.core.tensor import Tensor as _Tensor, innermost as _innermost
from gradtape.locks import load as _load


def sqrtm(A: Any, *args: Any, **kwargs: Any) -> Any:
    """`scipy.linalg.sqrtm`; complex for a real matrix with negative eigenvalues, as in SciPy."""
    if isinstance(A, _Tensor) and A.dtype.kind == "f":
        value = _innermost(A, show=True)
        if isinstance(value, np.ndarray) and value.shape == A.shape and _is_complex(value):
            A = A.astype(np.result_type(A.dtype, np.complex64))
    return _load("gradtape.scipy.linalg").sqrtm(A, *args, **kwargs)


def _is_complex(value: Any) -> bool:
    """Whether the square root of a real matrix is complex."""
    eigenvalues = np.linalg.eigvals(value)
    return bool(np.any((eigenvalues.real < 0) & (eigenvalues.imag == 0)))


_mirror(globals(), "gradtape.scipy.linalg")
