"""The rule of each op: by the op itself, by its kind, or by the form of its lowering."""

from __future__ import annotations

from collections.abc import Callable

from gradtape.core.lowering import (
    Composite,
    Contraction,
    Elements,
    Matrices,
    Pointwise,
    Reduction,
    Relabel,
    Scan,
    Scatter,
    Whole,
)
from gradtape.core.op import Op, op_of
from gradtape.graph.scan_op import scan_op
from gradtape.graph.switch_op import switch_op
from gradtape.graph.while_op import while_op
from gradtape.ops.linalg.hermitian import mirrored
from gradtape.ops.sparse.product import product, sampled
from gradtape.sparsity import graph_rules, lowering_rules, product_rules
from gradtape.sparsity.dependencies import Call
from gradtape.sparsity.lowering_rules import Made

Rule = Callable[[Call], Made]

_BY_OP: dict[Op, Rule] = {
    scan_op: graph_rules.scan,
    while_op: graph_rules.while_loop,
    switch_op: graph_rules.switch,
    op_of(mirrored): lowering_rules.mirrored,
    op_of(product): product_rules.sparse_product,
    op_of(sampled): product_rules.sampled_product,
}
_BY_LOWERING: dict[type, Rule] = {
    Pointwise: lowering_rules.pointwise,
    Elements: lowering_rules.elements,
    Relabel: lowering_rules.relabelled,
    Reduction: lowering_rules.reduction,
    Scan: lowering_rules.running,
    Scatter: lowering_rules.scatter,
    Matrices: lowering_rules.matrices,
    Contraction: product_rules.contraction,
    Composite: graph_rules.composite,
}


def rows_of_results(call: Call) -> Made:
    """What the results of a call depend on."""
    op = call.node.op
    if isinstance(op.facts.reads, Whole):
        return lowering_rules.whole(call, op.facts.reads)
    if op.kind in ("custom", "host"):  # a lowering says what it computes, not what its rules say
        return graph_rules.custom(call)
    rule = _BY_OP.get(op) or _BY_LOWERING.get(type(op.lower), lowering_rules.stated)
    return rule(call)
