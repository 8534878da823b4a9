"""Numbers of ways to arrange and to choose things, of real arguments."""

from __future__ import annotations

from gradtape.ops.select import mask, where
from gradtape.ops.special.common import operand
from gradtape.ops.special.gamma import binom, gamma, poch
from gradtape.typing import Array, ArrayLike


def factorial(n: ArrayLike, /) -> Array:
    """Factorial of real arguments, gamma(n + 1), and 0 of negative ones.

    Args:
        n: Where to evaluate it.

    >>> gt.scipy.special.factorial(np.array([3.0, -1.0]))
    array([6., 0.])
    """
    n = operand(n)
    below = n < 0
    return mask(gamma(where(below, 0, n) + 1.0), below ^ True)


def comb(n: ArrayLike, k: ArrayLike, /, *, repetition: bool = False) -> Array:
    """Number of ways to choose `k` of `n` things, of real arguments.

    Args:
        n: How many things there are.
        k: How many are chosen.
        repetition: Whether a thing may be chosen again.

    >>> gt.scipy.special.comb(np.array([4.0, 1.0]), 2.0)
    array([6., 0.])
    """
    n, k = operand(n), operand(k)
    if repetition:
        n = n + k - 1
    possible = (k <= n) & (n >= 0) & (k >= 0)
    return mask(binom(where(possible, n, 1.0), where(possible, k, 1.0)), possible)


def perm(n: ArrayLike, k: ArrayLike, /) -> Array:
    """Number of ways to arrange `k` of `n` things, of real arguments.

    Args:
        n: How many things there are.
        k: How many are arranged.

    >>> gt.scipy.special.perm(np.array([4.0, 1.0]), 2.0)
    array([12.,  0.])
    """
    n, k = operand(n), operand(k)
    possible = (k <= n) & (n >= 0) & (k >= 0)
    rise = poch(where(possible, n - k + 1, 1.0), where(possible, k, 1.0))
    return mask(rise, possible)
