"""Distributions in mpmath: what the tests of `gt.scipy.stats` in far tails compare with.

Each is stated at place 0 and scale 1 by its density and both of its tails, each of them exact where
it is small. All the methods of a distribution follow from these, with their derivatives of first
and second order: a `Jet` has a value, a gradient and a Hessian, in many digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath
from mpmath import exp, expm1, log, log1p, mp, mpf

_STEP = mpf(10) ** -25


@dataclass(frozen=True)
class Reference:
    """Formulas of a distribution: its density, and both tails where they are known."""

    logpdf: Callable[..., Any]
    cdf: Callable[..., Any] | None = None
    sf: Callable[..., Any] | None = None
    # The logarithm of a tail, by name, where it is simple and the tail vanishes too quickly.
    logs: dict[str, Callable[..., Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Jet:
    """A value with its derivatives of first and second order."""

    value: Any
    first: list[Any]
    second: list[list[Any]]

    def through(self, value: Any, slope: Any, bend: Any) -> Jet:
        """A function of it, by its value and derivatives there."""
        n = range(len(self.first))
        return Jet(
            value,
            [slope * self.first[i] for i in n],
            [
                [slope * self.second[i][j] + bend * self.first[i] * self.first[j] for j in n]
                for i in n
            ],
        )


def digits_for(z: float) -> int:
    """How many digits leave enough of a second difference at z, whose step is a part of z."""
    return int(140 + 4 * abs(math.log10(abs(z))))


def differences(function: Callable[..., Any], args: Sequence[Any]) -> Jet:
    """A jet by central differences of a step so small that they are exact in double precision."""
    steps = [abs(arg) * _STEP for arg in args]
    n = range(len(args))

    def at(*moves: tuple[int, int]) -> Any:
        moved = list(args)
        for i, move in moves:
            moved[i] += move * steps[i]
        return function(*moved)

    value = function(*args)
    ends = [(at((i, 1)), at((i, -1))) for i in n]
    second = [[mpf(0) for _ in n] for _ in n]
    for i in n:
        second[i][i] = (ends[i][0] - 2 * value + ends[i][1]) / steps[i] ** 2
        for j in range(i):
            corners = at((i, 1), (j, 1)) - at((i, 1), (j, -1)) - at((i, -1), (j, 1))
            corners += at((i, -1), (j, -1))
            second[i][j] = second[j][i] = corners / (4 * steps[i] * steps[j])
    return Jet(
        value, [(up - down) / (2 * h) for (up, down), h in zip(ends, steps, strict=True)], second
    )


def log_density(reference: Reference, z: Any, shapes: Sequence[Any]) -> Jet:
    return differences(reference.logpdf, [z, *shapes])


def smaller_tail(reference: Reference, z: Any, shapes: Sequence[Any]) -> tuple[str, Jet]:
    """The name and the jet of the smaller tail; by z its derivative is the density."""
    assert reference.cdf is not None
    assert reference.sf is not None
    lower = reference.cdf(z, *shapes) < 0.5
    function = reference.cdf if lower else reference.sf
    by_shapes = differences(lambda *shapes: function(z, *shapes), shapes)
    density = log_density(reference, z, shapes)
    p = exp(density.value) * (1 if lower else -1)
    n = range(len(shapes))
    return "cdf" if lower else "sf", Jet(
        by_shapes.value,
        [p, *by_shapes.first],
        [
            [p * slope for slope in density.first],
            *([p * density.first[i + 1], *(by_shapes.second[i][j] for j in n)] for i in n),
        ],
    )


def methods(reference: Reference, z: Any, shapes: Sequence[Any], scale: Any) -> dict[str, Jet]:
    """Jets of all the methods at a point, by x, the shapes, the place (0) and the scale."""
    logpdf = log_density(reference, z, shapes)
    density = exp(logpdf.value)
    found = {"logpdf": logpdf, "pdf": logpdf.through(density, density, density)}
    if reference.cdf is not None:
        small, tail = smaller_tail(reference, z, shapes)
        large = "sf" if small == "cdf" else "cdf"
        p, rest = tail.value, 1 - tail.value
        found[small] = tail
        found["log" + small] = tail.through(log(p), 1 / p, -1 / p**2)
        found[large] = tail.through(rest, mpf(-1), mpf(0))
        found["log" + large] = tail.through(log1p(-p), -1 / rest, -1 / rest**2)
        for name, function in reference.logs.items():
            found[name] = differences(function, [z, *shapes])
    return {name: placed(jet, z, scale, name) for name, jet in found.items()}


def placed(jet: Jet, z: Any, scale: Any, name: str) -> Jet:
    """A jet by z and shapes as one by x, shapes, place and scale: z = (x − place)/scale."""
    count = len(jet.first) + 2
    place, width = count - 2, count - 1
    # The derivatives of z, and which of the old variables the new ones are
    first = {0: 1 / scale, place: -1 / scale, width: -z / scale}
    second = {
        (0, width): -1 / scale**2,
        (place, width): 1 / scale**2,
        (width, width): 2 * z / scale**2,
    }
    rows = [[mpf(0)] * len(jet.first) for _ in range(count)]
    for i in range(count):
        rows[i][0] = first.get(i, mpf(0))
        if 0 < i < place:
            rows[i][i] = mpf(1)
    old = range(len(jet.first))
    gradient = [sum(rows[i][k] * jet.first[k] for k in old) for i in range(count)]
    hessian = [
        [
            sum(rows[i][k] * rows[j][m] * jet.second[k][m] for k in old for m in old)
            + jet.first[0] * second.get((min(i, j), max(i, j)), mpf(0))
            for j in range(count)
        ]
        for i in range(count)
    ]
    result = Jet(jet.value, gradient, hessian)
    if name == "logpdf":
        gradient[width] -= 1 / scale
        hessian[width][width] += 1 / scale**2
        return Jet(jet.value - log(scale), gradient, hessian)
    if name != "pdf":
        return result
    # The density is divided by the scale, too.
    for i in range(count):
        for j in range(count):
            hessian[i][j] /= scale
        hessian[i][width] -= gradient[i] / scale**2
        hessian[width][i] -= gradient[i] / scale**2
    hessian[width][width] += 2 * jet.value / scale**3
    gradient = [slope / scale for slope in gradient]
    gradient[width] -= jet.value / scale**2
    return Jet(jet.value / scale, gradient, hessian)


def quantile(reference: Reference, z: Any, shapes: Sequence[Any], upper: bool) -> Jet:
    """The jet by q and the shapes of the quantile that is z: of F(z(q, shapes), shapes) = q.

    Its value is the probability q of z itself.
    """
    small, tail = smaller_tail(reference, z, shapes)
    if upper != (small == "sf"):
        tail = tail.through(1 - tail.value, mpf(-1), mpf(0))
    (slope, *others), bends = tail.first, tail.second
    n = range(len(tail.first))
    first = [1 / slope, *(-other / slope for other in others)]
    second = []
    for i in n:
        second.append([])
        for j in n:
            total = bends[0][0] * first[i] * first[j]
            total += bends[i][j] if i and j else 0
            total += (bends[0][i] * first[j] if i else 0) + (bends[0][j] * first[i] if j else 0)
            second[i].append(-total / slope)
    return Jet(tail.value, first, second)


# ---- what the formulas below are made of --------------------------------------------------------


def normal_tail(z: Any) -> Any:
    """The probability of less than z."""
    return mpmath.erfc(-z / mpmath.sqrt(2)) / 2


def log_normal_density(z: Any) -> Any:
    return -z * z / 2 - log(2 * mp.pi) / 2


def lower_gamma(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def upper_gamma(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def lower_beta(a: Any, b: Any, x: Any) -> Any:
    return mpmath.re(mpmath.betainc(a, b, 0, x, regularized=True))


def log_beta(a: Any, b: Any) -> Any:
    return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)


def of_log(z: Any, normal: Callable[[Any], Any]) -> Any:
    return normal(log(z))


def t_tail(z: Any, df: Any) -> Any:
    """The probability of more than z."""
    outer = lower_beta(df / 2, mpf(1) / 2, df / (df + z * z)) / 2
    return outer if z > 0 else 1 - outer


def truncated_mass(low: Any, high: Any) -> Any:
    if low > 0:
        low, high = -high, -low
    return normal_tail(high) - normal_tail(low)


def warped(z: Any, c: Any) -> Any:
    """log(1 + c·z)/c, which is z for c = 0."""
    return log1p(c * z) / c if c else z


REFERENCES: dict[str, Reference] = {
    "norm": Reference(log_normal_density, normal_tail, lambda z: normal_tail(-z)),
    "uniform": Reference(lambda z: mpf(0), lambda z: z, lambda z: 1 - z),
    "expon": Reference(lambda z: -z, lambda z: -expm1(-z), lambda z: exp(-z)),
    "cauchy": Reference(
        lambda z: -log(mp.pi * (1 + z * z)),
        lambda z: mpmath.atan2(1, -z) / mp.pi,
        lambda z: mpmath.atan2(1, z) / mp.pi,
    ),
    "laplace": Reference(
        lambda z: -abs(z) - log(2),
        lambda z: exp(z) / 2 if z < 0 else 1 - exp(-z) / 2,
        lambda z: exp(-z) / 2 if z > 0 else 1 - exp(z) / 2,
    ),
    "logistic": Reference(
        lambda z: -abs(z) - 2 * log1p(exp(-abs(z))),
        lambda z: 1 / (1 + exp(-z)),
        lambda z: 1 / (1 + exp(z)),
    ),
    "gumbel_r": Reference(
        lambda z: -z - exp(-z),
        lambda z: exp(-exp(-z)),
        lambda z: -expm1(-exp(-z)),
        {"logcdf": lambda z: -exp(-z)},
    ),
    "gumbel_l": Reference(
        lambda z: z - exp(z),
        lambda z: -expm1(-exp(z)),
        lambda z: exp(-exp(z)),
        {"logsf": lambda z: -exp(z)},
    ),
    "halfnorm": Reference(
        lambda z: log_normal_density(z) + log(2),
        lambda z: mpmath.erf(z / mpmath.sqrt(2)),
        lambda z: mpmath.erfc(z / mpmath.sqrt(2)),
    ),
    "rayleigh": Reference(
        lambda z: log(z) - z * z / 2, lambda z: -expm1(-z * z / 2), lambda z: exp(-z * z / 2)
    ),
    "gamma": Reference(
        lambda z, a: (a - 1) * log(z) - z - mpmath.loggamma(a),
        lambda z, a: lower_gamma(a, z),
        lambda z, a: upper_gamma(a, z),
    ),
    "chi2": Reference(
        lambda z, k: (k / 2 - 1) * log(z) - z / 2 - mpmath.loggamma(k / 2) - log(2) * k / 2,
        lambda z, k: lower_gamma(k / 2, z / 2),
        lambda z, k: upper_gamma(k / 2, z / 2),
    ),
    "invgamma": Reference(
        lambda z, a: -(a + 1) * log(z) - 1 / z - mpmath.loggamma(a),
        lambda z, a: upper_gamma(a, 1 / z),
        lambda z, a: lower_gamma(a, 1 / z),
    ),
    "weibull_min": Reference(
        lambda z, c: log(c) + (c - 1) * log(z) - z**c,
        lambda z, c: -expm1(-(z**c)),
        lambda z, c: exp(-(z**c)),
        {"logsf": lambda z, c: -(z**c)},
    ),
    "beta": Reference(
        lambda z, a, b: (a - 1) * log(z) + (b - 1) * log1p(-z) - log_beta(a, b),
        lambda z, a, b: lower_beta(a, b, z),
        lambda z, a, b: lower_beta(b, a, 1 - z),
    ),
    "t": Reference(
        lambda z, df: (
            -(df + 1) / 2 * log1p(z * z / df) - log_beta(df / 2, mpf(1) / 2) - log(df) / 2
        ),
        lambda z, df: t_tail(-z, df),
        t_tail,
    ),
    "f": Reference(
        lambda z, m, n: (
            m / 2 * log(m / n)
            + (m / 2 - 1) * log(z)
            - (m + n) / 2 * log1p(m * z / n)
            - log_beta(m / 2, n / 2)
        ),
        lambda z, m, n: lower_beta(m / 2, n / 2, m * z / (n + m * z)),
        lambda z, m, n: lower_beta(n / 2, m / 2, n / (n + m * z)),
    ),
    "lognorm": Reference(
        lambda z, s: log_normal_density(log(z) / s) - log(s * z),
        lambda z, s: normal_tail(log(z) / s),
        lambda z, s: normal_tail(-log(z) / s),
    ),
    "pareto": Reference(
        lambda z, b: log(b) - (b + 1) * log(z),
        lambda z, b: -expm1(-b * log(z)),
        lambda z, b: exp(-b * log(z)),
    ),
    "vonmises": Reference(
        lambda z, kappa: kappa * mpmath.cos(z) - log(2 * mp.pi * mpmath.besseli(0, kappa))
    ),
    "halfcauchy": Reference(
        lambda z: log(2 / mp.pi) - log1p(z * z),
        lambda z: 2 * mpmath.atan(z) / mp.pi,
        lambda z: 2 * mpmath.atan2(1, z) / mp.pi,
    ),
    "fisk": Reference(
        lambda z, c: log(c) + (c - 1) * log(z) - 2 * log1p(z**c),
        lambda z, c: 1 / (1 + z**-c),
        lambda z, c: 1 / (1 + z**c),
    ),
    "genpareto": Reference(
        lambda z, c: -(1 + 1 / c) * log1p(c * z) if c else -z,
        lambda z, c: -expm1(-warped(z, c)),
        lambda z, c: exp(-warped(z, c)),
        {"logsf": lambda z, c: -warped(z, c)},
    ),
    "genextreme": Reference(
        lambda z, c: -(1 - c) * warped(z, -c) - exp(-warped(z, -c)),
        lambda z, c: exp(-exp(-warped(z, -c))),
        lambda z, c: -expm1(-exp(-warped(z, -c))),
        {"logcdf": lambda z, c: -exp(-warped(z, -c))},
    ),
    "skewnorm": Reference(
        lambda z, a: log_normal_density(z) + log(2 * normal_tail(a * z)),
    ),
    "invgauss": Reference(
        lambda z, mu: -log(2 * mp.pi * z**3) / 2 - (z / mu - 1) ** 2 / (2 * z),
    ),
    "truncnorm": Reference(
        lambda z, a, b: log_normal_density(z) - log(truncated_mass(a, b)),
        lambda z, a, b: truncated_mass(a, z) / truncated_mass(a, b),
        lambda z, a, b: truncated_mass(z, b) / truncated_mass(a, b),
    ),
}
