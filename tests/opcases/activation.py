"""Samples of activation functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError
from opcases.case import At, OpCase, Raises, draw

inf, nan = np.inf, np.nan
X = draw(2, 3)
FAR = np.array([-inf, -1e300, -1000.0, 1000.0, 1e300, inf])
STEP = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])  # the slope there of what bends at 0


def case(function: Any, ref: Any, *args: Any, **kwargs: Any) -> OpCase:
    return OpCase(function, args or (X,), ref, elementwise=True, **kwargs)


def slope(function: Any) -> Any:
    """The derivative, to see the second one at special points."""
    return gt.grad(lambda x: gt.sum(function(x)))


def finite(function: Any) -> OpCase:
    """Values and both derivatives far from 0 are numbers."""
    return OpCase(
        slope(function),
        (X,),
        slope(function),
        ops=(function.__name__,),
        label=f"slope-{function.__name__}",
        at=[At((FAR,), (np.zeros(6),))],
    )


def softplus(x: Any, beta: float = 1.0) -> Any:
    return np.logaddexp(beta * x, 0) / beta


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    return np.where(x > 0, x, negative_slope * x)


def elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(x))


def gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "none":
        return x * scipy.special.ndtr(x)
    return 0.5 * x * (1 + np.tanh(float(np.sqrt(2 / np.pi)) * (x + 0.044715 * x**3)))


def relu6(x: Any) -> Any:
    return np.minimum(np.maximum(x, 0), 6)


CASES: list[OpCase] = [
    case(gt.sigmoid, scipy.special.expit, at=[At((FAR,), (np.zeros(6),)), At((0.0,), (0.25,))]),
    case(gt.sigmoid, scipy.special.expit, draw(600, low=-40.0, high=40.0), label="large"),
    case(gt.log_sigmoid, scipy.special.log_expit, at=[At((FAR,), (1 - STEP,))]),
    case(
        gt.softplus,
        softplus,
        at=[At((FAR,), (STEP,)), At((0.0,), (0.5,))],
        raises=[Raises((np.array(["a"]),), DTypeError, "softplus: came <U1")],
    ),
    case(
        gt.softplus,
        softplus,
        params={"beta": 3.0},
        label="beta",
        at=[At((FAR,), (STEP,), {"beta": 3.0})],
        raises=[Raises((X,), ArgumentError, "softplus: came beta=0", {"beta": 0})],
    ),
    case(
        gt.relu,
        lambda x: np.maximum(x, 0),
        dtypes=(np.float64, np.float32, np.float16, np.int8),
        at=[At((FAR,), (STEP,)), At((np.array([0.0, nan]),), (np.array([0.0, 1.0]),))],
    ),
    case(
        gt.relu6,
        relu6,
        4 * X,
        at=[At((np.array([0.0, 1.0, 6.0, inf, nan]),), (np.array([0, 1, 0, 0, 1]),))],
    ),
    case(
        gt.leaky_relu,
        leaky_relu,
        at=[At((np.array([-1.0, 0.0, 2.0]),), (np.array([0.01, 0.01, 1]),))],
    ),
    case(gt.leaky_relu, leaky_relu, params={"negative_slope": 0.5}, label="slope"),
    case(gt.elu, elu, at=[At((FAR,), (STEP,)), At((0.0,), (1.0,)), At((nan,), (1.0,))]),
    case(
        gt.elu, elu, params={"alpha": 2.0}, label="alpha", at=[At((0.0,), (2.0,), {"alpha": 2.0})]
    ),
    case(
        gt.silu, lambda x: x * scipy.special.expit(x), at=[At((FAR,), (STEP,)), At((0.0,), (0.5,))]
    ),
    case(gt.gelu, gelu, at=[At((FAR,), (STEP,)), At((0.0,), (0.5,))]),
    case(
        gt.gelu,
        gelu,
        params={"approximate": "tanh"},
        label="tanh",
        at=[At((FAR,), (STEP,), {"approximate": "tanh"})],
        raises=[Raises((X,), ArgumentError, "gelu: came approximate='no'", {"approximate": "no"})],
    ),
    case(gt.softsign, lambda x: x / (1 + np.abs(x)), at=[At((0.0,), (1.0,))]),
    *(finite(function) for function in (gt.sigmoid, gt.softplus, gt.log_sigmoid, gt.silu, gt.gelu)),
]

ULPS = dict.fromkeys(("sigmoid", "silu", "gelu", "log_sigmoid", "softplus", "elu"), 4)
