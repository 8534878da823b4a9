"""Products and equations with Toeplitz and circulant matrices. Xᴴ is the conjugate transpose."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from gradtape.core.define import added
from gradtape.errors import LinAlgError
from gradtape.ops.arguments import normalize_axis
from gradtape.ops.cast import conj, copy, real
from gradtape.ops.checks import check_choice
from gradtape.ops.fft.transforms import fft, ifft, irfft, rfft
from gradtape.ops.join import concatenate
from gradtape.ops.like import zeros_like
from gradtape.ops.linalg.checks import verified
from gradtape.ops.linalg.columns import in_columns
from gradtape.ops.linalg.common import check_fit, explained
from gradtape.ops.linalg.gauge import largest, resolution
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import scipy_linalg
from gradtape.ops.linalg.stacks import matrixwise, stack_of, summed
from gradtape.ops.linalg.structured import toeplitz, vectors
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


def _ends(c: Any, r: Any) -> tuple[Any, ...]:
    """The first column, and the first row without its first element, as stacks of one shape."""
    stack, r = stack_of(c, r), r[..., 1:, :]
    return tuple(broadcast_to(x, (*stack, *x.shape[-2:])) for x in (c, r))


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


@explained(
    "solve_toeplitz",
    "expected regular matrices in each upper left corner; use solve(toeplitz(c, r))",
)
def _solve_one(c: Any, r: Any, b: Any) -> Any:
    return scipy_linalg().solve_toeplitz((c[:, 0], r[:, 0]), b, check_finite=False)


def _vjp(_wanted: Any, ct: Any, out: Any, c: Any, r: Any, _b: Any) -> Any:
    # The first element of the row is not read: that of the column takes its place.
    column, rest = _ends(c, r)
    back = _equations(conj(concatenate([column[..., :1, :], rest], -2)), conj(c), ct)
    down, up = _along_diagonals(-back, out)
    return down, concatenate([zeros_like(down[..., :1, :]), up], -2), back


def _jvp(tangents: Sequence[Any], out: Any, c: Any, r: Any, _b: Any) -> Any:
    dc, dr, db = tangents
    if dc is not None or dr is not None:
        dc = zeros_like(c) if dc is None else dc
        db = added(db, -_times(dc, zeros_like(r) if dr is None else dr, out))
    return _equations(c, r, db)


# x = T⁻¹b: dx = T⁻¹(db − dT·x); a number of T gets the sum of a diagonal of T's cotangent
_equations = matrixwise(
    "solve_toeplitz", _solve_one, vjp_all=summed(_vjp), jvp=_jvp, divisors=(0, 1)
)


# ---- public functions ---------------------------------------------------------------------------


def _column_and_row(name: str, c_or_cr: Any) -> tuple[Any, Any]:
    """The first column and the first row, which is the conjugate of it unless it is given."""
    if isinstance(c_or_cr, tuple):
        c, r = map(inexact, c_or_cr)
    else:
        c, r = inexact(c_or_cr), conj(inexact(c_or_cr))
    expected = "the first column and the first row of a matrix, or stacks of them"
    check_fit(name, bool(c.shape and r.shape), expected, c, r)
    return reshape(c, (*c.shape, 1)), reshape(r, (*r.shape, 1))


@in_float32
def matmul_toeplitz(c_or_cr: ArrayLike | tuple[ArrayLike, ArrayLike], x: ArrayLike, /) -> Array:
    """The product of a Toeplitz matrix with a vector or a matrix, by Fourier transforms.

    Args:
        c_or_cr: The first column of the matrix, or a tuple of that and the first row, whose first
            element is not read; without a row, it is the conjugate of the column.
        x: A vector if it has one axis, else a matrix of columns or a stack of them.

    Raises:
        ShapeError: The sizes do not fit.

    >>> gt.linalg.matmul_toeplitz((np.array([1.0, 2.0]), np.array([1.0, 3.0])), np.ones(2)).round(
    ...     12
    ... )
    array([4., 3.])
    """
    c, r = _column_and_row("matmul_toeplitz", c_or_cr)
    times = functools.partial(_times, c, r)
    if not c.shape[-2] or not r.shape[-2]:  # nothing to transform
        times = functools.partial(matmul, toeplitz(c[..., 0], r[..., 0]))
    return in_columns("matmul_toeplitz", times, r, inexact(x))


@in_float32
def solve_toeplitz(c_or_cr: ArrayLike | tuple[ArrayLike, ArrayLike], b: ArrayLike, /) -> Array:
    """The solution x of `a @ x = b` for a Toeplitz matrix, by Levinson's recursion.

    Args:
        c_or_cr: The first column of the matrix, or a tuple of that and the first row, whose first
            element is not read; without a row, it is the conjugate of the column.
        b: A vector if it has one axis, else a matrix of columns or a stack of them.

    Raises:
        LinAlgError: The matrix, or one in its upper left corner, is singular.
        ShapeError: The sizes do not fit.

    >>> gt.linalg.solve_toeplitz(np.array([2.0, 1.0]), np.array([3.0, 3.0]))
    array([1., 1.])
    """
    c, r = _column_and_row("solve_toeplitz", c_or_cr)
    fits = c.shape[-2] == r.shape[-2]
    check_fit("solve_toeplitz", fits, "a square matrix", c[..., 0], r[..., 0])
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
    check_choice("solve_circulant", ("raise", "lstsq"), singular=singular)
    c, b = vectors(inexact(c)), vectors(inexact(b))
    c = moveaxis(c, normalize_axis(caxis, len(c.shape), "solve_circulant"), -1)
    b = moveaxis(b, normalize_axis(baxis, len(b.shape), "solve_circulant"), -1)
    size = c.shape[-1]
    expected = "as many elements along the last axis, or along caxis and baxis"
    check_fit("solve_circulant", b.shape[-1] == size, expected, c, b)
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
