"""Right hand sides of equations: a vector, or a matrix of columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.errors import ShapeError
from gradtape.ops.shape import reshape


def in_columns(name: str, solve: Callable[[Any], Any], a: Any, b: Any, rows: int = -2) -> Any:
    """`solve(b)` for a `b` of columns, or for a vector made one column.

    Args:
        name: Of the function, for errors.
        solve: Solves the equations for a matrix of columns, or a stack of them.
        a: The matrix, or a stack of them.
        b: The right hand side.
        rows: The axis of `a` that is as long as a column.
    """
    vector = len(b.shape) == 1
    size = a.shape[rows]
    if not b.shape or b.shape[0 if vector else -2] != size:
        raise ShapeError(
            f"{name}: got shapes {a.shape} and {b.shape}, expected a vector of {size} elements, or "
            "matrices of as many rows"
        )
    if not vector:
        return solve(b)
    out = solve(reshape(b, (size, 1)))
    return reshape(out, out.shape[:-1])
