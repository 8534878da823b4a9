"""Arguments of interpolators: knots, values at them, points where they are evaluated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.checks import check_axes
from gradtape.ops.comparison import isfinite
from gradtape.ops.joined import holds_tensor as tensor_in, joined
from gradtape.ops.shape import moveaxis, reshape, transpose
from gradtape.ops.which import all as all_of
from gradtape.solvers.require import required


def holds_tensor(*values: Any) -> bool:
    """Whether a value is or holds a tensor, or is an interpolator of tensors."""
    return any(tensor_in(x) or getattr(x, "holds_tensor", None) is True for x in values)


def array_of(values: Any) -> Any:
    """Values as an array; a list in which there are tensors is joined."""
    return as_array(joined(values))


def numbers(name: str, what: str, values: Any) -> Any:
    """Real or complex numbers in double precision."""
    values = array_of(values)
    kind = np.dtype(values.dtype).kind
    if kind not in "biufcV":  # V: floats that NumPy does not know
        raise DTypeError(f"{name}: got {what} of {values.dtype}, expected numbers")
    return astype(values, np.complex128 if kind == "c" else np.float64, copy=False)


def real_numbers(name: str, what: str, values: Any) -> Any:
    """Real numbers in double precision."""
    values = numbers(name, what, values)
    if values.dtype.kind == "c":
        raise ArgumentError(f"{name}: got complex {what}, expected real numbers")
    return values


def finite(name: str, what: str, values: Any) -> Any:
    """The same values, if there is no NaN and no infinity among them."""
    text = f"{name}: got {what} with NaN or infinity, expected finite values"
    return required(values, all_of(isfinite(stop_gradient(values))), text)


def differences(x: Any) -> Any:
    """Differences of neighbours along the first axis."""
    return x[1:] - x[:-1]


def knots(name: str, x: Any, *, least: int = 2, what: str = "x", strict: bool = True) -> Any:
    """Real numbers in a vector, checked to be finite and in rising order."""
    x = real_numbers(name, what, x)
    check_axes(name, x, 1, what=what)
    if x.shape[0] < least:
        raise ShapeError(f"{name}: got {x.shape[0]} elements in {what}, expected at least {least}")
    x = finite(name, what, x)
    steps = differences(stop_gradient(x))
    order = "strictly increasing" if strict else "in rising order"
    condition = all_of(steps > 0 if strict else steps >= 0)
    text = f"{name}: got {what} that is not {order}, expected sorted numbers"
    return required(x, condition, text)


def samples(name: str, x: Any, y: Any, axis: Any, what: str = "y") -> tuple[Any, int]:
    """Values at the knots, with their axis first, and the number of that axis."""
    y = numbers(name, what, y)
    axis = normalize_axis(axis, len(y.shape), name)
    if y.shape[axis] != x.shape[0]:
        raise ShapeError(
            f"{name}: got {what} of shape {y.shape} for {x.shape[0]} numbers in x, expected as "
            f"many along axis {axis}"
        )
    return finite(name, what, moveaxis(y, axis, 0)), axis


def beside_rows(x: Any, ndim: int) -> Any:
    """A vector with axes of size 1 after its own, so that it multiplies the rows of an array."""
    return reshape(x, (x.shape[0],) + (1,) * (ndim - 1))


def as_columns(y: Any) -> Any:
    """An array as a matrix with the same first axis."""
    return reshape(y, (y.shape[0], math.prod(y.shape[1:])))


def arranged(out: Any, ndim: int, axis: int) -> Any:
    """Axes of points moved to where the axis of the knots was.

    Args:
        out: Values, with the axes of points first.
        ndim: How many axes the points have.
        axis: The number of the axis that they replace.
    """
    if not axis or not ndim:
        return out
    order = list(range(len(out.shape)))
    return transpose(out, order[ndim : ndim + axis] + order[:ndim] + order[ndim + axis :])
