"""Zero times infinity in derivative rules, where the value they belong to is not finite.

The chain rule multiplies the cotangent or tangent that reaches an op by the op's slope. Where one
is 0 and the other is not finite, the product is NaN. If the op's value, or the argument it is
differentiated by, is itself infinite or undefined, no wanted derivative flows through it, and the
product counts as 0: `settle`. Programs whose derivatives are finite pay nothing for it, since NaN
stays NaN on its way through linear rules: derivatives are checked at the end and, if they are not
finite, computed again with rules that settle (`core.walk`, `core.evaluate`). Traced rules always
settle; compiled code leaves it out until it matters (`compiler.program`), and so do the kernels of
rules for large arrays (`kernels.tile_rules`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval, aval_of
from gradtape.core.batching import move_batch_axis
from gradtape.core.broadcasting import broadcast_sizes, broadcast_tangent, unbroadcast
from gradtape.core.call import call
from gradtape.core.finite import is_finite, is_plain_factor
from gradtape.core.lowering import Composite
from gradtape.core.needed_ops import needed
from gradtape.core.op import Facts, Op, Rule, rule_reads
from gradtape.core.tensor import Tensor, innermost


class Settling(Op):
    """An op that settles the result of a rule: its first operand, with 0 in some places.

    The operand is NaN in these places, unless another settling op was applied before.

    Attributes:
        settled: The op whose rule it is for.
        rule_name: Which rule that is: "vjp", "flat_vjp" or "jvp".
        argument: The position of the input that the rule is for.
    """

    __slots__ = ("argument", "rule_name", "settled")
    settled: Op
    rule_name: str
    argument: int


def guarded(op: Op, rule: Rule, argument: int) -> Rule:
    """A derivative rule of an elementwise op, made to settle its result.

    Args:
        op: The op to differentiate.
        rule: `rule(ct, out, *inputs, **params)`, linear in `ct`.
        argument: The position of the input to differentiate by.
    """
    if not rule_reads(rule):
        return rule  # its slope is a number

    def settled(ct: Any, out: Any, /, *inputs: Any, **params: Any) -> Any:
        slope = rule(ct, out, *inputs, **params)
        if slope is None or slope.shape != ct.shape or is_finite(slope):
            return slope
        return settle(op, rule, argument, slope, ct, out, inputs, params)

    settled.reads = rule_reads(rule)  # type: ignore[attr-defined]
    settled.rule = rule  # type: ignore[attr-defined]
    return settled


def settling_op(op: Op, rule_name: str, argument: int) -> Settling | None:
    """The op that settles a rule of another op, by the name of the rule; None if there is none.

    Args:
        op: The op that the rule belongs to.
        rule_name: As in `Settling.rule_name`.
        argument: The position of the input that the rule is for.
    """
    rule = _settled_rules(op, argument).get(rule_name)
    return None if rule is None else _settling(op, rule, argument)


def _settled_rules(op: Op, argument: int) -> dict[str, Rule]:
    """The rules of an op for one input that are settled, by name."""
    if op.careful_jvp is None or not 0 <= argument < len(op.careful):
        return {}
    rules = {"vjp": op.careful, "flat_vjp": op.careful_flat or ()}
    found = {
        name: getattr(some[argument], "rule", None)
        for name, some in rules.items()
        if argument < len(some)
    }
    found["jvp"] = _alone(op, argument)
    return {name: rule for name, rule in found.items() if rule is not None}


def settled_tangent(
    op: Op, tangents: Sequence[Any], out: Any, /, *inputs: Any, **params: Any
) -> Any:
    """The tangent of an op, from its `jvp` for one input at a time; None if there is none."""
    total = None
    for i, tangent in enumerate(tangents):
        rule = _alone(op, i)
        term = None if tangent is None else rule(tangent, out, *inputs, **params)
        if term is not None:
            term = settle(op, rule, i, term, tangent, out, inputs, params)
            total = term if total is None else total + term
    return total


def settled_higher(
    op: Op,
    argument: int,
    value: Any,
    given: Any,
    out: Any,
    inputs: Sequence[Any],
    params: dict[str, Any],
) -> Any:
    """A derivative of higher order due to one input, with 0 where that of first order is 0·∞.

    Args:
        op: An elementwise op.
        argument: The position of the input.
        value: The derivative of higher order.
        given: The tangent of the input.
        out: The result of the op.
        inputs: Its operands.
        params: Its parameters.
    """
    rule = _alone(op, argument)
    slope = rule(given, out, *inputs, **params)
    return settle(op, rule, argument, slope, given, out, inputs, params, value)


@functools.cache
def _alone(op: Op, argument: int) -> Rule:
    """The part of an op's `jvp` that is due to one of its inputs."""

    def rule(tangent: Any, out: Any, /, *inputs: Any, **params: Any) -> Any:
        tangents = [tangent if i == argument else None for i in range(len(inputs))]
        assert op.jvp is not None
        return op.jvp(tangents, out, *inputs, **params)

    return rule


def settle(
    op: Op,
    rule: Rule,
    argument: int,
    slope: Any,
    given: Any,
    out: Any,
    inputs: Sequence[Any],
    params: dict[str, Any],
    value: Any = None,
) -> Any:
    """The result of a rule, with 0 for 0·∞ where the op's value or argument is not finite.

    Args:
        op: An elementwise op.
        rule: Its rule for one of its inputs.
        argument: The position of that input.
        slope: The result of the rule.
        given: The cotangent or tangent the rule was applied to.
        out: The result of the op; None or an `Aval` if it was not kept.
        inputs: Its operands, likewise.
        params: Its parameters.
        value: What to settle where the result of the rule is 0·∞, if it is not that result.
    """
    value = slope if value is None else value
    known = tuple(x is not None and type(x) is not Aval for x in (out, *inputs))
    values = [_strong(x) for x, there in zip((out, *inputs), known, strict=True) if there]
    if all(map(is_plain_factor, values)):
        return value
    settling = _settling(op, rule, argument)
    return call(settling, (value, slope, given, *values), {"which": known, **params})


def _strong(x: Any) -> Any:
    """A traced number, given a dtype of its own, which compositions need."""
    weak = isinstance(x, Tensor) and getattr(innermost(x, show=True), "weak", False)
    return needed.astype(x, x.dtype) if weak else x


@functools.cache
def _settling(op: Op, rule: Rule, argument: int) -> Settling:
    """The op `settled(value, slope, given, *values, which, **params)` for a rule of another op.

    Its result is `value`, with 0 where `slope` is a product that counts as 0. It is linear in
    `value`, which is the slope itself at first, and a derivative of the slope later.
    """

    def settled(
        value: Any, slope: Any, given: Any, /, *values: Any, which: tuple[bool, ...], **params: Any
    ) -> Any:
        there, absent = iter(values), Aval(slope.shape, slope.dtype)
        out, *inputs = (next(there) if one else absent for one in which)
        nothing = _is_nothing(op, rule, argument, slope, given, out, inputs, params)
        return needed.mask(value, nothing ^ True)

    def evaluate(_xp: Any, /, *operands: Any, **params: Any) -> Any:
        with np.errstate(all="ignore"):
            return settled(*operands, **params)

    def infer(value: Aval, /, *others: Aval, **_params: Any) -> Aval:
        return Aval(broadcast_sizes(value.shape, *[x.shape for x in others]), value.dtype)

    def vjp(i: int, ct: Any, _out: Any, _value: Any, /, *others: Any, **params: Any) -> Any:
        if i:
            return None
        return unbroadcast(call(settling, (ct, *others), params), _value.shape)

    def jvp(tangents: Sequence[Any], _out: Any, _value: Any, /, *others: Any, **params: Any) -> Any:
        change = tangents[0]
        if change is None:
            return None
        return broadcast_tangent(call(settling, (change, *others), params), _out)

    settling = Settling(
        f"{op.name}_settled",
        evaluate,
        infer,
        vjp_each=vjp,
        jvp=jvp,
        batch=_batch,
        kind="elementwise",
        facts=Facts(layout="copy"),
        lower=Composite(settled),
    )
    names = (name for name, own in _settled_rules(op, argument).items() if own is rule)
    settling.settled, settling.rule_name, settling.argument = op, next(names, ""), argument
    return settling


def _batch(
    op: Op, axes: Sequence[int | None], args: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, int]:
    """Broadcast all operands to one shape: elementwise rules may read the shape of the result."""
    shapes = [aval_of(arg).shape for arg in args]
    (size,) = {shape[a] for shape, a in zip(shapes, axes, strict=True) if a is not None}
    own = [s if a is None else s[:a] + s[a + 1 :] for s, a in zip(shapes, axes, strict=True)]
    whole = broadcast_sizes(*own)
    lined_up = []
    for arg, axis, shape in zip(args, axes, own, strict=True):
        if axis is not None:
            first = (size,) + (1,) * (len(whole) - len(shape))
            arg = needed.reshape(move_batch_axis(arg, axis), first + shape)
        elif type(arg) in (int, float):
            lined_up.append(arg)
            continue
        lined_up.append(needed.broadcast_to(arg, (size, *whole)))
    return call(op, lined_up, params), 0


def _is_nothing(
    op: Op,
    rule: Rule,
    argument: int,
    slope: Any,
    given: Any,
    out: Any,
    inputs: Sequence[Any],
    params: dict[str, Any],
) -> Any:
    """True where a slope is 0·∞ at a value or an argument that is not finite."""
    zero = given == 0
    if slope.dtype.kind != "c":  # a map of complex numbers may be 0 in one direction only
        unit = rule(needed.ones_like(given), out, *inputs, **params)
        zero = zero | (unit == 0)
    nothing = (slope != slope) & zero
    if isinstance(out, Aval) and any(isinstance(x, Aval) for x in inputs):
        # The op is linear in the inputs that this rule does not read. Times infinity its value is
        # not finite, and times 0 it does not depend on them.
        return nothing
    isfinite = needed.isfinite
    defined = isfinite(call(op, inputs, params) if isinstance(out, Aval) else out)
    if not isinstance(inputs[argument], Aval):
        defined = defined & isfinite(inputs[argument])
    return nothing & (defined ^ True)
