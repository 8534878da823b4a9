"""How the compiler treats each node of a graph, and the cost of an element."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

from gradtape import config
from gradtape.compiler.kernel import walk
from gradtape.core.aval import Aval
from gradtape.core.lowering import (
    Composite,
    Contraction,
    Elements,
    Matrices,
    Pointwise,
    Reduction,
    Relabel,
    Scatter,
)
from gradtape.core.promotion import INT64, NATIVE, is_half
from gradtape.core.scalar import Scalar, check, convert, scalar, watch
from gradtape.errors import UnsupportedError
from gradtape.graph.ir import Literal, Node, Operand
from gradtape.ops.cast import astype_op

# Rough costs of one element in instructions; those not listed are one instruction.
_COSTS = {"divide": 4, "sqrt": 4, "floor_divide": 20, "remainder": 20, "gather": 8}
_FREE = frozenset(
    {"constant", "axis", "load", "argument", "convert", "reduced", "running", "variable"}
)
_CHEAP = frozenset(
    {"add", "subtract", "multiply", "negative", "equal", "not_equal", "less", "less_equal"}
    | {"greater", "greater_equal", "and", "or", "xor", "select", "absolute", "copysign"}
    | {"signbit", "maximum", "minimum", "floor", "ceil", "trunc", "rint", "fma", "check", "watch"}
)
_ELEMENTARY = 20


def obstacle(node: Node, *, settling: bool = False) -> str | None:
    """The reason why a node has no native code and runs its eager kernel; None if it has.

    Args:
        node: The node.
        settling: Whether no other program can take over from the one it is in.
    """
    lowering = node.op.lower
    if lowering is None or isinstance(lowering, Composite):
        return f"{node.op.name} has no native form"
    # Arithmetic on 16-bit floats is arithmetic on float32 between casts (`graph.passes.halves`).
    moves = node.op is astype_op or (node.op.facts.rearranges and is_inlinable(node))
    moves = moves or node.op.kind == "control"
    for aval in (*(operand.aval for operand in node.operands), *(v.aval for v in node.outputs)):
        if aval.dtype not in NATIVE and not (moves and is_half(aval.dtype)):
            return f"no native code for {aval.dtype}"
    try:
        if isinstance(lowering, Contraction):
            return _contraction_obstacle(node)
        if isinstance(lowering, Matrices):
            return _matrices_obstacle(node, lowering, settling)
        if isinstance(lowering, Pointwise | Elements):
            sample(node)
        if isinstance(lowering, Scatter):
            sizes = lowering.sizes(*(operand.aval for operand in node.operands), **node.params)
            lowering.put(_point(sum(map(len, sizes))), *_readers(node), **node.params)
    except UnsupportedError as error:
        return str(error)
    return None


def _contraction_obstacle(node: Node) -> str | None:
    dtypes = {operand.dtype for operand in node.operands}
    if len(dtypes) > 1 or next(iter(dtypes)).kind != "f":
        return "matrix products of integers or mixed dtypes"
    return None if config.uses("products") else "matrix products are switched off"


def _matrices_obstacle(node: Node, lowering: Matrices, settling: bool) -> str | None:
    if 0 in node.operands[-1].shape or 0 in node.outputs[0].shape:
        return f"{node.op.name} of nothing"
    if not config.uses("linalg"):
        return "native linear algebra is switched off"
    if fits_registers(node):
        return None
    if lowering.hopeful and settling:
        return f"{node.op.name} has repeated values, or is checked"
    avals = [operand.aval for operand in node.operands]
    real = node.outputs[0].dtype.kind == "f"
    if real and lowering.takes is not None and lowering.takes(*avals, **node.params):
        return None
    return f"{node.op.name} has no native form for these matrices"


def fits_registers(node: Node) -> bool:
    """Whether the matrices of a node that is lowered by `Matrices` are small."""
    assert isinstance(node.op.lower, Matrices)
    return node.op.lower.fits(*(operand.aval for operand in node.operands), **node.params)


class Sample(NamedTuple):
    """One element of a node's result, computed from arguments that stand for operand elements.

    Attributes:
        expression: The expression for it.
        reads: How many elements of each operand it reads.
    """

    expression: Scalar
    reads: tuple[int, ...]


def sample(node: Node) -> Sample:
    """An element of a node that is lowered by `Pointwise` or `Elements`."""
    lowering = node.op.lower
    if isinstance(lowering, Pointwise):
        arguments = (_argument(operand) for operand in node.operands)
        made = scalar(lowering.expression(*arguments, **node.params))
        reads = (1,) * len(node.operands)
    else:
        assert isinstance(lowering, Elements)
        point, readers = _point(len(node.outputs[0].shape)), _readers(node)
        made = scalar(lowering.expression(point, *readers, **node.params))
        reads = tuple(reader.count for reader in readers)
    return Sample(convert(made, node.outputs[0].dtype), reads)


def _point(ndim: int) -> tuple[Scalar, ...]:
    return tuple(Scalar("axis", (), INT64, extra=k) for k in range(ndim))


def _readers(node: Node) -> list[_SampleReader]:
    return [_SampleReader(operand) for operand in node.operands]


def _argument(operand: Operand) -> Scalar:
    if isinstance(operand, Literal):
        return scalar(operand.value)
    return Scalar("argument", (), operand.dtype, weak=operand.aval.weak)


class _SampleReader:
    def __init__(self, operand: Operand) -> None:
        self.aval: Aval = operand.aval
        self.shape, self.dtype = operand.shape, operand.dtype
        self.count = 0
        self._argument = _argument(operand)

    def __call__(self, *_index: Any, inside: Any = None) -> Scalar:
        self.count += 1
        return self._argument

    check = staticmethod(check)
    watch = staticmethod(watch)


class Cost(NamedTuple):
    """The cost of one element of a node, without the cost of its operands.

    Attributes:
        instructions: The rough number of instructions.
        parts: The number of parts of the expression.
        reads: The number of elements of each operand that are read.
    """

    instructions: int
    parts: int
    reads: tuple[int, ...]


def cost(node: Node) -> Cost:
    """The cost of one element of a node."""
    once = (1,) * len(node.operands)
    if isinstance(node.op.lower, Relabel):
        return Cost(0, 0, once)
    if isinstance(node.op.lower, Pointwise | Elements):
        expression, reads = sample(node)
        parts = list(walk(expression, set()))
        return Cost(cost_of(parts), len(parts), reads)
    return Cost(1, 1, once)


def cost_of(parts: Iterable[Scalar]) -> int:
    """The rough number of instructions for the parts of expressions."""
    return sum(_price(part.name) for part in parts)


@functools.cache
def _price(name: str) -> int:
    if name in _FREE:
        return 0
    return 1 if name in _CHEAP else _COSTS.get(name, _ELEMENTARY)


def is_inlinable(node: Node) -> bool:
    """Whether elements of the result can be computed wherever they are needed."""
    lowering = node.op.lower
    if isinstance(lowering, Reduction):
        # It combines nothing if it is over single elements.
        return all(node.operands[0].shape[axis] == 1 for axis in node.params["axis"])
    return isinstance(lowering, Pointwise | Elements | Relabel)
