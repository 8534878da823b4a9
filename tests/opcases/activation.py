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


def far(why: str = "", **params: Any) -> list[At]:
    """Where x times a share of 1 goes; PyTorch multiplies infinities by 0."""
    step = np.array([0.0, 1.0])
    return [
        At((0.0,), (0.5,), params),
        At((np.array([-1000.0, 1000.0]),), (step,), params),
        At((np.array([-1e300, 1e300]),), (step,), params, why),
        At((np.array([-inf, inf]),), (step,), params, "nan from inf·0; the limits are 0 and 1"),
    ]


TORCH = {"log_sigmoid": "logsigmoid"}


def case(function: Any, ref: Any, *args: Any, **kwargs: Any) -> OpCase:
    """A function that PyTorch has too, most often under the same name."""
    name = TORCH.get(function.__name__, function.__name__)
    torch = kwargs.pop("torch", f"nn.functional.{name}")
    return OpCase(function, args or (X,), ref, elementwise=True, torch=torch, **kwargs)


def slope(function: Any) -> Any:
    """The derivative, to see the second one at special points."""
    return gt.grad(lambda x: gt.sum(function(x)))


def torch_slope(name: str) -> Any:
    """The derivative in PyTorch, which can be differentiated again."""

    def slope(torch: Any, x: Any) -> Any:
        out = getattr(torch.nn.functional, name)(x)
        return torch.autograd.grad(out.sum(), x, create_graph=True)[0]

    return slope


def finite(function: Any, unlike_torch: str = "") -> OpCase:
    """Values and both derivatives far from 0 are numbers."""
    return OpCase(
        slope(function),
        (X,),
        slope(function),
        ops=(function.__name__,),
        label=f"slope-{function.__name__}",
        torch=torch_slope(TORCH.get(function.__name__, function.__name__)),
        at=[At((FAR,), (np.zeros(6),), {}, unlike_torch)],
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
    case(
        gt.log_sigmoid,
        scipy.special.log_expit,
        at=[At((FAR,), (1 - STEP,))],
    ),
    case(
        gt.softplus,
        softplus,
        at=[At((FAR,), (STEP,)), At((0.0,), (0.5,))],
        raises=[Raises((np.array(["a"]),), DTypeError, "softplus: got <U1")],
    ),
    case(
        gt.softplus,
        softplus,
        params={"beta": 3.0},
        label="beta",
        at=[At((FAR,), (STEP,), {"beta": 3.0})],
        raises=[Raises((X,), ArgumentError, "softplus: got beta=0", {"beta": 0})],
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
    case(gt.silu, lambda x: x * scipy.special.expit(x), at=far()),
    case(gt.gelu, gelu, at=far()),
    case(
        gt.gelu,
        gelu,
        params={"approximate": "tanh"},
        label="tanh",
        at=far("nan, as the cube of x overflows", approximate="tanh"),
        raises=[Raises((X,), ArgumentError, "gelu: got approximate='no'", {"approximate": "no"})],
    ),
    case(gt.softsign, lambda x: x / (1 + np.abs(x)), at=[At((0.0,), (1.0,))]),
    *(finite(function) for function in (gt.sigmoid, gt.softplus, gt.log_sigmoid)),
    *(finite(function, "nan from inf·0") for function in (gt.silu, gt.gelu)),
]

ULPS = dict.fromkeys(("sigmoid", "silu", "gelu", "log_sigmoid", "softplus", "elu"), 4)
