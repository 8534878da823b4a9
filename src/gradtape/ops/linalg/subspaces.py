"""Bases of the spaces that belong to a matrix, and decompositions of low rank."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from gradtape.errors import ArgumentError, LinAlgError
from gradtape.ops.arrays.known import values_of
from gradtape.ops.linalg.checks import verified
from gradtape.ops.linalg.common import adjoint, check_fit, one_matrix
from gradtape.ops.linalg.gauge import outside
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.polar import polar
from gradtape.ops.linalg.qr import qr
from gradtape.ops.linalg.stacks import matrix_stack
from gradtape.ops.linalg.svd import decompose, svd, svdvals
from gradtape.ops.norm import inexact
from gradtape.ops.rearrange import flip
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import where
from gradtape.ops.trigonometric import arccos, arcsin
from gradtape.typing import Array, ArrayLike

_WHY_ONE = ", as the size of the result depends on its rank"


def _rank(s: Any, shape: tuple[int, ...], rcond: float | None) -> int:
    """How many singular values count."""
    values = values_of(s)
    bound = np.finfo(values.dtype).eps * max(shape) if rcond is None else rcond
    return int(np.count_nonzero(values > values.max(initial=0.0) * bound))


@in_float32
def orth(a: ArrayLike, /, rcond: float | None = None) -> Array:
    """An orthonormal basis of the space the columns of a matrix span.

    The basis is one of many: only what depends on the space alone, such as `q @ q.conj().T`, or
    tells singular vectors apart, has a derivative; that with respect to a matrix that keeps its
    rank.

    Args:
        a: The matrix.
        rcond: Singular values up to this times the largest one count as 0; None for the rounding of
            the dtype times the larger size.

    Raises:
        LinAlgError: There are not two axes.
        ConversionError: The matrix is batched or traced: the rank decides the shape.
        NotDifferentiableError: A derivative was asked for that does not exist.

    >>> gt.linalg.orth(np.array([[2.0, 0.0], [0.0, 0.0]])).shape
    (2, 1)
    """
    a = one_matrix("orth", inexact(a), _WHY_ONE)
    u, s, _ = decompose(a, full_matrices=False)
    return u[:, : _rank(s, a.shape, rcond)]


@in_float32
def null_space(a: ArrayLike, /, rcond: float | None = None) -> Array:
    """An orthonormal basis of the vectors that a matrix takes to 0.

    The basis is one of many: only what depends on the space alone, such as `n @ n.conj().T`, has a
    derivative; that with respect to a matrix that keeps its rank.

    Args:
        a: The matrix.
        rcond: Singular values up to this times the largest one count as 0; None for the rounding of
            the dtype times the larger size.

    Raises:
        LinAlgError: There are not two axes.
        ConversionError: The matrix is batched or traced: the rank decides the shape.
        NotDifferentiableError: A derivative was asked for that does not exist.

    >>> n = gt.linalg.null_space(np.array([[1.0, 1.0]]))
    >>> np.round(abs(n), 6)
    array([[0.707107],
           [0.707107]])
    """
    a = one_matrix("null_space", inexact(a), _WHY_ONE)
    _, s, vh = decompose(a, full_matrices=True)
    return adjoint(vh[_rank(s, a.shape, rcond) :])


# ---- one space next to another ------------------------------------------------------------------


def _has_full_rank(xp: Any, a: Any) -> None:
    values = xp.linalg.svd(a, compute_uv=False)
    least = max(a.shape[-2:]) * xp.finfo(values.dtype).eps * values.max(axis=-1, initial=0)
    if a.shape[-1] > a.shape[-2] or (values <= least[..., None]).any():
        raise LinAlgError(
            f"subspace_angles: got shape {a.shape} with columns that depend on each other, "
            "expected independent ones; give an orthonormal basis, as orth does"
        )


@in_float32
def subspace_angles(A: ArrayLike, B: ArrayLike) -> Array:
    """The angles between the spaces that the columns of two matrices span, the largest first.

    At an angle of 0 there is a kink as that of `abs`, and the gradient is 0.

    Args:
        A: A matrix with independent columns, or a stack of them.
        B: Another one with as many rows.

    Raises:
        LinAlgError: There are less than two axes, or columns depend on each other.
        ShapeError: The numbers of rows differ.
        NotDifferentiableError: A derivative was asked for that does not exist: of a single one of
            several equal angles.

    >>> one, other = np.array([[1.0], [0.0]]), np.array([[1.0], [1.0]])
    >>> np.round(gt.linalg.subspace_angles(one, other) / np.pi, 12)
    array([0.25])
    """
    a, b = matrix_stack("subspace_angles", A), matrix_stack("subspace_angles", B)
    check_fit("subspace_angles", a.shape[-2] == b.shape[-2], "as many rows in both", a, b)
    bases = [qr(verified(x, _has_full_rank)).Q for x in (a, b)]  # type: ignore[union-attr]
    larger, smaller = bases if a.shape[-1] >= b.shape[-1] else bases[::-1]
    cosines = flip(svdvals(adjoint(larger) @ smaller), -1)
    sines = svdvals(outside(smaller, larger))
    # Each is accurate where the other one is flat.
    near = cosines**2 >= 0.5
    return where(near, arcsin(where(near, sines, 0.0)), arccos(where(near, 0.0, cosines)))


@in_float32
def orthogonal_procrustes(A: ArrayLike, B: ArrayLike) -> tuple[Array, Array]:
    """The unitary matrix R that brings `A @ R` nearest to `B`.

    Args:
        A: A matrix, or a stack of them.
        B: Another one of the same shape.

    Returns:
        R, and the sum of the singular values of `A.conj().T @ B`.

    Raises:
        LinAlgError: There are less than two axes.
        ShapeError: The shapes differ.
        NotDifferentiableError: A derivative of R was asked for, and `A.conj().T @ B` has not full
            rank.

    >>> R, scale = gt.linalg.orthogonal_procrustes(np.eye(2), np.array([[0.0, 2.0], [-2.0, 0.0]]))
    >>> R
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    a, b = (matrix_stack("orthogonal_procrustes", x) for x in (A, B))
    check_fit("orthogonal_procrustes", a.shape[-2:] == b.shape[-2:], "the same", a, b)
    product = adjoint(a) @ b
    return polar(product)[0], sum_of(svdvals(product), -1)


# ---- low rank -----------------------------------------------------------------------------------


class LowRankSVD(NamedTuple):
    """Left singular vectors, singular values, and right singular vectors, both in columns.

    >>> u, s, v = gt.linalg.svd_lowrank(np.diag([3.0, 2.0, 1.0]), q=2)
    >>> s.shape
    (2,)
    """

    U: Array
    S: Array
    V: Array


@in_float32
def svd_lowrank(a: ArrayLike, q: int = 6, niter: int = 2, *, seed: int = 0) -> LowRankSVD:
    """The largest singular values and their vectors, approximately, by a random projection.

    It is exact for a matrix of rank `q`, and good where singular values beyond the first `q` are
    small. The derivative is that of the whole computation.

    Args:
        a: The matrix, or a stack of them.
        q: How many singular values.
        niter: How many times the space is improved by multiplying it with the matrix.
        seed: The seed of the random directions, which are the same at every call.

    Returns:
        A named tuple: `U`, `S`, and `V`, such that `a` is nearly `u @ diag(s) @ v.conj().T`.

    Raises:
        LinAlgError: There are less than two axes.
        ArgumentError: `q` is more than the number of rows or columns.
        NotDifferentiableError: A derivative was asked for that does not exist.

    >>> u, s, v = gt.linalg.svd_lowrank(np.outer([3.0, 4.0], [1.0, 0.0]), q=1)
    >>> np.round(s, 12)
    array([5.])
    """
    a = matrix_stack("svd_lowrank", a)
    rows, columns = a.shape[-2:]
    if not 0 < q <= min(rows, columns):
        raise ArgumentError(
            f"svd_lowrank: got q={q} for shape {a.shape}, expected 1 to {min(rows, columns)}"
        )
    back = adjoint(a)
    basis = qr(a @ _directions(columns, q, seed, a.dtype)).Q  # type: ignore[union-attr]
    for _ in range(niter):
        basis = qr(a @ qr(back @ basis).Q).Q  # type: ignore[union-attr]
    u, s, vh = svd(adjoint(basis) @ a, full_matrices=False)
    return LowRankSVD(basis @ u, s, adjoint(vh))


@functools.cache
def _directions(rows: int, columns: int, seed: int, dtype: Any) -> Any:
    return np.random.default_rng(seed).normal(size=(rows, columns)).astype(dtype)
