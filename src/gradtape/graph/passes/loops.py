"""Smaller loops: what a scan need not do at every step is done before or after it, or not at all.

- Carried values that never change are constants; those that nothing depends on are dropped, and so
  are results that nobody reads.
- Results that are elements the loop goes through are the arrays themselves.
- What is the same at every step is computed once.
- Products of elements with constants, as of the inputs of a recurrent network with their weights,
  are one large product before the loop.
- Sums of products, as the gradients of such weights, and results that are products with constants,
  as the gradients of the inputs, are one large product after it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from gradtape.core.aval import Aval
from gradtape.core.lowering import Contraction
from gradtape.core.op import Op, op_of
from gradtape.graph.derived import batched
from gradtape.graph.inline import inline
from gradtape.graph.ir import Graph, Literal, Node, Operand, Rewriter, Value, replaced
from gradtape.graph.passes.dead import dead
from gradtape.graph.scan_op import Scan, scan_op
from gradtape.ops.arithmetic import add
from gradtape.ops.shape import broadcast_op, reshape_op, transpose_op

_ADD = op_of(add)


def loops(graph: Graph) -> Graph:
    """The graph with smaller scans."""
    if not any(node.op is scan_op for node in graph.nodes):
        return graph
    rewriter = Rewriter(graph)
    read = {operand for node in graph.nodes for operand in node.operands}
    read |= set(graph.outputs)
    for node in graph.nodes:
        if node.op is scan_op and node.params["length"] > 0:
            _Loop(node, rewriter, read).rewrite()
        else:
            rewriter.copy(node)
    return rewriter.finish()


class _Carry(NamedTuple):
    """A carried value: its input in the body, its first value, what is next, the last value."""

    inside: Value
    start: Operand
    next: Operand
    last: Value


class _Sum(NamedTuple):
    """A carried value that is a sum of products xᵀ·y, one for each step.

    Attributes:
        carry: The carried value.
        op: The op of the product.
        factors: The arrays that have x and y at each step.
    """

    carry: _Carry
    op: Op
    factors: Sequence[Operand]


class _Product(NamedTuple):
    """A result that is the product of a value of the body with a constant.

    Attributes:
        out: The result.
        graph: Computes one element of it from the constants and the other factor.
        operands: The constants.
        factor: The array that has the other factor at each step.
    """

    out: Value
    graph: Graph
    operands: Sequence[Operand]
    factor: Operand


def _varying_factor(value: Operand, fixed: set[Operand]) -> Value | None:
    """The factor of a product of matrices that varies, if the other does not; or None."""
    node = value.node if isinstance(value, Value) else None
    if node is None or not isinstance(node.op.lower, Contraction) or value.aval.ndim != 2:
        return None
    varying = [x for x in node.operands if x not in fixed]
    (factor,) = varying if len(varying) == 1 else (None,)
    return factor if isinstance(factor, Value) and factor.aval.ndim == 2 else None


def _is_compact(node: Node) -> bool:
    """Whether a node's results take no more memory than its operands."""
    made = sum(math.prod(value.shape) for value in node.outputs)
    return made <= sum(math.prod(x.shape) for x in node.operands if isinstance(x, Value))


def _is_zero(operand: Operand) -> bool:
    """Whether an operand is the number 0, or full of it."""
    if isinstance(operand, Value) and operand.node is not None:
        operand = operand.node.operands[0] if operand.node.op is broadcast_op else operand
    return isinstance(operand, Literal) and operand.value == 0


def _factors(product: Node) -> tuple[Value, Value]:
    """The values x and y of a product xᵀ·y."""
    left, right = product.operands
    assert isinstance(left, Value)
    assert isinstance(right, Value)
    assert left.node is not None
    return left.node.operands[0], right  # type: ignore[return-value]


class _Loop:
    """One scan, taken apart."""

    def __init__(self, node: Node, rewriter: Rewriter, read: set[Operand]) -> None:
        self._node, self._rewriter, self._read = node, rewriter, read
        self._scan = scan = Scan(**node.params)
        self._body = body = scan.body
        given = rewriter.operands(node)
        inputs, consts, carries = body.inputs, scan.consts, scan.carries
        self._consts = list(zip(inputs[:consts], given[:consts], strict=True))
        self._counter = inputs[consts : scan.first_carry]
        self._carries = [
            _Carry(*each)
            for each in zip(
                inputs[scan.first_carry : scan.first_x],
                given[consts : consts + carries],
                body.outputs[:carries],
                node.outputs[:carries],
                strict=True,
            )
        ]
        self._xs = list(zip(inputs[scan.first_x :], given[consts + carries :], strict=True))
        self._ys = list(zip(body.outputs[carries:], node.outputs[carries:], strict=True))

    def rewrite(self) -> None:
        """Append what the scan becomes."""
        self._drop_results()
        self._drop_carries()
        self._drop_results()
        self._hoist_constants()
        self._hoist_products()
        self._drop_results()
        sums, products = self._take_sums_out(), self._take_products_out()
        self._finish()
        for each in sums:
            self._rewriter.replace(each.carry.last, self._summed(each))
        for product in products:
            self._rewriter.replace(product.out, self._multiplied(product))

    # ---- what nobody needs -----------------------------------------------------------------

    def _drop_results(self) -> None:
        arrays = dict(self._xs)
        kept = []
        for inside, out in self._ys:
            if out not in self._read:
                continue
            known = arrays.get(inside) if isinstance(inside, Value) else None
            if known is not None and known.aval == out.aval:
                self._rewriter.replace(out, known)
            else:
                kept.append((inside, out))
        self._ys = kept

    def _drop_carries(self) -> None:
        changing = []
        for carry in self._carries:
            if carry.next is carry.inside and carry.start.aval == carry.inside.aval:
                self._consts.append((carry.inside, carry.start))
                self._rewriter.replace(carry.last, carry.start)
            else:
                changing.append(carry)
        needed = {carry.inside for carry in changing if carry.last in self._read}
        while True:
            outputs = [carry.next for carry in changing if carry.inside in needed]
            outputs += [inside for inside, _ in self._ys]
            seen = self._reads(outputs)
            more = {carry.inside for carry in changing if carry.inside in seen} - needed
            if not more:
                break
            needed |= more
        self._carries = [carry for carry in changing if carry.inside in needed]

    def _reads(self, outputs: Sequence[Operand]) -> set[Operand]:
        """The values of the body that outputs depend on."""
        read = set(outputs)
        for node in reversed(self._body.nodes):
            if node.has_effect() or not read.isdisjoint(node.outputs):
                read.update(node.operands)
        return read

    # ---- constants before the loop ---------------------------------------------------------

    def _fixed(self) -> set[Operand]:
        """The values of the body that are the same at every step."""
        fixed: set[Operand] = {value for value, _ in self._consts}
        for node in self._body.nodes:
            pure = node.op.effect is None and node.op.kind != "control"
            if pure and fixed.issuperset(x for x in node.operands if isinstance(x, Value)):
                fixed.update(node.outputs)
        return fixed

    def _hoist_constants(self) -> None:
        """Compute what is the same at every step before the loop, unless it takes more memory."""
        fixed = self._fixed()
        given = {value for value, _ in self._consts}
        read = {
            x for node in self._body.nodes if fixed.isdisjoint(node.outputs) for x in node.operands
        }
        read |= {carry.next for carry in self._carries} | {value for value, _ in self._ys}
        wanted = [
            value
            for node in self._body.nodes
            for value in node.outputs
            if value in fixed and value in read and value not in given and _is_compact(node)
        ]
        if not wanted:
            return
        inputs = [value for value, _ in self._consts]
        alone = self._alone(inputs, wanted)
        outs = inline(
            self._rewriter, alone, [operand for _, operand in self._consts], self._node.line
        )
        new = [Value(value.aval) for value in wanted]
        self._consts += list(zip(new, outs, strict=True))
        self._replace(dict(zip(wanted, new, strict=True)))

    # ---- products before the loop ----------------------------------------------------------

    def _hoist_products(self) -> None:
        """Move products of elements and constants out, as products of whole arrays."""
        free: set[Operand] = {value for value, _ in (*self._consts, *self._xs)}
        elements: set[Operand] = {value for value, _ in self._xs}
        wanted: list[Value] = []
        for node in self._body.nodes:
            operands = [x for x in node.operands if isinstance(x, Value)]
            if node.op.effect is not None or node.op.kind == "control":
                continue
            if not free.issuperset(operands):
                continue
            free.update(node.outputs)
            if not elements.isdisjoint(operands):
                elements.update(node.outputs)
                if isinstance(node.op.lower, Contraction) and node.outputs[0].aval.ndim == 2:
                    wanted.append(node.outputs[0])
        if not wanted:
            return
        given = [*self._consts, *self._xs]
        inputs = [value for value, _ in given]
        axes: list[int | None] = [None] * len(self._consts) + [0] * len(self._xs)
        graph, constants, _ = batched(
            self._alone(inputs, wanted), axes, self._scan.length, [True] * len(wanted)
        )
        if constants:
            return  # arrays that a rule made: leave them where they are
        outs = inline(self._rewriter, graph, [operand for _, operand in given], self._node.line)
        new = [Value(value.aval) for value in wanted]
        self._xs += list(zip(new, outs, strict=True))
        self._replace(dict(zip(wanted, new, strict=True)))

    def _alone(self, inputs: Sequence[Value], outputs: Sequence[Operand]) -> Graph:
        """The part of the body that computes some of its values from others; it has no effect."""
        given = set(inputs)
        nodes = [node for node in self._body.nodes if given.isdisjoint(node.outputs)]
        pure = [node for node in nodes if not node.has_effect()]
        return replaced(dead(Graph(self._body.name, inputs, pure, outputs)), {})

    def _replace(self, inside: dict[Operand, Value]) -> None:
        """Read inputs of the body instead of results of its nodes."""
        groups = [[value for value, _ in self._consts], list(self._counter)]
        groups += [[carry.inside for carry in self._carries], [value for value, _ in self._xs]]
        outputs = [*(carry.next for carry in self._carries), *(value for value, _ in self._ys)]
        inputs = [value for group in groups for value in group]
        # Nodes that only dropped values need may read inputs that are gone.
        alive = dead(Graph(self._body.name, inputs, self._body.nodes, outputs))
        self._body = graph = replaced(alive, inside)
        rest = iter(graph.inputs)
        consts, counter, carried, xs = ([next(rest) for _ in group] for group in groups)
        self._consts = [(v, operand) for v, (_, operand) in zip(consts, self._consts, strict=True)]
        self._counter = tuple(counter)
        self._xs = [(v, operand) for v, (_, operand) in zip(xs, self._xs, strict=True)]
        made = iter(graph.outputs)
        self._carries = [
            carry._replace(inside=v, next=next(made))
            for v, carry in zip(carried, self._carries, strict=True)
        ]
        self._ys = [(next(made), out) for _, out in self._ys]

    # ---- sums after the loop ---------------------------------------------------------------

    def _take_sums_out(self) -> list[_Sum]:
        """Sum products up after the loop, which then only has to return their factors."""
        readers = Counter(operand for node in self._body.nodes for operand in node.operands)
        readers.update(carry.next for carry in self._carries)
        readers.update(value for value, _ in self._ys)
        found = [(carry, self._summed_product(carry, readers)) for carry in self._carries]
        self._carries = [carry for carry, product in found if product is None]
        return [
            _Sum(carry, product.op, [self._array(value) for value in _factors(product)])
            for carry, product in found
            if product is not None
        ]

    def _summed_product(self, carry: _Carry, readers: Counter[Operand]) -> Node | None:
        """The product xᵀ·y if the next value is carry + xᵀ·y, and nothing else reads the carry."""
        node = carry.next.node if isinstance(carry.next, Value) else None
        if node is None or node.op is not _ADD or readers[carry.inside] != 1:
            return None
        terms = [term for term in node.operands if term is not carry.inside]
        if len(terms) != 1 or readers[carry.next] != 1:
            return None
        product = terms[0].node if isinstance(terms[0], Value) else None
        if product is None or not isinstance(product.op.lower, Contraction):
            return None
        left, right = product.operands
        turned = left.node if isinstance(left, Value) else None
        if turned is None or turned.op is not transpose_op or not isinstance(right, Value):
            return None
        if tuple(turned.params["axes"]) != (1, 0) or right.aval.ndim != 2:
            return None
        (rows, k), n = turned.operands[0].shape, right.shape[1]
        # The factors of all steps must not take more memory traffic than the sum at every step.
        worth = rows * (k + n) <= k * n and isinstance(turned.operands[0], Value)
        return product if worth else None

    def _array(self, value: Value) -> Operand:
        """The array that has a value of the body at each step: a new result, unless there is one.

        An array that the loop goes through is an operand of the new graph; results are values of
        the old one, which get replaced.
        """
        for inside, operand in self._xs:
            if inside is value:
                return operand
        for returned, out in self._ys:
            if returned is value:
                return out
        shape = (self._scan.length, *value.shape)
        self._ys.append((value, Value(Aval(shape, value.dtype))))
        return self._ys[-1][1]

    def _summed(self, each: _Sum) -> Operand:
        """The last value of a carried sum of products."""
        rewriter, line, flat = self._rewriter, self._node.line, []
        results = {out for _, out in self._ys}
        for factor in each.factors:
            array = rewriter[factor] if factor in results else factor
            shape = (array.shape[0] * array.shape[1], array.shape[2])
            flat.append(rewriter.add(reshape_op, [array], {"shape": shape}, line))
        turned = rewriter.add(transpose_op, [flat[0]], {"axes": (1, 0)}, line)
        total = rewriter.add(each.op, [turned, flat[1]], {}, line)
        start = each.carry.start
        return total if _is_zero(start) else rewriter.add(_ADD, [start, total], {}, line)

    # ---- products after the loop -----------------------------------------------------------

    def _take_products_out(self) -> list[_Product]:
        """Multiply results by constants after the loop, which then returns the other factor."""
        fixed = self._fixed()
        found, kept = [], []
        for inside, out in self._ys:
            factor = _varying_factor(inside, fixed)
            if factor is None:
                kept.append((inside, out))
            else:
                found.append((inside, out, factor))
        self._ys = kept
        made = []
        for inside, out, factor in found:
            inputs = [*(value for value, _ in self._consts), factor]
            alone = self._alone(inputs, [inside])
            operands = [operand for _, operand in self._consts]
            made.append(_Product(out, alone, operands, self._array(factor)))
        return made

    def _multiplied(self, product: _Product) -> Operand:
        """The product of a whole array with a constant."""
        results = {out for _, out in self._ys}
        factor = product.factor
        array = self._rewriter[factor] if factor in results else factor
        axes: list[int | None] = [*(None,) * len(product.operands), 0]
        graph, constants, _ = batched(product.graph, axes, self._scan.length, [True])
        assert not constants
        given = [*product.operands, array]
        return inline(self._rewriter, graph, given, self._node.line)[0]

    # ---- the new scan ----------------------------------------------------------------------

    def _finish(self) -> None:
        outputs = [*(carry.next for carry in self._carries), *(inside for inside, _ in self._ys)]
        nodes = dead(Graph(self._body.name, self._body.inputs, self._body.nodes, outputs)).nodes
        read = {x for node in nodes for x in node.operands} | set(outputs)
        consts = [pair for pair in self._consts if pair[0] in read]
        xs = [pair for pair in self._xs if pair[0] in read]
        counter = [value for value in self._counter if value in read]
        inputs = [
            *(value for value, _ in consts),
            *counter,
            *(carry.inside for carry in self._carries),
            *(value for value, _ in xs),
        ]
        body = replaced(Graph(self._body.name, inputs, nodes, outputs), {})
        scan = self._scan._replace(
            body=body, consts=len(consts), carries=len(self._carries), counted=bool(counter)
        )
        operands = [
            *(operand for _, operand in consts),
            *(carry.start for carry in self._carries),
            *(operand for _, operand in xs),
        ]
        results = [*(carry.last for carry in self._carries), *(out for _, out in self._ys)]
        if not results and not any(node.has_effect() for node in nodes):
            return
        params = scan._asdict()
        node = Node(scan_op, operands, params, scan_op.infer(**params), self._node.line)
        self._rewriter.nodes.append(node)
        for old, new in zip(results, node.outputs, strict=True):
            self._rewriter.replace(old, new)
