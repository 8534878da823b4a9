"""The reference for Taylor mode: `gt.jvp` within itself, along the same curve."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gradtape as gt
from gradtape import containers


def nested(function: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any]) -> Any:
    """The derivatives of f(x(t)) at t = 0, in lists by order, as `gt.jet(...)[1]` has them."""
    order = len(series[0])

    def along(t: Any) -> list[Any]:
        curves = [_curve(x, terms, t) for x, terms in zip(primals, series, strict=True)]
        return [function(*curves)]

    def with_next(derivatives: Callable[[Any], list[Any]], t: Any) -> list[Any]:
        found, changes = gt.jvp(derivatives, (t,), (1.0,))
        return [*found, changes[-1]]

    for _ in range(order):
        along = functools.partial(with_next, along)
    return along(np.float64(0.0))[1:]


def _curve(x: Any, terms: Sequence[Any], t: Any) -> Any:
    """Σ x⁽ᵏ⁾·tᵏ/k!, in the dtype of x."""
    total, power = x, t
    for k, term in enumerate(terms, start=1):
        total = total + (term / math.factorial(k)) * power
        power = power * t
    return total.astype(x.dtype) if total.dtype != x.dtype else total


def assert_derivatives(got: Any, expected: Any, rtol: float = 1e-9) -> None:
    """Two lists of derivatives are equal, up to a part of the largest element of each."""
    for one, other in zip(containers.flatten(got)[0], containers.flatten(expected)[0], strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        finite = other[np.isfinite(other)]
        scale = 1 + (np.abs(finite).max() if finite.size else 0)
        np.testing.assert_allclose(one, other, rtol=0, atol=rtol * scale)
