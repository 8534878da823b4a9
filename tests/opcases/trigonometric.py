"""Samples of circular and hyperbolic functions with their inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import DTypeError, ShapeError
from opcases.case import At, OpCase, Raises, draw

inf = np.inf
X, Y = draw(2, 3), draw(2, 3, seed=1)
INSIDE, ABOVE = draw(2, 3, low=-0.9, high=0.9), draw(2, 3, low=1.1, high=3.0)
REAL = (np.float64, np.float32, np.float16)
ALL = (*REAL, np.int8, np.complex64, np.complex128)
DOUBLE = (*REAL, np.complex128)


def case(name: str, *args: Any, **kwargs: Any) -> OpCase:
    """A function that NumPy and PyTorch have under the same name."""
    torch = kwargs.pop("torch", name)
    return OpCase(
        getattr(gt, name), args, getattr(np, name), elementwise=True, torch=torch, **kwargs
    )


NEAR_0 = np.array([0.0, 1e-9, -1e-5, 1e-3, 0.1])
SLOPES = -(np.pi**2) / 3 * NEAR_0 * (1 - (np.pi * NEAR_0) ** 2 / 10)


def slope_of_sinc(x: Any) -> Any:
    return gt.grad(lambda x: gt.sum(gt.sinc(x)))(x)


def slope_of_sinc_ref(x: Any) -> Any:
    return (np.cos(np.pi * x) - np.sinc(x)) / x


CASES: list[OpCase] = [
    case("sin", X, dtypes=ALL),
    case("cos", X, dtypes=ALL),
    case("tan", X / 2, dtypes=ALL),
    case("arcsin", INSIDE, dtypes=DOUBLE, at=[At((1.0,), (inf,)), At((0.0,), (1.0,))]),
    case("arccos", INSIDE, dtypes=DOUBLE, at=[At((-1.0,), (-inf,)), At((0.0,), (-1.0,))]),
    case("arctan", X, dtypes=ALL, at=[At((inf,), (0.0,)), At((1e200,), (0.0,))]),
    case(
        "arctan2",
        X,
        Y,
        dtypes=REAL,
        at=[At((0.0, 0.0), (0.0, 0.0)), At((0.0, -2.0), (-0.5, 0.0)), At((2.0, 0.0), (0.0, -0.5))],
        raises=[Raises((draw(2), draw(3)), ShapeError, "arctan2: got")],
    ),
    case("deg2rad", 90 * X, dtypes=REAL),
    case("rad2deg", X, dtypes=REAL),
    OpCase(gt.radians, (90 * X,), np.radians, label="radians", torch="deg2rad"),
    OpCase(gt.degrees, (X,), np.degrees, label="degrees", torch="rad2deg"),
    case(
        "sinc",
        X,
        at=[
            At((0.0,), (0.0,)),
            At((NEAR_0[:3],), (SLOPES[:3],), unlike_torch="cancellation near 0, up to 0 digits"),
            At((1.0,), (-1.0,)),
        ],
        raises=[Raises((np.array(["a"]),), DTypeError, "sinc: got <U1")],
    ),
    OpCase(
        slope_of_sinc,
        (X,),
        slope_of_sinc_ref,
        ops=("sinc",),
        rtol=256,
        at=[At((0.0,), (-(np.pi**2) / 3,))],
    ),
    OpCase(slope_of_sinc, (8 * X,), slope_of_sinc_ref, ops=("sinc",), label="far", rtol=256),
    case("sinh", X, dtypes=ALL),
    case("cosh", X, dtypes=ALL),
    case("tanh", X, dtypes=ALL, at=[At((inf,), (0.0,)), At((-1000.0,), (0.0,))]),
    case("arcsinh", X, dtypes=DOUBLE, at=[At((inf,), (0.0,))]),
    case("arccosh", ABOVE, dtypes=DOUBLE, at=[At((1.0,), (inf,))]),
    case("arctanh", INSIDE, dtypes=DOUBLE, at=[At((1.0,), (inf,)), At((0.0,), (1.0,))]),
]

ULPS = {"deg2rad": 4, "rad2deg": 4, "sinc": 4}
