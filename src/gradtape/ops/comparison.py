"""Comparisons, logic and bits: elementwise results that have no derivative.

The operators answer as NumPy's do; operands of foreign classes are left to Python, so that
`t == None` is False and `t < None` an error.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.call import call_operator
from gradtape.core.define import elementwise
from gradtape.core.evaluate import explain
from gradtape.core.lazy import Deferred
from gradtape.core.op import Facts, Op
from gradtape.core.scalar import truth
from gradtape.core.state import STATE
from gradtape.core.tensor import Tensor
from gradtape.typing import Array, ArrayLike

# ---- comparisons --------------------------------------------------------------------------------


@elementwise(np.equal, facts=Facts(commutes="b", python=operator.eq), lower=scalar.equal)
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether elements are equal.

    >>> gt.equal(np.array([1.0, 2.0]), 2.0)
    array([False,  True])
    """


@elementwise(np.not_equal, facts=Facts(commutes="b", python=operator.ne), lower=scalar.not_equal)
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether elements differ.

    >>> gt.not_equal(np.array([1.0, 2.0]), 2.0)
    array([ True, False])
    """


@elementwise(np.less, facts=Facts(python=operator.lt), lower=scalar.less)
def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether elements of the first array are smaller.

    >>> gt.less(np.array([1.0, 2.0]), 2.0)
    array([ True, False])
    """


@elementwise(np.less_equal, facts=Facts(python=operator.le), lower=scalar.less_equal)
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether elements of the first array are smaller or equal.

    >>> gt.less_equal(np.array([1.0, 2.0]), 1.0)
    array([ True, False])
    """


@elementwise(np.greater, facts=Facts(python=operator.gt), lower=scalar.greater)
def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether elements of the first array are larger.

    >>> gt.greater(np.array([1.0, 2.0]), 1.0)
    array([False,  True])
    """


@elementwise(np.greater_equal, facts=Facts(python=operator.ge), lower=scalar.greater_equal)
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether elements of the first array are larger or equal.

    >>> gt.greater_equal(np.array([1.0, 2.0]), 2.0)
    array([False,  True])
    """


@elementwise(np.isnan, lower=scalar.isnan)
def isnan(x: ArrayLike, /) -> Array:
    """Whether elements are NaN.

    >>> gt.isnan(np.array([1.0, np.nan]))
    array([False,  True])
    """


@elementwise(np.isinf, lower=lambda x: scalar.absolute(x) == math.inf)
def isinf(x: ArrayLike, /) -> Array:
    """Whether elements are infinite.

    >>> gt.isinf(np.array([1.0, -np.inf]))
    array([False,  True])
    """


@elementwise(np.isfinite, lower=scalar.isfinite)
def isfinite(x: ArrayLike, /) -> Array:
    """Whether elements are neither infinite nor NaN.

    >>> gt.isfinite(np.array([1.0, np.nan]))
    array([ True, False])
    """


@elementwise(np.signbit, lower=scalar.signbit)
def signbit(x: ArrayLike, /) -> Array:
    """Whether elements have a minus sign, zeros included.

    >>> gt.signbit(np.array([1.0, -0.0]))
    array([False,  True])
    """


# ---- logic --------------------------------------------------------------------------------------


@elementwise(np.logical_and, facts=Facts(commutes="b"), lower=lambda x, y: truth(x) & truth(y))
def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether both elements are true (not zero).

    >>> gt.logical_and(np.array([True, False]), True)
    array([ True, False])
    """


@elementwise(np.logical_or, facts=Facts(commutes="b"), lower=lambda x, y: truth(x) | truth(y))
def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether at least one of the elements is true (not zero).

    >>> gt.logical_or(np.array([True, False]), False)
    array([ True, False])
    """


@elementwise(np.logical_xor, facts=Facts(commutes="b"), lower=lambda x, y: truth(x) ^ truth(y))
def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether exactly one of the elements is true (not zero).

    >>> gt.logical_xor(np.array([True, False]), True)
    array([False,  True])
    """


@elementwise(np.logical_not, lower=lambda x: ~truth(x))
def logical_not(x: ArrayLike, /) -> Array:
    """Whether elements are false (zero).

    >>> gt.logical_not(np.array([True, False]))
    array([False,  True])
    """


# ---- bits ---------------------------------------------------------------------------------------


@elementwise(
    np.bitwise_and, facts=Facts(commutes="biu", python=operator.and_), lower=scalar.bitwise_and
)
def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Bits set in both elements; of booleans, whether both are true.

    >>> gt.bitwise_and(np.array([5, 6]), 3)
    array([1, 2])
    """


@elementwise(
    np.bitwise_or, facts=Facts(commutes="biu", python=operator.or_), lower=scalar.bitwise_or
)
def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Bits set in one of the elements at least; of booleans, whether one is true.

    >>> gt.bitwise_or(np.array([5, 6]), 3)
    array([7, 7])
    """


@elementwise(
    np.bitwise_xor, facts=Facts(commutes="biu", python=operator.xor), lower=scalar.bitwise_xor
)
def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Bits set in exactly one of the elements; of booleans, whether they differ.

    >>> gt.bitwise_xor(np.array([5, 6]), 3)
    array([6, 5])
    """


@elementwise(np.invert, facts=Facts(python=operator.invert), lower=scalar.bitwise_invert)
def bitwise_invert(x: ArrayLike, /) -> Array:
    """All bits inverted; of booleans, the opposite.

    >>> gt.bitwise_invert(np.array([True, False]))
    array([False,  True])
    """


# ---- operators ----------------------------------------------------------------------------------


def _binary(op: Op, compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The operator of an untracked op: the straight line for raw arrays, else dispatch."""

    def method(x: Any, y: Any, /) -> Any:
        state = STATE.get()
        if type(x) is Tensor and state.plain:
            kind = type(y)
            value = y
            if kind is Tensor:
                value = y.value
                known = y.record is None or y.record.segment is state.recorder.segment
            elif kind is float or kind is int:
                known = x.value.dtype.kind != "V"  # NumPy does not round it to bfloat16
            else:
                known = kind is np.ndarray
            # A tensor recorded elsewhere may not be allowed here: dispatch checks.
            if known and (x.record is None or x.record.segment is state.recorder.segment):
                try:
                    return Tensor(compute(x.value, value))
                except Exception as error:
                    raise explain(op, error, (x, y)) from error
        return call_operator(op, (x, y), {})

    return method


def _install() -> None:
    """Give tensors the operators of this family."""
    compared = {"eq": equal, "ne": not_equal, "lt": less, "le": less_equal}
    compared |= {"gt": greater, "ge": greater_equal}
    bits = {"and": bitwise_and, "or": bitwise_or, "xor": bitwise_xor}
    function: Any
    for name, function in (compared | bits).items():
        compute = getattr(operator, f"__{name}__")
        setattr(Tensor, f"__{name}__", _binary(function.op, compute))
    for name, function in bits.items():
        setattr(Tensor, f"__r{name}__", _reflected(function.op))
        setattr(Tensor, f"__i{name}__", _augmented(function))
    for name, shift in {"lshift": _left_shift, "rshift": _right_shift}.items():
        for prefix, method in zip(("", "r", "i"), _shift(shift), strict=True):
            setattr(Tensor, f"__{prefix}{name}__", method)
    setattr(Tensor, "__invert__", bitwise_invert)  # noqa: B010 - a type checker may not see it


def _reflected(op: Op) -> Callable[[Any, Any], Any]:
    return lambda x, y: call_operator(op, (y, x), {})


# Few programs shift bits.
_left_shift = Deferred("gradtape.ops.arrays.integers:bitwise_left_shift")
_right_shift = Deferred("gradtape.ops.arrays.integers:bitwise_right_shift")


def _shift(deferred: Deferred) -> tuple[Callable[[Any, Any], Any], ...]:
    """The three operators of a function that is loaded when it is used."""

    def shift(x: Any, y: Any, /) -> Any:
        return call_operator(deferred.function.op, (x, y), {})

    return shift, lambda x, y: shift(y, x), lambda x, y: x.augment(deferred.function, y)


def _augmented(function: Callable[..., Any]) -> Callable[[Tensor, Any], Tensor]:
    return lambda x, y: x.augment(function, y)


_install()
