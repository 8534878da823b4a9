"""Functions of integers: divisors, shifted bits, counted bits. None of them has a derivative."""

from __future__ import annotations

import operator

import numpy as np

from gradtape.core.define import elementwise
from gradtape.core.op import Facts
from gradtape.typing import Array, ArrayLike


@elementwise(np.gcd)
def gcd(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The greatest common divisors of integers.

    >>> gt.gcd(np.array([12, 10]), 8)
    array([4, 2])
    """


@elementwise(np.lcm)
def lcm(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The least common multiples of integers.

    >>> gt.lcm(np.array([12, 10]), 8)
    array([24, 40])
    """


@elementwise(np.left_shift, facts=Facts(python=operator.lshift))
def bitwise_left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of integers moved to the left: times 2 to a power.

    >>> gt.bitwise_left_shift(np.array([1, 3]), 2)
    array([ 4, 12])
    """


@elementwise(np.right_shift, facts=Facts(python=operator.rshift))
def bitwise_right_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of integers moved to the right: divided by 2 to a power, rounded down.

    >>> gt.bitwise_right_shift(np.array([4, 13]), 2)
    array([1, 3])
    """


@elementwise(np.bitwise_count)
def bitwise_count(x: ArrayLike, /) -> Array:
    """How many bits are set in the absolute values of integers.

    >>> gt.bitwise_count(np.array([5, 8]))
    array([2, 1], dtype=uint8)
    """


left_shift, right_shift = bitwise_left_shift, bitwise_right_shift
