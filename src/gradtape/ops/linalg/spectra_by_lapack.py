"""Eigenvalues and singular values by calls of LAPACK from native code.

Where values are repeated, or singular values are 0, the eager forwards place the vectors that go
with them (`ops.linalg.gauge`). Native code does not: it gives up, and the program that takes over
has the eager forward.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.lowering import LibrarySite, Memory, Reader
from gradtape.core.scalar import Scalar, absolute, convert, maximum, minimum, where
from gradtape.ops.linalg.by_lapack import DOUBLE, columns_of, takes
from gradtape.ops.linalg.gauge import rounding
from gradtape.ops.linalg.native_lapack import integers, native_routine, workspace


def _apart(at: LibrarySite, values: Memory, size: int, *, above: bool = False) -> Any:
    """A function that gives a number up unless its value differs from the one before it.

    Args:
        at: The site.
        values: Sorted values.
        size: The size of the matrix.
        above: Whether values that count as 0 are left to eager code, too.
    """
    count, rounded = values.shape[0], rounding(size, at.dtype)

    def value(k: Any) -> Scalar:
        return convert(values(k), at.dtype)

    def kept(k: Scalar, number: Scalar) -> Scalar:
        bound = rounded * maximum(absolute(value(0)), absolute(value(count - 1)))
        fine = (k == 0) | (absolute(value(k) - value(where(k == 0, k, k - 1))) > bound)
        if above:
            fine = fine & (value(k) > bound)
        return at.watch(where(fine, number, np.nan))

    return kept


def eigh(at: LibrarySite, a: Reader, lower: bool) -> None:
    """Eigenvalues and eigenvectors, unless eigenvalues are repeated."""
    vectors, values = _eigenvalues(at, a, "V", lower)
    kept = _apart(at, values, vectors.shape[0])
    at.result(0, lambda k: kept(k, values(k)))
    at.result(1, lambda i, k: kept(k, vectors(k, i)))


def eigvalsh(at: LibrarySite, a: Reader, lower: bool) -> None:
    """Eigenvalues, unless some are repeated."""
    vectors, values = _eigenvalues(at, a, "N", lower)
    kept = _apart(at, values, vectors.shape[0])
    at.result(0, lambda k: kept(k, values(k)))


def _eigenvalues(at: LibrarySite, a: Reader, job: str, lower: bool) -> tuple[Memory, Memory]:
    n = a.aval.shape[-1]
    vectors, values = columns_of(at, a, DOUBLE), at.empty((n,), DOUBLE)
    letters = job, "L" if lower else "U"
    length, count = workspace("syevd", DOUBLE, *letters, n, None, n, None, indices=True)
    work, indices = at.work(length, DOUBLE), at.work(count, integers())
    args = *letters, n, vectors, n, values, work, length, indices, count
    at.call(native_routine("syevd", DOUBLE), *args, flops=9 * n**3, settles=True)
    return vectors, values


def svd(at: LibrarySite, a: Reader, full_matrices: bool) -> None:
    """Singular values and vectors, unless values are repeated or 0."""
    (m, n), count = a.aval.shape[-2:], min(a.aval.shape[-2:])
    left = at.empty((m if full_matrices else count, m), DOUBLE)
    right = at.empty((n, n if full_matrices else count), DOUBLE)
    values = _singular_values(at, a, "A" if full_matrices else "S", left, right)
    kept = _apart(at, values, max(m, n), above=True)

    def first(k: Scalar) -> Scalar:
        # One more vector than there are values is orthogonal to all others.
        return minimum(k, count - 1) if max(left.shape[0], right.shape[1]) > count else k

    at.result(0, lambda i, k: kept(first(k), left(k, i)))
    at.result(1, lambda k: kept(k, values(k)))
    at.result(2, lambda k, j: kept(first(k), right(j, k)))


def svdvals(at: LibrarySite, a: Reader) -> None:
    """Singular values, unless some are repeated."""
    unused = at.work(1, DOUBLE)
    values = _singular_values(at, a, "N", unused, unused)
    kept = _apart(at, values, max(a.aval.shape[-2:]))
    at.result(0, lambda k: kept(k, values(k)))


def _singular_values(at: LibrarySite, a: Reader, job: str, left: Memory, right: Memory) -> Memory:
    (m, n), count = a.aval.shape[-2:], min(a.aval.shape[-2:])
    matrix, values = columns_of(at, a, DOUBLE), at.empty((count,), DOUBLE)
    rows = m, right.shape[1] if right.shape else 1
    sizes = None, m, None, None, rows[0], None, rows[1]
    (length,) = workspace("gesdd", DOUBLE, job, m, n, *sizes)
    work, indices = at.work(length, DOUBLE), at.work(8 * count, integers())
    args = matrix, m, values, left, rows[0], right, rows[1], work, length, indices
    at.call(
        native_routine("gesdd", DOUBLE), job, m, n, *args, flops=20 * m * n * count, settles=True
    )
    return values


def takes_svd(x: Aval, full_matrices: bool) -> bool:
    """Whether null spaces, whose bases are placed by eager code, have at most one vector."""
    return takes(x) and (not full_matrices or abs(x.shape[-1] - x.shape[-2]) <= 1)
