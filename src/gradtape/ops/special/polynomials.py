"""Orthogonal polynomials, differentiable in x: their derivatives are polynomials of their kin.

Degrees and parameters have no derivatives here. `n` may be a number or an array; but for
polynomials of Hermite it need not be whole, nor positive, as in SciPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.ops.cast import astype
from gradtape.ops.special.common import operand, scipy_function
from gradtape.ops.special.gamma import binom
from gradtape.typing import Array, ArrayLike

# Degrees are passed unchanged: SciPy has other formulas for integers.
_polynomial = functools.partial(scipy_function, whole=(0,))


def _lower(n: Any) -> Any:
    """The degree below, of any real number; that of 0 stays, and comes with a factor of 0."""
    return n - (n != 0)


def _mirrored(n: Any, total: int) -> Any:
    """The degree, or `total` minus it if that is the larger one; integers stay such."""
    return n + (2 * n < total) * (total - 2 * n)


# d P_n^(α,β) = ½·(n + α + β + 1)·P_{n−1}^(α+1,β+1)·dx
@_polynomial(
    "its degree and parameters",
    lambda ct, _out, n, alpha, beta, x: (
        ct
        * (n != 0)
        * (0.5 * (n + alpha + beta + 1))
        * eval_jacobi(_lower(n), alpha + 1, beta + 1, x)  # type: ignore[has-type]
    ),
)
def eval_jacobi(n: ArrayLike, alpha: ArrayLike, beta: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Jacobi.

    >>> gt.scipy.special.eval_jacobi(2, 0.0, 0.0, np.array([0.5]))
    array([-0.125])
    """


def _legendre_partial(ct: Any, _out: Any, n: Any, x: Any) -> Any:
    n = _mirrored(n, -1)  # P_{−1−n} = P_n
    return ct * (n != 0) * eval_gegenbauer(_lower(n), 1.5, x)


# d P_n = C_{n−1}^(3/2)·dx
@_polynomial("its degree", _legendre_partial)
def eval_legendre(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Legendre.

    >>> gt.scipy.special.eval_legendre(2, np.array([0.5, 1.0]))
    array([-0.125,  1.   ])
    """


# d C_n^(α) = 2α·C_{n−1}^(α+1)·dx
@_polynomial(
    "its degree and parameter",
    lambda ct, _out, n, alpha, x: (
        ct * (n != 0) * (2.0 * alpha) * eval_gegenbauer(_lower(n), alpha + 1, x)  # type: ignore[has-type]
    ),
)
def eval_gegenbauer(n: ArrayLike, alpha: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Gegenbauer.

    >>> gt.scipy.special.eval_gegenbauer(2, 1.0, np.array([1.0]))
    array([3.])
    """


def _chebyu_partial(ct: Any, _out: Any, n: Any, x: Any) -> Any:
    # U_{−2−n} = −U_n, so that U₋₁ = 0
    signed = ct * (n > -1) - ct * (n < -1)
    n = _mirrored(n, -2)
    n = n + (n == -1)
    return signed * (n != 0) * 2.0 * eval_gegenbauer(_lower(n), 2.0, x)


# d U_n = 2·C_{n−1}^(2)·dx
@_polynomial("its degree", _chebyu_partial)
def eval_chebyu(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Chebyshev of the second kind.

    >>> gt.scipy.special.eval_chebyu(2, np.array([1.0]))
    array([3.])
    """


# d T_n = n·U_{n−1}·dx, and T_{−n} = T_n
@_polynomial("its degree", lambda ct, _out, n, x: ct * (abs(n) * eval_chebyu(_lower(abs(n)), x)))
def eval_chebyt(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Chebyshev of the first kind.

    >>> gt.scipy.special.eval_chebyt(2, np.array([0.5]))
    array([-0.5])
    """


# d L_n^(α) = −L_{n−1}^(α+1)·dx
@_polynomial(
    "its degree and parameter",
    lambda ct, _out, n, alpha, x: -ct * (n != 0) * eval_genlaguerre(_lower(n), alpha + 1, x),  # type: ignore[has-type]
)
def eval_genlaguerre(n: ArrayLike, alpha: ArrayLike, x: ArrayLike, /) -> Array:
    """Generalized polynomial of Laguerre.

    >>> gt.scipy.special.eval_genlaguerre(1, 0.5, np.array([1.0]))
    array([0.5])
    """


def eval_laguerre(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Laguerre.

    >>> gt.scipy.special.eval_laguerre(1, np.array([0.5]))
    array([0.5])
    """
    return eval_genlaguerre(n, 0.0, x)


# d H_n = 2n·H_{n−1}·dx
@_polynomial("its degree", lambda ct, _out, n, x: ct * (2.0 * n * eval_hermite(_lower(n), x)))  # type: ignore[has-type]
def eval_hermite(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Hermite, as physicists define it; the degree is an integer.

    >>> gt.scipy.special.eval_hermite(2, np.array([0.5]))
    array([-1.])
    """


# d He_n = n·He_{n−1}·dx
@_polynomial("its degree", lambda ct, _out, n, x: ct * (n * eval_hermitenorm(_lower(n), x)))  # type: ignore[has-type]
def eval_hermitenorm(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Hermite, as statisticians define it; the degree is an integer.

    >>> gt.scipy.special.eval_hermitenorm(2, np.array([0.5]))
    array([-0.75])
    """


# ---- shifted and scaled -------------------------------------------------------------------------


def eval_sh_legendre(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Legendre on the interval from 0 to 1.

    >>> gt.scipy.special.eval_sh_legendre(2, np.array([0.75]))
    array([-0.125])
    """
    return _shifted(eval_legendre, n, x)


def eval_sh_chebyt(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Chebyshev of the first kind on the interval from 0 to 1.

    >>> gt.scipy.special.eval_sh_chebyt(2, np.array([0.75]))
    array([-0.5])
    """
    return _shifted(eval_chebyt, n, x)


def eval_sh_chebyu(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Chebyshev of the second kind on the interval from 0 to 1.

    >>> gt.scipy.special.eval_sh_chebyu(2, np.array([1.0]))
    array([3.])
    """
    return _shifted(eval_chebyu, n, x)


def eval_sh_jacobi(n: ArrayLike, p: ArrayLike, q: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Jacobi on the interval from 0 to 1, whose highest coefficient is 1.

    >>> gt.scipy.special.eval_sh_jacobi(2, 2.5, 1.5, np.array([0.3]))
    array([-0.03121212])
    """
    n, p, q = operand(n), operand(p), operand(q)
    scale = binom(2 * n + p - 1, n)

    def scaled(n: Any, x: Any) -> Any:
        return eval_jacobi(n, p - q, q - 1, x) / scale

    return _shifted(scaled, n, x)


def eval_chebyc(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Chebyshev of the first kind on the interval from -2 to 2.

    >>> gt.scipy.special.eval_chebyc(2, np.array([1.0]))
    array([-1.])
    """
    return 2.0 * eval_chebyt(n, 0.5 * operand(x))


def eval_chebys(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Chebyshev of the second kind on the interval from -2 to 2.

    >>> gt.scipy.special.eval_chebys(2, np.array([2.0]))
    array([3.])
    """
    return eval_chebyu(n, 0.5 * operand(x))


def _shifted(function: Callable[..., Any], n: ArrayLike, x: ArrayLike) -> Any:
    """A polynomial at 2·x − 1, which single precision would round: it is steep at its ends."""
    x = operand(x)
    dtype = getattr(x, "dtype", None)
    if dtype is None or dtype.kind not in "fV" or dtype == np.float64:
        return function(n, 2.0 * x - 1.0)
    return astype(function(n, 2.0 * astype(x, np.float64) - 1.0), dtype)
