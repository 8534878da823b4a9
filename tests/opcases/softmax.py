"""Samples of logsumexp, softmax, log_softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import gradtape as gt
from gradtape.errors import AxisError, DTypeError
from opcases.case import At, OpCase, Raises, draw, with_torch

DTYPES = (np.float64, np.float32, np.float16, np.int8)
INF = np.inf
INFINITE = "nan from inf − inf; the shares of the largest are their limits"
BAD = [
    Raises((draw(3), 1), AxisError, ": got axis 1"),
    Raises((draw(3) * 1j, 0), DTypeError, r": got complex128\[3\], expected real"),
]


def untracked(x: Any, axis: int) -> Any:
    """Values only: at infinite arguments there is nothing to take differences of."""
    return gt.logsumexp(gt.stop_gradient(x), axis)


def logsumexp_of_infinities(x: Any, axis: int) -> Any:
    """SciPy's, which warned of the overflow before 1.16."""
    with np.errstate(over="ignore"):
        return scipy.special.logsumexp(x, axis)


LOGSUMEXP = [
    OpCase(
        gt.logsumexp,
        (draw(2, 3),),
        scipy.special.logsumexp,
        dtypes=(np.float64, np.float32, np.int8),
        raises=BAD,
        at=[
            At((np.array([1000.0, 1000.0]),), (np.array([0.5, 0.5]),)),
            At((np.array([-INF, 1.0]),), (np.array([0.0, 1.0]),)),
            At((np.array([INF, 1.0, -INF]),), (np.array([1.0, 0.0, 0.0]),), {}, INFINITE),
            At((np.array([INF, INF]),), (np.array([0.5, 0.5]),), {}, INFINITE),
            At((np.array([-INF, -INF]),), (np.array([0.0, 0.0]),), {}, INFINITE),
            At(
                (np.array([[INF, 2.0], [2.0, 2.0]]),),
                (np.array([[1.0, 0.0], [0.5, 0.5]]),),
                {"axis": 1},
                INFINITE,
            ),
        ],
    ),
    OpCase(gt.logsumexp, (draw(2, 3), 0), scipy.special.logsumexp, label="axis"),
    OpCase(
        gt.logsumexp,
        (draw(2, 3, 2), (0, -1)),
        scipy.special.logsumexp,
        {"keepdims": True},
        label="axes",
    ),
    OpCase(gt.logsumexp, (draw(),), scipy.special.logsumexp, label="scalar"),
    OpCase(gt.logsumexp, (draw(3, low=-900, high=900),), scipy.special.logsumexp, label="large"),
    OpCase(gt.logsumexp, (draw(2, 0), 1), lambda x, axis: np.full(2, -INF, x.dtype), label="empty"),
    OpCase(
        untracked,
        (np.array([[INF, 1.0, 900.0], [-INF, -INF, -INF], [1.0, -INF, 1.0]]), 1),
        logsumexp_of_infinities,
        ops=("logsumexp",),
        differentiable=False,
        batched=False,
    ),
]

SOFTMAX = [
    OpCase(
        gt.softmax,
        (draw(2, 3),),
        lambda x: scipy.special.softmax(x, -1),
        dtypes=(np.float64, np.float32, np.float16),
        raises=BAD,
        at=[
            At((np.array([-INF, 1.0]),), (np.array([0.0, 0.0]),)),
            At((np.array([1000.0, -1000.0, 1e300]),), (np.zeros(3),)),
            At((np.array([INF, 1.0]),), (np.array([np.nan, np.nan]),)),
        ],
    ),
    OpCase(gt.softmax, (draw(2, 3), 0), scipy.special.softmax, label="axis"),
    OpCase(gt.softmax, (draw(2, 3), None), scipy.special.softmax, label="all"),
    OpCase(gt.softmax, (draw(3) * 8,), scipy.special.softmax, label="large"),
    OpCase(gt.softmax, (draw(2, 0),), np.copy, label="empty"),
]

LOG_SOFTMAX = [
    OpCase(
        gt.log_softmax,
        (draw(2, 3),),
        lambda x: scipy.special.log_softmax(x, -1),
        dtypes=(np.float64, np.float32, np.float16),
        raises=BAD,
        at=[
            At((np.array([-INF, 1.0]),), (np.array([1.0, -1.0]),)),
            At((np.array([1000.0, -1000.0]),), (np.array([-1.0, 1.0]),)),
            At((np.array([1e300, 1e300]),), (np.zeros(2),)),
            At((np.array([INF, 1.0]),), (np.array([np.nan, np.nan]),)),
        ],
    ),
    OpCase(gt.log_softmax, (draw(2, 3), 0), scipy.special.log_softmax, label="axis"),
    OpCase(gt.log_softmax, (draw(2, 3), None), scipy.special.log_softmax, label="all"),
    OpCase(
        gt.log_softmax, (draw(3, low=-900, high=900),), scipy.special.log_softmax, label="large"
    ),
]


def torch_logsumexp(torch: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return torch.logsumexp(x, tuple(range(x.ndim)) if axis is None else axis, keepdims)


def along(name: str) -> Any:
    """PyTorch's function along one axis; all axes are those of a vector."""

    def function(torch: Any, x: Any, axis: int | None = -1) -> Any:
        if axis is None:
            return function(torch, x.reshape(-1)).reshape(x.shape)
        return getattr(torch, name)(x, axis)

    return function


TORCH = {
    "logsumexp": torch_logsumexp,
    "untracked": lambda torch, x, axis: torch.logsumexp(x.detach(), axis),
    "softmax": along("softmax"),
    "log_softmax": along("log_softmax"),
}

CASES = with_torch(TORCH, [*LOGSUMEXP, *SOFTMAX, *LOG_SOFTMAX])
