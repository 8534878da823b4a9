"""Special functions and their derivatives against mpmath, in the places where they are awkward.

Each test states the relative error it allows. References are computed with 60 digits, and their
derivatives as differences of so small a step that they are exact in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

import gradtape as gt
import our_scipy

STEP = mpmath.mpf(10) ** -15


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with mpmath.workdps(60):
        yield


def exact(x: Any) -> Any:
    return mpmath.mpf(float(x))


def difference(function: Callable[..., Any], args: Sequence[Any], *by: int) -> Any:
    """A derivative of first order, or with two indices of second."""
    if not by:
        return function(*args)
    i, step = by[-1], abs(args[by[-1]]) * STEP

    def moved(steps: int) -> Any:
        return difference(function, [*args[:i], args[i] + steps * step, *args[i + 1 :]], *by[:-1])

    return (moved(1) - moved(-1)) / (2 * step)


def errors(
    ours: Callable[..., Any],
    reference: Callable[..., Any],
    points: Iterable[Sequence[float]],
    *by: int,
) -> dict[tuple[float, ...], float]:
    """The relative error of a derivative at each point, all of them computed at once."""
    points = [tuple(map(float, point)) for point in points]
    columns = [np.array(column) for column in zip(*points, strict=True)]

    def derived(*args: Any, by: tuple[int, ...] = by) -> Any:
        if not by:
            return ours(*args)
        return gt.grad(lambda *a: gt.sum(derived(*a, by=by[1:])), by[0])(*args)

    with np.errstate(all="ignore"):
        got = derived(*columns)
    found = {}
    for point, value in zip(points, got, strict=True):
        expected = difference(reference, list(map(exact, point)), *by)
        if abs(expected) > 1e-290:  # below, doubles lose digits
            found[point] = float(abs((exact(value) - expected) / expected))
    return found


def assert_within(bar: float, found: dict[tuple[float, ...], float]) -> None:
    assert found
    far = {point: error for point, error in found.items() if not error <= bar}
    assert far == {}, f"worse than {bar}"


# ---- incomplete gamma functions -----------------------------------------------------------------


def lower_gamma(a: Any, x: Any) -> Any:
    """P(a, x), up to a constant where Q is the smaller one."""
    if x < a:
        return mpmath.gammainc(a, 0, x, regularized=True)
    return -mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def gamma_points() -> list[tuple[float, float]]:
    """Small and large parameters, around the mean, in both tails, and far from it."""
    shapes = (1e-8, 1e-3, 0.3, 1.0, 2.5, 30.0, 400.0, 3000.0)
    near = [(a, a + c * np.sqrt(a)) for a in shapes for c in (-3.1, -0.7, 0.013, 1.1, 6.0)]
    far = [(a, x) for a in shapes for x in (1e-6, 0.1, 0.56, 0.99, 1.01, 5.0, 90.0)]
    return [(a, x) for a, x in near + far if x > 0]


@pytest.mark.parametrize(
    ("by", "bar"),
    [((0,), 1e-12), ((1,), 1e-12), ((0, 1), 1e-11), ((1, 1), 1e-11), ((0, 0), 1e-11)],
    ids=str,
)
def test_gammainc(by: tuple[int, ...], bar: float) -> None:
    points = [(a, x) for a, x in gamma_points() if x != a]
    assert_within(bar, errors(our_scipy.special.gammainc, lower_gamma, points, *by))


def test_gammainc_of_large_parameters() -> None:
    # The derivative by Temme's expansion to first order, to see that nothing is lost on the way.
    a = 1e10
    x = a + np.array([-2.0, 0.5, 3.0]) * np.sqrt(a)
    slope = gt.grad(lambda a: gt.sum(our_scipy.special.gammainc(a, x)))(np.full(3, a))
    density = np.exp(-0.5 * ((x - a) / np.sqrt(a)) ** 2) / np.sqrt(2 * np.pi * a)
    np.testing.assert_allclose(slope, -density, rtol=1e-4)


def cotangent_slopes(x: Any) -> list[Any]:
    """Derivatives of π·cot πx of order 1 to 4, written out."""
    c, s = mpmath.cot(mpmath.pi * x), 1 / mpmath.sin(mpmath.pi * x) ** 2
    inner = [-s, 2 * s * c, -2 * s * (s + 2 * c**2), 8 * s * c * (2 * s + c**2)]
    return [mpmath.pi ** (n + 1) * value for n, value in enumerate(inner, start=1)]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_polygamma_of_negative_arguments(order: int) -> None:
    # SciPy's sum has as many terms as the argument is large; the last ones would never end.
    places = [-1e-20, -0.3, -0.5, -1.75, -33.9, -4.0000001, -1e8 - 0.25, -1e15 - 0.25]
    got = gt.polygamma(order, np.array(places))
    for x, value in zip(map(exact, places), got, strict=True):
        expected = (-1) ** order * mpmath.psi(order, 1 - x) - cotangent_slopes(x)[order - 1]
        assert abs(exact(value) / expected - 1) < 1e-14, x
    far = gt.polygamma(order, np.array([-1e300, -np.inf, -7.0, -0.0, -1e-310]))
    np.testing.assert_array_equal(far[:4], -np.inf if order % 2 == 0 else np.inf)
    assert far[4] == np.inf
    np.testing.assert_allclose(
        gt.polygamma(order, np.array(places[1:6], np.float32)),
        gt.polygamma(order, np.array(places[1:6], np.float32).astype(np.float64)),
        rtol=1e-7,
    )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_polygamma_of_complex_numbers(order: int) -> None:
    places = np.array([-0.3 + 0.2j, -7.5 - 1j, -40.2 + 1e-3j, -3 + 150j, -7 - 400j, 2.5 + 1j])
    for z, got in zip(places, gt.polygamma(order, places), strict=True):
        expected = mpmath.psi(order, mpmath.mpc(z))
        assert abs(mpmath.mpc(got) - expected) < 1e-14 * abs(expected), z
    far = np.array([-1e8 - 0.25 + 0.001j])
    with mpmath.workdps(60):
        expected = cotangent_slopes(mpmath.mpc(far[0]))[order - 1]
    assert abs(mpmath.mpc(gt.polygamma(order, far)[0]) + expected) < 1e-7 * abs(expected)
    narrow = gt.polygamma(order, places.astype(np.complex64))
    assert narrow.dtype == np.complex64
    np.testing.assert_allclose(narrow, gt.polygamma(order, places), rtol=1e-3)


def test_derivatives_of_digamma_far_below_zero() -> None:
    x = -1e8 - 0.25
    np.testing.assert_allclose(gt.grad(gt.digamma)(x), 2 * np.pi**2, rtol=1e-7)
    np.testing.assert_allclose(gt.grad(gt.grad(gt.digamma))(x), 4 * np.pi**3, rtol=1e-7)
    # The step is an integer: what the reflections add is the same on both sides.
    step = gt.grad(gt.grad(lambda x: our_scipy.special.betaln(x, 2.0)))(x)
    np.testing.assert_allclose(step, 2 / x**2, rtol=1e-6, atol=1e-12)


def check_inverse(
    inverse: Callable[..., Any], function: Callable[..., Any], points: Any, bar: float
) -> None:
    """The derivatives of x with function(…, x) = y by the implicit rule, where x was found."""
    for point in points:
        args = [np.array([value]) for value in point]
        x = exact(inverse(*args)[0])
        place = [*map(exact, point[:-1]), x]
        density = difference(function, place, len(place) - 1)
        grads = gt.grad(lambda *a: gt.sum(inverse(*a)), tuple(range(len(args))))(*args)
        slopes = [-difference(function, place, i) for i in range(len(args) - 1)]
        for got, slope in zip(grads, [*slopes, 1], strict=True):
            assert abs(exact(got[0]) * density / slope - 1) < bar, point


def test_gammaincinv() -> None:
    points = [(a, y) for a in (0.3, 2.5, 30.0) for y in (1e-6, 0.1, 0.6, 0.999)]
    check_inverse(our_scipy.special.gammaincinv, lower_gamma, points, 1e-11)


# ---- incomplete beta functions ------------------------------------------------------------------


def lower_beta(a: Any, b: Any, x: Any) -> Any:
    """I(a, b, x), up to a constant where the rest is the smaller one."""
    if x * (a + b) < a:
        return mpmath.betainc(a, b, 0, x, regularized=True)
    return -mpmath.betainc(b, a, 0, 1 - x, regularized=True)


def beta_points() -> list[tuple[float, float, float]]:
    shapes = (1e-6, 0.3, 1.0, 7.0, 200.0)
    points = []
    for i, a in enumerate(shapes):
        for j, b in enumerate(shapes):
            mean = a / (a + b)
            spread = np.sqrt(mean * (1 - mean) / (a + b + 1))
            near = mean + spread * (-2.3, -0.4, 0.3, 1.7)[(i + j) % 4]
            points += [(a, b, x) for x in (near, (0.003, 0.49, 0.93)[(i + 2 * j) % 3])]
    return [point for point in points if 0 < point[2] < 1]


@pytest.mark.parametrize(
    ("by", "bar"),
    [((0,), 1e-11), ((1,), 1e-11), ((2,), 1e-11), ((0, 2), 1e-10), ((0, 1), 1e-10)],
    ids=str,
)
def test_betainc(by: tuple[int, ...], bar: float) -> None:
    assert_within(bar, errors(our_scipy.special.betainc, lower_beta, beta_points(), *by))


@pytest.mark.parametrize("by", [(0, 0), (1, 1), (2, 2)], ids=str)
def test_betainc_twice(by: tuple[int, ...]) -> None:
    # By a parameter twice digits are lost in proportion to how small it is.
    points = [p for p in beta_points() if min(p[:2]) > 1e-3 and p[:2] != (1.0, 1.0)]
    assert_within(1e-9, errors(our_scipy.special.betainc, lower_beta, points, *by))


def test_betaincinv() -> None:
    points = [(a, b, y) for a, b in ((0.7, 2.0), (30.0, 4.0)) for y in (1e-4, 0.3, 0.9)]
    check_inverse(our_scipy.special.betaincinv, lower_beta, points, 1e-11)


def test_stdtr() -> None:
    def cdf(df: Any, t: Any) -> Any:
        tail = mpmath.betainc(df / 2, 0.5, 0, df / (df + t * t), regularized=True) / 2
        return -tail if t > 0 else tail

    points = [(df, t) for df in (0.3, 3.0, 50.0) for t in (-40.0, -1.3, 0.2, 3.0)]
    for by in ((0,), (1,), (0, 0), (0, 1)):
        assert_within(1e-10, errors(our_scipy.special.stdtr, cdf, points, *by))


# ---- the normal distribution --------------------------------------------------------------------


def log_normal(x: Any) -> Any:
    tail = mpmath.erfc(abs(x) / mpmath.sqrt(2)) / 2
    return mpmath.log(tail) if x < 0 else mpmath.log1p(-tail)


@pytest.mark.parametrize(("by", "bar"), [((), 1e-14), ((0,), 1e-13), ((0, 0), 2e-11)], ids=str)
def test_log_ndtr_in_both_tails(by: tuple[int, ...], bar: float) -> None:
    points = [(x,) for x in (-1e3, -100.3, -37.6, -12.1, -11.2, -5.5, -1.1, -0.1, 0.3, 2.5, 7.7)]
    assert_within(bar, errors(our_scipy.special.log_ndtr, log_normal, points, *by))


@pytest.mark.parametrize(("by", "bar"), [((), 1e-14), ((0,), 1e-13), ((0, 0), 1e-11)], ids=str)
def test_scaled_error_functions(by: tuple[int, ...], bar: float) -> None:
    points = [(x,) for x in (-3.0, 0.3, 2.2, 7.9, 8.1, 30.0, 1e4)]

    def erfcx(x: Any) -> Any:
        if x > 100:  # the asymptotic series, which mpmath takes too late
            terms = ((-1) ** k * mpmath.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(12))
            return sum(terms) / (x * mpmath.sqrt(mpmath.pi))
        with mpmath.workdps(60 + int(x * x)):
            return mpmath.exp(x * x) * mpmath.erfc(x)

    assert_within(
        bar if by != (0, 0) else 1e-10, errors(our_scipy.special.erfcx, erfcx, points[:-1], *by)
    )

    def dawsn(x: Any) -> Any:
        with mpmath.workdps(60 + int(x * x)):
            return mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x)

    assert_within(
        bar if by != (0, 0) else 1e-10, errors(our_scipy.special.dawsn, dawsn, points[:6], *by)
    )


@pytest.mark.parametrize("by", [(), (0,)], ids=str)
def test_quantiles(by: tuple[int, ...]) -> None:
    def ndtri(p: Any) -> Any:
        return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)

    points = [(p,) for p in (1e-12, 1e-3, 0.2, 0.51, 0.99)]
    assert_within(1e-12, errors(our_scipy.special.ndtri, ndtri, points, *by))
    assert_within(
        1e-12, errors(our_scipy.special.erfinv, mpmath.erfinv, [(-0.9,), (0.1,), (0.99,)], *by)
    )


# ---- Bessel, Airy and others --------------------------------------------------------------------

FIXED = [
    ("j0", lambda x: mpmath.besselj(0, x), (0.1, 3.3, 40.0)),
    ("j1", lambda x: mpmath.besselj(1, x), (0.1, 3.3, 40.0)),
    ("y0", lambda x: mpmath.bessely(0, x), (0.1, 3.3, 40.0)),
    ("i0", lambda x: mpmath.besseli(0, x), (0.1, 3.3, 40.0)),
    ("i0e", lambda x: mpmath.besseli(0, x) * mpmath.exp(-x), (0.1, 3.3, 40.0)),
    ("k0", lambda x: mpmath.besselk(0, x), (0.1, 3.3)),
    ("k1e", lambda x: mpmath.besselk(1, x) * mpmath.exp(x), (0.1, 3.3)),
    ("ellipk", mpmath.ellipk, (-3.0, 0.05, 0.3, 0.999)),
    ("ellipe", mpmath.ellipe, (-3.0, 0.05, 0.3, 0.999)),
    ("expi", mpmath.ei, (0.1, 3.0, 20.0)),
    ("spence", lambda z: mpmath.polylog(2, 1 - z), (0.2, 0.91, 1.05, 1.8)),
    ("gamma", mpmath.gamma, (-1.4, 0.2, 1.4, 20.5)),
    ("rgamma", mpmath.rgamma, (-2.999, -0.3, 0.2, 1.4, 20.5)),
    ("exprel", lambda x: mpmath.expm1(x) / x, (-30.0, -0.3, 1e-5, 2.0)),
]


# mpmath takes long for these far out.
FAR = [
    pytest.param(name, function, (40.0,), id=f"{name}-far", marks=pytest.mark.slow)
    for name, function, _ in FIXED
    if name in ("k0", "k1e")
]


@pytest.mark.parametrize(
    ("name", "function", "places"), [*(pytest.param(*row, id=row[0]) for row in FIXED), *FAR]
)
def test_first_and_second_derivatives(name: str, function: Any, places: Any) -> None:
    points = [(x,) for x in places]
    ours = getattr(our_scipy.special, name)
    for by in ((0,), (0, 0)):
        assert_within(1e-11, errors(ours, function, points, *by))


@pytest.mark.parametrize("part", range(4))
def test_airy(part: int) -> None:
    bases = (mpmath.airyai, mpmath.airybi)

    def function(z: Any) -> Any:
        return bases[part // 2](z, derivative=part % 2)

    points = [(z,) for z in (-7.3, -1.1, 0.4, 6.0)]
    for by in ((), (0,), (0, 0)):
        assert_within(
            1e-11, errors(lambda z: our_scipy.special.airy(z)[part], function, points, *by)
        )


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("jv", mpmath.besselj),
        ("yv", mpmath.bessely),
        ("iv", mpmath.besseli),
        ("kv", mpmath.besselk),
    ],
)
def test_bessel_functions_of_real_order(name: str, reference: Any) -> None:
    for order in (0.25, 3.5):
        function = getattr(our_scipy.special, name)
        points = [(z,) for z in (0.2, 2.0, 15.0)]
        found = errors(
            lambda z, v=order, f=function: f(v, z), lambda z, v=order: reference(v, z), points, 0
        )
        assert_within(1e-11, found)
