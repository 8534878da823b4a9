"""Repeated values of a decomposition, and which functions of their vectors have derivatives.

A decomposition has a gauge: the vectors of a repeated value are any basis of their space, and every
complex vector has a free phase. A function of the decomposition has a derivative only if it does
not depend on that choice. Its cotangent tells: rotating the basis must not change it. The effect of
rotations within a group of equal values is then left out; it would be 0 divided by 0.

One basis can hide a dependence, if it happens to be a stationary point of it. Bases along the axes
often are, as for the identity, and so are those at half a right angle to them, which rounding makes
in LAPACK on one machine and not on another. So the basis of a repeated value is placed: turned into
a general position that its space alone decides. What is refused is then a matter of the matrix,
and the same on all machines. What cannot be seen is a dependence on the basis that is stationary in
all of them, as that of the sum of vectors orthogonal to (1, 1, …, 1).

Values that differ by rounding only are taken as equal, and made so: a function that treats equal
values alike (as `max` shares its gradient) gives all of them the same weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.define import general
from gradtape.core.lowering import Elements
from gradtape.core.op import Zero
from gradtape.ops.cast import astype, real, stop_gradient
from gradtape.ops.cumulative import cumsum
from gradtape.ops.diagonal import diagonal
from gradtape.ops.join import concatenate
from gradtape.ops.linalg.checks import require
from gradtape.ops.linalg.common import MATRIX, adjoint
from gradtape.ops.reduce import max as max_of, sum as sum_of
from gradtape.ops.select import divide_or_zero, where

# How far values have to be apart to count as different, in units of rounding of the largest one:
# LAPACK's own errors, and those of matrices that are products, stay below half of it. They do not
# grow with matrices of more than some rows; the spacing of the values of such matrices gets less.
ROUNDING, GROWS_UNTIL = 16, 64
# How much faster the slopes of a function may change than its arguments, both relative.
CURVATURE = 16


def depends(name: str, choice: str, remedy: str) -> str:
    """The message about a result that depends on a choice."""
    return (
        f"{name}: got a result that depends on {choice}, expected one that does not, as only that "
        f"has a derivative; {remedy}"
    )


def depends_on_phases(name: str, vectors: str, product: str) -> str:
    """The message about a result that depends on the phases of vectors."""
    remedy = f"use absolute values, products such as {product}, or fix the phases by one element"
    return depends(name, f"the phases of {vectors}, which are free", remedy)


def treated_differently(name: str, values: str, alike: str = "sum, mean or max") -> str:
    """The message about a result that tells equal values apart."""
    return (
        f"{name}: got repeated {values} that are treated differently, expected a function "
        f"symmetric in them, as a single one of them has no derivative; use their {alike}"
    )


def resolution(dtype: Any) -> float:
    """The relative spacing of numbers."""
    return float(np.finfo(dtype).eps)


def rounding(size: int, dtype: Any) -> float:
    """The size of rounding errors in matrices of a size, relative to their largest element."""
    return ROUNDING * math.sqrt(min(size, GROWS_UNTIL)) * resolution(dtype)


def tolerance(dtype: Any) -> float:
    """The bound up to which a number that should be 0 counts as 0, relative to its surroundings.

    Rounding leaves up to 5 units of resolution where a function of the vectors does not depend on
    the basis and is well conditioned, and about 0.2 units times the condition number otherwise;
    sizes do not matter. A function that depends on the basis goes unnoticed where its slope happens
    to be that small: for a fraction of about the tolerance of bases in general position. So the
    tolerance has to be small, but well above rounding: 23 units in float32, and 1e-10 in float64,
    where there are digits to spare.
    """
    unit = resolution(dtype)
    return max(16 * unit, math.sqrt(unit) / 128)


def largest(x: Any, axes: Any) -> Any:
    """The largest absolute value along axes, which stay with size 1; without history."""
    size = abs(stop_gradient(x))
    return max_of(size, axes, keepdims=True) if x.size else sum_of(size, axes, keepdims=True)


def negligible(values: Any, size: int) -> Any:
    """The size of rounding errors next to the largest of real values along the last axis.

    Args:
        values: Of a decomposition.
        size: Of the matrix.
    """
    return rounding(size, values.dtype) * largest(values, -1)


def groups(values: Any, size: int) -> Any:
    """For each pair of sorted values, whether they are equal: of one chain of negligible gaps."""
    values = stop_gradient(values)
    before = concatenate([values[..., :1], values[..., :-1]], -1)
    number = cumsum(where(abs(values - before) > negligible(values, size), 1.0, 0.0), -1)
    return number[..., :, None] == number[..., None, :]


def shared(values: Any, same: Any) -> Any:
    """The mean over the group of each of the values along the last axis."""
    members = where(same, values[..., None, :], 0.0)
    return sum_of(members, -1) / astype(sum_of(same, -1), values.dtype)


def equal_weights(
    ct: Any, same: Any, message: str, values: Any, *others: Any, spread: Any = 0.0
) -> Any:
    """The cotangent of values, required to be the same for equal ones.

    So is its change in forward mode. In reverse mode it passes cotangents on unchanged, for the
    next check to see; a mean over equal ones would hide that they differ.

    Args:
        ct: The cotangent.
        same: Which values are equal.
        message: Of the error.
        values: These values.
        *others: Cotangents of vectors that go with them, next to which it may be negligible.
        spread: How far values that count as equal differ all the same, relative to the largest one;
            the cotangents of a smooth function then differ, too, up to CURVATURE times that.
    """
    mean, size = shared(ct, same), largest(values, -1)[..., None]
    wholes = [divide_or_zero(stop_gradient(other), size) for other in others]
    excess = abs(stop_gradient(ct - mean)) - CURVATURE * spread * largest(ct, -1)
    fine = vanishes(where(excess > 0, excess, 0.0)[..., None, :], ct[..., None, :], *wholes)
    return _steady(require(ct, fine[..., 0, :], message), same, message=message)


def _steady_jvp(tangents: Sequence[Any], _out: Any, _ct: Any, same: Any, message: str) -> Any:
    change = tangents[0]
    return None if change is None else equal_weights(change, same, message, change)


# The identity, whose tangents have to be the same for equal values as well
_steady = general(
    "equal_weights",
    lambda xp, ct, same, message: ct,
    vjps=(
        lambda ct, _out, _ct, _same, message: ct,
        Zero("truth values are piecewise constant"),
    ),
    jvp=_steady_jvp,
    lower=Elements(lambda i, ct, same, message: ct(*i)),
)


def alone(same: Any) -> Any:
    """Which values differ from all others."""
    return sum_of(same, -1) == 1


def unmoved(moved: Any, level: Any, dx: Any, apart: Any, message: str) -> Any:
    """Zeros, required for values that are not apart from others: changes leave their space alone.

    In such a direction any basis of it may be kept. In others there may be a derivative of what
    follows, but not of the vectors by themselves.

    Args:
        moved: The change of the matrix in the bases of its vectors.
        level: How the values change.
        dx: The change of the matrix, next to which others are negligible.
        apart: Which values are apart.
        message: Of the error.
    """
    both = apart[..., :, None] & apart[..., None, :]
    return require(0.0 * moved, vanishes(moved - on_diagonal(level), dx) | both, message)


def by_vectors(ct: Any, values: Any) -> Any:
    """The cotangent of values times their size, to be compared with those of vectors."""
    return stop_gradient(ct)[..., None, :] * largest(values, -1)[..., None]


def vanishes(part: Any, *wholes: Any) -> Any:
    """Whether elements of matrices are negligible next to the largest ones of other matrices.

    NaN counts as negligible: it shows by itself that something is undefined. The absolute size of
    cotangents means nothing: those of a mean over many elements are small.

    Args:
        part: The elements that should be negligible.
        *wholes: The matrices to compare them with.
    """
    bound = sum(largest(whole, MATRIX) for whole in wholes)
    return (abs(stop_gradient(part)) > tolerance(part.dtype) * bound) ^ True


def skew(x: Any) -> Any:
    """(X − Xᴴ)/2, the part of a change of vectors in their own basis that turns them."""
    return (x - adjoint(x)) / 2


def differences(values: Any, same: Any) -> Any:
    """vⱼ − vᵢ, and 1 for equal values."""
    return where(same, 1.0, values[..., None, :] - values[..., :, None])


def diagonal_of(x: Any) -> Any:
    """The diagonals of matrices, as real numbers."""
    return real(diagonal(x, 0, -2, -1)) if x.dtype.kind == "c" else diagonal(x, 0, -2, -1)


def on_diagonal(values: Any) -> Any:
    """Matrices with values on the diagonal."""
    return values[..., None, :] * np.eye(values.shape[-1], dtype=values.dtype)


def outside(x: Any, basis: Any) -> Any:
    """The part of columns that is orthogonal to the columns of a basis."""
    return x - basis @ (adjoint(basis) @ x)


# ---- bases of LAPACK, on raw arrays -------------------------------------------------------------


def settle(xp: Any, values: Any, bases: list[Any], size: int, *, zeros: bool = False) -> None:
    """Make equal values equal and turn the columns of bases that go with them, in place.

    Args:
        xp: The namespace of the arrays.
        values: Sorted values, along the last axis.
        bases: Stacks of matrices whose columns go with the values; none if they are not wanted.
        size: Of the matrix.
        zeros: Whether values that count as 0 have no gradient: these stay unchanged, as the
            rank and the condition of a matrix are read off them; and so do their vectors.
    """
    same = groups(values, size)
    if np.count_nonzero(same) == values.size:
        return
    null = (values <= negligible(values, size)) & zeros
    for index in np.ndindex(values.shape[:-1]):
        for start, stop in runs(same[index]):
            if null[index][start:stop].all():
                continue
            values[index][start:stop] = values[index][start:stop].mean()
            place(xp, [basis[index][:, start:stop] for basis in bases])


def runs(same: Any) -> list[tuple[int, int]]:
    """Where groups of more than one value start and stop."""
    first = np.argmax(same, axis=-1)
    starts, counts = np.unique(first, return_counts=True)
    return [(int(a), int(a + n)) for a, n in zip(starts, counts, strict=True) if n > 1]


def place(xp: Any, bases: list[Any], seed: int = 0) -> None:
    """Rotate bases alike and in place, so that the space alone decides the position of the first.

    The position is that of Gram and Schmidt's method on projections of fixed columns, which have
    nothing special about them. So it is general, and does not depend on the given basis: where
    values are repeated, LAPACK's is made by rounding, and may be at half a right angle to the axes
    on one machine and along them on the next.

    Args:
        xp: The namespace of the arrays.
        bases: Orthonormal columns, equally many in each.
        seed: Different for spaces that have nothing to do with each other.
    """
    if not bases or not bases[0].size or bases[0].shape[-1] == 1:
        return
    turn = _towards(xp, bases[0], seed)
    for basis in bases:
        basis[...] = basis @ turn


def place_special(xp: Any, basis: Any, seed: int = 0) -> None:
    """Place a basis if it came in a special position: with elements of 0, or of one size."""
    if basis.shape[-1] > 1:
        sizes = xp.sort(abs(basis).reshape(-1))
        if min(sizes[0], xp.diff(sizes).min()) < 64 * resolution(basis.dtype):
            place(xp, [basis], seed)


def _towards(xp: Any, basis: Any, seed: int) -> Any:
    """The unitary matrix that brings a basis into the position that its space decides."""
    rng = np.random.default_rng((seed, *basis.shape))
    columns = rng.normal(size=basis.shape)
    if basis.dtype.kind == "c":
        columns = columns + 1j * rng.normal(size=basis.shape)
    q, r = xp.linalg.qr(basis.conj().T @ xp.asarray(columns.astype(basis.dtype)))
    # The phases of q are those of LAPACK; the basis must not depend on them.
    diagonal = xp.diagonal(r)
    return q * (diagonal / abs(diagonal))
