"""Elementwise ops of one array whose rule takes parameters (clip's bounds, the slope of a relu)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_in_place
from gradtape.core.define import general, pointwise, vjp_of_partial
from gradtape.core.op import Rule, rule_reads


def parametric(
    name: str,
    evaluate: Callable[..., Any],
    partial: Rule,
    lower: Callable[..., Any] | None = None,
    *,
    bounded: bool = False,
) -> Callable[..., Any]:
    """Define such an op by its one partial; returns `function(x, **params)`.

    Args:
        name: The name of the op.
        evaluate: `evaluate(xp, x, **params)`.
        partial: `partial(ct, out, x, **params)`, linear in `ct`: `ct` times the derivative.
        lower: `lower(x, **params)`, the expression for one element (see `core.scalar`).
        bounded: Whether the partial is finite also where values are not, as that of a choice is.
    """

    def jvp(tangents: Sequence[Any], out: Any, x: Any, **params: Any) -> Any:
        return partial(tangents[0], out, x, **params)

    def infer(x: Aval, **params: Any) -> Aval:
        # 0 and 0.0 are equal, and do not give the same dtype.
        typed = tuple((name, value, type(value)) for name, value in params.items())
        return Aval(x.shape, _result_dtype(evaluate, x.dtype, typed))

    jvp.reads = rule_reads(partial)  # type: ignore[attr-defined]
    return general(
        name,
        evaluate,
        infer=infer,
        vjps=(vjp_of_partial(partial),),
        jvp=jvp,
        batch=batch_in_place,
        kind="elementwise",
        lower=pointwise(lower),
        partials=(partial,),
        bounded=bounded,
    )


@functools.lru_cache(maxsize=1024)
def _result_dtype(evaluate: Callable[..., Any], dtype: Any, params: Any) -> Any:
    return evaluate(np, np.empty(0, dtype), **{name: value for name, value, _ in params}).dtype
