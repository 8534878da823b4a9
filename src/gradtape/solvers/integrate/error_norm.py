"""What errors are allowed in a step, and how large one is against it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.cast import stop_gradient
from gradtape.ops.comparison import isfinite
from gradtape.ops.exponential import sqrt
from gradtape.ops.reduce import max as max_of, mean
from gradtape.ops.select import maximum, where


class Tolerances:
    """The error allowed in each component, `atol + rtol·|y|`.

    Attributes:
        rtol: Relative to y.
        atol: Absolute; a number, or one for each component.
    """

    def __init__(self, rtol: float, atol: Any) -> None:
        self.rtol, self.atol = rtol, atol

    def scale(self, *ys: Any) -> Any:
        """The error allowed where y has the larger of some values."""
        size = abs_of(ys[0])
        for y in ys[1:]:
            size = maximum(size, abs_of(y))
        return self.atol + self.rtol * size

    def norm(self, error: Any, *ys: Any) -> Any:
        """The root mean square of an error relative to what is allowed."""
        return rms(error / self.scale(*ys))


def rms(x: Any) -> Any:
    """The root mean square of a vector."""
    size = abs_of(x) if np.dtype(x.dtype).kind == "c" else x
    return sqrt(mean(size * size))


def unit(vector: Any, otherwise: Any) -> Any:
    """A vector divided by its root mean square; another one if it has none, or is not finite."""
    size = rms(vector)
    known = isfinite(size) & (size > 0)
    return where(known, vector / where(known, size, 1.0), otherwise)


def still(x: Any) -> Any:
    """The value without derivatives: step sizes are constants of a discretisation."""
    return stop_gradient(x) if isinstance(x, Tensor) else x


def magnitude(changes: Sequence[Any]) -> Any:
    """The largest element of tangents or cotangents, 1 if all are 0.

    They may have any units, and equations in them are linear: divided by this, they can be held to
    absolute tolerances.
    """
    sizes = [max_of(abs_of(still(x))) for x in changes if 0 not in x.shape]
    size = functools.reduce(maximum, sizes, np.float64(0.0))
    return where(size == 0, 1.0, size)
