"""Matrices made of the coefficients of polynomials, filters and populations."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_choice, check_positive
from gradtape.ops.gather import take
from gradtape.ops.join import concatenate
from gradtape.ops.like import ones_like, zeros_like
from gradtape.ops.linalg.checks import verified
from gradtape.ops.linalg.common import check_fit
from gradtape.ops.linalg.gauge import on_diagonal
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.structured import vectors
from gradtape.ops.norm import inexact
from gradtape.ops.pad_modes import pad
from gradtape.typing import Array, ArrayLike


def _placed(numbers: Any, places: Any) -> Any:
    """A matrix of the numbers along the last axis by their places, counted from 1; 0 elsewhere."""
    return take(concatenate([zeros_like(numbers[..., :1]), numbers], -1), places, axis=-1)


def _leading(name: str, a: ArrayLike) -> Any:
    """1 and the other coefficients of a polynomial, negative and divided by the leading one."""
    a = vectors(inexact(a))
    check_fit(name, a.shape[-1] > 1, "two coefficients or more along the last axis", a)
    a = verified(a, _COMPANION if name == "companion" else _FIEDLER_COMPANION)
    return concatenate([ones_like(a[..., :1]), -a[..., 1:] / a[..., :1]], -1)


def _leads(name: str) -> Any:
    def test(xp: Any, a: Any) -> None:
        if xp.any(a[..., 0] == 0):
            raise ArgumentError(
                f"{name}: got 0 for the leading coefficient, expected another number; leave "
                "leading zeros out"
            )

    return test


_COMPANION, _FIEDLER_COMPANION = _leads("companion"), _leads("fiedler_companion")


@in_float32
def companion(a: ArrayLike, /) -> Array:
    """The matrix whose eigenvalues are the roots of a polynomial.

    Args:
        a: The coefficients, that of the highest power first, along the last axis.

    Raises:
        ShapeError: There are less than two coefficients.
        ArgumentError: The first coefficient is 0.

    >>> gt.linalg.companion(np.array([2.0, -6.0, 4.0]))
    array([[ 3., -2.],
           [ 1.,  0.]])
    """
    coefficients = _leading("companion", a)
    size = coefficients.shape[-1] - 1
    # The coefficients after the leading one, which is 1, have the places from 2 on.
    places = np.eye(size, k=-1, dtype=int)
    places[0] = np.arange(2, size + 2)
    return _placed(coefficients, places)


@in_float32
def fiedler_companion(a: ArrayLike, /) -> Array:
    """A matrix of five diagonals whose eigenvalues are the roots of a polynomial.

    Args:
        a: The coefficients, that of the highest power first, along the last axis.

    Raises:
        ShapeError: There are less than two coefficients.
        ArgumentError: The first coefficient is 0.

    >>> gt.linalg.fiedler_companion(np.array([1.0, -6.0, 11.0, -6.0]))
    array([[  6., -11.,   1.],
           [  1.,   0.,   0.],
           [  0.,   6.,   0.]])
    """
    coefficients = _leading("fiedler_companion", a)
    size = coefficients.shape[-1] - 1
    places = np.zeros((size, size), int)
    places[0, 0] = 2
    places[1:2, 0] = 1
    for row in range(0, size - 1, 2):  # coefficients with even numbers above the diagonal, then 1
        places[row, row + 1] = row + 3
        places[row, row + 2 : row + 3] = 1
    for row in range(2, size, 2):  # those with odd numbers below it
        places[row, row - 1] = row + 2
        places[row + 1 : row + 2, row - 1] = 1
    return _placed(coefficients, places)


@in_float32
def fiedler(a: ArrayLike, /) -> Array:
    """The matrix of the distances between numbers.

    Args:
        a: The numbers, along the last axis.

    >>> gt.linalg.fiedler(np.array([1.0, 4.0]))
    array([[0., 3.],
           [3., 0.]])
    """
    a = vectors(a)
    return abs(a[..., :, None] - a[..., None, :])


@in_float32
def leslie(f: ArrayLike, s: ArrayLike, /) -> Array:
    """The matrix that takes a population, by age, to that of the next step.

    Args:
        f: The number of offspring at each age, along the last axis.
        s: The fraction of each age but the last that survives.

    Raises:
        ShapeError: There is not one number less in `s`, or none.

    >>> gt.linalg.leslie(np.array([0.0, 2.0]), np.array([0.5]))
    array([[0. , 2. ],
           [0.5, 0. ]])
    """
    f, s = as_array(f), vectors(s)
    fits = s.shape[-1] > 0 and f.shape == (*s.shape[:-1], s.shape[-1] + 1)
    check_fit("leslie", fits, "one number or more in the second, and one more in the first", f, s)
    size = f.shape[-1]
    places = np.diag(np.arange(size + 1, 2 * size), -1)
    places[0] = np.arange(1, size + 1)
    return _placed(concatenate([f, s], -1), places)


@in_float32
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix that convolves vectors of a length with a given one.

    Args:
        a: The vector to convolve with, or several of them, along the last axis.
        n: The length of the vectors that the matrix is multiplied with.
        mode: Which part of the result: "full", "same" or "valid", as of `gt.convolve`.

    Raises:
        ShapeError: There is no number in `a`.
        ArgumentError: `n` is not positive, or there is no such mode.

    >>> gt.linalg.convolution_matrix(np.array([1.0, 2.0]), 2)
    array([[1., 0.],
           [2., 1.],
           [0., 2.]])
    """
    a, n = vectors(a), operator.index(n)
    size = a.shape[-1]
    check_fit("convolution_matrix", size > 0, "a number or more", a)
    check_positive("convolution_matrix", n=n)
    check_choice("convolution_matrix", ("full", "same", "valid"), mode=mode)
    cut = {"full": 0, "same": min(n, size) - 1, "valid": 2 * (min(n, size) - 1)}[mode]
    number = np.arange(n + size - 1 - cut)[:, None] + cut // 2 - np.arange(n)
    return _placed(a, np.where((number >= 0) & (number < size), number + 1, 0))


@in_float32
def diagsvd(s: ArrayLike, M: int, N: int) -> Array:
    """The matrix with singular values on its diagonal, of a size that may be larger.

    Args:
        s: The values, along the last axis: as many as there are rows or columns, whichever is less.
        M: How many rows.
        N: How many columns.

    Raises:
        ShapeError: The number of values does not fit.

    >>> gt.linalg.diagsvd(np.array([3.0, 2.0]), 2, 3)
    array([[3., 0., 0.],
           [0., 2., 0.]])
    """
    s = vectors(s)
    size = s.shape[-1]
    expected = f"{min(M, N)} values for {M} rows and {N} columns"
    check_fit("diagsvd", size == min(M, N), expected, s)
    return pad(on_diagonal(s), [(0, 0)] * (len(s.shape) - 1) + [(0, M - size), (0, N - size)])
