"""Hypergeometric functions, differentiable in their argument, and inverses like Lambert's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.define import elementwise_op
from gradtape.errors import ArgumentError
from gradtape.ops.arguments import INTEGER
from gradtape.ops.arithmetic import power
from gradtape.ops.erf import scipy_special
from gradtape.ops.exponential import exp
from gradtape.ops.select import where
from gradtape.ops.special.common import as_complex, scipy_function
from gradtape.ops.special.gamma import rgamma
from gradtape.typing import Array, ArrayLike


# d ₀F₁(v; z) = ₀F₁(v + 1; z)/v·dz
@scipy_function("its parameter", lambda ct, _out, v, z: ct * (hyp0f1(v + 1, z) / v))  # type: ignore[has-type]
def hyp0f1(v: ArrayLike, z: ArrayLike, /) -> Array:
    """Confluent hypergeometric limit function 0F1; the derivative is in `z`.

    >>> gt.scipy.special.hyp0f1(1.0, np.array([0.0, 1.0]))
    array([1.        , 2.2795853])
    """


# d ₁F₁(a; b; z) = a/b·₁F₁(a + 1; b + 1; z)·dz
@scipy_function(
    "its parameters",
    lambda ct, _out, a, b, z: ct * (a / b * hyp1f1(a + 1, b + 1, z)),  # type: ignore[has-type]
)
def hyp1f1(a: ArrayLike, b: ArrayLike, z: ArrayLike, /) -> Array:
    """Confluent hypergeometric function 1F1; the derivative is in `z`.

    >>> gt.scipy.special.hyp1f1(1.0, 2.0, np.array([0.0, 1.0]))
    array([1.        , 1.71828183])
    """


# d U(a, b, z) = −a·U(a + 1, b + 1, z)·dz
@scipy_function(
    "its parameters",
    lambda ct, _out, a, b, x: -ct * (a * hyperu(a + 1, b + 1, x)),  # type: ignore[has-type]
)
def hyperu(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """Confluent hypergeometric function U of Tricomi; the derivative is in `x`.

    >>> gt.scipy.special.hyperu(1.0, 1.0, np.array([1.0]))
    array([0.59634736])
    """


# d ₂F₁(a, b; c; z) = a·b/c·₂F₁(a + 1, b + 1; c + 1; z)·dz
@scipy_function(
    "its parameters",
    lambda ct, _out, a, b, c, z: ct * (a * b / c * hyp2f1(a + 1, b + 1, c + 1, z)),  # type: ignore[has-type]
)
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, z: ArrayLike, /) -> Array:
    """Hypergeometric function 2F1 of Gauss; the derivative is in `z`.

    >>> gt.scipy.special.hyp2f1(1.0, 1.0, 2.0, np.array([0.0, 0.5]))
    array([1.        , 1.38629436])
    """


# ---- generalized Bessel functions of Wright ------------------------------------------------------


# dΦ(a, b; x) = Φ(a, a + b; x)·dx
@scipy_function(
    "its parameters",
    lambda ct, _out, a, b, x: ct * wright_bessel(a, a + b, x),  # type: ignore[has-type]
)
def wright_bessel(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """Generalized Bessel function of Wright, of numbers from 0; the derivative is in `x`.

    >>> gt.scipy.special.wright_bessel(1.0, 1.0, np.array([0.0, 1.0]))
    array([1.        , 2.2795853])
    """


# d log Φ(a, b; x) = Φ(a, a + b; x)/Φ(a, b; x)·dx
@scipy_function(
    "its parameters",
    lambda ct, out, a, b, x: ct * exp(log_wright_bessel(a, a + b, x) - out),  # type: ignore[has-type]
)
def log_wright_bessel(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """Logarithm of `wright_bessel`, which does not overflow.

    >>> gt.scipy.special.log_wright_bessel(1.0, 1.0, np.array([1.0]))
    array([0.82399354])
    """


# ---- functions of Struve ------------------------------------------------------------------------


def _struve_rest(v: Any, x: Any) -> Any:
    """(x/2)^v/(2·√π·Γ(v + 3/2))."""
    return power(0.5 * x, v) * rgamma(v + 1.5) * (0.5 / math.sqrt(math.pi))


def _struve_partial(ct: Any, out: Any, v: Any, x: Any) -> Any:
    below = struve(v - 1, x)
    # Regular at 0; far out, where H_{v+1} is nearly twice the rest, H_{v−1} − v/x·H_v
    far = abs(x) > 30
    near = 0.5 * (below - struve(v + 1, x)) + _struve_rest(v, where(far, 1.0, x))
    return ct * where(far, below - v / where(far, x, 1.0) * out, near)


# d H_v = (½·(H_{v−1} − H_{v+1}) + rest)·dx
@scipy_function("its order", _struve_partial)
def struve(v: ArrayLike, x: ArrayLike, /) -> Array:
    """Function of Struve of order `v`; the derivative is in `x`.

    >>> gt.scipy.special.struve(0, np.array([1.0]))
    array([0.56865663])
    """


# d L_v = (½·(L_{v−1} + L_{v+1}) + rest)·dx
@scipy_function(
    "its order",
    lambda ct, _out, v, x: (
        ct * (0.5 * (modstruve(v - 1, x) + modstruve(v + 1, x)) + _struve_rest(v, x))  # type: ignore[has-type]
    ),
)
def modstruve(v: ArrayLike, x: ArrayLike, /) -> Array:
    """Modified function of Struve of order `v`; the derivative is in `x`.

    >>> gt.scipy.special.modstruve(0, np.array([1.0]))
    array([0.71024319])
    """


# ---- inverses of x·eˣ and x + log x -------------------------------------------------------------

# W·e^W = z: dW = e^(−W)/(1 + W)·dz
_lambertw: Callable[..., Any] = elementwise_op(
    "lambertw",
    lambda xp, z, k, tol: scipy_special(xp).lambertw(z, k, tol).astype(xp.result_type(z)),
    lambda ct, out, _z, k, tol: ct * (exp(-out) / (1 + out)),
)


def lambertw(z: ArrayLike, /, k: int = 0, tol: float = 1e-8) -> Array:
    """Function of Lambert, which inverts w·exp(w); its result is complex.

    Args:
        z: Where to evaluate it.
        k: The branch.
        tol: Relative tolerance of the iteration.

    Raises:
        ArgumentError: The branch is not an integer.

    >>> gt.scipy.special.lambertw(np.array([0.0, np.e]))
    array([0.+0.j, 1.+0.j])
    """
    if isinstance(k, np.ndarray) and k.ndim == 0:
        k = k[()]  # as SciPy passes it on
    if not isinstance(k, INTEGER):
        raise ArgumentError(f"lambertw: got k={k!r}, expected an integer")
    return _lambertw(as_complex(z), k=int(k), tol=float(tol))


def _wrightomega_partial(ct: Any, out: Any, _z: Any) -> Any:
    far = abs(out) > 2  # up to infinity
    near, large = where(far, 0.0, out), where(far, out, 1.0)
    return ct * where(far, 1 / (1 + 1 / large), near / (1 + near))


# ω + log ω = z: dω = ω/(1 + ω)·dz
@scipy_function(_wrightomega_partial)
def wrightomega(z: ArrayLike, /) -> Array:
    """Function of Wright, which inverts w + log w.

    >>> gt.scipy.special.wrightomega(np.array([0.0, 1.0]))
    array([0.56714329, 1.        ])
    """
