"""The names that ops have in files, and the ops of names.

| name | op |
|---|---|
| `sin` | the registered op of that name |
| `graph:constant` | an op that only graphs have, from the table below |
| `redrawn:random_normal` | a random op that takes the state of the generator as an operand |
| `settled:power:vjp:0` | what gives 0 for 0·∞ in a rule of an op: which rule, for which input |

A name leads to an op of this package or to none: it never says which module to load.
"""

from __future__ import annotations

from gradtape.core.lazy import found_at
from gradtape.core.op import Op, registry
from gradtape.core.settle import Settling, settling_op
from gradtape.graph.capture import redrawn

# Ops that only graphs have: their names in files, and where they are.
_OF_GRAPHS = {
    "again": "gradtape.core.restore:AGAIN",
    "branch": "gradtape.graph.switch_op:branch_op",
    "checkpoint": "gradtape.autodiff.checkpoint:MARK",
    "constant": "gradtape.graph.graph_of_function:CONSTANT",
    "int": "gradtape.graph.python_numbers:_COUNTED",
    "random_state": "gradtape.graph.capture:_RANDOM_STATE",
    "scan": "gradtape.graph.scan_op:scan_op",
    "switch": "gradtape.graph.switch_op:switch_op",
    "unrecorded": "gradtape.graph.trace:UNRECORDED",
    "while": "gradtape.graph.while_op:while_op",
    "while_pull": "gradtape.graph.while_op:while_pull_op",
}


def name_of_op(op: Op) -> str | None:
    """The name of an op in files; None if it cannot be saved."""
    if isinstance(op, Settling):
        base = name_of_op(op.settled)
        return f"settled:{base}:{op.rule_name}:{op.argument}" if base and op.rule_name else None
    for name, known in _plain(op.name):
        if known is op:
            return name
        if known.effect == "random" and redrawn(known) is op:
            return f"redrawn:{name}"
    return None


def _plain(own: str) -> list[tuple[str, Op]]:
    """The registered op and that of graphs that have a name, with their names in files."""
    found = []
    if own in registry:
        found.append((own, registry.named(own)))
    if own in _OF_GRAPHS:
        found.append((f"graph:{own}", found_at(_OF_GRAPHS[own])))
    return [(name, op) for name, op in found if op is not None]


def op_of_name(name: str) -> Op | None:
    """The op that a name in a file stands for; None if there is none."""
    match name.split(":"):
        case ["graph", own]:
            return found_at(_OF_GRAPHS[own]) if own in _OF_GRAPHS else None
        case ["redrawn", *rest]:
            op = _drawn(":".join(rest))
            return None if op is None else redrawn(op)
        case ["settled", base, rule, argument] if argument.isdecimal() and len(argument) < 4:
            op = registry.named(base)
            return None if op is None else settling_op(op, rule, int(argument))
        case [own]:
            return registry.named(own)
    return None


def _drawn(name: str) -> Op | None:
    """The random op of a name."""
    op = None if name.startswith(("redrawn:", "settled:")) else op_of_name(name)
    return op if op is not None and op.effect == "random" else None
