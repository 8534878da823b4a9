"""Rules of ops that hold graphs: compositions, functions with own rules, loops, branches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.call import is_differentiable
from gradtape.errors import ConversionError, GradtapeError, UnsupportedError
from gradtape.graph.derived import Derived, pullback, pushforward
from gradtape.graph.ir import Graph, Literal, Node, Value
from gradtape.graph.scan_op import Scan
from gradtape.graph.switch_op import Switch
from gradtape.graph.trace import Trace, composition, trace
from gradtape.graph.while_op import While
from gradtape.sparsity.dependencies import Call, Dependence, reduced
from gradtape.sparsity.known import Known, of_number
from gradtape.sparsity.lowering_rules import Made, dense
from gradtape.sparsity.rows import Rows, identity, nothing, same, stacked, union

# So many calls of ops at most are followed one by one in a loop.
_MOST_CALLS = 20_000
# So often the rows of a loop may grow before they are taken as dense.
_MOST_ROUNDS = 100
# So many functions at most whose rules are followed at once, one inside of the other, and so many
# of the same name: rules may make new functions each time that they are called.
_MOST_NESTED = 6
_MOST_OF_A_NAME = 2


# ---- compositions -------------------------------------------------------------------------------


def composite(call: Call) -> Made:
    """An op made of others: their rules are applied instead."""
    traced = _body(call.node)
    if traced is None:
        return dense(call, "it is made of other ops, but looks at values")
    inputs = [
        Dependence(rows, dependence.known)
        for operand, rows, dependence in zip(call.node.operands, call.rows, call.given, strict=True)
        if isinstance(operand, Value)
    ]
    inputs += call.analysis.hidden(traced)
    name = call.inside or call.node.op.name
    made = call.analysis.outputs(traced.graph, inputs, call.line, name)
    return [found.rows for found in made]


def _body(node: Node) -> Trace | None:
    """The ops that an op is composed of; None if it looks at values."""

    def function(*values: Any) -> Any:
        left = iter(values)
        operands = [o.value if isinstance(o, Literal) else next(left) for o in node.operands]
        return composition(node.op)(*operands, **node.params)

    avals = [operand.aval for operand in node.operands if isinstance(operand, Value)]
    try:
        return trace(function, avals, node.op.name)
    except (UnsupportedError, ConversionError):
        return None


# ---- functions with rules of their own ----------------------------------------------------------


def custom(call: Call) -> Made:
    """A function of the user with rules of its own: the rules count, not what it computes.

    What only one of the directions passes on is passed on.
    """
    op, following = call.node.op, call.analysis.following
    if any(other is op or other.identity == op.identity for other in following):
        return dense(call, "its rule calls the function itself")
    namesakes = sum(other.name == op.name for other in following)
    if namesakes == _MOST_OF_A_NAME or len(following) == _MOST_NESTED:
        return dense(call, "rules call functions with rules, and do not come to an end")
    following.append(op)
    try:
        return _by_rules(call)
    finally:
        following.pop()


def _by_rules(call: Call) -> Made:
    """The rows of the results by both rules of a function."""
    graph, given = _alone(call)
    moving = [n for n, dependence in enumerate(given) if dependence.rows is not None]
    found: Made = [None] * len(call.outs)
    errors: list[Exception] = []
    for direction in (_pushed, _pulled):
        try:
            made = direction(call, graph, given, moving)
            found = [union(*pair) for pair in zip(found, made, strict=True)]
        except GradtapeError as error:
            # A custom_jvp whose rule calls the function has no reverse mode.
            errors.append(error)
    return dense(call, f"its rules cannot be traced: {errors[0]}") if len(errors) == 2 else found


def _alone(call: Call) -> tuple[Graph, list[Dependence]]:
    """A graph of nothing but the call, and what its inputs depend on."""
    kept = [n for n, operand in enumerate(call.node.operands) if isinstance(operand, Value)]
    operands = list(call.node.operands)
    for n in kept:
        operands[n] = Value(call.avals[n])
    node = Node(call.node.op, operands, call.node.params, call.outs, call.line)
    inputs = [operand for operand in operands if isinstance(operand, Value)]
    given = [Dependence(call.rows[n], call.given[n].known) for n in kept]
    return Graph(node.op.name, inputs, [node], node.outputs), given


def _pushed(call: Call, graph: Graph, given: Sequence[Dependence], moving: Sequence[int]) -> Made:
    """The rows of the tangents of the results, from those of the operands."""
    derived = pushforward(graph, moving)
    tangents = [Dependence(given[n].rows, None) for n in moving]
    return _followed(call, derived, given, tangents)[len(call.outs) :]


def _pulled(call: Call, graph: Graph, given: Sequence[Dependence], moving: Sequence[int]) -> Made:
    """The same from cotangents: which elements of the operands each element of a result reaches."""
    outs = [n for n, output in enumerate(graph.outputs) if is_differentiable(output)]
    derived = pullback(graph, moving, outs, ())
    found: Made = [None] * len(call.outs)
    for n in outs:
        size = math.prod(call.outs[n].shape)
        cotangents = [Dependence(identity(size) if n == m else None, None) for m in outs]
        for operand, reached in zip(
            moving, _followed(call, derived, given, cotangents), strict=True
        ):
            rows = given[operand].rows
            if reached is not None and rows is not None:
                places = np.repeat(np.arange(len(reached)), reached.lengths)
                found[n] = union(found[n], rows.combined(reached.columns, places, size))
    return found


def _followed(
    call: Call, derived: Derived, given: Sequence[Dependence], moving: Sequence[Dependence]
) -> Made:
    """The rows of the outputs of a derivative, in which only what moves depends on something."""
    fixed = [Dependence(None, dependence.known) for dependence in given]
    inputs = [*fixed, *moving, *call.analysis.hidden(derived.trace)]
    return [d.rows for d in call.followed(derived.graph, inputs)]


# ---- loops --------------------------------------------------------------------------------------


def scan(call: Call) -> Made:
    """A loop of known length: its steps are followed one by one, unless there are too many."""
    loop = Scan(**call.node.params)
    given = [
        Dependence(rows, dependence.known)
        for rows, dependence in zip(call.rows, call.given, strict=True)
    ]
    consts, rest = given[: loop.consts], given[loop.consts :]
    carry, arrays = rest[: loop.carries], rest[loop.carries :]
    if loop.length * len(loop.body.nodes) <= _MOST_CALLS:
        return _unrolled(call, loop, consts, carry, arrays)
    number = [Dependence(None, None)] * loop.counted
    any_step = [_of_any_step(call, *pair) for pair in enumerate(arrays, loop.consts + loop.carries)]

    def step(carry: Sequence[Dependence]) -> list[Dependence]:
        return call.followed(loop.body, [*consts, *number, *carry, *any_step])

    last = _settled(call, carry, step)
    made = [found.rows for found in step(last)[loop.carries :]]
    ys = [None if rows is None else _repeated(rows, loop.length) for rows in made]
    return [*(found.rows for found in last), *ys]


def _unrolled(
    call: Call,
    loop: Scan,
    consts: Sequence[Dependence],
    carry: Sequence[Dependence],
    arrays: Sequence[Dependence],
) -> Made:
    results: list[list[Rows | None]] = [[] for _ in loop.body.outputs[loop.carries :]]
    steps = range(loop.length)
    for t in reversed(steps) if loop.reverse else steps:
        number = [Dependence(None, of_number(t))] * loop.counted
        parts = [_of_step(array, t, loop.length) for array in arrays]
        out = call.followed(loop.body, [*consts, *number, *carry, *parts])
        carry = [_evaluated(found) for found in out[: loop.carries]]
        for made, found in zip(results, out[loop.carries :], strict=True):
            made.append(found.rows)
    ys = [
        _joined(made[::-1] if loop.reverse else made, math.prod(y.shape))
        for made, y in zip(results, loop.body.outputs[loop.carries :], strict=True)
    ]
    return [*(found.rows for found in carry), *ys]


def _of_step(array: Dependence, t: int, length: int) -> Dependence:
    """What the element at a step depends on, of an array that a loop goes through."""
    rows, known = array
    if rows is not None:
        size = len(rows) // length
        rows = rows.take(np.arange(t * size, (t + 1) * size))
    if known is not None:
        known = _element(known, t)
    return Dependence(rows, known)


def _element(known: Known, t: int) -> Known:
    def compute() -> Any:
        return None if known.array is None else known.array[t]

    return Known(compute, known.sources, known.moved)


def _evaluated(found: Dependence) -> Dependence:
    """The same, computed now: a chain of values to be computed would become as long as the loop."""
    known = found.known
    return found if known is None or known.array is not None else Dependence(found.rows, None)


def _of_any_step(call: Call, operand: int, array: Dependence) -> Dependence:
    """What an element of an array depends on, whatever the step."""
    if array.rows is None:
        return Dependence(None, None)
    return Dependence(reduced(array.rows, call.avals[operand].shape, (0,)), None)


def while_loop(call: Call) -> Made:
    """A loop of unknown length: what is carried depends on all that any number of steps brings."""
    loop = While(**call.node.params)
    given = [
        Dependence(rows, dependence.known)
        for rows, dependence in zip(call.rows, call.given, strict=True)
    ]
    consts = given[: loop.consts]

    def step(carry: Sequence[Dependence]) -> list[Dependence]:
        return call.followed(loop.body, [*consts, *carry])

    return [found.rows for found in _settled(call, given[loop.consts :], step)]


def _settled(call: Call, carry: Sequence[Dependence], step: Any) -> list[Dependence]:
    """What is carried depends on before any step: steps are added until nothing changes."""
    call.block("its steps are not told apart")
    rows = [found.rows for found in carry]
    for _ in range(_MOST_ROUNDS):
        after = [found.rows for found in step([Dependence(some, None) for some in rows])]
        grown = [union(*pair) for pair in zip(rows, after, strict=False)]
        if all(same(*pair) for pair in zip(rows, grown, strict=True)):
            return [Dependence(some, None) for some in rows]
        rows = grown
    call.block("what it carries comes to depend on ever more: it is taken as dense")
    every = None
    for some in (*rows, *call.rows):
        if some is not None and len(some):
            every = union(every, some.everywhere(1))
    sizes = [math.prod(value.shape) for value in call.node.outputs[: len(rows)]]
    return [Dependence(None if every is None else every.everywhere(n), None) for n in sizes]


def _repeated(rows: Rows, times: int) -> Rows:
    return rows.take(np.tile(np.arange(len(rows)), times))


def _joined(parts: Sequence[Rows | None], size: int) -> Rows | None:
    """The rows of results of all steps, one below the other."""
    width = next((part.width for part in parts if part is not None), None)
    if width is None:
        return None
    return stacked([nothing(size, width) if part is None else part for part in parts])


# ---- branches -----------------------------------------------------------------------------------


def switch(call: Call) -> Made:
    """One of several graphs: that of a known number, else what any of them depends on."""
    branches = Switch(**call.node.params).branches
    number = call.known(0)
    if number is not None:
        call.analysis.reliance.on(call.given[0].known)
        branches = branches[int(number) :][:1]
    given = [
        Dependence(rows, dependence.known)
        for rows, dependence in zip(call.rows[1:], call.given[1:], strict=True)
    ]
    found: Made = [None] * len(call.outs)
    for branch in branches:
        made = call.followed(branch, given)
        found = [union(rows, new.rows) for rows, new in zip(found, made, strict=True)]
    return found
