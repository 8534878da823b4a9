"""Eigenvalues of Hermitian matrices given by their diagonals."""

from __future__ import annotations

from typing import Any

from gradtape.errors import ArgumentError, DTypeError, UnsupportedError
from gradtape.ops.join import stack
from gradtape.ops.linalg.banded import bands_of
from gradtape.ops.linalg.bands import dense, hermitian_bands
from gradtape.ops.linalg.common import check_fit
from gradtape.ops.linalg.eigh import EighResult, eigh
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.norm import inexact
from gradtape.ops.pad_modes import pad
from gradtape.typing import Array, ArrayLike


def _chosen(name: str, select: str, select_range: tuple[int, int] | None) -> Any:
    """SciPy's choice of eigenvalues as the argument of `eigh`."""
    if select in ("a", "all", 0):
        return None
    if select in ("v", "value", 1):
        raise UnsupportedError(
            f"{name}: got select={select!r}; gradtape does not take it, as the number of results "
            "depends on values; use select='i', or all of them and gt.where"
        )
    if select not in ("i", "index", 2) or select_range is None:
        raise ArgumentError(
            f"{name}: got select={select!r} and select_range={select_range}, expected 'a', or 'i' "
            "with the numbers of the first and the last one"
        )
    return select_range


# ---- banded matrices ----------------------------------------------------------------------------


@in_float32
def eig_banded(
    a_band: ArrayLike,
    /,
    lower: bool = False,
    eigvals_only: bool = False,
    *,
    select: str = "a",
    select_range: tuple[int, int] | None = None,
) -> EighResult | Array:
    """Eigenvalues and eigenvectors of a Hermitian banded matrix, or of each in a stack.

    They are computed as those of the whole matrix, and have derivatives as those of `eigh`.

    Args:
        a_band: The main diagonal and those above it as rows, the uppermost first:
            `a_band[u + i - j, j] = a[i, j]`.
        lower: Whether the main diagonal and those below it are given instead, the main one first:
            `a_band[i - j, j] = a[i, j]`.
        eigvals_only: Whether only the eigenvalues are given.
        select: "a" for all of them, "i" for those with the numbers in `select_range`.
        select_range: The numbers of the first and the last one, in ascending order.

    Returns:
        A named tuple: `eigenvalues`, in ascending order, and `eigenvectors`, in columns.

    Raises:
        LinAlgError: There are less than two axes.
        ArgumentError: There is no such way to select.
        UnsupportedError: `select` is "v": the number of results would depend on values.
        NotDifferentiableError: A derivative was asked for that does not exist.

    >>> gt.linalg.eig_banded(np.array([[0.0, 1.0], [2.0, 2.0]])).eigenvalues
    array([1., 3.])
    """
    subset = _chosen("eig_banded", select, select_range)
    bands = bands_of("eig_banded", a_band)
    matrix = dense(hermitian_bands(bands, bool(lower)), bands.shape[-2] - 1)
    return eigh(matrix, eigvals_only=eigvals_only, subset_by_index=subset)


@in_float32
def eigvals_banded(
    a_band: ArrayLike,
    /,
    lower: bool = False,
    *,
    select: str = "a",
    select_range: tuple[int, int] | None = None,
) -> Array:
    """Eigenvalues of a Hermitian banded matrix, or of each in a stack, in ascending order.

    Args:
        a_band: The main diagonal and those above it as rows, the uppermost first.
        lower: Whether the main diagonal and those below it are given instead, the main one first.
        select: "a" for all of them, "i" for those with the numbers in `select_range`.
        select_range: The numbers of the first and the last one, in ascending order.

    Raises:
        LinAlgError: There are less than two axes.
        ArgumentError: There is no such way to select.
        UnsupportedError: `select` is "v": the number of results would depend on values.
        NotDifferentiableError: A derivative was asked for that does not exist: of a single one of
            repeated eigenvalues.

    >>> gt.linalg.eigvals_banded(np.array([[2.0, 2.0], [1.0, 0.0]]), lower=True)
    array([1., 3.])
    """
    return eig_banded(a_band, lower, True, select=select, select_range=select_range)


# ---- tridiagonal matrices -----------------------------------------------------------------------


@in_float32
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    /,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[int, int] | None = None,
) -> EighResult | Array:
    """Eigenvalues and eigenvectors of a real symmetric tridiagonal matrix, or of each in a stack.

    They are computed as those of the whole matrix, and have derivatives as those of `eigh`.

    Args:
        d: The diagonal, along the last axis.
        e: The elements beside it, one less.
        eigvals_only: Whether only the eigenvalues are given.
        select: "a" for all of them, "i" for those with the numbers in `select_range`.
        select_range: The numbers of the first and the last one, in ascending order.

    Returns:
        A named tuple: `eigenvalues`, in ascending order, and `eigenvectors`, in columns.

    Raises:
        ShapeError: The sizes do not fit.
        DTypeError: The numbers are complex; use `eig_banded`.
        ArgumentError: There is no such way to select.
        UnsupportedError: `select` is "v": the number of results would depend on values.
        NotDifferentiableError: A derivative was asked for that does not exist.

    >>> gt.linalg.eigh_tridiagonal(np.array([2.0, 2.0]), np.array([1.0])).eigenvalues
    array([1., 3.])
    """
    d, e = inexact(d), inexact(e)
    fits = bool(e.shape) and d.shape == (*e.shape[:-1], e.shape[-1] + 1)
    expected = "a diagonal that has one element more than there are beside it"
    check_fit("eigh_tridiagonal", fits, expected, d, e)
    if "c" in (d.dtype.kind, e.dtype.kind):
        raise DTypeError(
            f"eigh_tridiagonal: got {d.dtype} and {e.dtype}, expected real numbers; use eig_banded"
        )
    bands = stack([d, pad(e, [(0, 0)] * (len(e.shape) - 1) + [(0, 1)])], -2)
    return eig_banded(bands, True, eigvals_only, select=select, select_range=select_range)


@in_float32
def eigvalsh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    /,
    select: str = "a",
    select_range: tuple[int, int] | None = None,
) -> Array:
    """Eigenvalues of a real symmetric tridiagonal matrix, or of each in a stack, ascending.

    Args:
        d: The diagonal, along the last axis.
        e: The elements beside it, one less.
        select: "a" for all of them, "i" for those with the numbers in `select_range`.
        select_range: The numbers of the first and the last one, in ascending order.

    Raises:
        ShapeError: The sizes do not fit.
        DTypeError: The numbers are complex.
        ArgumentError: There is no such way to select.
        UnsupportedError: `select` is "v": the number of results would depend on values.
        NotDifferentiableError: A derivative was asked for that does not exist: of a single one of
            repeated eigenvalues.

    >>> gt.linalg.eigvalsh_tridiagonal(np.array([2.0, 2.0]), np.array([1.0]))
    array([1., 3.])
    """
    return eigh_tridiagonal(d, e, True, select, select_range)
