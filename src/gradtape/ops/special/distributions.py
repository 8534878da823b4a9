"""Distribution functions that are incomplete beta functions, under SciPy's names."""

from __future__ import annotations

import math
from typing import Any

from gradtape.ops.select import where
from gradtape.ops.special.common import operand, whole_part
from gradtape.ops.special.incomplete_beta import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
)
from gradtape.typing import Array, ArrayLike

# ---- F ------------------------------------------------------------------------------------------


def _shares(dfn: Any, dfd: Any, x: Any) -> tuple[Any, ...]:
    """Halves of the degrees of freedom, whether x is low, and its share of m·x + n, or the rest.

    What is not needed of the last two is 1/4. The degrees are NaN where SciPy has no value.
    """
    dfn, dfd, x = operand(dfn), operand(dfd), operand(x)
    known = (dfn > 0) & (dfd > 0) & (dfn < math.inf) & (dfd < math.inf) & (x >= 0)
    dfn, dfd = where(known, dfn, math.nan), where(known, dfd, math.nan)
    scaled = dfn * x
    low, end = scaled < dfd, scaled == math.inf
    total = dfd + where(end, 1.0, scaled)
    share, rest = scaled / total, where(low, 0.25, where(end, 0.0, dfd / total))
    return 0.5 * dfn, 0.5 * dfd, low, where(low, share, 0.25), rest


def fdtr(dfn: ArrayLike, dfd: ArrayLike, x: ArrayLike, /) -> Array:
    """Distribution function of F with `dfn` and `dfd` degrees of freedom.

    >>> gt.scipy.special.fdtr(2.0, 2.0, np.array([1.0]))
    array([0.5])
    """
    m, n, low, share, rest = _shares(dfn, dfd, x)
    return where(low, betainc(m, n, share), betaincc(n, m, rest))


def fdtrc(dfn: ArrayLike, dfd: ArrayLike, x: ArrayLike, /) -> Array:
    """One minus `fdtr`.

    >>> gt.scipy.special.fdtrc(2.0, 2.0, np.array([1.0]))
    array([0.5])
    """
    m, n, low, share, rest = _shares(dfn, dfd, x)
    return where(low, betaincc(m, n, share), betainc(n, m, rest))


def fdtri(dfn: ArrayLike, dfd: ArrayLike, p: ArrayLike, /) -> Array:
    """Inverse of `fdtr` in its last argument.

    >>> gt.scipy.special.fdtri(2.0, 2.0, np.array([0.5]))
    array([1.])
    """
    dfn, dfd = operand(dfn), operand(dfd)
    m, n = 0.5 * dfn, 0.5 * dfd
    p = operand(p)
    # x/(1 − x), by 1 − x where that is the smaller one
    low = p < betainc(m, n, 0.5)
    x, rest = betaincinv(m, n, where(low, p, 0.5)), betainccinv(n, m, where(low, 0.5, p))
    return where(low, x / (1 - where(low, x, 0.0)), (1 - rest) / rest) * dfd / dfn


# ---- counts of trials ---------------------------------------------------------------------------


def _counts(k: ArrayLike, n: ArrayLike) -> tuple[Any, Any, Any]:
    """Whole parts of k and of what is left of n, and whether nothing is; NaN where k > n."""
    k = whole_part(k)
    rest = whole_part(n) - k
    return k, where(rest == 0, 1.0, where(rest < 0, math.nan, rest)), rest == 0


def bdtr(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
    """Probability of at most `k` successes in `n` trials of probability `p`.

    `k` and `n` are rounded down.

    >>> gt.scipy.special.bdtr(1, np.array([1, 2]), 0.5)
    array([1.  , 0.75])
    """
    k, rest, all_of_them = _counts(k, n)
    p = operand(p)
    certain = all_of_them & (k >= 0) & (p >= 0) & (p <= 1)
    return where(certain, 1.0, betaincc(where(k < 0, math.nan, k) + 1, rest, p))


def bdtrc(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
    """One minus `bdtr`.

    >>> gt.scipy.special.bdtrc(1, np.array([1, 2]), 0.5)
    array([0.  , 0.25])
    """
    k, rest, all_of_them = _counts(k, n)
    p = operand(p)
    inside, below = (p >= 0) & (p <= 1), k < 0
    more = betainc(where(below, 0.0, k) + 1, where(below, 1.0, rest), p)
    return where(below & inside, 1.0, where(all_of_them & inside, 0.0, more))


def bdtri(k: ArrayLike, n: ArrayLike, y: ArrayLike, /) -> Array:
    """Inverse of `bdtr` in its last argument.

    >>> gt.scipy.special.bdtri(1, 2, np.array([0.75]))
    array([0.5])
    """
    k, rest, all_of_them = _counts(k, n)
    rest = where(all_of_them, math.nan, rest)
    return betainccinv(where(k < 0, math.nan, k) + 1, rest, y)


def nbdtr(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
    """Probability of at most `k` failures before `n` successes; both are rounded down.

    >>> gt.scipy.special.nbdtr(1, 2, np.array([0.5]))
    array([0.5])
    """
    return betainc(*_failures(k, n), p)


def nbdtrc(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
    """One minus `nbdtr`.

    >>> gt.scipy.special.nbdtrc(1, 2, np.array([0.5]))
    array([0.5])
    """
    return betaincc(*_failures(k, n), p)


def nbdtri(k: ArrayLike, n: ArrayLike, y: ArrayLike, /) -> Array:
    """Inverse of `nbdtr` in its last argument.

    >>> gt.scipy.special.nbdtri(1, 2, np.array([0.5]))
    array([0.5])
    """
    return betaincinv(*_failures(k, n), y)


def _failures(k: ArrayLike, n: ArrayLike) -> tuple[Any, Any]:
    k, n = whole_part(k), whole_part(n)
    return where(n > 0, n, math.nan), where(k < 0, math.nan, k) + 1
