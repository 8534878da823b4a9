"""Samples of losses that go by elements: of numbers, of probabilities, of logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import gradtape as gt
from gradtape.errors import ArgumentError, ShapeError
from opcases.case import At, OpCase, Raises, draw

nn = gt.nn
inf = np.inf
X, Y = draw(2, 3), draw(2, 3, seed=1)
P, Q = draw(2, 3, low=0.1, high=0.9), draw(2, 3, low=0.1, high=0.9, seed=1)
LOG_P = np.log(P)


def case(function: Any, *args: Any, **kwargs: Any) -> OpCase:
    return OpCase(function, *args, torch=f"nn.functional.{function.__name__}", **kwargs)


def reduced(losses: Any, reduction: str) -> Any:
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / losses.size


def bad(function: Any) -> list[Raises]:
    name = function.__name__
    return [
        Raises(
            (draw(2), draw(3)), ShapeError, f"{name}: got shapes .2,. and .3,., expected the same"
        ),
        Raises((X, Y), ArgumentError, f"{name}: got reduction='max'", {"reduction": "max"}),
    ]


# ---- numbers ------------------------------------------------------------------------------------


def mse_loss(x: Any, y: Any, reduction: str = "mean", weight: Any = None) -> Any:
    return averaged((x - y) ** 2, reduction, weight)


def l1_loss(x: Any, y: Any, reduction: str = "mean", weight: Any = None) -> Any:
    return averaged(np.abs(x - y), reduction, weight)


def averaged(losses: Any, reduction: str, weight: Any) -> Any:
    if weight is None or reduction != "mean":
        return reduced(losses if weight is None else losses * weight, reduction)
    return (losses * weight).sum() / weight.sum()


def huber(d: Any, delta: float) -> Any:
    d = np.abs(d)
    return np.where(d <= delta, d * d / 2, delta * (d - delta / 2))


def huber_loss(x: Any, y: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = 1) -> Any:
    return reduced(huber(x - y, delta) * weight, reduction)


def smooth_l1_loss(x: Any, y: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    return reduced(huber(x - y, beta) / beta, reduction)


def weighted(name: str) -> Any:
    """The loss with its weight as a third array."""

    def loss(x: Any, y: Any, weight: Any, **params: Any) -> Any:
        return getattr(nn, name)(x, y, weight=weight, **params)

    loss.__name__ = name
    return loss


def torch_weighted(name: str) -> Any:
    return lambda torch, x, y, weight, **params: getattr(torch.nn.functional, name)(
        x, y, weight=weight, **params
    )


NUMBERS = [
    case(
        nn.mse_loss,
        (X, Y),
        mse_loss,
        ops=("squared_error",),
        at=[At(([2.0, 3.0], [2.0, 1.0]), ([0.0, 2.0], [0.0, -2.0]))],
        raises=bad(nn.mse_loss),
    ),
    OpCase(
        nn.mse_loss,
        (X, np.array(0.25)),
        mse_loss,
        {"reduction": "none"},
        ops=("squared_error",),
        dtypes=(np.float64, np.float32, np.float16),
        label="one-target",
        torch=lambda torch, x, y, **params: torch.nn.functional.mse_loss(
            x, y.expand_as(x), **params
        ),
    ),
    OpCase(
        weighted("mse_loss"),
        (X, Y, P),
        lambda x, y, weight: mse_loss(x, y, weight=weight),
        ops=("squared_error",),
        label="weight",
        torch=torch_weighted("mse_loss"),
    ),
    case(
        nn.mse_loss,
        (draw(0, 3), draw(0, 3)),
        mse_loss,
        {"reduction": "sum"},
        ops=("squared_error",),
        label="empty",
    ),
    case(
        nn.l1_loss,
        (X, Y),
        l1_loss,
        {"reduction": "sum"},
        ops=("absolute_error",),
        at=[At(([2.0, 3.0], [2.0, 1.0]), ([0.0, 0.5], [0.0, -0.5]))],
        raises=bad(nn.l1_loss),
    ),
    OpCase(
        weighted("l1_loss"),
        (X, Y, P),
        lambda x, y, weight: l1_loss(x, y, weight=weight),
        ops=("absolute_error",),
        label="weight",
        torch=torch_weighted("l1_loss"),
    ),
    case(
        nn.smooth_l1_loss,
        (X, Y),
        smooth_l1_loss,
        {"beta": 0.5},
        ops=("huber_error",),
        at=[At(([1.0, 0.0, 3.0], [0.0, 0.0, 0.0]), ([1 / 3, 0, 1 / 3], [-1 / 3, 0, -1 / 3]))],
        raises=[
            *bad(nn.smooth_l1_loss),
            Raises((X, Y), ArgumentError, "smooth_l1_loss: got beta=-1", {"beta": -1.0}),
        ],
    ),
    case(
        nn.smooth_l1_loss,
        (X, Y),
        lambda x, y, beta: l1_loss(x, y),
        {"beta": 0},
        ops=("absolute_error",),
        label="zero",
    ),
    case(
        nn.huber_loss,
        (X, Y),
        huber_loss,
        {"delta": 1.5, "reduction": "none"},
        ops=("huber_error",),
        at=[At(([1.0, 0.0, 3.0], [0.0, 0.0, 0.0]), ([1 / 3, 0, 1 / 3], [-1 / 3, 0, -1 / 3]))],
        raises=[
            *bad(nn.huber_loss),
            Raises((X, Y), ArgumentError, "huber_loss: got delta=0", {"delta": 0.0}),
        ],
    ),
    OpCase(
        weighted("huber_loss"),
        (X, Y, P),
        lambda x, y, weight: huber_loss(x, y, weight=weight),
        ops=("huber_error",),
        label="weight",
        torch=torch_weighted("huber_loss"),
    ),
]

# ---- two classes --------------------------------------------------------------------------------


def binary(p: Any, t: Any, reduction: str = "mean", weight: Any = 1) -> Any:
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(p), -100), np.maximum(np.log1p(-p), -100)
    return reduced(weight * ((t - 1) * logs[1] - t * logs[0]), reduction)


def logits(x: Any, t: Any, weight: Any = 1, reduction: str = "mean", pos_weight: Any = 1) -> Any:
    losses = (1 - t) * x + (1 + (pos_weight - 1) * t) * np.logaddexp(0, -x)
    return reduced(weight * losses, reduction)


def with_weights(x: Any, t: Any, weight: Any, pos_weight: Any) -> Any:
    return nn.binary_cross_entropy_with_logits(x, t, weight, pos_weight=pos_weight)


SATURATED = np.array([-1e3, 1e3, 0.0])

TWO = [
    case(
        nn.binary_cross_entropy,
        (P, Q),
        binary,
        ops=("binary_entropy",),
        raises=bad(nn.binary_cross_entropy),
    ),
    OpCase(
        weighted("binary_cross_entropy"),
        (P, Q, draw(3, low=0.5)),
        lambda p, t, weight: binary(p, t, weight=weight),
        ops=("binary_entropy",),
        label="weight",
        torch=lambda torch, p, t, weight: (
            weight * torch.nn.functional.binary_cross_entropy(p, t, reduction="none")
        ).mean(),
    ),
    OpCase(
        nn.binary_cross_entropy,
        (np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, 1, 1, 0])),
        binary,
        {"reduction": "none"},
        ops=("binary_entropy",),
        differences=False,
        dtypes=(np.float64,),
        batched=False,
        label="ends",  # PyTorch takes the 1e-12 there in single precision
        at=[
            At(
                (np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, 1, 1, 0])),
                ([0.0, 0.0, -1e12, 1e12],),
                {"reduction": "sum"},
            )
        ],
    ),
    case(
        nn.binary_cross_entropy_with_logits,
        (X, Q),
        logits,
        ops=("logits_entropy",),
        raises=bad(nn.binary_cross_entropy_with_logits),
        at=[
            At((SATURATED, np.ones(3)), ([-1 / 3, 0, -1 / 6], -SATURATED / 3)),
            At((SATURATED, np.zeros(3)), ([0, 1 / 3, 1 / 6], -SATURATED / 3)),
        ],
    ),
    OpCase(
        with_weights,
        (X, Q, P, draw(3, low=0.5)),
        lambda x, t, weight, pos_weight: logits(x, t, weight, pos_weight=pos_weight),
        ops=("softplus",),
        at=[
            At(
                (np.array([-1e3, 1e3]), np.ones(2), np.ones(2), np.array([2.0, 2.0])),
                ([-1.0, 0.0], [1000.0, -500.0], [1000.0, 0.0], [500.0, 0.0]),
            )
        ],
    ),
    OpCase(
        nn.binary_cross_entropy_with_logits,
        (X, Q),
        logits,
        {"pos_weight": np.array([1.0, 2.0, 3.0], np.float16)},
        ops=("softplus",),
        label="positive",
        torch=lambda torch, x, t, pos_weight: torch.nn.functional.binary_cross_entropy_with_logits(
            x, t, pos_weight=torch.tensor(pos_weight, dtype=torch.float64)
        ),
    ),
    OpCase(
        nn.sigmoid_cross_entropy,
        (X, Q),
        lambda x, t: logits(x, t, reduction="none"),
        ops=("logits_entropy",),
        torch=lambda torch, x, t: torch.nn.functional.binary_cross_entropy_with_logits(
            x, t, reduction="none"
        ),
    ),
]

# ---- likelihoods --------------------------------------------------------------------------------


def kl_div(x: Any, t: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    t = np.exp(t) if log_target else t
    losses = scipy.special.xlogy(t, t) - t * x
    if reduction == "batchmean":
        return losses.sum() / x.dtype.type(x.shape[0])
    return reduced(losses, reduction)


def poisson(
    x: Any, t: Any, log_input: bool = True, full: bool = False, reduction: str = "mean"
) -> Any:
    losses = np.exp(x) - t * x if log_input else x - t * np.log(x + x.dtype.type(1e-8))
    if full:
        many = t * np.log(t) - t + np.log(2 * np.pi * t) / 2
        losses = losses + np.where(t > 1, many, 0)
    return reduced(losses, reduction).astype(x.dtype)


def gaussian(x: Any, t: Any, var: Any, full: bool = False, reduction: str = "mean") -> Any:
    var = var if var.ndim == x.ndim else var[:, None]
    losses = (np.log(var) + (x - t) ** 2 / var) / 2
    return reduced(losses + (0.5 * np.log(2 * np.pi) if full else 0), reduction).astype(x.dtype)


LIKELIHOODS = [
    case(
        nn.kl_div,
        (LOG_P, Q),
        kl_div,
        {"reduction": "batchmean"},
        ops=("divergence",),
        raises=bad(nn.kl_div),
    ),
    OpCase(
        nn.kl_div,
        (LOG_P, np.array([[1, 0, 0], [0, 1, 0]])),
        lambda x, t, reduction: kl_div(x, t.astype(x.dtype), reduction),
        {"reduction": "none"},
        ops=("divergence",),
        label="certain",
        torch=lambda torch, x, t, **params: torch.nn.functional.kl_div(x, t.double(), **params),
    ),
    case(
        nn.kl_div,
        (LOG_P, np.log(Q)),
        kl_div,
        {"log_target": True, "reduction": "sum"},
        ops=("log_divergence",),
        label="log",
    ),
    case(
        nn.poisson_nll_loss,
        (X, draw(2, 3, low=0.5, high=3.0)),
        poisson,
        {"full": True},
        ops=("exp", "log"),
        rtol=64,
        raises=bad(nn.poisson_nll_loss),
    ),
    case(
        nn.poisson_nll_loss,
        (P, Q),
        poisson,
        {"log_input": False, "reduction": "sum"},
        ops=("log",),
        rtol=64,
        label="count",
    ),
    case(
        nn.gaussian_nll_loss,
        (X, Y, P),
        gaussian,
        {"full": True},
        ops=("squared_error",),
        rtol=64,
        at=[At(([1.0], [1.0], [0.0]), ([0.0], [0.0], [5e5]))],
        raises=[
            Raises((X, Y, draw(4)), ShapeError, "gaussian_nll_loss: got var of shape"),
            Raises((X, Y, P), ArgumentError, "got reduction='max'", {"reduction": "max"}),
        ],
    ),
    case(
        nn.gaussian_nll_loss,
        (X, Y, draw(2, low=0.5)),
        gaussian,
        {"reduction": "sum"},
        ops=("squared_error",),
        rtol=64,
        label="one-variance",
    ),
]

CASES = [*NUMBERS, *TWO, *LIKELIHOODS]

ULPS = {"binary_entropy": 16, "logits_entropy": 16, "divergence": 16, "log_divergence": 8}
