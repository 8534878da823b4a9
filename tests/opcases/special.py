"""Samples of special functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from opcases.case import At, OpCase, Raises, draw

inf, nan = np.inf, np.nan
X, POSITIVE = draw(2, 3), draw(2, 3, low=0.3, high=4.0)
GAPS = np.array([-0.5, -1.3, -2.6])  # between the poles of the gamma function
REAL = (np.float64, np.float32)


def case(name: str, ref: Any, *args: Any, **kwargs: Any) -> OpCase:
    return OpCase(getattr(gt, name), args, ref, elementwise=True, **kwargs)


def polygamma_32(n: int, x: Any) -> Any:
    return scipy.special.polygamma(n, x).astype(x.dtype)


def xlogy(x: Any, y: Any) -> Any:
    """SciPy's, with Python's numbers weak."""
    dtype = np.result_type(x, y)
    return scipy.special.xlogy(np.asarray(x, dtype), np.asarray(y, dtype))


def slope_of_xlogy(x: Any, y: Any) -> Any:
    """The sum of both derivatives, to see the second ones at special points."""
    by_x, by_y = gt.grad(lambda x, y: gt.sum(gt.xlogy(x, y)), (0, 1))(x, y)
    return by_x + by_y


def through_scipy(ufunc: Any, op: str, x: Any) -> OpCase:
    """A function of SciPy, called on tensors."""
    return OpCase(ufunc, (x,), ufunc, ops=(op,), label="scipy", rtol=64)


CASES: list[OpCase] = [
    case(
        "erf",
        scipy.special.erf,
        X,
        at=[At((0.0,), (2 / np.sqrt(np.pi),)), At((inf,), (0.0,)), At((-1e200,), (0.0,))],
    ),
    case("erf", scipy.special.erf, np.arange(3), label="whole", differentiable=False),
    case("erfc", scipy.special.erfc, X, at=[At((inf,), (0.0,))]),
    case("erfinv", scipy.special.erfinv, draw(2, 3, low=-0.9, high=0.9), at=[At((1.0,), (inf,))]),
    case("ndtr", scipy.special.ndtr, X, at=[At((-inf,), (0.0,))]),
    case(
        "lgamma",
        scipy.special.gammaln,
        POSITIVE,
        at=[At((1.0,), (-np.euler_gamma,)), At((0.0,), (-inf,)), At((inf,), (inf,))],
    ),
    case("lgamma", scipy.special.gammaln, GAPS, label="negative"),
    case("digamma", scipy.special.digamma, POSITIVE, at=[At((1.0,), (np.pi**2 / 6,))]),
    case("digamma", scipy.special.digamma, GAPS, label="negative", rtol=64),
    *(
        OpCase(gt.polygamma, (n, POSITIVE), polygamma_32, label=f"{n}", ops=(op,), rtol=64)
        for n, op in ((0, "digamma"), (1, "polygamma"), (2, "polygamma"), (5, "polygamma"))
    ),
    OpCase(
        gt.polygamma,
        (1, GAPS),
        polygamma_32,
        label="negative",
        rtol=64,
        raises=[
            Raises((-1, X), ArgumentError, "polygamma: came order -1"),
            Raises((1, np.array(["a"])), DTypeError, "polygamma: came <U1"),
            Raises((1.0, X), ArgumentError, "polygamma: came order 1.0"),
        ],
    ),
    case(
        "xlogy",
        xlogy,
        X,
        POSITIVE,
        at=[
            At((0.0, 0.0), (0.0, 0.0)),
            At((0.0, 2.0), (np.log(2.0), 0.0)),
            At((0.0, -1.0), (0.0, 0.0)),
            At((0.0, nan), (nan, nan)),
            At((0.0, 2), (np.log(2.0),)),
            At((0.0, 0), (0.0,)),
            At((np.array([0.0, 0.0]), np.array([2, 0])), (np.array([np.log(2.0), 0.0]),)),
            At((1.0, 0.0), (-inf, inf)),
            At((2.0, 1.0), (0.0, 2.0)),
        ],
        raises=[Raises((draw(2), draw(3)), ShapeError, "xlogy: came")],
    ),
    OpCase(
        slope_of_xlogy,
        (X, POSITIVE),
        lambda x, y: x / y + np.log(y),
        ops=("xlogy",),
        label="second-order",
        at=[At((0.0, 2.0), (0.5, 0.5)), At((0.0, 0.0), (0.0, 0.0))],
    ),
    through_scipy(scipy.special.erf, "erf", X),
    through_scipy(scipy.special.gammaln, "lgamma", POSITIVE),
    through_scipy(scipy.special.psi, "digamma", POSITIVE),
    through_scipy(scipy.special.expit, "sigmoid", X),
]

NOT_NATIVE = dict.fromkeys(
    ("erfinv", "lgamma", "digamma", "polygamma"), "no such elementary function"
)
ULPS = {"xlogy": 4, "ndtr": 4}
