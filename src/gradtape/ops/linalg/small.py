"""Linear algebra of small matrices in registers: expressions for all elements of the results.

These are the native forms of ops on matrices (`core.lowering.Matrices`). A matrix is a list of
rows of expressions. Nothing branches on values: pivots are chosen by selecting between rows.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.lowering import Site
from gradtape.core.promotion import INT64
from gradtape.core.scalar import (
    Scalar,
    absolute,
    constant,
    convert,
    copysign,
    log,
    maximum,
    sqrt,
    where,
)
from gradtape.errors import ArgumentError, LinAlgError
from gradtape.ops.linalg.common import DEFINITE, SINGULAR, said

Row = list[Scalar]
Matrix = list[Row]

_PIVOT = np.dtype(np.int32)


def up_to(largest: int) -> Callable[..., bool]:
    """A test that matrices have at most so many rows and columns."""

    def fits(*avals: Aval, **_params: Any) -> bool:
        return all(size <= largest for aval in avals for size in aval.shape[-2:])

    return fits


def rows_up_to(largest: int) -> Callable[..., bool]:
    """A test that right-hand sides have at most so many rows, and any number of columns."""

    def fits(*avals: Aval, **_params: Any) -> bool:
        return bool(avals[-1].shape[-2] <= largest)

    return fits


def _transposed(a: Matrix) -> Matrix:
    return [list(column) for column in zip(*a, strict=True)]


def _wide(a: Matrix) -> Matrix:
    """Elements in double precision, in which NumPy computes results of single precision, too."""
    return [[convert(x, np.float64) for x in row] for row in a]


def _zero(like: Scalar) -> Scalar:
    return constant(0, like.dtype)


def _every(conditions: Sequence[Scalar]) -> Scalar:
    return functools.reduce(operator.and_, conditions)


def _dot(start: Scalar, xs: Sequence[Scalar], ys: Sequence[Scalar]) -> Scalar:
    """`start` minus the products of elements, one after the other."""
    for x, y in zip(xs, ys, strict=True):
        start = start - x * y
    return start


# ---- elimination --------------------------------------------------------------------------------


class _Factors(NamedTuple):
    """L and U of a matrix whose rows were exchanged.

    Attributes:
        packed: U in the upper triangle, and L without its diagonal of ones below.
        exchanges: For each column the conditions that its row was exchanged with that below it, the
            one after that, and so on; at most one of them holds.
    """

    packed: Matrix
    exchanges: list[list[Scalar]]

    @property
    def pivots(self) -> Row:
        """The number of the row that each was exchanged with."""
        found = []
        for k, conditions in enumerate(self.exchanges):
            pivot = constant(k, _PIVOT)
            for j, condition in enumerate(conditions, k + 1):
                pivot = where(condition, constant(j, _PIVOT), pivot)
            found.append(pivot)
        return found

    @property
    def diagonal(self) -> Row:
        """The diagonal of U."""
        return [self.packed[k][k] for k in range(len(self.exchanges))]

    def checked(self, site: Site, name: str, shown: Sequence[Any]) -> _Factors:
        """The same, with the condition that U can be divided by."""
        diagonal = self.diagonal
        last = site.check(
            diagonal[-1],
            _every([pivot != 0 for pivot in diagonal]),
            LinAlgError,
            said(name, shown, "Singular matrix", SINGULAR),
        )
        packed = [list(row) for row in self.packed]
        packed[len(diagonal) - 1][len(diagonal) - 1] = last
        return _Factors(packed, self.exchanges)


def _factored(a: Matrix) -> _Factors:
    """L and U with partial pivoting, as LAPACK chooses pivots: the first of the largest ones."""
    rows = [list(row) for row in a]
    exchanges = []
    for k in range(min(len(rows), len(rows[0]))):
        largest = absolute(rows[k][k])
        larger = []
        for row in rows[k + 1 :]:
            size = absolute(row[k])
            larger.append(size > largest)
            largest = where(larger[-1], size, largest)
        exchanges.append(_last_of(larger))
        _exchange(rows, k, exchanges[-1])
        pivot = rows[k][k]
        # A column of zeros is left as it is.
        divisor = where(pivot == 0, constant(1, pivot.dtype), pivot)
        for row in rows[k + 1 :]:
            row[k] = row[k] / divisor
            for column in range(k + 1, len(row)):
                row[column] = row[column] - row[k] * rows[k][column]
    return _Factors(rows, exchanges)


def _last_of(conditions: Sequence[Scalar]) -> list[Scalar]:
    """For each condition, whether it is the last that holds."""
    found: list[Scalar] = []
    later: Scalar | None = None
    for condition in reversed(conditions):
        found.append(condition if later is None else condition & ~later)
        later = condition if later is None else later | condition
    return found[::-1]


def _exchange(rows: Matrix, k: int, conditions: Sequence[Scalar]) -> None:
    """Exchange row k with the one below it whose condition holds, if any."""
    first = rows[k]
    for j, condition in enumerate(conditions, k + 1):
        rows[k] = [where(condition, x, y) for x, y in zip(rows[j], rows[k], strict=True)]
        rows[j] = [where(condition, x, y) for x, y in zip(first, rows[j], strict=True)]


def _exchanged(rows: Matrix, exchanges: Sequence[Sequence[Scalar]], *, back: bool) -> Matrix:
    """Rows after all exchanges, in order or back again."""
    rows = list(rows)
    steps = list(enumerate(exchanges))
    for k, conditions in reversed(steps) if back else steps:
        _exchange(rows, k, conditions)
    return rows


# ---- triangles ----------------------------------------------------------------------------------


def _solved(t: Matrix, b: Matrix, *, lower: bool, unit: bool) -> Matrix:
    """T⁻¹·B for a triangle T of a matrix."""
    size = len(t)
    found: dict[int, Row] = {}
    for i in range(size) if lower else reversed(range(size)):
        known = list(found)
        row = []
        for column, x in enumerate(b[i]):
            x = _dot(x, [t[i][k] for k in known], [found[k][column] for k in known])
            row.append(x if unit else x / t[i][i])
        found[i] = row
    return [found[i] for i in range(size)]


def solve_triangular(site: Site, a: Matrix, b: Matrix, lower: bool, unit_diagonal: bool) -> Matrix:
    """T⁻¹·B for a triangle T of A; the other one is not read."""
    if not unit_diagonal:
        at = constant(0, _PIVOT)
        for i in reversed(range(len(a))):
            at = where(a[i][i] == 0, constant(i, _PIVOT), at)
        holds = _every([a[i][i] != 0 for i in range(len(a))])
        problem = "Singular matrix: the diagonal has a 0 at {}"
        message = said("solve_triangular", site.avals, problem, SINGULAR)
        # All elements of the solution depend on the first one that is computed.
        first = 0 if lower else len(a) - 1
        a = [list(row) for row in a]
        a[first][first] = site.check(a[first][first], holds, LinAlgError, message, at)
    return _solved(a, b, lower=lower, unit=unit_diagonal)


# ---- equations ----------------------------------------------------------------------------------

# What `solve` assumes of matrices whose factors are kept, also of a stack: nothing.
FACTORED = "factored"


def solve(site: Site, a: Matrix, b: Matrix, assume: str) -> tuple[Matrix, Matrix, Matrix]:
    """A⁻¹·B, and the factors and pivots that the op keeps: of Aᵀ, or none of a stack."""
    stack = len(site.avals[0].shape) > 2 and assume != FACTORED
    if assume == "pos":
        message = said("solve", site.avals[:1], "Matrix is not positive definite", DEFINITE)
        factor = _cholesky(site, _transposed(a), message)
        return _by_cholesky(factor, b), factor, [[constant(0, _PIVOT) for _ in a]]
    if stack:
        return _eliminated(site, a, b), [], [[]]
    factors = _factored(_transposed(a)).checked(site, "solve", site.avals[:1])
    return _by_transposed(factors, b), factors.packed, [factors.pivots]


def _eliminated(site: Site, a: Matrix, b: Matrix) -> Matrix:
    """A⁻¹·B by eliminating both together."""
    size = len(a)
    together = [[*row, *right] for row, right in zip(_wide(a), _wide(b), strict=True)]
    packed = _factored(together).checked(site, "solve", site.avals[-2:]).packed
    upper, right = [row[:size] for row in packed], [row[size:] for row in packed]
    return _solved(upper, right, lower=False, unit=False)


def _by_transposed(factors: _Factors, b: Matrix) -> Matrix:
    """A⁻¹·B by factors of Aᵀ = P·L·U, so that A = Uᵀ·Lᵀ·Pᵀ."""
    turned = _transposed(factors.packed)
    inner = _solved(turned, b, lower=True, unit=False)
    inner = _solved(turned, inner, lower=False, unit=True)
    return _exchanged(inner, factors.exchanges, back=True)


def _by_cholesky(factor: Matrix, b: Matrix) -> Matrix:
    """A⁻¹·B by A = L·Lᵀ."""
    inner = _solved(factor, b, lower=True, unit=False)
    return _solved(_transposed(factor), inner, lower=False, unit=False)


def solve_again(
    site: Site, factors: Matrix, pivots: Matrix, a: Matrix, b: Matrix, assume: str, back: bool
) -> Matrix:
    """A⁻¹·B, or A⁻ᵀ·B if `back`, by the factors that `solve` kept."""
    if not factors:
        return _eliminated(site, _transposed(a) if back else a, b)
    if assume == "pos":
        return _by_cholesky(factors, b)
    kept = _Factors(factors, _exchanges_of(pivots[0], len(factors)))
    if not back:
        return _by_transposed(kept, b)
    inner = _solved(factors, _exchanged(b, kept.exchanges, back=False), lower=True, unit=True)
    return _solved(factors, inner, lower=False, unit=False)


def _exchanges_of(pivots: Row, rows: int) -> list[list[Scalar]]:
    """The conditions of `_Factors.exchanges`, from the numbers of rows."""
    return [[pivot == j for j in range(k + 1, rows)] for k, pivot in enumerate(pivots)]


def inv(site: Site, a: Matrix) -> Matrix:
    """A⁻¹ = U⁻¹·L⁻¹·P."""
    size, a = len(a), _wide(a)
    packed, exchanges = _factored(a).checked(site, "inv", site.avals)
    of_upper: dict[tuple[int, int], Scalar] = {}
    of_lower: dict[tuple[int, int], Scalar] = {}
    for k in range(size):
        reciprocal = of_upper[k, k] = constant(1, a[0][0].dtype) / packed[k][k]
        for i in range(k):
            total = sum(
                (of_upper[i, m] * packed[m][k] for m in range(i + 1, k)),
                of_upper[i, i] * packed[i][k],
            )
            of_upper[i, k] = -(total * reciprocal)
        for i in range(k + 1, size):
            total = packed[i][k]
            for m in range(k + 1, i):
                total = total + packed[i][m] * of_lower[m, k]
            of_lower[i, k] = -total

    def element(i: int, j: int) -> Scalar:
        # L⁻¹ has ones on its diagonal.
        first = max(i, j)
        total = of_upper[i, j] if i <= j else of_upper[i, i] * of_lower[i, j]
        for m in range(first + 1, size):
            total = total + of_upper[i, m] * of_lower[m, j]
        return total

    columns = [[element(i, j) for i in range(size)] for j in range(size)]
    return _transposed(_exchanged(columns, exchanges, back=True))


# ---- determinants -------------------------------------------------------------------------------


def _sign(factors: _Factors) -> Scalar:
    """The sign of the permutation: each exchange changes it."""
    sign = constant(1, factors.packed[0][0].dtype)
    for conditions in factors.exchanges:
        if conditions:
            sign = where(functools.reduce(operator.or_, conditions), -sign, sign)
    return sign


def det(_site: Site, a: Matrix) -> Scalar:
    """The product of the pivots; it does not go out of range on the way if the result does not."""
    factors = _factored(_wide(a))
    product = _sign(factors)
    exponent = _zero(product)
    for pivot in factors.diagonal:
        pivot, exponent = _scaled(pivot, exponent)
        product, exponent = _scaled(product * pivot, exponent)
    up, down = _scales(product.dtype)
    for step in range(1, 4):
        shrunk = where(exponent <= -step, product * down, product)
        product = where(exponent >= step, product * up, shrunk)
    return where(product == 0, _zero(product), product)  # not -0


def _scales(dtype: Any) -> tuple[float, float]:
    """A power of 2 whose square is about the largest number, and its reciprocal."""
    power = (np.finfo(dtype).maxexp + 1) // 2
    return 2.0**power, 2.0**-power


def _scaled(x: Scalar, exponent: Scalar) -> tuple[Scalar, Scalar]:
    """A number whose square is in range, and the power of the scale that was divided out."""
    up, down = _scales(x.dtype)
    large, little = absolute(x) >= up, absolute(x) <= down
    scaled = where(large, x * down, where(little, x * up, x))
    return scaled, where(large, exponent + 1, where(little, exponent - 1, exponent))


def slogdet(_site: Site, a: Matrix) -> tuple[Scalar, Scalar]:
    """The sign of the determinant, and the logarithm of its absolute value."""
    factors = _factored(_wide(a))
    sign, zero = _sign(factors), _zero(factors.packed[0][0])
    logarithm = zero
    for pivot in factors.diagonal:
        sign = where(pivot < 0, -sign, sign)
        logarithm = logarithm + log(absolute(pivot))
    regular = _every([pivot != 0 for pivot in factors.diagonal])
    return where(regular, sign, zero), where(regular, logarithm, constant(-np.inf, zero.dtype))


def cofactors(_site: Site, a: Matrix) -> Matrix:
    """The determinants of all minors with their signs, which exist for singular matrices, too."""
    size, a = range(len(a)), _wide(a)

    @functools.cache
    def minor(rows: tuple[int, ...], columns: tuple[int, ...]) -> Scalar:
        if not rows:
            return constant(1, a[0][0].dtype)
        first, rest = rows[0], rows[1:]
        if not rest:
            return a[first][columns[0]]
        total: Scalar | None = None
        for n, column in enumerate(columns):
            term = a[first][column] * minor(rest, columns[:n] + columns[n + 1 :])
            total = term if total is None else total - term if n % 2 else total + term
        assert total is not None
        return total

    def cofactor(i: int, j: int) -> Scalar:
        found = minor(tuple(k for k in size if k != i), tuple(k for k in size if k != j))
        return -found if (i + j) % 2 else found

    return [[cofactor(i, j) for j in size] for i in size]


# ---- decompositions -----------------------------------------------------------------------------


def cholesky(site: Site, a: Matrix) -> Matrix:
    """The lower triangular L of A = L·Lᵀ; only the lower triangle is read."""
    message = said("cholesky", site.avals, "Matrix is not positive definite", DEFINITE)
    return _cholesky(site, _wide(a), message)


def _cholesky(site: Site, a: Matrix, message: str) -> Matrix:
    size = len(a)
    found = [[_zero(a[0][0]) for _ in range(size)] for _ in range(size)]
    positive = []
    for j in range(size):
        square = _dot(a[j][j], found[j][:j], found[j][:j])
        # LAPACK lets NaN pass.
        positive.append(~(square <= 0))
        root = sqrt(square)
        if j == size - 1:
            root = site.check(root, _every(positive), LinAlgError, message)
        found[j][j] = root
        for i in range(j + 1, size):
            found[i][j] = _dot(a[i][j], found[i][:j], found[j][:j]) / root
    return found


def lu_factor(_site: Site, a: Matrix) -> tuple[Matrix, Row]:
    """L and U in one matrix, and the pivots."""
    factors = _factored(a)
    return factors.packed, factors.pivots


def lu_order(site: Site, pivots: Row, rows: int, inverse: bool) -> Row:
    """Which row comes where after exchanges with pivots; or, inverted, where from."""
    order = [constant(k, INT64) for k in range(rows)]
    for k, pivot in enumerate(pivots):
        first = order[k]
        for j in range(rows):
            if j != k:
                order[k] = where(pivot == j, order[j], order[k])
        order = [x if j == k else where(pivot == j, first, x) for j, x in enumerate(order)]
    if inverse:
        places = [constant(0, INT64) for _ in range(rows)]
        for place, row in enumerate(order):
            places = [where(row == k, place, known) for k, known in enumerate(places)]
        order = places
    inside = _every([(pivot >= 0) & (pivot < rows) for pivot in pivots])
    message = f"lu_solve: got pivots out of bounds, expected rows from 0 to {rows - 1}"
    return [site.check(row, inside, ArgumentError, message) for row in order]


def qr(_site: Site, a: Matrix, mode: str) -> tuple[Matrix, Matrix]:
    """Q and R by Householder's reflections, with the signs of LAPACK."""
    rows, columns = len(a), len(a[0])
    a = _wide(a)
    reflections = []
    for k in range(min(columns, rows - 1)):
        vector, factor, length = _reflection([a[i][k] for i in range(k, rows)])
        reflections.append((vector, factor))
        a[k][k] = length
        for i in range(k + 1, rows):
            a[i][k] = _zero(length)
        for j in range(k + 1, columns):
            _reflect(a, k, j, vector, factor)
    zero, one = _zero(a[0][0]), constant(1, a[0][0].dtype)
    q = [[one if i == j else zero for j in range(columns)] for i in range(rows)]
    for k, (vector, factor) in reversed(list(enumerate(reflections))):
        for j in range(k, columns):
            _reflect(q, k, j, vector, factor)
    return q, [[a[i][j] if i <= j else zero for j in range(columns)] for i in range(columns)]


def _reflection(x: Row) -> tuple[Row, Scalar, Scalar]:
    """v, τ and β with (1 − τ·v·vᵀ)·x = β·e₁; v begins with 1. τ = 0 if x is β·e₁ already."""
    first, rest = x[0], x[1:]
    one, zero = constant(1, first.dtype), _zero(first)
    # Squares of scaled numbers do not overflow.
    scale = functools.reduce(maximum, [absolute(y) for y in x])
    safe = where(scale == 0, one, scale)
    scaled = [y / safe for y in x]
    squares = functools.reduce(operator.add, [y * y for y in scaled])
    length = -copysign(safe * sqrt(squares), first)
    plain = functools.reduce(maximum, [absolute(y) for y in rest]) == 0
    difference = where(plain, one, first - length)
    vector = [one, *(y / difference for y in rest)]
    factor = where(plain, zero, (length - first) / where(plain, one, length))
    return vector, factor, where(plain, first, length)


def _reflect(a: Matrix, k: int, column: int, vector: Row, factor: Scalar) -> None:
    """Apply a reflection, which begins at row k, to a column, in place."""
    along = a[k][column]
    for n, v in enumerate(vector[1:], k + 1):
        along = along + v * a[n][column]
    along = factor * along
    a[k][column] = a[k][column] - along
    for n, v in enumerate(vector[1:], k + 1):
        a[n][column] = a[n][column] - v * along
