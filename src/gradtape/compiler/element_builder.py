"""From a loop or branch of a graph to an element program: an expression for each element."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.compiler.classify import cost, fits_registers
from gradtape.compiler.element_expressions import Puller, decided
from gradtape.compiler.element_program import (
    Block,
    Carried,
    Choose,
    ElementProgram,
    For,
    GoBack,
    Statement,
    WhileHolds,
    variable,
)
from gradtape.compiler.kernel import (
    Axis,
    Buffer,
    Place,
    Store,
    identity,
)
from gradtape.compiler.linear_forms import as_linear
from gradtape.compiler.matrix_kernels import matrix_elements
from gradtape.core.lowering import (
    Contraction,
    Elements,
    Matrices,
    Pointwise,
    Reduction,
    Relabel,
    Scan as Cumulation,
    Scatter,
)
from gradtape.core.promotion import INT64
from gradtape.core.scalar import (
    Scalar,
    add,
    bitwise_and,
    bitwise_or,
    constant,
    convert,
    fma,
    maximum,
    minimum,
    multiply,
    scalar,
    where,
)
from gradtape.errors import UnsupportedError
from gradtape.graph.ir import Graph, Literal, Node, Operand, Value
from gradtape.graph.scan_op import Scan, scan_op
from gradtape.graph.switch_op import switch_op
from gradtape.graph.while_op import While, WhilePull, while_op, while_pull_op

# More instructions than this take LLVM too long; the loop is then run array by array.
_MOST_INSTRUCTIONS = 6_000
# The most elements of an array that are computed one by one.
_MOST_ELEMENTS = 256
# The most bytes of an array that a loop inside another goes through, or fills.
_MOST_LOCAL = 1 << 12


class TooLargeError(Exception):
    """It has too many elements to compute each of them by an expression of its own."""


# ---- arrays -------------------------------------------------------------------------------------


class Memory:
    """An array in memory: elements are read where they are needed.

    Args:
        buffer: Where it is.
        shape: Its sizes.
        steps: The number of elements per step of each axis of a loop.
        offset: The position of its first element.
        weak: Whether it is a Python number.
    """

    def __init__(
        self,
        buffer: Buffer,
        shape: tuple[int, ...],
        steps: tuple[tuple[Axis, int], ...] = (),
        offset: int = 0,
        *,
        weak: bool = False,
    ) -> None:
        self.buffer, self.shape, self.weak = buffer, shape, weak
        self.steps, self.offset = steps, offset
        self._known: dict[int, Scalar] = {}

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, number: int) -> Scalar:
        """The element with a number, counted in order."""
        known = self._known.get(number)
        if known is None:
            place = Place(self.buffer, self.steps, self.offset + number)
            known = Scalar("load", (), self.buffer.dtype, extra=place, weak=self.weak)
            self._known[number] = known
        return known

    def at(self, number: Scalar, guard: Sequence[Scalar]) -> Scalar:
        """The element with a computed number."""
        place = Place(self.buffer, self.steps, self.offset)
        return Scalar("gather", (number, *guard), self.buffer.dtype, extra=place, weak=self.weak)

    def row(self, axis: Axis, reverse: bool) -> Memory:
        """Its part at a step of a loop that goes along its first axis."""
        size = math.prod(self.shape[1:])
        step, offset = (-size, size * (self.shape[0] - 1)) if reverse else (size, 0)
        steps = (*self.steps, (axis, step)) if axis.size != 1 else self.steps
        if axis.size == 1:
            offset = 0
        return Memory(self.buffer, self.shape[1:], steps, self.offset + offset)


Stored = Memory | list[Scalar]
Environment = dict[Value, Stored]

_NUMBERS = tuple(constant(n, INT64) for n in range(_MOST_ELEMENTS + 1))
_COMBINE: dict[str, Callable[[Any, Any], Scalar]] = {
    "add": add,
    "multiply": multiply,
    "maximum": maximum,
    "minimum": minimum,
    "and": bitwise_and,
    "or": bitwise_or,
}
_FOLDED: dict[str, Callable[..., int]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "negative": lambda x: -x,
    "floor_divide": lambda x, y: x // y if y else 0,
    "remainder": lambda x, y: x % y if y else 0,
    "maximum": max,
    "minimum": min,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "select": lambda c, x, y: x if c else y,
    "convert": lambda x: x,
}


def folded(expression: Scalar) -> int | None:
    """The value of an expression of integers that depends on nothing; None if it does."""
    if expression.name == "constant":
        return int(expression.extra) if expression.dtype.kind in "biu" else None
    compute = _FOLDED.get(expression.name)
    if compute is None or expression.dtype.kind not in "bi":
        return None
    if any(arg.dtype.kind not in "bi" for arg in expression.args):
        return None
    args: list[int] = []
    for arg in expression.args:
        value = folded(arg)
        if value is None:  # then the others, large and shared as they may be, do not matter
            return None
        args.append(value)
    return int(compute(*args))


class _Puller(Puller):
    """Pulls elements at numbers that are known, from arrays whose elements are expressions."""

    def __init__(self, builder: _Builder) -> None:
        super().__init__(lambda *_: None)
        self._builder = builder

    def element(
        self, operand: Operand, index: tuple[Scalar, ...], inside: Scalar | None = None
    ) -> Scalar:
        if isinstance(operand, Literal):
            return constant(operand.value)
        if inside is not None:
            inside = decided(inside)
            known = folded(inside)
            if known == 0:
                return constant(0, operand.dtype)
            inside = None if known else inside
        numbers = [folded(i) for i in index]
        if None in numbers:
            return self._builder.gathered(operand, index, inside)
        flat = 0
        for number, size in zip(numbers, operand.shape, strict=True):
            if not 0 <= number < size:  # type: ignore[operator]
                return constant(0, operand.dtype)
            flat = flat * size + number  # type: ignore[operator]
        return self._builder.stored(operand)[flat]

    def computed(self, node: Node, index: tuple[Scalar, ...]) -> Scalar:
        """An element of the result of a node."""
        made = self._computed(node, index, None)
        while made.name == "select" and (known := folded(made.args[0])) is not None:
            made = made.args[1 if known else 2]
        return made

    def _computed(self, node: Node, index: tuple[Scalar, ...], inside: Scalar | None) -> Scalar:
        if isinstance(node.op.lower, Relabel):
            flat = 0
            for i, size in zip(index, node.outputs[0].shape, strict=True):
                flat = flat * size + i.extra
            source = node.operands[0]
            if isinstance(source, Literal):
                return constant(source.value)
            return self._builder.stored(source)[flat]
        return super()._computed(node, index, inside)


class _Builder:
    """Builds a program."""

    def __init__(self) -> None:
        self._environment: Environment = {}
        self._statements: list[Statement] = []
        self._puller = _Puller(self)
        self._instructions = 0
        self._spilled: dict[int, tuple[Any, Memory]] = {}
        self.locals: list[Buffer] = []
        self.ops: list[str] = []
        self.axes = 0
        self.largest = 0

    # ---- values ----------------------------------------------------------------------------

    def define(self, value: Value, stored: Stored) -> None:
        """Note where a value is."""
        self._environment[value] = stored

    def stored(self, operand: Operand) -> Stored:
        """Where an operand is."""
        if isinstance(operand, Literal):
            return [constant(operand.value)]
        return self._environment[operand]

    def elements(self, operand: Operand, dtype: np.dtype[Any] | None = None) -> list[Scalar]:
        """All elements of an operand, in order."""
        stored = self.stored(operand)
        self.check_size(len(stored))
        every = [stored[n] for n in range(len(stored))]
        return every if dtype is None else [convert(x, dtype) for x in every]

    def check_size(self, count: int) -> None:
        """Note the size of an array; raise if it has too many elements."""
        self.largest = max(self.largest, count)
        if count > _MOST_ELEMENTS:
            raise TooLargeError

    def spend(self, instructions: float) -> None:
        """Count instructions; raise if there are too many."""
        self._instructions += int(instructions)
        if self._instructions > _MOST_INSTRUCTIONS:
            raise TooLargeError

    def gathered(self, operand: Value, index: Sequence[Scalar], inside: Scalar | None) -> Scalar:
        """An element at a computed index."""
        number: Scalar | None = None
        for i, size in zip(index, operand.shape, strict=True):
            i = convert(i, INT64)
            number = i if number is None else number * size + i
        assert number is not None
        return self.in_memory(operand).at(number, () if inside is None else (inside,))

    def in_memory(self, operand: Operand) -> Memory:
        """An operand as an array in memory, which its elements are copied to if they are not."""
        stored = self.stored(operand)
        if isinstance(stored, Memory):
            return stored
        known = self._spilled.get(id(stored))
        if known is None:
            memory = self.local(operand.shape, operand.dtype)
            memory.weak = operand.aval.weak
            for n, element in enumerate(stored):
                place = Place(memory.buffer, (), n)
                self._statements.append(Store(place, convert(element, operand.dtype)))
            known = self._spilled[id(stored)] = stored, memory
        return known[1]

    def local(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Memory:
        """An array of its own."""
        if math.prod(shape) * dtype.itemsize > _MOST_LOCAL:
            raise TooLargeError
        buffer = Buffer(f"own{len(self.locals)}", shape, np.dtype(dtype), "local")
        self.locals.append(buffer)
        return Memory(buffer, shape)

    # ---- graphs ----------------------------------------------------------------------------

    def graph(self, graph: Graph, inputs: Sequence[Stored]) -> None:
        """Compute the nodes of a graph, given where its inputs are."""
        for value, stored in zip(graph.inputs, inputs, strict=True):
            self.define(value, stored)
        for node in graph.nodes:
            self._node(node)

    def block(
        self, graph: Graph, inputs: Sequence[Stored], dtypes: Sequence[np.dtype[Any]]
    ) -> Block:
        """A graph as a block; its results are the elements of the outputs, in dtypes."""

        def results() -> list[Scalar]:
            self.graph(graph, inputs)
            return [
                element
                for output, dtype in zip(graph.outputs, dtypes, strict=True)
                for element in self.elements(output, dtype)
            ]

        return self.inside(results)

    def inside(self, build: Callable[[], list[Scalar]]) -> Block:
        """The statements that a function makes, as a block of its own."""
        outer, self._statements = self._statements, []
        spilled, self._spilled = self._spilled, dict(self._spilled)
        try:
            results = build()
            return Block(tuple(self._statements), tuple(results))
        finally:
            self._statements, self._spilled = outer, spilled

    def append(self, statement: Statement) -> None:
        """Add a statement to the block that is being made."""
        self._statements.append(statement)

    def statements(self) -> list[Statement]:
        """The statements so far."""
        return self._statements

    def _node(self, node: Node) -> None:
        self.ops.append(node.op.name)
        if node.op.kind == "control":
            build_control(self, node)
            return
        if isinstance(node.op.lower, Matrices):
            self._matrices(node, node.op.lower)
            return
        lowering, (out,) = node.op.lower, node.outputs
        count = math.prod(out.shape)
        self.check_size(count)
        if isinstance(lowering, Pointwise | Elements | Relabel):
            self.spend(count * max(cost(node).instructions, 1))
            made = [self._puller.computed(node, _point(index)) for index in np.ndindex(*out.shape)]
        elif isinstance(lowering, Reduction):
            made = self._reduced(node, lowering)
        elif isinstance(lowering, Contraction):
            made = self._product(node)
        elif isinstance(lowering, Cumulation):
            made = self._cumulated(node, lowering)
        elif isinstance(lowering, Scatter):
            made = self._scattered(node, lowering)
        else:
            raise UnsupportedError(f"{node.op.name} has no native form")
        self.define(out, [_as(element, out) for element in made])

    def _reduced(self, node: Node, lowering: Reduction) -> list[Scalar]:
        source, out = node.operands[0], node.outputs[0]
        given = self.elements(source)
        if lowering.element is not None:
            given = [lowering.element(element) for element in given]
        self.spend(len(given))
        axes = set(node.params["axis"])
        groups: dict[tuple[int, ...], list[Scalar]] = {}
        for index, element in zip(np.ndindex(*source.shape), given, strict=True):
            kept = tuple(i for a, i in enumerate(index) if a not in axes)
            groups.setdefault(kept, []).append(convert(element, out.dtype))
        combine, start = _COMBINE[lowering.combine], identity(lowering.combine, out.dtype)
        shape = [n for a, n in enumerate(source.shape) if a not in axes]
        return [
            _tree(combine, groups[index]) if index in groups else constant(start, out.dtype)
            for index in np.ndindex(*shape)
        ]

    def _product(self, node: Node) -> list[Scalar]:
        x, y = node.operands
        dtype = node.outputs[0].dtype
        a = np.array(self.elements(x, dtype), dtype=object).reshape(x.shape)
        b = np.array(self.elements(y, dtype), dtype=object).reshape(y.shape)
        a = a[None, :] if a.ndim == 1 else a
        b = b[:, None] if b.ndim == 1 else b
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a = np.broadcast_to(a, (*batch, *a.shape[-2:]))
        b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
        inner = a.shape[-1]
        self.spend(math.prod(batch) * a.shape[-2] * inner * b.shape[-1])
        made = []
        for place in np.ndindex(*batch, a.shape[-2], b.shape[-1]):
            *at, row, column = place
            total = constant(0, dtype)
            for k in range(inner):
                left, right = a[(*at, row, k)], b[(*at, k, column)]
                total = left * right if k == 0 else fma(left, right, total)
            made.append(total)
        return made

    def _matrices(self, node: Node, lowering: Matrices) -> None:
        """Results of an op on small matrices, one matrix of a stack after the other."""
        if not fits_registers(node):
            raise TooLargeError
        given = [np.array(self.elements(x), dtype=object).reshape(x.shape) for x in node.operands]
        stacks = [array.shape[: array.ndim - lowering.axes] for array in given]
        made: list[dict[tuple[int, ...], Any]] = [{} for _ in node.outputs]
        for index in np.ndindex(*np.broadcast_shapes(*stacks)):
            pairs = zip(given, stacks, strict=True)
            matrices = [array[_within(index, stack)] for array, stack in pairs]
            # An n×n matrix takes about n³ instructions.
            self.spend(sum(matrix.size for matrix in matrices) ** 1.5)
            results = matrix_elements(node, [matrix.tolist() for matrix in matrices].__getitem__)
            for found, result in zip(made, results, strict=True):
                found[index] = np.array(result, dtype=object)
        for value, found in zip(node.outputs, made, strict=True):
            if not math.prod(value.shape):  # a list of nothing does not tell its axes
                self.define(value, [])
                continue
            axes = next(iter(found.values())).ndim
            stack = value.shape[: len(value.shape) - axes]
            parts = {_within(index, stack): part for index, part in found.items()}
            elements = [x for at in np.ndindex(*stack) for x in parts[at].reshape(-1)]
            self.define(value, [_as(element, value) for element in elements])

    def _cumulated(self, node: Node, lowering: Cumulation) -> list[Scalar]:
        out = node.outputs[0]
        along, combine = node.params["axis"], _COMBINE[lowering.combine]
        element, *factors = (
            np.array(self.elements(operand, out.dtype), dtype=object).reshape(out.shape)
            for operand in node.operands
        )
        self.spend(element.size)
        made = np.empty(out.shape, dtype=object)
        steps = range(out.shape[along])
        order = list(reversed(steps) if node.params.get("reverse", False) else steps)
        rest = out.shape[:along] + out.shape[along + 1 :]
        for index in np.ndindex(*rest):
            before: Scalar | None = None
            for k in order:
                at = (*index[:along], k, *index[along:])
                value = element[at]
                if before is not None:
                    known = before * factors[0][at] if factors else before
                    value = combine(known, value)
                before = made[at] = value
        return list(made.reshape(-1))

    def _scattered(self, node: Node, lowering: Scatter) -> list[Scalar]:
        out = node.outputs[0]
        readers = self._puller.readers(node)
        made: list[Scalar] = []
        for index in np.ndindex(*out.shape):
            value: Any = constant(0, out.dtype)
            if lowering.start is not None:
                value = lowering.start(_point(index), *readers, **node.params)
            made.append(convert(value, out.dtype))
        sizes = lowering.sizes(*(operand.aval for operand in node.operands), **node.params)
        points = list(itertools.product(*(range(n) for n in (*sizes[0], *sizes[1]))))
        self.check_size(len(points))
        self.spend(len(points) * 4)
        for point in points:
            at, put = lowering.put(_point(point), *readers, **node.params)
            new = convert(put, out.dtype)
            places = [convert(scalar(i), INT64) for i in at]
            numbers = [folded(i) for i in places]
            if None not in numbers:
                flat = 0
                for n, size in zip(numbers, out.shape, strict=True):
                    flat = flat * size + n  # type: ignore[operator]
                made[flat] = made[flat] + new if lowering.adds else new
                continue
            # Any element may be meant.
            self.spend(len(made) * 3)
            number = places[0]
            for i, size in zip(places[1:], out.shape[1:], strict=True):
                number = number * size + i
            for n, old in enumerate(made):
                made[n] = where(number == n, old + new if lowering.adds else new, old)
        return made


def _within(index: tuple[int, ...], stack: tuple[int, ...]) -> tuple[int, ...]:
    """The index into a stack that is broadcast to a larger one."""
    own = index[len(index) - len(stack) :]
    return tuple(0 if size == 1 else i for i, size in zip(own, stack, strict=True))


def _point(index: Sequence[int]) -> tuple[Scalar, ...]:
    return tuple(_NUMBERS[i] for i in index)


def _tree(combine: Callable[[Any, Any], Scalar], values: list[Scalar]) -> Scalar:
    """Values combined one after the other."""
    total = values[0]
    for value in values[1:]:
        total = combine(total, value)
    return total


def _as(element: Scalar, out: Value) -> Scalar:
    """An element in the dtype of its value; weak if that is a Python number."""
    element = convert(element, out.dtype)
    if not out.aval.weak:
        return element
    return Scalar(element.name, element.args, element.dtype, weak=True, extra=element.extra)


# ---- control flow -------------------------------------------------------------------------------


def build_control(builder: _Builder, node: Node, outputs: Sequence[Memory] = ()) -> Axis | None:
    """Add the statements of a loop or branch.

    Args:
        builder: The program being built.
        node: The loop or branch.
        outputs: The arrays to put results into; without them results are numbers, or arrays of the
            program's own.

    Returns:
        The axis of a loop whose steps do not depend on each other; None for all others.
    """
    if node.op is scan_op:
        return _scan(builder, node, outputs)
    if node.op is switch_op:
        made = _switch(builder, node)
    elif node.op is while_op:
        made = _while(builder, node)
    else:
        assert node.op is while_pull_op
        made = _while_pull(builder, node)
    _deliver(builder, node.outputs, made, outputs)
    return None


def _deliver(
    builder: _Builder, values: Sequence[Value], made: Sequence[Scalar], outputs: Sequence[Memory]
) -> None:
    """Note the elements of results, or store them."""
    rest = iter(made)
    for n, value in enumerate(values):
        own = list(itertools.islice(rest, math.prod(value.shape)))
        builder.define(value, own)
        for k, element in enumerate(own) if outputs else ():
            builder.append(Store(Place(outputs[n].buffer, (), k), element))


def _variables(builder: _Builder, values: Sequence[Value]) -> list[list[Scalar]]:
    """Variables for the elements of values."""
    for value in values:
        builder.check_size(math.prod(value.shape))
    return [
        [variable(value.dtype, weak=value.aval.weak) for _ in range(math.prod(value.shape))]
        for value in values
    ]


def _flat(parts: Sequence[Sequence[Scalar]]) -> list[Scalar]:
    return [element for part in parts for element in part]


def _starts(
    builder: _Builder, operands: Sequence[Operand], values: Sequence[Value]
) -> list[Scalar]:
    pairs = zip(operands, values, strict=True)
    return _flat([builder.elements(operand, value.dtype) for operand, value in pairs])


def _scan(builder: _Builder, node: Node, outputs: Sequence[Memory]) -> Axis | None:
    scan = Scan(**node.params)
    body, consts, carries = scan.body, scan.consts, scan.carries
    axis = Axis(f"t{builder.axes}", scan.length)
    builder.axes += 1
    carry = [body.inputs[n] for n in scan.carry_places]
    variables = _variables(builder, carry)
    starts = _starts(builder, node.operands[consts : consts + carries], carry)
    inputs: list[Stored] = [builder.stored(operand) for operand in node.operands[:consts]]
    step = axis.index
    if scan.counted:
        number = constant(scan.length - 1, INT64) - step if scan.reverse else step
        inputs.append([Scalar(number.name, number.args, INT64, weak=True, extra=number.extra)])
    inputs += variables
    inputs += [
        builder.in_memory(operand).row(axis, scan.reverse)
        for operand in node.operands[consts + carries :]
    ]
    ys = list(outputs[carries:])
    for value in node.outputs[carries:] if not outputs else ():
        memory = builder.local(value.shape, value.dtype)
        ys.append(memory)
        builder.define(value, memory)

    def results() -> list[Scalar]:
        builder.graph(body, inputs)
        for memory, output in zip(ys, body.outputs[carries:], strict=True):
            row = memory.row(axis, scan.reverse)
            for n, element in enumerate(builder.elements(output, memory.buffer.dtype)):
                builder.append(Store(Place(row.buffer, row.steps, row.offset + n), element))
        return _flat(
            [
                builder.elements(output, value.dtype)
                for output, value in zip(body.outputs, carry, strict=False)
            ]
        )

    if scan.length:
        block = builder.inside(results)
        carried = tuple(map(Carried, _flat(variables), starts, block.results))
        builder.append(For(axis, carried, Block(block.statements)))
        made = _flat(variables)
    else:
        made = starts
    _deliver(builder, node.outputs[:carries], made, outputs)
    return None if carries or scan.length < 2 else axis


def _while(builder: _Builder, node: Node) -> list[Scalar]:
    loop = While(**node.params)
    carry = loop.body.inputs[loop.consts :]
    variables = _variables(builder, carry)
    starts = _starts(builder, node.operands[loop.consts :], carry)
    inputs = [*(builder.stored(x) for x in node.operands[: loop.consts]), *variables]
    condition = builder.block(loop.cond, inputs, [np.dtype(bool)])
    block = builder.block(loop.body, inputs, [value.dtype for value in carry])
    carried = tuple(map(Carried, _flat(variables), starts, block.results))
    builder.append(WhileHolds(carried, condition, Block(block.statements)))
    return _flat(variables)


def _while_pull(builder: _Builder, node: Node) -> list[Scalar]:
    back = WhilePull(**node.params)
    loop, consts = back.loop, back.consts
    carry = loop.body.inputs[consts:]
    end = consts + len(carry)
    constants = [builder.stored(x) for x in node.operands[:consts]]
    state = _variables(builder, carry)
    starts = _starts(builder, node.operands[consts:end], carry)
    inputs = [*constants, *state]
    condition = builder.block(loop.cond, inputs, [np.dtype(bool)])
    block = builder.block(loop.body, inputs, [value.dtype for value in carry])
    of_ct = back.pull.inputs[end:]
    cts = _variables(builder, of_ct)
    sums = _variables(builder, node.outputs[len(of_ct) :])
    first_cts = _starts(builder, node.operands[end:], of_ct)
    dtypes = [output.dtype for output in back.pull.outputs]
    pull = builder.block(back.pull, [*inputs, *cts], dtypes)
    if not pull.statements:
        linear = as_linear(pull.results, _flat(cts), first_cts)
        pull = pull._replace(results=linear or pull.results)
    count = len(_flat(cts))
    totals = [total + part for total, part in zip(_flat(sums), pull.results[count:], strict=True)]
    pulled = [
        *map(Carried, _flat(cts), first_cts, pull.results),
        *(
            Carried(v, constant(0, v.dtype), new)
            for v, new in zip(_flat(sums), totals, strict=True)
        ),
    ]
    builder.append(
        GoBack(
            tuple(map(Carried, _flat(state), starts, block.results)),
            condition,
            Block(block.statements),
            back.save,
            tuple(pulled),
            Block(pull.statements),
        )
    )
    return [*_flat(cts), *_flat(sums)]


def _switch(builder: _Builder, node: Node) -> list[Scalar]:
    index, *operands = node.operands
    inputs = [builder.stored(operand) for operand in operands]
    dtypes = [value.dtype for value in node.outputs]
    branches = tuple(builder.block(branch, inputs, dtypes) for branch in node.params["branches"])
    variables = _variables(builder, node.outputs)
    builder.append(Choose(builder.elements(index)[0], branches, tuple(_flat(variables))))
    return _flat(variables)


# ---- whole programs -----------------------------------------------------------------------------


def element_program(node: Node, buffers: dict[Value, Buffer], name: str) -> ElementProgram | None:
    """A loop or branch of a graph as a program; None if it is too large for one.

    Args:
        node: The loop or branch.
        buffers: The buffers of the values that are in memory.
        name: The name of the program.
    """
    builder = _Builder()
    for operand in node.operands:
        if isinstance(operand, Value):
            memory = Memory(buffers[operand], operand.shape, weak=operand.aval.weak)
            builder.define(operand, memory)
    outputs = [Memory(buffers[value], value.shape) for value in node.outputs]
    try:
        axis = build_control(builder, node, outputs)
    except TooLargeError:
        return None
    ops = [node.op.name, *builder.ops]
    statements = builder.statements()
    return ElementProgram(name, statements, axis, builder.locals, ops, builder.largest)
