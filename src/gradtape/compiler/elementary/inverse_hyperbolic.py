"""arcsinh, arccosh, arctanh: logarithms of 1 + something small where the result is small."""

from __future__ import annotations

from gradtape.compiler.elementary.logarithm import log1p, log1p_of_positive
from gradtape.compiler.elementary.pieces import NAN
from gradtape.core.scalar import Scalar, absolute, copysign, fma, sqrt, where

# Beyond this, √(x² ± 1) is x to the last bit: the logarithm is that of 2x = 2(1 + (x − 1)).
_LARGE = {"float32": 2.0**14, "float64": 2.0**28}


def arcsinh(x: Scalar) -> Scalar:
    """The inverse of sinh: log(1 + a + a²/(1 + √(a² + 1))) for a = |x|."""
    a = absolute(x)
    is_large = a > _LARGE[x.dtype.name]
    square = a * a
    beyond = square / (sqrt(square + 1.0) + 1.0)
    argument = where(is_large, a - 1.0, a + beyond)
    return copysign(log1p_of_positive(argument, is_large), x)


def arccosh(x: Scalar) -> Scalar:
    """The inverse of cosh: log(1 + t + √(2t + t²)) for t = x − 1."""
    is_large = x > _LARGE[x.dtype.name]
    t = x - 1.0
    root = sqrt(fma(t, t, t + t))
    result = log1p_of_positive(where(is_large, t, t + root), is_large)
    return where(x < 1.0, NAN, result)


def arctanh(x: Scalar) -> Scalar:
    """The inverse of tanh: log(1 + 2a/(1 − a))/2 for a = |x|."""
    a = absolute(x)
    ratio = (a + a) / (1.0 - a)
    return copysign(log1p(ratio) * 0.5, x)
