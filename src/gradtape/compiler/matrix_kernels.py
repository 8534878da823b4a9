"""Loop nests over stacks of small matrices: all elements of a result are computed at one point.

They have no loop that other ops could join, but the elements of their operands are computed in
them if that is cheap.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradtape.compiler.build import collapsed
from gradtape.compiler.element_expressions import ZERO, Puller, broadcast_index, loaded, place
from gradtape.compiler.kernel import Axis, Buffer, Failure, Kernel, Stage, Store
from gradtape.core.define import broadcast_sizes
from gradtape.core.lowering import Matrices
from gradtape.core.promotion import INT64
from gradtape.core.scalar import Scalar, check, constant, convert
from gradtape.errors import GradtapeError
from gradtape.graph.ir import Node, Value

Index = tuple[Scalar, ...]

# More columns than this are done in a loop, if each of them can be done by itself.
_MOST_COLUMNS = 4


class NodeSite:
    """A node whose op is lowered by `Matrices`."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.avals = [operand.aval for operand in node.operands]

    def check(
        self,
        value: Scalar,
        holds: Scalar,
        error: type[GradtapeError],
        message: str,
        given: Scalar | int = 0,
    ) -> Scalar:
        """The value where a condition holds; elsewhere 0, and the call raises."""
        return check(value, holds, Failure(self._node, message, error), given)


def matrix_kernels(node: Node, buffers: dict[Value, Buffer], name: str) -> list[Kernel]:
    """The loop nests of a node that is lowered by `Matrices`, one for each kind of loop.

    Results may differ in their loops: factors of one matrix, for a stack of right-hand sides or
    for many columns, are computed once.

    Args:
        node: The node.
        buffers: The buffers of the values that are in memory; results that nothing reads have none.
        name: The name of the first; the names of others begin with it.
    """
    build = _Build(node, buffers)
    wanted = [build.whole]
    kernels: dict[_Loops, Kernel] = {}
    while wanted:
        loops = wanted.pop()
        stores, others = build.stores(loops)
        wanted += [other for other in others if other not in kernels]
        suffix = f"_{len(kernels)}" if kernels else ""
        kernel = Kernel(name + suffix, loops.axes, [Stage(tuple(stores), ())], [node.op.name])
        kernels[loops] = collapsed(kernel)
    return [kernel for kernel in kernels.values() if kernel.buffers]


class _Loops:
    """Loops over a stack of matrices, and over the columns of a matrix.

    Attributes:
        axes: All of them.
        index: The index of a matrix in the stack.
        column: The index of a column; None without a loop over columns.
    """

    def __init__(self, stack: tuple[int, ...], columns: int | None) -> None:
        self.key = stack, columns
        self.axes = [Axis(f"i{n}", size) for n, size in enumerate(stack)]
        self.index = tuple(axis.index for axis in self.axes)
        self.column: Scalar | None = None
        if columns is not None:
            self.axes.append(Axis("column", columns))
            self.column = self.axes[-1].index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Loops) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class _Build:
    """Makes the loop nests of one node."""

    def __init__(self, node: Node, buffers: dict[Value, Buffer]) -> None:
        assert isinstance(node.op.lower, Matrices)
        self._node = node
        self._axes = node.op.lower.axes
        self._buffers = buffers
        stack = broadcast_sizes(*(operand.shape[: -self._axes] for operand in node.operands))
        count = node.operands[-1].shape[-1]
        # Whether columns are done in a loop.
        self._by_column = node.op.lower.columns and count > _MOST_COLUMNS
        self.whole = _Loops(stack, count if self._by_column else None)

    def stores(self, loops: _Loops) -> tuple[list[Store], list[_Loops]]:
        """The statements of a loop nest, and the loops of results that it does not compute."""
        results = matrix_elements(self._node, lambda n: self._operand(n, loops))
        stores: list[Store] = []
        others: list[_Loops] = []
        for number, (value, result) in enumerate(zip(self._node.outputs, results, strict=True)):
            buffer = self._buffers.get(value)
            if buffer is None or not buffer.size:
                continue
            columns = self.whole.key[1] if number == 0 else None
            own = _Loops(value.shape[: len(value.shape) - _depth(result)], columns)
            if own != loops:
                others.append(own)
                continue
            for at, element in _listed(result):
                if loops.column is not None:
                    at = (*at[:-1], loops.column)
                where = place(buffer, value.shape, (*loops.index, *at))
                stores.append(Store(where, convert(element, value.dtype)))
        return stores, others

    def _operand(self, number: int, loops: _Loops) -> Any:
        """The elements of an operand at a point of the loops."""
        operand = self._node.operands[number]
        puller = Puller(functools.partial(loaded, self._buffers))
        cut = len(operand.shape) - self._axes
        stack, sizes = operand.shape[:cut], operand.shape[cut:]
        # There may be fewer loops than axes: what is computed then does not read this operand.
        point = broadcast_index((ZERO,) * (len(stack) - len(loops.index)) + loops.index, stack)

        def part(at: Index, left: Sequence[int]) -> Any:
            if not left:
                return puller.element(operand, (*point, *at))
            if len(left) == 1 and self._by_column and number == len(self._node.operands) - 1:
                column = ZERO if loops.column is None else loops.column
                return [part((*at, column), ())]
            return [part((*at, constant(k, INT64)), left[1:]) for k in range(left[0])]

        return part((), sizes)


def matrix_elements(node: Node, elements: Callable[[int], Any]) -> list[Any]:
    """Nested lists of expressions for each result of a node that is lowered by `Matrices`.

    Args:
        node: The node.
        elements: Gives the nested lists of the elements of an operand, by its number.
    """
    lowering, dtype = node.op.lower, node.outputs[0].dtype
    assert isinstance(lowering, Matrices)
    assert lowering.small is not None
    operands = [_converted(elements(n), dtype) for n in range(len(node.operands))]
    made = lowering.small(NodeSite(node), *operands, **node.params)
    return [made] if len(node.outputs) == 1 else list(made)


def _converted(elements: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(elements, Scalar):
        return convert(elements, dtype)
    return [_converted(part, dtype) for part in elements]


def _depth(result: Any) -> int:
    """How many axes a nested list has."""
    return 0 if isinstance(result, Scalar) else 1 + _depth(result[0])


def _listed(result: Any) -> Iterator[tuple[Index, Scalar]]:
    """The elements of a result in order, each with its index."""
    if isinstance(result, Scalar):
        yield (), result
        return
    for k, part in enumerate(result):
        for at, element in _listed(part):
            yield (constant(k, INT64), *at), element
