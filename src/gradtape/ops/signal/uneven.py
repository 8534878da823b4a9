"""The spectrum of numbers at times that are not evenly spaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_choice
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import reshape
from gradtape.ops.trigonometric import cos, sin
from gradtape.typing import Array, ArrayLike

_NORMALIZATIONS = {False: "power", True: "normalize", "power": "power", "normalize": "normalize"}


def _vectors(*arrays: ArrayLike) -> list[Any]:
    found = [as_array(array) for array in arrays]
    shapes = [array.shape for array in found]
    if any(len(shape) != 1 or shape == (0,) for shape in shapes) or len({*shapes[1:]}) != 1:
        raise ShapeError(
            f"lombscargle: got freqs of shape {shapes[0]}, and times, numbers and weights of "
            f"{', '.join(map(str, shapes[1:]))}, expected vectors, all but the first as long"
        )
    return found


def lombscargle(
    x: ArrayLike,
    y: ArrayLike,
    freqs: ArrayLike,
    /,
    *,
    normalize: Any = False,
    weights: Any = None,
    floating_mean: bool = False,
) -> Array:
    """Lomb and Scargle's periodogram: how well sines of some frequencies fit numbers.

    It is differentiable in the times, the numbers, the frequencies and the weights.

    Args:
        x: The times.
        y: The numbers.
        freqs: The frequencies, in radians per time.
        normalize: False or "power" for the power; True or "normalize" for the part of the sum of
            squares that is explained; "amplitude" for complex amplitudes, of cosine and sine.
        weights: How much each number counts; all the same if it is None.
        floating_mean: Whether a mean is fitted, too.

    Raises:
        ShapeError: Something is not a vector, or not as long.
        ArgumentError: `normalize` is something else.

    >>> t = np.arange(8.0)
    >>> gt.signal.lombscargle(t, np.cos(np.pi / 4 * t), [np.pi / 4]).round(6)
    array([2.])
    """
    check_choice("lombscargle", (*_NORMALIZATIONS, "amplitude"), normalize=normalize)
    kind = _NORMALIZATIONS.get(normalize, normalize)
    given = np.ones(as_array(y).shape) if weights is None else weights
    w, t, y, weights = _vectors(freqs, x, y, given)
    weights = weights / sum_of(weights)
    phases = reshape(w, (-1, 1)) * t

    def mean(values: Any) -> Any:
        return sum_of(weights * values, axis=-1, keepdims=True)

    c, s = cos(phases), sin(phases)
    if floating_mean:
        c, s, y = (values - mean(values) for values in (c, s, y))
    pairs = ((c, c), (s, s), (c, s), (c, y), (s, y))
    cc, ss, cs, yc, ys = (reshape(mean(one * other), (-1,)) for one, other in pairs)
    # The best a·cos + b·sin: (cc cs; cs ss)·(a; b) = (yc; ys). A shift of time, by which the
    # matrix is usually made diagonal, changes nothing.
    determinant = cc * ss - cs * cs
    a, b = (ss * yc - cs * ys) / determinant, (cc * ys - cs * yc) / determinant
    if kind == "amplitude":
        return a + 1j * b
    explained = a * yc + b * ys
    if kind == "normalize":
        return explained / mean(y * y)
    return explained * (y.shape[0] / 2)
