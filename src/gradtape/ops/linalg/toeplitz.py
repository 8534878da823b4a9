"""Products and equations with Toeplitz and circulant matrices. Xᴴ is the conjugate transpose."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import added, general, unbroadcast
from gradtape.errors import ArgumentError, LinAlgError, ShapeError
from gradtape.ops.arguments import normalize_axis
from gradtape.ops.cast import conj, copy, real
from gradtape.ops.fft.transforms import fft, ifft, irfft, rfft
from gradtape.ops.join import concatenate
from gradtape.ops.like import zeros_like
from gradtape.ops.linalg.checks import verified
from gradtape.ops.linalg.columns import in_columns
from gradtape.ops.linalg.common import without_effect
from gradtape.ops.linalg.gauge import largest, resolution
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import scipy_linalg
from gradtape.ops.linalg.stacks import batch_stacks, common_dtype, failed, over_stack, stack_of
from gradtape.ops.linalg.structured import toeplitz
from gradtape.ops.matmul import matmul
from gradtape.ops.norm import inexact
from gradtape.ops.rearrange import flip
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to, moveaxis, reshape
from gradtape.typing import Array, ArrayLike

# ---- products -----------------------------------------------------------------------------------


def _spectra(size: int, *columns: Any) -> tuple[list[Any], Any]:
    """Fourier transforms of columns padded with zeros, and the inverse transform."""
    if any(x.dtype.kind == "c" for x in columns):
        return [fft(x, size, axis=-2) for x in columns], ifft
    back = functools.partial(irfft, n=size)
    return [rfft(x, size, axis=-2) for x in columns], back


def _ends(c: Any, r: Any) -> tuple[Any, Any]:
    """The first column, and the first row without its first element, as stacks of one shape."""
    stack = stack_of(c, r)
    return broadcast_to(c, (*stack, *c.shape[-2:])), broadcast_to(
        r[..., 1:, :], (*stack, r.shape[-2] - 1, 1)
    )


def _times(c: Any, r: Any, x: Any) -> Any:
    """T·X with the first column and row of T, each as a column.

    T is part of a matrix whose columns are rotations of c followed by r backwards.
    """
    rows, size = c.shape[-2], c.shape[-2] + r.shape[-2] - 1
    c, rest = _ends(c, r)
    (turning, x), back = _spectra(size, concatenate([c, flip(rest, -2)], -2), x)
    return back(turning * x, axis=-2)[..., :rows, :]


def _along_diagonals(y: Any, x: Any) -> tuple[Any, Any]:
    """The sums of each diagonal of Y·Xᴴ: from the main one downwards, and upwards, as columns."""
    rows, size = y.shape[-2], y.shape[-2] + x.shape[-2] - 1
    (y, x), back = _spectra(size, y, x)
    sums = back(sum_of(y * conj(x), -1, keepdims=True), axis=-2)
    return sums[..., :rows, :], flip(sums[..., rows:, :], -2)


# ---- equations ----------------------------------------------------------------------------------


def _forward(_xp: Any, c: Any, r: Any, b: Any) -> Any:
    dtype = common_dtype(c, r, b)

    def one(c: Any, r: Any, b: Any) -> Any:
        if not b.size:
            return np.empty(b.shape, dtype)
        try:
            out = scipy_linalg().solve_toeplitz((c[:, 0], r[:, 0]), b, check_finite=False)
        except np.linalg.LinAlgError as error:
            remedy = (
                "expected regular matrices in each upper left corner; use solve(toeplitz(c, r))"
            )
            raise failed("solve_toeplitz", (c, r, b), str(error), remedy) from error
        return out.astype(dtype, copy=False)

    return over_stack(one, *(x.astype(dtype, copy=False) for x in (c, r, b)))


def _vjp(wanted: tuple[bool, ...], ct: Any, out: Any, c: Any, r: Any, _b: Any) -> Any:
    # The first element of the row is not read: that of the column takes its place.
    column, rest = _ends(c, r)
    back = _equations(conj(concatenate([column[..., :1, :], rest], -2)), conj(c), ct)
    down, up = _along_diagonals(-back, out)
    by_row = concatenate([zeros_like(down[..., :1, :]), up], -2)
    return (
        unbroadcast(down, c.shape) if wanted[0] else None,
        unbroadcast(by_row, r.shape) if wanted[1] else None,
        unbroadcast(back, _b.shape) if wanted[2] else None,
    )


def _jvp(tangents: Sequence[Any], out: Any, c: Any, r: Any, _b: Any) -> Any:
    dc, dr, db = tangents
    if dc is not None or dr is not None:
        dc = zeros_like(c) if dc is None else dc
        db = added(db, -_times(dc, zeros_like(r) if dr is None else dr, out))
    return _equations(c, r, db)


def _infer(c: Aval, r: Aval, b: Aval) -> Aval:
    return Aval((*stack_of(c, r, b), *b.shape[-2:]), common_dtype(c, r, b))


# x = T⁻¹b: dx = T⁻¹(db − dT·x); a number of T gets the sum of a diagonal of T's cotangent
_equations = general(
    "solve_toeplitz",
    _forward,
    infer=_infer,
    vjp_all=_vjp,
    jvp=_jvp,
    batch=batch_stacks,
)


# ---- public functions ---------------------------------------------------------------------------


def _column_and_row(name: str, c_or_cr: Any) -> tuple[Any, Any]:
    """The first column and the first row, which is the conjugate of it unless it is given."""
    pair = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    c = inexact(pair[0])
    r = conj(c) if not isinstance(c_or_cr, tuple) else inexact(pair[1])
    if not c.shape or not r.shape:
        raise ShapeError(
            f"{name}: got shapes {c.shape} and {r.shape}, expected the first column and the first "
            "row of a matrix, or stacks of them"
        )
    return reshape(c, (*c.shape, 1)), reshape(r, (*r.shape, 1))


@in_float32
def matmul_toeplitz(
    c_or_cr: ArrayLike | tuple[ArrayLike, ArrayLike], x: ArrayLike, /, **others: Any
) -> Array:
    """The product of a Toeplitz matrix with a vector or a matrix, by Fourier transforms.

    Args:
        c_or_cr: The first column of the matrix, or a tuple of that and the first row, whose first
            element is not read; without a row, it is the conjugate of the column.
        x: A vector if it has one axis, else a matrix of columns or a stack of them.
        **others: Options of SciPy for speed, which have no effect.

    Raises:
        ShapeError: The sizes do not fit.
        UnsupportedError: An option that gradtape does not have.

    >>> gt.linalg.matmul_toeplitz((np.array([1.0, 2.0]), np.array([1.0, 3.0])), np.ones(2)).round(
    ...     12
    ... )
    array([4., 3.])
    """
    without_effect("matmul_toeplitz", {k: v for k, v in others.items() if k != "workers"})
    c, r = _column_and_row("matmul_toeplitz", c_or_cr)
    times = functools.partial(_times, c, r)
    if not c.shape[-2] or not r.shape[-2]:  # nothing to transform
        times = functools.partial(matmul, toeplitz(c[..., 0], r[..., 0]))
    return in_columns("matmul_toeplitz", times, r, inexact(x))


@in_float32
def solve_toeplitz(
    c_or_cr: ArrayLike | tuple[ArrayLike, ArrayLike], b: ArrayLike, /, **others: Any
) -> Array:
    """The solution x of `a @ x = b` for a Toeplitz matrix, by Levinson's recursion.

    Args:
        c_or_cr: The first column of the matrix, or a tuple of that and the first row, whose first
            element is not read; without a row, it is the conjugate of the column.
        b: A vector if it has one axis, else a matrix of columns or a stack of them.
        **others: Options of SciPy for speed, which have no effect.

    Raises:
        LinAlgError: The matrix, or one in its upper left corner, is singular.
        ShapeError: The sizes do not fit.
        UnsupportedError: An option that gradtape does not have.

    >>> gt.linalg.solve_toeplitz(np.array([2.0, 1.0]), np.array([3.0, 3.0]))
    array([1., 1.])
    """
    without_effect("solve_toeplitz", others)
    c, r = _column_and_row("solve_toeplitz", c_or_cr)
    if c.shape[-2] != r.shape[-2]:
        raise ShapeError(
            f"solve_toeplitz: got a column of {c.shape[-2]} and a row of {r.shape[-2]} elements, "
            "expected a square matrix"
        )
    solve = functools.partial(_equations, c, r) if c.shape[-2] else copy
    return in_columns("solve_toeplitz", solve, c, inexact(b))


def _not_singular(xp: Any, zero: Any) -> None:
    if xp.any(zero):
        raise LinAlgError(
            "solve_circulant: got a matrix that is singular up to rounding, expected one that can "
            "be inverted; use singular='lstsq' for the shortest of the nearest solutions"
        )


@in_float32
def solve_circulant(
    c: ArrayLike,
    b: ArrayLike,
    /,
    singular: str = "raise",
    tol: float | None = None,
    caxis: int = -1,
    baxis: int = 0,
    outaxis: int = 0,
) -> Array:
    """The solution x of `circulant(c) @ x = b`, by Fourier transforms.

    Args:
        c: The first column of the matrix, or several of them.
        b: The right hand sides; the axes besides `caxis` and `baxis` broadcast.
        singular: "raise" for an error if the matrix is singular up to rounding, "lstsq" for the
            shortest of the nearest solutions; its derivative is that along changes that keep what
            counts as 0.
        tol: Absolute values of the transform of `c` up to this count as 0; None for the largest one
            times the size and the rounding of numbers.
        caxis: The axis of `c` with the columns.
        baxis: The axis of `b` with the right hand sides.
        outaxis: The axis of the result with the solutions.

    Raises:
        LinAlgError: The matrix is singular up to rounding.
        ShapeError: The sizes do not fit.
        AxisError: There is no such axis.
        ArgumentError: `singular` is neither of the two.

    >>> gt.linalg.solve_circulant(np.array([2.0, 1.0, 0.0]), np.array([3.0, 3.0, 3.0])).round(12)
    array([1., 1., 1.])
    """
    if singular not in ("raise", "lstsq"):
        raise ArgumentError(
            f"solve_circulant: got singular={singular!r}, expected 'raise' or 'lstsq'"
        )
    c, b = (x if x.shape else reshape(x, (1,)) for x in (inexact(c), inexact(b)))
    c = moveaxis(c, normalize_axis(caxis, len(c.shape), "solve_circulant"), -1)
    b = moveaxis(b, normalize_axis(baxis, len(b.shape), "solve_circulant"), -1)
    size = c.shape[-1]
    if b.shape[-1] != size:
        raise ShapeError(
            f"solve_circulant: got {size} elements along axis {caxis} of c and {b.shape[-1]} "
            f"along axis {baxis} of b, expected as many"
        )
    if not size:
        return moveaxis(c * b, -1, outaxis)
    turning = fft(c)
    rounding = size * resolution(turning.dtype) * largest(turning, -1)
    zero = abs(turning) <= (rounding if tol is None else tol)
    if singular == "raise":
        zero = verified(zero, _not_singular)
    out = ifft(where(zero, 0.0, fft(b) / where(zero, 1.0, turning)))
    out = out if "c" in (c.dtype.kind, b.dtype.kind) else real(out)
    return moveaxis(out, -1, normalize_axis(outaxis, len(out.shape), "solve_circulant"))
