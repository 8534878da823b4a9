"""The spectrum of numbers at times that are not evenly spaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_choice, check_same_shape
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import reshape
from gradtape.ops.signal.parts import vector
from gradtape.ops.trigonometric import cos, sin
from gradtape.typing import Array, ArrayLike

_NORMALIZATIONS = {False: "power", True: "normalize", "power": "power", "normalize": "normalize"}


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

    >>> t, w = np.arange(8.0), np.pi / 4
    >>> gt.scipy.signal.lombscargle(t, gt.tensor(np.cos(w * t)), [w, w / 2]).round(3)
    tensor([2.   , 0.515])
    """
    check_choice("lombscargle", (*_NORMALIZATIONS, "amplitude"), normalize=normalize)
    kind = _NORMALIZATIONS.get(normalize, normalize)
    weights = np.ones(as_array(y).shape) if weights is None else weights
    given = {"freqs": freqs, "x": x, "y": y, "weights": weights}
    w, t, y, weights = (vector("lombscargle", what, array) for what, array in given.items())
    check_same_shape("lombscargle", x=t, y=y, weights=weights)
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
        power = a + 1j * b
    else:
        explained = a * yc + b * ys
        power = explained / mean(y * y) if kind == "normalize" else explained * (y.shape[0] / 2)
    return reshape(power, ()) if w.shape[0] == 1 else power  # as SciPy does
