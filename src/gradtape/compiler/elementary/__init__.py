"""Elementary functions in the scalar language: `ELEMENTARY` maps NumPy's names to expressions.

Each function takes expressions of float32 or float64 and returns one of the same dtype, made of the
arithmetic that every machine has. Printers expand it where it is called, so that it stays in the
loop:

>>> from gradtape.core.scalar import Scalar
>>> x = Scalar("argument", (), np.dtype("float32"), extra="x")
>>> ELEMENTARY["arctanh"](x).dtype
dtype('float32')

Results are within 3 units in the last place of the exact value, over the whole range and in both
dtypes; for most functions they are within 2, for those from `erfcx` on within 4. Close to zeros
at negative arguments, `lgamma`, `digamma` and `tetragamma` are as exact as the sums they are. NaN,
infinities and the sign of zeros are those of NumPy and SciPy. No function of the C library is
called and no table is read, except for sines, cosines and tangents of huge arguments. The square
root is an instruction.

Machines without a fused multiply-add give different last bits: nothing that has to be exact relies
on one.

The code is straight-line, except for `sin`, `cos`, `tan` and the special functions: they use
`rarely` for what only few arguments need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from gradtape.compiler.elementary.bessel import (
    bessel_i0,
    bessel_i0e,
    bessel_i1,
    bessel_i1e,
    bessel_i2,
    bessel_i2e,
)
from gradtape.compiler.elementary.error import erf, erfc
from gradtape.compiler.elementary.exponential import exp, exp2, expm1, sigmoid
from gradtape.compiler.elementary.gamma import lgamma
from gradtape.compiler.elementary.hyperbolic import cosh, sinh, tanh
from gradtape.compiler.elementary.inverse import arccos, arcsin, arctan, arctan2
from gradtape.compiler.elementary.inverse_error import erfcinv, erfinv, ndtri
from gradtape.compiler.elementary.inverse_hyperbolic import arccosh, arcsinh, arctanh
from gradtape.compiler.elementary.logarithm import log, log1p, log2, log10
from gradtape.compiler.elementary.normal import erfcx, log_ndtr, ndtr
from gradtape.compiler.elementary.polygamma import digamma, tetragamma, trigamma
from gradtape.compiler.elementary.power import power
from gradtape.compiler.elementary.roots import cbrt, hypot
from gradtape.compiler.elementary.trigonometric import cos, sin, tan
from gradtape.core.scalar import Scalar

_FUNCTIONS: tuple[Callable[..., Scalar], ...] = (
    *(exp, exp2, expm1, sigmoid),
    *(log, log2, log10, log1p),
    *(sin, cos, tan),
    *(sinh, cosh, tanh),
    *(arcsin, arccos, arctan, arctan2),
    *(arcsinh, arccosh, arctanh),
    *(cbrt, hypot, power),
    *(erf, erfc, erfcx, ndtr, log_ndtr),
    *(erfinv, erfcinv, ndtri),
    *(lgamma, digamma, trigamma, tetragamma),
    *(bessel_i0, bessel_i1, bessel_i2, bessel_i0e, bessel_i1e, bessel_i2e),
)
ELEMENTARY: Mapping[str, Callable[..., Scalar]] = MappingProxyType(
    {function.__name__: function for function in _FUNCTIONS}
)
