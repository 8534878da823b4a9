"""Polynomials through points: `BarycentricInterpolator` and `KroghInterpolator`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ConversionError, ShapeError, UnsupportedError
from gradtape.ops.arguments import normalize_axis
from gradtape.ops.cast import stop_gradient
from gradtape.ops.checks import check_axes
from gradtape.ops.cumulative import cumprod
from gradtape.ops.join import concatenate, stack
from gradtape.ops.product import prod
from gradtape.ops.rearrange import flip
from gradtape.ops.reduce import max as max_of, min as min_of, sum as sum_of
from gradtape.ops.shape import moveaxis, reshape
from gradtape.ops.which import all as all_of
from gradtape.solvers.interpolate.arguments import (
    arranged,
    holds_tensor,
    numbers,
    real_numbers,
)
from gradtape.solvers.interpolate.interpolator import Interpolator, scipys
from gradtape.solvers.require import required


class BarycentricInterpolator(Interpolator):
    """The polynomial through points, as `scipy.interpolate.BarycentricInterpolator`.

    It is differentiable in values, in nodes and in points, at nodes, too.

    Args:
        xi: The nodes, in any order.
        yi: The values there.
        axis: The axis of `yi` along which the nodes are.
        wi: The barycentric weights, if they are known.
        rng: Without tensors: the order in which SciPy multiplies.

    Attributes:
        xi: The nodes.
        yi: The values.

    Raises:
        ShapeError: Shapes do not fit.
        UnsupportedError: With tensors: there are no values yet.

    >>> def at(p):
    ...     return gt.scipy.interpolate.BarycentricInterpolator([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])(p)
    >>> gt.grad(at)(1.0)
    np.float64(2.0)
    """

    def __init__(
        self, xi: Any, yi: Any = None, axis: int = 0, *, wi: Any = None, rng: Any = None
    ) -> None:
        if not holds_tensor(xi, yi, wi):
            self._hold(xi, yi, axis, wi=wi, **({} if rng is None else {"rng": rng}))
            return
        name = type(self).__name__
        if yi is None:
            raise UnsupportedError(
                f"{name}: got no yi where there are tensors, expected values; they cannot be "
                "set later"
            )
        xi = real_numbers(name, "xi", xi)
        check_axes(name, xi, 1, what="xi")
        yi, axis = _along(name, xi, yi, axis)
        weights = None if wi is None else real_numbers(name, "wi", wi)
        self.__dict__.update(xi=xi, yi=yi, _axis=axis, wi=weights)

    def __call__(self, x: Any) -> Any:
        """Values at points.

        Args:
            x: The points.

        Returns:
            An array in which the axes of `x` take the place of the axis of the nodes.
        """
        if not holds_tensor(x, self):
            return self._scipy(x)
        return self._derivatives(x, [0])[0]

    def derivative(self, x: Any, der: int = 1) -> Any:
        """Values of a derivative at points.

        Args:
            x: The points.
            der: Which derivative.
        """
        if not holds_tensor(x, self):
            return self._scipy.derivative(x, der)
        return self._derivatives(x, [der])[0]

    def derivatives(self, x: Any, der: int | None = None) -> Any:
        """The values and derivatives at points, along a new first axis.

        Args:
            x: The points.
            der: How many; as many as there are nodes if it is None.
        """
        if not holds_tensor(x, self):
            return self._scipy.derivatives(x, der)
        return stack(self._derivatives(x, range(len(self.xi) if der is None else der)))

    def _derivatives(self, x: Any, orders: Sequence[int]) -> list[Any]:
        name = type(self).__name__
        if self.holds_tensor:
            xi, yi, axis, wi = self.xi, self.yi, self._axis, self.wi
        else:
            found = self._scipy
            if found.yi is None:
                raise ArgumentError(f"{name}: got no yi yet, expected set_yi to be called first")
            xi, wi, axis = found.xi, found.wi, found._y_axis
            yi = np.reshape(found.yi, (-1, *found._y_extra_shape))
        x = real_numbers(name, "x", x)
        weights = _weights(name, xi) if wi is None else wi
        slopes = _differentiation(xi, weights) if max(orders) else None
        out, values = [], reshape(yi, (yi.shape[0], math.prod(yi.shape[1:])))
        for order in range(max(orders) + 1):
            if order:
                values = slopes @ values
            if order in orders:
                rows = _basis(xi, weights, reshape(x, (-1, 1))) @ values
                shaped = reshape(rows, (*x.shape, *yi.shape[1:]))
                out.append(arranged(shaped, len(x.shape), axis))
        return out


def _spread(xi: Any) -> Any:
    """The divisor of distances: in an interval of length 4 their products do not overflow."""
    return stop_gradient(max_of(xi) - min_of(xi)) / 4.0 if xi.shape[0] > 1 else np.float64(1.0)


def _weights(name: str, xi: Any) -> Any:
    """1/Π (xⱼ − xₘ) over m ≠ j."""
    between = (xi[:, None] - xi) / _spread(xi) + np.eye(xi.shape[0])
    fine = all_of(stop_gradient(between) != 0)
    text = f"{name}: got nodes that are equal, expected different ones; use KroghInterpolator"
    return 1.0 / prod(required(between, fine, text), axis=1)


def _basis(xi: Any, wi: Any, x: Any) -> Any:
    """Rows lⱼ(x)/Σ lⱼ(x), lⱼ = wⱼ·Π (x − xₘ) over m ≠ j: nothing is divided by x − xⱼ."""
    away = (x - xi) / _spread(xi)
    ones = np.ones((away.shape[0], 1))
    before = cumprod(concatenate([ones, away[:, :-1]], axis=1), axis=1)
    after = flip(cumprod(concatenate([ones, flip(away[:, 1:], 1)], axis=1), axis=1), 1)
    parts = wi * before * after
    return parts / sum_of(parts, axis=1, keepdims=True)


def _differentiation(xi: Any, wi: Any) -> Any:
    """The matrix that takes values at nodes to those of the derivative: wⱼ/(wᵢ·(xᵢ − xⱼ))."""
    one = np.eye(xi.shape[0])
    others = (1.0 - one) * wi / (wi[:, None] * (xi[:, None] - xi + one))
    return others - one * sum_of(others, axis=1, keepdims=True)


class KroghInterpolator(Interpolator):
    """The polynomial with given values, and derivatives where nodes are repeated, as SciPy's.

    It is differentiable in values and in points.

    Args:
        xi: The nodes, plain numbers; those that are equal stand side by side.
        yi: The values there; where a node is repeated, its first, second … derivative.
        axis: The axis of `yi` along which the nodes are.

    Attributes:
        xi: The nodes.
        yi: The values.

    Raises:
        ShapeError: Shapes do not fit.
        UnsupportedError: The nodes are being differentiated.

    >>> def at(p):
    ...     return gt.scipy.interpolate.KroghInterpolator([0.0, 0.0, 1.0], [0.0, 2.0, 1.0])(p)
    >>> gt.grad(at)(0.0)
    np.float64(2.0)
    """

    def __init__(self, xi: Any, yi: Any, axis: int = 0) -> None:
        if not holds_tensor(xi, yi):
            self._hold(xi, yi, axis)
            return
        name = type(self).__name__
        try:
            nodes = np.asarray(xi, np.float64)
        except (ConversionError, TypeError) as error:
            raise UnsupportedError(
                f"{name}: got xi that are being differentiated, mapped or traced, expected plain "
                "numbers, as nodes may be equal; use BarycentricInterpolator"
            ) from error
        check_axes(name, nodes, 1, what="xi")
        yi, axis = _along(name, nodes, yi, axis)
        self.__dict__.update(xi=nodes, yi=yi, _axis=axis, c=_newton(nodes, yi))

    def __call__(self, x: Any) -> Any:
        """Values at points.

        Args:
            x: The points.

        Returns:
            An array in which the axes of `x` take the place of the axis of the nodes.
        """
        if not holds_tensor(x, self):
            return self._scipy(x)
        return self._derivatives(x, 1)[0]

    def derivative(self, x: Any, der: int = 1) -> Any:
        """Values of a derivative at points.

        Args:
            x: The points.
            der: Which derivative.
        """
        if not holds_tensor(x, self):
            return self._scipy.derivative(x, der)
        return self._derivatives(x, der + 1)[der]

    def derivatives(self, x: Any, der: int | None = None) -> Any:
        """The values and derivatives at points, along a new first axis.

        Args:
            x: The points.
            der: How many; as many as there are nodes if it is None.
        """
        if not holds_tensor(x, self):
            return self._scipy.derivatives(x, der)
        return stack(self._derivatives(x, len(self.xi) if der is None else der))

    def _derivatives(self, x: Any, count: int) -> list[Any]:
        """The value and the next derivatives, by Horner's rule for all of them at once."""
        x = real_numbers(type(self).__name__, "x", x)
        if self.holds_tensor:
            xi, c, axis = self.xi, self.c, self._axis
        else:
            found = self._scipy
            xi, axis = found.xi, found._y_axis
            c = np.reshape(found.c, (-1, *found._y_extra_shape))
        place = reshape(x, (*x.shape, *(1,) * (len(c.shape) - 1)))
        # Divided by n!, the n-th derivative of q·(x − ξ) + c is q⁽ⁿ⁾·(x − ξ) + q⁽ⁿ⁻¹⁾.
        rows: list[Any] = [c[-1] + 0.0 * place] + [0.0 * c[-1] + 0.0 * place] * (count - 1)
        for m in reversed(range(c.shape[0] - 1)):
            step = place - xi[m]
            rows = [rows[0] * step + c[m]] + [rows[n] * step + rows[n - 1] for n in range(1, count)]
        scaled = (math.factorial(n) * row for n, row in enumerate(rows))
        return [arranged(row, len(x.shape), axis) for row in scaled]


def _newton(xi: Any, yi: Any) -> Any:
    """Divided differences, in which repeated nodes have derivatives for values."""
    size = xi.shape[0]
    first = [int(np.argmax(xi[: n + 1] == xi[n])) for n in range(size)]
    table = [yi[n] for n in first]
    c = [table[0]]
    for order in range(1, size):
        found = []
        for n in range(size - order):
            width = xi[n + order] - xi[n]
            if width:
                found.append((table[n + 1] - table[n]) / width)
            else:
                found.append(yi[first[n] + order] / math.factorial(order))
        table = found
        c.append(table[0])
    return stack(c)


def _along(name: str, xi: Any, yi: Any, axis: int) -> tuple[Any, int]:
    yi = numbers(name, "yi", yi)
    axis = normalize_axis(axis, len(yi.shape), name)
    if yi.shape[axis] != xi.shape[0]:
        raise ShapeError(
            f"{name}: got yi of shape {yi.shape} for {xi.shape[0]} nodes, expected as many along "
            f"axis {axis}"
        )
    return moveaxis(yi, axis, 0), axis


def barycentric_interpolate(
    xi: Any, yi: Any, x: Any, axis: int = 0, *, der: Any = 0, rng: Any = None
) -> Any:
    """Values of the polynomial through points, as `scipy.interpolate.barycentric_interpolate`.

    Args:
        xi: The nodes, in any order.
        yi: The values there.
        x: Where to evaluate.
        axis: The axis of `yi` along which the nodes are.
        der: Which derivative, or a list of several.
        rng: Without tensors: the order in which SciPy multiplies.

    >>> def at(p):
    ...     return gt.scipy.interpolate.barycentric_interpolate([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], p)
    >>> gt.grad(at)(0.5)
    np.float64(1.0)
    """
    if not holds_tensor(xi, yi, x):
        options = {} if rng is None else {"rng": rng}
        return scipys("barycentric_interpolate")(xi, yi, x, axis, der=der, **options)
    return _chosen(BarycentricInterpolator(xi, yi, axis), x, der)


def krogh_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """Values of the polynomial through points, as `scipy.interpolate.krogh_interpolate`.

    Args:
        xi: The nodes, plain numbers; those that are equal stand side by side.
        yi: The values there; where a node is repeated, its first, second … derivative.
        x: Where to evaluate.
        der: Which derivative, or a list of several.
        axis: The axis of `yi` along which the nodes are.

    >>> def at(p):
    ...     return gt.scipy.interpolate.krogh_interpolate([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], p)
    >>> gt.grad(at)(0.5)
    np.float64(1.0)
    """
    if not holds_tensor(xi, yi, x):
        return scipys("krogh_interpolate")(xi, yi, x, der, axis)
    return _chosen(KroghInterpolator(xi, yi, axis), x, der)


def _chosen(found: Any, x: Any, der: Any) -> Any:
    """One derivative, or a list of them."""
    if isinstance(der, list | tuple | np.ndarray):
        rows = found.derivatives(x, max(int(n) for n in der) + 1)
        return stack([rows[int(n)] for n in der])
    return found.derivative(x, int(der)) if der else found(x)
