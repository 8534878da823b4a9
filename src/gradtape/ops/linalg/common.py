"""Helpers shared by the functions of linear algebra. Xᴴ is the conjugate transpose."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval, aval_of
from gradtape.errors import LinAlgError, UnsupportedError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import conj
from gradtape.ops.shape import reshape
from gradtape.typing import ArrayLike

MATRIX = (-2, -1)


def adjoint(x: Any) -> Any:
    """The conjugate transpose of a stack of matrices."""
    return conj(x).mT if x.dtype.kind == "c" else x.mT


def square(name: str, x: ArrayLike) -> Any:
    """`x` as an array, checked to be a stack of square matrices."""
    x = as_array(x)
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise LinAlgError(
            f"{name}: got shape {x.shape}, expected a square matrix, or a stack of them along the "
            "first axes"
        )
    return x


def evaluated_by(name: str, function: str, remedy: str) -> Callable[..., Any]:
    """`evaluate` by a function of `xp.linalg`; its errors say what it got and what to do."""

    def evaluate(xp: Any, *arrays: Any) -> Any:
        try:
            return getattr(xp.linalg, function)(*arrays)
        except np.linalg.LinAlgError as error:
            got = ", ".join(str(aval_of(array)) for array in arrays)
            raise LinAlgError(f"{name}: got {got}; {error}; {remedy}") from error

    return evaluate


def without_effect(name: str, options: dict[str, Any]) -> None:
    """Raise for options of SciPy, except those that have no effect on results.

    Arguments are never overwritten, and elements that are not finite give results that are not.
    """
    for option, value in options.items():
        if option != "check_finite" and value is not None and value is not False:
            raise UnsupportedError(
                f"{name}: got {option}=, which gradtape does not take; leave it out"
            )


SINGULAR = "expected a matrix that can be inverted; add a small multiple of the identity"


@functools.cache
def dtype_of(function: str, *dtypes: Any) -> Any:
    """The dtype NumPy computes in, by trying."""
    return getattr(np.linalg, function)(*(np.ones((1, 1), dtype) for dtype in dtypes)).dtype


def infer_like(function: str) -> Callable[[Aval], Aval]:
    return lambda x: Aval(x.shape, dtype_of(function, x.dtype))


def stretch(x: Any) -> Any:
    """Numbers, one per matrix, so that they multiply matrices."""
    return reshape(x, (*x.shape, 1, 1))
