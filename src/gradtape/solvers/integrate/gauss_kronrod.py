"""Adaptive integration by Gauss and Kronrod's rule, written so that it can be traced and batched.

The interval with the largest error is halved until the sum of the errors is small enough, as in
QUADPACK's QAG.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradtape.autodiff.transforms import vmap
from gradtape.graph.loops import while_loop
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.join import concatenate, stack
from gradtape.ops.matmul import matmul
from gradtape.ops.reduce import max as max_of, sum as sum_of
from gradtape.ops.select import clip, maximum, minimum, where
from gradtape.ops.shape import reshape
from gradtape.ops.which import argmax

_EPSILON = float(np.finfo(np.float64).eps)

# The points above 0 of Kronrod's rule of 21 points, and their weights; 0 comes last. Every other
# point is one of Gauss's rule of 10 points.
_POINTS = np.array(
    [
        0.995657163025808080735527280689003,
        0.973906528517171720077964012084452,
        0.930157491355708226001207180059508,
        0.865063366688984510732096688423493,
        0.780817726586416897063717578345042,
        0.679409568299024406234327365114874,
        0.562757134668604683339000099272694,
        0.433395394129247190799265943165784,
        0.294392862701460198131126602303866,
        0.148874338981631210884826001129720,
        0.0,
    ]
)
_WEIGHTS = np.array(
    [
        0.011694638867371874278064396062192,
        0.032558162307964727478818972459390,
        0.054755896574351996031381300244580,
        0.075039674810919952767043140916190,
        0.093125454583697605535065465083366,
        0.109387158802297641899210590325805,
        0.123491976262065851077958109585166,
        0.134709217311473325928054001771707,
        0.142775938577060080797094273138717,
        0.147739104901338491374841515972068,
        0.149445554002916905664936468389821,
    ]
)


def _gauss() -> Any:
    """The weights of Gauss's rule at the points of Kronrod's; 0 at the others."""
    weights = np.zeros(21)
    weights[1::2] = np.polynomial.legendre.leggauss(10)[1]
    return weights


_X = np.concatenate([-_POINTS, _POINTS[-2::-1]])
_KRONROD = np.concatenate([_WEIGHTS, _WEIGHTS[-2::-1]])
_GAUSS = _gauss()


class Accuracy(NamedTuple):
    """How well an integral is computed, with SciPy's names.

    Attributes:
        epsabs: The absolute error that is allowed,
        epsrel: or the error relative to the integral.
        limit: The most intervals.
        points: Where the function is difficult.
    """

    epsabs: float
    epsrel: float
    limit: int
    points: tuple[float, ...]


class _Parts(NamedTuple):
    """Intervals, and the integrals over them.

    Attributes:
        low: Where each begins,
        high: and ends.
        value: The integral over each, in rows.
        error: Its estimated error.
        noise: What rounding may contribute to it.
    """

    low: Any
    high: Any
    value: Any
    error: Any
    noise: Any


class _Progress(NamedTuple):
    """The intervals so far; the rest of each array is 0."""

    parts: _Parts
    count: Any


def gauss_kronrod(
    f: Callable[[Any], Any], low: Any, high: Any, accuracy: Accuracy
) -> tuple[Any, Any, Any]:
    """The integral of a function with values in vectors.

    Args:
        f: The function of one number.
        low: Where to begin.
        high: Where to end.
        accuracy: What error is allowed.

    Returns:
        The integral, its estimated error, and the error that is allowed.
    """
    inner = [clip(np.float64(x), minimum(low, high), maximum(low, high)) for x in accuracy.points]
    first = _integrals(f, stack([low, *inner]), stack([*inner, high]))
    known = len(inner) + 1
    limit = max(accuracy.limit, known)
    size = first.value.shape[1]
    rest = np.zeros(limit - known)
    empty = _Parts(rest, rest, np.zeros((limit - known, size)), rest, rest)
    padded = _Parts(*(concatenate(pair) for pair in zip(first, empty, strict=True)))
    number = np.arange(limit)

    def errors(parts: _Parts) -> tuple[Any, Any]:
        size = max_of(abs_of(sum_of(parts.value, axis=0)))
        allowed = maximum(maximum(accuracy.epsabs, accuracy.epsrel * size), sum_of(parts.noise))
        return sum_of(parts.error), allowed

    def going(progress: _Progress) -> Any:
        error, allowed = errors(progress.parts)
        return (error > allowed) & (progress.count < limit)

    def halve(progress: _Progress) -> _Progress:
        parts, count = progress
        worst = argmax(parts.error)
        low, high = parts.low[worst], parts.high[worst]
        middle = 0.5 * (low + high)
        halves = _integrals(f, stack([low, middle]), stack([middle, high]))
        in_place, at_end = number == worst, number == count

        def replaced(old: Any, new: Any) -> Any:
            shape = (-1, *(1 for _ in old.shape[1:]))
            first, second = reshape(in_place, shape), reshape(at_end, shape)
            return where(first, new[0], where(second, new[1], old))

        return _Progress(_Parts(*map(replaced, parts, halves)), count + 1)

    parts, _ = while_loop(going, halve, _Progress(padded, np.int64(known)))
    return sum_of(parts.value, axis=0), *errors(parts)


def _integrals(f: Callable[[Any], Any], low: Any, high: Any) -> _Parts:
    """The integrals over several intervals, with the error estimate of QUADPACK."""
    half = 0.5 * (high - low)
    count = low.shape[0]
    x = reshape(0.5 * (low + high), (-1, 1)) + reshape(half, (-1, 1)) * _X
    values = reshape(vmap(f)(reshape(x, (-1,))), (count, 21, -1))
    wide = abs_of(half)

    def weighted(weights: Any, values: Any) -> Any:
        return matmul(weights, values)

    scale = reshape(half, (-1, 1))
    value = scale * weighted(_KRONROD, values)
    difference = max_of(abs_of(value - scale * weighted(_GAUSS, values)), axis=1)
    # The mean of f, and how much f differs from it
    mean = reshape(0.5 * weighted(_KRONROD, values), (count, 1, -1))
    size = wide * max_of(weighted(_KRONROD, abs_of(values)), axis=1)
    spread = wide * max_of(weighted(_KRONROD, abs_of(values - mean)), axis=1)
    ratio = 200 * difference / where(spread == 0, 1.0, spread)
    error = where(spread == 0, difference, spread * minimum(1.0, ratio**1.5))
    return _Parts(low, high, value, error, 50 * _EPSILON * size)
