"""Derivatives of special functions where the obvious formula of them is 0/0, or cancels.

References are differences of mpmath with many digits, or what is stated beside the point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import gradtape as gt
import our_scipy
from builds import needs_scipy_1_17

mpf, inf, nan = mpmath.mpf, np.inf, np.nan


def derivative(function: Callable[..., Any], point: tuple[Any, ...], i: int) -> Any:
    """∂f/∂xᵢ by a difference of so small a step that it is exact."""
    args = [mpf(x) if isinstance(x, float) else x for x in point]
    with mpmath.workdps(120):
        step = mpf(10) ** -40 * (abs(args[i]) or 1)
        above, below = (
            function(*args[:i], args[i] + sign * step, *args[i + 1 :]) for sign in (1, -1)
        )
        return (above - below) / (2 * step)


def slope(name: str, point: tuple[Any, ...], i: int) -> Any:
    """∂f/∂xᵢ of a function of `gt.scipy.special`, in forward mode."""

    def function(x: Any) -> Any:
        return getattr(our_scipy.special, name)(*point[:i], x, *point[i + 1 :])

    with np.errstate(all="ignore"):
        return gt.jvp(function, (point[i],), (1.0,))[1]


def check(
    name: str, reference: Callable[..., Any], point: tuple[Any, ...], i: int, bar: float
) -> None:
    function = getattr(our_scipy.special, name)
    expected = derivative(reference, point, i)
    with np.errstate(all="ignore"):
        backward = gt.grad(function, i)(*point)
    forward = slope(name, point, i)
    assert abs((mpf(float(backward)) - expected) / expected) < bar, (name, point)
    assert abs(forward - backward) <= 1e-13 * abs(backward)


# ---- poles of the gamma function ----------------------------------------------------------------


def poch(z: Any, m: Any) -> Any:
    return mpmath.gammaprod([z + m], [z])


QUOTIENTS = [
    *(("poch", poch, (-5.0, m), 0) for m in (2.5, 10.0, 0.5)),
    *(("poch", poch, (-5.0 + 1e-9, m), 0) for m in (2.5, 3.0)),
    ("beta", mpmath.beta, (-2.5, 0.5), 0),
    ("beta", mpmath.beta, (-2.5, 0.5), 1),
    ("binom", mpmath.binomial, (2.0, 5.0), 0),
    ("binom", mpmath.binomial, (2.0, 5.0), 1),
    ("binom", mpmath.binomial, (2.5, -1.0), 1),
    ("binom", mpmath.binomial, (300.0, 302.0), 0),
    *(
        ("betaln", lambda a, b: mpmath.log(abs(mpmath.beta(a, b))), (1e-8, b), 1)
        for b in (50.0, 1e4)
    ),
    ("betaln", lambda a, b: mpmath.log(abs(mpmath.beta(a, b))), (1e-8, -0.25), 1),
]


@pytest.mark.parametrize(("name", "reference", "point", "i"), QUOTIENTS)
def test_quotients_of_gamma_functions(name: str, reference: Any, point: Any, i: int) -> None:
    check(name, reference, point, i, 1e-12)


def test_a_rising_factorial_of_whole_steps_is_a_polynomial() -> None:
    # z·(z + 1) at −5, where both gamma functions have poles
    assert gt.grad(our_scipy.special.poch)(-5.0, 2.0) == pytest.approx(-9.0, rel=1e-14)
    # As a function of m it jumps there.
    assert np.isnan(gt.grad(our_scipy.special.poch, 1)(-5.0, 2.0))


def test_zeta_below_one() -> None:
    x = np.array([-3.5, -1.0, 0.0, 0.5])
    np.testing.assert_array_equal(our_scipy.special.zeta(x), scipy.special.zeta(x))


def test_multigammaln_outside() -> None:
    assert np.isnan(our_scipy.special.multigammaln(0.9, 3))


# ---- the plane, far out -------------------------------------------------------------------------


def voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    z = (x + 1j * gamma) / sigma / mpmath.sqrt(2)
    w = mpmath.exp(-z * z) * mpmath.erfc(-1j * z)
    return mpmath.re(w) / sigma / mpmath.sqrt(2 * mpmath.pi)


@pytest.mark.parametrize("i", range(3))
@pytest.mark.parametrize(
    "point",
    [(1e4, 1e-3, 50.0), (1e6, 1.0, 1e-3), (10.0, 1.0, 1e-3), (9.5, 1.0, 1e-30), (0.5, 1.0, 0.3)],
)
def test_voigt_profile(point: tuple[float, ...], i: int) -> None:
    check("voigt_profile", voigt, point, i, 1e-11)


def test_voigt_profile_at_its_ends() -> None:
    point = (np.array([0.5, 12.0]), np.array([0.0, 1.0]), np.array([0.3, 0.0]))
    expected = scipy.special.voigt_profile(*point)
    np.testing.assert_allclose(our_scipy.special.voigt_profile(*point), expected, rtol=1e-13)
    # A Cauchy density γ/(π·(x² + γ²)), which spreads by σ² only
    by_x, by_sigma = gt.grad(our_scipy.special.voigt_profile, (0, 1))(0.5, 0.0, 0.3)
    assert by_x == pytest.approx(-2 * 0.5 * 0.3 / np.pi / 0.34**2, rel=1e-14)
    assert by_sigma == 0


@pytest.mark.parametrize("name", ["wofz", "erfcx", "dawsn"])
@pytest.mark.parametrize("z", [1e4 + 5j, -1e6 + 1e3j, 7.9 - 0.1j, 3 - 20j, 12j, 0.3 + 0.4j])
def test_error_functions_of_complex_numbers(name: str, z: complex) -> None:
    def faddeeva(z: Any) -> Any:
        return mpmath.exp(-z * z) * mpmath.erfc(-1j * z)

    references = {
        "wofz": faddeeva,
        "erfcx": lambda z: faddeeva(1j * z),
        "dawsn": lambda z: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-z * z) * mpmath.erfi(z),
    }
    with mpmath.workdps(120):
        step, at = mpf(10) ** -40, mpmath.mpc(z)
        function = references[name]
        expected = (function(at + step) - function(at - step)) / (2 * step)
    _, got = gt.jvp(getattr(our_scipy.special, name), (np.array([z]),), (np.array([1 + 0j]),))
    if abs(expected) < 1e300:
        assert abs((mpmath.mpc(complex(got[0])) - expected) / expected) < 1e-12


# ---- transforms, losses and entropies -----------------------------------------------------------


def pseudo_huber(delta: Any, r: Any) -> Any:
    return delta * delta * (mpmath.sqrt(1 + (r / delta) ** 2) - 1)


def kl_div(x: Any, y: Any) -> Any:
    return x * mpmath.log(x / y) - x + y


ELEMENTARY = [
    *(("pseudo_huber", pseudo_huber, (1.0, r), i) for r in (1e-3, 1e-8) for i in (0, 1)),
    *(("pseudo_huber", pseudo_huber, (1e-200, 3.0), i) for i in (0, 1)),
    *(("kl_div", kl_div, (1.0000001, 1.0), i) for i in (0, 1)),
    ("kl_div", kl_div, (1e200, 1e-200), 0),
    ("cotdg", lambda x: mpmath.cot(mpmath.pi * x / 180), (1e-8,), 0),
    ("expi", mpmath.ei, (712.0,), 0),
    ("boxcox", lambda x, p: (x**p - 1) / p, (0.0, 2.0), 1),
    ("boxcox1p", lambda x, p: ((1 + x) ** p - 1) / p, (-1.0, 2.0), 1),
    ("boxcox1p", lambda x, p: ((1 + x) ** p - 1) / p, (-1.0, 1.0), 0),
    ("inv_boxcox", lambda y, p: (1 + p * y) ** (1 / p), (-1.0, 1.0), 0),
]


@pytest.mark.parametrize(("name", "reference", "point", "i"), ELEMENTARY)
def test_elementary(name: str, reference: Any, point: Any, i: int) -> None:
    check(name, reference, point, i, 1e-13)


@pytest.mark.parametrize(
    ("name", "point", "expected"),
    [
        ("exprel", (1e3,), (inf,)),
        ("powm1", (0.0, 0.5), (inf, 0.0)),
        ("huber", (-1.0, 0.5), (nan, nan)),
        ("pseudo_huber", (-1.0, 0.5), (nan, nan)),
        ("pseudo_huber", (0.0, 0.5), (0.5, 0.0)),
        ("pseudo_huber", (0.0, 0.0), (0.0, 0.0)),
        ("rel_entr", (-1.0, -1.0), (nan, nan)),
        ("kl_div", (-1.0, -1.0), (nan, nan)),
        ("kl_div", (0.0, 2.0), (-inf, 1.0)),
        ("wrightomega", (inf,), (1.0,)),
        ("spherical_in", (0, 1e4), (inf,)),
        ("spherical_yn", (0, 0.0), (inf,)),
        ("spence", (1 + 0j,), (-1.0,)),
        ("eval_hermite", (-1, 0.5), (nan,)),
    ],
)
def test_stated(name: str, point: Any, expected: Any) -> None:
    places = [i for i, x in enumerate(point) if not isinstance(x, int)]
    assert [slope(name, point, i) for i in places] == pytest.approx(expected, rel=0, nan_ok=True)


# ---- polynomials --------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [0.3, 0.5, -0.5, 2.7])
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("eval_legendre", mpmath.legendre),
        ("eval_chebyt", mpmath.chebyt),
        ("eval_chebyu", mpmath.chebyu),
        ("eval_laguerre", lambda n, x: mpmath.laguerre(n, 0, x)),
    ],
)
def test_degrees_that_are_not_whole(name: str, reference: Any, degree: float) -> None:
    check(name, reference, (degree, 0.3), 1, 1e-12)


@pytest.mark.parametrize("x", [0.3, 0.9])
def test_large_degrees(x: float) -> None:
    def laguerre(n: Any, x: Any) -> Any:
        return mpmath.laguerre(n, 0, x)

    with mpmath.workdps(60):
        expected = float(laguerre(300, mpf(x)))
    assert our_scipy.special.eval_laguerre(300, x) == pytest.approx(expected, rel=1e-12)
    check("eval_laguerre", laguerre, (300, x), 1, 1e-11)


@pytest.mark.parametrize("name", ["eval_legendre", "eval_chebyt", "eval_chebyu", "eval_laguerre"])
def test_degrees_of_single_precision(name: str) -> None:
    x, degree = np.array([0.3, 0.5], np.float32), np.array([3.0, 2.5], np.float32)

    def total(x: Any) -> Any:
        return gt.sum(getattr(our_scipy.special, name)(degree, x))

    _, second = gt.jvp(gt.grad(total), (x,), (np.ones(2, np.float32),))
    assert gt.grad(total)(x).dtype == second.dtype == np.float32


def test_shifted_polynomials_of_single_precision() -> None:
    x = np.array([1e-5, 0.3], np.float32)
    for name in ("eval_sh_legendre", "eval_sh_chebyt", "eval_sh_chebyu"):
        got = getattr(our_scipy.special, name)(3.5, x)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, getattr(scipy.special, name)(3.5, x), rtol=1e-6)


# ---- Bessel and Airy functions without their exponentials ---------------------------------------


def scaled(function: Any, rate: Any) -> Any:
    return lambda v, z: function(v, z) * mpmath.exp(rate * z)


@pytest.mark.parametrize(
    ("z", "v"),
    [
        *((20.0, 0.3), (31.0, 0.3), (1e5, 0.0), (1e5, 0.3), (1e5, 10.0)),
        # mpmath takes long for whole orders, until its asymptotic series are good enough.
        *(
            pytest.param(z, v, marks=pytest.mark.slow)
            for z, v in ((20.0, 0.0), (20.0, 10.0), (31.0, 0.0), (31.0, 10.0))
        ),
    ],
)
def test_slopes_far_out(v: float, z: float) -> None:
    check("ive", scaled(mpmath.besseli, -1), (v, z), 1, 1e-12)
    check("kve", scaled(mpmath.besselk, 1), (v, z), 1, 1e-12)


@pytest.mark.parametrize("z", [20.0, 31.0, 1e5, 40 + 30j])
def test_slopes_of_hankel_functions_far_out(z: complex) -> None:
    for name, function, rate in (
        ("hankel1e", mpmath.hankel1, -1j),
        ("hankel2e", mpmath.hankel2, 1j),
    ):
        with mpmath.workdps(80):
            step, at = mpf(10) ** -30 * abs(z), mpmath.mpc(z)
            above, below = (scaled(function, rate)(2, at + sign * step) for sign in (1, -1))
            expected = (above - below) / (2 * step)
        got = slope(name, (2, complex(z)), 1)
        assert abs((mpmath.mpc(complex(got)) - expected) / expected) < 1e-12


@pytest.mark.parametrize("z", [0.5, 9.9, 10.1, 100.0, 1e4, 1e6])
def test_slopes_of_scaled_airy_functions(z: float) -> None:
    def reference(k: int, z: Any) -> Any:
        functions = (mpmath.airyai, mpmath.airyai, mpmath.airybi, mpmath.airybi)
        rate = (1, 1, -1, -1)[k] * mpf(2) / 3 * z ** mpf(1.5)
        return functions[k](z, derivative=k % 2) * mpmath.exp(rate)

    _, slopes = gt.jvp(our_scipy.special.airye, (z,), (1.0,))
    for k in range(4):
        expected = derivative(reference, (k, z), 1)
        assert abs((mpf(float(slopes[k])) - expected) / expected) < 1e-11


# ---- elliptic integrals -------------------------------------------------------------------------

ELLIPTIC = [
    *(("ellipkinc", mpmath.ellipf, (phi, m), 1) for phi in (1e-8, 1e-3) for m in (0.0, 0.5)),
    ("ellipkinc", mpmath.ellipf, (1.5, 1 - 1e-8), 1),
    ("ellipkinc", mpmath.ellipf, (10.0, -1e5), 1),
    *(("elliprd", mpmath.elliprd, (1.0, 1.0, 1.0), i) for i in range(3)),
    *(("elliprd", mpmath.elliprd, (1e-8, 1.0, 1.0000001), i) for i in range(3)),
    *(("elliprj", mpmath.elliprj, (1.0, 1.0, 2.0, 1.0), i) for i in range(4)),
    *(("elliprc", mpmath.elliprc, (2.0, 2.0), i) for i in range(2)),
]


@pytest.mark.parametrize(("name", "reference", "point", "i"), ELLIPTIC)
def test_elliptic_integrals(name: str, reference: Any, point: Any, i: int) -> None:
    check(name, reference, point, i, 1e-12)


def test_arguments_that_no_integral_of_carlson_has() -> None:
    def by_x(*args: float) -> Any:
        with np.errstate(all="ignore"):
            return gt.grad(our_scipy.special.elliprd)(*args)

    assert by_x(0.0, 1.0, 2.0) == -inf
    assert by_x(1.0, 1.0, inf) == 0
    assert np.isnan(by_x(-1.0, 1.0, 2.0))
    assert gt.grad(lambda x: gt.sum(our_scipy.special.elliprd(x, x, x)))(np.empty(0)).shape == (0,)


def test_second_derivatives_of_elliptic_integrals() -> None:
    # At m = 0, F = φ + m·(φ − sin φ·cos φ)/4 + m²·3/8·∫ sin⁴; E likewise with −1/8.
    phi = 0.7
    fourth = (12 * phi - 8 * np.sin(2 * phi) + np.sin(4 * phi)) / 32
    for name, factor in (("ellipkinc", 0.75), ("ellipeinc", -0.25)):
        function = getattr(our_scipy.special, name)
        got = gt.grad(gt.grad(function, 1), 1)(phi, 0.0)
        assert got == pytest.approx(factor * fourth, rel=1e-13)


# ---- distribution functions ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("bdtr", ([0, 2, 3, -1], 2, 0.3)),
        ("bdtrc", ([0, 2, 3, -1], 2, 0.3)),
        ("bdtri", ([0, 1, 2, -1], 2, 0.3)),
        ("nbdtr", ([0, 2, -1], 2, 0.3)),
        ("nbdtri", ([0, 2, -1], 2, 0.3)),
        ("pdtr", ([0.5, 2.0, -1.0], 0.3)),
        ("gdtr", (1.5, 2.0, [-1.0, 0.0, 1.0])),
        pytest.param(
            "fdtr",
            ([0.0, 1.0, 2.0, 2.0], [1.0, inf, 1.0, 1.0], [1.0, 1.0, inf, -1.0]),
            marks=needs_scipy_1_17,
        ),
        ("fdtrc", ([0.0, 1.0, 2.0, 2.0], [1.0, inf, 1.0, 1.0], [1.0, 1.0, inf, -1.0])),
    ],
)
def test_values_at_the_ends_are_those_of_scipy(name: str, args: Any) -> None:
    arrays = [np.array(arg) for arg in args]
    expected = getattr(scipy.special, name)(*arrays)
    np.testing.assert_allclose(getattr(our_scipy.special, name)(*arrays), expected, rtol=1e-13)


@pytest.mark.parametrize("t", [-30.0, -1.0, 1e-3, 1.5, 1.6, 3.0])
@pytest.mark.parametrize("df", [49.0, 51.0, 1e6, 1e10])
def test_many_degrees_of_freedom(df: float, t: float) -> None:
    def student(df: Any, t: Any) -> Any:
        x = df / (df + t * t)
        return -mpmath.sign(t) * mpmath.betainc(df / 2, mpf(1) / 2, 0, x, regularized=True) / 2

    with mpmath.workdps(40):
        check("stdtr", student, (df, t), 0, 1e-11)


def test_infinitely_many_degrees_of_freedom() -> None:
    by_df, by_t = gt.grad(our_scipy.special.stdtr, (0, 1))(inf, 1.0)
    assert by_df == 0
    assert by_t == pytest.approx(np.exp(-0.5) / np.sqrt(2 * np.pi), rel=1e-14)


def test_all_trials_may_succeed() -> None:
    assert gt.grad(our_scipy.special.bdtr, 2)(2, 2, 0.3) == 0


def test_density_that_does_not_underflow() -> None:
    check(
        "gammainc", lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), (3.7, 1e-100), 1, 1e-11
    )


@pytest.mark.parametrize("name", ["kn", "yn"])
@pytest.mark.parametrize("n", [2, 2.7, [1.5, -0.5]])
@pytest.mark.filterwarnings("ignore:floating point number truncated:RuntimeWarning")
def test_fractions_of_whole_orders_are_left_out(name: str, n: Any) -> None:
    x, function = np.array([0.5, 1.5]), getattr(our_scipy.special, name)
    n = n if isinstance(n, int | float) else np.array(n)
    expected = getattr(scipy.special, name)(n, x)
    np.testing.assert_allclose(np.asarray(function(n, gt.tensor(x))), expected, rtol=1e-14)
    gt.testing.check_grads(lambda x: function(n, x), (x,))
    assert function(2.7, gt.tensor(x.astype(np.float32))).dtype == np.float32
