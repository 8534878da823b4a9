"""The entropy of discrete distributions."""

from __future__ import annotations

import math
from typing import Any

from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array, as_number
from gradtape.ops.cast import stop_gradient
from gradtape.ops.exponential import log
from gradtape.ops.reduce import floats, sum as sum_over
from gradtape.ops.special.entropy import entr, rel_entr
from gradtape.typing import Array, ArrayLike, Axis


def entropy(
    pk: ArrayLike,
    qk: ArrayLike = None,
    base: float | None = None,
    axis: Axis = 0,
    *,
    keepdims: bool = False,
) -> Array:
    """The entropy of shares, or their relative entropy with respect to others.

    Args:
        pk: Shares, divided by their sum.
        qk: Other shares, divided by their sum: the result is the divergence of Kullback and
            Leibler from these.
        base: The base of the logarithm; e if it is not given.
        axis: One or several axes; None takes all of them.
        keepdims: Whether the reduced axes stay, with size 1.

    Raises:
        ArgumentError: The base is not greater than 0.

    >>> gt.scipy.stats.entropy(gt.tensor([1.0, 1.0]), base=2)
    tensor(1.)
    >>> gt.grad(gt.scipy.stats.entropy)(np.array([0.25, 0.75])).round(12)
    array([ 0.82395922, -0.27465307])
    """
    if base is not None and not as_number(base, "entropy", "base") > 0:
        raise ArgumentError(f"entropy: got base={base}, expected a number greater than 0")
    # Σ entr(x/T) = Σ entr(x)/T + log T for T = Σ x; next to 1 that is exact, and where a share is 0
    # its own slope is infinite, and no other.
    pk, total = _near_shares(pk, axis)
    terms = entr(pk)
    further = log(total)
    if qk is not None:
        qk, total_of_others = _near_shares(qk, axis)
        terms = rel_entr(pk, qk)
        further = log(total_of_others) - further
    value = sum_over(terms, axis, keepdims=True) / total + further
    value = sum_over(value, axis, keepdims=keepdims)  # over axes of size 1
    return value if base is None else value / math.log(base)


def _near_shares(shares: Any, axis: Axis) -> tuple[Any, Any]:
    """Shares divided by their sum as a constant, and the sum of the results."""
    shares = floats(as_array(shares))
    shares = shares / stop_gradient(sum_over(shares, axis, keepdims=True))
    return shares, sum_over(shares, axis, keepdims=True)
