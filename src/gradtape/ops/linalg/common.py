"""Helpers shared by the functions of linear algebra. Xᴴ is the conjugate transpose."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval, aval_of
from gradtape.core.define import general
from gradtape.core.lowering import Lowering
from gradtape.core.op import infer_like as infer_first
from gradtape.errors import LinAlgError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import conj
from gradtape.ops.gather import take_along_axis
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
        raise _not_matrices(name, x, "a square matrix, or a stack of them along the first axes")
    return x


def of_two_axes(name: str, x: Any) -> Any:
    """An array, checked to have two axes or more."""
    if len(x.shape) < 2:
        raise _not_matrices(name, x, "a matrix, or a stack of them along the first axes")
    return x


def one_matrix(name: str, x: Any, why: str = "") -> Any:
    """An array, checked to have two axes."""
    if len(x.shape) != 2:
        raise _not_matrices(name, x, f"one matrix{why}")
    return x


def _not_matrices(name: str, x: Any, expected: str) -> LinAlgError:
    return LinAlgError(f"{name}: got shape {tuple(x.shape)}, expected {expected}")


def evaluated_by(name: str, function: str, remedy: str) -> Callable[..., Any]:
    """`evaluate` by a function of `xp.linalg`; its errors say what it got and what to do."""

    def evaluate(xp: Any, *arrays: Any) -> Any:
        try:
            return getattr(xp.linalg, function)(*arrays)
        except np.linalg.LinAlgError as error:
            raise failed(name, arrays, str(error), remedy) from error

    return evaluate


def explained(
    name: str, remedy: str, problem: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make an error of LAPACK say what the function got and what to do, and what is wrong."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def explaining(*arrays: Any) -> Any:
            try:
                return function(*arrays)
            except np.linalg.LinAlgError as error:
                raise failed(name, arrays, problem or str(error), remedy) from error

        return explaining

    return decorate


def failed(name: str, arrays: Sequence[Any], problem: str, remedy: str) -> LinAlgError:
    """The error of an op that found no result: what it got, what is wrong, what to do."""
    return LinAlgError(said(name, [aval_of(array) for array in arrays], problem, remedy))


def said(name: str, avals: Sequence[Aval], problem: str, remedy: str) -> str:
    """The message of that error."""
    return f"{name}: got {', '.join(map(str, avals))}; {problem}; {remedy}"


def check_fit(name: str, fits: bool, expected: str, *arrays: Any) -> None:
    """Raise a ShapeError that shows the shapes of arrays, unless they fit."""
    if not fits:
        shapes = " and ".join(str(tuple(x.shape)) for x in arrays)
        plural = "s" if len(arrays) > 1 else ""
        raise ShapeError(f"{name}: got shape{plural} {shapes}, expected {expected}")


DEFINITE = "expected eigenvalues above 0; add a multiple of the identity"
SINGULAR = "expected a matrix that can be inverted; add a small multiple of the identity"


@functools.cache
def dtype_of(function: str, *dtypes: Any) -> Any:
    """The dtype NumPy computes in, by trying."""
    return getattr(np.linalg, function)(*(np.ones((1, 1), dtype) for dtype in dtypes)).dtype


def infer_like(function: str) -> Callable[[Aval], Aval]:
    return lambda x: Aval(x.shape, dtype_of(function, x.dtype))


def inverse(
    name: str,
    forward: Callable[..., Any],
    infer: Callable[..., Any] = infer_first,
    lower: Lowering | None = None,
) -> Callable[..., Any]:
    """Define an op for the inverse of matrices: d A⁻¹ = −A⁻¹·dA·A⁻¹."""
    return general(
        name,
        forward,
        infer=infer,
        vjps=(lambda ct, out, _x: -(adjoint(out) @ ct @ adjoint(out)),),
        jvp=lambda tangents, out, _x: -(out @ tangents[0] @ out),
        lower=lower,
    )


def by_squaring(x: Any, n: int) -> Any:
    """The product of `n` times `x`, by its squares; `n` is positive."""
    result = None
    while n:
        if n % 2:
            result = x if result is None else result @ x
        n //= 2
        x = x @ x if n else x
    return result


def real_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype of the real part of such numbers."""
    return np.empty(0, dtype).real.dtype


def reordered(x: Any, order: Any) -> Any:
    """Matrices with rows and columns in another order."""
    return take_along_axis(take_along_axis(x, order[..., :, None], -2), order[..., None, :], -1)


def stretch(x: Any) -> Any:
    """Numbers, one per matrix, so that they multiply matrices."""
    return reshape(x, (*x.shape, 1, 1))
