"""The op `scan`: a loop of known length whose body is a graph.

    for t in range(length):                                # from the end if `reverse`
        *carry, *y = body(*consts, t, *carry, *(x[t] for x in xs))
        ys[t] = y

Operands are the constants, the first carry and the arrays to go through; results are the last carry
and the stacked ys. All its derivatives are scans again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.autodiff.forward import zeros_like
from gradtape.core.aval import Aval
from gradtape.core.call import call, is_differentiable
from gradtape.core.lowering import Lowering
from gradtape.core.op import Op
from gradtape.graph.derived import (
    Derived,
    batched,
    bits,
    dear,
    depending,
    pullback,
    pushforward,
    reached,
    spread,
    strong,
    traced,
)
from gradtape.graph.ir import Graph, Value
from gradtape.graph.run import replay
from gradtape.ops.shape import broadcast_to, moveaxis


class Loop(Lowering):
    """A loop around graphs; the compiler has code of its own for each op that has it."""

    __slots__ = ()


LOOP = Loop()


class Scan(NamedTuple):
    """The parameters of a scan.

    Attributes:
        body: A graph of the constants, the number of the step if `counted`, the carry and one
            element of each array; returns the next carry and the elements of the results.
        consts: The number of constants.
        carries: The number of values that are carried from step to step.
        length: The number of steps.
        reverse: Whether it goes from the last element to the first.
        counted: Whether the body takes the number of the step, a weak integer.
        keep: What is kept of each step for the backward pass: "all" the carry and the results of
            expensive ops, or only the "carry".
    """

    body: Graph
    consts: int
    carries: int
    length: int
    reverse: bool = False
    counted: bool = False
    keep: str = "all"

    @property
    def first_carry(self) -> int:
        """The position of the first carried value among the inputs of the body."""
        return self.consts + self.counted

    @property
    def first_x(self) -> int:
        """The position of the first element of an array among the inputs of the body."""
        return self.first_carry + self.carries

    @property
    def carry_places(self) -> range:
        """The positions of carried values among the inputs of the body."""
        return range(self.first_carry, self.first_x)

    def body_place(self, operand: int) -> int:
        """The position among the inputs of the body that an operand of the op goes to."""
        return operand if operand < self.consts else operand + self.counted

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """Run the op on values of any kind."""
        return call(scan_op, operands, self._asdict())  # type: ignore[no-any-return]


STEP = Aval((), np.dtype(np.int64), weak=True)


# ---- forward ------------------------------------------------------------------------------------


def _evaluate(_xp: Any, *operands: Any, **params: Any) -> tuple[Any, ...]:
    scan = Scan(**params)
    consts, rest = operands[: scan.consts], operands[scan.consts :]
    carry, xs = list(rest[: scan.carries]), rest[scan.carries :]
    results: list[list[Any]] = [[] for _ in scan.body.outputs[scan.carries :]]
    steps = range(scan.length)
    for t in reversed(steps) if scan.reverse else steps:
        number = (t,) if scan.counted else ()
        out = replay(scan.body, (*consts, *number, *carry, *[x[t] for x in xs]))
        carry = out[: scan.carries]
        for made, y in zip(results, out[scan.carries :], strict=True):
            made.append(y)
    ys = []
    for made, value in zip(results, scan.body.outputs[scan.carries :], strict=True):
        array = np.empty((scan.length, *value.shape), value.dtype)
        for t, y in enumerate(reversed(made) if scan.reverse else made):
            array[t] = y
        ys.append(array)
    return (*carry, *ys)


def _infer(*_avals: Aval, **params: Any) -> tuple[Aval, ...]:
    scan = Scan(**params)
    carry = [scan.body.inputs[n].aval for n in scan.carry_places]
    ys = [
        Aval((scan.length, *output.shape), np.dtype(output.dtype))
        for output in scan.body.outputs[scan.carries :]
    ]
    return (*carry, *ys)


# ---- reverse mode -------------------------------------------------------------------------------


def _recorded(params: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The scan that also returns what its backward pass reads."""
    scan = Scan(**params)
    body, count = scan.body, len(scan.body.outputs)
    known = set(body.outputs[scan.carries :])
    wanted: list[Value] = [body.inputs[n] for n in scan.carry_places]
    if scan.keep == "all":
        wanted += dear(body)
    kept = [value for value in dict.fromkeys(wanted) if value not in known]
    if not kept:
        return params, count
    longer = Graph(body.name, body.inputs, body.nodes, (*body.outputs, *kept))
    return {**params, "body": longer}, count


def _pull(wanted: Sequence[bool], ct: Any, out: Any, *operands: Any, **params: Any) -> list[Any]:
    params, count = _recorded(params)
    scan = Scan(**params)
    if count < len(scan.body.outputs):  # its parts were recorded apart: run it again
        out = scan(*operands)
        ct = (*ct, *(None,) * (len(out) - count))
    body, consts, carries = scan.body, scan.consts, scan.carries
    places = {n: scan.body_place(n) for n in range(len(operands))}
    # Cotangents flow to what is wanted, and through carried values that depend on it.
    asked = [
        n for n, want in enumerate(wanted) if want and is_differentiable(body.inputs[places[n]])
    ]
    flow = spread({places[n] for n in asked}, reached(body), scan.carry_places)
    active = [n for n in range(carries) if scan.first_carry + n in flow]
    active = [n for n in active if is_differentiable(body.inputs[scan.first_carry + n])]
    ys = [
        n
        for n, output in enumerate(body.outputs)
        if n >= carries and ct[n] is not None and is_differentiable(output)
    ]
    chosen_consts = [n for n in asked if n < consts]
    chosen_xs = [n for n in asked if n >= consts + carries]
    if not ys and not any(ct[n] is not None for n in active):
        return [None] * len(operands)
    # Carried values are inputs of the body, and read from what was kept; so are expensive values.
    worth = set(dear(body))
    kept = [n for n, output in enumerate(body.outputs) if n >= carries and output in worth]
    pulled = pullback(
        body,
        [*chosen_consts, *(scan.first_carry + n for n in active), *(places[n] for n in chosen_xs)],
        [*active, *ys],
        kept,
    )
    step = _step_back(scan, pulled, len(chosen_consts), len(active), len(kept), len(ys))
    stacked = {body.outputs[n]: out[n] for n in range(carries, len(out))}
    back = Scan(
        step.graph,
        consts + len(step.constants),
        len(active) + len(chosen_consts),
        scan.length,
        not scan.reverse,
        scan.counted,
    )
    starts = [zeros_like(operands[consts + n]) if ct[n] is None else ct[n] for n in active]
    starts += [zeros_like(operands[n]) for n in chosen_consts]
    found = back(
        *operands[:consts],
        *step.constants,
        *starts,
        *[stacked[body.inputs[n]] for n in scan.carry_places],
        *operands[consts + carries :],
        *[out[n] for n in kept],
        *[ct[n] for n in ys],
    )
    given: list[Any] = [None] * len(operands)
    order = [*(consts + n for n in active), *chosen_consts, *chosen_xs]
    for n, value in zip(order, found, strict=True):
        given[n] = value if wanted[n] else None
    return given


_pull.takes_none = True  # type: ignore[attr-defined]


def _step_back(
    scan: Scan, pulled: Derived, consts: int, active: int, kept: int, ys: int
) -> Derived:
    """One step of the backward scan.

    Its carry are the cotangents of the active carried values, and those of the chosen constants
    summed up so far. It goes through the carried values before each step, the arrays, the kept
    values and the cotangents of results.
    """
    graph, constants, _ = pulled
    inputs = graph.inputs
    count = len(scan.body.inputs)
    before = scan.first_carry  # constants, and the number of the step
    of_kept = count + kept
    own = inputs[:before]
    primals, kept_in = inputs[before:count], inputs[count:of_kept]
    cts, extra = (
        inputs[of_kept : len(inputs) - len(constants)],
        inputs[len(inputs) - len(constants) :],
    )
    sums = [strong(output.aval) for output in graph.outputs[:consts]]
    order = (
        *own[: scan.consts], *extra, *own[scan.consts :], *cts[:active], *primals, *kept_in,
        *cts[active:],
    )  # fmt: skip
    places = {value: n for n, value in enumerate(order)}
    between = len(own) + len(extra) + active

    def step(*values: Any) -> Any:
        given = values[:between] + values[between + consts :]
        out = replay(graph, [given[places[value]] for value in inputs])
        totals = [a + b for a, b in zip(values[between : between + consts], out, strict=False)]
        return (*out[consts : consts + active], *totals, *out[consts + active :])

    avals = [value.aval for value in order]
    made = traced(step, [*avals[:between], *sums, *avals[between:]], graph.name)
    # Arrays that were made just now come after the constants, before the rest.
    first = scan.consts + len(extra)
    new = len(made.constants)
    end = len(made.graph.inputs) - new
    reordered = (
        *made.graph.inputs[:first],
        *made.graph.inputs[end:],
        *made.graph.inputs[first:end],
    )
    graph = Graph(made.graph.name, reordered, made.graph.nodes, made.graph.outputs)
    return Derived(graph, (*constants, *made.constants))


# ---- forward mode -------------------------------------------------------------------------------


def _pushed(
    tangents: Sequence[Any], *operands: Any, **params: Any
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The results and their tangents."""
    scan = Scan(**params)
    body, consts, carries = scan.body, scan.consts, scan.carries
    influence = reached(body)
    given = {scan.body_place(n) for n, tangent in enumerate(tangents) if tangent is not None}
    start = {n for n in given if is_differentiable(body.inputs[n])}
    flow = spread(start, influence, scan.carry_places)
    moving = sorted(n for n in flow if is_differentiable(body.inputs[n]))
    mask = bits(moving)
    ys = [
        n
        for n, output in enumerate(body.outputs)
        if n >= carries and influence[n] & mask and is_differentiable(output)
    ]
    roles = of_consts, active, of_xs = (
        [n for n in moving if n < consts],
        [n for n in moving if n in scan.carry_places],
        [n for n in moving if n >= scan.first_x],
    )
    pushed = pushforward(body, moving)
    forward = _with_tangents(scan, pushed, roles, ys)
    operand_at = {scan.body_place(n): n for n in range(len(operands))}

    def tangent_at(place: int) -> Any:
        n = operand_at[place]
        return zeros_like(operands[n]) if tangents[n] is None else tangents[n]

    found = forward(
        *operands[:consts],
        *[tangent_at(n) for n in of_consts],
        *pushed.constants,
        *operands[consts : consts + carries],
        *[tangent_at(n) for n in active],
        *operands[consts + carries :],
        *[tangent_at(n) for n in of_xs],
    )
    count, moved = len(body.outputs) - carries, carries + len(active)
    result: list[Any] = [None] * len(body.outputs)
    for n, tangent in zip(active, found[carries:], strict=False):
        result[n - scan.first_carry] = tangent
    for n, tangent in zip(ys, found[moved + count :], strict=True):
        result[n] = tangent
    return (*found[:carries], *found[moved : moved + count]), tuple(result)


def _push(tangents: Sequence[Any], _out: Any, *operands: Any, **params: Any) -> tuple[Any, ...]:
    return _pushed(tangents, *operands, **params)[1]


def _with_tangents(
    scan: Scan, pushed: Derived, roles: tuple[list[int], list[int], list[int]], ys: Sequence[int]
) -> Scan:
    """The scan whose constants, carry and arrays are each followed by their tangents.

    Args:
        scan: The scan to differentiate.
        pushed: The body that pushes tangents forward; its constants follow those of the scan.
        roles: The inputs of the body that have tangents: constants, carried values, elements.
        ys: The results whose tangents are wanted.
    """
    body, consts, carries = scan.body, scan.consts, scan.carries
    of_consts, active, of_xs = roles
    moving = [*of_consts, *active, *of_xs]  # in the order of the inputs
    graph, count = pushed.graph, len(body.inputs)
    inputs, outputs = graph.inputs, graph.outputs
    tangents = dict(zip(moving, inputs[count:], strict=False))
    arranged = Graph(
        graph.name,
        (
            *inputs[:consts],
            *[tangents[n] for n in of_consts],
            *inputs[count + len(moving) :],
            *inputs[consts : scan.first_x],
            *[tangents[n] for n in active],
            *inputs[scan.first_x : count],
            *[tangents[n] for n in of_xs],
        ),
        graph.nodes,
        (
            *outputs[:carries],
            *[outputs[len(body.outputs) + n - scan.first_carry] for n in active],
            *outputs[carries : len(body.outputs)],
            *[outputs[len(body.outputs) + n] for n in ys],
        ),
    )
    return scan._replace(
        body=arranged,
        consts=consts + len(of_consts) + len(pushed.constants),
        carries=carries + len(active),
    )


# ---- batches ------------------------------------------------------------------------------------


def _batch(
    _op: Op, axes: Sequence[int | None], args: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, Any]:
    scan = Scan(**params)
    body, consts, carries = scan.body, scan.consts, scan.carries
    (size,) = {arg.shape[axis] for arg, axis in zip(args, axes, strict=True) if axis is not None}
    influence = depending(body)
    start = {scan.body_place(n) for n, axis in enumerate(axes) if axis is not None}
    flags = spread(start, influence, scan.carry_places)
    mask = bits(flags)
    out_batched = [
        bool(influence[n] & mask) if n >= carries else scan.first_carry + n in flags
        for n in range(len(body.outputs))
    ]
    graph, constants, _ = batched(
        body, [0 if n in flags else None for n in range(len(body.inputs))], size, out_batched
    )
    given = []
    for n, (arg, axis) in enumerate(zip(args, axes, strict=True)):
        first = 1 if n >= consts + carries else 0
        if axis is not None:
            given.append(arg if axis == first else moveaxis(arg, axis, first))
        elif scan.body_place(n) in flags:
            given.append(broadcast_to(arg, (size, *getattr(arg, "shape", ()))))
        else:
            given.append(arg)
    inputs, count = graph.inputs, len(body.inputs)
    order = (*inputs[:consts], *inputs[count:], *inputs[consts:count])
    wide = scan._replace(
        body=Graph(graph.name, order, graph.nodes, graph.outputs), consts=consts + len(constants)
    )
    out = wide(*given[:consts], *constants, *given[consts:])
    places = [
        None if not has_axis else 0 if n < carries else 1 for n, has_axis in enumerate(out_batched)
    ]
    return out, tuple(places)


scan_op = Op(
    "scan",
    _evaluate,
    _infer,
    vjp_all=_pull,
    jvp=_push,
    pushed=_pushed,
    batch=_batch,
    kind="control",
    outputs=None,
    recorded=_recorded,
    lower=LOOP,
)
