"""Losses that are divergences and negative logarithms of likelihoods."""

from __future__ import annotations

import math
from typing import Any

from gradtape.core import scalar
from gradtape.core.define import elementwise_op
from gradtape.ops.cast import stop_gradient
from gradtape.ops.checks import check_broadcasts
from gradtape.ops.exponential import exp, log
from gradtape.ops.nn.losses import squared_error
from gradtape.ops.nn.reduction import (
    LOSS_ERRORS,
    LOSSES,
    check_reduction,
    check_values,
    prepared,
    reduced,
)
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import clip, where
from gradtape.ops.shape import reshape
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike

# ---- divergence ---------------------------------------------------------------------------------


def _divergence_forward(xp: Any, x: Any, t: Any) -> Any:
    # t·log t is 0 at 0, where the logarithm is not taken.
    return t * (xp.log(xp.where(t == 0, 1, t)) - x)


# t·(log t − x): slopes −t and log t + 1 − x
divergence = elementwise_op(
    "divergence",
    _divergence_forward,
    lambda ct, _out, _x, t: -ct * t,
    lambda ct, _out, x, t: ct * (log(t) + 1 - x),
    lower=scalar,
)

# eˢ·(s − x): slopes −eˢ and eˢ·(s − x) + eˢ
log_divergence = elementwise_op(
    "log_divergence",
    lambda xp, x, s: xp.exp(s) * (s - x),
    lambda ct, _out, _x, s: -ct * exp(s),
    lambda ct, out, _x, s: ct * (out + exp(s)),
    lower=scalar,
)


@options(LOSSES, raises=LOSS_ERRORS)
def kl_div(
    x: ArrayLike,
    target: ArrayLike,
    /,
    reduction: str = "mean",
    log_target: bool = False,
) -> Array:
    """Divergence of distributions: target·(log target - x).

    Args:
        x: The logarithms of probabilities.
        target: The probabilities to compare with, 0 allowed; of the same shape, or one number.
        reduction: "mean" of all elements, "batchmean" for their sum over the size of the first
            axis, "sum", or "none".
        log_target: Whether `target` holds logarithms as well.

    >>> gt.nn.kl_div(np.log([0.5, 0.5]), np.array([1.0, 0.0]), reduction="sum")
    np.float64(0.6931471805599453)
    """
    check_reduction("kl_div", reduction, "batchmean")
    x, target = prepared("kl_div", "none", x, target)
    losses = (log_divergence if log_target else divergence)(x, target)
    if reduction == "batchmean":
        return sum_of(losses) / (x.shape[0] if x.shape else 1)
    return reduced(losses, reduction)


# ---- likelihoods --------------------------------------------------------------------------------


@options(LOSSES, raises=LOSS_ERRORS)
def poisson_nll_loss(
    x: ArrayLike,
    target: ArrayLike,
    /,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Array:
    """Negative logarithm of the likelihood of counts, up to terms of the counts alone.

    Args:
        x: The logarithm of the expected count, or with `log_input=False` the expected count.
        target: The count, for each element or one for all.
        log_input: Whether `x` holds logarithms of expected counts.
        full: Whether Stirling's approximation of log(target!) is added, for counts above 1.
        eps: Added to an expected count before its logarithm is taken.

    >>> gt.nn.poisson_nll_loss(np.array([0.0, 1.0]), np.array([1.0, 2.0]), reduction="none")
    array([1.        , 0.71828183])
    """
    x, target = prepared("poisson_nll_loss", reduction, x, target)
    losses = exp(x) - target * x if log_input else x - target * log(x + eps)
    if full:
        many = target > 1
        t = where(many, target, 1.0)
        stirling = t * log(t) - t + 0.5 * log(2 * math.pi * t)
        losses = losses + where(many, stirling, 0.0)
    return reduced(losses, reduction)


@options(LOSSES, raises=LOSS_ERRORS)
def gaussian_nll_loss(
    x: ArrayLike,
    target: ArrayLike,
    /,
    var: ArrayLike,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Array:
    """Negative logarithm of the likelihood of numbers with a normal distribution.

    Args:
        x: The mean.
        target: The number, for each element or one for all.
        var: The variance: for each element, or one for all along the last axis.
        full: Whether the constant log(2π)/2 is added.
        eps: The least variance; the gradient is as if there were no such bound.

    Raises:
        ShapeError: The shapes differ, or the variance does not broadcast to them.
        ArgumentError: There is no such reduction, or a variance is negative.

    >>> gt.nn.gaussian_nll_loss(np.zeros(2), np.array([0.0, 2.0]), np.ones(2), reduction="none")
    array([0., 2.])
    """
    name = "gaussian_nll_loss"
    x, target = prepared(name, reduction, x, target)
    (var,) = prepared(name, reduction, var)
    if len(x.shape) > 0 and var.shape != x.shape and var.shape == x.shape[:-1]:
        var = reshape(var, (*var.shape, 1))
    check_broadcasts(name, x.shape, var=var)
    check_values(name, "a variance", var, math.inf)
    fixed = stop_gradient(var)
    var = var + (clip(fixed, eps) - fixed)
    losses = 0.5 * (log(var) + squared_error(x, target) / var)
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)
