"""Properties of a matrix that show in its elements: bandwidth, issymmetric, ishermitian.

They read values and return Python numbers, or arrays for a stack, so they have no derivative, and
raise where values are not known yet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.known import values_of
from gradtape.ops.family import member
from gradtape.ops.linalg.common import of_two_axes
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.typing import ArrayLike


@in_float32
def bandwidth(a: ArrayLike, /) -> tuple[Any, Any]:
    """How many diagonals below and above the main one have an element that is not 0.

    Args:
        a: The matrix, or a stack of them.

    Raises:
        LinAlgError: There are less than two axes.
        ConversionError: The values are not known, inside of `jit` or `vmap`.

    >>> gt.linalg.bandwidth(np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [0.0, 0.0, 5.0]]))
    (0, 1)
    """
    x = of_two_axes("bandwidth", values_of(as_array(a)))
    rows, columns = np.indices(x.shape[-2:])
    steps = np.where(x != 0, columns - rows, 0)
    below, above = (step.max(axis=(-2, -1), initial=0) for step in (-steps, steps))
    return (below, above) if x.ndim > 2 else (int(below), int(above))


def _is_own(
    name: str, a: ArrayLike, /, atol: float | None = None, rtol: float | None = None
) -> Any:
    """Whether a matrix is its own {transpose}.

    Args:
        a: The matrix, or a stack of them.
        atol: The absolute difference allowed; None for 0.
        rtol: The difference allowed relative to the element; None for 0.

    Raises:
        LinAlgError: There are less than two axes.
        ConversionError: The values are not known, inside of `jit` or `vmap`.

    issymmetric:
    >>> gt.linalg.issymmetric(np.array([[1.0, 2.0], [2.0, 1.0]]))
    True

    ishermitian:
    >>> gt.linalg.ishermitian(np.array([[1.0, 2.0j], [2.0j, 1.0]]))
    False
    """
    x = of_two_axes(name, values_of(as_array(a)))
    y = x.mT if name == "issymmetric" else x.conj().mT
    if x.shape != y.shape:
        return False if x.ndim == 2 else np.zeros(x.shape[:-2], bool)
    found = np.isclose(x, y, atol=atol or 0.0, rtol=rtol or 0.0).all(axis=(-2, -1))
    return found if x.ndim > 2 else bool(found)


issymmetric = in_float32(member("issymmetric", _is_own, transpose="transpose"))
ishermitian = in_float32(member("ishermitian", _is_own, transpose="conjugate transpose"))
