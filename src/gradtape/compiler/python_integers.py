"""Arithmetic of Python integers in native code: exact, or it raises."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from gradtape.compiler.kernel import Failure
from gradtape.core.promotion import INT64
from gradtape.core.scalar import Scalar, check, constant, convert, multiply
from gradtape.errors import DivisionByZeroError, IntegerOverflowError
from gradtape.graph.ir import Node
from gradtape.graph.python_numbers import BY_ZERO, DIVISIONS, TOO_LARGE

_SMALLEST = constant(-(2**63), INT64)


def _added(x: Scalar, y: Scalar, result: Scalar) -> Scalar:
    # It wrapped around if its sign is neither that of x nor that of y.
    return ((x ^ result) & (y ^ result)) >= 0


def _subtracted(x: Scalar, y: Scalar, result: Scalar) -> Scalar:
    return ((x ^ y) & (x ^ result)) >= 0


def _multiplied(x: Scalar, y: Scalar, result: Scalar) -> Scalar:
    # The quotient of the smallest integer and -1 itself wraps around.
    return (x == 0) | ((result // x == y) & _divided(y, x, result))


def _divided(x: Scalar, y: Scalar, _result: Scalar) -> Scalar:
    return (x != _SMALLEST) | (y != -1)


def _negated(x: Scalar, _result: Scalar) -> Scalar:
    return x != _SMALLEST


def _raised(x: Scalar, y: Scalar, _result: Scalar) -> Scalar:
    """Whether all products of a power by repeated squaring fit; its exponent is known."""
    holds, n, power = constant(True), int(y.extra), None
    while n:
        if n % 2:
            if power is None:
                power = x
            else:
                product = multiply(power, x)
                holds, power = holds & _multiplied(power, x, product), product
        n //= 2
        if n:
            squared = multiply(x, x)
            holds, x = holds & _multiplied(x, x, squared), squared
    return holds


# For each operator whose result may be too large, the condition that it fits.
_FITS: dict[Any, Callable[..., Scalar]] = {
    operator.add: _added,
    operator.sub: _subtracted,
    operator.mul: _multiplied,
    operator.floordiv: _divided,
    operator.neg: _negated,
    operator.abs: _negated,
    operator.pow: _raised,
}


def checked(
    node: Node, operands: Sequence[Scalar], result: Scalar, inside: Scalar | None
) -> Scalar:
    """The result of an op on Python integers, with the conditions that it has to meet."""
    python, guard = node.op.facts.python, () if inside is None else (inside,)
    # 64 bits wide, and no longer weak.
    numbers = [convert(operand, INT64) for operand in operands]
    got = f"{node.op.name}: got the Python integer {{}}"
    divisor = operands[-1]
    if python in DIVISIONS and not (divisor.name == "constant" and divisor.extra):
        failure = Failure(node, f"{got} {BY_ZERO}", DivisionByZeroError)
        result = check(result, numbers[1] != 0, failure, numbers[0], *guard)
    if python in _FITS:
        message = f"{got}, and the result is too large, {TOO_LARGE}"
        failure = Failure(node, message, IntegerOverflowError)
        result = check(result, _FITS[python](*numbers, result), failure, numbers[0], *guard)
    return result
