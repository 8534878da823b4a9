"""Samples of what logarithms of incomplete gamma and beta functions are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import gradtape as gt
import our_scipy
from gradtape.ops.special.gamma import polygamma_step
from gradtape.ops.special.log_tails import (
    beta_integral,
    gamma_integral,
    log_betainc,
    log_gammainc,
    log_gammaincc,
)
from opcases.case import At, OpCase, draw

DOUBLE = (np.float64,)
SHAPE = np.array([[2.5, 6.0, 9.0]])
FAR, NEAR = SHAPE + np.array([[4.0], [30.0]]), SHAPE * np.array([[0.05], [0.3]])

LOW = np.array([[0.04, 0.06, 0.1], [0.2, 0.1, 0.2]])


def gamma_integral_of(x_side: bool) -> Any:
    name = "gammaincc" if x_side else "gammainc"

    def value(a: Any, x: Any, **_params: Any) -> Any:
        return getattr(scipy.special, name)(a, x) * scipy.special.gamma(a) * np.exp(x) / x**a

    return value


def beta_integral_of(a: Any, b: Any, x: Any, **_params: Any) -> Any:
    weight = x**a * (1 - x) ** b / scipy.special.beta(a, b)
    return scipy.special.betainc(a, b, x) / weight


INTEGRALS = [
    OpCase(
        gamma_integral,
        (SHAPE, x),
        gamma_integral_of(upper),
        params={"upper": upper, "powers": (0, 0)},
        ops=("gamma_tail",),
        label=f"gamma-{label}",
        dtypes=DOUBLE,
        rtol=1024,
    )
    for x, upper, label in ((FAR, True, "upper"), (NEAR, False, "lower"))
]
INTEGRALS += [
    OpCase(
        beta_integral,
        (SHAPE, np.array([[1.5]]), LOW),
        beta_integral_of,
        params={"powers": (0, 0, 0)},
        ops=("beta_tail",),
        label="beta-tail",
        dtypes=DOUBLE,
        rtol=1024,
    ),
]


def log_beta(a: Any, b: Any, x: Any) -> Any:
    tails = our_scipy.special.betainc(a, b, x), our_scipy.special.betaincc(a, b, x)
    return log_betainc(a, b, x, gt.log(x), *tails)


LOGARITHMS = [
    OpCase(
        lambda a, x: log_gammaincc(a, x, gt.log(x)),
        (SHAPE, FAR),
        lambda a, x: np.log(scipy.special.gammaincc(a, x)),
        ops=("gamma_tail",),
        label="log-upper",
        dtypes=DOUBLE,
        rtol=1024,
    ),
    OpCase(
        lambda a, x: log_gammainc(a, x, gt.log(x)),
        (SHAPE, NEAR),
        lambda a, x: np.log(scipy.special.gammainc(a, x)),
        ops=("gamma_tail",),
        label="log-lower",
        dtypes=DOUBLE,
        rtol=1024,
    ),
    OpCase(
        log_beta,
        (SHAPE, np.array([[1.5]]), LOW),
        lambda a, b, x: np.log(scipy.special.betainc(a, b, x)),
        ops=("beta_tail",),
        dtypes=DOUBLE,
        rtol=1024,
    ),
]


def digamma_difference(x: Any, step: Any, order: int) -> Any:
    return scipy.special.digamma(x + step) - scipy.special.digamma(x)


STEPS = [
    OpCase(
        polygamma_step,
        (draw(2, 3, low=0.3, high=30.0), draw(2, 3, low=0.3, high=5.0, seed=1)),
        digamma_difference,
        params={"order": 0},
        ops=("polygamma_step",),
        label="polygamma-step",
        dtypes=DOUBLE,
        rtol=1024,
        # ψ(x + 1) − ψ(x) = 1/x
        at=[
            At(([1e12], [1.0]), ([-1e-24], [1e-12]), {"order": 0}),
            At(([0.5], [1.0]), ([-4.0], [np.pi**2 / 2 - 4]), {"order": 0}),
        ],
    ),
    OpCase(
        our_scipy.special.betaln,
        (np.array([1e3, 4e6, 0.2]), np.array([0.5, 3.0, 1e5])),
        scipy.special.betaln,
        ops=("betaln", "polygamma_step"),
        label="large",
        dtypes=DOUBLE,
        rtol=1024,
        differences=False,
    ),
]

CASES = [*INTEGRALS, *LOGARITHMS, *STEPS]

NOT_NATIVE = dict.fromkeys(
    ("gamma_tail", "beta_tail", "polygamma_step"), "no such elementary function"
)
