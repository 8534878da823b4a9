"""What is wrong with loops and branches: operands and results that do not fit their graphs.

Shape rules of these ops read the graphs alone, and compiled code relies on both to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradtape.core.aval import Aval
from gradtape.core.op import Op
from gradtape.graph.ir import Graph, Node, Operand
from gradtape.graph.scan_op import STEP, Scan, scan_op
from gradtape.graph.switch_op import switch_op
from gradtape.graph.while_op import While, WhilePull, while_op, while_pull_op


def control_faults(node: Node) -> Iterator[str]:
    """What is wrong with a loop or a branch; nothing for other ops."""
    check = _CHECKS.get(node.op)
    if check is None:
        return
    try:
        yield from check([operand.aval for operand in node.operands], node.params)
    except Exception as error:
        yield f"its parameters are not those of a {node.op.name}: {error}"


def _of_scan(given: list[Aval], params: dict[str, Any]) -> Iterator[str]:
    scan = Scan(**params)
    if min(scan.consts, scan.carries, scan.length) < 0:
        yield "a number in its parameters is negative"
    first_x = scan.consts + scan.carries
    for aval in given[first_x:]:
        if aval.shape[:1] != (scan.length,):
            yield f"it goes through {aval}, expected {scan.length} elements"
    elements = [Aval(aval.shape[1:], aval.dtype) for aval in given[first_x:]]
    number = [STEP] if scan.counted else []
    takes = [*given[: scan.consts], *number, *given[scan.consts : first_x], *elements]
    yield from _differences("inputs of the body", _avals(scan.body.inputs), takes)
    carry = given[scan.consts : first_x]
    yield from _differences("carry", _avals(scan.body.outputs[: scan.carries]), carry)


def _of_while(given: list[Aval], params: dict[str, Any]) -> Iterator[str]:
    loop = While(**params)
    yield from _of_loop(loop.cond, loop.body, loop.consts, given)


def _of_while_pull(given: list[Aval], params: dict[str, Any]) -> Iterator[str]:
    back = WhilePull(**params)
    count = len(back.body.inputs)
    yield from _of_loop(back.cond, back.body, back.consts, given[:count])
    yield from _differences("inputs of the step back", _avals(back.pull.inputs), given)
    if not all(0 <= n < count - back.consts for n in back.active):
        yield "it goes back through carried values that there are not"
    if not all(0 <= n < back.consts for n in back.chosen):
        yield "it differentiates by constants that there are not"
    results = [given[n] for n in back.results]
    yield from _differences("results of the step back", _avals(back.pull.outputs), results)
    yield from _differences("cotangents", given[count:], results[: len(back.active)])


def _of_loop(cond: Graph, body: Graph, consts: int, given: list[Aval]) -> Iterator[str]:
    if not 0 <= consts <= len(given):
        yield "the number of its constants is wrong"
    yield from _differences("inputs of the body", _avals(body.inputs), given)
    yield from _differences("inputs of the condition", _avals(cond.inputs), given)
    yield from _differences("carry", _avals(body.outputs), given[consts:])
    if len(cond.outputs) != 1 or cond.outputs[0].shape != ():
        yield "its condition does not give one value"


def _of_switch(given: list[Aval], params: dict[str, Any]) -> Iterator[str]:
    first, *_ = branches = params["branches"]
    if given[0].shape != () or given[0].dtype.kind not in "biu":
        yield f"it chooses by {given[0]}, expected an integer"
    for branch in branches:
        yield from _differences("inputs of a branch", _avals(branch.inputs), given[1:])
        yield from _differences(
            "results of a branch", _avals(branch.outputs), _avals(first.outputs)
        )


_CHECKS: dict[Op, Callable[[list[Aval], dict[str, Any]], Iterator[str]]] = {
    scan_op: _of_scan,
    while_op: _of_while,
    while_pull_op: _of_while_pull,
    switch_op: _of_switch,
}


def _avals(operands: Sequence[Operand]) -> list[Aval]:
    return [operand.aval for operand in operands]


def _differences(what: str, found: Sequence[Aval], expected: Sequence[Aval]) -> Iterator[str]:
    """Where shapes and dtypes differ; a number may be weak in one place and not in another."""
    forms = [[(aval.shape, aval.dtype) for aval in avals] for avals in (found, expected)]
    if forms[0] != forms[1]:
        lists = (", ".join(map(repr, avals)) or "none" for avals in (found, expected))
        yield "the {} are {}, expected {}".format(what, *lists)
