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
from gradtape.graph.ir import Graph, Node, Operand, Rewriter
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
    return _Simplifier(graph, _BY_OP if rules is RULES else _by_op(rules)).run()


def _by_op(rules: Sequence[Rule]) -> dict[Op, tuple[Rule, ...]]:
    """The rules that look at each op, in the order of the table."""
    ops = {op for rule in rules for op in rule.ops}
    return {op: tuple(rule for rule in rules if op in rule.ops) for op in ops}


_BY_OP = _by_op(RULES)


class _Simplifier:
    """Builds the new graph."""

    def __init__(self, graph: Graph, rules: Mapping[Op, Sequence[Rule]]) -> None:
        self._graph = graph
        self._rules = rules
        self._rewriter = Rewriter(graph)
        self._line = ""

    def run(self) -> Graph:
        for node in self._graph.nodes:
            self._line = node.line
            if node.op.outputs != 1:
                self._rewriter.copy(node)
                continue
            value = node.outputs[0]
            operands = self._rewriter.operands(node)
            simplest = self._simplest(node.op, operands, node.params, value.aval)
            self._rewriter.replace(value, simplest)
        return self._rewriter.finish()

    def _make(self, op: Op, operands: Sequence[Operand], params: Mapping[str, Any]) -> Operand:
        """Add a call for a rule; it gets the line of the call it replaces."""
        aval = op.infer(*(operand.aval for operand in operands), **params)
        return self._simplest(op, operands, params, aval)

    def _simplest(
        self, op: Op, operands: Sequence[Operand], params: Mapping[str, Any], aval: Aval
    ) -> Operand:
        number = folded(op, operands, params, aval)
        if number is not None:
            return uniform(self._rewriter, number, aval, self._line)
        call = Call(self._make, op, operands, params, aval)
        for rule in self._rules.get(op, ()):
            found = rule.apply(call)
            if found is not None and found.aval == aval:
                return found
        node = Node(op, operands, params, (aval,), self._line)
        self._rewriter.nodes.append(node)
        return node.outputs[0]
