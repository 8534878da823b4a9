"""digamma and its first two derivatives: quotients of polynomials from 1 to 3, series beyond.

Arguments below 1 are one step of the recurrence away from these ranges, negative ones a reflection.
The first derivatives of the logarithm of the gamma function are so similar that they differ only in
their coefficients, and in the terms that the recurrence and the reflection add.
"""

from __future__ import annotations

import math

from gradtape.compiler.elementary.logarithm import log
from gradtape.compiler.elementary.pieces import (
    INF,
    NAN,
    at_most,
    polynomial,
    polynomials,
    quotient,
    quotients,
)
from gradtape.core.scalar import Scalar, absolute, fma, rarely, rint, where

# From here on series in 1/x are exact.
_FAR = 3.0
# The zero of digamma between 1 and 2, less 1, in two parts.
_ROOT = {
    "float32": (0.4616321325302124, 1.243815006546356e-08),
    "float64": (0.46163214496836236, -1.5522348162858677e-17),
}
# digamma(1 + t)/(t − root) for t from 0 to 2 as a quotient; relative error 2^-30.3 and 2^-60.7.
_DIGAMMA_NEAR = quotients("""
    float32: 1.2503801584243774 1.1856695413589478 0.24766725301742554 0.004504884127527475
             -0.00010483886580914259
           / 1.0 1.6317939758300781 0.7116908431053162 0.07952693849802017
    float64: 1.2503801375034054 1.937330480509771 1.07057248378 0.26419218781021747
             0.029345290931104714 0.0012712575093986036 1.3608122373394476e-05
           / 1.0 2.2329400134956594 1.7807250362219451 0.6561926460288616 0.11789433710940278
             0.00979658063637792 0.00031207981254570725 2.210519455592426e-06
""")
# x²·(digamma(x) − log x + 1/(2x)) for x ≥ 3 as a polynomial in 1/x²; relative error of digamma
# 2^-33.3 and 2^-57.6.
_DIGAMMA_FAR = polynomials("""
    float32: -0.08333327621221542 0.008328760974109173 -0.003845233004540205 0.0027334250044077635
    float64: -0.0833333333333117 0.008333333322856872 -0.003968252125665867 0.004166499585360203
             -0.007566661335193208 0.020768731154487567 -0.07532689897579757 0.29906460927806205
             -1.0418926166633133 2.52696571278312 -3.0011428815398973
""")
# trigamma(1 + t) for t from 0 to 2 as a quotient; relative error 2^-32.2 and 2^-60.8.
_TRIGAMMA_NEAR = quotients("""
    float32: 1.644934058189392 3.0893707275390625 2.080129384994507 0.4982825219631195
           / 1.0 3.3396379947662354 4.171614646911621 2.32915997505188 0.49829164147377014
    float64: 1.6449340668482264 4.567095496811714 5.39533471003402 3.449838609988456
             1.2583922818612607 0.24886806963024388 0.020944079742207845
           / 1.0 4.237987068070198 7.499977341881282 7.214716589936223 4.098901803647264
             1.384571576182072 0.25934011560173376 0.020944079508760725
""")
# x³·(trigamma(x) − 1/x − 1/(2x²)) for x ≥ 3 as a polynomial in 1/x²; relative error of trigamma
# 2^-29.7 and 2^-58.1.
_TRIGAMMA_FAR = polynomials("""
    float32: 0.16666631400585175 -0.03329961746931076 0.02279714122414589 -0.02041635848581791
    float64: 0.16666666666665889 -0.033333333327334555 0.023809522189532698 -0.03333311148358294
             0.07573942983624941 -0.25214005354650293 1.1302091097535532 -6.091550179413143
             33.861188946627934 -165.4703564279021 614.033635530385 -1468.5297015754825
             1658.536294061982
""")
# tetragamma(1 + t) for t from 0 to 2 as a quotient; relative error 2^-29.8 and 2^-56.6.
_TETRAGAMMA_NEAR = quotients("""
    float32: -2.40411376953125 -2.5283010005950928 -0.8285878300666809 0.0007590627064928412
             -5.8119487221119925e-05
           / 1.0 3.752833843231201 5.305964946746826 3.3715410232543945 0.8238171935081482
    float64: -2.4041138063191885 -5.145603811147406 -4.7126942421737645 -2.2777362716238145
             -0.5797501784763862 -0.06265740534841467 3.316790311571243e-08 -1.51876023714101e-09
           / 1.0 4.841510906355516 9.862278382753397 10.992021758772657 7.280314024622163
             2.888808397190995 0.6424094187891175 0.06265706209422849
""")
# x⁴·(tetragamma(x) + 1/x² + 1/x³) for x ≥ 3 as a polynomial in 1/x²; relative error of tetragamma
# 2^-30.5 and 2^-56.3.
_TETRAGAMMA_FAR = polynomials("""
    float32: -0.49999967217445374 0.16662032902240753 -0.1645117849111557 0.2541347146034241
             -0.3255244493484497
    float64: -0.49999999999996764 0.1666666666375348 -0.16666665749186002 0.2999985330039651
             -0.8331928055748076 3.281605681293385 -17.106837313885716 107.71690889175372
             -720.2607838900808 4449.3668016102165 -22453.322482372838 82629.17482451299
             -192099.63651750126 209022.17825564256
""")
# πr·cot(πr)/(1 − 4r²) for |r| ≤ 1/2 as a quotient of polynomials in r²; relative error 2^-31.1 and
# 2^-57.1.
_COT = quotients("""
    float32: 1.0 -0.49217990040779114 0.02458827756345272
           / 1.0 -1.202311635017395 0.20250476896762848
    float64: 1.0 -0.6460082819628986 0.09672536444562939 -0.0031729291584842415
           / 1.0 -1.3561401482664488 0.3838827011115836 -0.028028778790542316 0.00028623402615129625
""")
# sin(πr)/r for |r| ≤ 1/2 as a polynomial in r²; relative error 2^-27.5 and 2^-61.8.
SIN_PI = polynomials("""
    float32: 3.1415927410125732 -5.167709827423096 2.550069808959961 -0.5982421040534973
             0.07756038755178452
    float64: 3.141592653589793 -5.167712780049969 2.550164039877294 -0.5992645293187381
             0.08214588656988837 -0.007370430478717043 0.00046629968852848026
             -2.1903184766206763e-05 7.694720401936818e-07
""")


def digamma(x: Scalar) -> Scalar:
    """ψ(x), the derivative of log Γ(x)."""
    y, is_negative = _mirrored(x)
    inverse = 1.0 / y
    t, is_below = _from_one(y)
    # t − root: the difference is exact where it is small; then the rest of the root is subtracted.
    high, low = _ROOT[x.dtype.name]
    distance = t - high - low
    near = fma(distance, quotient(t, _DIGAMMA_NEAR), where(is_below, -inverse, 0.0))
    w = inverse * inverse
    series = fma(w, polynomial(w, _DIGAMMA_FAR[x.dtype.name]), inverse * -0.5)
    found = _near_or_far(y, near, log(y) + series)

    # ψ(x) = ψ(1 − x) − π·cot(πx), without a value at integers
    r = distance_to_integer(x)
    mirrored = where(r == 0.0, NAN, found - _cotangent(r))
    return rarely(is_negative, mirrored, found)


def trigamma(x: Scalar) -> Scalar:
    """ψ′(x), the derivative of digamma."""
    y, is_negative = _mirrored(x)
    inverse = 1.0 / y
    w = inverse * inverse
    t, is_below = _from_one(y)
    near = quotient(t, _TRIGAMMA_NEAR) + where(is_below, w, 0.0)
    series = fma(w * inverse, polynomial(w, _TRIGAMMA_FAR[x.dtype.name]), w * 0.5)
    found = _near_or_far(y, near, inverse + series)

    # ψ′(x) = (π/sin(πx))² − ψ′(1 − x)
    r = distance_to_integer(x)
    over_sine = _over_sine(r)
    mirrored = fma(over_sine, over_sine, -found)
    # At a pole, and at −∞, where r is NaN, it is infinite.
    return rarely(is_negative, where(absolute(r) > 0.0, mirrored, INF), found)


def tetragamma(x: Scalar) -> Scalar:
    """ψ″(x), the derivative of trigamma."""
    y, is_negative = _mirrored(x)
    inverse = 1.0 / absolute(y)
    w = inverse * inverse
    t, is_below = _from_one(y)
    step = w * inverse * -2.0
    near = quotient(t, _TETRAGAMMA_NEAR) + where(is_below, step, 0.0)
    # −(1/x² + 1/x³) + …/x⁴
    series = fma(w, polynomial(w, _TETRAGAMMA_FAR[x.dtype.name]), -inverse)
    found = _near_or_far(y, near, w * (series - 1.0))

    # ψ″(x) = ψ″(1 − x) − 2π·cot(πx)·(π/sin(πx))²
    r = distance_to_integer(x)
    over_sine = _over_sine(r)
    product = over_sine * over_sine * _cotangent(r)
    mirrored = fma(product, -2.0, found)
    return rarely(is_negative, where(absolute(r) > 0.0, mirrored, -INF), found)


# ---- parts ---------------------------------------------------------------------------------------


def _mirrored(x: Scalar) -> tuple[Scalar, Scalar]:
    """The argument, replaced by 1 − x if it is negative; and whether it is."""
    is_negative = x < 0.0
    return where(is_negative, 1.0 - x, x), is_negative


def _from_one(y: Scalar) -> tuple[Scalar, Scalar]:
    """The t of the point 1 + t to compute at: y − 1, or y itself if y < 1; and whether y < 1."""
    is_below = y < 1.0
    bounded = at_most(y, _FAR)
    return where(is_below, y, bounded - 1.0), is_below


def _near_or_far(y: Scalar, near: Scalar, far: Scalar) -> Scalar:
    """Choose the result that holds for an argument; NaN counts as far."""
    return where(y < _FAR, near, far)


def distance_to_integer(x: Scalar) -> Scalar:
    """The difference to the nearest integer, which is exact."""
    return x - rint(x)


def _cotangent(r: Scalar) -> Scalar:
    """π·cot(πr) for |r| ≤ 1/2."""
    z = r * r
    above, below = (polynomial(z, coefficients) for coefficients in _COT[r.dtype.name])
    # 1 − 4r², exact where it is small
    twice = absolute(r) + absolute(r)
    zeros = (1.0 - twice) * (1.0 + twice)
    return zeros * above / (r * below)


def _over_sine(r: Scalar) -> Scalar:
    """π/sin(πr) for |r| ≤ 1/2."""
    sine_over_r = polynomial(r * r, SIN_PI[r.dtype.name])
    return math.pi / (r * sine_over_r)
