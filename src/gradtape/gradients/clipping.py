"""Clipping gradients: by the norm of all of them, of each, by value, and by norms of parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, NonFiniteError
from gradtape.gradients.leaves import (
    Gradients,
    norm_of,
    number_of,
    rescaled,
    scaled_norm,
    scaled_norms,
    scaling_to,
    wide,
)
from gradtape.ops.arguments import as_number
from gradtape.ops.checks import check_choice
from gradtape.ops.comparison import isfinite, isnan
from gradtape.ops.reduce import max as max_of
from gradtape.ops.select import clip, maximum, where
from gradtape.ops.which import count_nonzero
from gradtape.optim.numbers import Number, checked, not_negative

_NONFINITE = ("raise", "zero", "pass")


def global_norm(grads: Any) -> Any:
    """The norm of all gradients together, the square root of the sum of all squares.

    Squares of large numbers do not overflow, and those of small ones do not vanish, in float16
    either. It can be differentiated.

    Args:
        grads: Nested containers of gradients.

    Returns:
        A number, in float32 or the dtype of the gradients if that is larger.

    Raises:
        DTypeError: A leaf is neither an array nor a number, or not of floats.

    >>> gt.gradients.global_norm({"w": np.array([3.0, 0.0]), "b": np.array([4.0])})
    np.float64(5.0)
    >>> float(gt.gradients.global_norm([np.full(10_000, 60_000, np.float16)]))
    6000000.0
    """
    largest, rest = scaled_norm(Gradients("global_norm", grads).values)
    return norm_of(largest, rest)


def clip_by_global_norm(
    grads: Any, max_norm: Number, *, return_norm: bool = False, nonfinite: str = "raise"
) -> Any:
    """Scale all gradients by one factor, so that the norm of all of them is at most `max_norm`.

    Args:
        grads: Nested containers of gradients.
        max_norm: The largest norm; may be a tensor without axes.
        return_norm: Whether to return a pair: the gradients, and the norm that they had.
        nonfinite: What to do if a gradient is NaN or infinite: "raise" an error; "zero", let all
            gradients be zero; "pass", let all of them be as they are. In compiled functions and
            under `gt.vmap`, "raise" makes all of them NaN.

    Returns:
        New gradients in the same containers and dtypes. If the norm is not too large, they have the
        same values.

    Raises:
        NonFiniteError: A gradient is NaN or infinite; the error says which.
        ArgumentError: The norm is not positive.
        DTypeError: A leaf is neither an array nor a number, or not of floats.

    >>> grads = {"w": np.array([3.0, 0.0]), "b": np.array([4.0])}
    >>> gt.gradient_clipping.clip_by_global_norm(grads, 1.0)
    {'w': array([0.6, 0. ]), 'b': array([0.8])}
    >>> gt.gradient_clipping.clip_by_global_norm(grads, 10.0, return_norm=True)[1]
    np.float64(5.0)
    """
    name = "clip_by_global_norm"
    limit = _limit(max_norm, name, nonfinite)
    gradients = Gradients(name, grads)
    places = range(len(gradients.values))
    clipped, found = _clipped(gradients, places, limit, nonfinite, name)
    result = gradients.rebuilt(clipped)
    return (result, found) if return_norm else result


def clip_by_norm(grads: Any, max_norm: Number, *, nonfinite: str = "raise") -> Any:
    """Scale each gradient by itself, so that its norm is at most `max_norm`.

    Args:
        grads: Nested containers of gradients.
        max_norm: The largest norm of each.
        nonfinite: As for `clip_by_global_norm`, but for each gradient by itself.

    Returns:
        New gradients in the same containers and dtypes.

    Raises:
        NonFiniteError: A gradient is NaN or infinite; the error says which.
        ArgumentError: The norm is not positive.
        DTypeError: A leaf is neither an array nor a number, or not of floats.

    >>> gt.gradients.clip_by_norm([np.array([3.0, 4.0]), np.array([0.5])], 1.0)
    [array([0.6, 0.8]), array([0.5])]
    """
    limit = _limit(max_norm, "clip_by_norm", nonfinite)
    gradients = Gradients("clip_by_norm", grads)
    clipped = [
        _clipped(gradients, [n], limit, nonfinite, "clip_by_norm")[0][0]
        for n in range(len(gradients.values))
    ]
    return gradients.rebuilt(clipped)


def clip_by_value(grads: Any, clip_value: float | tuple[float, float]) -> Any:
    """Limit each element of gradients to an interval.

    Args:
        grads: Nested containers of gradients. NaN stays NaN.
        clip_value: The largest magnitude, or the interval `(low, high)`.

    Returns:
        New gradients in the same containers and dtypes.

    Raises:
        ArgumentError: The magnitude is negative, or the interval is empty.
        DTypeError: A leaf is neither an array nor a number, or not of real floats.

    >>> gt.gradients.clip_by_value(np.array([-3.0, 0.5, 2.0]), 1.0)
    array([-1. ,  0.5,  1. ])
    >>> gt.gradients.clip_by_value(np.array([-3.0, 0.5, 2.0]), (0.0, 1.0))
    array([0. , 0.5, 1. ])
    """
    gradients = Gradients("clip_by_value", grads)
    low, high = _interval(clip_value)
    for n, x in enumerate(gradients.values):
        if x.dtype.kind == "c":
            raise DTypeError(
                f"clip_by_value: {gradients.place(n)} is {x.dtype}, expected real numbers, as "
                "complex ones have no order; use clip_by_norm"
            )
    return gradients.rebuilt([clip(x, low, high) for x in gradients.values])


def adaptive_clip(
    grads: Any,
    params: Any,
    clipping: float = 0.01,
    eps: float = 1e-3,
    *,
    unit_axis: int = 0,
    nonfinite: str = "raise",
) -> Any:
    """Limit the gradient of each unit to a part of the norm of its weights: AGC.

    The gradient g of a unit with weights w becomes g·min(1, λ·max(|w|, ε)/|g|). Units are the
    entries along one axis of arrays of two or more axes, such as the outputs of a layer; an array
    of fewer axes is one unit ([Brock et al. 2021](https://arxiv.org/abs/2102.06171)).

    Args:
        grads: Nested containers of gradients.
        params: The parameters, in the same containers.
        clipping: The factor λ.
        eps: The least norm ε that weights count with, so that those of zero can grow.
        unit_axis: The axis of units: 0 for weights of `gt.nn`, −1 for matrices in `x @ w`.
        nonfinite: As for `clip_by_global_norm`, but "zero" and NaN concern single units.

    Returns:
        New gradients in the same containers and dtypes.

    Raises:
        NonFiniteError: A gradient is NaN or infinite; the error says which.
        ArgumentError: A number is not positive, the containers differ, or there is None for the
            parameter of a gradient.
        ShapeError: A gradient has another shape than its parameter.
        DTypeError: A leaf is neither an array nor a number, or not of floats.

    >>> w = np.array([[3.0, 4.0], [0.0, 0.0]])
    >>> gt.gradients.adaptive_clip(np.array([[1.0, 0.0], [1.0, 0.0]]), w)
    array([[5.e-02, 0.e+00],
           [1.e-05, 0.e+00]])
    """
    name = "adaptive_clip"
    check_choice(name, _NONFINITE, nonfinite=nonfinite)
    part = checked(clipping, name, "clipping", "a positive number", lambda x: x > 0)
    least = checked(eps, name, "eps", "a positive number", lambda x: x > 0)
    gradients = Gradients(name, grads)
    clipped = []
    for n, w in enumerate(gradients.beside(params)):
        full = wide(gradients.values[n])
        limit = part * maximum(norm_of(*_unit_norms(wide(w), unit_axis)), least)
        largest, rest = _unit_norms(full, unit_axis)
        known = _known_finite(gradients, [n], max_of(largest, initial=0), nonfinite, name)
        made = rescaled(full, scaling_to(limit, largest, rest))
        clipped.append(made if known else _settled(made, isfinite(largest), nonfinite))
    return gradients.rebuilt(clipped)


# ---- helpers ------------------------------------------------------------------------------------


def _limit(max_norm: Number, name: str, nonfinite: str) -> Number:
    check_choice(name, _NONFINITE, nonfinite=nonfinite)
    return checked(max_norm, name, "max_norm", "a positive number", lambda x: x > 0)


def _clipped(
    gradients: Gradients, places: Sequence[int], limit: Number, nonfinite: str, name: str
) -> tuple[list[Any], Any]:
    """Some of the leaves, scaled so that their norm is within the limit; and the norm they had."""
    values = [gradients.values[n] for n in places]
    largest, rest = scaled_norm(values)
    known = _known_finite(gradients, places, largest, nonfinite, name)
    scaling = scaling_to(limit, largest, rest)
    made = [rescaled(x, scaling) for x in values]
    if not known:
        made = [_settled(x, isfinite(largest), nonfinite) for x in made]
    return made, norm_of(largest, rest)


def _settled(x: Any, finite: Any, nonfinite: str) -> Any:
    """An array as it is if its norm is finite, else what was asked for."""
    return x if nonfinite == "pass" else where(finite, x, 0 if nonfinite == "zero" else np.nan)


def _known_finite(
    gradients: Gradients, places: Sequence[int], largest: Any, nonfinite: str, name: str
) -> bool:
    """Whether leaves are known to be finite; raises if they are not, and that was asked for."""
    known = number_of(largest)
    if known is None or math.isfinite(known):
        return known is not None
    if nonfinite == "raise":
        raise not_finite(gradients, places, name)
    return False


def not_finite(gradients: Gradients, places: Sequence[int], name: str) -> NonFiniteError:
    """The error for the first leaf that has elements that are not finite."""
    for n in places:
        x = gradients.values[n]
        wrong = int(number_of(count_nonzero(~isfinite(x))) or 0)
        if wrong:
            nans = int(number_of(count_nonzero(isnan(x))) or 0)
            return NonFiniteError(
                f"{name}: {gradients.place(n)} has {nans} NaN and {wrong - nans} infinite of "
                f"{math.prod(x.shape)} elements, expected finite gradients; nonfinite='zero' or "
                "'pass' goes on"
            )
    raise AssertionError("all of them are finite")


def _interval(clip_value: Any) -> tuple[float, float]:
    if isinstance(clip_value, tuple | list):
        if len(clip_value) != 2:
            raise ArgumentError(
                f"clip_by_value: got clip_value={clip_value}, expected a number or (low, high)"
            )
        low, high = [as_number(x, "clip_by_value", "clip_value") for x in clip_value]
    else:
        high = not_negative(clip_value, "clip_by_value", "clip_value")
        low = -high
    if not isinstance(high, Tensor) and not low <= high:
        raise ArgumentError(f"clip_by_value: got clip_value={clip_value}, expected low <= high")
    return low, high


def _unit_norms(x: Any, unit_axis: int) -> tuple[Any, Any]:
    """The norm of each unit as a product, with axes of size 1 in place of the others."""
    ndim = len(x.shape)
    if ndim < 2:
        return scaled_norms(x, tuple(range(ndim)))
    if not -ndim <= unit_axis < ndim:
        raise ArgumentError(
            f"adaptive_clip: got unit_axis={unit_axis} for an array of shape {x.shape}"
        )
    return scaled_norms(x, tuple(n for n in range(ndim) if n != unit_axis % ndim))
