"""Conditions on numbers that are computed: they raise where they do not hold, compiled code too.

In compiled code a condition is part of a kernel, as that of an index is. The error then knows the
order of magnitude of the number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call
from gradtape.core.lowering import Matrices, Site
from gradtape.core.op import Op
from gradtape.core.promotion import INT64
from gradtape.core.scalar import Scalar
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, GradtapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype
from gradtape.ops.join import stack
from gradtape.ops.select import where


class Failure(NamedTuple):
    """What is said of a number above its limit.

    Attributes:
        error: The class of the error.
        text: The message; `{}` stands for the number.
        not_finite: The message if the number is not finite; None to let it pass.
    """

    error: type[GradtapeError]
    text: str
    not_finite: str | None = None


def require(values: Sequence[Any], number: Any, limit: Any, failure: Failure) -> list[Any]:
    """The same values, if a number is not above its limit.

    Args:
        values: Arrays, which are of no use if it is.
        number: One number, at least 0.
        limit: The limit.
        failure: What to raise otherwise.
    """
    number = as_array(number)
    limit = astype(as_array(limit), number.dtype)
    one = call(_REQUIRE, (stack([number, limit]),), {"failure": failure})
    # In a compiled function, only what a result depends on is computed.
    return [value * one for value in values] if isinstance(one, Tensor) else list(values)


def required(values: Any, condition: Any, text: str) -> Any:
    """The same values if a condition holds; raises an ArgumentError, compiled code too.

    Args:
        values: An array, which is of no use if it does not.
        condition: A truth value, which may only be known when a compiled function runs.
        text: The message.
    """
    if not isinstance(condition, Tensor):
        if not condition:
            raise ArgumentError(text)
        return values
    return require([values], where(condition, 0.0, 1.0), 0.5, Failure(ArgumentError, text))[0]


def _evaluate(xp: Any, pairs: Any, failure: Failure) -> Any:
    number, limit = pairs[..., 0], pairs[..., 1]
    if failure.not_finite is not None and not xp.isfinite(number).all():
        raise failure.error(failure.not_finite)
    if (number > limit).any():
        worst = float(number[number > limit].max())
        raise failure.error(failure.text.replace("{}", f"{worst:.3g}"))
    return xp.ones(number.shape, pairs.dtype)


def _expression(site: Site, pair: Sequence[Scalar], failure: Failure) -> Scalar:
    number, limit = pair
    one = scalar.constant(1.0, number.dtype)
    if failure.not_finite is not None:
        finite = scalar.isfinite(number)
        one = site.check(one, finite, failure.error, failure.not_finite)
    magnitude = scalar.convert(scalar.floor(scalar.log10(number)), INT64)
    text = failure.text.replace("{}", "about 1e{}")
    return site.check(one, ~(number > limit), failure.error, text, magnitude)


def _batch(op: Op, axes: Sequence[int], args: Sequence[Any], params: dict[str, Any]) -> Any:
    return call(op, (move_batch_axis(args[0], axes[0]),), params), 0


# 1 for each pair of a number and a limit, if the number is not above the limit
_REQUIRE = Op(
    "require",
    _evaluate,
    lambda pairs, failure: Aval(pairs.shape[:-1], pairs.dtype),
    batch=_batch,
    lower=Matrices(_expression, fits=lambda *_avals, **_params: True, axes=1),
)


def epsilon(dtype: Any) -> float:
    """The distance from 1 to the next number."""
    return float(np.finfo(dtype).eps)
