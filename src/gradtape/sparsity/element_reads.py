"""Which elements of its operands an element of a result reads, as the lowering of an op says.

The expression of one element (`core.scalar`) is looked at for all elements at once. Conditions and
index expressions that do not depend on the argument are evaluated with NumPy; what they read by
value is noted. What follows from them is a list of `Term`s: for each point, one element of an
operand. Derivatives do not pass comparisons, conditions, indices and integers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.promotion import FLOAT64, INT64, NATIVE
from gradtape.core.scalar import Scalar
from gradtape.ops.lowered import spread_index

Shape = tuple[int, ...]

_COMPARISONS = frozenset(
    {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "signbit"}
)
_ARITHMETIC = frozenset(
    {"add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "negative"}
    | {"absolute", "maximum", "minimum", "copysign", "floor", "ceil", "trunc", "rint"}
    | {"left_shift", "right_shift"}
)
_INSTRUCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in (*_COMPARISONS, *_ARITHMETIC)},
    **{name: getattr(np, f"bitwise_{name}") for name in ("and", "or", "xor")},
    "select": np.where,
    "rarely": np.where,
    "check": lambda value, *_rest: value,
    "watch": lambda value, *_guard: value,
}


class Term(NamedTuple):
    """An operand that is read once for each point.

    Attributes:
        operand: Which operand.
        over: Axes along which every element may be read, as the index is not known.
        places: For each point the element that is read, counted in C order over the other axes; -1
            where none is.
    """

    operand: int
    over: tuple[int, ...]
    places: Any


class _Reader:
    """An operand in an expression: what is read of it becomes an instruction `read`."""

    def __init__(self, number: int, aval: Aval, literal: Any) -> None:
        self._number = number
        self._literal = literal
        # The places do not depend on the dtype, and not every dtype has instructions.
        dtype = aval.dtype if aval.dtype in NATIVE else FLOAT64
        self.aval = Aval(aval.shape, dtype, weak=aval.weak)

    def __call__(self, *index: Any, inside: Scalar | None = None) -> Scalar:
        if self._literal is not None:
            return scalar.constant(self._literal)
        places = [scalar.constant(k, INT64) if isinstance(k, int) else k for k in index]
        args = (*places, *(() if inside is None else (inside,)))
        aval = self.aval
        return Scalar("read", args, aval.dtype, weak=aval.weak, extra=self._number)

    def check(self, value: Scalar, holds: Scalar, message: str, given: Scalar) -> Scalar:
        return scalar.check(value, holds, message, given)

    def watch(self, value: Scalar) -> Scalar:
        return scalar.watch(value)


class _Found(NamedTuple):
    """What is known of an expression: its values, and the operands that were read for them."""

    values: Any
    read: frozenset[int] = frozenset()


_UNKNOWN = _Found(None)


class Reads:
    """Looks at expressions for the elements of a result.

    Args:
        shape: The axes of the points an expression is computed for.
        avals: The operands.
        literals: For each operand the Python number that it is, or None.
        known: `known(n)` gives the array of an operand, or None if it depends on the argument.

    Attributes:
        relied: Operands whose values the terms depend on.
        on_zeros: Operands of which only the places of zeros matter to the terms.
    """

    def __init__(
        self,
        shape: Shape,
        avals: Sequence[Aval],
        literals: Sequence[Any],
        known: Callable[[int], Any],
    ) -> None:
        self.shape = shape
        self.point = tuple(Scalar("axis", (), INT64, extra=axis) for axis in range(len(shape)))
        self.readers = [
            _Reader(n, *pair) for n, pair in enumerate(zip(avals, literals, strict=True))
        ]
        self.relied: set[int] = set()
        self.on_zeros: set[int] = set()
        self._avals = avals
        self._known = known
        self._found: dict[int, tuple[Scalar, _Found]] = {}
        self._masks: dict[tuple[int, int, bool], Any] = {}

    def beside(self, operand: int) -> Scalar:
        """The element of an operand that is broadcast to the shape of the points."""
        index = spread_index(self.point, self._avals[operand].shape)
        return self.readers[operand](*index)

    # ---- values --------------------------------------------------------------------------------

    def values(self, expression: Any) -> Any:
        """The values of an expression, broadcasting to the shape of the points; None if not known.

        The terms depend on these values from here on.
        """
        found = self._look(scalar.scalar(expression))
        self.relied |= found.read
        return found.values

    def _look(self, expression: Scalar) -> _Found:
        """What is known of an expression and, on the way, of its parts."""
        pending = [expression]
        while pending:
            part = pending[-1]
            if id(part) in self._found:
                pending.pop()
                continue
            missing = [arg for arg in part.args if id(arg) not in self._found]
            pending += missing
            if not missing:
                args = [self._found[id(arg)][1] for arg in part.args]
                with np.errstate(all="ignore"):
                    self._found[id(part)] = part, self._computed(part, args)
        return self._found[id(expression)][1]

    def _computed(self, part: Scalar, args: Sequence[_Found]) -> _Found:
        if part.name == "constant":
            return _Found(np.asarray(part.extra))
        if part.name == "axis":
            sides = [1] * len(self.shape)
            sides[part.extra] = -1
            return _Found(np.arange(self.shape[part.extra]).reshape(sides))
        values = [arg.values for arg in args]
        read = frozenset().union(*(arg.read for arg in args))
        if part.name == "read":
            array = None if any(v is None for v in values) else self._known(part.extra)
            if array is None or array.dtype not in NATIVE:
                return _UNKNOWN
            return _Found(_elements(array, values), read | {part.extra})
        instruction = _INSTRUCTIONS.get(part.name)
        if any(v is None for v in values) or (instruction is None and part.name != "convert"):
            return _UNKNOWN
        made = values[0] if instruction is None else instruction(*values)
        return _Found(made.astype(part.dtype, copy=False), read)

    # ---- terms ---------------------------------------------------------------------------------

    def terms(self, expression: Scalar, tracked: Sequence[bool]) -> list[Term]:
        """What the derivative of an expression reads of the operands that are tracked."""
        found: list[Term] = []
        pending: list[tuple[Scalar, Any]] = [(scalar.scalar(expression), None)]
        seen: set[tuple[int, int]] = set()
        while pending:
            part, mask = pending.pop()
            if (id(part), id(mask)) in seen or part.name in _COMPARISONS or part.dtype == np.bool_:
                continue
            seen.add((id(part), id(mask)))
            if part.name == "read":
                if tracked[part.extra]:
                    found.append(self._term(part, mask))
            elif part.name in ("select", "rarely"):
                condition, *branches = part.args
                holds = self.values(condition)
                for branch, wanted in zip(branches, (True, False), strict=True):
                    pending.append((branch, self._both(mask, holds, wanted)))
            elif part.name == "multiply":
                for one, other in (part.args, part.args[::-1]):
                    pending.append((one, self._both(mask, self._nonzero(other), True)))
            elif part.name in ("check", "watch"):
                pending.append((part.args[0], mask))
            elif part.name != "convert" or part.dtype.kind in "fc":
                pending += [(arg, mask) for arg in part.args]
        return found

    def _nonzero(self, factor: Scalar) -> Any:
        """Where a known factor is not zero; None if it is nowhere, or not known."""
        found = self._look(factor)
        if found.values is None or factor.name == "constant" or np.all(found.values):
            return None
        source = factor.args[0] if factor.name == "convert" else factor
        as_stored = source.name == "read" and found.read == {source.extra}
        (self.on_zeros if as_stored else self.relied).update(found.read)
        return found.values != 0

    def _both(self, mask: Any, holds: Any, wanted: bool) -> Any:
        """Where a mask holds and a condition is as wanted; None for everywhere."""
        if holds is None:
            return mask
        key = (id(mask), id(holds), wanted)
        if key not in self._masks:
            new = holds if wanted else ~holds
            # The arrays are kept, too: another one could have the id of one that died.
            self._masks[key] = (new if mask is None else mask & new), mask, holds
        return self._masks[key][0]

    def _term(self, part: Scalar, mask: Any) -> Term:
        shape = self._avals[part.extra].shape
        index = [self.values(place) for place in part.args[: len(shape)]]
        valid = [] if mask is None else [mask]
        if len(part.args) > len(shape):
            inside = self.values(part.args[-1])
            valid += [] if inside is None else [inside]
        over = tuple(axis for axis, place in enumerate(index) if place is None)
        flat: Any = np.int64(0)
        for place, size in zip(index, shape, strict=True):
            if place is not None:
                valid.append((place >= 0) & (place < size))
                flat = flat * size + place
        places = np.where(functools.reduce(np.logical_and, valid, True), flat, -1)
        return Term(part.extra, over, np.broadcast_to(places, self.shape).reshape(-1))


def _elements(array: Any, values: Sequence[Any]) -> Any:
    """The elements of an array at places; some element where they are not inside of it."""
    if not array.size:
        return np.zeros(np.broadcast_shapes(*(v.shape for v in values)), array.dtype)
    places = zip(values[: array.ndim], array.shape, strict=True)
    return array[tuple([np.clip(place, 0, size - 1) for place, size in places])]
