"""Roots: the values that are computed once, not wherever they are needed.

These are outputs of the graph, operands of ops without a loop nest, reductions, and values that are
expensive and read more than once. Everything else is pulled into the loops of its readers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gradtape.compiler.classify import cost, fits_registers, is_inlinable
from gradtape.compiler.element_expressions import reshaped_index
from gradtape.compiler.kernel import Axis, affine
from gradtape.core.lowering import (
    Contraction,
    Elements,
    Matrices,
    Pointwise,
    Reduction,
    Relabel,
    Scan,
    Scatter,
)
from gradtape.core.op import op_of
from gradtape.core.promotion import FLOAT32, is_half
from gradtape.graph.ir import Graph, Node, Value
from gradtape.graph.python_numbers import is_of_integers
from gradtape.ops.cast import astype_op
from gradtape.ops.comparison import equal
from gradtape.ops.shape import transpose_op

equal_op = op_of(equal)
# Values that cost more instructions than this are not computed twice.
_DEAR = 8
# Nor are expressions with more parts, whatever their cost: they are built again each time they are
# pulled, and one that is read twice at every step of a chain would double with each step.
_LARGEST = 64
# Limits are higher by this factor for values in float32 made of 16-bit floats: to compute them
# again takes half the memory and traffic of storing them.
_AGAIN = 10
# The most instructions for all elements of a small matrix that are computed where it is read.
_LONG = 128
# Chains longer than this are cut: their expressions would be too deep.
_DEEPEST = 60


def find_roots(graph: Graph, users: dict[Value, list[Node]]) -> tuple[set[Value], dict[Value, int]]:
    """The values that are not computed wherever they are needed, and the cost of each value."""
    roots = {output for output in graph.outputs if isinstance(output, Value) and output.node}
    costs: dict[Value, int] = {}
    depths: dict[Value, int] = {}
    sizes: dict[Value, int] = {}
    light: set[Value] = set()
    for node in graph.nodes:
        inlined = [v for v in node.operands if isinstance(v, Value) and v.node and v not in roots]
        for value in node.outputs:
            # Smaller operands that are repeated are computed outside the innermost loop.
            size = math.prod(value.shape)
            same = [v for v in inlined if math.prod(v.shape) >= size or not _repeats(node)]
            costs[value] = 1 + sum(costs[v] for v in same)
            depths[value] = 1 + max((depths[v] for v in inlined), default=0)
        if not is_inlinable(node):
            roots.update(node.outputs)
            if not isinstance(node.op.lower, Reduction):
                roots.update(v for v in operands_in_memory(node) if v.node is not None)
            if isinstance(node.op.lower, Scatter):
                # Its loop is not vectorized.
                roots.update(v for v in inlined if costs[v] > _DEAR)
            if isinstance(node.op.lower, Matrices) and fits_registers(node):
                # Its loop has the code of each element of a matrix.
                axes = -node.op.lower.axes
                roots.update(v for v in inlined if costs[v] * math.prod(v.shape[axes:]) > _LONG)
            continue
        if node.op is equal_op:
            roots.update(v for v in inlined if _has_extreme(v, users))
        value, own = node.outputs[0], cost(node)
        if _narrows(node) and node.operands[0] in roots:
            roots.add(value)  # what is read later, as by a backward pass, is the smaller array
        costs[value] += own.instructions - 1
        among = set(inlined)
        reads = [(v, n) for v, n in zip(node.operands, own.reads, strict=True) if v in among]
        roots.update(v for v, n in reads if n > 1 and sizes[v] > _LARGEST)
        sizes[value] = own.parts + sum(n * sizes[v] for v, n in reads if v not in roots)
        if isinstance(node.op.lower, Relabel) and _hides(node):
            # Its elements are in another axis order: computed in place, read from memory.
            roots.update(v for v in inlined if costs[v] > 1)
        if value.dtype == FLOAT32 and _reads_halves(node, light):
            light.add(value)
        often = _AGAIN if value in light else 1
        large = costs[value] > often * _DEAR or sizes[value] > often * _LARGEST
        if depths[value] > _DEEPEST or (large and _read_often(value, users)):
            roots.add(value)
        if is_of_integers(node.op, node.operands):
            roots.add(value)  # its conditions must not be checked at each step of a loop
        if node.op.effect is not None:
            roots.add(value)  # an assertion holds for results that nothing reads, too
    return roots, costs


def _has_extreme(value: Value, users: dict[Value, list[Node]]) -> bool:
    """Whether its largest or smallest element is taken, which must equal one of its elements.

    Arithmetic gives the same bits wherever it is computed; the code of elementary functions may be
    contracted differently next to other code.
    """
    forms = (reader.op.lower for reader in users.get(value, ()))
    return any(isinstance(f, Reduction) and f.combine in ("maximum", "minimum") for f in forms)


def _repeats(node: Node) -> bool:
    """Whether operands smaller than the result are repeated, rather than put side by side."""
    return not isinstance(node.op.lower, Elements) or node.op.lower.repeats


def operands_in_memory(node: Node) -> list[Value]:
    """The values whose arrays an opaque node reads: a matrix product does its own transposing."""
    values = [operand for operand in node.operands if isinstance(operand, Value)]
    if isinstance(node.op.lower, Scan | Scatter | Matrices):
        return []  # pulled into its loops
    if isinstance(node.op.lower, Contraction):
        return [source_of_matrix(value).value for value in values]
    return values


class MatrixSource(NamedTuple):
    """The array in memory for an operand of a matrix product.

    Attributes:
        value: The value whose array is read.
        shape: The shape its elements are read under, in order.
        transposed: Whether its last two axes are to be swapped.
    """

    value: Value
    shape: tuple[int, ...]
    transposed: bool


def source_of_matrix(operand: Value) -> MatrixSource:
    """Look through reshapes, and through one transpose of the last two axes."""
    value, shape, transposed = operand, operand.shape, False
    while (node := value.node) is not None:
        source = node.operands[0] if node.operands else None
        if not isinstance(source, Value):
            break
        if isinstance(node.op.lower, Relabel) and source.dtype == value.dtype:
            value = source
        elif widens(node):
            value = source  # products read 16-bit floats as they are
        elif node.op is transpose_op and not transposed and shape == value.shape:
            axes, ndim = tuple(node.params["axes"]), len(shape)
            if ndim < 2 or axes != (*range(ndim - 2), ndim - 1, ndim - 2):
                break
            value, shape, transposed = source, source.shape, True
        else:
            break
    return MatrixSource(value, shape, transposed)


def widens(node: Node) -> bool:
    """Whether a node converts 16-bit floats to float32."""
    if node.op is not astype_op or node.outputs[0].dtype != FLOAT32:
        return False
    return is_half(node.operands[0].dtype)


def _reads_halves(node: Node, light: set[Value]) -> bool:
    """Whether a node reads 16-bit floats, or `light` values made of them, and otherwise less."""
    size = math.prod(node.outputs[0].shape)
    wide = [v for v in node.operands if math.prod(v.shape) >= size and v.aval.ndim]
    return bool(wide) and all(is_half(v.dtype) or v in light for v in wide)


def _narrows(node: Node) -> bool:
    """Whether a node rounds numbers to 16-bit floats."""
    return node.op is astype_op and is_half(node.outputs[0].dtype)


def _hides(node: Node) -> bool:
    """Whether a reshape makes an index that is no longer a sum of steps along axes."""
    source, result = node.operands[0].shape, node.outputs[0].shape
    point = tuple(Axis(f"i{k}", n).index for k, n in enumerate(result))
    return any(affine(i) is None for i in reshaped_index(point, result, source))


def _read_often(value: Value, users: dict[Value, list[Node]]) -> bool:
    """Whether elements of a value are read more than once."""
    readers = users.get(value, ())
    if len(readers) != 1:
        return bool(readers)
    if not readers[0].outputs:
        return False  # a loop that is run for its effect, such as the check of an index
    lowering, (result, *_) = readers[0].op.lower, readers[0].outputs
    if isinstance(lowering, Relabel) or widens(readers[0]):
        return _read_often(result, users)
    if isinstance(lowering, Elements) and lowering.often:
        return True
    repeats = math.prod(result.shape) > math.prod(value.shape)
    return repeats and isinstance(lowering, Pointwise | Elements)
