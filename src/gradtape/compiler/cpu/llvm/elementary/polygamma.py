"""digamma and its first two derivatives: quotients of polynomials from 1 to 3, series beyond.

Arguments below 1 are one step of the recurrence away from these ranges, negative ones a reflection.
The first derivatives of the logarithm of the gamma function are so close to each other that they
differ by their coefficients, and by what the recurrence and the reflection add.
"""

from __future__ import annotations

import math

from gradtape.compiler.cpu.llvm.builder import Builder, Value
from gradtape.compiler.cpu.llvm.elementary.logarithm import log
from gradtape.compiler.cpu.llvm.elementary.pieces import (
    INF,
    NAN,
    at_most,
    constants,
    polynomial,
    where_any,
)

Quotient = tuple[tuple[float, ...], tuple[float, ...]]

# From here on series in 1/x are exact.
_FAR = 3.0
# The zero of digamma between 1 and 2, less 1, in two parts.
_ROOT = {
    "float": (0.4616321325302124, 1.243815006546356e-08),
    "double": (0.46163214496836236, -1.5522348162858677e-17),
}
# digamma(1 + t)/(t − root) for t from 0 to 2 as a quotient; relative error 2^-30.3 and 2^-60.7.
_DIGAMMA_NEAR = {
    "float": (
        (
            1.2503801584243774,
            1.1856695413589478,
            0.24766725301742554,
            0.004504884127527475,
            -0.00010483886580914259,
        ),
        (1.0, 1.6317939758300781, 0.7116908431053162, 0.07952693849802017),
    ),
    "double": (
        (
            1.2503801375034054,
            1.937330480509771,
            1.07057248378,
            0.26419218781021747,
            0.029345290931104714,
            0.0012712575093986036,
            1.3608122373394476e-05,
        ),
        (
            1.0,
            2.2329400134956594,
            1.7807250362219451,
            0.6561926460288616,
            0.11789433710940278,
            0.00979658063637792,
            0.00031207981254570725,
            2.210519455592426e-06,
        ),
    ),
}
# x²·(digamma(x) − log x + 1/(2x)) for x ≥ 3 as a polynomial in 1/x²; relative error of digamma
# 2^-33.3 and 2^-57.6.
_DIGAMMA_FAR = {
    "float": (
        -0.08333327621221542,
        0.008328760974109173,
        -0.003845233004540205,
        0.0027334250044077635,
    ),
    "double": (
        -0.0833333333333117,
        0.008333333322856872,
        -0.003968252125665867,
        0.004166499585360203,
        -0.007566661335193208,
        0.020768731154487567,
        -0.07532689897579757,
        0.29906460927806205,
        -1.0418926166633133,
        2.52696571278312,
        -3.0011428815398973,
    ),
}
# trigamma(1 + t) for t from 0 to 2 as a quotient; relative error 2^-32.2 and 2^-60.8.
_TRIGAMMA_NEAR = {
    "float": (
        (1.644934058189392, 3.0893707275390625, 2.080129384994507, 0.4982825219631195),
        (1.0, 3.3396379947662354, 4.171614646911621, 2.32915997505188, 0.49829164147377014),
    ),
    "double": (
        (
            1.6449340668482264,
            4.567095496811714,
            5.39533471003402,
            3.449838609988456,
            1.2583922818612607,
            0.24886806963024388,
            0.020944079742207845,
        ),
        (
            1.0,
            4.237987068070198,
            7.499977341881282,
            7.214716589936223,
            4.098901803647264,
            1.384571576182072,
            0.25934011560173376,
            0.020944079508760725,
        ),
    ),
}
# x³·(trigamma(x) − 1/x − 1/(2x²)) for x ≥ 3 as a polynomial in 1/x²; relative error of trigamma
# 2^-29.7 and 2^-58.1.
_TRIGAMMA_FAR = {
    "float": (0.16666631400585175, -0.03329961746931076, 0.02279714122414589, -0.02041635848581791),
    "double": (
        0.16666666666665889,
        -0.033333333327334555,
        0.023809522189532698,
        -0.03333311148358294,
        0.07573942983624941,
        -0.25214005354650293,
        1.1302091097535532,
        -6.091550179413143,
        33.861188946627934,
        -165.4703564279021,
        614.033635530385,
        -1468.5297015754825,
        1658.536294061982,
    ),
}
# tetragamma(1 + t) for t from 0 to 2 as a quotient; relative error 2^-29.8 and 2^-56.6.
_TETRAGAMMA_NEAR = {
    "float": (
        (
            -2.40411376953125,
            -2.5283010005950928,
            -0.8285878300666809,
            0.0007590627064928412,
            -5.8119487221119925e-05,
        ),
        (1.0, 3.752833843231201, 5.305964946746826, 3.3715410232543945, 0.8238171935081482),
    ),
    "double": (
        (
            -2.4041138063191885,
            -5.145603811147406,
            -4.7126942421737645,
            -2.2777362716238145,
            -0.5797501784763862,
            -0.06265740534841467,
            3.316790311571243e-08,
            -1.51876023714101e-09,
        ),
        (
            1.0,
            4.841510906355516,
            9.862278382753397,
            10.992021758772657,
            7.280314024622163,
            2.888808397190995,
            0.6424094187891175,
            0.06265706209422849,
        ),
    ),
}
# x⁴·(tetragamma(x) + 1/x² + 1/x³) for x ≥ 3 as a polynomial in 1/x²; relative error of tetragamma
# 2^-30.5 and 2^-56.3.
_TETRAGAMMA_FAR = {
    "float": (
        -0.49999967217445374,
        0.16662032902240753,
        -0.1645117849111557,
        0.2541347146034241,
        -0.3255244493484497,
    ),
    "double": (
        -0.49999999999996764,
        0.1666666666375348,
        -0.16666665749186002,
        0.2999985330039651,
        -0.8331928055748076,
        3.281605681293385,
        -17.106837313885716,
        107.71690889175372,
        -720.2607838900808,
        4449.3668016102165,
        -22453.322482372838,
        82629.17482451299,
        -192099.63651750126,
        209022.17825564256,
    ),
}
# πr·cot(πr)/(1 − 4r²) for |r| ≤ 1/2 as a quotient of polynomials in r²; relative error 2^-31.1 and
# 2^-57.1.
_COT = {
    "float": (
        (1.0, -0.49217990040779114, 0.02458827756345272),
        (1.0, -1.202311635017395, 0.20250476896762848),
    ),
    "double": (
        (1.0, -0.6460082819628986, 0.09672536444562939, -0.0031729291584842415),
        (
            1.0,
            -1.3561401482664488,
            0.3838827011115836,
            -0.028028778790542316,
            0.00028623402615129625,
        ),
    ),
}
# sin(πr)/r for |r| ≤ 1/2 as a polynomial in r²; relative error 2^-27.5 and 2^-61.8.
SIN_PI = {
    "float": (
        3.1415927410125732,
        -5.167709827423096,
        2.550069808959961,
        -0.5982421040534973,
        0.07756038755178452,
    ),
    "double": (
        3.141592653589793,
        -5.167712780049969,
        2.550164039877294,
        -0.5992645293187381,
        0.08214588656988837,
        -0.007370430478717043,
        0.00046629968852848026,
        -2.1903184766206763e-05,
        7.694720401936818e-07,
    ),
}


def digamma(b: Builder, x: Value) -> Value:
    """ψ(x), the derivative of log Γ(x)."""
    const = constants(b, x)
    y, is_negative = _mirrored(b, x)
    inverse = b.fdiv(const(1.0), y)
    t, is_below, zero = _from_one(b, y)
    # t − root: the difference is exact where it is small, and what is left of the root is added.
    high, low = _ROOT[x.type.scalar]
    distance = b.exact_fsub(b.exact_fsub(t, const(high)), const(low))
    near = b.fma(
        distance, _quotient(b, t, _DIGAMMA_NEAR), b.select(is_below, b.fneg(inverse), zero)
    )
    w = b.fmul(inverse, inverse)
    series = b.fma(w, polynomial(b, w, _DIGAMMA_FAR[x.type.scalar]), b.fmul(inverse, const(-0.5)))
    found = _near_or_far(b, y, near, b.fadd(log(b, y), series))

    # ψ(x) = ψ(1 − x) − π·cot(πx), without a value at integers
    def reflected() -> Value:
        r = distance_to_integer(b, x)
        mirrored = b.fsub(found, _cotangent(b, r))
        at_pole = b.fcmp("oeq", r, const(0.0))
        return b.select(is_negative, b.select(at_pole, const(NAN), mirrored), found)

    return where_any(b, is_negative, reflected, found)


def trigamma(b: Builder, x: Value) -> Value:
    """ψ′(x), the derivative of digamma."""
    const = constants(b, x)
    y, is_negative = _mirrored(b, x)
    inverse = b.fdiv(const(1.0), y)
    w = b.fmul(inverse, inverse)
    t, is_below, zero = _from_one(b, y)
    near = b.fadd(_quotient(b, t, _TRIGAMMA_NEAR), b.select(is_below, w, zero))
    series = b.fma(
        b.fmul(w, inverse), polynomial(b, w, _TRIGAMMA_FAR[x.type.scalar]), b.fmul(w, const(0.5))
    )
    found = _near_or_far(b, y, near, b.fadd(inverse, series))

    # ψ′(x) = (π/sin(πx))² − ψ′(1 − x)
    def reflected() -> Value:
        r = distance_to_integer(b, x)
        over_sine = _over_sine(b, r)
        mirrored = b.fma(over_sine, over_sine, b.fneg(found))
        at_pole = b.fcmp("ueq", r, const(0.0))
        return b.select(is_negative, b.select(at_pole, const(INF), mirrored), found)

    return where_any(b, is_negative, reflected, found)


def tetragamma(b: Builder, x: Value) -> Value:
    """ψ″(x), the derivative of trigamma."""
    const = constants(b, x)
    y, is_negative = _mirrored(b, x)
    inverse = b.fdiv(const(1.0), b.fabs(y))
    w = b.fmul(inverse, inverse)
    t, is_below, zero = _from_one(b, y)
    step = b.fmul(b.fmul(w, inverse), const(-2.0))
    near = b.fadd(_quotient(b, t, _TETRAGAMMA_NEAR), b.select(is_below, step, zero))
    # −(1/x² + 1/x³) + …/x⁴
    series = b.fma(w, polynomial(b, w, _TETRAGAMMA_FAR[x.type.scalar]), b.fneg(inverse))
    found = _near_or_far(b, y, near, b.fmul(w, b.fadd(series, const(-1.0))))

    # ψ″(x) = ψ″(1 − x) − 2π·cot(πx)·(π/sin(πx))²
    def reflected() -> Value:
        r = distance_to_integer(b, x)
        over_sine = _over_sine(b, r)
        product = b.fmul(b.fmul(over_sine, over_sine), _cotangent(b, r))
        mirrored = b.fma(product, const(-2.0), found)
        at_pole = b.fcmp("ueq", r, const(0.0))
        return b.select(is_negative, b.select(at_pole, const(-INF), mirrored), found)

    return where_any(b, is_negative, reflected, found)


# ---- parts ---------------------------------------------------------------------------------------


def _mirrored(b: Builder, x: Value) -> tuple[Value, Value]:
    """The arguments, 1 − x in place of negative ones; and which are."""
    const = constants(b, x)
    is_negative = b.fcmp("olt", x, const(0.0))
    return b.select(is_negative, b.exact_fsub(const(1.0), x), x), is_negative


def _from_one(b: Builder, y: Value) -> tuple[Value, Value, Value]:
    """How far what is computed lies above 1: y itself where that is below 1; which are; and 0."""
    const = constants(b, y)
    is_below = b.fcmp("olt", y, const(1.0))
    bounded = at_most(b, y, _FAR)
    return b.select(is_below, y, b.exact_fsub(bounded, const(1.0))), is_below, const(0.0)


def _quotient(b: Builder, t: Value, table: dict[str, Quotient]) -> Value:
    """A quotient of polynomials."""
    above, below = (polynomial(b, t, coefficients) for coefficients in table[t.type.scalar])
    return b.fdiv(above, below)


def _near_or_far(b: Builder, y: Value, near: Value, far: Value) -> Value:
    """The one of two results that holds for an argument; NaN counts as far."""
    return b.select(b.fcmp("olt", y, b.const(y.type, _FAR)), near, far)


def distance_to_integer(b: Builder, x: Value) -> Value:
    """The difference to the nearest integer, which is exact."""
    return b.exact_fsub(x, b.intrinsic("roundeven", x.type, x))


def _cotangent(b: Builder, r: Value) -> Value:
    """π·cot(πr) for |r| ≤ 1/2."""
    const = constants(b, r)
    z = b.fmul(r, r)
    above, below = (polynomial(b, z, coefficients) for coefficients in _COT[r.type.scalar])
    # 1 − 4r², exact where it is small
    twice = b.exact_fadd(b.fabs(r), b.fabs(r))
    zeros = b.fmul(b.exact_fsub(const(1.0), twice), b.fadd(const(1.0), twice))
    return b.fdiv(b.fmul(zeros, above), b.fmul(r, below))


def _over_sine(b: Builder, r: Value) -> Value:
    """π/sin(πr) for |r| ≤ 1/2."""
    sine_over_r = polynomial(b, b.fmul(r, r), SIN_PI[r.type.scalar])
    return b.fdiv(b.const(r.type, math.pi), b.fmul(r, sine_over_r))
