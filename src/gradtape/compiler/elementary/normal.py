"""erfcx, ndtr and log_ndtr: the tail of the error function without its exponential, and with it."""

from __future__ import annotations

from gradtape.compiler.elementary.exponential import exp_less_one_of_remainder
from gradtape.compiler.elementary.logarithm import log_of_product, split_one_plus
from gradtape.compiler.elementary.pieces import (
    LN2,
    LOG2_E,
    at_most,
    format_of,
    high_half,
    number,
    quotient,
    quotients,
    rounded,
    scaled_in_two_steps,
    split_exponent,
)
from gradtape.core.scalar import Scalar, absolute, fma, rarely, where

# (1 + 2x)·e^(x²)·erfc(x) − 1.2, less than 0.2, for all x ≥ 0 as a quotient of polynomials in
# 1/(1 + 2x); relative error of erfcx 2^-30.8 and 2^-57.5.
_ERFCX = quotients("""
    float32: -0.07162083685398102 0.4325653612613678 5.529028415679932 35.18499755859375
             92.50594329833984 22.894214630126953 -567.486083984375
           / 1.0 9.715251922607422 60.107784271240234 223.99057006835938 537.2844848632812
             749.9712524414062 472.9853820800781
    float64: -0.07162083290448742 -0.9839000684045087 -1.4817148620032137 132.76791299431108
             2176.898293076081 19338.665117795845 112762.87641972712 439117.46251381584
             1030738.2996105677 730406.7040252414 -3260677.6074562017 -8656655.1577535
           / 1.0 29.492525426462176 469.58525344202843 5001.081983013967 38691.01661755641
             224886.33171816677 992026.1468846154 3296463.2727821367 8040450.790035291
             13647434.63292811 14453975.503069801 7213879.288963665
""")
_ERFCX_MIDDLE = 1.2
# e^(x²/2)·Φ(−x) from 0 to where Φ(−x) rounds to 0, as a quotient; relative error 2^-27.3 and
# 2^-59.9.
_TAIL = quotients("""
    float32: 0.5 0.43830278515815735 0.18324099481105804 0.04063521698117256 0.004116609692573547
           / 1.0 1.6744905710220337 1.202527403831482 0.4694860875606537 0.10186382383108139
             0.010318690910935402
    float64: 0.5 0.8279343801041689 0.6796248383109348 0.3573576717273706 0.13205272265593823
             0.03567010670979122 0.007123449465035998 0.0010398161258570156 0.00010658478086559561
             6.976879367962684e-06 2.2421679774163606e-07
           / 1.0 2.4537533210112032 2.817061567475458 2.001490134736663 0.9801367022967663
             0.3483342043945846 0.09198315394557466 0.018121884201963024 0.002623920944787222
             0.0002677304535247512 1.7488443092454782e-05 5.620281648662768e-07
""")
# √½ in two parts.
_ROOT_HALF = {
    "float32": (0.7071067690849304, 1.210161710447897e-08),
    "float64": (0.7071067811865476, -4.833646656726457e-17),
}
# From here on e^(x²) is infinite, and e^(−x²/2) is 0.
_SQUARE_END = {"float32": 9.5, "float64": 27.0}
_HALF_SQUARE_END = {"float32": 14.5, "float64": 39.0}
# Beyond this the logarithm of erfcx is negligible beside x².
_NOTHING_BESIDE_SQUARE = 2.0**40


def erfcx(x: Scalar) -> Scalar:
    """e^(x²)·erfc(x)."""
    a = absolute(x)
    found = erfcx_of_positive(a)
    # erfc(x) = 2 − erfc(−x)
    bounded = at_most(a, _SQUARE_END[x.dtype.name])
    e = _times_exp_of_square(number(x, 1.0), bounded, 1.0)
    return rarely(x < 0.0, e + e - found, found)


def erfcx_of_positive(x: Scalar) -> Scalar:
    """e^(x²)·erfc(x) for x ≥ 0."""
    return _erfcx(x + 0.5)


def _erfcx(x_and_half: Scalar) -> Scalar:
    """e^(x²)·erfc(x) for x ≥ 0, given x + ½."""
    t = 0.5 / x_and_half
    return t * (quotient(t, _ERFCX) + _ERFCX_MIDDLE)


def ndtr(x: Scalar) -> Scalar:
    """The normal distribution function Φ(x)."""
    a = at_most(absolute(x), _HALF_SQUARE_END[x.dtype.name])
    tail = _times_exp_of_square(quotient(a, _TAIL), a, -0.5)
    return where(x > 0.0, 1.0 - tail, tail)


def log_ndtr(x: Scalar) -> Scalar:
    """The logarithm of the normal distribution function Φ(x)."""
    a = absolute(x)
    # Φ(−a) = ½·erfcx(a/√2)·e^(−a²/2)
    high, low = _ROOT_HALF[x.dtype.name]
    finite = at_most(a, _NOTHING_BESIDE_SQUARE)
    scaled = _erfcx(fma(finite, high, fma(finite, low, 0.5))) * 0.5
    near = at_most(a, _HALF_SQUARE_END[x.dtype.name])
    minus_tail = -_times_exp_of_square(scaled, near, -0.5)
    is_positive = x > 0.0
    # log(1 − Φ(−x)), or log ½·erfcx(−x/√2) less x²/2
    one_less = split_one_plus(minus_tail, minus_tail + 1.0)
    k, m = split_exponent(scaled, subnormal=False)
    k = where(is_positive, one_less[0], k)
    f = where(is_positive, one_less[1], m - 1.0)
    logarithm = log_of_product(k, f)
    below = fma(x * -0.5, x, logarithm)
    return where(is_positive, -absolute(logarithm), below)


def _times_exp_of_square(q: Scalar, a: Scalar, factor: float) -> Scalar:
    """q·e^(a²·factor) for a factor of ±1 or ±½; a² = high² + rest, where high² is exact."""
    high = high_half(a)
    square = high * factor * high
    rest = (a - high) * factor * (a + high)
    k, shifted = rounded(square + rest, LOG2_E, add=2 * format_of(a).bias)
    high_ln2, low_ln2 = (-part for part in LN2[a.dtype.name])
    r = fma(k, high_ln2, square) + fma(k, low_ln2, rest)
    # q·eʳ = q + q·(eʳ − 1) is rounded less often.
    product = fma(q, exp_less_one_of_remainder(r), q)
    return scaled_in_two_steps(product, shifted)
