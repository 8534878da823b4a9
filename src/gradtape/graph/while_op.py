"""The op `while`: a loop that goes on as long as a graph of its state says so.

    while cond(*consts, *carry):
        carry = body(*consts, *carry)

How often it goes round is not known beforehand, so nothing that it computes can be kept in arrays
of a known size. Its backward pass is an op of its own, `while_pull`, which runs the loop again,
keeps states as its policy says, and goes back through them. Derivatives of that op are backward
passes of the loop that also carries tangents: second derivatives are symmetric.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gradtape.autodiff.forward import zeros_like
from gradtape.core.aval import Aval
from gradtape.core.call import call, is_differentiable
from gradtape.core.op import Op
from gradtape.graph.derived import (
    batched,
    bits,
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
from gradtape.graph.scan_op import LOOP
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to, moveaxis, reshape
from gradtape.ops.which import any as any_of

# How many states of a loop its backward pass keeps: all, about the root of their number, or a
# number; the stretches between them are run again, one at a time.
Save = str | int


class While(NamedTuple):
    """The parameters of a `while` loop.

    Attributes:
        cond: A graph of the constants and the carry; returns whether to go on.
        body: A graph of the same; returns the next carry.
        consts: The number of constants.
        save: The states that the backward pass keeps.
    """

    cond: Graph
    body: Graph
    consts: int
    save: Save = "all"

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """Run the op on values of any kind."""
        return call(while_op, operands, self._asdict())  # type: ignore[no-any-return]

    @property
    def carries(self) -> int:
        """The number of values that are carried from step to step."""
        return len(self.body.outputs)

    @property
    def carry_places(self) -> range:
        """The positions of carried values among the inputs of its graphs."""
        return range(self.consts, self.consts + self.carries)

    def active(self, wanted: Sequence[bool]) -> list[int]:
        """The carried values that cotangents flow through, as positions in the carry."""
        inputs = self.body.inputs
        asked = {n for n, want in enumerate(wanted) if want and is_differentiable(inputs[n])}
        flow = spread(asked, reached(self.body), self.carry_places)
        places = [n for n in range(self.carries) if self.consts + n in flow]
        return [n for n in places if is_differentiable(inputs[self.consts + n])]

    def states(self, consts: Sequence[Any], carry: Sequence[Any]) -> Iterator[list[Any]]:
        """The carry before each step, and the last one."""
        state = list(carry)
        yield state
        while replay(self.cond, (*consts, *state))[0]:
            state = replay(self.body, (*consts, *state))
            yield state


def _padded(graph: Graph, place: int, like: Sequence[Value]) -> Graph:
    """The graph with further inputs at a place, which nothing reads."""
    more = [Value(value.aval) for value in like]
    inputs = (*graph.inputs[:place], *more, *graph.inputs[place:])
    return Graph(graph.name, inputs, graph.nodes, graph.outputs)


# ---- forward ------------------------------------------------------------------------------------


def _evaluate(_xp: Any, *operands: Any, **params: Any) -> tuple[Any, ...]:
    loop = While(**params)
    for state in loop.states(operands[: loop.consts], operands[loop.consts :]):  # noqa: B007
        pass
    return tuple(state)


def _infer(*_avals: Aval, **params: Any) -> tuple[Aval, ...]:
    loop = While(**params)
    return tuple(value.aval for value in loop.body.inputs[loop.consts :])


# ---- forward mode -------------------------------------------------------------------------------


def with_tangents(loop: While, flow: Sequence[int]) -> tuple[While, tuple[Any, ...]]:
    """The loop that also carries tangents, and constants that it needs besides.

    Its constants are those of the loop, their tangents, and those others; its carry is that of the
    loop, and then tangents.

    Args:
        loop: The loop.
        flow: The inputs that have tangents; all carried values that depend on them are there.
    """
    pushed, constants, _ = pushforward(loop.body, flow)
    inputs, count, consts = pushed.inputs, len(loop.body.inputs), loop.consts
    tangents = inputs[count : count + len(flow)]
    of_consts = [t for n, t in zip(flow, tangents, strict=True) if n < consts]
    of_carry = [t for n, t in zip(flow, tangents, strict=True) if n >= consts]
    more = (*of_consts, *inputs[count + len(flow) :])
    order = (*inputs[:consts], *more, *inputs[consts:count], *of_carry)
    active = [n - consts for n in flow if n >= consts]
    outputs = (
        *pushed.outputs[: loop.carries],
        *[pushed.outputs[loop.carries + n] for n in active],
    )
    cond = _padded(_padded(loop.cond, count, of_carry), consts, more)
    body = Graph(pushed.name, order, pushed.nodes, outputs)
    return While(cond, body, consts + len(more), loop.save), constants


def _flow(loop: While, marked: set[int]) -> list[int]:
    """The differentiable inputs that are marked, and carried values that depend on them."""
    inputs = loop.body.inputs
    start = {n for n in marked if is_differentiable(inputs[n])}
    flow = spread(start, reached(loop.body), loop.carry_places)
    return sorted(n for n in flow if is_differentiable(inputs[n]))


def _or_zeros(values: Sequence[Any], like: Sequence[Any], places: Sequence[int]) -> list[Any]:
    return [zeros_like(like[n]) if values[n] is None else values[n] for n in places]


def _pushed(
    tangents: Sequence[Any], *operands: Any, **params: Any
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The results and their tangents."""
    loop = While(**params)
    flow = _flow(loop, {n for n, tangent in enumerate(tangents) if tangent is not None})
    pushed, constants = with_tangents(loop, flow)
    given = _or_zeros(tangents, operands, flow)
    found = pushed(*_arranged(loop, flow, operands, given, constants))
    result: list[Any] = [None] * loop.carries
    active = (n for n in flow if n >= loop.consts)
    for n, tangent in zip(active, found[loop.carries :], strict=True):
        result[n - loop.consts] = tangent
    return tuple(found[: loop.carries]), tuple(result)


def _push(tangents: Sequence[Any], _out: Any, *operands: Any, **params: Any) -> tuple[Any, ...]:
    return _pushed(tangents, *operands, **params)[1]


def _arranged(
    loop: While,
    flow: Sequence[int],
    operands: Sequence[Any],
    tangents: Sequence[Any],
    constants: Sequence[Any],
) -> list[Any]:
    """The operands of a loop with tangents."""
    of_consts = sum(n < loop.consts for n in flow)
    return [
        *operands[: loop.consts], *tangents[:of_consts], *constants, *operands[loop.consts :],
        *tangents[of_consts:],
    ]  # fmt: skip


# ---- reverse mode -------------------------------------------------------------------------------


class WhilePull(NamedTuple):
    """The parameters of the backward pass of a `while` loop.

    Operands are the constants and the first carry of the loop, and the cotangents of the active
    carried values after it. Results are their cotangents before it, and those of chosen constants.

    Attributes:
        cond: As of the loop.
        body: As of the loop.
        pull: A graph of the constants, the carry and the cotangents after a step; returns the
            cotangents of the active values before it, and those of the chosen constants.
        consts: The number of constants.
        active: The carried values that cotangents flow through.
        chosen: The constants that have cotangents.
        save: The states that are kept.
    """

    cond: Graph
    body: Graph
    pull: Graph
    consts: int
    active: tuple[int, ...]
    chosen: tuple[int, ...]
    save: Save = "all"

    @property
    def loop(self) -> While:
        """The loop it goes back through."""
        return While(self.cond, self.body, self.consts, self.save)

    @property
    def results(self) -> list[int]:
        """The operands of the loop whose cotangents it returns, in order."""
        return [*(self.consts + n for n in self.active), *self.chosen]


def pull_through(
    loop: While, operands: Sequence[Any], ct: Sequence[Any], wanted: Sequence[bool]
) -> list[Any]:
    """The cotangents of the operands of a loop, None for those not wanted.

    Args:
        loop: The loop.
        operands: Its operands.
        ct: The cotangents of its results, None for zero.
        wanted: For each operand, whether its cotangent is wanted.
    """
    active = loop.active(wanted)
    given: list[Any] = [None] * len(operands)
    if not any(ct[n] is not None for n in active):
        return given
    inputs, consts = loop.body.inputs, loop.consts
    chosen = [n for n in range(consts) if wanted[n] and is_differentiable(inputs[n])]
    pulled, constants, _ = pullback(loop.body, [*(consts + n for n in active), *chosen], active, ())
    count = len(inputs)
    of_ct, extra = pulled.inputs[count : count + len(active)], pulled.inputs[count + len(active) :]
    order = (*pulled.inputs[:consts], *extra, *pulled.inputs[consts:count], *of_ct)
    params = WhilePull(
        _padded(loop.cond, consts, extra),
        _padded(loop.body, consts, extra),
        Graph(pulled.name, order, pulled.nodes, pulled.outputs),
        consts + len(extra),
        tuple(active),
        tuple(chosen),
        loop.save,
    )
    starts = [zeros_like(operands[consts + n]) if ct[n] is None else ct[n] for n in active]
    given_to = (*operands[:consts], *constants, *operands[consts:], *starts)
    found = call(while_pull_op, given_to, params._asdict())
    for n, value in zip([*(consts + n for n in active), *chosen], found, strict=True):
        given[n] = value if wanted[n] else None
    return given


def _pull(wanted: Sequence[bool], ct: Any, _out: Any, *operands: Any, **params: Any) -> list[Any]:
    return pull_through(While(**params), operands, ct, wanted)


_pull.takes_none = True  # type: ignore[attr-defined]


def _evaluate_pull(_xp: Any, *operands: Any, **params: Any) -> tuple[Any, ...]:
    back = WhilePull(**params)
    loop, consts = back.loop, operands[: back.consts]
    end = back.consts + loop.carries
    ct = list(operands[end:])
    sums = [zeros_like(operands[n]) for n in back.chosen]
    for stretch in _stretches(loop, consts, operands[back.consts : end]):
        for state in reversed(stretch):
            out = replay(back.pull, (*consts, *state, *ct))
            ct = out[: len(ct)]
            sums = [total + part for total, part in zip(sums, out[len(ct) :], strict=True)]
    return (*ct, *sums)


def _stretches(loop: While, consts: Sequence[Any], carry: Sequence[Any]) -> Iterator[list[Any]]:
    """The states before each step, in stretches of which the last comes first."""
    kept: list[Any] = []
    stride = 1
    for number, state in enumerate(loop.states(consts, carry)):
        if number % stride:
            continue
        if is_full(loop.save, len(kept), stride):
            kept, stride = kept[::2], 2 * stride
            if number % stride:
                continue
        kept.append(state)
    steps = number
    while kept:
        first = (len(kept) - 1) * stride
        count = min(stride, steps - first)
        states = loop.states(consts, kept.pop())
        yield [next(states) for _ in range(count)]


def is_full(save: Save, kept: int, stride: int) -> bool:
    """Whether a loop has to drop every other state that it keeps.

    Args:
        save: Which states it keeps.
        kept: How many it keeps now.
        stride: The number of steps from one to the next.
    """
    if save == "all":
        return False
    return kept > 2 * stride if save == "sqrt" else kept >= int(save)


def _infer_pull(*avals: Aval, **params: Any) -> tuple[Aval, ...]:
    back = WhilePull(**params)
    return tuple(strong(back.body.inputs[n].aval) for n in back.results)


def _pull_tangents(
    back: WhilePull,
    operands: Sequence[Any],
    flow: Sequence[int],
    directions: Sequence[Any],
    ct_values: Sequence[Any],
    ct_tangents: Sequence[Any],
    wanted: Sequence[bool],
) -> tuple[list[Any], dict[int, Any]]:
    """The backward pass of (x, dx) ↦ (F(x), F′(x)·dx), where F is the loop.

    Args:
        back: The backward pass of F.
        operands: The operands of F.
        flow: The operands that have tangents dx.
        directions: These tangents.
        ct_values: Cotangents of F(x) for the active values; None for zero.
        ct_tangents: Cotangents of F′(x)·dx, likewise.
        wanted: For each operand of F, whether its cotangent is wanted.

    Returns:
        The cotangents of x, and F′(x)·dx by the position in the carry.
    """
    loop = back.loop
    pushed, constants = with_tangents(loop, flow)
    given = _arranged(loop, flow, operands, directions, constants)
    moving = [n - loop.consts for n in flow if n >= loop.consts]
    place = {n: loop.carries + k for k, n in enumerate(moving)}
    moved = dict(zip(moving, pushed(*given)[loop.carries :], strict=True))
    cts: list[Any] = [None] * pushed.carries
    for n, of_value, of_tangent in zip(back.active, ct_values, ct_tangents, strict=True):
        cts[n] = of_value
        if n in place:
            cts[place[n]] = of_tangent
    more = pushed.consts - loop.consts
    asked = [
        *wanted[: loop.consts], *(False,) * more, *wanted[loop.consts :], *(False,) * len(moving),
    ]  # fmt: skip
    found = pull_through(pushed, given, cts, asked)
    return [*found[: loop.consts], *found[pushed.consts :][: loop.carries]], moved


def _push_pull(tangents: Sequence[Any], _out: Any, *operands: Any, **params: Any) -> list[Any]:
    """The tangent of F′(x)ᵀ·ct, for changes dx and dct: F′(x)ᵀ·dct + (F″(x)·dx)ᵀ·ct.

    It is the cotangent of x in the backward pass of (x, dx) ↦ (F(x), F′(x)·dx), with the
    cotangents dct and ct.
    """
    back = WhilePull(**params)
    count = back.consts + back.loop.carries
    flow = _flow(back.loop, {n for n in range(count) if tangents[n] is not None})
    directions = _or_zeros(tangents, operands, flow)
    wanted = [n in back.results for n in range(count)]
    found, _ = _pull_tangents(
        back, operands[:count], flow, directions, tangents[count:], operands[count:], wanted
    )
    return [found[n] for n in back.results]


def _pull_pull(
    wanted: Sequence[bool], ct: Any, _out: Any, *operands: Any, **params: Any
) -> list[Any]:
    """With g = F′(x)ᵀ·ct and a cotangent u of g: ⟨u, g⟩ = ⟨F′(x)·u, ct⟩.

    So the cotangent of ct is F′(x)·u, and that of x is the one that ct has in the backward pass of
    (x, u) ↦ F′(x)·u.
    """
    back = WhilePull(**params)
    count = back.consts + back.loop.carries
    along: list[Any] = [None] * count
    for n, value in zip(back.results, ct, strict=True):
        along[n] = value
    flow = _flow(back.loop, {n for n in range(count) if along[n] is not None})
    nothing = (None,) * len(back.active)
    found, moved = _pull_tangents(
        back,
        operands[:count],
        flow,
        _or_zeros(along, operands, flow),
        nothing,
        operands[count:],
        wanted[:count],
    )
    return [*found, *[moved.get(n) for n in back.active]]


_pull_pull.takes_none = True  # type: ignore[attr-defined]


# ---- batches ------------------------------------------------------------------------------------


def batched_loop(
    loop: While, flags: set[int], size: int
) -> tuple[While, tuple[Any, ...], set[int]]:
    """The loop of a batch: goes on while any element does, and leaves the others as they are.

    Args:
        loop: The loop of one element.
        flags: The operands that are batched.
        size: The number of elements.

    Returns:
        The loop, constants that it needs besides, and the operands that have to be batched, along
        their first axis.
    """
    influence = depending(loop.body)
    flags = spread(flags, influence, loop.carry_places)
    of_cond = depending(loop.cond)[0]
    if of_cond & bits(flags):
        # Elements stop at different times: all of the state differs between them.
        flags = spread(flags | set(loop.carry_places), influence, loop.carry_places)
    apart = bool(of_cond & bits(flags))
    axes = [0 if n in flags else None for n in range(len(loop.body.inputs))]
    cond, cond_constants, _ = batched(loop.cond, axes, size, [apart])
    out_batched = [loop.consts + n in flags for n in range(loop.carries)]
    body, constants, _ = batched(loop.body, axes, size, out_batched)
    count, consts = len(loop.body.inputs), loop.consts

    def go_on(*values: Any) -> Any:
        out = replay(cond, (*values, *cond_constants))[0]
        return any_of(out) if apart else out

    def step(*values: Any) -> Any:
        new = replay(body, (*values, *constants))
        if not apart:
            return tuple(new)
        goes_on = replay(cond, (*values, *cond_constants))[0]
        return tuple(
            where(reshape(goes_on, (size,) + (1,) * (len(old.shape) - 1)), value, old)
            for value, old in zip(new, values[consts:], strict=True)
        )

    avals = [cond.inputs[n].aval for n in range(count)]
    made_cond, extra_cond, _ = traced(go_on, avals, loop.cond.name)
    made_body, extra_body, _ = traced(step, avals, loop.body.name)
    order = (*made_cond.inputs[:consts], *made_cond.inputs[count:], *made_cond.inputs[consts:count])
    own_cond = Graph(made_cond.name, order, made_cond.nodes, made_cond.outputs)
    order = (*made_body.inputs[:consts], *made_body.inputs[count:], *made_body.inputs[consts:count])
    own_body = Graph(made_body.name, order, made_body.nodes, made_body.outputs)
    extra = (*extra_cond, *extra_body)
    wide = While(
        _padded(own_cond, consts + len(extra_cond), made_body.inputs[count:]),
        _padded(own_body, consts, made_cond.inputs[count:]),
        consts + len(extra),
        loop.save,
    )
    return wide, extra, flags


def _with_first_axis(arg: Any, axis: int | None, size: int) -> Any:
    if axis is None:
        return broadcast_to(arg, (size, *getattr(arg, "shape", ())))
    return arg if axis == 0 else moveaxis(arg, axis, 0)


def _batch_size(axes: Sequence[int | None], args: Sequence[Any]) -> int:
    (size,) = {arg.shape[axis] for arg, axis in zip(args, axes, strict=True) if axis is not None}
    return int(size)


def _batch(
    _op: Op, axes: Sequence[int | None], args: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, Any]:
    loop, size = While(**params), _batch_size(axes, args)
    wide, extra, flags = batched_loop(
        loop, {n for n, axis in enumerate(axes) if axis is not None}, size
    )
    given = [
        _with_first_axis(arg, axis, size) if n in flags else arg
        for n, (arg, axis) in enumerate(zip(args, axes, strict=True))
    ]
    out = wide(*given[: loop.consts], *extra, *given[loop.consts :])
    places = [0 if loop.consts + n in flags else None for n in range(loop.carries)]
    return out, tuple(places)


def _batch_pull(
    _op: Op, axes: Sequence[int | None], args: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, Any]:
    back, size = WhilePull(**params), _batch_size(axes, args)
    loop, count = back.loop, back.consts + back.loop.carries
    # Every cotangent that comes out belongs to one element, so what it is the cotangent of does.
    flags = {n for n in range(count) if axes[n] is not None} | set(back.results)
    wide, extra, flags = batched_loop(loop, flags, size)
    given = [
        _with_first_axis(arg, axis, size) if n >= count or n in flags else arg
        for n, (arg, axis) in enumerate(zip(args, axes, strict=True))
    ]
    operands = [*given[: loop.consts], *extra, *given[loop.consts : count]]
    cts: list[Any] = [None] * loop.carries
    for n, value in zip(back.active, given[count:], strict=True):
        cts[n] = value
    asked = set(back.results)
    more = len(extra)
    wanted = [
        *(n in asked for n in range(loop.consts)), *(False,) * more,
        *(n in asked for n in range(loop.consts, count)),
    ]  # fmt: skip
    found = pull_through(wide, operands, cts, wanted)
    order = [*(wide.consts + n for n in back.active), *back.chosen]
    return tuple(found[n] for n in order), (0,) * len(order)


while_op = Op(
    "while",
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
while_pull_op = Op(
    "while_pull",
    _evaluate_pull,
    _infer_pull,
    vjp_all=_pull_pull,
    jvp=_push_pull,
    batch=_batch_pull,
    kind="control",
    outputs=None,
    lower=LOOP,
)
