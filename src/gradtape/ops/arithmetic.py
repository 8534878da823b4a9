"""Arithmetic: the operators, remainders, powers, absolute values.

Each partial is the linear map `ct ↦ ct·∂`, with its maths in one line above the op.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.call import call_operator
from gradtape.core.define import elementwise
from gradtape.core.fast import fast_binary
from gradtape.core.lowering import Pointwise
from gradtape.core.op import EVERY, Facts, Op
from gradtape.core.tensor import Tensor
from gradtape.ops import lowered
from gradtape.ops.arguments import as_array, real_only
from gradtape.ops.cast import astype, conj, real
from gradtape.ops.comparison import isfinite
from gradtape.ops.exponential import log
from gradtape.ops.rounding import PIECEWISE_CONSTANT, rint
from gradtape.ops.select import divide_or_zero, mask, where
from gradtape.typing import Array, ArrayLike


# d(x + y) = dx + dy
@elementwise(
    np.add,
    lambda ct, _out, _x, _y: ct,
    lambda ct, _out, _x, _y: ct,
    operator="add",
    facts=Facts(commutes="biuf", carries=EVERY, python=operator.add),
    fast=operator.add,
    lower=scalar.add,
)
def add(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Sum of two arrays, element by element.

    >>> gt.add(np.array([1.0, 2.0]), 1.0)
    array([2., 3.])
    """


# d(x - y) = dx - dy
@elementwise(
    np.subtract,
    lambda ct, _out, _x, _y: ct,
    lambda ct, _out, _x, _y: -ct,
    operator="sub",
    facts=Facts(carries=EVERY, python=operator.sub),
    fast=operator.sub,
    lower=scalar.subtract,
)
def subtract(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Difference of two arrays, element by element.

    >>> gt.subtract(np.array([1.0, 2.0]), 1.0)
    array([0., 1.])
    """


# d(x·y) = y·dx + x·dy
@elementwise(
    np.multiply,
    lambda ct, _out, _x, y: ct * y,
    lambda ct, _out, x, _y: ct * x,
    operator="mul",
    facts=Facts(commutes="biuf", carries=EVERY, python=operator.mul, product=True),
    fast=operator.mul,
    lower=scalar.multiply,
)
def multiply(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Product of two arrays, element by element.

    >>> gt.multiply(np.array([1.0, 2.0]), 3.0)
    array([3., 6.])
    """


# d(x/y) = dx/y − (x/y)·dy/y
@elementwise(
    np.true_divide,
    lambda ct, _out, _x, y: ct / y,
    lambda ct, out, _x, y: -ct * out / y,
    operator="truediv",
    facts=Facts(carries=(0,), python=operator.truediv, divisors=(1,)),
    fast=operator.truediv,
    lower=scalar.divide,
)
def divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Quotient of two arrays, element by element.

    >>> gt.divide(np.array([1.0, 2.0]), 2.0)
    array([0.5, 1. ])
    """


# floor(x/y) is piecewise constant
@elementwise(
    np.floor_divide,
    PIECEWISE_CONSTANT,
    PIECEWISE_CONSTANT,
    operator="floordiv",
    facts=Facts(python=operator.floordiv),
    fast=operator.floordiv,
    lower=lowered.floor_divide,
)
def floor_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Quotient rounded towards minus infinity.

    >>> gt.floor_divide(np.array([5.0, -5.0]), 2.0)
    array([ 2., -3.])
    """


# x mod y = x − floor(x/y)·y
@elementwise(
    np.remainder,
    lambda ct, _out, _x, _y: ct,
    lambda ct, _out, x, y: -ct * floor_divide(x, y),
    operator="mod",
    facts=Facts(python=operator.mod),
    fast=operator.mod,
    lower=lowered.remainder,
)
def remainder(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Remainder of division with the sign of the divisor.

    >>> gt.remainder(np.array([5.0, -5.0]), 3.0)
    array([2., 1.])
    """


# fmod(x, y) = x − trunc(x/y)·y; x/y may round to the next integer, (x − out)/y is close to one
@elementwise(
    np.fmod,
    lambda ct, _out, _x, _y: ct,
    lambda ct, out, x, y: -ct * rint((x - out) / y),
    lower=lowered.fmod,
)
def fmod(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Remainder of division with the sign of the dividend.

    >>> gt.fmod(np.array([5.0, -5.0]), 3.0)
    array([ 2., -2.])
    """


def _raised(x: Any, n: Any) -> Any:
    """`x ** n` for a number n; NumPy's general power is fifty times slower than a product."""
    if n == 2:
        return x * x
    if n == 3:
        return x * x * x
    return x if n == 1 else x**n


def _power(x: Any, y: Any) -> Any:
    cube = (type(y) is int or type(y) is float) and y == 3 and x.dtype.kind in "fc"
    return x * x * x if cube else x**y


def _power_forward(xp: Any, x: Any, y: Any) -> Any:
    if getattr(x, "dtype", None) == np.bool:
        return xp.power(x, y)  # for `x**2` NumPy squares, in another dtype: see below
    return _power(x, y) if hasattr(x, "dtype") or hasattr(y, "dtype") else xp.power(x, y)


def _power_by_base(ct: Any, _out: Any, x: Any, y: Any) -> Any:
    # y·x^(y−1), and 0 for 0⁰: x⁰ is constant, also at x = 0. Elsewhere its slope depends on y,
    # except where 1/x overflows.
    if isinstance(y, int | float | complex):
        if y == 2:
            return ct * (x + x)
        if y == 1:
            return ct
        if y == 0:
            return None
        return ct * (y * _raised(x, y - 1))
    zero = (y == 0) & (isfinite(1 / x) ^ True)
    return mask(ct * y * x ** where(zero, 1, y - 1), zero ^ True)


def _power_by_exponent(ct: Any, out: Any, x: Any, y: Any) -> Any:
    # x^y·log x, and 0 at x = 0 for y ≥ 0: 0^y is constant there.
    if isinstance(x, int | float):
        if x == 0:
            return mask(ct * out * -math.inf, y < 0)
        if out.dtype.kind == "c":
            return ct * out * cmath.log(x)
        return ct * out * (math.log(x) if x > 0 else math.nan)
    flat = (x == 0) & (y >= 0)
    base = where(flat, 1, x)
    if out.dtype.kind == "c" and base.dtype.kind != "c":
        base = base + 0j  # negative numbers have a complex logarithm
    return mask(ct * out * log(base), flat ^ True)


# d(x^y) = y·x^(y−1)·dx + x^y·log(x)·dy
@elementwise(
    _power_forward,
    _power_by_base,
    _power_by_exponent,
    operator="pow",
    facts=Facts(python=operator.pow),
    fast=_power,
    lower=Pointwise(lowered.power, numbers=(-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4)),
)
def power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The first array raised to the powers of the second.

    >>> gt.power(np.array([1.0, 2.0]), 3.0)
    array([1., 8.])
    """


def _power_operator(op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
    x, y = args
    if _SQUARES and type(y) is int and y == 2 and isinstance(x, Tensor) and x.dtype == bool:
        return square(x)
    return call_operator(op, args, params)


# NumPy's operator squares if the exponent is the number 2, its function does not; for booleans it
# matters, as their square has another dtype.
_SQUARES = (np.empty(0, bool) ** 2).dtype == np.square(np.empty(0, bool)).dtype
setattr(Tensor, "__pow__", fast_binary(power.op, _power_operator))  # type: ignore[attr-defined] # noqa: B010


# d(−x) = −dx
@elementwise(
    np.negative,
    lambda ct, _out, _x: -ct,
    operator="neg",
    facts=Facts(carries=EVERY, python=operator.neg),
    fast=operator.neg,
    lower=scalar.negative,
)
def negative(x: ArrayLike, /) -> Array:
    """The array with opposite sign.

    >>> gt.negative(np.array([1.0, -2.0]))
    array([-1.,  2.])
    """


# d(+x) = dx
@elementwise(
    np.positive,
    lambda ct, _out, _x: ct,
    operator="pos",
    facts=Facts(carries=EVERY, python=operator.pos),
    fast=operator.pos,
    lower=scalar.positive,
)
def positive(x: ArrayLike, /) -> Array:
    """The array with the same sign.

    >>> gt.positive(np.array([1.0, -2.0]))
    array([ 1., -2.])
    """


# d x² = 2x·dx
@elementwise(
    np.square,
    lambda ct, _out, x: ct * (x + x),
    facts=Facts(carries=EVERY),
    lower=lowered.square,
)
def square(x: ArrayLike, /) -> Array:
    """The array times itself, element by element.

    >>> gt.square(np.array([1.0, -2.0]))
    array([1., 4.])
    """


# d(1/x) = −dx/x²
@elementwise(np.reciprocal, lambda ct, out, _x: -ct * (out * out), lower=lowered.reciprocal)
def reciprocal(x: ArrayLike, /) -> Array:
    """One divided by the array, element by element.

    >>> gt.reciprocal(np.array([1.0, -2.0]))
    array([ 1. , -0.5])
    """


# d √(x² + y²) = (x·dx + y·dy)/√(x² + y²), taken as 0 at the origin like that of a norm
@elementwise(
    np.hypot,
    lambda ct, out, x, _y: ct * divide_or_zero(x, out),
    lambda ct, out, _x, y: ct * divide_or_zero(y, out),
    lower=scalar.hypot,
)
def hypot(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Length of the hypotenuse, without overflow on the way.

    >>> gt.hypot(np.array([3.0, 5.0]), np.array([4.0, 12.0]))
    array([ 5., 13.])
    """


def _sign_change(ct: Any, out: Any, x: Any) -> Any:
    # For a real number a step. For a complex one the rotation: (dx − s·Re(s̄·dx))/|x|, 0 at 0.
    if x.dtype.kind != "c":
        return None
    length = abs(x)
    turn = ct - out * real(conj(out) * ct)
    return turn / where(length == 0, math.inf, length)


# Piecewise constant for real numbers; the map of complex ones is its own adjoint
@elementwise(
    np.sign,
    PIECEWISE_CONSTANT,
    vjps=(_sign_change,),
    jvp=lambda tangents, out, x: _sign_change(tangents[0], out, x),
    lower=lowered.sign,
)
def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1 by the sign of each element; x/|x| of a complex one.

    >>> gt.sign(np.array([-3.0, 0.0, 2.0]))
    array([-1.,  0.,  1.])
    """


def _abs_jvp(tangents: Any, _out: Any, x: Any) -> Any:
    if x.dtype.kind != "c":
        return tangents[0] * sign(x)
    return real(conj(sign(x)) * tangents[0])


# d|x| = sign(x)·dx, 0 at 0; of complex numbers Re(s̄·dx) with s = x/|x|, whose adjoint is ct ↦ ct·s
@elementwise(
    np.absolute,
    lambda ct, _out, x: ct * sign(x),
    operator="abs",
    facts=Facts(carries=EVERY, python=operator.abs),
    vjps=(lambda ct, _out, x: ct * sign(x),),
    jvp=_abs_jvp,
    lower=scalar.absolute,
)
def abs(x: ArrayLike, /) -> Array:
    """Absolute value, element by element; 0 has gradient 0.

    >>> gt.abs(np.array([1.0, -2.0]))
    array([1., 2.])
    """


absolute = abs
pow = power


def fabs(x: ArrayLike, /) -> Array:
    """Absolute value of real numbers, floating also for integers: what `np.fabs` answers.

    Raises:
        DTypeError: The array is complex.

    >>> gt.fabs(np.array([1, -2]))
    array([1., 2.])
    """
    x = real_only("fabs", as_array(x))
    if x.dtype.kind in "biu":
        x = astype(x, np.fabs(np.empty(0, x.dtype)).dtype)
    return abs(x)


def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Powers in double precision at least: what `np.float_power` answers.

    >>> gt.float_power(np.array([2, 4]), -1)
    array([0.5 , 0.25])
    """
    x = as_array(x)
    return power(astype(x, np.result_type(x.dtype, np.float64), copy=False), y)
