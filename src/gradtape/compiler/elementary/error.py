"""erf and erfc: a polynomial near 0, e^(−x²) times a quotient of polynomials elsewhere."""

from __future__ import annotations

from gradtape.compiler.elementary.exponential import (
    exp_less_one_of_remainder,
    exp_of_remainder,
)
from gradtape.compiler.elementary.pieces import (
    LN2,
    LOG2_E,
    at_most,
    format_of,
    high_half,
    polynomial,
    polynomials,
    power_of_two,
    quotient,
    quotients,
    rounded,
    scaled_in_two_steps,
    without_multiples_of_ln2,
)
from gradtape.core.scalar import Scalar, absolute, copysign, fma, where

# erf(x)/x − 1 as a polynomial in x², |x| ≤ 1; relative error of erf 2^-29.4 and 2^-56.0.
_ERF_NEAR = polynomials("""
    float32: 0.12837916612625122 -0.3761262595653534 0.11283578723669052 -0.026853347197175026
             0.005187162198126316 -0.0007997853099368513 7.806903158780187e-05
    float64: 0.12837916709551256 -0.37612638903183343 0.1128379167093694 -0.026866170641955848
             0.005223977596693484 -0.000854832548219248 0.00012055280388842849
             -1.4924463107093846e-05 1.6444113605545465e-06 -1.6183664750063704e-07
             1.3615103563997562e-08 -7.60450017802622e-10
""")
# e^(x²)·erfc(x) for x from 1 to 4 and to 6, as a quotient; error of erf 2^-32.5 and 2^-59.5.
_ERF_FAR = quotients("""
    float32: 1.0010285377502441 0.7618540525436401 0.24631251394748688
           / 1.0 1.896851897239685 1.3667957782745361 0.43530523777008057
    float64: 0.9999998876368364 1.3904578167964206 0.949371370509231 0.37350967582798933
             0.08432020261304438 0.00892596944239153
           / 1.0 2.5188357995705712 2.791579164512564 1.7568673635188523 0.6699986946345877
             0.14944975638982977 0.015820991600693758
""")
# erf(x)/x as a polynomial in x², |x| ≤ 0.45; relative error of erfc 2^-28.1 and 2^-61.1.
_ERFC_NEAR = polynomials("""
    float32: 1.1283791065216064 -0.37612277269363403 0.11277609318494797 -0.026447346433997154
             0.004096596036106348
    float64: 1.1283791670955126 -0.3761263890318336 0.11283791670924896 -0.0268661706344101
             0.00522397741752241 -0.0008548303160105964 0.00012053666358065246
             -1.4855943022653453e-05 1.4847585901154932e-06
""")
# (1 + 2x)·e^(x²)·erfc(x) − 1.2, less than 0.09, from 0.45 to where erfc rounds to 0, as a quotient;
# relative error of erfc 2^-31.6 and 2^-58.9.
_ERFC_FAR = quotients("""
    float32: -0.20001372694969177 0.3742445707321167 0.37633928656578064 0.13519561290740967
             0.013640658929944038 -0.006576478015631437
           / 1.0 2.487663984298706 2.6719374656677246 1.5882962942123413 0.5327740907669067
             0.09182638674974442
    float64: -0.19999999996216883 0.18762483641009875 0.634319565362662 0.630715563822391
             0.3548607041420527 0.12627191051668374 0.02768208512425857 0.0027779079822754745
             -0.00027634379427103546 -0.00012517494590839803 -1.3743022600125414e-05
           / 1.0 3.419979979114585 5.449239519743804 5.343069881669817 3.583291021546252
             1.7251738048630674 0.6073151181684532 0.15552439485784236 0.028021957973190126
             0.0032593160408249137 0.0001918858248743202
""")
_ERFC_FAR_MIDDLE = 1.2

# From here on erf rounds to 1, and erfc to 0.
_ERF_END = {"float32": 4.0, "float64": 6.0}
_ERFC_END = {"float32": 10.1, "float64": 27.3}
_ERFC_NEAR_END = 0.45


def erf(x: Scalar) -> Scalar:
    """The error function, 2/√π · ∫₀ˣ e^(−t²) dt."""
    a = absolute(x)
    near = fma(x, polynomial(x * x, _ERF_NEAR[x.dtype.name]), x)
    bounded = at_most(a, _ERF_END[x.dtype.name])
    minus_square = bounded * -bounded
    k, shifted = rounded(minus_square, LOG2_E, add=format_of(x).bias)
    e = exp_of_remainder(without_multiples_of_ln2(minus_square, k))
    above, below = (polynomial(bounded, c) for c in _ERF_FAR[x.dtype.name])
    complement = e * power_of_two(shifted) * above / below
    far = copysign(1.0 - complement, x)
    return where(a < 1.0, near, far)


def erfc(x: Scalar) -> Scalar:
    """1 − erf(x), with full precision where that is small."""
    a = absolute(x)
    near = fma(-x, polynomial(x * x, _ERFC_NEAR[x.dtype.name]), 1.0)
    bounded = at_most(a, _ERFC_END[x.dtype.name])
    # −a² = −(high² + rest): high² is exact, the rest small.
    high = high_half(bounded)
    minus_square = high * -high
    rest = (bounded - high) * (bounded + high)
    k, shifted = rounded(minus_square, LOG2_E, add=2 * format_of(x).bias)
    # The rest joins the rounding error of k·ln2, so that only one large sum is rounded.
    high_ln2, low_ln2 = (-part for part in LN2[x.dtype.name])
    r = fma(k, high_ln2, minus_square) + fma(k, low_ln2, -rest)
    # (1.2 + q)·eʳ = 1.2 + (q + (1.2 + q)(eʳ − 1))
    q, middle = quotient(bounded, _ERFC_FAR), _ERFC_FAR_MIDDLE
    product = fma(q + middle, exp_less_one_of_remainder(r), q) + middle
    p = product / fma(bounded, 2.0, 1.0)
    far = scaled_in_two_steps(p, shifted)
    far = where(x < 0.0, 2.0 - far, far)
    return where(a < _ERFC_NEAR_END, near, far)
