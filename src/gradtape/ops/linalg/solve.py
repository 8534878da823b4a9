"""Equations: solve and the inverse. Xᴴ is the conjugate transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.call import call
from gradtape.core.define import (
    batch_at_front,
    broadcast_sizes,
    general,
    move_batch_axis,
    public,
    unbroadcast,
)
from gradtape.core.op import Op
from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.linalg.common import (
    SINGULAR,
    adjoint,
    dtype_of,
    evaluated_by,
    infer_like,
    square,
)
from gradtape.ops.matmul import by_left
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike

# ---- solve --------------------------------------------------------------------------------------


def _infer_solve(a: Aval, b: Aval) -> Aval:
    batch = broadcast_sizes(a.shape[:-2], b.shape[:-2])
    return Aval((*batch, *b.shape[-2:]), dtype_of("solve", a.dtype, b.dtype))


def _solve_vjp(wanted: tuple[bool, bool], ct: Any, out: Any, a: Any, _b: Any) -> Any:
    # A record that kept the factors of A would save most of this.
    back = solve_stack(adjoint(a), ct)
    return (
        by_left(-back, None, a, out) if wanted[0] else None,
        unbroadcast(back, _b.shape) if wanted[1] else None,
    )


def _solve_jvp(tangents: Sequence[Any], out: Any, a: Any, _b: Any) -> Any:
    da, db = tangents
    if da is None:
        return solve_stack(a, db)
    moved = -(da @ out)
    return solve_stack(a, moved if db is None else db + moved)


def _solve_batch(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> tuple[Any, int]:
    (a, b), (axis, axis2) = args, axes
    if axis is None and len(a.shape) == 2 and len(b.shape) == 3:
        # One matrix for the whole batch is factored once: the batch becomes columns.
        b = move_batch_axis(b, axis2, 2)
        columns = reshape(b, (b.shape[0], b.shape[1] * b.shape[2]))
        return reshape(call(op, (a, columns), params), b.shape), 2
    ndim = max(len(x.shape) - (n is not None) for x, n in zip(args, axes, strict=True))
    return call(op, [_front(x, n, ndim) for x, n in zip(args, axes, strict=True)], params), 0


def _front(x: Any, axis: int | None, ndim: int) -> Any:
    """The batch axis first, then axes of size 1 so that the others line up from the right."""
    if axis is None:
        return x
    size, *own = move_batch_axis(x, axis).shape
    return reshape(move_batch_axis(x, axis), (size, *(1,) * (ndim - len(own)), *own))


# x = A⁻¹b: dx = A⁻¹(db − dA·x)
solve_stack = general(
    "solve",
    evaluated_by("solve", "solve", SINGULAR),
    infer=_infer_solve,
    vjp_all=_solve_vjp,
    jvp=_solve_jvp,
    batch=_solve_batch,
)


@public(np.linalg.solve)
def solve(a: ArrayLike, b: ArrayLike, /) -> Array:
    """The solution x of `a @ x = b`.

    Args:
        a: A square matrix, or a stack of them.
        b: A vector if it has one axis, else a matrix of columns or a stack of them.

    Raises:
        LinAlgError: A matrix is not square, or singular.
        ShapeError: `b` does not fit.

    >>> gt.solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0]))
    array([1. , 0.5])
    """
    a, b = square("solve", a), as_array(b)
    vector = len(b.shape) == 1
    if not b.shape or b.shape[0 if vector else -2] != a.shape[-1]:
        raise ShapeError(
            f"solve: came shapes {a.shape} and {b.shape}; needed a vector of {a.shape[-1]} "
            "elements, or matrices of as many rows"
        )
    if not vector:
        return solve_stack(a, b)
    out = solve_stack(a, reshape(b, (b.shape[0], 1)))
    return reshape(out, out.shape[:-1])


# ---- inverse ------------------------------------------------------------------------------------

# d A⁻¹ = −A⁻¹·dA·A⁻¹
_inv = general(
    "inv",
    evaluated_by("inv", "inv", SINGULAR),
    infer=infer_like("inv"),
    vjps=(lambda ct, out, _x: -(adjoint(out) @ ct @ adjoint(out)),),
    jvp=lambda tangents, out, _x: -(out @ tangents[0] @ out),
    batch=batch_at_front,
)


@public(np.linalg.inv)
def inv(x: ArrayLike, /) -> Array:
    """The inverse of a square matrix, or of each in a stack; to solve equations use `solve`.

    Raises:
        LinAlgError: A matrix is not square, or singular.

    >>> gt.linalg.inv(np.array([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return _inv(square("inv", x))
