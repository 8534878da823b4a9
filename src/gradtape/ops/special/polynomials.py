"""Orthogonal polynomials, differentiable in x: their derivatives are polynomials of their kin.

Degrees and parameters have no derivatives here. `n` may be a number or an array.
"""

from __future__ import annotations

from typing import Any

from gradtape.core.define import answers, elementwise
from gradtape.ops.select import maximum
from gradtape.ops.special.common import in_parameter, of_scipy, operand
from gradtape.typing import Array, ArrayLike


def _lower(n: Any) -> Any:
    """The degree below; that of 0 stays, and comes with a factor of 0."""
    return maximum(n - 1, 0)


# d P_n^(α,β) = ½·(n + α + β + 1)·P_{n−1}^(α+1,β+1)·dx
@elementwise(
    of_scipy("eval_jacobi"),
    in_parameter("eval_jacobi", "its degree"),
    in_parameter("eval_jacobi", "its parameters"),
    in_parameter("eval_jacobi", "its parameters"),
    lambda ct, _out, n, alpha, beta, x: (
        ct
        * (0.5 * (n != 0) * (n + alpha + beta + 1))
        * eval_jacobi(_lower(n), alpha + 1, beta + 1, x)  # type: ignore[has-type]
    ),
    replaces=("scipy.special.eval_jacobi",),
)
def eval_jacobi(n: ArrayLike, alpha: ArrayLike, beta: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Jacobi.

    >>> gt.special.eval_jacobi(2, 0.0, 0.0, np.array([0.5]))
    array([-0.125])
    """


# d P_n = ½·(n + 1)·P_{n−1}^(1,1)·dx
@elementwise(
    of_scipy("eval_legendre"),
    in_parameter("eval_legendre", "its degree"),
    lambda ct, _out, n, x: ct * (0.5 * (n != 0) * (n + 1)) * eval_jacobi(_lower(n), 1.0, 1.0, x),
    replaces=("scipy.special.eval_legendre",),
)
def eval_legendre(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Legendre.

    >>> gt.special.eval_legendre(2, np.array([0.5, 1.0]))
    array([-0.125,  1.   ])
    """


# d C_n^(α) = 2α·C_{n−1}^(α+1)·dx
@elementwise(
    of_scipy("eval_gegenbauer"),
    in_parameter("eval_gegenbauer", "its degree"),
    in_parameter("eval_gegenbauer", "its parameter"),
    lambda ct, _out, n, alpha, x: (
        ct * (2.0 * (n != 0) * alpha) * eval_gegenbauer(_lower(n), alpha + 1, x)  # type: ignore[has-type]
    ),
    replaces=("scipy.special.eval_gegenbauer",),
)
def eval_gegenbauer(n: ArrayLike, alpha: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Gegenbauer.

    >>> gt.special.eval_gegenbauer(2, 1.0, np.array([1.0]))
    array([3.])
    """


# d U_n = 2·C_{n−1}^(2)·dx
@elementwise(
    of_scipy("eval_chebyu"),
    in_parameter("eval_chebyu", "its degree"),
    lambda ct, _out, n, x: ct * (2.0 * (n != 0)) * eval_gegenbauer(_lower(n), 2.0, x),
    replaces=("scipy.special.eval_chebyu",),
)
def eval_chebyu(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Chebyshev of the second kind.

    >>> gt.special.eval_chebyu(2, np.array([1.0]))
    array([3.])
    """


# d T_n = n·U_{n−1}·dx
@elementwise(
    of_scipy("eval_chebyt"),
    in_parameter("eval_chebyt", "its degree"),
    lambda ct, _out, n, x: ct * (n * eval_chebyu(_lower(n), x)),
    replaces=("scipy.special.eval_chebyt",),
)
def eval_chebyt(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Chebyshev of the first kind.

    >>> gt.special.eval_chebyt(2, np.array([0.5]))
    array([-0.5])
    """


# d L_n^(α) = −L_{n−1}^(α+1)·dx
@elementwise(
    of_scipy("eval_genlaguerre"),
    in_parameter("eval_genlaguerre", "its degree"),
    in_parameter("eval_genlaguerre", "its parameter"),
    lambda ct, _out, n, alpha, x: (
        -ct * (1.0 * (n != 0)) * eval_genlaguerre(_lower(n), alpha + 1, x)  # type: ignore[has-type]
    ),
    replaces=("scipy.special.eval_genlaguerre",),
)
def eval_genlaguerre(n: ArrayLike, alpha: ArrayLike, x: ArrayLike, /) -> Array:
    """Generalized polynomial of Laguerre.

    >>> gt.special.eval_genlaguerre(1, 0.5, np.array([1.0]))
    array([0.5])
    """


@answers("scipy.special.eval_laguerre")
def eval_laguerre(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Laguerre.

    >>> gt.special.eval_laguerre(1, np.array([0.5]))
    array([0.5])
    """
    return eval_genlaguerre(n, 0.0, x)


# d H_n = 2n·H_{n−1}·dx
@elementwise(
    of_scipy("eval_hermite", whole=(0,)),
    in_parameter("eval_hermite", "its degree"),
    lambda ct, _out, n, x: ct * (2.0 * n * eval_hermite(_lower(n), x)),  # type: ignore[has-type]
    replaces=("scipy.special.eval_hermite",),
)
def eval_hermite(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Hermite, as physicists define it; the degree is an integer.

    >>> gt.special.eval_hermite(2, np.array([0.5]))
    array([-1.])
    """


# d He_n = n·He_{n−1}·dx
@elementwise(
    of_scipy("eval_hermitenorm", whole=(0,)),
    in_parameter("eval_hermitenorm", "its degree"),
    lambda ct, _out, n, x: ct * (n * eval_hermitenorm(_lower(n), x)),  # type: ignore[has-type]
    replaces=("scipy.special.eval_hermitenorm",),
)
def eval_hermitenorm(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Hermite, as statisticians define it; the degree is an integer.

    >>> gt.special.eval_hermitenorm(2, np.array([0.5]))
    array([-0.75])
    """


# ---- shifted and scaled -------------------------------------------------------------------------


@answers("scipy.special.eval_sh_legendre")
def eval_sh_legendre(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Legendre on the interval from 0 to 1.

    >>> gt.special.eval_sh_legendre(2, np.array([0.75]))
    array([-0.125])
    """
    return eval_legendre(n, _doubled(x))


@answers("scipy.special.eval_sh_chebyt")
def eval_sh_chebyt(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Chebyshev of the first kind on the interval from 0 to 1.

    >>> gt.special.eval_sh_chebyt(2, np.array([0.75]))
    array([-0.5])
    """
    return eval_chebyt(n, _doubled(x))


@answers("scipy.special.eval_sh_chebyu")
def eval_sh_chebyu(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Chebyshev of the second kind on the interval from 0 to 1.

    >>> gt.special.eval_sh_chebyu(2, np.array([1.0]))
    array([3.])
    """
    return eval_chebyu(n, _doubled(x))


@answers("scipy.special.eval_chebyc")
def eval_chebyc(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Chebyshev of the first kind on the interval from -2 to 2.

    >>> gt.special.eval_chebyc(2, np.array([1.0]))
    array([-1.])
    """
    return 2.0 * eval_chebyt(n, 0.5 * operand(x))


@answers("scipy.special.eval_chebys")
def eval_chebys(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Polynomial of Chebyshev of the second kind on the interval from -2 to 2.

    >>> gt.special.eval_chebys(2, np.array([2.0]))
    array([3.])
    """
    return eval_chebyu(n, 0.5 * operand(x))


def _doubled(x: ArrayLike) -> Array:
    return 2.0 * operand(x) - 1.0
