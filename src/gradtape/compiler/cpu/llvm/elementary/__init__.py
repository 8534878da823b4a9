"""Elementary functions as LLVM IR: `ELEMENTARY` maps NumPy's names to functions that write them.

Each takes a builder and values of `float` or `double` in any number of lanes, appends the
instructions that compute the function in every lane, and returns the result:

>>> from gradtape.compiler.cpu.llvm.builder import Builder, Module, Type, Value
>>> b = Builder(Module())
>>> ELEMENTARY["exp"](b, Value(Type("float", 16), "%x")).type
Type(scalar='float', lanes=16)

Results are within 3 units in the last place of the exact value, over the whole range and in both
types, and the same whatever the number of lanes; with most functions they are within 2, with those
from `erfcx` on within 4. Close to zeros at negative arguments, `lgamma`, `digamma` and `tetragamma`
are as exact as the sums they are. NaN, infinities and the sign of zeros are those of NumPy and
SciPy. No function of the C library is called and no table is read, but for sines, cosines and
tangents of huge arguments.

CPUs without a fused multiply-add give other last bits: what has to be exact does not rely on one.

The code is straight-line, but for `sin`, `cos`, `tan` and the special functions: these branch where
a lane needs the long way round, and leave the builder in another block than they found it in. What
follows must take the name of the current block from `builder.block`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from gradtape.compiler.cpu.llvm.builder import Value
from gradtape.compiler.cpu.llvm.elementary.bessel import (
    bessel_i0,
    bessel_i0e,
    bessel_i1,
    bessel_i1e,
    bessel_i2,
    bessel_i2e,
)
from gradtape.compiler.cpu.llvm.elementary.error import erf, erfc
from gradtape.compiler.cpu.llvm.elementary.exponential import exp, exp2, expm1, sigmoid
from gradtape.compiler.cpu.llvm.elementary.gamma import lgamma
from gradtape.compiler.cpu.llvm.elementary.hyperbolic import cosh, sinh, tanh
from gradtape.compiler.cpu.llvm.elementary.inverse import arccos, arcsin, arctan, arctan2
from gradtape.compiler.cpu.llvm.elementary.inverse_error import erfcinv, erfinv, ndtri
from gradtape.compiler.cpu.llvm.elementary.inverse_hyperbolic import arccosh, arcsinh, arctanh
from gradtape.compiler.cpu.llvm.elementary.logarithm import log, log1p, log2, log10
from gradtape.compiler.cpu.llvm.elementary.normal import erfcx, log_ndtr, ndtr
from gradtape.compiler.cpu.llvm.elementary.polygamma import digamma, tetragamma, trigamma
from gradtape.compiler.cpu.llvm.elementary.power import power
from gradtape.compiler.cpu.llvm.elementary.roots import cbrt, hypot, sqrt
from gradtape.compiler.cpu.llvm.elementary.trigonometric import cos, sin, tan

# (builder, *operands) -> result
Writer = Callable[..., Value]

ELEMENTARY: Mapping[str, Writer] = MappingProxyType(
    {
        "exp": exp,
        "exp2": exp2,
        "expm1": expm1,
        "sigmoid": sigmoid,
        "log": log,
        "log2": log2,
        "log10": log10,
        "log1p": log1p,
        "sin": sin,
        "cos": cos,
        "tan": tan,
        "sinh": sinh,
        "cosh": cosh,
        "tanh": tanh,
        "arcsin": arcsin,
        "arccos": arccos,
        "arctan": arctan,
        "arctan2": arctan2,
        "arcsinh": arcsinh,
        "arccosh": arccosh,
        "arctanh": arctanh,
        "sqrt": sqrt,
        "cbrt": cbrt,
        "hypot": hypot,
        "power": power,
        "erf": erf,
        "erfc": erfc,
        "erfcx": erfcx,
        "ndtr": ndtr,
        "log_ndtr": log_ndtr,
        "erfinv": erfinv,
        "erfcinv": erfcinv,
        "ndtri": ndtri,
        "lgamma": lgamma,
        "digamma": digamma,
        "trigamma": trigamma,
        "tetragamma": tetragamma,
        "bessel_i0": bessel_i0,
        "bessel_i1": bessel_i1,
        "bessel_i2": bessel_i2,
        "bessel_i0e": bessel_i0e,
        "bessel_i1e": bessel_i1e,
        "bessel_i2e": bessel_i2e,
    }
)
