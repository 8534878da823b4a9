"""arcsinh, arccosh, arctanh: logarithms of 1 + something small where the result is small."""

from __future__ import annotations

from gradtape.compiler.cpu.llvm.builder import Builder, Value
from gradtape.compiler.cpu.llvm.elementary.logarithm import log1p, log1p_of_positive
from gradtape.compiler.cpu.llvm.elementary.pieces import NAN, constants

# Beyond this, √(x² ± 1) is x to the last bit: the logarithm is that of 2x = 2(1 + (x − 1)).
_LARGE = {"float": 2.0**14, "double": 2.0**28}


def arcsinh(b: Builder, x: Value) -> Value:
    """The inverse of sinh: log(1 + a + a²/(1 + √(a² + 1))) for a = |x|."""
    one = b.const(x.type, 1.0)
    a = b.fabs(x)
    is_large = b.fcmp("ogt", a, b.const(x.type, _LARGE[x.type.scalar]))
    square = b.fmul(a, a)
    beyond = b.fdiv(square, b.fadd(b.sqrt(b.fadd(square, one)), one))
    argument = b.select(is_large, b.fsub(a, one), b.fadd(a, beyond))
    return b.copysign(log1p_of_positive(b, argument, is_large), x)


def arccosh(b: Builder, x: Value) -> Value:
    """The inverse of cosh: log(1 + t + √(2t + t²)) for t = x − 1."""
    const = constants(b, x)
    is_large = b.fcmp("ogt", x, const(_LARGE[x.type.scalar]))
    t = b.exact_fsub(x, const(1.0))
    root = b.sqrt(b.fma(t, t, b.fadd(t, t)))
    result = log1p_of_positive(b, b.select(is_large, t, b.fadd(t, root)), is_large)
    return b.select(b.fcmp("olt", x, const(1.0)), const(NAN), result)


def arctanh(b: Builder, x: Value) -> Value:
    """The inverse of tanh: log(1 + 2a/(1 − a))/2 for a = |x|."""
    const = constants(b, x)
    a = b.fabs(x)
    ratio = b.fdiv(b.fadd(a, a), b.fsub(const(1.0), a))
    return b.copysign(b.fmul(log1p(b, ratio), const(0.5)), x)
