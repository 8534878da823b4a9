"""Samples of ops as functions from real arrays to one real vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape as gt
from every_case import call_of
from opcases.case import OpCase


def real_parts(value: Any) -> list[Any]:
    return [gt.real(value), gt.imag(value)] if value.dtype.kind == "c" else [value]


def of_real_arrays(case: OpCase) -> tuple[Callable[[Any], Any], tuple[Any, ...]]:
    """The case as a function of a tuple of real arrays that gives one real vector."""
    function, floats = call_of(case).differentiable()
    kinds = [x.dtype.kind for x in floats]
    args = tuple(
        part.copy() for x in floats for part in ((x.real, x.imag) if x.dtype.kind == "c" else (x,))
    )

    def flat(parts: Any) -> Any:
        left = iter(parts)
        full = [next(left) + 1j * next(left) if kind == "c" else next(left) for kind in kinds]
        outs = [part for out in function(*full) for part in real_parts(gt.asarray(out))]
        return gt.concatenate([gt.reshape(out, -1) for out in outs] or [gt.reshape(parts[0], -1)])

    return flat, args
