"""Complex derivatives: checks that a function has one."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.core.aval import aval_of
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import ConversionError, DTypeError, NotDifferentiableError
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.cast import stop_gradient
from gradtape.ops.reduce import max as max_of
from gradtape.ops.select import where


def check_complex(name: str, values: Sequence[Any]) -> None:
    """Raise unless all values are complex, as holomorphic functions need.

    Raises:
        DTypeError: One is not.
    """
    for value in values:
        if aval_of(value).dtype.kind != "c":
            raise DTypeError(
                f"{name}: got {aval_of(value)} with holomorphic=True, expected complex arguments "
                "and results. Use astype(complex), or leave holomorphic out"
            )


def holomorphic_only(name: str, along_real: Any, along_imaginary: Any) -> Any:
    """A derivative checked to be complex-linear: the same along the imaginary axis.

    Args:
        name: The transform.
        along_real: The result for the cotangent (or tangent) 1.
        along_imaginary: The result for 1j: 1j times the same, if the function is holomorphic.

    Returns:
        `along_real`; where values are being traced, NaN if the function is not holomorphic.

    Raises:
        NotDifferentiableError: The function has no complex derivative.
    """
    leaves, structure = containers.flatten(along_real)
    others = containers.flatten(along_imaginary)[0]
    checked_leaves = []
    for one, other in zip(leaves, others, strict=True):
        near = _agree(one, other)
        if isinstance(near, Tensor):
            one = where(near, one, np.nan)
            with contextlib.suppress(ConversionError):  # only compiled code goes on unchecked
                near = innermost(near)
        if not isinstance(near, Tensor) and not np.all(near):
            raise NotDifferentiableError(
                f"{name}: got a function that is not holomorphic (it uses abs, conj, real, imag "
                "or the like), so that it has no complex derivative; use gt.vjp and gt.jvp, or "
                "differentiate a real function of its result"
            )
        checked_leaves.append(one)
    return containers.unflatten(structure, checked_leaves)


def _agree(one: Any, other: Any) -> Any:
    """Whether two derivatives are the same up to rounding and a factor i."""
    one, other = stop_gradient(one), stop_gradient(other)
    if 0 in one.shape:
        return True
    scale = max_of(abs_of(one)) + max_of(abs_of(other))
    tolerance = float(np.finfo(one.dtype).eps) ** 0.5
    return max_of(abs_of(1j * one - other)) <= tolerance * scale
