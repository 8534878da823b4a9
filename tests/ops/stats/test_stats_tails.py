"""Distributions in their far tails and next to the ends of their supports, against mpmath.

Values and derivatives by the place and by every parameter, of first and second order. The bars are
relative errors; what is too large or too small for a double has to be infinite or nearly 0.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import gradtape as gt
import our_scipy
from stats_references import (
    REFERENCES,
    Jet,
    digits_for,
    methods,
    quantile,
)

BARS = (1e-11, 1e-11, 1e-9)  # of values, first and second derivatives
# Where terms of the size 1/x cancel, as they do at the mode, this share of them may remain.
ROUNDING = 1e-15
LARGEST, SMALLEST = 1e300, 1e-250
# Of this scale the standard point z is exact.
LOC, SCALE = 0.0, 2.0

EVERYWHERE = (-1e10, -1e3, -40.0, -0.7, 0.6, 40.0, 1e3, 1e10)
POSITIVE = (1e-40, 1e-12, 0.03, 0.6, 40.0, 1e3, 1e10)
UNIT = (1e-40, 1e-12, 0.3, 0.9, 1 - 2.0**-40)

# name: points in its support, and sets of shape parameters
PLACES: dict[str, tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]] = {
    "norm": (EVERYWHERE, ((),)),
    "uniform": (UNIT, ((),)),
    "expon": (POSITIVE, ((),)),
    "cauchy": (EVERYWHERE, ((),)),
    "laplace": (EVERYWHERE, ((),)),
    "logistic": (EVERYWHERE, ((),)),
    "gumbel_r": (EVERYWHERE[1:], ((),)),
    "gumbel_l": (EVERYWHERE[:-1], ((),)),
    "halfnorm": (POSITIVE, ((),)),
    "rayleigh": (POSITIVE, ((),)),
    "gamma": (POSITIVE, ((0.4,), (7.5,), (900.0,))),
    "chi2": (POSITIVE, ((0.4,), (7.5,))),
    "invgamma": ((1e-10, *POSITIVE[2:]), ((0.4,), (7.5,))),
    "weibull_min": (POSITIVE, ((0.4,), (7.5,))),
    "beta": (UNIT, ((0.4, 7.5), (40.0, 3.0), (900.0, 700.0))),
    "t": (EVERYWHERE, ((0.4,), (7.5,), (900.0,))),
    "f": (POSITIVE, ((0.4, 7.5), (11.0, 900.0))),
    "lognorm": (POSITIVE, ((0.4,), (7.5,))),
    "pareto": ((1 + 2.0**-40, 1.03, 40.0, 1e3, 1e10), ((0.4,), (7.5,))),
    "vonmises": ((-2.0, -1e-12, 0.3, 3.0), ((0.0625,), (30.0,), (1e10,))),
    "halfcauchy": (POSITIVE, ((),)),
    "fisk": (POSITIVE, ((0.4,), (7.5,))),
    "genpareto": (POSITIVE[:-2], ((0.4,), (1e-5,), (-0.02,))),
    "genextreme": ((-2.0, -0.7, 1e-12, 0.6, 2.4), ((0.4,), (1e-5,), (-0.3,))),
    "skewnorm": ((-1e3, -40.0, -0.7, 0.6, 40.0, 1e3), ((-3.5,), (0.25,), (1e3,))),
    "invgauss": ((1e-3, 0.03, 0.6, 40.0, 1e3, 1e10), ((0.4,), (7.5,))),
    "truncnorm": ((30.25, 30.5, 31.0), ((30.0, 32.0),)),
}
QUANTILES = (1e-20, 1e-12, 0.3, 0.9)


def derivative(function: Any, by: tuple[int, ...]) -> Any:
    """The derivative of an elementwise function by some of its arguments."""
    for i in by:
        function = gt.grad(summed(function), i)
    return function


def summed(function: Any) -> Any:
    return lambda *args: gt.sum(function(*args))


def pairs(count: int) -> list[tuple[int, ...]]:
    """Derivatives to look at: none, each of first order, each pair."""
    first = [(i,) for i in range(count)]
    # The place, last but one, moves as x does with the other sign.
    others = [i for i in range(count) if i != count - 2]
    return [(), *first, *itertools.combinations_with_replacement(others, 2)]


def derivatives(function: Any, args: list[Any]) -> dict[tuple[int, ...], Any]:
    """What `derivative` gives for each of `pairs`, in one run for every first argument."""
    wanted = pairs(len(args))
    found = {(): function(*args)}
    firsts = tuple(range(len(args)))
    slopes = gt.grad(summed(function), firsts)(*args)
    found.update(((i,), slope) for i, slope in zip(firsts, slopes, strict=True))
    for i in firsts:
        seconds = tuple(by[1] for by in wanted if len(by) == 2 and by[0] == i)
        if seconds:
            bends = gt.grad(summed(derivative(function, (i,))), seconds)(*args)
            found.update(((i, j), bend) for j, bend in zip(seconds, bends, strict=True))
    assert set(found) == set(wanted)
    return found


def part(jet: Jet, by: tuple[int, ...]) -> Any:
    """The value of a jet, or one of its derivatives."""
    if not by:
        return jet.value
    return jet.first[by[0]] if len(by) == 1 else jet.second[by[0]][by[1]]


def wrong(got: float, expected: Any, bar: float, size: Any = 0) -> bool:
    if abs(expected) > LARGEST:
        return not got * mpmath.sign(expected) > LARGEST
    if abs(expected) < SMALLEST:
        return not abs(got) < 1e3 * SMALLEST
    return not abs(mpf(float(got)) - expected) <= bar * abs(expected) + ROUNDING * size


def natural_size(which: str, jet: dict[str, Jet], args: list[float], by: tuple[int, ...]) -> Any:
    """What a derivative is when nothing cancels: the value, or 1 of a logarithm, by arguments."""
    value = mpf(1)
    if not which.startswith("log"):
        value = jet["pdf"].value if which == "pdf" else min(jet["cdf"].value, jet["sf"].value)
    largest = max(1.0, *args[1:])
    if len(args) - 1 in by:  # by the scale: z·f′ and z²·f″ may cancel
        x, jets = args[0], jet[which]
        largest = max(largest, abs(x * jets.first[0]), abs(x * x * jets.second[0][0]))
    return value * largest / math.prod(abs(args[i]) or abs(args[0]) for i in by)


# Parameters that lie between others, and those of what is the gamma distribution in disguise.
BETWEEN = [
    *((name, (7.5,)) for name in ("gamma", "t", "chi2", "invgamma")),
    ("beta", (40.0, 3.0)),
]
CASES = [
    pytest.param(
        name,
        shapes,
        id="-".join([name, *map(str, shapes)]),
        marks=pytest.mark.slow if (name, shapes) in BETWEEN else (),
    )
    for name, (_, sets) in PLACES.items()
    for shapes in sets
]


# The first have densities only; the last takes mpmath too long.
WITHOUT_QUANTILES = [
    *((name, s) for name in ("vonmises", "skewnorm", "invgauss") for s in PLACES[name][1]),
    ("beta", (900.0, 700.0)),
]


NEXT_TO_A_BOUND = [("pareto", "ppf"), ("truncnorm", "ppf"), ("genextreme", "isf")]


@pytest.mark.parametrize(("name", "shapes"), CASES)
def test_tails(name: str, shapes: tuple[float, ...]) -> None:
    points = np.array(PLACES[name][0])
    args = [SCALE * points, *(np.full(points.shape, p) for p in (*shapes, LOC, SCALE))]
    jets = []
    for z in points:
        with mpmath.workdps(digits_for(z)):
            jets.append(methods(REFERENCES[name], mpf(float(z)), [*map(mpf, shapes)], mpf(SCALE)))
    found = []
    for which in jets[0]:
        ours = getattr(getattr(our_scipy.stats, name), which)
        with np.errstate(all="ignore"):
            by_arguments = derivatives(ours, args)
        for by, got in by_arguments.items():
            for i, (z, value, jet) in enumerate(zip(points, got, jets, strict=True)):
                expected = part(jet[which], by)
                size = natural_size(which, jet, [float(arg[i]) for arg in args], by) if by else 0
                if wrong(value, expected, BARS[len(by)], size):
                    found.append(f"{which}({z}) by {by}: {value}, not {float(expected)}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("which", ["cdf", "sf", "logcdf", "logsf"])
def test_next_to_bounds_of_truncnorm(which: str) -> None:
    points, shapes = np.array([30 + 2.0**-30, 32 - 2.0**-30]), (30.0, 32.0)
    ours = getattr(our_scipy.stats.truncnorm, which)
    args = (points, *(np.full(2, shape) for shape in shapes))
    with mpmath.workdps(100):
        jets = [
            methods(REFERENCES["truncnorm"], mpf(float(z)), [*map(mpf, shapes)], mpf(1))
            for z in points
        ]
        for by in ((), (0,), (1,), (2,)):
            got = derivative(ours, by)(*args)
            for z, value, jet in zip(points, got, jets, strict=True):
                assert not wrong(value, part(jet[which], by), 1e-11), (z, by)


@pytest.mark.parametrize(
    ("name", "shapes"), [case for case in CASES if case.values not in WITHOUT_QUANTILES]
)
def test_quantiles(name: str, shapes: tuple[float, ...]) -> None:
    args = [np.array(QUANTILES), *(np.full(len(QUANTILES), p) for p in shapes)]
    found = []
    for which in ("ppf", "isf"):
        ours = getattr(getattr(our_scipy.stats, name), which)
        jets = {}
        for q, z in zip(QUANTILES, ours(*args), strict=True):
            if (name, which) in NEXT_TO_A_BOUND and q < 0.1:
                continue  # how far z is from the bound is too small a part of z
            with mpmath.workdps(digits_for(z)):
                z_exact, shapes_exact = mpf(float(z)), [*map(mpf, shapes)]
                jets[q] = quantile(REFERENCES[name], z_exact, shapes_exact, which == "isf")
        for by in pairs(len(args) + 2)[1:]:
            if max(by) >= len(args):
                continue
            with np.errstate(all="ignore"):
                got = dict(zip(QUANTILES, derivative(ours, by)(*args), strict=True))
            for q, jet in jets.items():
                if wrong(got[q], part(jet, by), 100 * BARS[len(by)]):
                    found.append(f"{which}({q}) by {by}: {got[q]}, not {float(part(jet, by))}")
    assert not found, "\n".join(found)


# ---- the ends of supports -----------------------------------------------------------------------

inf = np.inf
TRIGAMMA_SUM = 1 + 1 / 2 + 1 / 3  # ψ(4) − ψ(1)

# The derivatives from inside, by x, the shapes, loc and scale; None where there is no limit.
ENDS: list[tuple[str, str, tuple[float, ...], tuple[float | None, ...]]] = [
    ("gamma", "pdf", (0.0, 0.5), (-inf, None, inf, -inf)),
    ("gamma", "pdf", (0.0, 1.0), (-1.0, np.euler_gamma, 1.0, -1.0)),
    ("gamma", "pdf", (0.0, 1.5), (inf, 0.0, -inf, 0.0)),
    ("gamma", "pdf", (0.0, 2.0), (1.0, 0.0, -1.0, 0.0)),
    ("gamma", "pdf", (0.0, 3.0), (0.0, 0.0, 0.0, 0.0)),
    ("gamma", "pdf", (0.0, 900.0), (0.0, 0.0, 0.0, 0.0)),
    ("gamma", "logpdf", (0.0, 0.5), (-inf, -inf, inf, -0.5)),
    ("gamma", "logpdf", (0.0, 2.0), (inf, -inf, -inf, -2.0)),
    ("gamma", "cdf", (0.0, 0.5), (inf, 0.0, -inf, 0.0)),
    ("gamma", "cdf", (0.0, 1.0), (1.0, 0.0, -1.0, 0.0)),
    ("gamma", "cdf", (0.0, 2.0), (0.0, 0.0, 0.0, 0.0)),
    ("gamma", "logcdf", (0.0, 0.5), (inf, -inf, -inf, -0.5)),
    ("gamma", "logcdf", (0.0, 2.0), (inf, -inf, -inf, -2.0)),
    ("gamma", "logsf", (0.0, 1.0), (-1.0, 0.0, 1.0, 0.0)),
    ("gamma", "ppf", (0.0, 0.5), (0.0, 0.0, 1.0, 0.0)),
    ("gamma", "ppf", (0.0, 2.0), (inf, 0.0, 1.0, 0.0)),
    ("gamma", "isf", (1.0, 2.0), (-inf, 0.0, 1.0, 0.0)),
    ("chi2", "pdf", (0.0, 4.0), (0.25, 0.0, -0.25, 0.0)),
    ("chi2", "logcdf", (0.0, 4.0), (inf, -inf, -inf, -2.0)),
    ("weibull_min", "pdf", (0.0, 1.0), (-1.0, 1.0, 1.0, -1.0)),
    ("weibull_min", "pdf", (0.0, 2.0), (2.0, 0.0, -2.0, 0.0)),
    ("weibull_min", "logcdf", (0.0, 2.0), (inf, -inf, -inf, -2.0)),
    ("weibull_min", "logsf", (0.0, 0.5), (-inf, 0.0, inf, 0.0)),
    ("beta", "pdf", (0.0, 1.0, 3.0), (-6.0, 3 * TRIGAMMA_SUM, 1.0, 6.0, -3.0)),
    ("beta", "pdf", (1.0, 3.0, 1.0), (6.0, 1.0, 3 * TRIGAMMA_SUM, -6.0, -9.0)),
    ("beta", "pdf", (0.0, 2.0, 2.0), (6.0, 0.0, 0.0, -6.0, 0.0)),
    ("beta", "pdf", (1.0, 2.0, 2.0), (-6.0, 0.0, 0.0, 6.0, 6.0)),
    ("beta", "logpdf", (0.0, 2.0, 2.0), (inf, -inf, TRIGAMMA_SUM - 1, -inf, -2.0)),
    ("beta", "logsf", (1.0, 2.0, 2.0), (-inf, None, -inf, inf, inf)),
    ("beta", "ppf", (0.0, 2.0, 3.0), (inf, 0.0, 0.0, 1.0, 0.0)),
    ("f", "pdf", (0.0, 2.0, 4.0), (-1.5, None, 0.0, 1.5, -1.0)),
    ("f", "pdf", (0.0, 4.0, 4.0), (6.0, 0.0, 0.0, -6.0, 0.0)),
    ("f", "ppf", (0.0, 4.0, 4.0), (None, 0.0, 0.0, 1.0, 0.0)),
    ("expon", "pdf", (0.0,), (-1.0, 1.0, -1.0)),
    ("expon", "logcdf", (0.0,), (inf, -inf, -1.0)),
    ("expon", "ppf", (0.0,), (1.0, 1.0, 0.0)),
    ("rayleigh", "pdf", (0.0,), (1.0, -1.0, 0.0)),
    ("rayleigh", "logpdf", (0.0,), (inf, -inf, -2.0)),
    ("rayleigh", "logcdf", (0.0,), (inf, -inf, -2.0)),
    ("halfnorm", "pdf", (0.0,), (0.0, 0.0, -math.sqrt(2 / math.pi))),
    ("halfnorm", "logcdf", (0.0,), (inf, -inf, -1.0)),
    ("uniform", "pdf", (0.0,), (0.0, 0.0, -1.0)),
    ("uniform", "logcdf", (0.0,), (inf, -inf, -1.0)),
    ("uniform", "logsf", (1.0,), (-inf, inf, inf)),
    ("pareto", "logpdf", (1.0, 2.0), (-3.0, 0.5, 3.0, 2.0)),
    ("pareto", "logcdf", (1.0, 2.0), (inf, 0.5, -inf, -inf)),
]


def slope_forward(function: Any, args: tuple[Any, ...], i: int) -> Any:
    def alone(x: Any) -> Any:
        return function(*args[:i], x, *args[i + 1 :])

    return gt.jvp(alone, (args[i],), (np.float64(1.0),))[1]


@pytest.mark.parametrize(("name", "which"), dict.fromkeys(case[:2] for case in ENDS))
def test_ends_of_supports(name: str, which: str, thorough: bool) -> None:
    # Compiled code comes from the same rules: one distribution has all that can go wrong in it.
    # `test_modes_agree` compiles each of them.
    with_compiled = thorough or name == "gamma" or (name, which) == ("beta", "pdf")
    function = getattr(getattr(our_scipy.stats, name), which)
    cases = [case[2:] for case in ENDS if case[:2] == (name, which)]
    every = tuple(range(len(cases[0][0]) + 2))
    backward = gt.grad(function, every)
    compiled = gt.jit(backward)
    for place, expected in cases:
        args = tuple(map(np.float64, (*place, 0.0, 1.0)))
        with np.errstate(all="ignore"):
            slopes = {
                "backward": backward(*args),
                "forward": [slope_forward(function, args, i) for i in every],
            }
            if with_compiled:
                slopes["compiled"] = compiled(*args)
        for way, found in slopes.items():
            for i, (got, slope) in enumerate(zip(found, expected, strict=True)):
                # The scale does not move z = 0: forward mode has 0·∞ of an infinite slope.
                undecided = way == "forward" and i == every[-1] and np.isnan(got)
                if slope is not None and not (undecided and np.isinf(found[0])):
                    note = f"{way} at {place} by argument {i}"
                    np.testing.assert_allclose(got, slope, rtol=1e-12, atol=1e-14, err_msg=note)


OUTSIDE = {
    **dict.fromkeys(
        ["expon", "rayleigh", "halfnorm", "gamma", "chi2", "invgamma"], (-1e-300, -40.0)
    ),
    **dict.fromkeys(["weibull_min", "f", "lognorm"], (-1e-300, -40.0)),
    **dict.fromkeys(["uniform", "beta"], (-1e-300, -40.0, 1.0 + 2.0**-52, 1e10)),
    "pareto": (1.0 - 2.0**-53, -40.0),
    "truncnorm": (29.9, 32.1),
}


@pytest.mark.parametrize("name", PLACES)
def test_outside_of_supports(name: str) -> None:
    points = np.array([*OUTSIDE.get(name, ()), -inf, inf])
    args = [points, *(np.full(points.shape, p) for p in (*PLACES[name][1][0], 0.0, 1.0))]
    tails = ("cdf", "sf", "logcdf", "logsf") if REFERENCES[name].cdf else ()
    for which in ("logpdf", "pdf", *tails):
        function = getattr(getattr(our_scipy.stats, name), which)
        for by, got in derivatives(function, args).items():
            if by and (which == "pdf" or by != (len(args) - 1,)):
                np.testing.assert_array_equal(got, np.zeros(points.shape), f"{which} by {by}")


# ---- modes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLACES)
def test_modes_agree(name: str) -> None:
    """Forward mode and compiled code give what reverse mode gives, in both orders."""
    points, sets = np.array(PLACES[name][0]), PLACES[name][1]
    every = tuple(range(len(sets[0]) + 3))
    for which in ("logpdf", "logsf") if REFERENCES[name].cdf else ("logpdf",):
        function = getattr(getattr(our_scipy.stats, name), which)

        def slopes(*args: Any, function: Any = function) -> Any:
            return gt.grad(summed(function), every)(*args)

        in_native_code = gt.jit(slopes)
        for shapes in sets:
            args = [2.0 * points, *(np.full(points.shape, p) for p in (*shapes, LOC, SCALE))]
            with np.errstate(all="ignore"):
                expected = slopes(*args)
                compiled = in_native_code(*args)
                for i in every:
                    tangents = tuple(np.full(points.shape, float(i == j)) for j in every)
                    _, forward = gt.jvp(function, tuple(args), tangents)
                    bars: Any = {"rtol": 1e-9, "atol": 1e-300, "err_msg": f"{which} {shapes} {i}"}
                    np.testing.assert_allclose(forward, expected[i], **bars)
                    np.testing.assert_allclose(compiled[i], expected[i], **bars)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tails_of_cauchy_far_out(dtype: Any) -> None:
    x, scale = dtype(1e30 if dtype is np.float32 else 1e200), dtype(1.25)
    for function, sign in ((our_scipy.stats.cauchy.logsf, 1), (our_scipy.stats.cauchy.logcdf, -1)):
        by_x, by_scale = gt.grad(function, (0, 2))(sign * x, dtype(0), scale)
        np.testing.assert_allclose((by_x * x, by_scale), (-sign, 1 / scale), rtol=1e-6)
