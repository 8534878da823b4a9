"""Windows that taper off a sequence, and the Bessel function that one of them needs."""

from __future__ import annotations

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.ops.arguments import as_array, real_only
from gradtape.ops.creation import asarray
from gradtape.ops.reduce import floats
from gradtape.ops.special.bessel_fixed import i0 as bessel_i0
from gradtape.typing import Array, ArrayLike


def bartlett(M: int) -> Tensor:
    """Make the window that rises and falls along straight lines, from 0 to 1.

    Args:
        M: How many elements.

    >>> gt.bartlett(5)
    tensor([0. , 0.5, 1. , 0.5, 0. ])
    """
    return Tensor(np.bartlett(M))


def blackman(M: int) -> Tensor:
    """Make Blackman's window, of three cosines.

    Args:
        M: How many elements.

    >>> gt.blackman(5).round(2) + 0.0
    tensor([0.  , 0.34, 1.  , 0.34, 0.  ])
    """
    return Tensor(np.blackman(M))


def hamming(M: int) -> Tensor:
    """Make Hamming's window, a cosine that does not go down to 0.

    Args:
        M: How many elements.

    >>> gt.hamming(5)
    tensor([0.08, 0.54, 1.  , 0.54, 0.08])
    """
    return Tensor(np.hamming(M))


def hanning(M: int) -> Tensor:
    """Make the window of von Hann, a raised cosine.

    Args:
        M: How many elements.

    >>> gt.hanning(5)
    tensor([0. , 0.5, 1. , 0.5, 0. ])
    """
    return Tensor(np.hanning(M))


def kaiser(M: int, beta: ArrayLike) -> Tensor:
    """Make Kaiser's window; differentiable in its shape.

    Args:
        M: How many elements.
        beta: The shape: 0 is flat, larger ones are narrower.

    >>> gt.kaiser(5, 4.0).round(3)
    tensor([0.088, 0.633, 1.   , 0.633, 0.088])
    """
    beta = floats(asarray(beta))
    half = (M - 1) / 2.0
    places = (np.arange(M) - half) / (half or 1.0)
    # Never below 0 by rounding: 1 − x² is 0 at both ends.
    return i0(beta * np.sqrt(np.maximum(1 - places**2, 0.0))) / i0(beta)  # type: ignore[no-any-return]


def i0(x: ArrayLike, /) -> Array:
    """The modified Bessel function of the first kind and order 0.

    Raises:
        DTypeError: The array is complex.

    >>> gt.i0(np.array([0.0, 1.0]))
    array([1.        , 1.26606588])
    """
    return bessel_i0(real_only("i0", floats(as_array(x))))
