"""Distances between distributions given by observations."""

from __future__ import annotations

from typing import Any

from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array
from gradtape.ops.arithmetic import absolute
from gradtape.ops.arrays.differences import diff
from gradtape.ops.arrays.search import searchsorted
from gradtape.ops.arrays.sort import argsort, sort
from gradtape.ops.cast import stop_gradient
from gradtape.ops.checks import check_axes, check_same_shape
from gradtape.ops.cumulative import cumsum
from gradtape.ops.gather import take
from gradtape.ops.join import concatenate
from gradtape.ops.reduce import floats, sum as sum_over
from gradtape.typing import Array, ArrayLike


def wasserstein_distance(
    u_values: ArrayLike,
    v_values: ArrayLike,
    u_weights: ArrayLike = None,
    v_weights: ArrayLike = None,
) -> Array:
    """How far the mass of one set of observations has to move to become another, on average.

    Args:
        u_values: The observations of one distribution, along one axis.
        v_values: Those of the other.
        u_weights: How much each of the first counts.
        v_weights: How much each of the second counts.

    Raises:
        ShapeError: There is not one axis, or the weights do not fit.

    >>> gt.grad(gt.scipy.stats.wasserstein_distance, (0, 1))(np.array([0.0, 1.0]), np.array([5.0]))
    (array([-0.5, -0.5]), array([1.]))
    """
    u, v = (floats(as_array(values)) for values in (u_values, v_values))
    places = sort(concatenate([_observations("u_values", u), _observations("v_values", v)]))
    shares = _share(u, u_weights, places[:-1]) - _share(v, v_weights, places[:-1])
    return sum_over(absolute(shares) * diff(places))


def _observations(name: str, values: Any) -> Any:
    check_axes("wasserstein_distance", values, 1, what=name, instead="use gt.vmap")
    if values.shape[0] == 0:
        raise ArgumentError(f"wasserstein_distance: got no {name}, expected at least one")
    return values


def _share(values: Any, weights: Any, places: Any) -> Any:
    """The cumulative share of the mass at given points."""
    values = stop_gradient(values)
    before = searchsorted(sort(values), stop_gradient(places), "right")
    if weights is None:
        return before / values.shape[0]
    weights = floats(as_array(weights))
    check_same_shape("wasserstein_distance", values=values, weights=weights)
    mass = cumsum(take(weights, argsort(values)))
    mass = concatenate([0.0 * mass[:1], mass])
    return take(mass, before) / mass[-1]
