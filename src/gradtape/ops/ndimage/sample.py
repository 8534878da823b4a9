"""Splines at coordinates, and the transpose: numbers at coordinates spread over coefficients.

The value at a point is a sum over (order + 1)ⁿ neighbours of coefficients times B-splines. With
`derivative`, how often it is differentiated along each axis, both ops give their own derivatives.
Arrays are stacks: coefficients (…, *shape), coordinates (…, n, points), numbers (…, points).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.call import call
from gradtape.core.define import added, broadcast_sizes, general, unbroadcast
from gradtape.core.op import Op, op_of
from gradtape.ops.arguments import Batch
from gradtape.ops.cast import conj_if_complex, real
from gradtape.ops.index import getitem
from gradtape.ops.join import stack
from gradtape.ops.linalg.stacks import batch_first

Derivative = tuple[int, ...]

# ---- B-splines ----------------------------------------------------------------------------------


@functools.cache
def _pieces(order: int, derivative: int) -> list[Any]:
    """The polynomials of the order + 1 splines that are not 0 on an interval from 0 to 1."""
    pieces = [np.polynomial.Polynomial([1.0])]
    for p in range(1, order + 1):
        none = np.polynomial.Polynomial([0.0])
        before, after = [none, *pieces], [*pieces, none]
        pieces = [
            (np.polynomial.Polynomial([p - j, 1.0]) * before[j]
             + np.polynomial.Polynomial([j + 1.0, -1.0]) * after[j]) / p
            for j in range(p + 1)
        ]  # fmt: skip
    return [piece.deriv(derivative) if derivative else piece for piece in pieces]


def _mapped(c: Any, n: int, mode: str) -> tuple[Any, Any]:
    """Coordinates mapped into the array, and the derivative of that map: 1, -1 or 0."""
    if mode in ("constant", "grid-constant", "nearest"):
        return c, np.ones_like(c)
    if n == 1:
        return np.zeros_like(c), np.zeros_like(c)
    if mode == "grid-wrap":
        return np.mod(c, n), np.ones_like(c)
    if mode == "wrap":
        period = n - 1
        before = c + period * (np.floor(-c / period) + 1)
        after = c - period * np.floor(c / period)
        return np.where(c < 0, before, np.where(c > n - 1, after, c)), np.ones_like(c)
    shift, period = (0.0, 2 * n - 2) if mode == "mirror" else (0.5, 2 * n)
    place = np.mod(c + shift, period)
    back = place > period / 2
    return np.where(back, period - place, place) - shift, np.where(back, -1.0, 1.0)


def _neighbour(index: Any, n: int, mode: str) -> tuple[Any, Any]:
    """Coefficients that stand for those beyond the ends, and where one exists (None: all)."""
    if mode == "grid-constant":
        inside = (index >= 0) & (index < n)
        return np.where(inside, index, 0), inside
    if mode == "nearest":
        return np.clip(index, 0, n - 1), None
    if mode == "grid-wrap":
        return np.mod(index, n), None
    if mode == "reflect":
        place = np.mod(index, 2 * n)
        return np.where(place >= n, 2 * n - 1 - place, place), None
    place = np.mod(index, max(2 * n - 2, 1))
    return np.where(place >= n, 2 * n - 2 - place, place), None


def _along(c: Any, n: int, order: int, mode: str, derivative: int) -> list[tuple[Any, Any, Any]]:
    """Along one axis, each neighbour of points: its index, its weight, where it exists."""
    c, slope = _mapped(c, n, mode)
    shifted = c if order % 2 else c + 0.5
    base = np.floor(shifted)
    u, start = shifted - base, base.astype(np.intp) - order // 2
    result = []
    for j, piece in enumerate(_pieces(order, derivative)):
        index, inside = _neighbour(start + j, n, mode)
        result.append((index, piece(u) * slope**derivative, inside))
    return result


def _terms(
    coordinates: Any, shape: Sequence[int], order: int, mode: str, derivative: Derivative
) -> Iterator[tuple[Any, Any, Any]]:
    """All neighbours of points: flat index, weight, where it exists (None: everywhere)."""
    axes = []
    for axis, (c, n, r) in enumerate(zip(coordinates, shape, derivative, strict=True)):
        stride = math.prod(shape[axis + 1 :])
        near = _along(c, n, order, mode, r)
        axes.append([(index * stride, weight, inside) for index, weight, inside in near])
    if mode == "constant":
        limits = zip(coordinates, shape, strict=True)
        within = functools.reduce(np.logical_and, [(c >= 0) & (c <= n - 1) for c, n in limits])
        axes[0] = [(index, np.where(within, weight, 0.0), None) for index, weight, _ in axes[0]]
    return _combined(axes)


def _combined(axes: Sequence[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """One neighbour along each of the axes, in all combinations."""
    for chosen in itertools.product(*axes):
        indices, weights, limits = zip(*chosen, strict=True)
        inside = None if limits[0] is None else functools.reduce(np.logical_and, limits)
        yield functools.reduce(np.add, indices), functools.reduce(np.multiply, weights), inside


# ---- forwards -----------------------------------------------------------------------------------


def _sample_one(
    c: Any, coordinates: Any, order: int, mode: str, cval: Any, derivative: Derivative
) -> Any:
    if not any(derivative):
        import scipy.ndimage

        return scipy.ndimage.map_coordinates(
            c, coordinates, order=order, mode=mode, cval=cval, prefilter=False
        )
    mode = "reflect" if mode == "grid-mirror" else mode
    flat, total = c.ravel(), np.zeros(coordinates.shape[1], np.result_type(c, np.float64))
    for index, weight, inside in _terms(coordinates, c.shape, order, mode, derivative):
        value = flat[index]
        total += weight * (value if inside is None else np.where(inside, value, cval))
    return total.astype(c.dtype, copy=False)


def _spread_one(
    x: Any, coordinates: Any, shape: Any, order: int, mode: str, derivative: Derivative
) -> Any:
    mode = "reflect" if mode == "grid-mirror" else mode
    size = math.prod(shape)
    total = np.zeros(size, np.result_type(x, np.float64))
    for index, weight, inside in _terms(coordinates, shape, order, mode, derivative):
        weight = weight if inside is None else np.where(inside, weight, 0.0)
        total += np.bincount(index, weight * x.real, size)
        if x.dtype.kind == "c":
            total += 1j * np.bincount(index, weight * x.imag, size)
    return total.reshape(shape).astype(x.dtype, copy=False)


def _each(
    function: Callable[..., Any], first: Any, own: int, coordinates: Any, shape: tuple[int, ...]
) -> Any:
    """A function of one array and its coordinates for each of two stacks of them."""
    if first.ndim == own and coordinates.ndim == 2:
        return function(first, coordinates)
    lead = np.broadcast_shapes(first.shape[: first.ndim - own], coordinates.shape[:-2])
    first = np.broadcast_to(first, (*lead, *first.shape[first.ndim - own :]))
    coordinates = np.broadcast_to(coordinates, (*lead, *coordinates.shape[-2:]))
    out = np.empty((*lead, *shape), first.dtype)
    for i in np.ndindex(*lead):
        out[i] = function(first[i], coordinates[i])
    return out


def _sample_forward(xp: Any, c: Any, coordinates: Any, **params: Any) -> Any:
    one = functools.partial(_sample_one, **params)
    return _each(one, c, len(params["derivative"]), coordinates, coordinates.shape[-1:])


def _spread_forward(xp: Any, x: Any, coordinates: Any, shape: Any, **params: Any) -> Any:
    one = functools.partial(_spread_one, shape=shape, **params)
    return _each(one, x, 1, coordinates, shape)


# ---- rules --------------------------------------------------------------------------------------


def _once_more(derivative: Derivative, order: int) -> dict[int, Derivative]:
    """One more derivative along each axis, unless polynomials of degree `order` have none left."""
    return {
        k: (*derivative[:k], r + 1, *derivative[k + 1 :])
        for k, r in enumerate(derivative)
        if r < order
    }


def _row(coordinates: Any, k: int) -> Any:
    return getitem(coordinates, (Ellipsis, k, slice(None)))


def _by_coordinates(
    ct: Any, coefficients: Any, coordinates: Any, derivative: Derivative, order: int, **params: Any
) -> Any:
    """Numbers at points times the gradient of the spline there."""
    rows = {}
    for k, more in _once_more(derivative, order).items():
        slope = sample(coefficients, coordinates, derivative=more, order=order, **params)
        rows[k] = real(ct * conj_if_complex(slope))
    if not rows:
        return None
    none = 0 * next(iter(rows.values()))
    all_rows = [rows.get(k, none) for k in range(len(derivative))]
    return unbroadcast(stack(all_rows, -2), coordinates.shape)


def _sample_by_coefficients(
    ct: Any, _out: Any, _c: Any, coordinates: Any, cval: Any, **params: Any
) -> Any:
    shape = _c.shape[len(_c.shape) - len(params["derivative"]) :]
    return unbroadcast(spread(ct, coordinates, shape=shape, **params), _c.shape)


def _sample_by_coordinates(ct: Any, _out: Any, c: Any, coordinates: Any, **params: Any) -> Any:
    return _by_coordinates(ct, c, coordinates, **params)


def _sample_jvp(
    tangents: Sequence[Any], _out: Any, c: Any, coordinates: Any, cval: Any, **params: Any
) -> Any:
    dc, dx = tangents
    total = None if dc is None else sample(dc, coordinates, cval=0.0, **params)
    if dx is not None:
        for k, more in _once_more(params["derivative"], params["order"]).items():
            slope = sample(c, coordinates, cval=cval, **{**params, "derivative": more})
            total = added(total, slope * _row(dx, k))
    return total


def _spread_by_numbers(
    ct: Any, _out: Any, _x: Any, coordinates: Any, shape: Any, **params: Any
) -> Any:
    return unbroadcast(sample(ct, coordinates, cval=0.0, **params), _x.shape)


def _spread_by_coordinates(
    ct: Any, _out: Any, x: Any, coordinates: Any, shape: Any, **params: Any
) -> Any:
    return _by_coordinates(x, ct, coordinates, cval=0.0, **params)


def _spread_jvp(
    tangents: Sequence[Any], _out: Any, x: Any, coordinates: Any, shape: Any, **params: Any
) -> Any:
    dx, dc = tangents
    total = None if dx is None else spread(dx, coordinates, shape=shape, **params)
    if dc is not None:
        for k, more in _once_more(params["derivative"], params["order"]).items():
            along = {**params, "shape": shape, "derivative": more}
            total = added(total, spread(x * _row(dc, k), coordinates, **along))
    return total


def _batch(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    own = (len(params["derivative"]) if op is op_of(sample) else 1, 2)
    given = list(zip(args, own, axes, strict=True))
    lead = max(len(x.shape) - n - (axis is not None) for x, n, axis in given)
    return call(op, [batch_first(x, axis, lead + n) for x, n, axis in given], params), 0


def _infer_sample(c: Aval, coordinates: Aval, derivative: Derivative, **_params: Any) -> Aval:
    lead = broadcast_sizes(c.shape[: len(c.shape) - len(derivative)], coordinates.shape[:-2])
    return Aval((*lead, coordinates.shape[-1]), c.dtype)


def _infer_spread(x: Aval, coordinates: Aval, shape: tuple[int, ...], **_params: Any) -> Aval:
    return Aval((*broadcast_sizes(x.shape[:-1], coordinates.shape[:-2]), *shape), x.dtype)


# f(x) = Σ c[k]·β(x − k): d f = Σ dc[k]·β(x − k) + Σ_axis ∂f/∂x_axis·dx_axis
sample: Callable[..., Any] = general(
    "spline_sample",
    _sample_forward,
    infer=_infer_sample,
    vjps=(_sample_by_coefficients, _sample_by_coordinates),
    jvp=_sample_jvp,
    batch=_batch,
)
# c[k] = Σ f·β(x − k) over all points, the transpose of it
spread: Callable[..., Any] = general(
    "spline_spread",
    _spread_forward,
    infer=_infer_spread,
    vjps=(_spread_by_numbers, _spread_by_coordinates),
    jvp=_spread_jvp,
    batch=_batch,
)
