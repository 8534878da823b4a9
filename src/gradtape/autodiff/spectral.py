"""Matrix functions by eigenvalues or singular values, with derivatives of every order.

They do not depend on the choice of vectors for repeated values, and have derivatives there that
cannot be computed from the values and vectors alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.autodiff.transforms import jvp
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError
from gradtape.ops.arrays.pieces import block
from gradtape.ops.cast import stop_gradient
from gradtape.ops.join import concatenate
from gradtape.ops.linalg.common import adjoint, square
from gradtape.ops.linalg.hermitian import mirrored
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.spectral import Jets, derivative
from gradtape.ops.linalg.stacks import matrix_stack
from gradtape.ops.norm import inexact
from gradtape.ops.rearrange import flip
from gradtape.ops.shape import broadcast_to
from gradtape.typing import Array, ArrayLike


@in_float32
def hermitian_function(
    a: ArrayLike, function: Callable[[Any], Any], /, *, lower: bool = True
) -> Array:
    """f(A) of a Hermitian matrix A, or of each in a stack: `v @ diag(f(w)) @ v.conj().T`.

    It has derivatives of every order in both modes, even where eigenvalues are repeated; the same
    formula written with `eigh` has none there.

    Args:
        a: The matrix; only one triangle is read, and the derivative is that with respect to a
            matrix that stays Hermitian.
        function: f, which takes the vector of eigenvalues in ascending order and returns as many
            real numbers. It works on each by itself, but may treat them by position: a mask that
            keeps the largest k projects onto their space. Anything else it depends on is constant.
        lower: Whether the lower triangle is read, or the upper one.

    Raises:
        LinAlgError: A matrix is not square.
        ArgumentError: The function does not return a real number for each eigenvalue, or depends
            on a tensor that is differentiated.
        NotDifferentiableError: A requested derivative does not exist, because f has a jump or a
            kink at an eigenvalue.

    >>> root = gt.linalg.hermitian_function(np.diag([4.0, 9.0]), gt.sqrt)
    >>> root
    array([[2., 0.],
           [0., 3.]])
    """
    matrix = mirrored(square("hermitian_function", inexact(a)), lower=bool(lower), conjugate=True)
    return derivative(matrix, jets=_jets(function, "hermitian_function"))


@in_float32
def singular_function(a: ArrayLike, function: Callable[[Any], Any], /) -> Array:
    """`u @ diag(f(s)) @ vh` of the singular values of a matrix, or of each in a stack.

    It has derivatives of every order in both modes, even where singular values are repeated, and
    where they are 0 if f is smooth as an odd function. It decomposes the Hermitian matrix
    [[0, A], [Aᴴ, 0]], which takes some eight times as long as decomposing A.

    Args:
        a: The matrix.
        function: f, which takes the vector of singular values in descending order and returns as
            many real numbers. It works on each by itself, but may treat them by position: a mask
            that keeps the first k gives the best approximation of rank k. Anything else it depends
            on is constant.

    Raises:
        LinAlgError: There are fewer than two axes.
        ArgumentError: The function does not return a real number for each singular value, or
            depends on a tensor that is differentiated.
        NotDifferentiableError: A requested derivative does not exist, because f has a jump or a
            kink at a singular value.

    >>> a = np.array([[3.0, 0.0], [0.0, 1.0]])
    >>> np.round(gt.linalg.singular_function(a, lambda s: s * np.array([1.0, 0.0])), 12) + 0.0
    array([[3., 0.],
           [0., 0.]])
    """
    a = matrix_stack("singular_function", a)
    *stack, rows, columns = a.shape
    upper = broadcast_to(np.zeros((), a.dtype), (*stack, rows, rows))
    lower = broadcast_to(np.zeros((), a.dtype), (*stack, columns, columns))
    whole = block([[upper, a], [adjoint(a), lower]])
    count = min(rows, columns)
    odd = functools.partial(_odd, function, count) if count else (lambda w: 0.0 * w)
    out = derivative(whole, jets=_jets(odd, "singular_function"))
    return out[..., :rows, rows:]


def _odd(function: Callable[[Any], Any], count: int, w: Any) -> Any:
    """Map the eigenvalues -s, 0 (those due to the shape alone) and s to -f(s), 0 and f(s)."""
    last = w.shape[0] - count
    below, null, above = -w[:count], w[count:last], flip(w[last:], 0)
    parts = [-function(below), flip(function(above), 0)]
    if null.shape[0]:
        # They are 0, as the smallest singular value may be, and have the slope of f there.
        rest = concatenate([stop_gradient(above[:-1]), null[:1] - stop_gradient(null[:1])], 0)
        end = function(rest)[-1:]
        parts.insert(1, end - stop_gradient(end) + 0.0 * null)
    return concatenate(parts, 0)


def _jets(function: Callable[[Any], Any], name: str) -> Jets:
    """A function that gives f and its derivatives, element by element, at raw eigenvalues."""

    def jets(w: Any, order: int) -> list[Any]:
        found, current = [], function
        with np.errstate(all="ignore"):
            for _ in range(order + 1):
                found.append(_values(name, current(w), w))
                current = functools.partial(_slope, current)
        return found

    return jets


def _slope(function: Callable[[Any], Any], w: Any) -> Any:
    return jvp(function, (w,), (np.ones(w.shape, w.dtype),))[1]


def _values(name: str, values: Any, w: Any) -> Any:
    if isinstance(values, Tensor):
        raise ArgumentError(
            f"{name}: got a function that depends on a tensor besides the eigenvalues, which "
            "would get no gradient; detach() it, or scale the argument or the result by it"
        )
    values = np.asarray(values)
    if values.shape != w.shape or values.dtype.kind == "c":
        raise ArgumentError(
            f"{name}: got a function that gives {values.dtype}{list(values.shape)} for values of "
            f"shape {w.shape}, expected a real number for each"
        )
    return values
