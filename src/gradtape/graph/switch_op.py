"""The op `switch`: runs one of several graphs, as an integer says. `cond` is one of two.

Operands are the number of the branch and what all branches take. Its derivatives are switches
between the derivatives of the branches, which run the branch again for what they need of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_in_place
from gradtape.core.call import call, is_differentiable
from gradtape.core.lowering import Elements, Reader
from gradtape.core.op import Op, infer_like
from gradtape.core.scalar import Scalar
from gradtape.errors import IndexingError
from gradtape.graph.derived import Derived, batched, bits, depending, pullback, pushforward, reached
from gradtape.graph.ir import Graph, Value
from gradtape.graph.run import replay
from gradtape.graph.scan_op import LOOP
from gradtape.ops.select import where
from gradtape.ops.shape import moveaxis, reshape


class Switch(NamedTuple):
    """The parameters of a switch.

    Attributes:
        branches: Graphs of the same inputs, with results of the same shapes and dtypes.
    """

    branches: tuple[Graph, ...]

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """Run the op on values of any kind."""
        return call(switch_op, operands, self._asdict())  # type: ignore[no-any-return]

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The inputs of each branch."""
        return self.branches[0].inputs

    @property
    def outputs(self) -> Sequence[Any]:
        """The outputs of each branch."""
        return self.branches[0].outputs


# ---- forward ------------------------------------------------------------------------------------


def _evaluate(_xp: Any, index: Any, *operands: Any, branches: tuple[Graph, ...]) -> tuple[Any, ...]:
    return tuple(replay(branches[int(index)], operands))


def _infer(_index: Aval, *_avals: Aval, branches: tuple[Graph, ...]) -> tuple[Aval, ...]:
    return tuple(output.aval for output in branches[0].outputs)


def joined(derived: Sequence[Derived]) -> tuple[Switch, tuple[Any, ...]]:
    """A switch between derived graphs; each takes the constants of all."""
    constants = tuple(constant for each in derived for constant in each.constants)
    every = [
        value.aval
        for each in derived
        for value in each.graph.inputs[len(each.graph.inputs) - len(each.constants) :]
    ]
    branches, done = [], 0
    for graph, own, _ in derived:
        count = len(graph.inputs) - len(own)
        inputs = [Value(aval) for aval in every]
        inputs[done : done + len(own)] = graph.inputs[count:]
        done += len(own)
        branches.append(
            Graph(graph.name, (*graph.inputs[:count], *inputs), graph.nodes, graph.outputs)
        )
    return Switch(tuple(branches)), constants


# ---- derivatives --------------------------------------------------------------------------------


def _pull(
    wanted: Sequence[bool], ct: Any, _out: Any, index: Any, *operands: Any, **params: Any
) -> list[Any]:
    switch = Switch(**params)
    found: list[Any] = [None] * (1 + len(operands))
    moving = [
        n
        for n, output in enumerate(switch.outputs)
        if ct[n] is not None and is_differentiable(output)
    ]
    influence = 0
    for branch in switch.branches:
        spread = reached(branch)
        for n in moving:
            influence |= spread[n]
    chosen = [
        n
        for n, value in enumerate(switch.inputs)
        if wanted[n + 1] and influence >> n & 1 and is_differentiable(value)
    ]
    if not chosen:
        return found
    pulled = [pullback(branch, chosen, moving, ()) for branch in switch.branches]
    back, constants = joined(pulled)
    for n, value in zip(
        chosen, back(index, *operands, *[ct[n] for n in moving], *constants), strict=True
    ):
        found[n + 1] = value
    return found


_pull.takes_none = True  # type: ignore[attr-defined]


def _pushed(
    tangents: Sequence[Any], index: Any, *operands: Any, **params: Any
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The results and their tangents."""
    switch = Switch(**params)
    moving = [
        n
        for n, value in enumerate(switch.inputs)
        if tangents[n + 1] is not None and is_differentiable(value)
    ]
    mask = bits(moving)
    spreads = [reached(branch) for branch in switch.branches]
    moved = [
        n
        for n, output in enumerate(switch.outputs)
        if is_differentiable(output) and any(spread[n] & mask for spread in spreads)
    ]
    count = len(switch.outputs)
    pushed = []
    for branch in switch.branches:
        graph, constants, _ = pushforward(branch, moving)
        outputs = [*graph.outputs[:count], *(graph.outputs[count + n] for n in moved)]
        pushed.append(Derived(Graph(graph.name, graph.inputs, graph.nodes, outputs), constants))
    forward, constants = joined(pushed)
    found = forward(index, *operands, *[tangents[n + 1] for n in moving], *constants)
    result: list[Any] = [None] * count
    for n, tangent in zip(moved, found[count:], strict=True):
        result[n] = tangent
    return tuple(found[:count]), tuple(result)


def _push(tangents: Sequence[Any], _out: Any, *operands: Any, **params: Any) -> tuple[Any, ...]:
    return _pushed(tangents, *operands, **params)[1]


# ---- batches ------------------------------------------------------------------------------------


def _batch(
    _op: Op, axes: Sequence[int | None], args: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, Any]:
    switch = Switch(**params)
    (size,) = {arg.shape[axis] for arg, axis in zip(args, axes, strict=True) if axis is not None}
    mask = bits(n for n, axis in enumerate(axes[1:]) if axis is not None)
    apart = axes[0] is not None
    spreads = [depending(branch) for branch in switch.branches]
    out_batched = [
        apart or any(spread[n] & mask for spread in spreads) for n in range(len(switch.outputs))
    ]
    given = [
        arg if axis is None or axis == 0 else moveaxis(arg, axis, 0)
        for arg, axis in zip(args[1:], axes[1:], strict=True)
    ]
    own = [None if axis is None else 0 for axis in axes[1:]]
    wide = [batched(branch, own, size, out_batched) for branch in switch.branches]
    places = tuple(0 if has_axis else None for has_axis in out_batched)
    if not apart:
        narrow, constants = joined(wide)
        return narrow(args[0], *given, *constants), places
    # Elements take different branches: all are run, and each element takes its own result.
    outs = [replay(graph, (*given, *constants)) for graph, constants, _ in wide]
    chosen = outs[0]
    for number, out in enumerate(outs[1:], 1):
        chosen = [
            where(reshape(args[0] == number, (size,) + (1,) * (len(new.shape) - 1)), new, old)
            for new, old in zip(out, chosen, strict=True)
        ]
    return tuple(chosen), places


switch_op = Op(
    "switch",
    _evaluate,
    _infer,
    vjp_all=_pull,
    jvp=_push,
    pushed=_pushed,
    batch=_batch,
    kind="control",
    outputs=None,
    lower=LOOP,
)


# ---- the number of the branch -------------------------------------------------------------------


def out_of_range(index: Any, count: int) -> str:
    """The message for a number that no branch has."""
    return f"switch: got index {index}, expected one from 0 to {count - 1}, for {count} branches"


def _checked(xp: Any, index: Any, count: int) -> Any:
    wrong = (index < 0) | (index >= count)
    if xp.any(wrong):  # a Python number has no methods of arrays
        first = index if not getattr(index, "shape", ()) else index[wrong][0]
        raise IndexingError(out_of_range(first, count))
    return index


def _checked_element(at: Sequence[Scalar], index: Reader, count: int) -> Scalar:
    value = index(*at)
    holds = (value >= 0) & (value < count)
    return index.check(value, holds, out_of_range("{}", count), value)


# The number of a branch, checked; 0 in compiled code if it is wrong, which then raises.
branch_op = Op(
    "branch",
    _checked,
    infer_like,
    batch=batch_in_place,
    effect="assertion",
    lower=Elements(_checked_element),
)
