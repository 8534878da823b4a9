"""Python's operators on Python numbers, where NumPy's results would differ.

Python integers have as many digits as they need. In a compiled function they have 64 bits, like
NumPy's, but must not wrap around like those: eager code would not. Python's truth values are
integers too: `True + True` is 2, whereas for NumPy's booleans it is True.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import batch_in_place
from gradtape.core.lowering import Pointwise
from gradtape.core.op import Op
from gradtape.errors import ArgumentError, DivisionByZeroError, IntegerOverflowError
from gradtape.graph.ir import Literal, Operand, Value

_PYTHON = (bool, int, float, complex)
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
TOO_LARGE = (
    "expected one that fits into 64 bits; pass a float or an array, or name the argument in "
    "static_argnums"
)
BY_ZERO = "divided by 0, expected a divisor that is not 0"

# ---- integers -----------------------------------------------------------------------------------

DIVISIONS = frozenset({operator.truediv, operator.floordiv, operator.mod})
_SHIFTS = frozenset({operator.lshift, operator.rshift})
# Operators that may go wrong for 64-bit integers.
_OF_INTEGERS = (
    frozenset({operator.add, operator.sub, operator.mul, operator.pow, operator.neg, operator.abs})
    | DIVISIONS
    | _SHIFTS
)


def is_of_integers(op: Op, operands: Sequence[Operand]) -> bool:
    """Whether an op is an operator on Python integers that may go wrong with 64 bits."""
    return op.facts.python in _OF_INTEGERS and all(
        operand.aval.weak and operand.dtype.kind == "i" for operand in operands
    )


def computed_exactly(op: Op, numbers: Sequence[int]) -> int | float:
    """The result of the op's operator on Python integers.

    Raises:
        DivisionByZeroError: The divisor is 0.
        ArgumentError: A shift or a power by a negative number, which gives no integer.
        IntegerOverflowError: The result does not fit.
    """
    compute, name = op.facts.python, op.name
    assert compute is not None
    x, y = numbers[0], numbers[-1]
    if compute in DIVISIONS and y == 0:
        raise DivisionByZeroError(f"{name}: got the Python integer {x} {BY_ZERO}")
    if (compute is operator.pow or compute in _SHIFTS) and y < 0:
        raise ArgumentError(
            f"{name}: got the Python integers {x} and {y}, expected a second one that is not "
            "negative; pass floats if the result may be one"
        )
    # A result too large for memory is not computed.
    grows = abs(x) > 1 if compute is operator.pow else compute is operator.lshift and x
    result = None if grows and y > 64 else compute(*numbers)
    if result is None or (isinstance(result, int) and not _SMALLEST <= result <= _LARGEST):
        given = " and ".join(map(str, numbers))
        raise IntegerOverflowError(
            f"{name}: got the Python integer {given}, and the result is too large, {TOO_LARGE}"
        )
    return result  # type: ignore[no-any-return]


# ---- truth values -------------------------------------------------------------------------------

_COUNTING = _OF_INTEGERS | {operator.pos, operator.invert}
_DECIDING = frozenset(
    {operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge}
    | {operator.and_, operator.or_, operator.xor}
)

# Converts True and False to the integers that they are for Python's operators.
_COUNTED = Op(
    "int",
    lambda xp, x: np.asarray(x, np.int64),
    lambda x: Aval((), np.dtype(np.int64), weak=True),
    batch=batch_in_place,
    lower=Pointwise(lambda x: scalar.convert(x, np.int64)),
)


class Truths(set[Operand]):
    """The values of a trace that are Python's True or False in eager code, not NumPy's booleans."""

    def __contains__(self, operand: object) -> bool:
        if isinstance(operand, Literal):
            return type(operand.value) is bool
        return super().__contains__(operand)

    def counted(
        self, op: Op, operands: list[Operand], append: Callable[[Op, list[Operand]], Operand]
    ) -> list[Operand]:
        """The operands of an op, with truth values converted to integers if they count as such."""
        if op.facts.python not in _COUNTING or not self._of_python(operands):
            return operands
        counted: list[Operand] = []
        for operand in operands:
            if operand not in self:
                counted.append(operand)
            elif isinstance(operand, Literal):
                counted.append(Literal(int(operand.value)))
            else:
                counted.append(append(_COUNTED, [operand]))
        return counted

    def note(self, op: Op, operands: Sequence[Operand], value: Value) -> None:
        """Note a result if it is such a value."""
        if op.facts.python in _DECIDING and value.dtype == np.bool and self._of_python(operands):
            self.add(value)

    def _of_python(self, operands: Sequence[Operand]) -> bool:
        for operand in operands:
            if isinstance(operand, Literal):
                if type(operand.value) not in _PYTHON:
                    return False
            elif not operand.aval.weak and operand not in self:
                return False
        return True
