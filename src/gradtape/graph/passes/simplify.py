"""Algebraic simplification: one sweep over the graph that applies the table of rules.

Nodes are rewritten in order, so a rule sees operands that are already in their simplest form; the
replacement of a call is simplified in turn before it is added. One sweep is enough, and its time is
linear in the number of nodes. Nodes that nothing reads any more are left to `dead`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradtape.core.aval import Aval
from gradtape.core.op import Op
from gradtape.graph.ir import Graph, Operand, Rewriter
from gradtape.graph.passes.fold import folded, uniform
from gradtape.graph.passes.match import Call
from gradtape.graph.passes.rules import RULES, Rule


def simplify(graph: Graph, rules: Sequence[Rule] = RULES) -> Graph:
    """The graph simplified as far as the rules allow; no bit of a result changes.

    Args:
        graph: The graph to simplify.
        rules: The rules to apply; constants are folded in any case.

    >>> from gradtape.core.aval import aval_of
    >>> from gradtape.graph.passes.dead import dead
    >>> from gradtape.graph.trace import trace
    >>> traced = trace(lambda x: np.transpose(x.T * 1.0) - (-x), [aval_of(np.ones((2, 3)))])
    >>> dead(simplify(traced.graph))
    <graph function: 1 inputs, 1 nodes>
    """
    by_op = _BY_OP if rules is RULES else _by_op(rules)
    rewriter, line = Rewriter(graph), ""

    def simplest(
        op: Op, operands: Sequence[Operand], params: Mapping[str, Any], aval: Aval
    ) -> Operand:
        number = folded(op, operands, params, aval)
        if number is not None:
            return uniform(rewriter, number, aval, line)
        call = Call(make, op, operands, params, aval)
        for rule in by_op.get(op, ()):
            found = rule.apply(call)
            if found is not None and found.aval == aval:
                return found
        return rewriter.add(op, operands, params, line, aval)

    def make(op: Op, operands: Sequence[Operand], params: Mapping[str, Any]) -> Operand:
        aval = op.infer(*(operand.aval for operand in operands), **params)
        return simplest(op, operands, params, aval)

    for node in graph.nodes:
        line = node.line  # calls that rules make get the line of the call they replace
        if node.op.outputs != 1:
            rewriter.copy(node)
        else:
            value, operands = node.outputs[0], rewriter.operands(node)
            rewriter.replace(value, simplest(node.op, operands, node.params, value.aval))
    return rewriter.finish()


def _by_op(rules: Sequence[Rule]) -> dict[Op, tuple[Rule, ...]]:
    """The rules that look at each op, in the order of the table."""
    ops = {op for rule in rules for op in rule.ops}
    return {op: tuple(rule for rule in rules if op in rule.ops) for op in ops}


_BY_OP = _by_op(RULES)
