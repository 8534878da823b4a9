"""Modified Bessel functions of orders 0 to 2: a polynomial in x² up to 8, one in 1/x beyond."""

from __future__ import annotations

from gradtape.compiler.elementary.exponential import exp_less_one_of_remainder
from gradtape.compiler.elementary.pieces import (
    INF,
    LOG2_E,
    NAN,
    at_most,
    format_of,
    polynomial,
    polynomials,
    rounded,
    scaled_in_two_steps,
    without_multiples_of_ln2,
)
from gradtape.core.scalar import Scalar, absolute, copysign, fma, sqrt, where

_FAR = 8.0
# From here on the functions are infinite.
_END = {"float32": 93.0, "float64": 715.0}
# I₀(x), I₁(x)/x and I₂(x)/x² for |x| ≤ 8 as polynomials in x²; relative errors 2^-30.7 and 2^-58.9.
_NEAR = (
    polynomials("""
        float32: 1.0 0.25 0.01562500186264515 0.00043402696610428393 6.781830506952247e-06
                 6.780234684811148e-08 4.717999879666479e-10 2.372135474160153e-12
                 1.0069617462451531e-14 1.9912912446252373e-17 1.3566553037330408e-19
        float64: 1.0 0.25 0.015624999999999977 0.00043402777777779505 6.781684027771295e-06
                 6.781684027919259e-08 4.709502795104985e-10 2.4028075678351273e-12
                 9.385965799520323e-15 2.896908912791645e-17 7.24207399847292e-20
                 1.4967788867898885e-22 2.590172321276541e-25 3.9335562237987225e-28
                 4.199181372467203e-31 8.567049320099727e-34
    """),
    polynomials("""
        float32: 0.5 0.0625 0.0026041667442768812 5.425341805675998e-05 6.781770593988767e-07
                 5.6506181955739976e-09 3.368226184075063e-11 1.4871155522289126e-13
                 5.525356851199779e-16 1.0528141837567204e-18 5.967393626160131e-21
        float64: 0.5 0.0625 0.0026041666666666652 5.425347222222312e-05 6.7816840277747e-07
                 5.651403356543732e-09 3.363930568525074e-11 1.5017547255856136e-13
                 5.214425664243719e-16 1.4484536556806687e-18 3.2918726645134922e-21
                 6.236193602554817e-24 9.967125401857214e-27 1.4006998330074498e-29
                 1.420328411333698e-32 2.6313060849732034e-35
    """),
    polynomials("""
        float32: 0.125 0.010416666977107525 0.0003255206102039665 5.425405561254593e-06
                 5.650672463275441e-08 4.0417869051623256e-10 2.0817082866525505e-12
                 8.852820752402839e-15 1.8771145120578078e-17 1.2026676193941106e-19
        float64: 0.125 0.010416666666666664 0.0003255208333333365 5.4253472222204335e-06
                 5.651403356532875e-08 4.036716682329883e-10 2.102456615303082e-12
                 8.343081074371201e-15 2.6072166048561097e-17 6.583742661426253e-20
                 1.3719717179268311e-22 2.391934758866278e-25 3.6438235570981076e-28
                 3.964164948876047e-31 7.928838214849714e-34
    """),
)
# About the derivatives of their logarithms by x².
_SLOPE = 0.07
# √x·e⁻ˣ times I₀(x), I₁(x) and I₂(x) for x ≥ 8 as polynomials in 1/x − 1/16; relative errors
# 2^-25.9 and 2^-54.9.
_SCALED_MIDDLE = 0.0625
_SCALED = (
    polynomials("""
        float32: 0.40217649936676025 0.05376892909407616 0.03485606983304024 0.04547739028930664
                 0.10738915950059891 0.38797029852867126
        float64: 0.4021765094450081 0.05376883173868468 0.034871315043762445 0.04564186643416696
                 0.09724544107832218 0.3118042240523244 1.488478001231494 10.557058464591126
                 92.63194991775575 518.0642367666654 -7538.470029315918 -234702.7465246704
                 -1411887.2214020777 33183807.84768626 469466476.14605933 -3663797527.8654146
                 -83329904701.7157 336580788587.0192 10155470516462.436 -22399969634900.27
                 -776855017391101.1 762894677737873.0 2.775315243997502e+16
    """),
    polynomials("""
        float32: 0.389398455619812 -0.15599335730075836 -0.05610720068216324 -0.061402641236782074
                 -0.1316695511341095 -0.45237216353416443
        float64: 0.38939845902587233 -0.15599323509177082 -0.05612435554088488 -0.061597889356719816
                 -0.12025267770793932 -0.36530858887031453 -1.677903051166961 -11.577938747993176
                 -100.47569634854523 -578.1809720745134 7528.474929309484 245828.97187414326
                 1568052.3089974234 -33672645.15924134 -499918837.6864839 3608981739.246935
                 87636470930.03876 -323191970749.76685 -10621720145322.932 21131516459731.875
                 810363919416648.4 -712503910500000.0 -2.8910099215282276e+16
    """),
    polynomials("""
        float32: 0.35350170731544495 -0.705528736114502 0.35384878516197205 0.16526798903942108
                 0.2518601417541504 0.728213369846344
        float64: 0.35350170206677406 -0.7055289319265876 0.3538733296699103 0.16559031366400623
                 0.2354728045534978 0.5979732985273359 2.4288328385777715 15.359653926220618
                 128.3478210115169 792.0701681321399 -7323.908286207059 -281310.983464668
                 -2098914.24632772 34811478.05830074 598953333.424548 -3359802664.927699
                 -101381535407.47581 271990877291.17426 12103780085305.645 -16456137333850.904
                 -917333278287222.5 529273762279487.5 3.2634368516270376e+16
    """),
)


def bessel_i0(x: Scalar) -> Scalar:
    """I₀(x)."""
    return _growing(x, 0)


def bessel_i1(x: Scalar) -> Scalar:
    """I₁(x)."""
    return _growing(x, 1)


def bessel_i2(x: Scalar) -> Scalar:
    """I₂(x)."""
    return _growing(x, 2)


def bessel_i0e(x: Scalar) -> Scalar:
    """e^(−|x|)·I₀(x)."""
    return _falling(x, 0)


def bessel_i1e(x: Scalar) -> Scalar:
    """e^(−|x|)·I₁(x)."""
    return _falling(x, 1)


def bessel_i2e(x: Scalar) -> Scalar:
    """e^(−|x|)·I₂(x)."""
    return _falling(x, 2)


def _growing(x: Scalar, order: int) -> Scalar:
    """The function itself; NaN at infinity, as in SciPy."""
    bounded = at_most(absolute(x), _END[x.dtype.name])
    far = _times_exp(_scaled(bounded, order), bounded)
    far = where(absolute(x) == INF, NAN, far)
    return _near_or_far(x, _near(x, order), far, order)


def _falling(x: Scalar, order: int) -> Scalar:
    """The function times e^(−|x|)."""
    a = absolute(x)
    near = _times_exp(_near(x, order), -at_most(a, _FAR))
    return _near_or_far(x, near, _scaled(a, order), order)


def _times_exp(q: Scalar, x: Scalar) -> Scalar:
    """q·eˣ = 2ᵏ·(q + q·(eʳ − 1)); the power of two comes last, as it may be infinite by itself."""
    k, shifted = rounded(x, LOG2_E, add=2 * format_of(x).bias)
    e = exp_less_one_of_remainder(without_multiples_of_ln2(x, k))
    # The sign is that of q, even for −0.
    return copysign(scaled_in_two_steps(fma(q, e, q), shifted), q)


def _near(x: Scalar, order: int) -> Scalar:
    """The function for |x| ≤ 8; at −0 it is 0, as in SciPy."""
    a = at_most(absolute(x), _FAR)
    square = a * a
    even = polynomial(square, _NEAR[order][x.dtype.name])
    # The rounding error of the square, times about the relative slope from 4 to 8.
    lost = fma(a, a, -square) * _SLOPE
    even = fma(even, lost, even)
    factor = square if order == 2 else x + 0.0
    return factor * even if order else even


def _scaled(a: Scalar, order: int) -> Scalar:
    """The function of |x| ≥ 8 times e^(−|x|)."""
    from_middle = 1.0 / a - _SCALED_MIDDLE
    return polynomial(from_middle, _SCALED[order][a.dtype.name]) / sqrt(a)


def _near_or_far(x: Scalar, near: Scalar, far: Scalar, order: int) -> Scalar:
    """Choose the result that holds for an argument; the far one is that of its absolute value."""
    far = copysign(far, x) if order == 1 else far
    return where(absolute(x) < _FAR, near, far)
