"""Containers of arrays as one flat vector of real numbers, which equations are solved for.

A complex number is two real ones. Its derivatives by both parts are then as independent as
functions that are not holomorphic need them, and the transpose of a real matrix is what reverse
mode computes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval, aval_of
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype, imag, real
from gradtape.ops.join import concatenate
from gradtape.ops.shape import reshape


class Vectors:
    """The way from the leaves of a container to a vector, and back.

    Attributes:
        avals: The shapes and dtypes of the leaves.
        size: The number of real numbers.
        dtype: The dtype of the vector, real.
    """

    def __init__(self, leaves: Sequence[Any]) -> None:
        self.avals = [Aval(aval_of(x).shape, np.dtype(aval_of(x).dtype)) for x in leaves]
        self._sizes = [math.prod(a.shape) * (1 + _is_complex(a)) for a in self.avals]
        self.size = sum(self._sizes)
        self.dtype = np.result_type(*(np.empty(0, a.dtype).real for a in self.avals))

    def flat(self, leaves: Sequence[Any]) -> Any:
        """The vector with the elements of some leaves."""
        parts = [
            astype(part, self.dtype) if part.dtype != self.dtype else part
            for leaf, aval in zip(leaves, self.avals, strict=True)
            for part in _parts(as_array(leaf), aval)
        ]
        return parts[0] if len(parts) == 1 else concatenate(parts)

    def leaves(self, vector: Any) -> list[Any]:
        """The leaves with the elements of a vector."""
        found, start = [], 0
        for aval, size in zip(self.avals, self._sizes, strict=True):
            part = vector if size == self.size else vector[start : start + size]
            start += size
            if _is_complex(aval):
                part = part[: size // 2] + 1j * part[size // 2 :]
            part = part if part.shape == aval.shape else reshape(part, aval.shape)
            found.append(part if part.dtype == aval.dtype else astype(part, aval.dtype))
        return found


def _is_complex(aval: Aval) -> bool:
    return aval.dtype.kind == "c"


def _parts(leaf: Any, aval: Aval) -> list[Any]:
    """The real numbers of a leaf: one vector, or two for complex numbers."""
    vector = leaf if len(leaf.shape) == 1 else reshape(leaf, (-1,))
    return [real(vector), imag(vector)] if _is_complex(aval) else [vector]
