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
    simplifier = _Simplifier(graph, _BY_OP if rules is RULES else _by_op(rules))
    rewriter = simplifier.rewriter
    for node in graph.nodes:
        if node.op.outputs != 1:
            rewriter.copy(node)
        else:
            simplifier.line = node.line
            value, operands = node.outputs[0], rewriter.operands(node)
            rewriter.replace(value, simplifier.add(node.op, operands, node.params, value.aval))
    return rewriter.finish()


class _Simplifier:
    """Adds calls to a new graph in their simplest form.

    Attributes:
        rewriter: Builds the graph.
        line: The line of the call that is simplified, which those that replace it get as well.
    """

    def __init__(self, graph: Graph, rules: Mapping[Op, Sequence[Rule]]) -> None:
        self.rewriter = Rewriter(graph)
        self.line = ""
        self._rules = rules

    def add(
        self,
        op: Op,
        operands: Sequence[Operand],
        params: Mapping[str, Any],
        aval: Aval | None = None,
    ) -> Operand:
        """Add a call, whose abstract result may be known already."""
        if aval is None:
            aval = op.infer(*(operand.aval for operand in operands), **params)
        number = folded(op, operands, params, aval)
        if number is not None:
            return uniform(self.rewriter, number, aval, self.line)
        call = Call(self.add, op, operands, params, aval)
        for rule in self._rules.get(op, ()):
            found = rule.apply(call)
            if found is not None and found.aval == aval:
                return found
        return self.rewriter.add(op, operands, params, self.line, aval)


def _by_op(rules: Sequence[Rule]) -> dict[Op, tuple[Rule, ...]]:
    """The rules that look at each op, in the order of the table."""
    ops = {op for rule in rules for op in rule.ops}
    return {op: tuple(rule for rule in rules if op in rule.ops) for op in ops}


_BY_OP = _by_op(RULES)
