"""Ops on matrices by calls of LAPACK from native code.

These are the native forms of matrices that are too large for registers (`core.lowering.Matrices`).
LAPACK reads columns: the rows of a matrix as they are stored are the columns of its transpose. The
routines, and what they are given, are those of eager code, so that results have the same bits if
the library is the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.lowering import LibrarySite, Memory, Reader
from gradtape.core.scalar import (
    Scalar,
    absolute,
    constant,
    convert,
    exp,
    log,
    where,
)
from gradtape.errors import LinAlgError
from gradtape.ops.linalg.common import DEFINITE, SINGULAR, said
from gradtape.ops.linalg.native_lapack import available, integers, native_routine, workspace

# NumPy computes in double precision, whatever the dtype of a result; SciPy in that of the result.
DOUBLE = np.dtype(np.float64)

_SINGULAR = "Singular matrix"
_NOT_DEFINITE = "Matrix is not positive definite"


def takes(*avals: Aval, **_params: Any) -> bool:
    """Whether native code can call LAPACK for these matrices; stacks are not broadcast."""
    return len({aval.shape[:-2] for aval in avals}) == 1 and available()


def _rows(at: LibrarySite, a: Reader, dtype: Any) -> Memory:
    """A matrix as it is stored, which LAPACK reads as its transpose."""
    return at.fill(a.aval.shape[-2:], lambda i, j: a(i, j), dtype)


def columns_of(at: LibrarySite, a: Reader, dtype: Any) -> Memory:
    """A matrix as LAPACK reads it."""
    return at.fill(a.aval.shape[:-3:-1], lambda j, i: a(i, j), dtype)


def _factor(at: LibrarySite, name: str, shown: Any, lu: Memory, size: int) -> Memory:
    """Factor a square matrix in place; returns the pivots, counted from 1."""
    pivots = at.empty((size,), integers())
    failure = (LinAlgError, said(name, shown, _SINGULAR, SINGULAR))
    _getrf(at, lu, size, size, pivots, failure)
    return pivots


def _getrf(
    at: LibrarySite, lu: Memory, m: int, n: int, pivots: Memory, failure: Any = None
) -> None:
    routine = native_routine("getrf", lu.dtype)
    flops = 2 * m * n * min(m, n) // 3
    at.call(routine, m, n, lu, m, pivots, flops=flops, failure=failure)


def _getrs(at: LibrarySite, trans: str, lu: Memory, pivots: Memory, x: Memory) -> None:
    columns, size = x.shape
    routine = native_routine("getrs", x.dtype)
    sizes = size, columns, lu, size, pivots, x, size
    at.call(routine, trans, *sizes, flops=2 * size * size * columns)


def _potrf(at: LibrarySite, name: str, shown: Any, factor: Memory) -> None:
    size = factor.shape[0]
    failure = (LinAlgError, said(name, shown, _NOT_DEFINITE, DEFINITE))
    routine = native_routine("potrf", factor.dtype)
    at.call(routine, "L", size, factor, size, flops=size**3 // 3, failure=failure)


def _potrs(at: LibrarySite, factor: Memory, x: Memory) -> None:
    columns, size = x.shape
    sizes = size, columns, factor, size, x, size
    routine = native_routine("potrs", x.dtype)
    at.call(routine, "L", *sizes, flops=2 * size * size * columns)


def _lower(at: LibrarySite, number: int, factor: Memory) -> None:
    """Store the lower triangle of a matrix of LAPACK, with zeros above."""
    zero = constant(0, factor.dtype)
    at.result(number, lambda i, j: where(i >= j, factor(j, i), zero))


# ---- equations ----------------------------------------------------------------------------------


def solve(at: LibrarySite, a: Reader, b: Reader, assume: str) -> None:
    """Compute x = A⁻¹·B, and the factors that the op keeps."""
    size, kept = a.aval.shape[-1], at.results[1].shape[-2] != 0
    dtype = at.dtype if kept else DOUBLE
    x = columns_of(at, b, dtype)
    if assume == "pos":
        factor = _rows(at, a, dtype)
        _potrf(at, "solve", at.avals[:1], factor)
        _potrs(at, factor, x)
        _lower(at, 1, factor)
        at.result(2, lambda _i, _j: constant(0, at.results[2].dtype))
    elif kept:
        factors = _rows(at, a, dtype)
        pivots = _factor(at, "solve", at.avals[:1], factors, size)
        _getrs(at, "T", factors, pivots, x)
        at.result(1, lambda i, j: factors(j, i))
        at.result(2, lambda _i, j: pivots(j) - 1)
    else:
        factors = columns_of(at, a, dtype)
        _getrs(at, "N", factors, _factor(at, "solve", at.avals, factors, size), x)
    at.result(0, lambda i, j: x(j, i))


def solve_again(
    at: LibrarySite, factors: Reader, pivots: Reader, a: Reader, b: Reader, assume: str, back: bool
) -> None:
    """Compute x = A⁻¹·B, or A⁻ᵀ·B if `back`, by kept factors."""
    size, kept = a.aval.shape[-1], factors.aval.shape[-2] != 0
    dtype = at.dtype if kept else DOUBLE
    x = columns_of(at, b, dtype)
    if not kept:
        fresh = _rows(at, a, dtype) if back else columns_of(at, a, dtype)
        _getrs(at, "N", fresh, _factor(at, "solve", at.avals[2:], fresh, size), x)
    elif assume == "pos":
        _potrs(at, columns_of(at, factors, dtype), x)
    else:
        packed = columns_of(at, factors, dtype)
        exchanged = at.fill((size,), lambda i: convert(pivots(0, i), integers()) + 1, integers())
        _getrs(at, "N" if back else "T", packed, exchanged, x)
    at.result(0, lambda i, j: x(j, i))


def solve_triangular(
    at: LibrarySite, a: Reader, b: Reader, lower: bool, unit_diagonal: bool
) -> None:
    """Compute x = T⁻¹·B for a triangle T of A."""
    size, columns = b.aval.shape[-2:]
    triangle, x = _rows(at, a, at.dtype), columns_of(at, b, at.dtype)
    letters = "U" if lower else "L", "T", "U" if unit_diagonal else "N"
    problem = f"{_SINGULAR}: the diagonal has a 0 at {{}}"
    failure = (LinAlgError, said("solve_triangular", at.avals, problem, SINGULAR))
    sizes = size, columns, triangle, size, x, size
    routine = native_routine("trtrs", x.dtype)
    at.call(routine, *letters, *sizes, flops=size * size * columns, failure=failure)
    at.result(0, lambda i, j: x(j, i))


def inv(at: LibrarySite, a: Reader, large: int, block: int) -> None:
    """A⁻¹ by equations with the identity, or from `large` rows on by L⁻¹ and U⁻¹."""
    size = a.aval.shape[-1]
    if size < large:
        zero, one = constant(0, DOUBLE), constant(1, DOUBLE)
        factors = columns_of(at, a, DOUBLE)
        x = at.fill((size, size), lambda i, j: where(i == j, one, zero), DOUBLE)
        _getrs(at, "N", factors, _factor(at, "inv", at.avals, factors, size), x)
        at.result(0, lambda i, j: x(j, i))
        return
    factors = _rows(at, a, at.dtype)
    pivots = _factor(at, "inv", at.avals, factors, size)
    work = at.work(block * size, at.dtype)
    sizes = size, factors, size, pivots, work, block * size
    at.call(native_routine("getri", factors.dtype), *sizes, flops=4 * size**3 // 3)
    at.result(0, lambda i, j: factors(i, j))


# ---- determinants -------------------------------------------------------------------------------


def _sign_and_logarithm(at: LibrarySite, a: Reader) -> tuple[Any, Any]:
    """The terms of the sign and of the logarithm of a determinant, one for each row."""
    size = a.aval.shape[-1]
    factors = columns_of(at, a, DOUBLE)
    pivots = at.empty((size,), integers())
    _getrf(at, factors, size, size, pivots)
    one, zero = constant(1, DOUBLE), constant(0, DOUBLE)

    def sign(k: Scalar) -> Scalar:
        pivot = factors(k, k)
        own = where(pivot == 0, zero, where(pivot < 0, -one, one))
        return where(convert(pivots(k), k.dtype) == k + 1, own, -own)

    return ("multiply", sign), ("add", lambda k: log(absolute(factors(k, k))))


def det(at: LibrarySite, a: Reader) -> None:
    """The sign times the exponential of the logarithm, as NumPy computes it."""
    terms = _sign_and_logarithm(at, a)
    at.combined(a.aval.shape[-1], terms, lambda sign, logarithm: [sign * exp(logarithm)], DOUBLE)


def slogdet(at: LibrarySite, a: Reader) -> None:
    """The sign and the logarithm."""
    terms = _sign_and_logarithm(at, a)
    at.combined(a.aval.shape[-1], terms, lambda sign, logarithm: [sign, logarithm], DOUBLE)


# ---- decompositions -----------------------------------------------------------------------------


def cholesky(at: LibrarySite, a: Reader) -> None:
    """The lower triangular factor."""
    factor = columns_of(at, a, DOUBLE)
    _potrf(at, "cholesky", at.avals, factor)
    _lower(at, 0, factor)


def lu_factor(at: LibrarySite, a: Reader) -> None:
    """L and U in one matrix, and the pivots."""
    m, n = a.aval.shape[-2:]
    factors, pivots = columns_of(at, a, at.dtype), at.empty((min(m, n),), integers())
    _getrf(at, factors, m, n, pivots)
    at.result(0, lambda i, j: factors(j, i))
    at.result(1, lambda i: pivots(i) - 1)


def qr(at: LibrarySite, a: Reader, mode: str) -> None:
    """Q with as many columns as the matrix, and R."""
    m, n = a.aval.shape[-2:]
    factors, scales = columns_of(at, a, DOUBLE), at.empty((n,), DOUBLE)
    lengths = (
        workspace(*call, None, m, None)
        for call in (
            ("geqrf", DOUBLE, m, n),
            ("orgqr", DOUBLE, m, n, n),
        )
    )
    length = max(n, *(length for (length,) in lengths))
    work, zero = at.work(length, DOUBLE), constant(0, DOUBLE)
    sizes = factors, m, scales, work, length
    flops = 2 * m * n * n
    at.call(native_routine("geqrf", DOUBLE), m, n, *sizes, flops=flops)
    at.result(1, lambda i, j: where(i <= j, factors(j, i), zero))
    at.call(native_routine("orgqr", DOUBLE), m, n, n, *sizes, flops=flops)
    at.result(0, lambda i, j: factors(j, i))
