"""Samples of the activation functions of `gradtape.nn`, of dropout and of what draws at random."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.special

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, ShapeError
from gradtape.ops.nn.dropout import random_kept
from opcases.case import At, OpCase, Raises, draw

nn = gt.nn
inf, nan = np.inf, np.nan
X = draw(2, 3)
FAR = np.array([-inf, -1e300, -1000.0, 1000.0, 1e300, inf])
STEP = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])


def case(function: Any, ref: Any, *args: Any, **kwargs: Any) -> OpCase:
    kwargs.setdefault("torch", f"nn.functional.{function.__name__}")
    return OpCase(function, args or (X,), ref, elementwise=True, **kwargs)


# ---- elementwise --------------------------------------------------------------------------------


def hardsigmoid(x: Any) -> Any:
    return np.clip(x + 3, 0, 6) / 6


def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return np.where(beta * x > threshold, x, np.logaddexp(beta * x, 0) / beta)


def selu(x: Any) -> Any:
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return scale * np.where(x > 0, x, alpha * np.expm1(x))


def celu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(x / alpha))


def mish(x: Any) -> Any:
    return x * np.tanh(np.logaddexp(x, 0))


def prelu(x: Any, weight: Any) -> Any:
    return np.where(x > 0, x, weight * x)


def channelwise(x: Any, weight: Any) -> Any:
    return prelu(x, weight.reshape(-1, 1))


PIECES = [
    case(
        nn.hardsigmoid,
        hardsigmoid,
        2 * X,
        # PyTorch's own takes the sixth in its gradient in single precision.
        torch=lambda torch, x: torch.nn.functional.relu6(x + 3) / 6,
        at=[At((np.array([-3.0, 0.0, 3.0, inf, -inf]),), ([0.0, 1 / 6, 0.0, 0.0, 0.0],))],
    ),
    case(
        nn.hardswish,
        lambda x: x * hardsigmoid(x),
        2 * X,
        at=[At((np.array([-3.0, 0.0, 3.0, inf, -1e3]),), ([0.0, 0.5, 1.0, 1.0, 0.0],))],
    ),
    case(
        nn.hardtanh,
        lambda x: np.clip(x, -1.0, 1.0),
        at=[At((np.array([-1.0, 0.0, 1.0, inf, nan]),), ([0.0, 1.0, 0.0, 0.0, 1.0],))],
        raises=[Raises((X, 1.0, 0.0), ArgumentError, "hardtanh: got min_val=1.0")],
    ),
    case(
        nn.hardtanh,
        lambda x, min_val, max_val: np.clip(x, min_val, max_val),
        params={"min_val": 0.25, "max_val": 1.5},
        label="ends",
    ),
    case(
        nn.threshold,
        lambda x, threshold, value: np.where(x > threshold, x, value),
        params={"threshold": 0.5, "value": -1.5},
        at=[
            At(
                (np.array([0.5, 0.6, nan, inf]),),
                ([0.0, 1.0, 1.0, 1.0],),
                {"threshold": 0.5, "value": 7.0},
            )
        ],
    ),
    case(
        nn.softshrink,
        lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
        at=[At((np.array([-0.5, 0.5, nan, inf, 0.1]),), ([0.0, 0.0, 1.0, 1.0, 0.0],))],
        raises=[Raises((X, -1.0), ArgumentError, "softshrink: got lambd=-1")],
    ),
    case(
        nn.hardshrink,
        lambda x, lambd: np.where(np.abs(x) > lambd, x, 0),
        params={"lambd": 0.75},
        at=[At((np.array([-0.5, 0.5, nan, inf, 0.1]),), ([0.0, 0.0, 1.0, 1.0, 0.0],))],
    ),
    case(nn.tanhshrink, lambda x: x - np.tanh(x), ops=("subtract", "tanh")),
]

BENDS = [
    case(
        nn.selu,
        selu,
        at=[At((0.0,), (1.7580993408473766,)), At((FAR,), (1.0507009873554805 * STEP,))],
    ),
    case(nn.celu, celu, at=[At((0.0,), (1.0,)), At((FAR,), (STEP,))]),
    case(
        nn.celu,
        celu,
        params={"alpha": 2.0},
        label="alpha",
        raises=[Raises((X, 0.0), ArgumentError, "celu: got alpha=0")],
    ),
    case(nn.mish, mish, at=[At((np.array([0.0, -1e3, 1e3]),), ([0.6, 0.0, 1.0],))]),
    case(
        nn.softplus,
        softplus,
        label="threshold",
        at=[At((np.array([20.001, 1e3, -1e3]),), ([1.0, 1.0, 0.0],))],
    ),
    case(nn.softplus, softplus, params={"beta": 3.0, "threshold": 2.0}, label="low-threshold"),
    case(
        nn.rsqrt,
        lambda x: 1 / np.sqrt(x),
        np.abs(X),
        torch="rsqrt",
        at=[At((np.array([0.0, 4.0, inf]),), ([-inf, -0.0625, 0.0],))],
    ),
    OpCase(
        nn.prelu,
        (X, np.array(0.25)),
        prelu,
        dtypes=(np.float64, np.float32, np.float16),
        at=[At((np.array([0.0, -1e3, inf]), np.array([0.5])), ([0.5, 0.5, 1.0], [-1e3]))],
        raises=[Raises((draw(2, 3, 2), draw(2)), ShapeError, "prelu: got .2, 3, 2. and a weight")],
        torch=lambda torch, x, weight: torch.nn.functional.prelu(x, weight.reshape(-1)),
    ),
    OpCase(
        nn.prelu,
        (draw(2, 3, 2), draw(3)),
        channelwise,
        label="channels",
        torch="nn.functional.prelu",
    ),
    OpCase(nn.prelu, (draw(0, 3), draw(3)), prelu, label="empty", torch="nn.functional.prelu"),
]

# ---- along an axis ------------------------------------------------------------------------------


def glu(x: Any, dim: int = -1) -> Any:
    first, second = np.split(x, 2, dim)
    return first * scipy.special.expit(second)


ALONG = [
    OpCase(
        nn.glu,
        (draw(2, 4),),
        glu,
        at=[At((np.array([2.0, 3.0, 1e3, -1e3]),), ([1.0, 0.0, 0.0, 0.0],))],
        raises=[
            Raises((draw(3),), ShapeError, "glu: got shape .3,., expected an even"),
            Raises((draw(4), 1), AxisError, "glu: got axis 1"),
        ],
        torch="nn.functional.glu",
    ),
    OpCase(nn.glu, (draw(4, 3),), glu, {"dim": 0}, label="dim", torch="nn.functional.glu"),
    OpCase(nn.glu, (draw(0, 4),), glu, label="empty", torch="nn.functional.glu"),
    OpCase(
        nn.softmax,
        (draw(2, 3),),
        lambda x, dim: scipy.special.softmax(x, dim),
        {"dim": 0},
        label="dim",
        torch="nn.functional.softmax",
    ),
    OpCase(
        nn.log_softmax,
        (draw(2, 3),),
        lambda x, axis: scipy.special.log_softmax(x, axis),
        {"axis": 0},
        label="dim",
        torch=lambda torch, x, axis: torch.nn.functional.log_softmax(x, axis),
    ),
    OpCase(
        nn.softmin,
        (draw(2, 3),),
        lambda x, dim: scipy.special.softmax(-x, dim),
        {"dim": 1},
        ops=("softmax",),
        at=[At((np.array([-1e3, 1e3]),), ([0.0, 0.0],), {"dim": 0})],
        torch="nn.functional.softmin",
    ),
]

# ---- drawn at random ----------------------------------------------------------------------------

SEED = 5


def seeded(function: Any) -> Any:
    """The function with a draw that is the same at each call."""

    @functools.wraps(function)
    def run(*args: Any, **params: Any) -> Any:
        return function(*args, **params, generator=gt.random.Generator(SEED))

    return run


def halves(count: int, key: Any, offset: int) -> Any:
    stream = np.random.Philox(counter=offset, key=key[0] + 2**64 * key[1])
    whole = [int(word) for word in stream.random_raw(-(-count // 2))]
    both = [half for word in whole for half in (word % 2**32, word // 2**32)]
    return np.array(both[:count], np.uint64)


def kept(shape: Any, p: float) -> Any:
    key, offset = gt.random.Generator(SEED).state
    count = int(np.prod(shape))
    return (halves(count, key, offset) >= p * 2**32).reshape(shape)


def times_kept(x: Any, **params: Any) -> Any:
    return x * random_kept(**params)


def ref_kept(x: Any, p: float, shape: Any, key: Any, offset: int) -> Any:
    return x * (halves(int(np.prod(shape)), key, offset) >= p * 2**32).reshape(shape)


def dropout(x: Any, p: float, training: bool = True, shape: Any = None) -> Any:
    if not training:
        return x
    own = x.shape if shape is None else shape
    return np.where(kept(own, p), x / x.dtype.type(1 - p), 0).astype(x.dtype)


def alpha_dropout(x: Any, p: float, training: bool, shape: Any = None) -> Any:
    low = -1.7580993408473766
    scale = ((1 - p) * (1 + p * low**2)) ** -0.5
    chosen = kept(x.shape if shape is None else shape, p)
    return (scale * np.where(chosen, x, low) - scale * low * p).astype(x.dtype)


def rrelu(x: Any, lower: float, upper: float, training: bool) -> Any:
    slopes = gt.rand(x.shape, dtype=x.dtype, generator=gt.random.Generator(SEED)).numpy()
    return np.where(x > 0, x, (lower + (upper - lower) * slopes).astype(x.dtype) * x)


def gumbel_softmax(x: Any, tau: float, hard: bool = False) -> Any:
    fractions = gt.rand(x.shape, generator=gt.random.Generator(SEED)).numpy()
    noise = -np.log(-np.log1p(-fractions)).astype(x.dtype)
    return scipy.special.softmax((x + noise) / tau, -1)


RANDOM = [
    OpCase(
        times_kept,
        (draw(3, 3),),
        ref_kept,
        {"p": 0.4, "shape": (3, 3), "key": (3, 2**64 - 1), "offset": 2**64 + 5},
        ops=("random_kept",),
    ),
    OpCase(
        seeded(nn.dropout),
        (draw(3, 4),),
        dropout,
        {"p": 0.4},
        raises=[Raises((X, 1.5), ArgumentError, "dropout: got p=1.5, expected a number from 0")],
    ),
    OpCase(seeded(nn.dropout), (draw(3),), lambda x, p: 0 * np.abs(x), {"p": 1.0}, label="all"),
    OpCase(seeded(nn.dropout), (draw(0, 3),), lambda x, p: x, {"p": 0.4}, label="empty"),
    OpCase(
        seeded(nn.dropout1d),
        (draw(3, 4),),
        functools.partial(dropout, shape=(3, 1)),
        {"p": 0.4},
        ops=("dropout",),
        raises=[Raises((draw(3),), ShapeError, "dropout1d: got shape .3,., expected at least two")],
    ),
    OpCase(
        seeded(nn.dropout2d),
        (draw(2, 3, 1, 2),),
        functools.partial(dropout, shape=(2, 3, 1, 1)),
        {"p": 0.4},
        ops=("dropout",),
    ),
    OpCase(
        seeded(nn.dropout3d),
        (draw(2, 2, 1, 2, 1),),
        functools.partial(dropout, shape=(2, 2, 1, 1, 1)),
        {"p": 0.4},
        ops=("dropout",),
    ),
    OpCase(
        seeded(nn.alpha_dropout),
        (draw(3, 4),),
        alpha_dropout,
        {"p": 0.4, "training": True},
        ops=("dropout",),
    ),
    OpCase(
        seeded(nn.feature_alpha_dropout),
        (draw(2, 3, 2),),
        functools.partial(alpha_dropout, shape=(2, 3, 1)),
        {"p": 0.4, "training": True},
        ops=("dropout",),
        raises=[Raises((draw(3),), ShapeError, "feature_alpha_dropout: got shape .3,.")],
    ),
    OpCase(
        nn.rrelu,
        (X,),
        lambda x: np.where(x > 0, x, x * ((1 / 8 + 1 / 3) / 2)),
        ops=("prelu",),
        raises=[Raises((X, 0.5, 0.25), ArgumentError, "rrelu: got lower=0.5")],
        torch="nn.functional.rrelu",
    ),
    OpCase(
        seeded(nn.rrelu),
        (X,),
        rrelu,
        {"lower": 0.1, "upper": 0.4, "training": True},
        ops=("prelu",),
        label="training",
    ),
    OpCase(
        seeded(nn.gumbel_softmax),
        (X,),
        gumbel_softmax,
        {"tau": 0.8},
        ops=("softmax",),
        raises=[Raises((X, 0.0), ArgumentError, "gumbel_softmax: got tau=0")],
    ),
]

CASES = [*PIECES, *BENDS, *ALONG, *RANDOM]

ULPS = dict.fromkeys(("selu", "celu", "mish"), 8) | dict.fromkeys(("rsqrt",), 2)
