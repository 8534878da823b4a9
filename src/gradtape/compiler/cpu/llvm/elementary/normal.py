"""erfcx, ndtr and log_ndtr: the tail of the error function without its exponential, and with it."""

from __future__ import annotations

from gradtape.compiler.cpu.llvm.builder import Builder, Value
from gradtape.compiler.cpu.llvm.elementary.exponential import exp_less_one_of_remainder
from gradtape.compiler.cpu.llvm.elementary.logarithm import log_of_product, split_one_plus
from gradtape.compiler.cpu.llvm.elementary.pieces import (
    LN2,
    LOG2_E,
    at_most,
    constants,
    format_of,
    high_half,
    polynomial,
    rounded,
    scaled_in_two_steps,
    split_exponent,
    where_any,
)

# (1 + 2x)·e^(x²)·erfc(x) − 1.2, less than 0.2, for all x ≥ 0 as a quotient of polynomials in
# 1/(1 + 2x); relative error of erfcx 2^-30.8 and 2^-57.5.
_ERFCX = {
    "float": (
        (
            -0.07162083685398102,
            0.4325653612613678,
            5.529028415679932,
            35.18499755859375,
            92.50594329833984,
            22.894214630126953,
            -567.486083984375,
        ),
        (
            1.0,
            9.715251922607422,
            60.107784271240234,
            223.99057006835938,
            537.2844848632812,
            749.9712524414062,
            472.9853820800781,
        ),
    ),
    "double": (
        (
            -0.07162083290448742,
            -0.9839000684045087,
            -1.4817148620032137,
            132.76791299431108,
            2176.898293076081,
            19338.665117795845,
            112762.87641972712,
            439117.46251381584,
            1030738.2996105677,
            730406.7040252414,
            -3260677.6074562017,
            -8656655.1577535,
        ),
        (
            1.0,
            29.492525426462176,
            469.58525344202843,
            5001.081983013967,
            38691.01661755641,
            224886.33171816677,
            992026.1468846154,
            3296463.2727821367,
            8040450.790035291,
            13647434.63292811,
            14453975.503069801,
            7213879.288963665,
        ),
    ),
}
_ERFCX_MIDDLE = 1.2
# e^(x²/2)·Φ(−x) from 0 to where Φ(−x) rounds to 0, as a quotient; relative error 2^-27.3 and
# 2^-59.9.
_TAIL = {
    "float": (
        (0.5, 0.43830278515815735, 0.18324099481105804, 0.04063521698117256, 0.004116609692573547),
        (
            1.0,
            1.6744905710220337,
            1.202527403831482,
            0.4694860875606537,
            0.10186382383108139,
            0.010318690910935402,
        ),
    ),
    "double": (
        (
            0.5,
            0.8279343801041689,
            0.6796248383109348,
            0.3573576717273706,
            0.13205272265593823,
            0.03567010670979122,
            0.007123449465035998,
            0.0010398161258570156,
            0.00010658478086559561,
            6.976879367962684e-06,
            2.2421679774163606e-07,
        ),
        (
            1.0,
            2.4537533210112032,
            2.817061567475458,
            2.001490134736663,
            0.9801367022967663,
            0.3483342043945846,
            0.09198315394557466,
            0.018121884201963024,
            0.002623920944787222,
            0.0002677304535247512,
            1.7488443092454782e-05,
            5.620281648662768e-07,
        ),
    ),
}
# √½ in two parts.
_ROOT_HALF = {
    "float": (0.7071067690849304, 1.210161710447897e-08),
    "double": (0.7071067811865476, -4.833646656726457e-17),
}
# From here on e^(x²) is infinite, and e^(−x²/2) is 0.
_SQUARE_END = {"float": 9.5, "double": 27.0}
_HALF_SQUARE_END = {"float": 14.5, "double": 39.0}
# Beyond this the logarithm of erfcx does not count beside x².
_NOTHING_BESIDE_SQUARE = 2.0**40


def erfcx(b: Builder, x: Value) -> Value:
    """e^(x²)·erfc(x)."""
    const = constants(b, x)
    a = b.fabs(x)
    found = erfcx_of_positive(b, a)
    is_negative = b.fcmp("olt", x, const(0.0))

    # erfc(x) = 2 − erfc(−x)
    def reflected() -> Value:
        e = _times_exp_of_square(b, const(1.0), at_most(b, a, _SQUARE_END[x.type.scalar]), 1.0)
        return b.select(is_negative, b.fsub(b.fadd(e, e), found), found)

    return where_any(b, is_negative, reflected, found)


def erfcx_of_positive(b: Builder, x: Value) -> Value:
    """e^(x²)·erfc(x) for x ≥ 0."""
    return _erfcx(b, b.fadd(x, b.const(x.type, 0.5)))


def _erfcx(b: Builder, x_and_half: Value) -> Value:
    """The same by x + ½."""
    const = constants(b, x_and_half)
    t = b.fdiv(const(0.5), x_and_half)
    above, below = (polynomial(b, t, c) for c in _ERFCX[t.type.scalar])
    return b.fmul(t, b.fadd(b.fdiv(above, below), const(_ERFCX_MIDDLE)))


def ndtr(b: Builder, x: Value) -> Value:
    """The normal distribution function Φ(x)."""
    const = constants(b, x)
    a = at_most(b, b.fabs(x), _HALF_SQUARE_END[x.type.scalar])
    above, below = (polynomial(b, a, c) for c in _TAIL[x.type.scalar])
    tail = _times_exp_of_square(b, b.fdiv(above, below), a, -0.5)
    return b.select(b.fcmp("ogt", x, const(0.0)), b.fsub(const(1.0), tail), tail)


def log_ndtr(b: Builder, x: Value) -> Value:
    """The logarithm of the normal distribution function Φ(x)."""
    const = constants(b, x)
    a = b.fabs(x)
    # Φ(−a) = ½·erfcx(a/√2)·e^(−a²/2)
    high, low = (const(part) for part in _ROOT_HALF[x.type.scalar])
    finite = at_most(b, a, _NOTHING_BESIDE_SQUARE)
    scaled = b.fmul(_erfcx(b, b.fma(finite, high, b.fma(finite, low, const(0.5)))), const(0.5))
    near = at_most(b, a, _HALF_SQUARE_END[x.type.scalar])
    minus_tail = b.fneg(_times_exp_of_square(b, scaled, near, -0.5))
    is_positive = b.fcmp("ogt", x, const(0.0))
    # log(1 − Φ(−x)), or log ½·erfcx(−x/√2) less x²/2
    one_less = split_one_plus(b, minus_tail, b.exact_fadd(minus_tail, const(1.0)))
    k, m = split_exponent(b, scaled, subnormal=False)
    k = b.select(is_positive, one_less[0], k)
    f = b.select(is_positive, one_less[1], b.exact_fsub(m, const(1.0)))
    logarithm = log_of_product(b, k, f)
    below = b.fma(b.fmul(x, const(-0.5)), x, logarithm)
    return b.select(is_positive, b.fneg(b.fabs(logarithm)), below)


def _times_exp_of_square(b: Builder, q: Value, a: Value, factor: float) -> Value:
    """q·e^(a²·factor) for a factor of ±1 or ±½; a² = high² + rest, the first of which is exact."""
    const = constants(b, a)
    high = high_half(b, a)
    square = b.exact_fmul(b.exact_fmul(high, const(factor)), high)
    rest = b.fmul(b.fmul(b.exact_fsub(a, high), const(factor)), b.fadd(a, high))
    k, shifted = rounded(b, b.fadd(square, rest), LOG2_E, add=2 * format_of(a).bias)
    high_ln2, low_ln2 = (const(-part) for part in LN2[a.type.scalar])
    r = b.fadd(b.fma(k, high_ln2, square), b.fma(k, low_ln2, rest))
    # q·eʳ = q + q·(eʳ − 1) is rounded less often.
    product = b.fma(q, exp_less_one_of_remainder(b, r), q)
    return scaled_in_two_steps(b, product, shifted)
