"""Polynomials by their coefficients, the highest power first, as in `np.polyval`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array, as_shape
from gradtape.ops.arrays.known import values_of
from gradtape.ops.arrays.windows import convolve
from gradtape.ops.cast import astype, real
from gradtape.ops.checks import check_axes, check_least, check_same_shape
from gradtape.ops.cumulative import cumprod
from gradtape.ops.exponential import sqrt
from gradtape.ops.index import getitem, part_of
from gradtape.ops.inspection import result_type
from gradtape.ops.join import concatenate, stack
from gradtape.ops.like import ones_like, zeros_like
from gradtape.ops.linalg.eig import eigvals
from gradtape.ops.linalg.lstsq import lstsq
from gradtape.ops.linalg.solve import inv
from gradtape.ops.pad import pad_constant
from gradtape.ops.reduce import floats, sum as sum_of
from gradtape.ops.shape import atleast_1d, broadcast_to, expand_dims, squeeze
from gradtape.typing import Array, ArrayLike


def _coefficients(p: ArrayLike, name: str) -> Array:
    p = atleast_1d(as_array(p))
    check_axes(name, p, 1, what="coefficients")
    return p


# ---- values -------------------------------------------------------------------------------------


def polyval(p: ArrayLike, x: ArrayLike, /) -> Array:
    """The values of a polynomial, by Horner's rule.

    Args:
        p: Its coefficients, the highest power first.
        x: Where to evaluate it.

    Raises:
        ShapeError: The coefficients have several axes.

    >>> gt.polyval(np.array([1.0, 0.0, -1.0]), np.array([2.0, 3.0]))
    array([3., 8.])
    """
    p, x = _coefficients(p, "polyval"), as_array(x)
    value = zeros_like(x)
    for i in range(p.shape[0]):
        value = value * x + getitem(p, i)
    return value


def vander(x: ArrayLike, /, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix whose columns are powers of a vector.

    Args:
        x: The vector.
        N: How many columns; as many as elements if not given.
        increasing: Whether powers rise from left to right.

    Raises:
        ShapeError: `x` has not one axis.

    >>> gt.vander(np.array([1.0, 2.0, 3.0]), 2)
    array([[1., 1.],
           [2., 1.],
           [3., 1.]])
    """
    x = as_array(x)
    check_axes("vander", x, 1)
    (count,) = as_shape(x.shape[0] if N is None else N, "vander")
    x = astype(x, result_type(x.dtype, np.int_), copy=False)
    column = expand_dims(x, 1)
    factors = [ones_like(column), broadcast_to(column, (x.shape[0], max(count - 1, 0)))]
    powers = cumprod(part_of(concatenate(factors, 1), 0, count), 1)
    return powers if increasing else part_of(powers, None, None, -1)


# ---- arithmetic ---------------------------------------------------------------------------------


def _aligned(p: ArrayLike, q: ArrayLike, name: str) -> list[Array]:
    """Both with equally many coefficients, by zeros before the shorter ones."""
    both = [_coefficients(p, name), _coefficients(q, name)]
    size = max(one.shape[0] for one in both)
    return [pad_constant(one, widths=((size - one.shape[0], 0),), fill=0) for one in both]


def polyadd(p: ArrayLike, q: ArrayLike, /) -> Array:
    """The coefficients of the sum of two polynomials.

    >>> gt.polyadd(np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0]))
    array([3., 5., 7.])
    """
    return operator.add(*_aligned(p, q, "polyadd"))


def polysub(p: ArrayLike, q: ArrayLike, /) -> Array:
    """The coefficients of the difference of two polynomials.

    >>> gt.polysub(np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0]))
    array([-3., -3., -3.])
    """
    return operator.sub(*_aligned(p, q, "polysub"))


def polymul(p: ArrayLike, q: ArrayLike, /) -> Array:
    """The coefficients of the product of two polynomials; leading zeros stay, unlike in NumPy.

    >>> gt.polymul(np.array([1.0, 2.0]), np.array([1.0, -2.0]))
    array([ 1.,  0., -4.])
    """
    return convolve(_coefficients(p, "polymul"), _coefficients(q, "polymul"))


def polydiv(u: ArrayLike, v: ArrayLike, /) -> tuple[Array, Array]:
    """The quotient of two polynomials, and the remainder without leading zeros.

    Args:
        u: What to divide.
        v: What to divide it by.

    Returns:
        The coefficients of both.

    Raises:
        ConversionError: The values are not known, inside of `jit` or `vmap`: they tell the size.

    >>> gt.polydiv(np.array([3.0, 5.0, 2.0]), np.array([2.0, 1.0]))
    (array([1.5 , 1.75]), array([0.25]))
    """
    u, v = (floats(_coefficients(one, "polydiv")) for one in (u, v))
    dtype = result_type(u.dtype, v.dtype)
    rest, v = astype(u, dtype, copy=False), astype(v, dtype, copy=False)
    n, m = rest.shape[0], v.shape[0]
    scale = 1.0 / getitem(v, 0)
    found = []
    for k in range(n - m + 1):
        factor = scale * getitem(rest, k)
        found.append(factor)
        rest = rest - pad_constant(factor * v, widths=((k, n - m - k),), fill=0)
    quotient = stack(found) if found else zeros_like(part_of(v, 0, 1))
    large = [not np.allclose(value, 0, rtol=1e-14) for value in values_of(rest)[:-1]]
    return quotient, part_of(rest, [*large, True].index(True))


# ---- derivatives and integrals ------------------------------------------------------------------


def polyder(p: ArrayLike, /, m: int = 1) -> Array:
    """The coefficients of the derivative of a polynomial.

    Args:
        p: Its coefficients, the highest power first.
        m: How many times to differentiate it.

    Raises:
        ArgumentError: `m` is negative.

    >>> gt.polyder(np.array([1.0, 2.0, 3.0]))
    array([2., 2.])
    """
    check_least("polyder", 0, m=m)
    p = _coefficients(p, "polyder")
    for _ in range(m):
        p = part_of(p, None, -1) * np.arange(p.shape[0] - 1, 0, -1)
    return p


def polyint(p: ArrayLike, /, m: int = 1, k: ArrayLike = None) -> Array:
    """The coefficients of an antiderivative of a polynomial.

    Args:
        p: Its coefficients, the highest power first.
        m: How many times to integrate it.
        k: The constants of integration: a number, or one for each time; 0 if not given.

    Raises:
        ArgumentError: `m` is negative.
        ShapeError: There are fewer constants than `m`.

    >>> gt.polyint(np.array([2.0, 2.0]))
    array([1., 2., 0.])
    """
    check_least("polyint", 0, m=m)
    p = _coefficients(p, "polyint")
    constants = atleast_1d(as_array(0.0 if k is None else k))
    if constants.shape[0] == 1 and m > 1:
        constants = broadcast_to(constants, (m,))
    if len(constants.shape) != 1 or constants.shape[0] < m:
        raise ShapeError(f"polyint: got k of shape {constants.shape}, expected {m} constants")
    for i in range(m):
        rising = p / np.arange(p.shape[0], 0, -1)
        p = concatenate([rising, part_of(constants, i, i + 1)])
    return p


# ---- roots --------------------------------------------------------------------------------------


def poly(zeros: ArrayLike, /) -> Array:
    """The coefficients of the polynomial with given zeros, or of that of a matrix's eigenvalues.

    Args:
        zeros: The zeros, or a square matrix.

    Raises:
        ShapeError: It is neither a vector nor a square matrix.
        ConversionError: The zeros are complex and not known, inside of `jit` or `vmap`: whether
            they are pairs of conjugate numbers tells the dtype.

    >>> gt.poly(np.array([1.0, 2.0]))
    array([ 1., -3.,  2.])
    """
    zeros = atleast_1d(as_array(zeros))
    if len(zeros.shape) == 2 and zeros.shape[0] == zeros.shape[1] and zeros.shape[0]:
        zeros = eigvals(zeros)
    if len(zeros.shape) != 1:
        raise ShapeError(f"poly: got shape {zeros.shape}, expected zeros, or a square matrix")
    if zeros.dtype.kind in "biu" or zeros.dtype == np.float16:
        zeros = astype(zeros, np.float64)
    out = ones_like(zeros, shape=1)
    for i in range(zeros.shape[0]):
        out = convolve(out, concatenate([ones_like(zeros, shape=1), -part_of(zeros, i, i + 1)]))
    if zeros.dtype.kind == "c":
        known = values_of(zeros)
        if np.all(np.sort(known) == np.sort(known.conj())):  # pairs of conjugate zeros
            return real(out)
    return out


def roots(p: ArrayLike, /) -> Array:
    """The zeros of a polynomial, as eigenvalues of its companion matrix.

    Args:
        p: Its coefficients, the highest power first.

    Raises:
        ShapeError: The coefficients have several axes.
        ConversionError: The values are not known, inside of `jit` or `vmap`: how many zeros there
            are depends on them.

    >>> np.sort(gt.roots(np.array([1.0, -3.0, 2.0])).real)
    array([1., 2.])
    """
    p = _coefficients(p, "roots")
    there = np.flatnonzero(values_of(p))
    if there.size == 0:
        return part_of(p, 0, 0)
    at_zero = p.shape[0] - there[-1] - 1
    p = floats(part_of(p, int(there[0]), int(there[-1]) + 1))
    n = p.shape[0]
    if n < 2:
        return zeros_like(p, shape=int(at_zero))
    top = -part_of(p, 1) / getitem(p, 0)
    below = np.eye(n - 2, n - 1, dtype=p.dtype)
    found = eigvals(concatenate([expand_dims(top, 0), below]))
    return concatenate([found, zeros_like(found, shape=int(at_zero))]) if at_zero else found


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    /,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike = None,
    cov: bool | str = False,
) -> Any:
    """The coefficients of the polynomial nearest to samples, in the sense of least squares.

    Args:
        x: Where the samples were taken.
        y: The samples; several data sets are the columns of a matrix.
        deg: The degree of the polynomial.
        rcond: Singular values below this, relative to the largest, count as 0.
        full: Whether to return, after the coefficients, the sums of squared residuals, the
            rank and the singular values of the scaled matrix of powers, and `rcond`.
        w: Weights of the samples; differentiable as well.
        cov: Whether the covariance matrix is returned as well; "unscaled" for weights that are the
            inverse of known errors. Not together with `full`.

    Raises:
        ShapeError: The shapes do not fit.
        ArgumentError: `deg` is negative.

    >>> gt.polyfit(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]), 1).round(6)
    array([2., 1.])
    """
    x, y = (floats(as_array(one)) for one in (x, y))
    check_least("polyfit", 0, deg=deg)
    check_axes("polyfit", x, 1, what="x")
    check_axes("polyfit", y, least=1, most=2, what="y")
    if not x.shape[0] or x.shape[0] != y.shape[0]:
        raise ShapeError(f"polyfit: got x {x.shape} and y {y.shape}, expected samples at every x")
    single = len(y.shape) == 1
    powers, samples = vander(x, deg + 1), expand_dims(y, 1) if single else y
    if w is not None:
        w = floats(as_array(w))
        check_same_shape("polyfit", w=w, x=x)
        powers, samples = powers * expand_dims(w, 1), samples * expand_dims(w, 1)
    scale = sqrt(sum_of(powers * powers, axis=0))
    powers = powers / scale
    rcond = x.shape[0] * float(np.finfo(x.dtype).eps) if rcond is None else rcond
    scaled, *further = lstsq(powers, samples, rcond=rcond)
    found = scaled / expand_dims(scale, 1)
    found = squeeze(found, 1) if single else found
    if full:
        return found, *further, rcond
    if not cov:
        return found
    inverse = inv(powers.T @ powers) / (expand_dims(scale, 1) * scale)
    factor: Any = 1
    if cov != "unscaled":
        spare = x.shape[0] - (deg + 1)
        if spare <= 0:
            raise ShapeError(f"polyfit: got {x.shape[0]} samples, expected more for cov=True")
        left = samples - powers @ scaled
        factor = sum_of(left * left, axis=0) / spare
    return found, (inverse if single else expand_dims(inverse, 2)) * factor
