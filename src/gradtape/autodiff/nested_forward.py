"""The power series of an op's results by forward mode within itself, once for each order.

It needs nothing but an op's forward mode, and takes time that doubles with each order.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from gradtape.autodiff.forward import ForwardLevel
from gradtape.autodiff.power_series import Series, factorial, scaled
from gradtape.core.call import dispatch
from gradtape.core.op import Op


def by_nesting(
    op: Op,
    values: Sequence[Any],
    series: Sequence[Series | None],
    params: dict[str, Any],
    order: int,
) -> tuple[tuple[Any, ...], list[Sequence[Any]]]:
    """The results of an op on series, and the coefficients of t, t², … of all of them.

    Args:
        op: An op whose results are a tuple.
        values: The operands at t = 0.
        series: Their series, None for constants.
        params: The parameters.
        order: The number of coefficients.
    """
    levels = [ForwardLevel("jet") for _ in range(order)]
    try:
        duals = [
            value if one is None else _dual(one.derivatives(order), levels)
            for value, one in zip(values, series, strict=True)
        ]
        found = [_derivatives(result, levels) for result in dispatch(op, duals, params)]
    finally:
        for level in levels:
            level.active = False

    def coefficient(derivatives: Sequence[Any], k: int) -> Any:
        term = derivatives[k]
        return None if term is None else scaled(term, factorial(k), operator.truediv)

    rows: list[Sequence[Any]] = [
        [coefficient(one, k) for one in found] for k in range(1, order + 1)
    ]
    return tuple(derivatives[0] for derivatives in found), rows


def _dual(derivatives: Sequence[Any], levels: Sequence[ForwardLevel]) -> Any:
    """x(0) with the tangent x'(0) at the last level; both are duals at the levels before it."""
    if not levels:
        return derivatives[0]
    *others, last = levels
    return last.dual(_dual(derivatives[:-1], others), _dual(derivatives[1:], others))


def _derivatives(result: Any, levels: Sequence[ForwardLevel]) -> list[Any]:
    """The value and the derivatives of a dual that was made of such; None for those that are 0."""
    found = []
    for order in range(len(levels) + 1):
        part = result
        for number, level in enumerate(reversed(levels)):
            if part is not None:
                part = level.split(part)[number < order]
        found.append(part)
    return found
