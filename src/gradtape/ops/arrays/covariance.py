"""The spread of elements: their range, covariances and correlations."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.weights import average
from gradtape.ops.cast import astype, conj, imag, real
from gradtape.ops.checks import check_axes
from gradtape.ops.diagonal import diag
from gradtape.ops.exponential import sqrt
from gradtape.ops.join import concatenate
from gradtape.ops.matmul import matmul
from gradtape.ops.reduce import NO_AXIS, REDUCTIONS, max as max_of, min as min_of, sum as sum_of
from gradtape.ops.select import clip, maximum
from gradtape.ops.shape import atleast_2d, expand_dims, squeeze, transpose
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis


@options(REDUCTIONS, raises=NO_AXIS)
def ptp(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """The largest element less the smallest one, over all or the given axes.

    Args:
        x: Where to look.

    Raises:
        ShapeError: There are no elements.

    >>> gt.ptp(np.array([3.0, 1.0, 7.0]))
    np.float64(6.0)
    """
    return max_of(x, axis, keepdims=keepdims) - min_of(x, axis, keepdims=keepdims)


# ---- covariance ---------------------------------------------------------------------------------


def _variables(x: Any, rowvar: bool, dtype: Any, *, further: bool) -> Any:
    """The variables as rows of a matrix; a single row of `further` ones stays one, as in NumPy."""
    check_axes("cov", x, most=2)
    rows = atleast_2d(astype(x, dtype, copy=False))
    single = rows.shape[0] == 1 if further else len(x.shape) < 2
    return rows if rowvar or single else transpose(rows)


def _weights(fweights: ArrayLike, aweights: ArrayLike, count: int) -> Any:
    """The product of both kinds of weights, or None."""
    weights = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        given = as_array(given)
        if given.shape != (count,):
            raise ShapeError(f"cov: got {name} of shape {given.shape}, expected ({count},)")
        if not isinstance(given, Tensor):
            if (given < 0).any():
                raise ArgumentError(f"cov: got negative {name}, expected numbers from 0 on")
            if name == "fweights" and (given != np.rint(given)).any():
                raise ArgumentError("cov: got fweights that are no counts, expected whole numbers")
        given = astype(given, np.float64, copy=False)
        weights = given if weights is None else weights * given
    return weights


def _freedom(weights: Any, aweights: ArrayLike, count: int, total: Any, ddof: int) -> Any:
    """The divisor of the products."""
    if weights is None:
        return count - ddof
    if aweights is None:
        return total - ddof
    return total - ddof * sum_of(weights * as_array(aweights)) / total


def cov(
    m: ArrayLike,
    y: ArrayLike = None,
    /,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike = None,
    aweights: ArrayLike = None,
    *,
    dtype: Any = None,
) -> Array:
    """Covariances of variables, estimated from observations.

    Args:
        m: The variables, one in each row.
        y: Further variables.
        rowvar: Whether variables are rows; if not, they are columns.
        bias: Whether to divide by the number of observations, and not by one less.
        ddof: Subtracted from the number of observations to divide by; overrides `bias`.
        fweights: How often each observation was made.
        aweights: How much each observation counts.
        dtype: The dtype of the result; float64 at least by default.

    Raises:
        ShapeError: The shapes do not fit.
        ArgumentError: `ddof` or `fweights` are no whole numbers, or a weight is negative.

    >>> gt.cov(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    if ddof is not None and ddof != int(ddof):
        raise ArgumentError(f"cov: got ddof={ddof}, expected a whole number")
    less = (0 if bias else 1) if ddof is None else int(ddof)
    variables = [as_array(m)] if y is None else [as_array(m), as_array(y)]
    if dtype is None:
        dtype = np.result_type(*(x.dtype for x in variables), np.float64)
    variables = [_variables(x, rowvar, dtype, further=i > 0) for i, x in enumerate(variables)]
    rows = variables[0] if y is None else concatenate(variables, 0)
    count = rows.shape[1]
    weights = _weights(fweights, aweights, count)
    mean, totals = average(rows, 1, weights, returned=True)
    around = rows - expand_dims(mean, 1)
    freedom = _freedom(weights, aweights, count, real(totals[0]) if len(rows) else count, less)
    weighted = around if weights is None else around * weights
    products = matmul(around, transpose(conj(weighted)))
    # With too few observations this is a division by zero, as in NumPy.
    if isinstance(freedom, int):
        return squeeze(products / max(freedom, 0))
    return squeeze(products / astype(maximum(freedom, 0), real(products).dtype, copy=False))


def corrcoef(
    x: ArrayLike, y: ArrayLike = None, /, rowvar: bool = True, *, dtype: Any = None
) -> Array:
    """Correlation coefficients of variables: covariances divided by standard deviations.

    Args:
        x: The variables, one in each row.
        y: Further variables.
        rowvar: Whether variables are rows; if not, they are columns.
        dtype: The dtype of the result; float64 at least by default.

    Raises:
        ShapeError: The shapes do not fit.

    >>> gt.corrcoef(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    products = cov(x, y, rowvar, dtype=dtype)
    if len(products.shape) == 0:
        return products / products
    deviation = sqrt(real(diag(products)))
    out = products / expand_dims(deviation, 1) / expand_dims(deviation, 0)
    if out.dtype.kind != "c":
        return clip(out, -1, 1)
    return clip(real(out), -1, 1) + 1j * clip(imag(out), -1, 1)
