"""Properties of a matrix that show in its elements: bandwidth, issymmetric, ishermitian.

They read values and return Python numbers, so they have no derivative, and raise where values
are not known yet.
"""

from __future__ import annotations

import numpy as np

from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.known import values_of
from gradtape.ops.family import member
from gradtape.ops.linalg.common import one_matrix
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.typing import ArrayLike


@in_float32
def bandwidth(a: ArrayLike, /) -> tuple[int, int]:
    """How many diagonals below and above the main one have an element that is not 0.

    Args:
        a: The matrix.

    Raises:
        LinAlgError: There are not two axes.
        ConversionError: The values are not known, inside of `jit` or `vmap`.

    >>> gt.linalg.bandwidth(np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [0.0, 0.0, 5.0]]))
    (0, 1)
    """
    rows, columns = np.nonzero(one_matrix("bandwidth", values_of(as_array(a))))
    steps = columns - rows
    return int(max(-steps.min(initial=0), 0)), int(max(steps.max(initial=0), 0))


def _is_own(
    name: str, a: ArrayLike, /, atol: float | None = None, rtol: float | None = None
) -> bool:
    """Whether a matrix is its own {transpose}.

    Args:
        a: The matrix.
        atol: The absolute difference allowed; None for 0.
        rtol: The difference allowed relative to the element; None for 0.

    Raises:
        LinAlgError: There are not two axes.
        ConversionError: The values are not known, inside of `jit` or `vmap`.

    issymmetric:
    >>> gt.linalg.issymmetric(np.array([[1.0, 2.0], [2.0, 1.0]]))
    True

    ishermitian:
    >>> gt.linalg.ishermitian(np.array([[1.0, 2.0j], [2.0j, 1.0]]))
    False
    """
    x = one_matrix(name, values_of(as_array(a)))
    y = x.T if name == "issymmetric" else x.conj().T
    return x.shape == y.shape and np.allclose(x, y, atol=atol or 0.0, rtol=rtol or 0.0)


issymmetric = in_float32(member("issymmetric", _is_own, transpose="transpose"))
ishermitian = in_float32(member("ishermitian", _is_own, transpose="conjugate transpose"))
