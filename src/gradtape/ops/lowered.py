"""Lowerings that take more than a line: expressions of one element, in the words of `core.scalar`.

Values are those of NumPy: NaN, infinities, signs of zeros, integers that wrap around.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core import promotion, scalar
from gradtape.core.aval import Aval
from gradtape.core.define import broadcast_sizes
from gradtape.core.lowering import Reader
from gradtape.core.scalar import Scalar
from gradtape.errors import UnsupportedError

# ---- elements of parts --------------------------------------------------------------------------


def between(place: Any, start: int, stop: int, size: int) -> Scalar | None:
    """Where a place along an axis of `size` lies from `start` up to `stop`; None for everywhere."""
    return both(
        place >= start if start > 0 else None,
        place < stop if stop < size else None,
    )


def both(*conditions: Scalar | None) -> Scalar | None:
    """Where all conditions hold; None for everywhere."""
    known = [condition for condition in conditions if condition is not None]
    return functools.reduce(operator.and_, known) if known else None


def within(index: Sequence[Any], shape: Sequence[int]) -> Scalar:
    """Where an index lies inside of an array on all axes."""
    sides = [side for k, n in zip(index, shape, strict=True) for side in (k >= 0, k < n)]
    inside: Scalar = functools.reduce(operator.and_, sides)
    return inside


def read_or(other: Any, x: Reader, index: Sequence[Any], inside: Scalar | None) -> Scalar:
    """The element of `x` at an index where that is inside, `other` elsewhere."""
    if inside is None:
        return x(*index)
    return scalar.where(inside, x(*index, inside=inside), scalar.fit(other, x.aval.dtype))


# ---- elements that arrays of indices name -------------------------------------------------------


def spread_index(i: Sequence[Any], shape: Sequence[int]) -> list[Any]:
    """The index into an array for an element of its broadcast form."""
    return [0 if n == 1 else k for k, n in zip(i[len(i) - len(shape) :], shape, strict=True)]


def named_place(i: Sequence[Any], array: Reader, size: int, name: str = "getitem") -> Scalar:
    """The place along an axis from an array of indices; negative ones count from its end."""
    given = scalar.convert(array(*spread_index(i, array.aval.shape)), promotion.INT64)
    counted = scalar.where(given < 0, given + size, given)
    return array.check(
        counted,
        (counted >= 0) & (counted < size),
        f"{name}: got index {{}} for an axis of size {size}, expected one from {-size} to "
        f"{size - 1}",
        given,
    )


def gather_element(i: Sequence[Any], x: Reader, *arrays: Reader, name: str = "getitem") -> Scalar:
    """`x[arrays]` of leading axes."""
    shape = x.aval.shape
    own = len(i) - (len(shape) - len(arrays))
    if 0 in shape or any(0 in array.aval.shape for array in arrays):
        raise UnsupportedError("gather: no native code for arrays without elements")
    pairs = zip(arrays, shape, strict=False)
    return x(*(named_place(i[:own], *pair, name) for pair in pairs), *i[own:])


def scatter_sizes(x: Aval, *arrays: Aval, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The sizes to loop over when adding at places: the indices, then the axes they leave alone."""
    return broadcast_sizes(*(array.shape for array in arrays)), shape[len(arrays) :]


def scatter_put(
    i: Sequence[Any], x: Reader, *arrays: Reader, shape: tuple[int, ...]
) -> tuple[list[Any], Scalar]:
    """The target of a value that is added at places of leading axes, and the value."""
    own = len(i) - (len(shape) - len(arrays))
    if 0 in shape or any(0 in array.aval.shape for array in arrays):
        raise UnsupportedError("scatter: no native code for arrays without elements")
    places = [named_place(i[:own], *pair) for pair in zip(arrays, shape, strict=False)]
    return [*places, *i[own:]], x(*spread_index(i, x.aval.shape))


# ---- quotients and remainders -------------------------------------------------------------------


def _whole_division(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """The quotient of floats rounded down, and the remainder with the sign of y."""
    rest = scalar.fmod(x, y)
    # fmod rounds towards 0: one further down where the signs differ.
    down = (rest != 0) & ((rest < 0) ^ (y < 0))
    quotient = (x - rest) / y - scalar.convert(down, x.dtype)
    whole = scalar.floor(quotient)
    whole = whole + scalar.convert(quotient - whole > 0.5, x.dtype)
    whole = scalar.where(quotient == 0, scalar.copysign(0, x / y), whole)
    rest = scalar.where(rest == 0, scalar.copysign(0, y), scalar.where(down, rest + y, rest))
    return scalar.where(y == 0, x / y, whole), rest


def floor_divide(x: Any, y: Any) -> Scalar:
    """The quotient rounded down."""
    x, y = scalar.promoted(x, y, like="floor_divide")
    return _whole_division(x, y)[0] if scalar.is_float(x) else scalar.floor_divide(x, y)


def remainder(x: Any, y: Any) -> Scalar:
    """The remainder with the sign of y."""
    x, y = scalar.promoted(x, y, like="remainder")
    return _whole_division(x, y)[1] if scalar.is_float(x) else scalar.remainder(x, y)


def fmod(x: Any, y: Any) -> Scalar:
    """The remainder with the sign of x."""
    x, y = scalar.promoted(x, y, like="fmod")
    if scalar.is_float(x):
        return scalar.fmod(x, y)
    rest = scalar.remainder(x, y)
    return scalar.where((rest != 0) & ((x < 0) ^ (y < 0)), rest - y, rest)


def reciprocal(x: Any) -> Scalar:
    """1/x of a float."""
    (x,) = scalar.promoted(x, like="reciprocal")
    if not scalar.is_float(x):
        raise UnsupportedError(f"reciprocal: no native code for {x.dtype}")
    return scalar.divide(1, x)


# ---- powers -------------------------------------------------------------------------------------


def square(x: Any) -> Scalar:
    """x·x."""
    (x,) = scalar.promoted(x, like="square")
    return scalar.multiply(x, x)


def power(x: Any, y: Any) -> Scalar:
    """The power of x to y; for integers y must be known."""
    booleans = scalar.scalar(x).dtype == promotion.BOOL
    x, y = scalar.promoted(x, y, like="power")
    n = y.extra if y.name == "constant" else None
    if not scalar.is_float(x):
        if n is None or n < 0 or booleans:
            raise UnsupportedError("power: no native code for integers to powers not known as >= 0")
        return _product(x, n)
    if n == 0.5:
        return scalar.sqrt(x)  # differs from a power at -0 and -inf; NumPy takes it as well
    if n == -1:
        return scalar.divide(1, x)
    return _product(x, int(n)) if n in (0, 1, 2, 3, 4) else scalar.power(x, y)


def _product(x: Scalar, n: int) -> Scalar:
    """An integer power of x, by squaring."""
    result = None
    while n:
        if n % 2:
            result = x if result is None else result * x
        n //= 2
        x = x * x if n else x
    return scalar.constant(1, x.dtype) if result is None else result


# ---- signs and rounding -------------------------------------------------------------------------


def sign(x: Any) -> Scalar:
    """-1, 0 or 1; NaN of NaN."""
    (x,) = scalar.promoted(x, like="sign")
    steps = scalar.convert(x > 0, x.dtype) - scalar.convert(x < 0, x.dtype)
    return scalar.where(scalar.isnan(x), x, steps)


def round(x: Any, decimals: int) -> Scalar:
    """Round by shifting the decimal point, as NumPy does; integers stay unless it shifts left."""
    x = scalar.scalar(x)
    if x.dtype.kind in "iu" and decimals >= 0:
        return scalar.positive(x)
    if decimals == 0:
        return scalar.rint(x)
    if not scalar.is_float(x):
        raise UnsupportedError(f"round: no native code for {x.dtype} and decimals={decimals}")
    power = 10.0 ** abs(decimals)
    return scalar.rint(x * power) / power if decimals > 0 else scalar.rint(x / power) * power


# ---- exponentials and logarithms ----------------------------------------------------------------


def log_of_sum(x: Any, y: Any, grown: Callable[[Scalar], Scalar], twice: float) -> Scalar:
    """max(x, y) plus the share of the smaller one: `grown(−|x − y|)`, or `twice` if equal."""
    x, y = scalar.promoted(x, y, like="logaddexp")
    # Infinities of one sign are equal; their difference is not a number.
    return scalar.where(x == y, x + twice, scalar.maximum(x, y) + grown(-scalar.absolute(x - y)))


def xlogy(x: Any, y: Any) -> Scalar:
    """x·log y, and 0 where x is 0 and y a number."""
    x, y = scalar.scalar(x), scalar.scalar(y)
    dtype = scalar.common(x, y)
    # Python's numbers are weak here, as everywhere; SciPy takes them as float64.
    x, y = (scalar.fit(v, dtype) if v.weak else v for v in (x, y))
    x, y = scalar.promoted(x, y, like="xlogy")
    return scalar.where((x == 0) & ~scalar.isnan(y), 0, x * scalar.log(y))


# ---- what is close, and what is finite ----------------------------------------------------------


def isclose(x: Any, y: Any, rtol: float, atol: float, equal_nan: bool) -> Scalar:
    """|x − y| ≤ atol + rtol·|y| for finite y, or x = y."""
    x, y = scalar.scalar(x), scalar.scalar(y)
    # Floating, as |y| of the smallest integer would be negative.
    exact = y if scalar.is_float(y) and not y.weak else scalar.convert(y, promotion.FLOAT64)
    bound = atol + rtol * scalar.absolute(exact)
    if y.weak:
        dtype = scalar.common(x, scalar.constant(1.0))
        y, bound = scalar.convert(exact, dtype), scalar.convert(bound, dtype)
    else:
        y = exact
    within = scalar.less_equal(scalar.absolute(x - y), bound)
    close: Scalar = (within & scalar.isfinite(exact)) | (x == y)
    return close | (scalar.isnan(x) & scalar.isnan(y)) if equal_nan else close


def nan_to_num(x: Any, nan: float, posinf: float | None, neginf: float | None) -> Scalar:
    """The number if it is finite, else its replacement."""
    x = scalar.scalar(x)
    if not scalar.is_float(x):
        return scalar.positive(x)
    largest = float(np.finfo(x.dtype).max)
    above, below = largest if posinf is None else posinf, -largest if neginf is None else neginf
    numbers = [scalar.constant(value, x.dtype) for value in (nan, above, below)]
    finite = scalar.where(x == -math.inf, numbers[2], x)
    return scalar.where(
        scalar.isnan(x), numbers[0], scalar.where(x == math.inf, numbers[1], finite)
    )


def clip(x: Any, low: Any, high: Any) -> Scalar:
    """The number clipped to bounds, the upper one last; None is no bound."""
    if x.dtype.kind in "iu":  # nor is one that lies beyond all integers of the dtype
        limits = np.iinfo(x.dtype)
        low = None if type(low) is int and low < limits.min else low
        high = None if type(high) is int and high > limits.max else high
    raised = scalar.positive(x) if low is None else scalar.maximum(x, low)
    return raised if high is None else scalar.minimum(raised, high)
