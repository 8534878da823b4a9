"""`autograd.numpy.linalg`: NumPy's module with functions that take tensors.

Derivatives of `eigh` and `eigvalsh` are those by the triangle that is read, as in autograd;
`gt.linalg.eigh` has them by a symmetric matrix.
"""

from __future__ import annotations

import typing as _typing
from typing import Any

import numpy as np

from gradtape.compat.autograd.mirror import mirror as _mirror
from gradtape.compat.autograd.primitives import conjugate as _conjugate
from gradtape.core.aval import aval_of as _aval_of
from gradtape.core.tensor import Tensor as _Tensor
from gradtape.locks import load as _load
from gradtape.ops.cast import real as _real
from gradtape.ops.diagonal import tril as _tril, triu as _triu
from gradtape.ops.matmul import matmul as _dot  # noqa: F401 - its name in autograd
from gradtape.ops.shape import swapaxes as _swapaxes


def T(x: Any) -> Any:  # noqa: N802 - its name in autograd
    """Matrices, transposed."""
    return _swapaxes(x, -1, -2)


def eigh(a: Any, UPLO: str = "L") -> Any:
    """`np.linalg.eigh`, with derivatives by the triangle that is read."""
    return _load("gradtape.numpy").linalg.eigh(_whole(a, UPLO), UPLO)


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """`np.linalg.eigvalsh`, with derivatives by the triangle that is read."""
    return _load("gradtape.numpy").linalg.eigvalsh(_whole(a, UPLO), UPLO)


def _whole(a: Any, UPLO: str) -> Any:
    """The symmetric matrix that a triangle stands for; an array as it is."""
    if not isinstance(a, _Tensor):
        return a
    strict = _triu(a, 1) if UPLO.upper() == "U" else _tril(a, -1)
    diagonal = _real(a) * np.eye(_aval_of(a).shape[-1])
    return strict + _conjugate(T(strict)) + diagonal


_mirror(globals(), "gradtape.numpy.linalg")

if _typing.TYPE_CHECKING:
    from numpy.linalg import *  # type: ignore[assignment] # noqa: F403
