"""Derivatives of elementwise functions far out, where careless forms of them cancel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import exp, log1p, mpf

import gradtape as gt
import our_scipy

_ALPHA, _SCALE = 1.6732632423543772, 1.0507009873554805


def scaled_bessel(name: str) -> Callable[..., Any]:
    """A modified Bessel function times the exponential that makes it flat, for positive numbers."""
    function, side = (mpmath.besseli, -1) if name[0] == "i" else (mpmath.besselk, 1)
    return lambda x: function(int(name[1]), x) * exp(side * x)


# function, the same in mpmath, points
EXACT: list[tuple[str, Any, Callable[..., Any], tuple[float, ...]]] = [
    ("elu", gt.nn.elu, mpmath.expm1, (-40.0, -300.0)),
    ("selu", gt.nn.selu, lambda x: mpf(_SCALE) * mpf(_ALPHA) * mpmath.expm1(x), (-40.0, -300.0)),
    ("celu", lambda x: gt.nn.celu(x, 2.0), lambda x: 2 * mpmath.expm1(x / 2), (-80.0, -300.0)),
    ("log_sigmoid", gt.log_sigmoid, lambda x: -log1p(exp(-x)), (40.0, 300.0)),
    ("softplus", gt.softplus, lambda x: log1p(exp(x)), (-40.0, -300.0)),
    ("silu", gt.silu, lambda x: x / (1 + exp(-x)), (-40.0, -300.0)),
    ("erfc", gt.erfc, mpmath.erfc, (6.0, 20.0)),
    ("powm1", lambda y: our_scipy.special.powm1(0.5, y), lambda y: mpf(0.5) ** y, (60.0, 300.0)),
    ("betaln", lambda a: our_scipy.special.betaln(a, 2.5), None, (1e3, 1e8, 1e15)),
    (
        "beta",
        lambda a: our_scipy.special.beta(a, 2.5),
        lambda a: mpmath.beta(a, 2.5),
        (1e3, 1e8, 1e15),
    ),
    *(
        (name, getattr(our_scipy.special, name), scaled_bessel(name), (29.0, 31.0, 1e3, 1e8, 1e15))
        for name in ("i0e", "i1e")
    ),
    ("k0e", our_scipy.special.k0e, scaled_bessel("k0e"), (1e3, 1e8, 1e15)),
    ("k1e", our_scipy.special.k1e, scaled_bessel("k1e"), (1e3, 1e8, 1e15)),
    ("i0e below 0", our_scipy.special.i0e, lambda x: scaled_bessel("i0e")(-x), (-31.0, -1e8)),
    ("i1e below 0", our_scipy.special.i1e, lambda x: -scaled_bessel("i1e")(-x), (-31.0, -1e8)),
    (
        "poch",
        lambda z: our_scipy.special.poch(z, 0.5),
        lambda z: mpmath.rf(z, mpf(0.5)),
        (1e3, 1e8),
    ),
]


def log_beta(a: Any) -> Any:
    return mpmath.loggamma(a) + mpmath.loggamma(2.5) - mpmath.loggamma(a + 2.5)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("name", "function", "reference", "points"), EXACT, ids=[case[0] for case in EXACT]
)
def test_relative_error(
    name: str, function: Any, reference: Any, points: tuple[float, ...], order: int
) -> None:
    derived = function
    for _ in range(order):
        derived = gt.grad(lambda x, derived=derived: gt.sum(derived(x)))
    got, compiled = derived(np.array(points)), gt.jit(derived)(np.array(points))
    with mpmath.workdps(120):
        for x, one, other in zip(points, got, compiled, strict=True):
            expected = mpmath.diff(reference or log_beta, mpf(x), order, h=abs(x) * mpf(10) ** -25)
            assert abs(mpf(float(one)) / expected - 1) < 2e-12
            assert abs(mpf(float(other)) / expected - 1) < 2e-12


@pytest.mark.parametrize(
    ("function", "reference", "points"),
    [
        (gt.tanh, mpmath.tanh, (8.0, 20.0)),
        (gt.sigmoid, lambda x: 1 / (1 + exp(-x)), (15.0, 40.0)),
        (gt.expm1, mpmath.expm1, (-10.0, -40.0)),
    ],
    ids=["tanh", "sigmoid", "expm1"],
)
def test_absolute_error(function: Any, reference: Any, points: tuple[float, ...]) -> None:
    """Slopes that are made of the result, as in PyTorch: right to the spacing of numbers at 1."""
    got = gt.grad(lambda x: gt.sum(function(x)))(np.array(points))
    with mpmath.workdps(60):
        for x, slope in zip(points, got, strict=True):
            assert abs(mpf(float(slope)) - mpmath.diff(reference, mpf(x))) < 3e-16
