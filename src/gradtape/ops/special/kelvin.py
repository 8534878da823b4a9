"""Functions of Kelvin: real and imaginary parts of Bessel functions on a diagonal of the plane.

y = ber x + i·bei x has x²·y″ + x·y′ = i·x²·y, and so has ker x + i·kei x. So each function has its
derivative under a name of its own, and that one has what the equation says.
"""

from __future__ import annotations

from typing import Any

from gradtape.ops.select import where
from gradtape.ops.special.common import scipy_function
from gradtape.typing import Array, ArrayLike


def _over(slope: Any, x: Any, at_zero: float) -> Any:
    """y′/x, which is regular at 0 for functions of the first kind."""
    zero = x == 0
    return where(zero, at_zero, slope / where(zero, 1.0, x))


# ---- the first kind -----------------------------------------------------------------------------


@scipy_function(lambda ct, _out, x: ct * berp(x))  # type: ignore[has-type]
def ber(x: ArrayLike, /) -> Array:
    """Function of Kelvin ber, the real part of J0 at x·exp(3πi/4).

    >>> gt.scipy.special.ber(np.array([0.0, 1.0]))
    array([1.        , 0.98438178])
    """


@scipy_function(lambda ct, _out, x: ct * beip(x))  # type: ignore[has-type]
def bei(x: ArrayLike, /) -> Array:
    """Function of Kelvin bei, the imaginary part of J0 at x·exp(3πi/4).

    >>> gt.scipy.special.bei(np.array([0.0, 1.0]))
    array([0.        , 0.24956604])
    """


# ber″ = −ber′/x − bei
@scipy_function(lambda ct, out, x: -ct * (_over(out, x, 0.0) + bei(x)))
def berp(x: ArrayLike, /) -> Array:
    """Derivative of `ber`.

    >>> gt.scipy.special.berp(np.array([1.0]))
    array([-0.06244575])
    """


# bei″ = −bei′/x + ber
@scipy_function(lambda ct, out, x: ct * (ber(x) - _over(out, x, 0.5)))
def beip(x: ArrayLike, /) -> Array:
    """Derivative of `bei`.

    >>> gt.scipy.special.beip(np.array([1.0]))
    array([0.49739651])
    """


# ---- the second kind ----------------------------------------------------------------------------


@scipy_function(lambda ct, _out, x: ct * kerp(x))  # type: ignore[has-type]
def ker(x: ArrayLike, /) -> Array:
    """Function of Kelvin ker, the real part of K0 at x·exp(πi/4).

    >>> gt.scipy.special.ker(np.array([1.0]))
    array([0.28670621])
    """


@scipy_function(lambda ct, _out, x: ct * keip(x))  # type: ignore[has-type]
def kei(x: ArrayLike, /) -> Array:
    """Function of Kelvin kei, the imaginary part of K0 at x·exp(πi/4).

    >>> gt.scipy.special.kei(np.array([1.0]))
    array([-0.49499464])
    """


# ker″ = −ker′/x − kei
@scipy_function(lambda ct, out, x: -ct * (out / x + kei(x)))
def kerp(x: ArrayLike, /) -> Array:
    """Derivative of `ker`.

    >>> gt.scipy.special.kerp(np.array([1.0]))
    array([-0.69460389])
    """


# kei″ = −kei′/x + ker
@scipy_function(lambda ct, out, x: ct * (ker(x) - out / x))
def keip(x: ArrayLike, /) -> Array:
    """Derivative of `kei`.

    >>> gt.scipy.special.keip(np.array([1.0]))
    array([0.35236991])
    """


def kelvin(x: ArrayLike, /) -> tuple[Array, Array, Array, Array]:
    """All functions of Kelvin: ber + i·bei, ker + i·kei, and the derivatives of both.

    >>> gt.scipy.special.kelvin(np.array([1.0]))[0]
    array([0.98438178+0.24956604j])
    """
    pairs = ((ber, bei), (ker, kei), (berp, beip), (kerp, keip))
    return tuple(one(x) + 1j * other(x) for one, other in pairs)
