"""Pulling elements: from an index of a result to the expression that computes it.

An op's lowering says how one element of its result comes from elements of its operands. Pulling
follows that through all ops whose results are not stored, down to loads from buffers; an element
needed twice at the same index is the same expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradtape.compiler.kernel import Axis, Buffer, Failure, Place, affine, bounds
from gradtape.compiler.python_integers import checked
from gradtape.core.aval import Aval
from gradtape.core.lowering import Elements, Pointwise, Reduction, Relabel
from gradtape.core.promotion import INT64, stored
from gradtape.core.scalar import Scalar, bitwise_and, check, constant, convert, scalar, truth, watch
from gradtape.errors import UnsupportedError
from gradtape.graph.ir import Literal, Node, Operand, Value
from gradtape.graph.layout import matching_runs
from gradtape.graph.python_numbers import is_of_integers

Index = tuple[Scalar, ...]
# Gives the element of a stored value, addressed under a shape; None if the value is not stored.
Stored = Callable[[Value, tuple[int, ...], Index, Scalar | None], Scalar | None]

ZERO = constant(0, INT64)


class Puller:
    """Makes the expressions of one loop."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self._known: dict[tuple[Any, ...], Scalar] = {}
        # Keeps every index alive, so that ids stay unique.
        self._indices: list[Index] = []

    def element(self, operand: Operand, index: Index, inside: Scalar | None = None) -> Scalar:
        """The element of an operand at an index, valid where `inside` holds."""
        if isinstance(operand, Literal):
            stored(operand.dtype)
            return constant(operand.value)
        key = (operand, *map(id, index), id(inside))
        known = self._known.get(key)
        if known is None:
            self._indices.append((*index, ZERO if inside is None else inside))
            known = self._stored(operand, operand.shape, index, inside)
            if known is None:
                assert operand.node is not None  # inputs are stored
                made = self._computed(operand.node, index, inside)
                known = convert(made, operand.dtype)
                if operand.aval.weak:
                    known = Scalar(
                        known.name, known.args, known.dtype, weak=True, extra=known.extra
                    )
            self._known[key] = known
        return known

    def readers(self, node: Node, inside: Scalar | None = None) -> list[_Reader]:
        """The operands of a node as its lowering reads them."""
        return [_Reader(self, operand, inside, node) for operand in node.operands]

    def _computed(self, node: Node, index: Index, inside: Scalar | None) -> Scalar:
        lowering, params = node.op.lower, node.params
        if isinstance(lowering, Pointwise):
            elements = [
                self.element(operand, broadcast_index(index, operand.shape), inside)
                for operand in node.operands
            ]
            made = scalar(lowering.expression(*elements, **params))
            if is_of_integers(node.op, node.operands):
                return checked(node, elements, made, inside)
            return made
        if isinstance(lowering, Elements):
            return scalar(lowering.expression(index, *self.readers(node, inside), **params))
        if isinstance(lowering, Reduction):
            # A single element is combined with nothing: it is the result.
            source = node.operands[0]
            axes = params["axis"]
            if not params["keepdims"]:
                rest = iter(index)
                index = tuple(ZERO if a in axes else next(rest) for a in range(len(source.shape)))
            return reduced_element(node, self.element(source, index, inside))
        assert isinstance(lowering, Relabel)
        source, shape = node.operands[0], node.outputs[0].shape
        if isinstance(source, Value):
            stored = self._stored(source, shape, index, inside)
            if stored is not None:
                return stored
        return self.element(source, reshaped_index(index, shape, source.shape), inside)


def reduction_of(node: Node | None) -> Reduction:
    """The lowering of a node that is a reduction."""
    assert node is not None
    assert isinstance(node.op.lower, Reduction)
    return node.op.lower


def reduced_element(node: Node, element: Scalar) -> Scalar:
    """The value that a reduction combines: the element in the dtype of the result."""
    lowering = reduction_of(node)
    if lowering.element is not None:
        element = lowering.element(element)
    return convert(element, node.outputs[0].dtype)


class _Reader:
    """An operand in the expression of `Elements`."""

    __slots__ = ("_inside", "_node", "_operand", "_puller", "aval", "dtype", "shape")

    def __init__(self, puller: Puller, operand: Operand, inside: Scalar | None, node: Node) -> None:
        self._puller = puller
        self._operand = operand
        self._inside = inside
        self._node = node
        self.aval: Aval = operand.aval
        self.shape, self.dtype = operand.shape, operand.dtype

    def __call__(self, *index: Any, inside: Any = None) -> Scalar:
        guard = self._inside
        if inside is not None:
            own = decided(truth(inside))
            if not (own.name == "constant" and own.extra):
                guard = own if guard is None else bitwise_and(guard, own)
        places = tuple(
            # A checked index is part of the expression even where it can only be 0.
            convert(scalar(i), INT64) if size != 1 or _is_checked(i) else ZERO
            for i, size in zip(index, self.shape, strict=True)
        )
        return self._puller.element(self._operand, places, guard)

    def check(self, value: Scalar, holds: Scalar, message: str, given: Scalar) -> Scalar:
        holds = decided(truth(holds))
        if holds.name == "constant" and holds.extra:
            return value
        guard = () if self._inside is None else (self._inside,)
        return check(value, holds, Failure(self._node, message), given, *guard)

    def watch(self, value: Scalar) -> Scalar:
        return watch(value, *(() if self._inside is None else (self._inside,)))


def _is_checked(index: Any) -> bool:
    return isinstance(index, Scalar) and index.name == "check"


# ---- indices ------------------------------------------------------------------------------------


def broadcast_index(index: Index, shape: tuple[int, ...]) -> Index:
    """The index at which an operand of `shape` is read for an element of the broadcast result."""
    own = index[len(index) - len(shape) :]
    return tuple(ZERO if size == 1 else i for i, size in zip(own, shape, strict=True))


def reshaped_index(index: Index, shape: Sequence[int], source: Sequence[int]) -> Index:
    """The index under shape `source` of the element that has `index` under `shape`."""
    if 0 in shape:
        return (ZERO,) * len(source)  # without elements any index will do
    result = [ZERO] * len(source)
    for own, wanted in matching_runs(shape, source):
        flat = index[own[0]]
        for axis in own[1:]:
            flat = flat * shape[axis] + index[axis]
        for axis in reversed(wanted[1:]):
            flat, result[axis] = divided(flat, source[axis])
        result[wanted[0]] = flat
    return tuple(result)


def divided(index: Scalar, divisor: int) -> tuple[Scalar, Scalar]:
    """Quotient and remainder; without a division if the steps of the axes show them."""
    form = affine(index)
    if form is not None:
        steps, offset = form
        whole = {axis: step // divisor for axis, step in steps.items() if step % divisor == 0}
        part = {axis: step for axis, step in steps.items() if axis not in whole}
        rest = combined(part, offset % divisor)
        low, high = bounds(rest)  # type: ignore[misc] # it is affine
        if low >= 0 and high < divisor:
            return combined(whole, offset // divisor), rest
    return index // divisor, index % divisor


def combined(steps: dict[Axis, int], offset: int) -> Scalar:
    """The index of an affine form."""
    total: Scalar | None = None
    for axis, step in steps.items():
        term = axis.index if step == 1 else axis.index * step
        total = term if total is None else total + term
    if total is None:
        return constant(offset, INT64)
    return total + offset if offset else total


def decided(condition: Scalar) -> Scalar:
    """A condition on indices, replaced by its truth value where the sizes decide it."""
    if condition.name in ("and", "or"):
        parts = [decided(arg) for arg in condition.args]
        stop = condition.name == "or"
        for part, other in (parts, parts[::-1]):
            if part.name == "constant":
                return part if bool(part.extra) is stop else other
        return condition
    if condition.name not in ("less", "less_equal", "greater", "greater_equal", "equal"):
        return condition
    if condition.args[0].dtype != INT64:
        return condition
    limits = bounds(condition.args[0] - condition.args[1])
    if limits is None:
        return condition
    low, high = limits
    always, never = {
        "less": (high < 0, low >= 0),
        "less_equal": (high <= 0, low > 0),
        "greater": (low > 0, high <= 0),
        "greater_equal": (low >= 0, high < 0),
        "equal": (low == high == 0, low > 0 or high < 0),
    }[condition.name]
    return constant(np.True_) if always else constant(np.False_) if never else condition


def flat_place(buffer: Buffer, shape: tuple[int, ...], index: Index) -> tuple[Place, Scalar | None]:
    """The position among the elements in order: steps along axes, and a rest not of that form."""
    steps: dict[Axis, int] = {}
    offset, stride = 0, 1
    rest: Scalar | None = None
    for i, size in zip(reversed(index), reversed(shape), strict=True):
        form = affine(i)
        if form is None:
            term = i if stride == 1 else i * stride
            rest = term if rest is None else rest + term
        else:
            for axis, step in form[0].items():
                steps[axis] = steps.get(axis, 0) + step * stride
            offset += form[1] * stride
        stride *= size
    moves = tuple((axis, step) for axis, step in steps.items() if step)
    return Place(buffer, moves, offset), rest


def load(
    buffer: Buffer, shape: tuple[int, ...], index: Index, inside: Scalar | None, *, weak: bool
) -> Scalar:
    """Read an element of a buffer, addressed under a shape, where `inside` holds."""
    where, rest = flat_place(buffer, shape, index)
    guard = () if inside is None else (inside,)
    if rest is None:
        return Scalar("load", guard, buffer.dtype, extra=where, weak=weak)
    return Scalar("gather", (rest, *guard), buffer.dtype, extra=where, weak=weak)


def loaded(
    buffers: Mapping[Value, Buffer],
    value: Value,
    shape: tuple[int, ...],
    index: Index,
    inside: Scalar | None,
) -> Scalar | None:
    """Read an element of a value that is in memory; None for any other value."""
    buffer = buffers.get(value)
    return None if buffer is None else load(buffer, shape, index, inside, weak=value.aval.weak)


def place(buffer: Buffer, shape: tuple[int, ...], index: Index) -> Place:
    """The place where an element of a buffer is written."""
    where, rest = flat_place(buffer, shape, index)
    if rest is not None:
        raise UnsupportedError("a store needs an index that is affine in the axes")
    return where
