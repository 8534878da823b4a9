"""Ops from SciPy's functions: dtypes, parameters, several results; and what their rules share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from gradtape.core import scalar
from gradtape.core.define import elementwise
from gradtape.core.op import NotDifferentiable, Rule
from gradtape.errors import ArgumentError, NotDifferentiableError
from gradtape.ops.arguments import INTEGER, as_array
from gradtape.ops.cast import astype
from gradtape.ops.erf import F16, scipy_special, special
from gradtape.ops.inspection import result_type
from gradtape.ops.rounding import floor
from gradtape.typing import Array, ArrayLike

F = TypeVar("F", bound=Callable[..., Any])

_COMPLEX = {"f": np.dtype(np.complex64), "d": np.dtype(np.complex128)}


def of_scipy(name: str, *, whole: Sequence[int] = ()) -> Callable[..., Any]:
    """The forward of one of SciPy's functions of several arrays.

    The numbers are those of SciPy, the dtypes those of NumPy's functions: Python's numbers are
    weak, float16 stays, and whole numbers make float64.

    Args:
        name: The function's name in `scipy.special`.
        whole: Positions of arguments (degrees, orders) that are passed unchanged: SciPy treats
            integers better than real numbers, or accepts nothing else.
    """

    def forward(xp: Any, *args: Any) -> Any:
        function = getattr(scipy_special(xp), name)
        count = getattr(function, "nin", len(args))
        if len(args) != count:  # SciPy would take one more as `out`
            raise TypeError(f"expected {count} argument{'s' if count > 1 else ''}")
        dtype = xp.result_type(*args)
        wide = dtype.char.lower() if dtype.char in "fdFD" else "f" if dtype == F16 else "d"
        converted = [
            arg if i in whole else _converted(xp, arg, dtype, wide) for i, arg in enumerate(args)
        ]
        out = function(*converted)
        if isinstance(out, tuple):
            return tuple(_narrowed(part, dtype) for part in out)
        return _narrowed(out, dtype)

    return forward


def scipy_function(
    *partials: Rule | str, whole: Sequence[int] = (), **options: Any
) -> Callable[[F], F]:
    """Define an op by the function of `scipy.special` that has the name of the declared one.

    Args:
        *partials: As for `elementwise`. Words in place of the first one are for all arguments
            before the others (orders, degrees), in which it is not differentiated.
        whole: As for `of_scipy`.
        **options: As for `elementwise`.
    """

    def define(declared: F) -> F:
        name, arguments = declared.__name__, declared.__code__.co_argcount
        rules = [in_parameter(name, rule) if isinstance(rule, str) else rule for rule in partials]
        rules = rules[:1] * (arguments - len(rules)) + rules
        one = arguments == 1 and "outputs" not in options
        forward = special(name) if one else of_scipy(name, whole=whole)
        return elementwise(forward, *rules, **options)(declared)

    return define


def _converted(xp: Any, arg: Any, dtype: Any, wide: str) -> Any:
    # Python's integers have to fit beside others, as in NumPy.
    weak = type(arg) is int and dtype.kind in "iu"
    array = xp.asarray(arg, dtype) if weak else xp.asarray(arg)
    kind = _COMPLEX[wide] if array.dtype.kind == "c" else np.dtype(wide)
    return array if array.dtype == kind else array.astype(kind)


def as_complex(z: ArrayLike) -> Array:
    """An argument of a function whose results are complex, made complex itself."""
    z = as_array(z)
    if z.dtype.kind == "c":
        return z
    return astype(z, _COMPLEX["f" if z.dtype.kind in "fV" and z.dtype.itemsize <= 4 else "d"])


def operand(x: ArrayLike) -> Any:
    """An argument to compute with by operators: numbers stay weak, lists become arrays."""
    return x if isinstance(x, int | float | complex) else as_array(x)


def promoted(*args: ArrayLike) -> list[Array]:
    """Arguments as arrays of one floating dtype, as a ufunc takes them."""
    operands = [operand(arg) for arg in args]
    dtype = result_type(*operands, 0.0)
    return [astype(as_array(x), dtype, copy=False) for x in operands]


def typed(dtype: np.dtype[Any], *operands: Any) -> list[Any]:
    """Operands, with numbers as arrays of a dtype.

    For rules that choose between operands and constants: of two numbers, `where` makes float64.
    """
    return [np.asarray(x, dtype) if isinstance(x, int | float) else x for x in operands]


def whole_part(k: ArrayLike) -> Any:
    """An argument rounded down."""
    return math.floor(k) if isinstance(k, int | float) else floor(as_array(k))


def _narrowed(out: Any, dtype: Any) -> Any:
    if dtype.kind == "f" and out.dtype.kind == "f" and out.dtype != dtype:
        return out.astype(dtype)
    return out


def doubled(name: str, expression: Callable[..., Any], *, wide: bool = True) -> Callable[..., Any]:
    """The native form of a function of SciPy by its expression in double precision.

    SciPy computes many of its functions of float32 in double precision, and rounds the result.

    Args:
        name: The function of SciPy, which says what dtypes there are.
        expression: Of one element, see `core.scalar`.
        wide: Whether float32 is widened.
    """

    def element(*operands: Any) -> Any:
        values = [scalar.scalar(value) for value in operands]
        common = scalar.common(*values)
        # Python's numbers are weak here, as everywhere; SciPy takes them as float64.
        values = [scalar.fit(value, common) if value.weak else value for value in values]
        values = list(scalar.promoted(*values, like=name))
        dtype = values[0].dtype
        if wide:
            values = [scalar.convert(value, np.float64) for value in values]
        return scalar.convert(expression(*values), dtype)

    return element


def in_parameter(function: str, parameter: str) -> NotDifferentiable:
    """The rule for a parameter (an order, a degree) that a function is not differentiated in."""
    return NotDifferentiable(
        f"{function}: no derivative with respect to {parameter} is known in closed form"
    )


def real_only(name: str, z: Any) -> Any:
    """The argument of a function that is scaled by an absolute value; raises if it is complex."""
    if z.dtype.kind == "c":
        raise NotDifferentiableError(
            f"{name}: got {z.dtype}; its scale is an absolute value of a complex number, so it "
            "has no complex derivative; use the function without scale"
        )
    return z


def check_whole(name: str, least: int, **given: Any) -> None:
    """Raise an ArgumentError for a parameter that is not an integer from the least one on."""
    for option, value in given.items():
        if not isinstance(value, INTEGER) or value < least:
            raise ArgumentError(f"{name}: got {option}={value!r}, expected an integer from {least}")


def series(coefficients: Sequence[float], x: Any) -> Any:
    """Σ cₖ·xᵏ by Horner's rule, for anything."""
    total: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def raised(powers: tuple[Any, ...], i: int) -> tuple[Any, ...]:
    """Powers, or orders, one of them greater by 1: the parameters of a derivative."""
    return (*powers[:i], powers[i] + 1, *powers[i + 1 :])
